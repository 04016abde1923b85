"""A robot whose policy runs elsewhere, on a cable that breaks; what `python -m bench.link` measures."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.link import broken, launch_text
from bench.netem import Shape, can_make


def test_the_shipped_graph_is_what_is_measured() -> None:
    text = launch_text()
    assert "StretchRobot" not in text
    assert text.count('host = "desktop"') == 3
    assert 'do = "hold"' in text


@pytest.mark.processes
@pytest.mark.alone
@pytest.mark.long
@pytest.mark.skipif(not can_make(), reason="needs root, iproute2 and /dev/net/tun")
@pytest.mark.parametrize("is_ipv6", [False, True])
def test_each_way_of_a_link_that_breaks_holds_the_robot_until_a_person_says_go_on(
    tmp_path: Path, is_ipv6: bool
) -> None:
    found = broken(Shape(delay_s=0.02, loss=0.02, mbit=20.0), tmp_path, is_ipv6=is_ipv6)
    assert [one.way for one in found if not one.is_good] == [], found
