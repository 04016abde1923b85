"""Inputs that are read together: colour and depth of one moment, and the posture between two readings."""

from __future__ import annotations

import random
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import runtime
from runtime import Interpolate, Message, Node, Publisher, QoS, Simulation, Subscription, UserError, aligned, every, on
from runtime.alignment import alignments_of, interpolated
from runtime.clock import to_ns
from runtime.launch.graph import Graph, NodeSpec
from tests.support.sentences import pattern, sentence

DEEP = QoS(depth=20)


class Colour(Message, kind="state", origin="image"):
    captured_ns: int


class Depth(Message, kind="state"):
    captured_ns: int


class Posture(Message, kind="state"):
    captured_ns: int
    joints_rad: tuple[float, ...] = (0.0,)
    name: str = ""


class Cloud(Message):
    colour_ns: int
    depth_ns: int
    posture_ns: int
    joint_rad: float


class Fusion(Node):
    colour = Subscription(Colour, "colour", qos=DEEP)
    depth = Subscription(Depth, "depth", qos=DEEP)
    posture = Subscription(Posture, "posture", qos=DEEP)
    cloud = Publisher(Cloud, "cloud")

    @aligned(colour, depth, Interpolate(posture, longest_gap_s=0.1), tolerance_s=0.01)
    def fuse(self, colour: Colour, depth: Depth, posture: Posture) -> None:
        self.cloud.publish(
            Cloud(
                colour_ns=colour.captured_ns,
                depth_ns=depth.captured_ns,
                posture_ns=posture.captured_ns,
                joint_rad=posture.joints_rad[0],
            )
        )


class Camera(Node):
    """30 Hz, with stamps that jitter; an image may be lost."""

    colour = Publisher(Colour, "colour")
    depth = Publisher(Depth, "depth")

    @every(hz=30)
    def look(self) -> None:
        now_ns = self.clock.now_ns()
        self.colour.publish(Colour(captured_ns=now_ns))
        if self.random.random() < 0.8:
            self.depth.publish(Depth(captured_ns=now_ns + round(self.random.uniform(-0.004, 0.004) * 1e9)))


class Joints(Node):
    """Readings at 100 Hz of a joint that moves at 1 rad/s."""

    posture = Publisher(Posture, "posture")

    @every(hz=100)
    def read(self) -> None:
        now_ns = self.clock.now_ns()
        self.posture.publish(Posture(captured_ns=now_ns, joints_rad=(now_ns / 1e9,)))


def clouds(seed: int) -> list[Cloud]:
    simulation = Simulation(Camera(), Joints(), Fusion(), seed=seed)
    found = simulation.record(Fusion.cloud)
    simulation.run(10.0)
    simulation.close()
    return found


def test_what_is_read_together_is_of_one_moment_and_the_posture_lies_between_its_readings() -> None:
    found = clouds(3)
    assert 200 < len(found) < 280, "four of five images have a depth"
    assert [one.colour_ns for one in found] == sorted({one.colour_ns for one in found}), "each once, in order"
    for one in found:
        assert abs(one.colour_ns - one.depth_ns) <= 4_000_001
        assert one.joint_rad == pytest.approx(one.colour_ns / 1e9, abs=1e-6), "at the image's moment, not the reading's"
    assert found == clouds(3)
    assert found != clouds(4)


@pytest.mark.parametrize("seed", range(20))
def test_in_whatever_order_messages_come_each_meets_the_nearest_there_is(seed: int) -> None:
    """Against an exhaustive search over all messages, in any order of two streams."""
    draw = random.Random(seed)
    colours = sorted(draw.sample(range(1000), 40))
    depths = sorted(draw.sample(range(1000), 40))
    simulation = Simulation(Pair())
    found = simulation.record(Pair.pair)
    order = sorted([(at, "colour") for at in colours] + [(at, "depth") for at in depths], key=lambda one: one[0])
    for at_ms, topic in order:
        kind = Colour if topic == "colour" else Depth
        simulation.publish(topic, kind(captured_ns=to_ns(at_ms / 1000)))
        simulation.run(0.001)
    used: set[int] = set()
    expected = []
    for at_ms in colours:
        if not any(depth >= at_ms for depth in depths):
            continue
        free = [depth for depth in depths if depth not in used and depth >= max(used, default=-1)]
        near = min(free, key=lambda depth: (abs(depth - at_ms), -depth), default=None)
        if near is not None and abs(near - at_ms) <= 10 and any(depth >= at_ms for depth in free):
            expected.append((at_ms, near))
            used.add(near)
    assert [(round(one.colour_ns / 1e6), round(one.depth_ns / 1e6)) for one in found] == expected
    simulation.close()


class Pair(Node):
    colour = Subscription(Colour, "colour", qos=QoS(depth=20, required=False))
    depth = Subscription(Depth, "depth", qos=QoS(depth=20, required=False))
    pair = Publisher(Cloud, "pair")

    @aligned(colour, depth, tolerance_s=0.01)
    def meet(self, colour: Colour, depth: Depth) -> None:
        self.pair.publish(Cloud(colour_ns=colour.captured_ns, depth_ns=depth.captured_ns, posture_ns=0, joint_rad=0.0))


def test_in_real_time_and_under_other_topics_it_is_the_same() -> None:
    names = {"colour": "head/colour", "depth": "head/depth"}
    seen: list[Cloud] = []

    class Sink(Node):
        pair = Subscription(Cloud, "pair")

        @on(pair)
        def take(self, pair: Cloud) -> None:
            seen.append(pair)
            if len(seen) == 3:
                self.finish(ok=True, reason="three pairs")

    nodes = NodeSpec("camera", Camera, remap=names), NodeSpec("pair", Pair, remap=names), Sink()
    outcome = runtime.run(*nodes, seconds=20)
    assert outcome == (True, "three pairs")
    assert all(abs(one.colour_ns - one.depth_ns) <= 10_000_000 for one in seen)


def test_how_inputs_are_read_is_data() -> None:
    [fuse] = alignments_of(Fusion).values()
    graph = Graph([NodeSpec(node.__name__.lower(), node) for node in (Camera, Joints, Fusion)])
    assert graph.facts["aligned"] == {
        "fusion.fuse": {
            "topics": ["colour", "depth", "posture"], "tolerance_s": 0.01, "interpolated_over_s": [None, None, 0.1],
        }
    }  # fmt: skip
    assert f"fusion.fuse: {fuse.words()}" in graph.draw(), "as `polyrhythm graph` shows it"
    assert fuse.words() == sentence("runtime.aligned_words", tolerance_ms=10, gap_s=0.1)


class Sized(Message):
    numbers: NDArray[np.float32]
    count: int
    pair: tuple[float, str]


def test_numbers_lie_between_and_all_else_is_of_the_nearer() -> None:
    one = Sized(numbers=np.array([0.0, 2.0], np.float32), count=1, pair=(0.0, "a"))
    two = Sized(numbers=np.array([1.0, 4.0], np.float32), count=2, pair=(9.0, "b"))
    middle = interpolated(one, two, 0.75)
    assert middle.numbers.tolist() == [0.75, 3.5]
    assert middle.numbers.dtype == np.float32
    assert (middle.count, middle.pair) == (2, (9.0, "b"))


COLOUR, DEPTH = Subscription(Colour, "colour"), Subscription(Depth, "depth")


async def later(self: Any, colour: Colour, depth: Depth) -> None: ...


def one_only(self: Any, colour: Colour) -> None: ...


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: aligned(COLOUR, tolerance_s=0.1), pattern("runtime.two_inputs")),
        (lambda: aligned(COLOUR, COLOUR, tolerance_s=0.1), pattern("runtime.one_port_twice")),
        (lambda: aligned(COLOUR, DEPTH, tolerance_s=-1.0), pattern("runtime.tolerance_range", value="-1.0")),
        (lambda: aligned(COLOUR, DEPTH, tolerance_s="x"), pattern("runtime.tolerance_range", value="'x'")),  # type: ignore[call-overload]
        (lambda: aligned(COLOUR, "depth", tolerance_s=0.1), pattern("runtime.takes_subscriptions")),  # type: ignore[call-overload]
        (lambda: Interpolate(DEPTH, longest_gap_s=0.0), pattern("runtime.gap_range")),
        (lambda: aligned(COLOUR, DEPTH, tolerance_s=0.1)(later), pattern("runtime.aligned_is_plain")),  # type: ignore[arg-type]
        (lambda: aligned(COLOUR, DEPTH, tolerance_s=0.1)(one_only), pattern("runtime.one_of_each")),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_aligned_is_told(wrong: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        wrong()


def test_the_block_of_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "aligned-inputs.md"
    [block] = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    room = types.ModuleType("fusion_of_the_page")
    monkeypatch.setitem(sys.modules, room.__name__, room)  # messages look their types up in their module
    exec(compile(block, str(page), "exec"), vars(room))
    kinds: Any = room
    simulation = Simulation(kinds.Fusion())
    fused = simulation.record(kinds.Fusion.fused)
    for at_ms in (0, 20):
        simulation.publish("posture", kinds.Posture(captured_ns=to_ns(at_ms / 1000), joints_rad=(float(at_ms),)))
    simulation.publish("colour", kinds.Colour(captured_ns=to_ns(0.01)))
    simulation.publish("depth", kinds.Depth(captured_ns=to_ns(0.01)))
    simulation.run(0.1)
    assert [one.joints_rad for one in fused] == [(10.0,)]
