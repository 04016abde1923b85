"""A trace tells two runs apart by any difference at all, and says where they part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nodes.recording.recorder import Recorder
from runtime import Message, Node, Publisher, Simulation, every
from runtime.message import Envelope, Stamped
from runtime.virtual.trace import MessageTrace, first_difference


class Picture(Message, kind="state"):
    pixels: NDArray[np.uint8]
    note: str = ""


def traced(*pictures: Picture, published_ns: int = 5) -> MessageTrace:
    trace = MessageTrace(keep=True)
    for number, picture in enumerate(pictures):
        trace.add(Stamped(picture, Envelope("head/image", "camera", number, published_ns)))
    return trace


def picture(value: int = 0, note: str = "") -> Picture:
    return Picture(pixels=np.array([[1, value]], dtype=np.uint8), note=note)


def test_equal_messages_give_equal_hashes() -> None:
    assert traced(picture(1), picture(2)).hash == traced(picture(1), picture(2)).hash
    assert len(traced().hash) == 16


@pytest.mark.parametrize(
    "other",
    [
        traced(picture(1), picture(3)),
        traced(picture(2), picture(1)),
        traced(picture(1)),
        traced(picture(1), picture(2, "x")),
        traced(picture(1), picture(2), published_ns=6),
    ],
)
def test_one_pixel_one_field_one_stamp_or_the_order_is_a_difference(other: MessageTrace) -> None:
    assert traced(picture(1), picture(2)).hash != other.hash


def test_the_first_difference_is_found() -> None:
    one, other = traced(picture(1), picture(2)).lines, traced(picture(1), picture(3)).lines
    assert one is not None
    assert other is not None
    difference = first_difference(one, other)
    assert difference is not None
    number, left, right = difference
    assert number == 1
    assert left.startswith("0.000000005 head/image:camera:1 ")
    assert right != left
    assert first_difference(one, one) is None
    assert first_difference(one, one[:1]) == (1, one[1], "")


class Dice(Node):
    picture = Publisher(Picture, "dice")

    @every(hz=10)
    def roll(self) -> None:
        self.picture.publish(picture(self.random.randrange(256)))


def test_a_simulation_traces_what_is_published() -> None:
    def hash_of(seed: int) -> str:
        simulation = Simulation(Dice(), seed=seed, trace=MessageTrace())
        simulation.run(1)
        simulation.close()
        assert simulation.trace is not None
        assert simulation.trace.messages == 10
        assert simulation.run_info["trace"] == simulation.trace.hash
        return simulation.trace.hash

    assert hash_of(1) == hash_of(1)
    assert hash_of(1) != hash_of(2)


def test_the_name_of_the_file_that_a_run_is_recorded_into_does_not_change_its_trace(tmp_path: Path) -> None:
    def hash_of(name: str) -> str:
        simulation = Simulation(Dice(), Recorder(path=str(tmp_path / name)), seed=1, trace=MessageTrace())
        told = simulation.record(Recorder.told)
        simulation.run(1)
        simulation.close()
        assert told[0].file == name
        assert simulation.trace is not None
        return simulation.trace.hash

    assert hash_of("a.mcap") == hash_of("b.mcap")
