"""Messages are frozen values created with keywords, whose kind and origin are part of their type."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar

import numpy as np
import pytest
from typing_extensions import TypeAliasType

from nodes.msgs import Image, Interrupt, JointCommand, Subtask, Utterance
from runtime.message import Envelope, Message, Stamped, array_fields, fields_of, written_out
from runtime.serialization.arrays import declared_dtype
from runtime.serialization.codec import holds_arrays
from tests.support.sentences import pattern

Scalar = TypeVar("Scalar", bound=np.generic)
Shape = TypeAliasType("Shape", tuple[Any, ...])
Array = TypeAliasType("Array", np.ndarray[Shape, np.dtype[Scalar]], type_params=(Scalar,))
"""As numpy's NDArray is from 2.5 on."""


class Note(Message):
    text: str


def test_a_message_is_frozen() -> None:
    note = Note(text="hello")
    with pytest.raises(AttributeError, match="immutable type: 'Note'"):
        note.text = "other"  # type: ignore[misc]


def test_a_message_takes_keywords_only() -> None:
    with pytest.raises(TypeError):
        Note("hello")  # type: ignore[call-arg]


def test_messages_of_equal_fields_are_equal_and_hash_alike() -> None:
    assert Note(text="hello") == Note(text="hello")
    assert hash(Note(text="hello")) == hash(Note(text="hello"))
    assert Note(text="hello") != Note(text="other")


def test_a_message_is_an_event_unless_it_says_otherwise() -> None:
    assert Note.message_kind == "event"
    assert Note.message_origin is None


def test_a_subclass_keeps_kind_and_origin() -> None:
    class Wide(Image):
        lens: str = "wide"

    assert (Wide.message_kind, Wide.message_origin) == ("state", "image")


def test_kinds_and_origins_of_the_vocabulary() -> None:
    found = {cls.__name__: (cls.message_kind, cls.message_origin) for cls in (Image, Utterance, Subtask, JointCommand)}
    assert found == {
        "Image": ("state", "image"),
        "Utterance": ("event", "utterance"),
        "Subtask": ("event", "plan"),
        "JointCommand": ("state", None),
    }
    assert Interrupt.message_kind == "event"


def test_an_unknown_kind_is_refused_in_words() -> None:
    with pytest.raises(TypeError, match=re.escape("message Odd: kind 'stream' is unknown; known: state, event")):

        class Odd(Message, kind="stream"):
            pass


def test_an_origin_is_any_word_and_nothing_else() -> None:
    class Scan(Message, origin="lidar"):
        pass

    assert Scan.message_origin == "lidar"
    with pytest.raises(TypeError, match=f"message Odd: {pattern('runtime.origin_is_no_name', origin='A Sound')}"):

        class Odd(Message, origin="A Sound"):
            pass


def test_an_envelope_names_its_message_and_tells_its_age() -> None:
    stamped = Stamped(Note(text="hello"), Envelope("note", "writer", 7, 1_000_000_000))
    assert stamped.envelope.ident == "note:writer:7"
    assert stamped.age_s(1_250_000_000) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("named", "plain"),
    [
        (Array[np.uint8], np.ndarray[tuple[Any, ...], np.dtype[np.uint8]]),
        (Array[np.uint8] | None, np.ndarray[tuple[Any, ...], np.dtype[np.uint8]] | None),
        (dict[str, Shape], dict[str, tuple[Any, ...]]),
        (Annotated[Shape, 3], Annotated[tuple[Any, ...], 3]),
        (tuple[int, ...], tuple[int, ...]),
    ],
)
def test_the_name_of_a_type_is_written_out(named: Any, plain: Any) -> None:
    assert str(written_out(named)) == str(plain)


def test_an_array_by_the_name_of_its_type_is_an_array() -> None:
    class Seen(Message):
        rgb: Array[np.uint8]

    assert [str(field.type) for field in fields_of(Seen)] == [str(np.ndarray[tuple[Any, ...], np.dtype[np.uint8]])]
    assert (holds_arrays(Seen), array_fields(Seen), declared_dtype(Array[np.uint8])) == (True, ("rgb",), np.uint8)
