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
from runtime import Graph, Message, Node, NodeSpec, Publisher, QoS, Stamped, Subscription, UserError, every, on
from runtime.cli import main
from runtime.errors import ParameterError
from runtime.launch.tables.nodes_table import load_module
from tests.support.sentences import pattern, sentence

HEAD = """
from runtime import Message, Node, Publisher, QoS, Subscription, every, on

class Beat(Message):
    count: int

class Foo(Message):
    count: int

"""


def not_imported(line: int, why: str) -> str:
    return sentence("runtime.cannot_be_imported", place=f"beginner.py:{line}", why=why)


MISTAKES = {
    """
    class Mine(Node):
        def __init__(self):
            super().__init__("mine")
    """: sentence("runtime.base_takes_nothing", place="Mine.__init__ (beginner.py:12)"),
    """
    class Mine(Node):
        @property
        @every(hz=1)
        def tick(self): ...
    """: sentence("runtime.no_property", place="Mine.tick (beginner.py:11)"),
    """
    def loud(method):
        return lambda self: method(self)

    class Mine(Node):
        @loud
        @every(hz=1)
        def tick(self): ...
    """: sentence("runtime.mark_is_hidden", place="Mine.tick (beginner.py:16)"),
    """
    class Mine(Node):
        outs = [Publisher(Beat, "one"), Publisher(Beat, "two")]
    """: sentence("runtime.list_of_ports", place="Mine.outs (beginner.py:11)"),
    """
    class Mine(Node):
        beat = Publisher(Beat, "beat"),
    """: sentence("runtime.tuple_of_ports", place="Mine.beat (beginner.py:11)"),
    """
    class Mine(Node):
        beat: Subscription[Beat]
    """: sentence("runtime.type_alone", place="Mine.beat (beginner.py:11)"),
    """
    class Mine(Node):
        def on_start(self): yield
    """: sentence("runtime.yields", place="Mine.on_start (beginner.py:11)"),
    """
    class Mine(Node):
        @every(hz=1)
        def tick(self):
            if self.name:
                self.clock.sleep(0.1)
    """: sentence("runtime.sleeps_in_vain", place="Mine.tick (beginner.py:14)", method="tick"),
    """
    class Mine(Node):
        @every(hz=1)
        async def tick(self):
            self.rest()

        async def rest(self):
            await self.clock.sleep(0.1)
    """: sentence("runtime.waits_in_vain", place="Mine.tick (beginner.py:13)", method="rest"),
    """
    class Mine(Node):
        @every(hz=1)
        def tick(self):
            return Beat(count=1)
    """: sentence("runtime.returns_a_message", place="Mine.tick (beginner.py:13)", message="Beat"),
    """
    class Mine(Node):
        def on_stop(self, reason): ...
    """: sentence("runtime.nothing_but_self", place="Mine.on_stop (beginner.py:11)"),
    """
    class Twist(Message):
        speed = 0.0

    class Mine(Node):
        twist = Publisher(Twist, "twist")
    """: sentence("runtime.no_field", place="Twist.speed (beginner.py:11)"),
    """
    from abc import ABC, abstractmethod

    class Mine(Node, ABC):
        @abstractmethod
        def go(self): ...
    """: sentence("runtime.is_abstract", node="Mine", method="go"),
    """
    class Other(Node):
        beat = Subscription(Beat, "beat")

    class Mine(Node):
        @on(Other.beat)
        def heard(self, beat: Beat): ...
    """: f"Mine.heard (beginner.py:14): {sentence('runtime.no_subscription')}",
    """
    class Mine(Node):
        beat = Publisher(Beat, "beat", qos=QoS(reliability="best_effort"))
    """: not_imported(11, sentence("runtime.unknown_qos", name="reliability")),
    """
    class Mine(Node):
        def __init__(self):
            self.name = "mine"
    """: sentence("runtime.name_is_the_graphs", place="Mine.__init__ (beginner.py:12)", name="name"),
    """
    class Mine(Node):
        beat = Subscription(Beat, "beat", qos=QoS(required=False))
        foo = Subscription(Foo, "foo", qos=QoS(required=False))

        @on(beat)
        @on(foo)
        def heard(self, message):
            pass
    """: not_imported(14, sentence("runtime.two_marks", place="Mine.heard (line 14)")),
    """
    class Mine(Node):
        @every(hz=1)
        def tick():
            pass
    """: sentence(
        "runtime.handler_takes",
        place="Mine.tick (beginner.py:11)",
        taken="()",
        expected="no message",
        remedy="def tick(self)",
    ),
    """
    class Mine(Node):
        @every(hz=1)
        def tick(self, beat: Beat):
            pass
    """: sentence(
        "runtime.handler_takes",
        place="Mine.tick (beginner.py:11)",
        taken="(self, beat: beginner.Beat)",
        expected="no message",
        remedy="def tick(self)",
    ),
    """
    class Mine(Node):
        beat = Subscription(Beat, "beat", qos=QoS(required=False))

        @on(beat)
        def heard(beat):
            pass
    """: sentence(
        "runtime.handler_takes",
        place="Mine.heard (beginner.py:13)",
        taken="(beat)",
        expected="the Beat of port 'beat'",
        remedy="def heard(self, beat: Beat)",
    ),
    """
    class Mine(Node):
        beat = Subscription(Beat, "beat", qos=QoS(required=False))

        @on(beat)
        def heard(self):
            pass
    """: sentence(
        "runtime.handler_takes",
        place="Mine.heard (beginner.py:13)",
        taken="(self)",
        expected="the Beat of port 'beat'",
        remedy="def heard(self, beat: Beat)",
    ),
    """
    class Mine(Node):
        beat = Subscription(Beat, "beat", qos=QoS(required=False))

        @on(beat)
        def heard(self, foo: Foo):
            pass
    """: sentence(
        "runtime.handler_annotates",
        place="Mine.heard (beginner.py:13)",
        name="foo",
        type="Foo",
        expected="the Beat of port 'beat'",
        remedy="def heard(self, beat: Beat)",
    ),
    """
    class Mine(Node):
        def __init__(self):
            self.out = Publisher(Beat, "beat")
    """: sentence("runtime.port_of_the_object", place="Mine.__init__ (beginner.py:12)"),
    """
    class Mine(Node):
        out = Publisher(dict, "beat")
    """: not_imported(11, sentence("runtime.no_message_type")),
    """
    class Mine(Node):
        def __init__(self):
            self.file = open("/no/such/file")
    """: sentence(
        "runtime.init_failed",
        place="Mine.__init__ (beginner.py:12)",
        why="FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'",
    ),
    """
    class Mine(Node):
        def __init__(self):
            self.sum = None + 1
    """: sentence(
        "runtime.init_failed",
        place="Mine.__init__ (beginner.py:12)",
        why="TypeError: unsupported operand type(s) for +: 'NoneType' and 'int'",
    ),
    """
    class Mine(Node):
        beat = Subscription(Beat, "beat", qos=QoS(required=False))

        @on
        def heard(self, beat):
            pass
    """: not_imported(13, sentence("runtime.on_takes_a_subscription") + "<function Mine.heard at "),
    """
    class Mine(Node):
        @every
        def tick(self):
            pass
    """: not_imported(11, sentence("runtime.every_takes_a_name")),
    """
    class Mine(Node):
        @every(seconds=2)
        def tick(self):
            pass
    """: not_imported(11, sentence("runtime.every_knows_no_seconds")),
    """
    class Mine(Node):
        out = Publisher(Beat, "beat", qos=10)
    """: not_imported(11, sentence("runtime.qos_is_no_number")),
    """
    class Mine(Node):
        out = Publisher(Beat)
    """: not_imported(11, sentence("runtime.argument_is_missing", name="topic") + sentence("runtime.write_publisher")),
    """
    class Mine:
        out = Publisher(Beat, "beat")
    """: sentence("runtime.is_no_node", use="beginner:Mine", node="Mine"),
    """
    class Mine(Node):
        @staticmethod
        @every(hz=5)
        def tick():
            pass
    """: sentence("runtime.takes_self", place="Mine.tick (beginner.py:11)"),
    """
    class Mine(Node):
        @every(hz=5)
        def tick(self):
            yield 3
    """: sentence("runtime.yields", place="Mine.tick (beginner.py:11)"),
    """
    class Base(Node):
        @every(hz=5)
        def tick(self):
            pass

    class Mine(Base):
        def tick(self):
            pass
    """: sentence("runtime.mark_is_missing", place="Mine.tick (beginner.py:16)", handler="Base.tick"),
    """
    class Mine(Node):
        beat = Subscription(Beat, "beat", qos=QoS(required=False))
        foo = Subscription(Foo, "foo", qos=QoS(required=False))

        @on(beat, foo)
        def heard(self, beat, foo):
            pass
    """: sentence(
        "runtime.handler_takes",
        place="Mine.heard (beginner.py:14)",
        taken="(self, beat, foo)",
        expected="one message at a time, of beat, foo",
        remedy="def heard(self, message: Beat | Foo)",
    ),
    """
    class Mine(Node):
        out = Publisher(Beat, "beat")

        def __init__(self):
            self.out.publish(Beat(count=1))
    """: sentence("runtime.init_publishes", place="Mine.__init__ (beginner.py:14)"),
    """
    class Mine(Node):
        out = Publisher(Beat, "beat")

        def __init__(self):
            self.out = Beat(count=1)
    """: sentence("runtime.name_is_a_port", place="Mine.__init__ (beginner.py:14)", name="out", topic="beat"),
    """
    class Mine(Node):
        def __init__(self):
            self.start_s = self.clock.now_s
    """: sentence("runtime.init_uses_the_clock", place="Mine.__init__ (beginner.py:11)"),
    """
    class Mine(Node):
        def __init__(self):
            raise SystemExit(3)
    """: sentence("runtime.init_failed", place="Mine.__init__ (beginner.py:12)", why="SystemExit: 3"),
    """
    class Mine(Node):
        def __init__(self):
            self.count = int("three")
    """: sentence(
        "runtime.refuses_parameters",
        node="Mine.__init__ (beginner.py:12)",
        why="invalid literal for int() with base 10: 'three'",
    ),
    """
    class Mine(Node):
        clock = Publisher(Beat, "beat")
    """: sentence("runtime.place_is_the_graphs", place="Mine.clock (beginner.py:11)", name="clock"),
    """
    class Mine(Node):
        beat = Subscription(Beat, "beat", qos=QoS(required=False))

        @on(beat)
        def log(self, beat):
            pass
    """: sentence("runtime.place_is_the_graphs", place="Mine.log (beginner.py:14)", name="log"),
    """
    class Thing:
        pass

    class Things(Message):
        all: list[Thing]

    class Mine(Node):
        out = Publisher(Things, "things")
    """: sentence("runtime.cannot_travel", message="Things", type="Thing"),
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
            sentence("runtime.write_goal_server"),
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
    told = pattern("runtime.type_is_not_known", name="where", node="Typed", type=r"Elsewhere \| None", module=".*")
    with pytest.raises(ParameterError, match=told):
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


class Astray(Node):
    """Asks itself for what others have."""

    beat = Publisher(Beat, "beat")
    heard = Subscription(Beat, "heard", qos=QoS(required=False))

    def __init__(self) -> None:
        self.begun_ns = 0
        self.sleep, self.count = 0.5, 1

    @every(hz=1)
    def tick(self) -> None:
        self.now_ns()  # type: ignore[attr-defined]  # as are all these, which is the case
        self.info("a")  # type: ignore[attr-defined]
        self.trigger  # type: ignore[attr-defined]  # noqa: B018
        self.clock.now()  # type: ignore[attr-defined]
        self.clock.now_ns - self.begun_ns  # type: ignore[operator]
        f"{self.clock.now_s}"
        self.beat.latest()  # type: ignore[attr-defined]
        self.heard.publish(Beat(count=1))  # type: ignore[attr-defined]
        self.log.inf("a")  # type: ignore[attr-defined]

    @every(hz=2)
    def right(self) -> None:
        self.sleep += self.clock.now_s() + self.count + self.random.random()
        since = self.clock.now_ns
        self.log.info("%d", since() - self.begun_ns)


def test_what_is_asked_of_the_wrong_object_is_told_with_line_and_remedy() -> None:
    found = Graph([NodeSpec("astray", Astray)]).problems()
    line = Astray.tick.__code__.co_firstlineno
    told = {said.partition(" uses ")[2] or said: said for _, said in found}
    remedies = {
        2: ("self.now_ns", "write `self.clock.now_ns(...)`"),
        3: ("self.info", "write `self.log.info(...)`"),
        4: ("self.trigger", "write `self.context.trigger`"),
        5: ("self.clock.now", "a Clock has no 'now'; did you mean 'now_s'? "),
        6: ("self.clock.now_ns", sentence("runtime.is_a_method", said="self.clock.now_ns")),
        7: ("self.clock.now_s", sentence("runtime.is_a_method", said="self.clock.now_s")),
        8: ("self.beat.latest", "a Publisher has no 'latest'; "),
        9: ("self.heard.publish", "a Subscription has no 'publish'; "),
        10: ("self.log.inf", "a Logger has no 'inf'; did you mean 'info'? "),
    }
    for number, (said, remedy) in remedies.items():
        place = f"Astray.tick (test_class_check.py:{line + number})"
        expected = sentence("runtime.is_astray", place=place, said=said, remedy=remedy)
        assert any(one.startswith(expected) for one in told.values()), expected
    assert len(found) == len(remedies)


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
    hidden = sentence("runtime.hides_our_nodes", folder=tmp_path / "nodes")
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
