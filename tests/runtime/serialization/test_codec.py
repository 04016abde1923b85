"""Frames are the message they came from, or a CodecError; never anything else."""

from __future__ import annotations

import random
import re
import types
from typing import Any

import msgpack
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.msgs import ActionChunk, Image, RobotState, SeenObject, Utterance
from runtime.errors import CodecError
from runtime.message import Envelope, Message, Stamped
from runtime.serialization.codec import (
    MAX_ARRAY_BYTES,
    MAX_ARRAYS,
    MAX_DOCUMENT_BYTES,
    Frame,
    decode,
    decode_envelope,
    encode,
    fingerprint,
)
from tests.support.message_strategies import MESSAGES, any_message, envelopes, plain
from tests.support.sentences import pattern, sentence

ENVELOPE = Envelope(
    "head/image",
    "camera",
    3,
    1_000,
    origins={"image": 900},
    epochs={"planner": 1, "vlm": 2, "policy": 3},
    cause="heard:user:1",
)


def image() -> Image:
    return Image(
        camera="head",
        captured_ns=900,
        rgb=np.arange(24, dtype=np.uint8).reshape(2, 4, 3),
        depth_m=np.linspace(0.5, 1, 8, dtype=np.float32).reshape(2, 4),
    )


def wire(envelope: Envelope, message: Message) -> list[bytes]:
    """The frames as they arrive: bytes."""
    return [bytes(frame) for frame in encode(envelope, message)]


def as_message(frames: list[Any], message: type[Message]) -> Stamped[Message] | None:
    """Decode; None for a CodecError. Whatever else is raised fails the test."""
    try:
        return decode(frames, message)
    except CodecError:
        return None


@settings(max_examples=300, deadline=None)
@given(envelope=envelopes, message=any_message)
def test_a_message_comes_back_as_it_was_sent(envelope: Envelope, message: Message) -> None:
    found = decode(wire(envelope, message), type(message))
    assert found.envelope == envelope
    assert plain(found.message) == plain(message)


@settings(max_examples=300, deadline=None)
@given(frames=st.lists(st.binary(max_size=60), max_size=5), message=st.sampled_from(MESSAGES))
def test_random_bytes_are_no_message(frames: list[bytes], message: type[Message]) -> None:
    with pytest.raises(CodecError):
        decode(frames, message)


@settings(max_examples=200, deadline=None)
@given(envelope=envelopes, message=any_message, share=st.floats(0, 1, exclude_max=True))
def test_a_truncated_document_is_no_message(envelope: Envelope, message: Message, share: float) -> None:
    topic, document, *arrays = wire(envelope, message)
    with pytest.raises(CodecError):
        decode([topic, document[: int(len(document) * share)], *arrays], type(message))


def test_a_truncated_array_is_no_message() -> None:
    topic, document, rgb, depth = wire(ENVELOPE, image())
    for frames in ([topic, document, rgb[:-1], depth], [topic, document, rgb], [topic, document]):
        with pytest.raises(CodecError, match=pattern("runtime.array_does_not_fit")):
            decode(frames, Image)


@settings(max_examples=500, deadline=None)
@given(message=any_message, seed=st.integers(0, 2**32))
def test_flipped_bits_give_a_message_of_the_type_or_a_codec_error(message: Message, seed: int) -> None:
    frames = wire(ENVELOPE, message)
    generator = random.Random(seed)
    for _ in range(generator.randint(1, 3)):
        number = generator.randrange(len(frames))
        if frames[number]:
            broken = bytearray(frames[number])
            broken[generator.randrange(len(broken))] ^= 1 << generator.randrange(8)
            frames[number] = bytes(broken)
    found = as_message(frames, type(message))
    assert found is None or type(found.message) is type(message)


def forged(reference: object, buffers: list[bytes]) -> list[Frame]:
    """An Image whose `rgb` is this reference to these buffers."""
    payload = {"camera": "head", "captured_ns": 900, "rgb": reference, "depth_m": None, "focal_px": 0.0}
    envelope = msgspec.to_builtins(ENVELOPE)
    document: bytes = msgpack.packb([fingerprint(Image), envelope, payload])
    return [b"head/image", document, *buffers]


@pytest.mark.parametrize(
    "reference",
    [
        [1, "|u1", [2, 2]],  # no such buffer
        [-1, "|u1", [2, 2]],
        [True, "|u1", [9]],
        [0, "|u1", [2**40, 2**40]],
        [0, "|u1", [-1]],
        [0, "|u1", [2, 3]],  # longer than the buffer
        [0, "|u1", [1] * 70],
        [0, "|u1", ["4"]],
        [0, "|u1", 4],
        [0, "|u1", [2.0, 2.0]],
        [0, "|u1", None],
        [0, "|O", [1]],
        [0, "<f8", [1]],  # another type than the declared one
        [0, None, [4]],
        [0, 7, [4]],
        [0, "(1,2", [4]],
        [0, "u1,u1", [2]],
        [0, "|V4", [1]],
        [0, "|a4", [1]],
        [0, "|u99", [4]],
        [0, ["u1"], [4]],
        [0.0, "|u1", [4]],
        ["0", "|u1", [4]],
        [None, None, None],
        [0, "|u1"],
        [],
        {},
        "",
        0,
        None,
    ],
)
def test_a_forged_array_is_no_message(reference: object) -> None:
    with pytest.raises(CodecError):
        decode(forged(reference, [b"1234"]), Image)


def test_a_forged_reference_that_fits_is_a_message() -> None:
    assert decode(forged([0, "|u1", [2, 2]], [b"1234"]), Image).message.rgb.tolist() == [[49, 50], [51, 52]]


@pytest.mark.parametrize("head", [b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff"])
def test_a_forged_length_costs_no_memory(head: bytes) -> None:
    document = b"\x93" + msgspec.msgpack.encode(fingerprint(RobotState)) + msgspec.msgpack.encode(ENVELOPE) + head
    with pytest.raises(CodecError):
        decode([b"head/image", document], RobotState)


@pytest.mark.parametrize(
    "damage",
    [
        {"seq": 1 << 63},
        {"seq": -1},
        {"published_ns": -1},
        {"published_ns": (1 << 64) - 1},
        {"origins": {"image": 1 << 63}},
        {"origins": dict.fromkeys(map(str, range(65)), 1)},
        {"epochs": {"vlm": 1 << 63}},
        {"epochs": {"vlm": -1}},
        {"seat": 3},
    ],
)
def test_a_number_that_no_envelope_has_is_no_message(damage: dict[str, Any]) -> None:
    harmed = msgspec.structs.replace(Envelope("t", "node", 1, 1), **damage)
    with pytest.raises(CodecError, match="not a"):
        decode([b"t", *encode(harmed, Utterance(speaker="a", text="b"))[1:]], Utterance)
    with pytest.raises(CodecError, match="not a message"):
        decode_envelope(encode(harmed, Utterance(speaker="a", text="b"))[1])


def test_deep_nesting_is_no_message() -> None:
    nested = b"\x91" * 200_000
    with pytest.raises(CodecError):
        decode([b"head/image", nested], Utterance)
    document = b"\x93" + msgspec.msgpack.encode(fingerprint(Utterance)) + msgspec.msgpack.encode(ENVELOPE) + nested
    with pytest.raises(CodecError):
        decode([b"head/image", document], Utterance)


def test_what_is_larger_than_a_message_may_be_is_refused() -> None:
    topic, document, *_ = wire(ENVELOPE, image())
    with pytest.raises(CodecError, match=pattern("runtime.frame_is_large")):
        decode([topic, bytes(MAX_DOCUMENT_BYTES + 1)], Image)
    with pytest.raises(CodecError, match=pattern("runtime.frame_is_large")):
        decode([topic, document, bytes(MAX_ARRAY_BYTES + 1)], Image)
    with pytest.raises(CodecError, match=pattern("runtime.frames_expected", number=MAX_ARRAYS + 3, most=64)):
        decode([topic, document, *[b""] * (MAX_ARRAYS + 1)], Image)


def test_another_schema_is_refused_with_both_ends_named() -> None:
    frames = wire(ENVELOPE, image())
    with pytest.raises(CodecError) as caught:
        decode(frames, Utterance)
    assert str(caught.value) == (
        sentence("runtime.another_release", topic="head/image", node="camera", message="Utterance")
    )


def test_another_topic_in_the_envelope_is_refused() -> None:
    _, *rest = wire(ENVELOPE, image())
    with pytest.raises(CodecError, match=pattern("runtime.another_topic")):
        decode([b"wrist/image", *rest], Image)


def version(name: str, **fields: Any) -> type[Message]:
    """A message type made on the spot; a field is its type."""
    made: type[Message] = types.new_class(name, (Message,), {}, lambda names: names.update(__annotations__=fields))
    return made


def test_a_fingerprint_changes_with_name_fields_types_and_parts() -> None:
    parts = [version("Part", size=int), version("Part", size=float)]
    variants = [
        version("Thing", size=int),
        version("Other", size=int),
        version("Thing", width=int),
        version("Thing", size=float),
        *(version("Thing", parts=tuple[part, ...]) for part in parts),  # type: ignore[valid-type]
    ]
    assert len({fingerprint(variant) for variant in variants}) == len(variants)
    assert fingerprint(version("Thing", size=int)) == fingerprint(variants[0])


def test_arrays_come_back_read_only_and_without_a_copy() -> None:
    frames = wire(ENVELOPE, image())
    found = decode(frames, Image).message
    assert found.depth_m is not None
    for array, frame in ((found.rgb, frames[2]), (found.depth_m, frames[3])):
        assert not array.flags.writeable
        assert np.shares_memory(array, np.frombuffer(frame, np.uint8))


def test_an_array_that_is_a_view_is_sent_whole() -> None:
    view = image().rgb[:, ::2, ::-1]
    found = decode(wire(ENVELOPE, Image(camera="head", captured_ns=1, rgb=view)), Image).message
    assert np.array_equal(found.rgb, view)


def test_arrays_of_another_type_than_declared_are_refused() -> None:
    chunk = ActionChunk(
        position=np.zeros((2, 8), np.float32), base_v_mps=np.zeros(2), base_w_radps=np.zeros(2), step_s=0.1
    )
    with pytest.raises(CodecError, match="an array holds float32; expected float64"):
        decode(wire(ENVELOPE, chunk), ActionChunk)


@pytest.mark.parametrize(
    ("rgb", "told"),
    [
        (np.array([object()]), sentence("runtime.no_array", what="object")),
        (np.zeros(2, "V4"), sentence("runtime.no_array", what="|V4")),
        (object(), sentence("runtime.no_plain_value", what="object")),
        (2**64, "Image cannot be encoded: can't serialize ints"),
        ("\ud800", "Image cannot be encoded: 'utf-8' codec can't encode"),
    ],
)
def test_what_has_no_wire_form_is_refused(rgb: Any, told: str) -> None:
    with pytest.raises(CodecError, match=re.escape(told)):
        encode(ENVELOPE, Image(camera="head", captured_ns=1, rgb=rgb))


def test_the_document_is_plain_messagepack_for_others_to_read() -> None:
    topic, document, rgb, _ = wire(ENVELOPE, image())
    mark, envelope, payload = msgpack.unpackb(document)
    assert topic == b"head/image"
    assert mark == fingerprint(Image)
    assert envelope[:4] == ["head/image", "camera", 3, 1_000]
    assert payload["rgb"] == [0, "|u1", [2, 4, 3]]
    assert payload["depth_m"] == [1, "<f4", [2, 4]]
    assert np.array_equal(np.frombuffer(rgb, "|u1").reshape(2, 4, 3), image().rgb)


@settings(max_examples=100, deadline=None)
@given(
    envelope=envelopes,
    message=st.builds(
        SeenObject,
        **{
            **dict.fromkeys(("label", "colour"), st.text("abc ü€😀")),
            **dict.fromkeys(("x_m", "y_m", "z_m", "width_m", "height_m", "u_px", "v_px"), st.floats(allow_nan=False)),
        },
    ),
)
def test_what_another_messagepack_library_writes_is_read(envelope: Envelope, message: SeenObject) -> None:
    document: bytes = msgpack.packb(
        [fingerprint(SeenObject), msgspec.to_builtins(envelope), msgspec.to_builtins(message)]
    )
    assert decode([envelope.topic.encode(), document], SeenObject) == Stamped(message, envelope)


@settings(max_examples=100, deadline=None)
@given(envelope=envelopes, message=any_message)
def test_what_is_written_another_messagepack_library_reads_and_writes_back(
    envelope: Envelope, message: Message
) -> None:
    topic, document, *arrays = wire(envelope, message)
    again: bytes = msgpack.packb(msgpack.unpackb(document, strict_map_key=False))
    assert plain(decode([topic, again, *arrays], type(message)).message) == plain(message)


def test_a_garbled_message_names_publisher_class_and_field() -> None:
    class Reading(Message):
        value: int

    frames = encode(Envelope("reading", "sensor", 1, 2), Reading(value="three"))  # type: ignore[arg-type]  # the mistake
    with pytest.raises(CodecError, match=r"^sensor sent a Reading whose field 'value' is wrong: Expected `int`, got"):
        decode(frames, Reading)
