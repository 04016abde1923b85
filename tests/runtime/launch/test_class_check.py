"""First steps explain themselves: what beginners write is told by `check` with class, line and remedy."""

from __future__ import annotations

import asyncio
import functools
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ParamSpec

import pytest

from nodes.hello import Beat
from runtime import Graph, Message, Node, NodeSpec, Publisher, Stamped, Subscription, UserError, every, on
from runtime.cli import main
from runtime.errors import ParameterError
from runtime.launch.nodes_table import load_module
from tests.support.sentences import pattern, sentence

HEAD = """
from runtime import Message, Node, Publisher, QoS, Subscription, every, on

class Beat(Message):
    count: int

class Foo(Message):
    count: int

"""

MISTAKES = {
    """
    class Mine(Node):
        def __init__(self):
            super().__init__("mine")
    """: "Mine.__init__ (beginner.py:12) gives its base class arguments, which takes none; write `super().__init__()`: "
    "a node has its name from its table in the launch file",
    """
    class Mine(Node):
        @property
        @every(hz=1)
        def tick(self): ...
    """: "Mine.tick (beginner.py:11): a handler is no property; leave out @property",
    """
    def loud(method):
        return lambda self: method(self)

    class Mine(Node):
        @loud
        @every(hz=1)
        def tick(self): ...
    """: "Mine.tick (beginner.py:16) has a decorator above its @every or @on, which hides that mark, so nobody calls "
    "it; put @every or @on on top",
    """
    class Mine(Node):
        outs = [Publisher(Beat, "one"), Publisher(Beat, "two")]
    """: "Mine.outs (beginner.py:11) is a list with a port in it, which nobody connects; give each port a line of its "
    "own: `one = Publisher(Beat, 'one')`",
    """
    class Mine(Node):
        beat = Publisher(Beat, "beat"),
    """: "Mine.beat (beginner.py:11) is a tuple with a port in it, which nobody connects; leave out the comma behind "
    "it",
    """
    class Mine(Node):
        beat: Subscription[Beat]
    """: "Mine.beat (beginner.py:11) names a type and makes no port; write `beat = Subscription(Beat, 'beat')`, with "
    "its message and topic",
    """
    class Mine(Node):
        async def on_start(self): ...
    """: "Mine.on_start (beginner.py:11) is no plain method, so that a call runs none of it; "
    "write `def on_start(self)`",
    """
    class Mine(Node):
        @every(hz=1)
        def tick(self):
            if self.name:
                self.clock.sleep(0.1)
    """: "Mine.tick (beginner.py:14) calls self.clock.sleep and does not wait for it; write "
    "`await self.clock.sleep(...)` in an `async def tick`",
    """
    class Mine(Node):
        @every(hz=1)
        async def tick(self):
            self.rest()

        async def rest(self):
            await self.clock.sleep(0.1)
    """: "Mine.tick (beginner.py:13) calls self.rest and does not wait for it; write `await self.rest(...)`",
    """
    class Mine(Node):
        def on_stop(self, reason): ...
    """: "Mine.on_stop (beginner.py:11) takes nothing but self; write `def on_stop(self)`",
    """
    class Twist(Message):
        speed = 0.0

    class Mine(Node):
        twist = Publisher(Twist, "twist")
    """: "Twist.speed (beginner.py:11) is no field, since it has no type; write `speed: float = 0.0`",
    """
    from abc import ABC, abstractmethod

    class Mine(Node, ABC):
        @abstractmethod
        def go(self): ...
    """: "Mine does not say what its go does; write it, or name a class that does",
    """
    class Other(Node):
        beat = Subscription(Beat, "beat")

    class Mine(Node):
        @on(Other.beat)
        def heard(self, beat: Beat): ...
    """: "Mine.heard (beginner.py:14): @on names a port that is no subscription of this class; declare one on this "
    "class, under a name of its own",
    """
    class Mine(Node):
        beat = Publisher(Beat, "beat", qos=QoS(reliability="best_effort"))
    """: "'beginner:Mine': module 'beginner' cannot be imported at beginner.py:11: QoS knows no 'reliability'; known: "
    "depth, lifespan_s, deadline_s, drop, required, late_join, candidates, reliable, hold_s, exclusive, "
    "in_process, max_hz",
    """
    class Mine(Node):
        def __init__(self):
            self.name = "mine"
    """: "Mine.__init__ (beginner.py:12) sets self.name, which every node has from its graph; call yours otherwise, "
    "such as self.own_name",
    """
    class Mine(Node):
        beat = Subscription(Beat, "beat", qos=QoS(required=False))
        foo = Subscription(Foo, "foo", qos=QoS(required=False))

        @on(beat)
        @on(foo)
        def heard(self, message):
            pass
    """: "'beginner:Mine': module 'beginner' cannot be imported at beginner.py:14: Mine.heard (line 14) has two marks, "
    "and the second would take the place of the first; give each a method of its own that calls this one",
    """
    class Mine(Node):
        @every(hz=1)
        def tick():
            pass
    """: "Mine.tick (beginner.py:11) takes (), but a handler of this kind takes no message; write `def tick(self)`",
    """
    class Mine(Node):
        @every(hz=1)
        def tick(self, beat: Beat):
            pass
    """: "Mine.tick (beginner.py:11) takes (self, beat: beginner.Beat), but a handler of this kind takes no message; "
    "write `def tick(self)`",
    """
    class Mine(Node):
        beat = Subscription(Beat, "beat", qos=QoS(required=False))

        @on(beat)
        def heard(beat):
            pass
    """: "Mine.heard (beginner.py:13) takes (beat), but a handler of this kind takes the Beat of port 'beat'; "
    "write `def heard(self, beat: Beat)`",
    """
    class Mine(Node):
        beat = Subscription(Beat, "beat", qos=QoS(required=False))

        @on(beat)
        def heard(self):
            pass
    """: "Mine.heard (beginner.py:13) takes (self), but a handler of this kind takes the Beat of port 'beat'; "
    "write `def heard(self, beat: Beat)`",
    """
    class Mine(Node):
        beat = Subscription(Beat, "beat", qos=QoS(required=False))

        @on(beat)
        def heard(self, foo: Foo):
            pass
    """: "Mine.heard (beginner.py:13) annotates 'foo' as Foo, but a handler of this kind takes the Beat of port "
    "'beat'; write `def heard(self, beat: Beat)`",
    """
    class Mine(Node):
        def __init__(self):
            self.out = Publisher(Beat, "beat")
    """: "Mine.__init__ (beginner.py:12) makes the port self.out, which nobody connects; declare it on the class: "
    "`out = Publisher(Beat, 'beat')`",
    """
    class Mine(Node):
        out = Publisher(dict, "beat")
    """: "'beginner:Mine': module 'beginner' cannot be imported at beginner.py:11: Publisher(dict, 'beat'): dict is no "
    "message; declare one: `class Beat(Message): count: int`",
    """
    class Mine(Node):
        def __init__(self):
            self.file = open("/no/such/file")
    """: "Mine.__init__ (beginner.py:12) failed: FileNotFoundError: [Errno 2] No such file or directory: "
    "'/no/such/file'; what needs a device, a file or the network belongs into on_start",
    """
    class Mine(Node):
        def __init__(self):
            self.sum = None + 1
    """: "Mine.__init__ (beginner.py:12) failed: TypeError: unsupported operand type(s) for +: 'NoneType' and 'int'; "
    "what needs a device, a file or the network belongs into on_start",
    """
    class Mine(Node):
        beat = Subscription(Beat, "beat", qos=QoS(required=False))

        @on
        def heard(self, beat):
            pass
    """: "'beginner:Mine': module 'beginner' cannot be imported at beginner.py:13: @on takes a subscription, not "
    "<function Mine.heard at ",
    """
    class Mine(Node):
        @every
        def tick(self):
            pass
    """: "'beginner:Mine': module 'beginner' cannot be imported at beginner.py:11: @every takes its rate by name; "
    "write @every(hz=2) for twice a second",
    """
    class Mine(Node):
        @every(seconds=2)
        def tick(self):
            pass
    """: "'beginner:Mine': module 'beginner' cannot be imported at beginner.py:11: @every knows no seconds; "
    "write @every(hz=2) for twice a second",
    """
    class Mine(Node):
        out = Publisher(Beat, "beat", qos=10)
    """: "'beginner:Mine': module 'beginner' cannot be imported at beginner.py:11: Publisher(Beat, 'beat', qos=10): "
    "write qos=QoS(depth=10)",
    """
    class Mine(Node):
        out = Publisher(Beat)
    """: "'beginner:Mine': module 'beginner' cannot be imported at beginner.py:11: TypeError: Publisher.__init__() "
    "missing 1 required positional argument: 'topic'; write Publisher(Beat, 'beat', qos=QoS(...)), qos where it is "
    "needed",
    """
    class Mine:
        out = Publisher(Beat, "beat")
    """: "'beginner:Mine' is no Node; write `class Mine(Node):`",
    """
    class Mine(Node):
        @staticmethod
        @every(hz=5)
        def tick():
            pass
    """: "Mine.tick (beginner.py:11): a handler takes self; leave out @staticmethod",
    """
    class Mine(Node):
        @every(hz=5)
        def tick(self):
            yield 3
    """: "Mine.tick (beginner.py:11) has a `yield`, so that a call runs none of it; publish each value in its place",
    """
    class Base(Node):
        @every(hz=5)
        def tick(self):
            pass

    class Mine(Base):
        def tick(self):
            pass
    """: "Mine.tick (beginner.py:16) takes the place of the handler Base.tick and has no mark, so nobody calls it; "
    "mark it with @every or @on, too, or write `tick = None`",
    """
    class Mine(Node):
        beat = Subscription(Beat, "beat", qos=QoS(required=False))
        foo = Subscription(Foo, "foo", qos=QoS(required=False))

        @on(beat, foo)
        def heard(self, beat, foo):
            pass
    """: "Mine.heard (beginner.py:14) takes (self, beat, foo), but a handler of this kind takes one message at a time, "
    "of beat, foo; write `def heard(self, message: Beat | Foo)`",
    """
    class Mine(Node):
        out = Publisher(Beat, "beat")

        def __init__(self):
            self.out.publish(Beat(count=1))
    """: "Mine.__init__ (beginner.py:14) publishes, and nobody is connected yet; do it in on_start",
    """
    class Mine(Node):
        out = Publisher(Beat, "beat")

        def __init__(self):
            self.out = Beat(count=1)
    """: "Mine.__init__ (beginner.py:14) sets self.out, which is the port of topic 'beat'; call yours otherwise, "
    "such as self.own_out",
    """
    class Mine(Node):
        def __init__(self):
            self.start_s = self.clock.now_s
    """: "Mine.__init__ (beginner.py:11) uses self.clock, which is the run's only from on_start on",
    """
    class Mine(Node):
        def __init__(self):
            raise SystemExit(3)
    """: "Mine.__init__ (beginner.py:12) failed: SystemExit: 3; what needs a device, a file or the network belongs "
    "into on_start",
    """
    class Mine(Node):
        def __init__(self):
            self.count = int("three")
    """: "Mine.__init__ (beginner.py:12) refuses its parameters: invalid literal for int() with base 10: 'three'",
    """
    class Mine(Node):
        clock = Publisher(Beat, "beat")
    """: "Mine.clock (beginner.py:11) takes the place of the clock that every node has from its graph; call yours "
    "otherwise, such as own_clock",
    """
    class Mine(Node):
        beat = Subscription(Beat, "beat", qos=QoS(required=False))

        @on(beat)
        def log(self, beat):
            pass
    """: "Mine.log (beginner.py:14) takes the place of the log that every node has from its graph; call yours "
    "otherwise, such as own_log",
    """
    class Thing:
        pass

    class Things(Message):
        all: list[Thing]

    class Mine(Node):
        out = Publisher(Things, "things")
    """: "a Things holds a Thing, which cannot travel; give it plain values, messages or numpy arrays, or make it one: "
    "`class Thing(Message)`",
}


@pytest.fixture
def _beginner() -> Iterator[None]:
    yield
    sys.modules.pop("beginner", None)


@pytest.mark.usefixtures("_beginner")
@pytest.mark.parametrize("code", MISTAKES)
def test_a_beginners_mistake_is_told_with_class_line_and_remedy(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "beginner.py").write_text(HEAD + textwrap.dedent(code).lstrip("\n"))
    (tmp_path / "run.toml").write_text('[nodes.mine]\nuse = "beginner:Mine"\n')
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["check", str(tmp_path / "run.toml")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"polyrhythm: {tmp_path / 'run.toml'}: [nodes.mine] {MISTAKES[code]}"), error
    assert "Traceback" not in error


@pytest.mark.usefixtures("_beginner")
@pytest.mark.parametrize(
    ("port", "remedy"),
    [
        ("Publisher(Beat)", sentence("runtime.write_publisher")),
        (
            "ServiceClient(Beat, 'add')",
            sentence("runtime.write_client"),
        ),
        (
            "GoalServer(Beat, Beat, 'go')",
            "write GoalServer(DriveTo, Progress, Arrived, 'drive'): goal, feedback, result",
        ),
    ],
)
def test_a_port_or_a_service_that_lacks_an_argument_is_told_how_it_is_written(
    port: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"from runtime import *\n\nclass Beat(Message):\n    count: int\n\nclass Mine(Node):\n    port = {port}\n"
    (tmp_path / "beginner.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=re.escape(remedy)) as told:
        load_module("beginner:Mine", "a node")
    assert "cannot be imported at beginner.py:7: TypeError: " in str(told.value)


class Typed(Node):
    """Its parameter's type is there for type checkers alone."""

    def __init__(self, where: Elsewhere | None = None, hz: float = 1.0) -> None:  # type: ignore[name-defined] # noqa: F821
        self.where, self.hz = where, hz


def test_a_parameter_whose_type_cannot_be_looked_up_is_told_and_keeps_no_other_one_away() -> None:
    assert NodeSpec("typed", Typed, {"hz": 2}).build()
    told = r"parameter 'where' of Typed: its type 'Elsewhere | None' is not known in .*; import it at the top, and not"
    with pytest.raises(ParameterError, match=told.replace("|", r"\|")):
        NodeSpec("typed", Typed, {"where": "here"}).build()


def test_who_publishes_by_the_class_is_told_to_publish_by_self() -> None:
    with pytest.raises(UserError, match=f"^{pattern('runtime.only_declares', node='Saying', port='beat')}$"):
        Saying.beat.publish(Beat(count=1))


class Saying(Node):
    beat = Publisher(Beat, "beat")


class Right(Node):
    beat = Subscription(Beat, "beat")
    other = Subscription(Beat, "other")
    more = Subscription(Beat, "more")
    most = Subscription(Beat, "most")

    @on(beat)
    def one(self, beat: Beat | None) -> None: ...

    @on(other)
    def two(self, message: Message) -> None: ...

    @on(more)
    def three(self, message) -> None: ...  # type: ignore[no-untyped-def]  # a user who writes no types

    @on(most)  # for whoever wants the envelope
    def four(self, most: Stamped[Beat]) -> None: ...


def test_what_can_be_called_with_the_message_is_right() -> None:
    problems = [told for _, told in Graph([NodeSpec("right", Right)]).problems()]
    assert all("nobody publishes it" in told for told in problems), problems


class Idle(Node):
    def __init__(self, used: int = 0, gain: float = 1.0) -> None:
        self.used = used


class Early(Node):
    async def look(self) -> None:
        """What a subclass does at once."""


class Patient(Early):
    """Waits, hands a wait to somebody else, and calls what is no wait, or none any more."""

    @every(hz=1)
    async def tick(self) -> None:
        await self.clock.sleep(0.1)
        task = asyncio.create_task(self.rest())
        await task

    @every(hz=1, blocking=True)
    def nap(self) -> None:
        self.sleep()
        self.look()

    def look(self) -> None:  # type: ignore[override]  # that is the case
        """It needs no wait."""

    def sleep(self) -> None:
        """Not the clock's."""

    async def rest(self) -> None:
        """A wait of its own."""


def test_a_wait_that_somebody_awaits_is_right() -> None:
    assert Graph([NodeSpec("patient", Patient)]).problems() == []


def test_a_parameter_that_does_nothing_is_refused_where_it_is_set() -> None:
    assert Graph([NodeSpec("idle", Idle, {"used": 3})]).problems() == []
    ((_, told),) = Graph([NodeSpec("idle", Idle, {"gain": 2.0})]).problems()
    line = Idle.__init__.__code__.co_firstlineno
    assert told == sentence("runtime.does_nothing", name="gain", node="Idle", place=f"test_class_check.py:{line}")


P = ParamSpec("P")


def noting(init: Callable[P, None]) -> Callable[P, None]:
    @functools.wraps(init)
    def noted(*args: P.args, **kwargs: P.kwargs) -> None:
        init(*args, **kwargs)

    return noted


class Noted(Node):
    @noting
    def __init__(self, used: int = 0, gain: float = 1.0) -> None:
        self.used = used


def test_a_parameter_that_a_decorated_init_reads_does_something() -> None:
    assert Graph([NodeSpec("noted", Noted, {"used": 3})]).problems() == []
    assert "'gain' of Noted does nothing" in Graph([NodeSpec("noted", Noted, {"gain": 2.0})]).problems()[0][1]


def another() -> type[Message]:
    class Beat(Message):
        """Of the same name."""

    Beat.__module__, Beat.__qualname__ = "my_robot", "Beat"
    return Beat


class Talks(Node):
    beat: Publisher[Message] = Publisher(another(), "beat")


class Hears(Node):
    beat = Subscription(Beat, "beat")


def test_two_classes_of_one_name_on_one_topic_are_told_with_their_modules() -> None:
    problems = [told for _, told in Graph([NodeSpec("talks", Talks), NodeSpec("hears", Hears)]).problems()]
    assert problems == [
        sentence(
            "runtime.two_types",
            topic="beat",
            node="hears",
            own="nodes.hello.Beat",
            other="talks",
            others="my_robot.Beat",
        )
    ]


@pytest.mark.processes
@pytest.mark.parametrize("arguments", [["run", "hello", "--for", "1"], ["check", "laptop"], ["bag", "info", "x.mcap"]])
def test_a_users_own_folder_nodes_that_hides_ours_is_named(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "__init__.py").touch()
    done = subprocess.run(
        [sys.executable, "-m", "runtime", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    hidden = f"{tmp_path / 'nodes'} hides Polyrhythm's own 'nodes': rename it, or start from another folder"
    assert hidden in done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_while_a_library_is_imported_is_no_fault_of_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_of_it = "raise ImportError('initialization failed') from KeyboardInterrupt()"  # as libraries in C++ do
    (tmp_path / "slow_library.py").write_text(made_of_it)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        load_module("slow_library:Node", "class")
