"""What the kitchen's VLM makes of a subtask that names its thing by words, and of words that may object to it."""

from __future__ import annotations

from contextlib import closing
from typing import Any, cast

import pytest

from nodes.msgs import (
    JOINTS,
    Action,
    Feedback,
    GuardState,
    Reference,
    RobotState,
    Scene,
    SceneDescription,
    SeenObject,
    Subtask,
    Utterance,
)
from nodes.planner.scripted import ScriptedPlanner
from nodes.policy.skill_catalogue import SPECS, catalogue_of
from nodes.vlm.choice.hold import STILL_WAITS
from nodes.vlm.room.vlm import KitchenVLM, SimulatorEyesVLM
from runtime import Simulation, to_ns
from runtime.clock import Clock, to_s
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.handler_latency import Latency
from runtime.message import Envelope, Message, Stamped


def standing(now_ns: int) -> RobotState:
    still = (0.0,) * len(JOINTS)
    return RobotState(
        read_ns=now_ns, position=still, velocity=still, effort=still, base_x_m=0.0, base_y_m=0.0, base_heading_rad=0.0,
        base_v_mps=0.0, base_w_radps=0.0,
    )  # fmt: skip


MUG = SeenObject(
    id="mug-1", label="mug", colour="red", x_m=0.0, y_m=-0.6, z_m=0.5, width_m=0.07, height_m=0.1, u_px=0.0, v_px=0.0
)


class Bench:
    """A VLM that sees one red mug on the table, and what it published."""

    is_virtual = True

    def __init__(self) -> None:
        self.vlm, self.ns = SimulatorEyesVLM(), 1_000_000_000
        self.vlm.clock = cast(Clock, self)
        self.published: list[Message] = []
        for port in (self.vlm.action, self.vlm.said, self.vlm.description):
            port.sink = lambda _, message, __: self.published.append(message)
        vars(self.vlm.shown)["clock"] = self
        self.vlm.shown.push(Stamped(Scene(things=(MUG,)), Envelope("sim/eyes", "eyes", 1, self.ns)))
        self.vlm.remember(standing(self.ns))

    def now_ns(self) -> int:
        return self.ns

    def since_s(self, stamp_ns: int) -> float:
        return to_s(self.ns - stamp_ns)

    def told_to_pick(self, colour: str, label: str) -> None:
        thing = Reference(label=label, colour=colour)
        self.vlm.tick()
        self.vlm.take_subtask(Subtask(id="1", text="pick it up", state="work", skill="pick", things=(thing,)))
        self.vlm.tick()

    @property
    def described(self) -> SceneDescription:
        return [one for one in self.published if isinstance(one, SceneDescription)][-1]

    @property
    def acts(self) -> list[str]:
        return [one.skill for one in self.published if isinstance(one, Action) and one.skill != "look"]


@pytest.mark.parametrize(("colour", "label"), [("red", "mug"), ("crimson", "teacup"), ("", "cup")])
def test_it_acts_on_words_that_name_the_kind_and_the_colour(colour: str, label: str) -> None:
    bench = Bench()
    bench.told_to_pick(colour, label)
    assert bench.acts


@pytest.mark.parametrize(("colour", "label"), [("red", "tankard"), ("red", "whatsit"), ("blue", "mug")])
def test_what_may_be_meant_and_is_not_named_is_asked_about_and_not_touched(colour: str, label: str) -> None:
    bench = Bench()
    bench.told_to_pick(colour, label)
    assert not bench.acts
    assert bench.described.progress == "failed"
    assert {"mug", label} <= set(bench.described.why.replace("“", " ").replace("”", " ").split())


def test_a_success_that_is_not_seen_yet_is_no_reason_to_try_again_at_once() -> None:
    bench = Bench()
    bench.told_to_pick("red", "mug")
    picked = next(one for one in bench.published if isinstance(one, Action) and one.skill == "pick")
    bench.vlm.learn(Feedback(action_id=picked.id, status="success"))
    assert bench.acts == ["pick"]
    bench.ns += 2_000_000_000
    bench.vlm.tick()
    assert bench.acts == ["pick", "pick"]


def test_the_head_stands_still_until_somebody_has_armed_the_robot() -> None:
    pytest.importorskip("onnxruntime")
    with closing(Simulation(KitchenVLM())) as sim:
        turns: list[Action] = sim.record(KitchenVLM.action)
        sim.publish("robot/state", standing(0))
        sim.publish("skills", catalogue_of(SPECS.values()))
        sim.run(seconds=2.0)
        assert turns == []
        sim.publish("guard/state", GuardState(mode="armed", reason="", is_armed=True))
        sim.run(seconds=2.0)
        assert {one.skill for one in turns} == {"look"}


@pytest.mark.parametrize(
    "text", ["No, not that one!", "Nein, nicht die rote!", "Не тот!", "No, put the blue one there"]
)
def test_what_somebody_may_object_to_is_not_gone_on_with_until_somebody_has_said_how(text: str) -> None:
    bench = Bench()
    bench.told_to_pick("red", "mug")
    bench.vlm.listen(Utterance(speaker="Ana", text=text))
    held = bench.acts
    assert held[-1] == "hold"
    for _ in range(60):
        bench.ns += 200_000_000
        bench.vlm.tick()
    assert (bench.acts, bench.described.progress) == (held, "held")
    assert [one.text for one in bench.published if isinstance(one, Utterance)].count(STILL_WAITS) == 1
    bench.told_to_pick("red", "mug")  # by a planner that has heard it
    assert bench.acts == [*held, "pick"]


def test_a_plan_that_was_on_its_way_when_somebody_objected_does_not_answer_them() -> None:
    with closing(Simulation(vlm := SimulatorEyesVLM())) as sim:
        acts: list[Action] = sim.record(SimulatorEyesVLM.action)
        mug = Reference(label="mug", id="mug-1")
        task = Subtask(id="1", text="pick it up", state="work", skill="pick", things=(mug,))
        sim.publish("sim/eyes", Scene(things=(MUG,)))
        sim.publish("robot/state", standing(0))
        sim.publish("subtask", task)
        sim.run(seconds=1.0)
        sim.publish("heard", Utterance(speaker="Ana", text="No, not that one!"))
        sim.run(seconds=1.0)
        vlm.work.hold.objected_ns += (
            1_500_000_000  # as though it had been heard while the next repetition was on its way
        )
        sim.publish("subtask", task)
        sim.run(seconds=1.0)
        assert [one.skill for one in acts] == ["pick", "hold"]
        sim.publish("subtask", task)
        sim.run(seconds=1.0)
        assert [one.skill for one in acts] == ["pick", "hold", "pick"]


def test_a_plan_whose_maker_had_not_heard_the_objection_when_it_began_does_not_answer_it() -> None:
    with closing(Simulation(SimulatorEyesVLM())) as sim:
        acts: list[Action] = sim.record(SimulatorEyesVLM.action)
        mug = Reference(label="mug", id="mug-1")
        task = Subtask(id="1", text="pick it up", state="work", skill="pick", things=(mug,))
        sim.publish("sim/eyes", Scene(things=(MUG,)))
        sim.publish("robot/state", standing(0))
        sim.publish("subtask", task)
        sim.run(seconds=1.0)
        sim.publish("heard", Utterance(speaker="Ana", text="No, not that one!"))
        sim.run(seconds=1.0)
        for listened_s, then in ((0.5, ["pick", "hold"]), (1.5, ["pick", "hold", "pick"])):
            plan = Subtask(
                id="1", text="pick it up", state="work", skill="pick", things=(mug,), listened_ns=to_ns(listened_s)
            )
            sim.publish("subtask", plan)
            sim.run(seconds=1.0)
            assert [one.skill for one in acts] == then


def test_a_slow_planner_says_until_when_it_listened_and_not_when_it_had_thought() -> None:
    latency = {name: Latency.parse(1.5, name) for name in ("tick", "listen")}
    slow = NodeSpec("planner", ScriptedPlanner, {"household": "kitchen"}, latency=latency)
    with closing(Simulation(slow)) as sim:
        told: list[Stamped[Any]] = []
        sim.observe(lambda one: told.append(one) if one.envelope.topic == "subtask" else None)
        sim.publish("skills", catalogue_of(SPECS.values()))
        sim.publish("scene", Scene(things=(MUG,)))
        sim.publish("heard", Utterance(speaker="Ana", text="Pick up the red mug"))
        sim.run(seconds=8.0)
        assert {to_s(one.envelope.published_ns - one.message.listened_ns) for one in told} == {1.5}
