"""A process of which no thread runs is killed and restarted; a busy one is not, and no supervisor that slept kills."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.errors import UserError
from runtime.launch.file import load
from runtime.supervision.supervisor import LOOK_S, FreezeDetector, processor_time
from tests.support.running import Runs, eventually
from tests.support.sentences import pattern

LOOKS = int(2.0 / LOOK_S)

HELLO = """
[nodes.talker]
use = "tests.support.graph_nodes:BusyTalker"

[nodes.listener]
use = "nodes.hello:Listener"
"""


def test_who_is_silent_and_idle_for_two_seconds_of_looks_is_frozen() -> None:
    detector = FreezeDetector(2.0)
    detector.heard("policy")
    assert [detector.look("policy", "7 0") for _ in range(LOOKS + 1)] == [False] * LOOKS + [True]


def test_a_heartbeat_begins_the_count_anew() -> None:
    detector = FreezeDetector(2.0)
    for _ in range(LOOKS):
        assert not detector.look("policy", "7 0")
    detector.heard("policy")
    assert [detector.look("policy", "7 0") for _ in range(LOOKS + 1)] == [False] * LOOKS + [True]


def test_who_uses_the_processor_or_waits_for_a_disk_is_not_frozen() -> None:
    detector = FreezeDetector(2.0)
    assert not any(detector.look("policy", f"{used} 0") for used in range(5 * LOOKS))
    assert not any(detector.look("vlm", "") for _ in range(5 * LOOKS))


def test_looks_count_and_not_time_so_that_a_supervisor_that_slept_kills_nobody() -> None:
    detector = FreezeDetector(2.0)
    assert [detector.look("policy", "7 0") for _ in range(3)] == [False] * 3, "whatever time lay between them"


def test_processor_time_is_told_of_a_process_that_is_there() -> None:
    assert processor_time(os.getpid())
    assert processor_time(1 << 29) == ""


def test_a_time_after_which_nothing_is_ever_taken_for_frozen_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "hello.toml"
    file.write_text(HELLO.replace("[nodes", "[run]\nfrozen_s = 61.0\n\n[nodes", 1))
    with pytest.raises(UserError, match=rf"\[run\] frozen_s is 61.0; {pattern('runtime.frozen_range')} s"):
        load(file)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    with Runs(monkeypatch) as started:
        yield started


@pytest.mark.processes
def test_a_frozen_process_is_killed_and_restarted_and_one_with_a_busy_handler_is_left_alone(
    runs: Runs, tmp_path: Path
) -> None:
    file = tmp_path / "hello.toml"
    file.write_text(HELLO)
    assert load(file).frozen_s == 2.0
    run = runs.start(file)
    frozen, busy = run.states()["listener"].pid, run.states()["talker"].pid
    os.kill(frozen, signal.SIGSTOP)
    eventually(lambda: run.states()["listener"].restarts == 1, "it is restarted", 15.0)
    eventually(lambda: run.states()["listener"].state == "running", "and runs")
    assert run.states()["listener"].pid != frozen
    assert (run.states()["talker"].pid, run.states()["talker"].restarts) == (busy, 0), "it was busy for as long"
