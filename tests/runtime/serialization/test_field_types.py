"""Claims about the fields of messages: what is published has the types that it declares, in both clocks, both ways."""

from __future__ import annotations

import enum
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from runtime import Message, Node, Publisher, Simulation, Subscription, every, on, run
from runtime.errors import CodecError, MessageTypeError, PolyrhythmError
from runtime.serialization.field_types import as_received, fits_of
from tests.support.message_strategies import MESSAGES, messages
from tests.support.sentences import sentence


class Colour(enum.Enum):
    RED = "red"


class Inner(Message):
    number: int
    inner: Inner | None = None


class Wide(Message):
    """One field of each kind."""

    number: int = 1
    share: float = 0.5
    text: str = "a"
    data: bytes = b""
    is_on: bool = True
    maybe: int | None = None
    either: int | str = 1
    joints: tuple[float, ...] = (0.0, 1.0)
    pair: tuple[int, str] = (1, "a")
    names: list[str] = msgspec.field(default_factory=list)
    tags: frozenset[str] = frozenset()
    table: dict[str, list[int]] = msgspec.field(default_factory=dict)
    seen: Mapping[str, int] = msgspec.field(default_factory=dict)
    inner: Inner = Inner(number=1)
    many: tuple[Inner, ...] = ()
    colour: Colour = Colour.RED
    word: Literal["a", "b"] = "a"
    limited: Annotated[int, msgspec.Meta(ge=0, le=9)] = 0
    short: Annotated[str, msgspec.Meta(max_length=3)] = ""
    code: Annotated[str, msgspec.Meta(pattern="^x")] = "x"
    pixels: NDArray[np.uint8] | None = None


class Wider(Wide):
    """A subclass with a field of its own."""

    more: int = 0


A_TEXT = Inner(number="1")  # type: ignore[arg-type]  # what all this is about
NO_NUMBER = Inner(number=None)  # type: ignore[arg-type]
WRONG: list[tuple[str, Any, str]] = [
    ("number", "1", "its field number is '1': expected int, got str"),
    ("number", True, "its field number is True: expected int, got bool"),
    ("number", 1 << 70, "its field number is 1180591620717411303424: "),
    ("share", np.float32(0.5), "its field share is np.float32(0.5): expected float, got numpy.float32;"),
    ("share", np.float64(0.5), "its field share is np.float64(0.5): expected float, got numpy.float64;"),
    ("number", np.int64(1), "its field number is np.int64(1): expected int, got numpy.int64; write int(...)"),
    ("is_on", np.bool_(True), "its field is_on is np.True_: expected bool, got numpy.bool; write bool(...)"),
    ("text", 1, "its field text is 1: expected str, got int"),
    ("text", "\ud800", "its field text is '\\ud800': "),
    ("data", "a", "its field data is 'a': "),
    ("maybe", "a", "its field maybe is 'a': expected int | null, got str"),
    ("either", 1.5, "its field either is 1.5: expected int | str, got float"),
    ("joints", (0.0, "1"), "its field joints[1] is '1': expected float, got str"),
    ("joints", 1.0, "its field joints is 1.0: expected array, got float"),
    ("pair", (1,), "its field pair is (1,): expected array of length 2, got 1"),
    ("pair", (1, 2), "its field pair[1] is 2: expected str, got int"),
    ("names", [1], "its field names[0] is 1: expected str, got int"),
    ("tags", frozenset({1}), "its field tags[0] is 1: expected str, got int"),
    ("table", {"a": [1, "2"]}, "its field table['a'][1] is '2': expected int, got str"),
    ("table", {1: [1]}, "its field table[1] is 1: expected str, got int"),
    ("seen", {"a": 0.5}, "its field seen['a'] is 0.5: expected int, got float"),
    ("inner", A_TEXT, "its field inner.number is '1': expected int, got str"),
    ("inner", Inner(number=1, inner=NO_NUMBER), "its field inner.inner.number is None: expected int, got None"),
    ("many", (Inner(number=1), A_TEXT), "its field many[1].number is '1': expected int, got str"),
    ("inner", None, "its field inner is None: expected Inner, got NoneType"),
    ("colour", "blue", "its field colour is 'blue': invalid enum value 'blue'"),
    ("word", "c", "its field word is 'c': invalid enum value 'c'"),
    ("limited", 10, "its field limited is 10: expected int <= 9"),
    ("short", "long", "its field short is 'long': expected str of length <= 3"),
    ("code", "y", "its field code is 'y': expected str matching regex '^x'"),
    ("pixels", np.zeros(3), "its field pixels is an array of float64: expected an array of uint8;"),
    ("pixels", [1], "its field pixels is [1]: expected an array of uint8"),
    ("pixels", np.array(["a"]), "its field pixels is an array of <U1: expected an array of uint8;"),
]  # fmt: skip


class Sender(Node):
    """Publishes one message, ten times a second."""

    wide = Publisher(Wider, "wide")

    def __init__(self, message: Any, *, is_at_once: bool = False) -> None:
        self.message = message
        self.is_at_once = is_at_once

    @every(hz=10)
    def send(self) -> None:
        if self.is_at_once:
            self.wide.publish_all([self.message, self.message])
        else:
            self.wide.publish(self.message)


class Hearer(Node):
    """Keeps what it gets."""

    wide = Subscription(Wider, "wide")

    def __init__(self) -> None:
        self.heard: list[Wider] = []

    @on(wide)
    def hear(self, wide: Wider) -> None:
        self.heard.append(wide)


def line_of(method: Any, number: int) -> str:
    code = method.__code__
    return f"Sender.send ({Path(code.co_filename).name}:{code.co_firstlineno + number})"


@pytest.mark.parametrize(("field", "value", "told"), WRONG)
def test_a_wrong_field_is_refused_with_the_senders_line_and_nobody_gets_it(field: str, value: Any, told: str) -> None:
    hearer = Hearer()
    simulation = Simulation(Sender(Wider(**{field: value})), hearer)
    with pytest.raises(MessageTypeError) as refused:
        simulation.run(1)
    simulation.close()
    expected = sentence("runtime.does_not_fit", line=line_of(Sender.send, 5), topic="wide", message="Wider", why=told)
    assert str(refused.value).startswith(expected)
    assert hearer.heard == []


def test_of_messages_published_together_a_wrong_one_keeps_all_back() -> None:
    hearer = Hearer()
    simulation = Simulation(Sender(Wider(number="1"), is_at_once=True), hearer)  # type: ignore[arg-type]
    with pytest.raises(MessageTypeError, match="number"):
        simulation.run(1)
    simulation.close()
    assert hearer.heard == []


def test_a_message_from_outside_of_a_simulation_is_checked_as_well() -> None:
    simulation = Simulation(Hearer())
    with pytest.raises(MessageTypeError, match=r"test_field_types\.py"):
        simulation.publish("wide", Wider(number="1"))  # type: ignore[arg-type]
    simulation.close()


def test_in_real_time_the_senders_line_is_named_once_and_the_receiver_gets_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hearer = Hearer()
    with caplog.at_level(logging.ERROR), pytest.raises(PolyrhythmError, match="its field number is '1'"):
        run(Sender(Wider(number="1")), hearer, seconds=0.15)  # type: ignore[arg-type]
    assert next(line for line in caplog.messages if line_of(Sender.send, 5) in line).startswith("handler send failed")
    assert all(record.exc_info is None for record in caplog.records)
    assert hearer.heard == []


def test_within_a_process_a_handler_gets_what_it_would_get_across_processes() -> None:
    given_loosely: dict[str, Any] = {
        "joints": [0.0, 1.0], "names": ("a",), "colour": "red", "inner": {"number": 2}, "tags": ["a"]
    }  # fmt: skip
    hearer = Hearer()
    simulation = Simulation(Sender(Wider(**given_loosely)), hearer)
    simulation.run(0.05)
    simulation.close()
    assert hearer.heard == [
        Wider(joints=(0.0, 1.0), names=["a"], colour=Colour.RED, inner=Inner(number=2), tags=frozenset("a"))
    ]


@given(st.sampled_from(MESSAGES).flatmap(messages))
def test_every_right_message_of_ours_fits_at_once(message: Message) -> None:
    assert fits_of(type(message))(message)
    assert type(as_received(message)) is type(message)


_ARRAYS = [np.zeros(2, np.uint8), np.zeros(2)]
_LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(1 << 65), 1 << 65), st.floats(), st.text(max_size=4),
    st.binary(max_size=2), st.sampled_from([*Colour, np.float32(1), np.float64(1), *_ARRAYS, object(), A_TEXT]),
)  # fmt: skip
_ANYTHING: st.SearchStrategy[Any] = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2), inner, max_size=2),
        inner.map(lambda value: Inner(number=value)),
    ),
    max_leaves=6,
)


@given(st.sampled_from(Wide.__struct_fields__), _ANYTHING)
def test_whatever_the_quick_check_lets_pass_a_receiver_accepts_as_it_is(field: str, value: Any) -> None:
    wide = Wide(**{field: value})
    if not fits_of(Wide)(wide):
        return
    received = as_received(wide)
    there = getattr(received, field)
    assert type(there) is type(value) or (field == "share" and type(value) is int)
    assert np.array_equal(there, value) if field == "pixels" else repr(there) == repr(value) or there == value


@given(st.sampled_from(Wide.__struct_fields__), _ANYTHING)
def test_every_refusal_names_the_field(field: str, value: Any) -> None:
    try:
        as_received(Wide(**{field: value}))
        told = ""
    except CodecError as problem:
        told = str(problem)
    assert told == "" or told.startswith(f"its field {field}")
