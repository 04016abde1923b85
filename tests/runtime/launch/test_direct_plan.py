"""The plan says which states go straight to one handler, and nobody is asked for what nobody needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runtime import Message, Node, Publisher, QoS, Subscription, every, on
from runtime.launch.file import Launch, resolve
from runtime.launch.process_plan import plan
from runtime.transport.direct import is_available

pytestmark = pytest.mark.skipif(not is_available(), reason="Linux only")


class Level(Message, kind="state"):
    count: int


class Note(Message):
    text: str


class Source(Node):
    level = Publisher(Level, "level")
    kept = Publisher(Level, "kept", qos=QoS(late_join=True))
    own = Publisher(Level, "own", qos=QoS(exclusive=True))
    note = Publisher(Note, "note")


class Plain(Node):
    level = Subscription(Level, "level")
    kept = Subscription(Level, "kept")
    own = Subscription(Level, "own")
    note = Subscription(Note, "note")

    @on(level)
    def take(self, level: Level) -> None: ...

    @on(kept)
    def take_kept(self, level: Level) -> None: ...

    @on(own)
    def take_own(self, level: Level) -> None: ...

    @on(note)
    def read(self, note: Note) -> None: ...


class Looker(Node):
    """Looks at it now and then, and handles it in a worker thread."""

    level = Subscription(Level, "level")
    own = Subscription(Level, "own")

    @on(level, blocking=True)
    def work(self, level: Level) -> None: ...

    @every(hz=1)
    def look(self) -> None:
        self.own.latest()


def launch(**nodes: dict[str, Any]) -> Launch:
    return resolve({"nodes": nodes}, path=Path("test"))


def table(cls: type[Node], **more: Any) -> dict[str, Any]:
    return {"use": f"{__name__}:{cls.__name__}", **more}


def test_states_that_one_plain_handler_wants_go_straight_and_no_others() -> None:
    plans = plan(launch(source=table(Source), plain=table(Plain), looker=table(Looker)))
    assert plans["plain"].direct_from == {"level": ("source",), "own": ("source",), "note": ("source",)}
    assert plans["looker"].direct_from == {}
    assert plans["source"].direct_to == {"level": ("plain",), "own": ("plain",), "note": ("plain",)}
    assert plans["source"].listeners["level"] == 1  # the looker, over ZeroMQ
    assert plans["source"].listeners["kept"] == 1


def test_two_who_want_a_state_in_one_process_get_it_the_common_way() -> None:
    plans = plan(launch(source=table(Source), plain=table(Plain, process="a"), looker=table(Looker, process="a")))
    assert plans["a"].direct_from == {"note": ("source",)}  # an event that one of them wants


def test_a_process_connects_to_those_that_it_hears_alone() -> None:
    plans = plan(launch(source=table(Source), plain=table(Plain), looker=table(Looker)))
    assert plans["plain"].peers == ("source",)
    assert plans["source"].peers == ()
