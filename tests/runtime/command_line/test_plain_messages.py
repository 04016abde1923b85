"""Messages read without their types say the same as with them; arrays are told by shape and type."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from nodes.hello import Beat
from nodes.msgs import Image, SceneDescription, SeenObject, Utterance
from runtime.command_line.plain_messages import find_type, in_many_lines, in_one_line, to_plain
from runtime.errors import CodecError
from runtime.message import Envelope, Message
from runtime.serialization.codec import encode

ENVELOPE = Envelope("topic", "node", 3, 1000, cause="heard:ann:1", provenance="person")

IMAGE = Image(
    camera="head",
    captured_ns=5,
    rgb=np.zeros((4, 6, 3), np.uint8),
    depth_m=np.zeros((4, 6), np.float32),
)
SEEN = SeenObject(label="cup", colour="red", x_m=1.0, y_m=0.0, z_m=0.5, width_m=0.1, height_m=0.1, u_px=1.0, v_px=2.0)
MESSAGES = [
    Beat(count=3),
    IMAGE,
    Utterance(speaker="Ann", text="Halt! – “no”"),
    SceneDescription(text="", subtask_id="1", progress="idle", objects=(SEEN, SEEN)),
]


def frames_of(message: Message) -> list[bytes]:
    return [bytes(frame) for frame in encode(ENVELOPE, message)]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_without_its_type_a_message_says_the_same_as_with_it(message: Message) -> None:
    frames = frames_of(message)
    assert to_plain(frames, None) == to_plain(frames, type(message))
    assert to_plain(frames, None)[0] == ENVELOPE


def test_arrays_are_summarised() -> None:
    _, content = to_plain(frames_of(IMAGE), Image)
    assert content["rgb"] == {"shape": [4, 6, 3], "dtype": "uint8"}
    assert "rgb=uint8[4x6x3] depth_m=float32[4x6]" in in_one_line(content)
    assert "rgb: uint8[4x6x3]" in in_many_lines(content)


def test_a_message_of_another_release_is_still_told() -> None:
    assert to_plain(frames_of(Beat(count=3)), Utterance)[1] == {"count": 3}


@pytest.mark.parametrize("document", [b"", b"\xc1", b"\x93\x01\x02\x03", b"\x91" * 5000, b"abc", b"\x93\xa0\x90\xc0"])
def test_bytes_that_are_no_message_are_refused_in_one_way(document: bytes) -> None:
    with pytest.raises(CodecError, match="not a message"):
        to_plain([b"topic", document], None)
    with pytest.raises(CodecError):
        to_plain([b"topic"], Beat)


def test_a_type_that_cannot_be_imported_is_none() -> None:
    assert find_type("nodes.hello:Beat") is Beat
    assert find_type("no_such_package:Beat") is None
    assert find_type("nodes.hello:Nothing") is None


def test_nested_lists_of_three_are_no_arrays_unless_a_buffer_fits() -> None:
    class Odd(Message):
        parts: tuple[object, ...]

    content = cast(dict[str, object], to_plain(frames_of(Odd(parts=(0, "<f8", [4]))), None)[1])
    assert content["parts"] == [0, "<f8", [4]]
