"""Keys from a terminal: all that were typed are read at once, and none acts later."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Iterator
from typing import cast

import pytest

from nodes.msgs import JOINTS, JointCommand
from nodes.seats.keys import BASE, STEPS, Keys
from runtime.command_line.attach import Arrival, Sender
from runtime.message import Envelope
from runtime.serialization.codec import encode
from tests.support.running import eventually


class Heard:
    """What was sent."""

    def __init__(self) -> None:
        self.commands: list[JointCommand] = []

    def publish(self, message: JointCommand) -> None:
        self.commands.append(message)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The other end of what the keys take for their terminal."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield ours
        Keys.restore()
    os.close(ours)


def posture(*position: float) -> Arrival:
    envelope = Envelope(topic="robot/command", source="guard", seq=1, published_ns=1)
    return Arrival("robot/command", encode(envelope, JointCommand(position=position)), 1, 0)


def test_a_key_has_the_last_seconds_kept_and_moves_nothing() -> None:
    heard, asked = Heard(), []
    keys = Keys(cast(Sender, heard), keep_last=lambda: asked.append(True))
    keys.posture = (0.5,) * 8
    keys.press("w", 0)
    until_ns = keys.until_ns
    keys.press("r", 1)
    assert (asked, keys.until_ns, keys.posture) == ([True], until_ns, (0.5,) * 8)


def test_keys_typed_together_are_all_read_before_anything_is_sent(terminal: int) -> None:
    heard = Heard()
    keys = Keys(cast(Sender, heard))
    assert keys.drive(posture(*[0.0] * len(JOINTS)))
    assert heard.commands == []
    os.write(terminal, b"wsd")

    def is_turning() -> bool:
        assert keys.drive(None)
        return bool(heard.commands) and heard.commands[-1].base_w_radps < 0.0

    eventually(is_turning, "the last key acts, and not the first")


def test_a_key_that_is_held_before_the_posture_is_known_acts_as_soon_as_it_is(terminal: int) -> None:
    heard = Heard()
    keys = Keys(cast(Sender, heard))
    os.write(terminal, b"s")

    def is_read() -> bool:
        assert keys.drive(None)
        return keys.base[0] < 0.0

    eventually(is_read, "the key is read")
    keys.press("s", keys.clock.now_ns())  # it repeats, however slow this machine is
    assert keys.drive(posture(*[0.0] * len(JOINTS)))
    assert [command.base_v_mps < 0.0 for command in heard.commands] == [True]


def test_the_key_that_gives_back_is_seen_behind_others(terminal: int) -> None:
    keys = Keys(cast(Sender, Heard()))
    os.write(terminal, b"sssssq")
    eventually(lambda: not keys.drive(None), "it is given back")


def test_another_robot_than_a_stretch_is_driven_joint_by_joint(terminal: int) -> None:
    keys = Keys(cast(Sender, Heard()), ("waist", "elbow"))
    assert "1-9  choose a joint" in keys.told
    assert keys.drive(posture(0.5, 1.0))
    for key in "2uu3":  # it has no third joint
        keys.press(key, keys.clock.now_ns())
    assert keys.posture == pytest.approx((0.5, 1.04))
    assert keys.status == "2 elbow 1.04"


@pytest.mark.parametrize("joints", [JOINTS, ("waist", "elbow")])
def test_what_keys_do_fits_a_terminal_of_80_columns(terminal: int, joints: tuple[str, ...]) -> None:
    keys = Keys(cast(Sender, Heard()), joints)
    assert all(len(line) < 80 for line in keys.told.splitlines())
    for key in {*BASE, "q"} | ({*STEPS} if joints == JOINTS else {"u", "j"}):
        assert f" {key} " in keys.told
