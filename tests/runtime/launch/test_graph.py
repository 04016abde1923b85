"""A graph knows which ports meet, what does not fit, and draws itself."""

from __future__ import annotations

import math
import re
from typing import Any, TypedDict, Unpack

import pytest

from runtime import GraphError, Message, Node, Publisher, QoS, Simulation, Subscription, every, on
from runtime.errors import ParameterError, UserError
from runtime.launch.checks.class_check import parameters_of
from runtime.launch.graph import Graph, NodeSpec, convert_params
from runtime.launch.tables.handler_latency import Latency
from runtime.node import FASTEST_HZ, SLOWEST_HZ, handlers_of, rate_problem
from tests.support.sentences import sentence

NEGATIVE = "gain is negative; expected 0 or more"


class Level(Message, kind="state"):
    value: int


class Word(Message):
    text: str


class Source(Node):
    level = Publisher(Level, "level")

    def __init__(self, start: int, names: list[str] | None = None, *, gain: float = 1.0) -> None:
        if gain < 0:
            raise ValueError(NEGATIVE)
        self.values = (start, names, gain)

    @every(hz=10)
    def tick(self) -> None:
        """Ticks."""


class Sink(Node):
    level = Subscription(Level, "level")

    @on(level)
    def take(self, level: Level) -> None:
        """Takes."""


class Speaker(Node):
    word = Publisher(Word, "word")


class Mistyped(Node):
    word = Subscription(Level, "word")


class Optional(Node):
    word = Subscription(Word, "word", qos=QoS(required=False))


class Picky(Node):
    def __init__(self, model: str = "") -> None:
        self.model = model

    def problems(self) -> list[str]:
        return [f"model {self.model!r} does not exist"] if self.model else []


def spec(name: str, cls: type[Node], **fields: Any) -> NodeSpec:
    if cls is Source:
        fields.setdefault("params", {"start": 1})
    return NodeSpec(name, cls, **fields)


def problems(*specs: NodeSpec) -> list[str]:
    return [f"{node}: {told}" for node, told in Graph(specs).problems()]


def test_a_graph_that_fits_has_no_problems() -> None:
    assert problems(spec("source", Source), spec("sink", Sink), spec("speaker", Speaker)) == []


def test_a_node_that_is_made_already_is_asked_what_it_lacks_as_well() -> None:
    made = Picky("lost.onnx")
    assert problems(NodeSpec("picky", Picky, instance=made)) == ["picky: model 'lost.onnx' does not exist"]
    with pytest.raises(GraphError, match="does not exist"):
        Simulation(made)


def test_remapped_ports_meet_on_the_new_topic() -> None:
    graph = Graph([spec("a", Source, remap={"level": "left/level"}), spec("b", Sink, remap={"level": "left/level"})])
    assert graph.problems() == []
    assert [(end.node) for end in graph.topics["left/level"].publishers + graph.topics["left/level"].subscribers] == [
        "a",
        "b",
    ]


@pytest.mark.parametrize(
    ("specs", "told"),
    [
        (
            [spec("speaker", Speaker), spec("ear", Mistyped)],
            "ear: "
            + sentence("runtime.two_types", topic="word", node="ear", own="Level", other="speaker", others="Word"),
        ),
        (
            [spec("one", Source), spec("other", Source)],
            f"other: topic 'level': one, other all publish it, but {sentence('runtime.two_publishers')}",
        ),
        (
            [spec("sink", Sink), spec("speaker", Speaker)],
            f"sink: topic {sentence('runtime.nobody_publishes', name='level', node='sink')}; published topics: word",
        ),
        (
            [spec("sink", Sink)],
            f"sink: topic {sentence('runtime.nobody_publishes', name='level', node='sink')}; published topics: (none)",
        ),
        (
            [spec("source", Source, hz={"tock": 3})],
            f"source: hz {sentence('runtime.no_timer', name='tock', node='Source', known='tick')}",
        ),
        (
            [spec("source", Source, hz={"tick": 0})],
            "source: hz of 'tick' is 0; expected 0.00001 to 10000 times a second",
        ),
        (
            [spec("source", Source, latency={"tock": Latency()})],
            f"source: {sentence('runtime.no_latency_handler', name='tock', node='Source', known='tick')}",
        ),
        (
            [spec("source", Source, remap={"levle": "x"})],
            "source: remap names 'levle', no topic of Source; known: level",
        ),
        (
            [spec("source", Source, remap={"level": "Left Level"})],
            f"source: remap: topic 'Left Level' {sentence('runtime.no_topic_name')}, like 'head/image'",
        ),
        (
            [spec("picky", Picky, params={"model": "cup.onnx"})],
            "picky: model 'cup.onnx' does not exist",
        ),
    ],
)
def test_what_does_not_fit_is_told_in_words(specs: list[NodeSpec], told: str) -> None:
    assert problems(*specs) == [told]


def test_events_may_have_many_publishers_and_optional_ports_none() -> None:
    assert problems(spec("one", Speaker), spec("other", Speaker), spec("ear", Optional)) == []
    assert problems(spec("ear", Optional)) == []


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({}, sentence("runtime.parameter_is_missing", name="start", node="Source")),
        ({"start": 1, "gian": 2}, "unknown parameter 'gian' of Source; did you mean 'gain'? known: gain, names, start"),
        ({"start": "one"}, f"parameter 'start' of Source is 'one'; {sentence('runtime.whole_number')}"),
        ({"start": True}, f"parameter 'start' of Source is True; {sentence('runtime.whole_number')}"),
        ({"start": 1, "names": [2]}, "parameter 'names' of Source is [2]: Expected `str`, got `int` - at `$[0]`"),
        (
            {"start": 1, "gain": -1},
            sentence("runtime.refuses_parameters", node="Source", why=NEGATIVE),
        ),
    ],
)
def test_parameters_that_do_not_fit_are_told_in_words(params: dict[str, Any], told: str) -> None:
    with pytest.raises(ParameterError) as caught:
        NodeSpec("source", Source, params=params).build()
    assert str(caught.value) == told
    assert problems(NodeSpec("source", Source, params=params)) == [f"source: {told}"]


def test_a_whole_number_is_a_float_and_a_list_may_be_none() -> None:
    assert convert_params(Source, {"start": 1, "gain": 2}) == {"start": 1, "gain": 2.0}


class Loudness(TypedDict, total=False):
    gain: float


class Louder(Source):
    """Hands on to its base class what that is set by, and says the rest itself."""

    def __init__(self, volume: int, **loudness: Unpack[Loudness]) -> None:
        super().__init__(volume, **loudness)


def test_parameters_handed_on_to_the_base_class_are_known_by_name_and_type() -> None:
    assert convert_params(Louder, {"volume": 1, "gain": 2}) == {"volume": 1, "gain": 2.0}
    assert parameters_of(Louder)["gain"].default == parameters_of(Source)["gain"].default
    assert problems(NodeSpec("source", Louder, params={"volume": 1, "start": 1})) == [
        "source: unknown parameter 'start' of Louder; known: gain, volume"
    ]
    assert problems(NodeSpec("source", Louder, params={"volume": 1, "gain": "loud"})) == [
        "source: parameter 'gain' of Louder is 'loud'; expected a number"
    ]


def test_check_raises_the_first_problem() -> None:
    with pytest.raises(GraphError, match="nobody publishes it for sink"):
        Graph([spec("sink", Sink)]).check()


def test_a_graph_draws_itself_as_text_and_as_mermaid() -> None:
    graph = Graph([spec("source", Source), spec("sink", Sink), spec("speaker", Speaker)])
    assert graph.draw() == ("level  [Level, state]\n    source -> sink\nword  [Word, event]\n    speaker -> (nobody)")
    assert graph.draw_mermaid() == "flowchart LR\n    source -- level --> sink"


def test_a_port_has_one_handler() -> None:
    class Twice(Sink):
        @on(Sink.level)
        def take_too(self, level: Level) -> None:
            """Takes what the other one should."""

    with pytest.raises(UserError) as caught:
        handlers_of(Twice)
    assert str(caught.value) == (
        sentence("runtime.has_a_handler", node="Twice", method="take_too", port="level", other="take")
    )


def test_a_subclass_may_replace_a_handler_or_take_it_away() -> None:
    class Other(Sink):
        @on(Sink.level)
        def take(self, level: Level) -> None:
            """Takes otherwise."""

    class Silent(Sink):
        take = None  # type: ignore[assignment]

    assert [handler.name for handler in handlers_of(Other)] == ["take"]
    assert handlers_of(Silent) == []


def test_an_async_handler_is_not_blocking_and_a_foreign_port_is_refused() -> None:
    class Both(Node):
        @every(hz=1, blocking=True)
        async def tick(self) -> None:
            """Cannot be."""

    class Foreign(Node):
        @on(Sink.level)
        def take(self, level: Level) -> None:
            """Cannot be."""

    class Real(Node):
        realtime = True

        @every(hz=1)
        async def tick(self) -> None:
            """Cannot be."""

    found = []
    for cls in (Both, Foreign, Real):
        with pytest.raises(UserError) as caught:
            handlers_of(cls)
        found.append(re.sub(r"\d+", "N", str(caught.value)))
    assert found == [
        f"Both.tick (test_graph.py:N): {sentence('runtime.async_and_blocking')}",
        f"Foreign.take (test_graph.py:N): {sentence('runtime.no_subscription')}",
        f"Real.tick (test_graph.py:N): {sentence('runtime.realtime_and_async')}",
    ]


@pytest.mark.parametrize("hz", [0, -1, math.nan, math.inf, -math.inf, 1e9, 1e300, 1e-300, 10**400, True, "5", None])
def test_a_rate_that_no_timer_can_keep_is_refused(hz: Any) -> None:
    with pytest.raises(UserError) as caught:
        every(hz=hz)
    assert str(caught.value) == f"every(hz={hz!r}): expected 0.00001 to 10000 times a second"
    assert rate_problem(hz)


@pytest.mark.parametrize("hz", [SLOWEST_HZ, 1 / 86_400, 1, 50.0, FASTEST_HZ])
def test_once_a_day_and_ten_thousand_times_a_second_are_rates(hz: float) -> None:
    every(hz=hz)
    assert rate_problem(hz) == ""


def test_old_names_of_methods_and_parameters_are_told_with_the_new_ones() -> None:
    class Old(Picky):
        @classmethod
        def check_parameters(cls, model: str = "") -> list[str]:
            return []

        @classmethod
        def check_seats(cls, seats: dict[str, tuple[str, ...]], model: str = "") -> list[str]:
            return []

    class Facts(Picky):
        is_ears = True
        lifts_stops = True
        robot_parameter = "robot"

        @classmethod
        def robot_facts(cls, robot: str) -> dict[str, object]:
            return {}

    class Page(Node):
        def __init__(self, address: str = "127.0.0.1") -> None:
            self.address = address

    assert problems(spec("old", Old)) == [
        f"old: Old.check_parameters {sentence('runtime.asked_of_the_built', new='problems(self)')}",
        f"old: Old.check_seats {sentence('runtime.asked_of_the_built', new='seat_problems(self, seats)')}",
    ]
    assert [told.partition(" is now ")[0] for told in problems(spec("old", Facts))] == [
        f"old: Facts.{member}" for member in ("is_ears", "lifts_stops", "robot_facts", "robot_parameter")
    ]
    Facts.run_facts = Facts.robot_facts  # type: ignore[attr-defined]  # as ForRobot has it
    assert "robot_parameter" not in str(problems(spec("new", Facts)))
    with pytest.raises(ParameterError, match="parameter 'host' of Page is now 'address'"):
        convert_params(Page, {"host": "0.0.0.0"})
    with pytest.raises(ParameterError, match="unknown parameter 'key_file' of Page; known: address"):
        convert_params(Page, {"key_file": "key.pem"})
