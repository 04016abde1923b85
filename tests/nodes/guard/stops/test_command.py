"""What `polyrhythm guard` says of the guard after an order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nodes.guard import orders as command
from runtime.command_line.attach import Arrival
from runtime.message import Envelope, Message
from runtime.msgs import GuardState
from runtime.serialization.codec import encode

LATCHED = GuardState(mode="stopped", reason="emergency stop: x", estop="x")
REARMED = GuardState(mode="stopped", reason="re-armed by Ana, waiting to be told to go on", is_armed=True)
MOVING = GuardState(mode="moving", reason="", is_armed=True)
ORDER = "guard/order:pub-1:1"


class ASender:
    def __init__(self, run: object, topic: str, *, provenance: str) -> None:
        self._envelope = Envelope(topic, "pub-1", 1, 0)

    def publish(self, message: Message) -> Envelope:
        return self._envelope

    def close(self) -> None: ...


def arrivals(*states: tuple[GuardState, str]) -> list[Arrival | None]:
    return [
        Arrival("guard/state", encode(Envelope("guard/state", "guard", number, 0, cause=cause), state), 0, 0)
        for number, (state, cause) in enumerate(states, start=1)
    ]


@pytest.fixture
def said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Any:  # what the command prints, and its exit code, where the guard says that
    def said_after(*states: tuple[GuardState, str]) -> tuple[str, int]:
        def hear(*_: object, **__: object) -> Iterator[Arrival | None]:
            yield from arrivals(*states)

        monkeypatch.setattr(command, "attach", lambda *_: SimpleNamespace(folder=tmp_path))
        monkeypatch.setattr(command, "token_of", lambda _: "token")
        monkeypatch.setattr(command, "Sender", ASender)
        monkeypatch.setattr(command, "hear", hear)
        code = command.obey("rearm", "room", "Ana", as_json=True)
        return json.loads(capsys.readouterr().out)["reason"], code

    return said_after


def test_a_re_arm_is_told_as_it_took_effect_whatever_is_said_next(said: Any) -> None:
    after = said((LATCHED, ""), (LATCHED, "estop:console:1"), (REARMED, ORDER), (MOVING, "heard:ann:3"))
    assert after == (REARMED.reason, 0)


def test_a_refused_re_arm_is_told_as_well(said: Any) -> None:
    assert said((LATCHED, ""), (LATCHED, ORDER), (REARMED, "guard/order:console:9")) == (LATCHED.reason, 1)


def test_where_the_answer_was_not_heard_the_last_state_is_told(said: Any) -> None:
    assert said((LATCHED, ""), (LATCHED, ""), (REARMED, "")) == (REARMED.reason, 0)
