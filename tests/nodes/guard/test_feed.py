"""Claims about what the guard tells its watchdog, word for word, and whose answer counts."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

from nodes.guard.feed import SILENT_NS, WatchdogFeed
from nodes.guard.lasting_faults import CommandedMotion
from nodes.guard.motion_profile import Motion
from nodes.guard.watchdog import ECHO, FEED
from nodes.stretch.limits import STOW
from tests.support.standing import moving

pytestmark = pytest.mark.processes
LATER_NS = SILENT_NS + 1
MOVES = CommandedMotion(tuple(map(Motion, STOW)), 0.1, -0.2, 0.3)
RELEASED = CommandedMotion((), 0.0, 0.0)
STATE = moving(2_000_000_000, STOW, (0.0,) * len(STOW), 0.4, -0.5)


@pytest.fixture
def watchdog(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as its:
        its.bind(str(tmp_path / FEED))
        its.settimeout(5.0)
        yield its


@pytest.fixture
def feed(tmp_path: Path) -> Iterator[WatchdogFeed]:
    (tmp_path / ECHO).touch()  # a guard that was killed has left it
    it = WatchdogFeed(tmp_path, 0)
    yield it
    it.close(0)


def heard(watchdog: socket.socket) -> list[object]:
    checksum, _, body = watchdog.recv(4096).partition(b" ")
    assert int(checksum, 16) == crc32(body)
    told: list[object] = json.loads(body)
    return told


def test_it_tells_mode_commands_and_measured_state_of_a_robot_that_may_move_and_no_numbers_of_another(
    watchdog: socket.socket, feed: WatchdogFeed
) -> None:
    feed.tell("moving", MOVES, STATE, 1)
    pose = [STATE.base_x_m, STATE.base_y_m, STATE.base_heading_rad]
    numbers = [[0.1, 0.3, -0.2], [2.0, *pose, 0.4, 0.0, -0.5], list(STOW), list(STOW)]
    assert heard(watchdog) == [os.getpid(), 1, "moving", True, *numbers]
    nothing = [[0.0] * 3, [0.0] * 7, [], []]
    feed.tell("disarmed", RELEASED, STATE, 2)
    assert heard(watchdog) == [os.getpid(), 2, "disarmed", False, *nothing]
    feed.tell("moving", MOVES, None, 3)
    assert heard(watchdog) == [os.getpid(), 3, "moving", True, *nothing]
    feed.close(4)
    assert heard(watchdog) == [os.getpid(), 4, "ended", False, *nothing]


@pytest.mark.parametrize(
    ("answer", "counts"), [(b"1", True), (b"2", True), (b"0", False), (b"3", False), (b"-1", False), (b"x", False)]
)
def test_a_watchdog_that_answers_a_word_that_was_told_is_there(
    watchdog: socket.socket, feed: WatchdogFeed, tmp_path: Path, answer: bytes, counts: bool
) -> None:
    assert feed.tell("holding", RELEASED, None, SILENT_NS)
    watchdog.connect(str(tmp_path / ECHO))
    watchdog.send(answer)
    assert feed.tell("holding", RELEASED, None, LATER_NS) is counts
    assert feed.tell("holding", RELEASED, None, LATER_NS + SILENT_NS) is counts
    assert not feed.tell("holding", RELEASED, None, LATER_NS + SILENT_NS + 1)


def test_a_guard_whose_socket_was_deleted_is_answered_at_a_new_one(
    watchdog: socket.socket, feed: WatchdogFeed, tmp_path: Path
) -> None:
    (tmp_path / ECHO).unlink()
    feed.tell("holding", RELEASED, None, SILENT_NS)
    watchdog.connect(str(tmp_path / ECHO))
    watchdog.send(b"1")
    assert feed.tell("holding", RELEASED, None, LATER_NS)


def test_a_watchdog_that_is_not_there_is_silent(feed: WatchdogFeed) -> None:
    assert feed.tell("holding", RELEASED, None, SILENT_NS)
    assert not feed.tell("holding", RELEASED, None, LATER_NS)
