"""What was recorded a second before a kill -9 is in the file, without a gap."""

from __future__ import annotations

import random

import pytest

from bench.recording import lost_s


@pytest.mark.alone
@pytest.mark.processes
def test_a_killed_recorder_loses_at_most_a_second_and_nothing_older() -> None:
    losses = lost_s(3, random.Random(1))
    assert len(losses) == 3
    assert max(losses) <= 1.0
