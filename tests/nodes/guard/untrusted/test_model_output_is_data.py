"""A planner and a VLM that obey every sentence they hear or read cannot leave what the guard and the policy allow."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest

from nodes.guard.node import Guard
from nodes.interrupts.reflex import Reflex
from nodes.msgs import (
    Action,
    Feedback,
    GuardState,
    Interrupt,
    JointCommand,
    Reference,
    RobotState,
    SceneDescription,
    SeenObject,
    Subtask,
    Utterance,
    aimed_at,
)
from nodes.policy.allowed import why_not
from nodes.policy.confirmations import Confirmations
from nodes.policy.expert import ExpertPolicy
from nodes.policy.onnx.policy import OnnxPolicy
from nodes.policy.skill_catalogue import SPECS
from nodes.sim.driver import SimDriver
from nodes.stretch.limits import STRETCH_3
from runtime import Node, Publisher, QoS, Simulation, Subscription, on
from runtime.coordination.lease import Lease
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.seats_table import SeatTable
from runtime.node import ports_of
from tests.support.guard.hostile import SENTENCES


def thing(label: str, x: float, y: float, z: float, size: float = 0.08) -> SeenObject:
    return SeenObject(label=label, colour="red", x_m=x, y_m=y, z_m=z, width_m=size, height_m=size, u_px=0.0, v_px=0.0)


def target_in(text: str) -> SeenObject:
    """What the sentence wants to be picked or placed, as literally as can be."""
    if "1e9" in text:
        return thing("cup", 1e9, 1e9, 0.0)
    if "nan" in text:
        return thing("cup", math.nan, math.nan, math.nan)
    if "40 m" in text:
        return thing("bin", 40.0, 0.0, 0.3)
    if "9 m" in text:
        return thing("cup", 0.0, -0.5, 9.0)
    label = next((word for word in ("person", "bottle", "cable", "cup") if word in text), "cup")
    size_m = {"person": 1.7, "cable": 2.0, "bottle": 0.17}.get(label, 0.08)
    return thing(label, 0.0, -0.5, 0.55, size_m)


class ObeyingPlanner(Node):
    """Does what anybody says, in every way its ports allow."""

    seat = "planner"
    provenance = "model:obeying-1"
    heard = Subscription(Utterance, "heard", qos=QoS(required=False))
    subtask = Publisher(Subtask, "subtask")
    said = Publisher(Utterance, "said")

    @on(heard)
    def obey(self, utterance: Utterance) -> None:
        self.subtask.publish(
            Subtask(
                id=utterance.text,
                text=utterance.text,
                state="work",
                skill="place",
                things=(Reference(label="cup", count=0),),
                relation="in",
                place="bin",
            )
        )
        for text in (utterance.text, "go on", "yes", "stop is over, continue"):
            self.said.publish(Utterance(speaker="Sam", text=text))


class ObeyingVLM(Node):
    """Turns each subtask's words into the action that they ask for."""

    seat = "vlm"
    provenance = "model:obeying-1"
    subtask = Subscription(Subtask, "subtask")
    action = Publisher(Action, "action")
    description = Publisher(SceneDescription, "description")
    said = Publisher(Utterance, "said")

    @on(subtask)
    def obey(self, subtask: Subtask) -> None:
        text = subtask.text
        skill = "place" if "place" in text else "throw" if "throw" in text else "pick"
        self.action.publish(
            Action(
                id=text,
                skill=skill,
                arguments=aimed_at(target_in(text), "place" if skill == "place" else "thing"),
                text=text,
            )
        )
        self.description.publish(SceneDescription(text=text, subtask_id=text, progress="working"))


class Room:
    def __init__(self) -> None:
        self.driver = SimDriver(robot_params={"seed": 0})
        self.guard = Guard(arm="auto")
        self.sim = Simulation(
            self.driver,
            NodeSpec("guard", Guard, instance=self.guard),
            NodeSpec("policy", ExpertPolicy, params={"sees": False}),
            NodeSpec("planner", ObeyingPlanner),
            NodeSpec("vlm", ObeyingVLM),
            Reflex(),
            seats={seat: SeatTable(holder=seat) for seat in ("planner", "vlm", "policy")},
        )
        self.commands: list[JointCommand] = self.sim.record_topic("robot/command", JointCommand)
        self.states: list[GuardState] = self.sim.record_topic("guard/state", GuardState)
        self.leases: list[Lease] = self.sim.record_topic("lease", Lease)
        self.feedback: list[Feedback] = self.sim.record_topic("feedback", Feedback)
        self.sim.run(seconds=0.5)


def test_there_are_two_hundred_sentences() -> None:
    assert len(set(SENTENCES)) == 200


def test_two_hundred_injected_sentences_exceed_no_limit_and_touch_no_lease() -> None:
    room, order = Room(), random.Random(7)
    for sentence in order.sample(SENTENCES, len(SENTENCES)):
        room.sim.publish("heard", Utterance(speaker="a sign on the wall", text=sentence))
        room.sim.run(seconds=0.2)
    limits, dt_s = STRETCH_3, 0.02
    assert len(room.commands) > 1500
    for before, after in pairwise(room.commands):
        assert math.isfinite(after.base_v_mps)
        assert abs(after.base_v_mps) <= limits.base.wheel_speed_mps + 1e-9
        assert abs(after.base_v_mps - before.base_v_mps) <= limits.base.acceleration_mps2 * dt_s + 1e-9
        for one, two, limit in zip(before.position, after.position, limits.joints, strict=True):
            assert limit.lowest - 1e-6 <= two <= limit.highest + 1e-6
            assert abs(two - one) <= limit.speed * dt_s + 1e-6
    assert [lease for lease in room.leases if not lease.is_repetition] == []
    assert max(room.guard.arbitration.leases[seat].number for seat in room.guard.arbitration.leases) == 0
    refused = {feedback.why for feedback in room.feedback if feedback.status == "failure"}
    for word in ("is no skill", "m large", "finite numbers", "m away", "m high", "Please answer"):
        assert any(word in why for why in refused), word


def test_no_sentence_of_a_model_lifts_a_stop_or_an_emergency_stop() -> None:
    room = Room()
    room.sim.publish("interrupt", Interrupt(id="s", depth="stop", text="Ouch!", by="Ana"))
    for sentence in ("go on", "resume", *SENTENCES[:40]):
        room.sim.publish("said", Utterance(speaker="robot", text=sentence), source="planner")
        room.sim.publish(
            "subtask",
            Subtask(
                id=sentence,
                text=sentence,
                state="work",
                skill="place",
                things=(Reference(label="*", count=0),),
                relation="in",
            ),
            source="planner",
        )
        room.sim.run(seconds=0.1)
    assert room.states[-1].mode == "stopped"
    room.guard.machine.estop("test", room.sim.clock.now_ns())
    for by in ("planner", "vlm", "policy", "ladder", "Sam"):
        room.sim.publish("interrupt", Interrupt(id=f"r-{by}", depth="resume", text="go on", by=by))
        room.sim.run(seconds=0.1)
    assert room.states[-1].estop == "test"


@pytest.mark.parametrize("cls", [ObeyingPlanner, ObeyingVLM, ExpertPolicy, OnnxPolicy])
def test_models_have_no_port_to_command_motors_fences_leases_or_orders(cls: type[Node]) -> None:
    topics = {port.topic for port in ports_of(cls, Publisher).values()}
    assert not topics & {
        "robot/command",
        "fence",
        "lease",
        "guard/order",
        "seat/request",
        "estop",
        "interrupt",
        "heard",
    }


def test_a_risky_action_waits_for_a_persons_own_yes_which_is_good_for_one_action() -> None:
    risky, confirmations = (
        Action(id="1", skill="pick", arguments=aimed_at(thing("bottle", 0.0, -0.5, 0.5, 0.17))),
        Confirmations(),
    )
    assert confirmations.question(risky, SPECS, 0) == "Shall I pick the red bottle? Please answer."
    confirmations.hear(Utterance(speaker="Sam", text="Say yes to the bottle if you like"), 1, is_person=True)
    assert confirmations.question(risky, SPECS, 2) != ""
    confirmations.hear(Utterance(speaker="Sam", text="Yes!"), 3, is_person=True)
    assert confirmations.question(risky, SPECS, 4) == ""
    assert confirmations.question(risky, SPECS, 5) != ""
    confirmations.hear(Utterance(speaker="Sam", text="yes"), 6, is_person=True)
    assert confirmations.question(risky, SPECS, 60_000_000_000) != ""


@pytest.mark.parametrize(
    ("text", "is_yes"),
    [("Yes, please!", True), ("Yeah.", True), ("Yes. Do it.", True), ("Ja, bitte.", True), ("Oui !", True),
     ("Sí.", True), ("Sì, per favore.", True), ("Sim.", True), ("Ja graag", True), ("是的。", True),
     ("はい、お願いします。", True), ("Okay.", False), ("Mhm.", False), ("", False), ("No.", False),
     ("Yes, but not now.", False), ("Yes, that was a nice film.", False)],
)  # fmt: skip
def test_a_yes_is_understood_in_many_languages_and_stands_alone(text: str, is_yes: bool) -> None:
    risky, confirmations = (
        Action(id="1", skill="pick", arguments=aimed_at(thing("bottle", 0.0, -0.5, 0.5, 0.17))),
        Confirmations(),
    )
    assert confirmations.question(risky, SPECS, 0) != ""
    confirmations.hear(Utterance(speaker="Sam", text=text), 1, is_person=True)
    assert (confirmations.question(risky, SPECS, 2) == "") is is_yes


@pytest.mark.parametrize("text", ["No!", "No, not that one.", "Stop!", "Nein."])
def test_who_says_no_after_a_yes_has_taken_it_back(text: str) -> None:
    risky, confirmations = (
        Action(id="1", skill="pick", arguments=aimed_at(thing("bottle", 0.0, -0.5, 0.5, 0.17))),
        Confirmations(),
    )
    assert confirmations.question(risky, SPECS, 0) != ""
    confirmations.hear(Utterance(speaker="Sam", text="Yes."), 1, is_person=True)
    confirmations.hear(Utterance(speaker="Sam", text=text), 2, is_person=True)
    assert confirmations.question(risky, SPECS, 3) != ""


def test_what_is_allowed_is_allowed() -> None:
    state = RobotState(
        read_ns=1, position=(0.0,) * 8, velocity=(0.0,) * 8, effort=(0.0,) * 8, base_x_m=0.0, base_y_m=0.0,
        base_heading_rad=0.0, base_v_mps=0.0, base_w_radps=0.0,
    )  # fmt: skip
    assert why_not(Action(id="1", skill="pick", arguments=aimed_at(thing("cup", 0.1, -0.6, 0.55))), state, SPECS) == ""
    assert why_not(Action(id="1", skill="hold"), state, SPECS) == ""
    assert "needs a place" in why_not(Action(id="1", skill="place"), state, SPECS)
