"""On the wire what is published at once is a few frames: the same messages come out, or a counted reason why not."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nodes.hello import Beat
from nodes.msgs import Utterance
from runtime.errors import CodecError
from runtime.message import Envelope, Message, Stamped, array_fields
from runtime.qos import HOLD_S
from runtime.serialization.codec import (
    BUNDLE_BYTES,
    MAX_BUNDLE,
    decode,
    decoder_of,
    encode,
    encode_bundles,
    holds_arrays,
    split_bundle,
)
from runtime.transport.reliable.tag import Terms
from runtime.transport.taps import Tap
from runtime.transport.zeromq import PASSING, PublisherSockets, Reader, send
from tests.support.message_strategies import MESSAGES, envelopes, messages
from tests.support.running import eventually
from tests.support.sentences import pattern

ENVELOPE = Envelope("beat", "talker", 1, 1_000, cause="heard:user:1")
SMALL = [message for message in MESSAGES if not array_fields(message)]


class Level(Message, kind="state"):
    count: int


class Patch(Message):
    newtons: NDArray[np.float64]


class Touched(Message):
    patch: Patch


def beats(begin: int, end: int) -> list[Beat]:
    return [Beat(count=count) for count in range(begin, end)]


def read(documents: list[bytes], message: type[Message], topic: str) -> list[Stamped[Message]]:
    return [stamped for document in documents for stamped in decoder_of(message).decode_bundle(topic, document)]


@settings(max_examples=150, deadline=None)
@given(envelope=envelopes, many=st.sampled_from(SMALL).flatmap(lambda message: st.lists(messages(message), min_size=1)))
def test_what_comes_out_is_what_each_alone_would_be(envelope: Envelope, many: list[Message]) -> None:
    kind = type(many[0])
    envelope = msgspec.structs.replace(envelope, seq=min(envelope.seq, (1 << 62) - len(many)))  # none goes further
    documents = list(encode_bundles(envelope, many))
    alone = [decode(encode(envelope.later(number), message), kind) for number, message in enumerate(many)]
    assert read(documents, kind, envelope.topic) == alone
    name = envelope.topic.encode()
    assert [decode([name, one], kind) for document in documents for one in split_bundle(document)] == alone


def test_after_a_long_message_short_ones_travel_together_again() -> None:
    texts = [Utterance(speaker="user", text="x" * length) for length in [3 * BUNDLE_BYTES] + [5] * 100]
    sizes = [len(msgpack.unpackb(document)[2]) for document in encode_bundles(Envelope("heard", "ear", 1, 1), texts)]
    assert sum(sizes) == len(texts)
    assert MAX_BUNDLE in sizes
    assert len(sizes) < 12


def test_arrays_inside_a_message_inside_are_seen_and_spoil_no_other_message() -> None:
    touched = [Touched(patch=Patch(newtons=np.arange(3.0))) for _ in range(3)]
    assert holds_arrays(Touched)
    assert not array_fields(Touched)
    with pytest.raises(CodecError, match=f"^{pattern('runtime.holds_arrays', message='Touched')}$"):
        list(encode_bundles(Envelope("touched", "skin", 1, 1), touched))
    found = decode(encode(Envelope("touched", "skin", 4, 1), touched[0]), Touched)
    assert found.message.patch.newtons.tolist() == [0.0, 1.0, 2.0]


def test_a_bundle_is_short_in_messages_and_in_bytes_but_for_one_that_is_longer() -> None:
    texts = [Utterance(speaker="user", text="x" * length) for length in [5] * 100 + [3000] * 9 + [3 * BUNDLE_BYTES] * 2]
    documents = list(encode_bundles(Envelope("heard", "ear", 1, 1), texts))
    sizes = [len(msgpack.unpackb(document)[2]) for document in documents]
    assert sum(sizes) == len(texts)
    assert max(sizes) <= MAX_BUNDLE
    assert all(len(document) <= BUNDLE_BYTES for document, size in zip(documents, sizes, strict=True) if size > 1)
    assert sizes[:3] == [MAX_BUNDLE] * 3


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_harmed_bits_give_messages_of_the_type_or_a_codec_error(seed: int) -> None:
    generator = random.Random(seed)
    (document,) = encode_bundles(ENVELOPE, beats(0, 5))
    harmed = bytearray(document[: generator.randint(1, len(document))])
    for _ in range(generator.randint(0, 3)):
        harmed[generator.randrange(len(harmed))] ^= 1 << generator.randrange(8)
    for attempt in (lambda: decoder_of(Beat).decode_bundle("beat", bytes(harmed)), lambda: split_bundle(bytes(harmed))):
        try:
            found = attempt()
        except CodecError:
            continue
        assert 1 <= len(found) <= MAX_BUNDLE


@pytest.mark.parametrize("number", [0, MAX_BUNDLE + 1, 100_000])
def test_none_and_too_many_are_refused(number: int) -> None:
    (document,) = encode_bundles(ENVELOPE, beats(0, 1))
    head, envelope, (one,) = msgpack.unpackb(document)
    forged = msgpack.packb([head, envelope, [one] * number])
    with pytest.raises(CodecError, match="length"):
        decoder_of(Beat).decode_bundle("beat", forged)
    with pytest.raises(CodecError, match="not a bundle"):
        split_bundle(forged)


def test_another_topic_and_another_version_are_refused() -> None:
    (document,) = encode_bundles(ENVELOPE, beats(0, 2))
    with pytest.raises(CodecError, match="names another topic"):
        decoder_of(Beat).decode_bundle("other", document)
    with pytest.raises(CodecError, match="another version of Level"):
        decoder_of(Level).decode_bundle("beat", document)


class Wire:
    """A publisher, a reader of its events and states, and what arrived and was lost."""

    def __init__(self, folder: Path) -> None:
        self.heard: dict[str, list[int]] = {"beat": [], "level": []}
        self.seqs: list[int] = []
        self.lost: list[tuple[str, int]] = []
        self.outlet = PublisherSockets(folder, "talker")
        self.outlet.kept["kept"] = ()
        types: dict[str, type[Message]] = {"beat": Beat, "level": Level, "kept": Level}
        self.reader = Reader(
            types, self._deliver, lambda topic, reason, number, why: self.lost.append((reason, number))
        )
        self.reader.connect(folder, ["talker"])
        expected = dict.fromkeys(types, 1)
        assert asyncio.run(self.outlet.await_subscribers(expected, 10.0, asyncio.Event())) == []

    def _deliver(self, stamped: Stamped[Any]) -> None:
        self.heard.setdefault(stamped.envelope.topic, []).append(stamped.message.count)
        self.seqs.append(stamped.envelope.seq)

    def send_raw(self, document: bytes) -> None:
        way = self.outlet.ways["event"]
        with way.lock:
            send(way.socket, [b"beat" + PASSING + b"\x82" + document])


@pytest.fixture
def wire() -> Iterator[Wire]:
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        found = Wire(Path(name))
        try:
            yield found
        finally:
            found.reader.close()
            found.outlet.close()


@pytest.mark.processes
def test_no_more_than_the_limit_is_delivered_at_a_time_and_nothing_is_lost(wire: Wire) -> None:
    wire.outlet.publish_all(Envelope("beat", "talker", 1, 1), beats(1, 501))
    wire.outlet.publish(Envelope("beat", "talker", 501, 2), Beat(count=501))

    def is_all_here() -> bool:
        before = len(wire.heard["beat"])
        wire.reader.poll(7)
        assert len(wire.heard["beat"]) - before <= 7
        return len(wire.heard["beat"]) >= 501

    eventually(is_all_here, "all arrive")
    assert wire.heard["beat"] == wire.seqs == list(range(1, 502))
    assert not wire.lost
    assert not wire.reader.poll(7)


@pytest.mark.processes
def test_events_that_had_no_room_come_with_the_next_look_for_events(wire: Wire) -> None:
    wire.outlet.publish_all(Envelope("beat", "talker", 1, 1), beats(1, 21))
    eventually(lambda: wire.reader.poll(1), "the first arrives")
    wire.reader.drain_states(100)
    assert wire.heard["beat"] == [1]
    wire.reader.drain_events(4)
    assert wire.heard["beat"] == [1, 2, 3, 4, 5]
    assert wire.reader.poll(100)
    assert wire.heard["beat"] == list(range(1, 21))


@pytest.mark.processes
def test_states_are_all_delivered_for_their_port_to_keep_the_newest(wire: Wire) -> None:
    wire.outlet.publish_all(Envelope("level", "talker", 1, 1), [Level(count=count) for count in range(50)])
    eventually(lambda: wire.reader.poll(1) >= 0 and len(wire.heard["level"]) == 50, "all arrive")
    assert wire.heard["level"] == list(range(50))


@pytest.mark.processes
def test_the_newest_of_a_state_for_late_joiners_is_kept(wire: Wire) -> None:
    wire.outlet.publish_all(Envelope("kept", "talker", 1, 1), [Level(count=count) for count in range(3)])
    eventually(lambda: wire.reader.poll(9) >= 0 and len(wire.heard.get("kept", [])) == 3, "all arrive")
    (frame,) = wire.outlet.kept["kept"]
    assert decode([b"kept", bytes(frame).partition(PASSING + b"\0")[2]], Level).message == Level(count=2)


@pytest.mark.processes
def test_gaps_repetitions_and_what_cannot_be_read_are_counted_to_the_message(wire: Wire) -> None:
    (two,) = encode_bundles(Envelope("beat", "talker", 1, 5), beats(1, 3))
    (more,) = encode_bundles(Envelope("beat", "talker", 6, 6), beats(6, 9))
    (other,) = encode_bundles(Envelope("beat", "talker", 9, 7), [Level(count=count) for count in range(4)])
    for document in (two, two, more, other):
        wire.send_raw(document)
    wire.outlet.publish(Envelope("beat", "talker", 13, 8), Beat(count=13))
    eventually(lambda: wire.reader.poll(64) >= 0 and 13 in wire.heard["beat"], "the last one arrives")
    assert wire.heard["beat"] == [1, 2, 6, 7, 8, 13]
    missed = [number for reason, number in wire.lost]
    assert wire.lost[0] == ("link", 3)
    assert wire.lost[1][0] == "garbled"
    assert sum(missed) == 3 + 4


@pytest.mark.processes
def test_reliable_events_are_acknowledged_each() -> None:
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        folder, heard = Path(name), list[int]()
        outlet = PublisherSockets(folder, "talker", reliable={"beat": Terms(("a",), 60.0, HOLD_S)})
        reader = Reader(
            {"beat": Beat},
            lambda stamped: heard.append(stamped.message.count),
            lambda *_: None,
            receiver="a",
            reliable=["beat"],
        )
        try:
            reader.connect(folder, ["talker"])
            assert asyncio.run(outlet.await_subscribers({"beat": 1}, 10.0, asyncio.Event())) == []
            outlet.publish_all(Envelope("beat", "talker", 1, 1), beats(1, 41))

            def is_done() -> bool:
                reader.wait(0.01)
                reader.poll(8)
                return outlet.is_acknowledged

            eventually(is_done, "all are acknowledged")
            assert heard == list(range(1, 41))
        finally:
            reader.close()
            outlet.close()


@pytest.mark.processes
def test_a_tool_hears_each_of_them() -> None:
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        outlet = PublisherSockets(Path(name), "talker")
        tap = Tap(Path(name), ["talker"], {"beat": "event"}, "tool-1")
        found: list[int] = []
        sizes: list[int] = []
        alone: list[int] = []

        def is_heard() -> bool:
            outlet.publish_all(Envelope("beat", "talker", 1, 0), beats(1, 6))
            while (frames := tap.receive(0.02)) is not None:
                stamped = decode(frames, Beat)
                assert stamped.envelope.seq == stamped.message.count
                found.append(stamped.message.count)
                sizes.append(tap.size_bytes)
                alone.append(sum(len(frame) for frame in frames))
            return len(found) >= 5

        try:
            eventually(is_heard, "the tool hears the publisher")
            assert found[:5] == [1, 2, 3, 4, 5]
            assert sum(sizes[:5]) < sum(alone[:5]) / 2  # they have one envelope
            assert max(sizes[:5]) - min(sizes[:5]) <= 1
        finally:
            tap.close()
            outlet.close()
