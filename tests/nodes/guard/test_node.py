"""The guard as a node: it ticks by itself, acts on a stop at arrival, and hands on the ages of what it applies."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from nodes.guard.motion_profile import limits_of
from nodes.guard.node import FROZEN_NS, Guard
from nodes.msgs import Image, Interrupt, JointCommand
from nodes.stretch.limits import STRETCH_3
from runtime import Node, Publisher, Simulation, Subscription, every
from runtime.clock import Clock
from runtime.errors import ParameterError
from runtime.message import Stamped
from tests.support.robots.still_robot import StillRobot
from tests.support.sentences import pattern, sentence
from tests.support.standing import HOME

FAR = (1.0, 0.5, 3.0, 0.4, 2.0, 0.12, 1.0, 0.2)


class Driving(Node):
    """A policy that wants far away, for as long as it is told to."""

    command = Publisher(JointCommand, "command")

    def __init__(self, ticks: int = 10_000) -> None:
        self.left = ticks

    @every(hz=20)
    def tick(self) -> None:
        if self.left > 0:
            self.left -= 1
            self.command.publish(JointCommand(position=FAR, base_v_mps=0.3))


def stop(ident: str = "ouch") -> Interrupt:
    return Interrupt(id=ident, depth="stop", text="Ouch!", by="Ana")


def test_it_moves_only_when_armed() -> None:
    sim = Simulation(StillRobot(), Driving(), Guard())
    outputs, states = sim.record(Guard.robot_command), sim.record(Guard.guard_state)
    sim.run(seconds=1.0)
    assert outputs == []
    assert states[-1].mode == "disarmed"
    assert states[-1].rejected > 0


def test_it_ticks_fifty_times_a_second_and_reports_ten_times() -> None:
    sim = Simulation(StillRobot(), Guard(arm="auto"))
    sim.publish("command", JointCommand(position=FAR))
    sim.run(seconds=0.2)
    outputs, states = sim.record(Guard.robot_command), sim.record(Guard.guard_state)
    sim.run(seconds=1.0)
    assert len(outputs) == 50
    assert len(states) == 10


def test_a_silent_policy_leaves_the_robot_held() -> None:
    sim = Simulation(StillRobot(), Driving(ticks=20), Guard(arm="auto"))
    outputs, states = sim.record(Guard.robot_command), sim.record(Guard.guard_state)
    sim.run(seconds=4.0)
    assert states[-1].mode == "holding"
    assert max(output.base_v_mps for output in outputs) == pytest.approx(0.3, abs=0.02)
    assert outputs[-1].base_v_mps == 0.0
    assert outputs[-1] == outputs[-2]


def test_a_stop_is_acted_on_at_arrival_between_two_ticks() -> None:
    sim = Simulation(StillRobot(), Driving(), Guard(arm="auto"))
    published: list[Stamped[Any]] = []
    sim.observe(published.append)
    sim.run(seconds=1.007)
    at_ns = sim.clock.now_ns()
    sim.publish("interrupt", stop(), source="reflex")
    states = sim.record(Guard.guard_state)
    sim.run(seconds=0.001)
    assert states[-1].mode == "stopped"
    assert states[-1].stop_cause == "ouch"
    assert states[-1].stop_heard_ns == at_ns
    assert states[-1].held_ns == at_ns
    last = [stamped for stamped in published if stamped.envelope.topic == "robot/command"][-1]
    assert last.envelope.published_ns == at_ns
    assert last.envelope.cause.startswith("interrupt:")


@pytest.mark.parametrize("depth", ["replan", "hold"])
def test_what_holds_the_robot_is_acted_on_at_arrival_too(depth: Any) -> None:
    sim = Simulation(StillRobot(), Driving(), Guard(arm="auto"))
    sim.run(seconds=1.007)
    outputs = sim.record(Guard.robot_command)
    sim.publish("interrupt", Interrupt(id="i", depth=depth, text="hm", by="Ana", hold_s=1.0), source="reflex")
    sim.run(seconds=0.001)
    assert len(outputs) == 1, "between two ticks"
    sim.publish("interrupt", Interrupt(id="a", depth="amend", text="the blue one", by="Ana"), source="reflex")
    sim.run(seconds=0.001)
    assert len(outputs) == 1, "what changes nothing here waits for none"


def test_the_state_is_told_at_each_interrupt_also_where_it_changes_nothing() -> None:
    sim = Simulation(StillRobot(), Driving(), Guard(arm="auto"))
    sim.run(seconds=1.007)
    sim.publish("interrupt", stop(), source="reflex")
    sim.run(seconds=0.0001)
    states = sim.record(Guard.guard_state)
    for number, depth in enumerate(("stop", "hold", "replan", "amend"), 1):
        said = Interrupt(id="ouch", depth=depth, text="Ouch!", by="Ana")  # type: ignore[arg-type]  # from a list
        sim.publish("interrupt", said, source="reflex")
        sim.run(seconds=0.0001)
        assert len(states) == number
    assert {state.reason for state in states} == {sentence("guard.stopped_by", by="Ana", why="Ouch!")}


def test_a_stop_and_the_resume_after_it_both_count_when_they_arrive_together() -> None:
    sim = Simulation(StillRobot(), Driving(), Guard(arm="auto"))
    sim.run(seconds=0.5)
    sim.publish("interrupt", stop())
    sim.run(seconds=0.5)
    states = sim.record(Guard.guard_state)
    sim.publish("interrupt", stop("again"))
    sim.run(seconds=0.0001)
    sim.publish("interrupt", Interrupt(id="go", depth="resume", text="Go on", by="Ana"))
    sim.run(seconds=0.5)
    assert states[-1].mode == "moving"


def test_the_output_carries_the_age_of_the_image_behind_it() -> None:
    sim = Simulation(StillRobot(), Guard(arm="auto"))
    published: list[Stamped[Any]] = []
    sim.observe(published.append)
    sim.run(seconds=0.5)
    sim.publish("command", JointCommand(position=FAR))
    sim.run(seconds=0.1)
    last = [stamped for stamped in published if stamped.envelope.topic == "robot/command"][-1]
    assert last.envelope.born_ns("image") is None
    assert last.message.position[0] > HOME[0]


class Eyes(Node):
    """A policy that has looked."""

    image = Subscription(Image, "head/image")
    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        if self.image.latest() is not None:
            self.command.publish(JointCommand(position=FAR))


def test_what_is_driven_stems_from_the_picture_behind_it_and_what_brakes_from_nothing() -> None:
    sim = Simulation(StillRobot(), Eyes(), Guard(arm="auto"))
    published: list[Stamped[Any]] = []
    sim.observe(published.append)
    sim.run(seconds=0.5)
    seen_ns = sim.clock.now_ns()
    sim.publish("head/image", Image(camera="head", captured_ns=seen_ns, rgb=np.zeros((1, 1, 3), np.uint8)))
    sim.run(seconds=0.2)
    outputs = [stamped.envelope for stamped in published if stamped.envelope.topic == "robot/command"]
    assert outputs[-1].origins["image"] == seen_ns
    sim.publish("interrupt", stop())
    sim.run(seconds=0.1)
    braking = [stamped.envelope for stamped in published if stamped.envelope.topic == "robot/command"][len(outputs) :]
    assert len(braking) == 6, "one at the stop's arrival, and five ticks"
    assert [dict(one.origins) for one in braking] == [{}] * 6


class Frozen:
    """A clock that goes ahead of the run's in the middle of a tick, as after SIGSTOP and SIGCONT."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.ahead_ns = clock, 0

    def now_ns(self) -> int:
        return self.clock.now_ns() + self.ahead_ns

    def __getattr__(self, name: str) -> Any:
        return getattr(self.clock, name)


@pytest.mark.parametrize("freezes", ["check_monitors", "tick"])
def test_what_a_tick_decided_before_a_freeze_is_not_handed_on_after_it(
    freezes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = Guard(arm="auto")
    sim = Simulation(StillRobot(), Driving(), guard)
    sim.run(seconds=1.0)
    clock, does = Frozen(guard.clock), getattr(guard.machine, freezes)
    guard.clock = cast(Clock, clock)

    def frozen_once(now_ns: int) -> Any:
        done = does(now_ns)
        clock.ahead_ns += 1_500_000_000 - clock.ahead_ns
        return done

    outputs, states = sim.record(Guard.robot_command), sim.record(Guard.guard_state)
    monkeypatch.setattr(guard.machine, freezes, frozen_once)
    sim.run(seconds=0.02)
    assert clock.ahead_ns
    assert outputs == []
    sim.run(seconds=0.1)
    assert states[-1].mode == "stopped"
    assert all(output.base_v_mps == 0.0 for output in outputs)


@pytest.mark.parametrize(("frozen_ns", "is_handed_on"), [(FROZEN_NS - 1, True), (FROZEN_NS, False)])
def test_a_tick_that_took_exactly_so_long_was_frozen(
    frozen_ns: int, is_handed_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = Guard(arm="auto")
    sim = Simulation(StillRobot(), Driving(), guard)
    sim.run(seconds=1.0)
    clock, tick = Frozen(guard.clock), guard.machine.tick
    guard.clock = cast(Clock, clock)

    def slow(now_ns: int) -> Any:
        done = tick(now_ns)
        clock.ahead_ns = frozen_ns
        return done

    outputs = sim.record(Guard.robot_command)
    monkeypatch.setattr(guard.machine, "tick", slow)
    sim.run(seconds=0.02)
    assert bool(outputs) is is_handed_on


def test_ceilings_can_be_lowered_and_not_raised() -> None:
    assert limits_of("stretch_3") == STRETCH_3
    assert limits_of("stretch_3", 0.5).joints[0].speed == pytest.approx(0.065)
    assert limits_of("stretch_3", 0.5).base.acceleration_mps2 == STRETCH_3.base.acceleration_mps2
    with pytest.raises(ParameterError, match=pattern("guard.wrong_speed_scale", value=r"1\.5")):
        Guard(speed_scale=1.5)
    with pytest.raises(ParameterError, match="robot 'tank' is unknown; known: stretch_3"):
        Guard(robot="tank")


def test_a_lifespan_cannot_be_stretched_without_bound() -> None:
    with pytest.raises(ParameterError, match="lifespan_s is 60"):
        Guard(lifespan_s=60.0)
    with pytest.raises(ParameterError, match=pattern("guard.wrong_arm", value="always")):
        Guard(arm="always")  # type: ignore[arg-type]  # a mistake in a launch file
    with pytest.raises(ParameterError, match="max_image_age_s"):
        Guard(max_image_age_s=0.0)
