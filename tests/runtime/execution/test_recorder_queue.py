"""A recorder's queues are deep, bounded in bytes together, and say what they lost."""

from __future__ import annotations

import numpy as np

from nodes.msgs import Image, Utterance
from nodes.recording.recorder import Recorder
from runtime.execution.recorder_queue import MESSAGES_QUEUED, ByteBudget, DeepPort, size_of
from runtime.launch.graph import NodeSpec
from runtime.message import Envelope, M, Stamped
from runtime.node import Node
from runtime.ports import Publisher
from runtime.virtual.simulation import Simulation

IMAGE = Image(camera="eye", captured_ns=1, rgb=np.zeros((100, 100, 3), np.uint8))


def stamped(message: M, seq: int) -> Stamped[M]:
    return Stamped(message, Envelope("topic", "node", seq, seq))


def test_the_bytes_of_all_queues_together_stay_within_their_budget() -> None:
    budget = ByteBudget(200_000)
    one, other = DeepPort(Image, "one", budget), DeepPort(Image, "other", budget)
    for seq in range(1, 101):
        one.push(stamped(IMAGE, seq))
        other.push(stamped(IMAGE, seq))
        assert budget.used <= 200_000
    assert one.pending + other.pending == 200_000 // size_of(IMAGE)
    assert one.received == one.pending + one.dropped["queue full"] == 100


def test_the_newest_is_kept_and_the_oldest_given_up() -> None:
    port = DeepPort(Image, "one", ByteBudget(3 * size_of(IMAGE)))
    for seq in range(1, 6):
        port.push(stamped(IMAGE, seq))
    kept = [port.pop() for _ in range(3)]
    assert [one.envelope.seq for one in kept if one is not None] == [3, 4, 5]
    assert port.pop() is None
    assert port.budget.used == 0


def test_a_queue_is_bounded_in_number_too() -> None:
    port = DeepPort(Utterance, "said", ByteBudget(1 << 40))
    for seq in range(MESSAGES_QUEUED + 5):
        port.push(stamped(Utterance(speaker="x", text="y"), seq))
    assert (port.pending, port.dropped["queue full"]) == (MESSAGES_QUEUED, 5)


def test_images_take_no_room_from_messages_without_arrays() -> None:
    class Eye(Node):
        image = Publisher(Image, "eye/image")
        words = Publisher(Utterance, "words")

    simulation = Simulation(NodeSpec("eye", Eye), NodeSpec("recorder", Recorder, instance=Recorder()))
    ports = simulation.bound_nodes["recorder"].subscriptions
    images, words = ports["any:eye/image"], ports["any:words"]
    assert isinstance(images, DeepPort)
    assert isinstance(words, DeepPort)
    images.budget.change(images.budget.limit)
    images.push(stamped(IMAGE, 1))
    words.push(stamped(Utterance(speaker="x", text="y"), 1))
    assert (images.pending, images.dropped["queue full"], words.pending) == (0, 1, 1)
    simulation.close()


def test_long_texts_and_many_parts_count() -> None:
    assert size_of(Utterance(speaker="x", text="y" * 100_000)) > 100_000
    assert size_of(IMAGE) > IMAGE.rgb.nbytes
