"""The arms of the experiment: who hears what and when; and that the fair baseline is a fair one."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from bench.interruptions.command import LAUNCH
from nodes.evaluation.arms import (
    ARMS,
    REGIMES,
    SWEEPS,
    AnsweringPlanner,
    Arm,
    ArmByCondition,
    RoutedReflex,
    changes_of,
)
from nodes.guard.node import Guard
from nodes.msgs import (
    Action,
    Feedback,
    GuardState,
    Interrupt,
    JointCommand,
    RobotState,
    RunningTrial,
    SeenObject,
    Subtask,
    Utterance,
    aimed_at,
)
from nodes.sim.messages import Truth
from nodes.sim.world.table_scene import BIN_XY_M
from runtime import Node, Publisher, Simulation, every, to_ns
from runtime.errors import UserError
from runtime.launch.file import check, load
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.handler_latency import Latency
from runtime.launch.tables.seats_table import SeatTable
from runtime.message import Message
from tests.support.robots.still_robot import StillRobot
from tests.support.standing import HOME


def pick_of(thing: SeenObject | None) -> Action:
    return Action(id="a1", skill="pick", arguments=aimed_at(thing), text="picking up the blue cup")


PICK = pick_of(None)
END = Feedback(action_id="a1", status="success")


class Drive(Node):
    """Drives ahead."""

    seat = "policy"
    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        self.command.publish(JointCommand(position=HOME, base_v_mps=0.2))


class Notes:
    """When which words reached whom."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.kept: dict[str, list[Any]] = {
            "reflex": simulation.record_topic("heard/reflex", Utterance),
            "planner": simulation.record_topic("heard/planner", Utterance),
            "vlm": simulation.record_topic("heard/vlm", Utterance),
            "ends": simulation.record_topic("feedback/vlm", Feedback),
            "interrupts": simulation.record_topic("interrupt", Interrupt),
        }

    def texts(self, who: str) -> list[str]:
        return [one.text for one in self.kept[who]]


def alone(holds: str, *before: tuple[str, Message], text: str = "Not the blue one", hand_on_s: float = 0.0) -> Notes:
    """The arm's node hears the text after these messages."""
    latency = {"hand_on": Latency(hand_on_s, hand_on_s)} if hand_on_s else {}
    notes = Notes(Simulation(NodeSpec("arm", Arm, {"holds": holds}, latency=latency), seed=1))
    for topic, message in (*before, ("heard", Utterance(speaker="Sam", text=text))):
        notes.simulation.publish(topic, message)
        notes.simulation.run(0.01)
    return notes


def test_every_arm_has_a_graph_that_fits_under_every_latency() -> None:
    path = LAUNCH
    for arm in ARMS:
        for regime in REGIMES:
            check(load(path, overrides=changes_of(arm, regime, recogniser_s=0.54)))


def test_an_unknown_arm_or_regime_is_told() -> None:
    with pytest.raises(UserError, match=r"arm 'E': known: A"):
        changes_of("E")
    with pytest.raises(UserError, match=r"regime 'mars': known: cloud"):
        changes_of("A", "mars")
    with pytest.raises(UserError, match=r"holds is 'back'"):
        Arm("back")


def test_in_a_everybody_hears_at_once() -> None:
    notes = alone("nothing", ("action", PICK))
    assert [notes.texts(who) for who in ("reflex", "planner", "vlm")] == [["Not the blue one"]] * 3


def test_in_a_study_the_condition_of_the_trial_that_runs_says_how_words_are_held() -> None:
    node = NodeSpec("arm", ArmByCondition, {"holds_in": {"one": "nothing", "two": "cancel"}})
    notes = Notes(Simulation(node, seed=1))
    interrupts = []
    for trial in (
        RunningTrial(number=1, condition="two"), RunningTrial(), RunningTrial(number=2, condition="one"),
    ):  # fmt: skip
        notes.simulation.publish("study/running", trial)
        notes.simulation.publish("heard", Utterance(speaker="Sam", text="Not the blue one"))
        notes.simulation.run(0.01)
        interrupts.append(len(notes.kept["interrupts"]))
    assert interrupts == [1, 1, 1]
    assert notes.texts("vlm") == ["Not the blue one"] * 3  # the first of them when its trial was over
    with pytest.raises(UserError, match=r"holds_in.two is 'back'; known: blocking"):
        ArmByCondition({"two": "back"})


def test_in_b_words_wait_for_the_end_of_the_action_and_the_vlm_for_a_round_of_the_planner() -> None:
    notes = alone("blocking", ("action", PICK), hand_on_s=0.8)
    notes.simulation.run(3.0)
    assert [notes.texts(who) for who in ("reflex", "planner", "vlm")] == [[], [], []]
    notes.simulation.publish("feedback", END)
    notes.simulation.run(0.5)
    assert [notes.texts(who) for who in ("reflex", "planner", "vlm")] == [["Not the blue one"]] * 2 + [[]]
    assert notes.kept["ends"] == []
    notes.simulation.run(0.5)
    assert notes.texts("vlm") == ["Not the blue one"]
    assert notes.kept["ends"] == [END]


def test_in_b_without_an_action_under_way_words_wait_for_nothing() -> None:
    assert alone("blocking").texts("vlm") == ["Not the blue one"]


@pytest.mark.parametrize(("text", "is_heard"), [("Stop!", True), ("Not the blue one", False)])
def test_the_spotter_lets_stops_through_and_nothing_else(text: str, is_heard: bool) -> None:
    assert alone("spotter", ("action", PICK), text=text).texts("reflex") == ([text] if is_heard else [])


def test_a_stopped_robot_hears_at_once_in_b() -> None:
    stopped = GuardState(mode="stopped", reason="contact: base")
    notes = alone("blocking", ("action", PICK), ("guard/state", stopped), text="All right, go on")
    assert notes.texts("reflex") == ["All right, go on"]


def test_in_c_the_middle_policy_hears_nothing() -> None:
    notes = alone("two-rates")
    assert [notes.texts(who) for who in ("reflex", "planner", "vlm")] == [["Not the blue one"]] * 2 + [[]]


def test_what_words_point_at_is_named_for_a_planner_that_does_not_see_the_action() -> None:
    cup = SeenObject(
        label="cup", colour="blue", x_m=0.0, y_m=-0.6, z_m=0.75, width_m=0.08, height_m=0.1, u_px=80, v_px=60
    )
    notes = alone("cancel", ("action", pick_of(cup)), text="Not that one")
    assert notes.texts("planner") == ["No, not the blue cup"]


def test_words_that_wait_mean_what_they_meant_when_they_were_said() -> None:
    cups = [
        SeenObject(label="cup", colour=colour, x_m=0.0, y_m=-0.6, z_m=0.75, width_m=0.08, height_m=0.1, u_px=8, v_px=6)
        for colour in ("blue", "red")
    ]
    notes = alone("blocking", ("action", pick_of(cups[0])), text="Not that one")
    for topic, message in (("feedback", END), ("action", pick_of(cups[1]))):
        notes.simulation.publish(topic, message)
        notes.simulation.run(0.01)
    assert notes.texts("planner") == notes.texts("vlm") == ["No, not the blue cup"]


@pytest.mark.parametrize("text", ["Not the blue one", "Mhm", "Put the ball in the bin"])
def test_in_b_plus_every_utterance_replans_and_the_planner_begins_at_once(text: str) -> None:
    notes = alone("cancel", text=text)
    assert [(one.depth, one.by) for one in notes.kept["interrupts"]] == [("replan", "Sam")]
    assert notes.texts("planner") == [text], "without waiting for anything"


def test_in_b_plus_the_vlm_hears_with_the_plan_and_not_sooner() -> None:
    notes = alone("cancel")
    notes.simulation.run(1.0)
    assert notes.texts("vlm") == []
    notes.simulation.publish("subtask", Subtask(id="s1", text="", state="work"))
    notes.simulation.run(0.01)
    assert notes.texts("vlm") == ["Not the blue one"]


def test_in_b_plus_a_stop_goes_the_way_that_it_goes_in_a() -> None:
    notes = alone("cancel", text="Stop!")
    assert (notes.texts("reflex"), notes.kept["interrupts"]) == (["Stop!"], [])


def held_after_ns(holds: str, text: str) -> int:
    """From the word to the guard braking a robot that drives."""
    simulation = Simulation(
        NodeSpec("arm", Arm, {"holds": holds}),
        NodeSpec("reflex", RoutedReflex, remap={"heard": "heard/reflex"}),
        NodeSpec("policy", Drive),
        NodeSpec("guard", Guard, {"arm": "auto"}),
        StillRobot(),
        seats={"policy": SeatTable(holder="policy")},
    )
    states: list[GuardState] = simulation.record_topic("guard/state", GuardState)
    simulation.run(1.003)
    assert states[-1].mode == "moving"
    said_ns = simulation.clock.now_ns()
    simulation.publish("heard", Utterance(speaker="Sam", text=text))
    simulation.run(0.5)
    held_ns = [state.held_ns for state in states if state.held_ns >= said_ns]
    assert held_ns, "the guard never held"
    return held_ns[0] - said_ns


def test_b_plus_holds_within_the_latency_of_a_stop_in_a() -> None:
    assert held_after_ns("cancel", "Not the blue one") <= held_after_ns("nothing", "Stop!")


def test_b_plus_has_the_same_understanding_as_a() -> None:
    graphs = [load(LAUNCH, overrides=changes_of(arm)).graph.nodes for arm in ("A", "B+")]
    ours, theirs = [{name: (spec.cls, spec.params) for name, spec in nodes.items()} for nodes in graphs]
    assert {name for name in ours | theirs if ours.get(name) != theirs.get(name)} == {"arm"}
    latencies = [{name: spec.latency for name, spec in nodes.items() if spec.latency} for nodes in graphs]
    assert latencies[0] == latencies[1]


@pytest.mark.parametrize("regime", [*REGIMES, *(regime for regimes in SWEEPS.values() for regime in regimes)])
def test_the_graph_fits_under_all_latencies_and_rates(regime: str) -> None:
    assert load(LAUNCH, overrides=changes_of("B+", regime)).graph.problems() == []


PLANS_AFTER_S = 0.9


@pytest.mark.parametrize("later_s", [0.0, 1.4], ids=["between two rounds", "in the midst of a round"])
def test_b_plus_replans_at_once_keeps_what_is_in_the_hand_and_goes_on_with_an_unchanged_plan_as_it_was(
    later_s: float,
) -> None:
    """Small talk while the blue cup is carried to the bin."""
    latency = f"{{listen={PLANS_AFTER_S},tick={PLANS_AFTER_S}}}"
    launch = load(LAUNCH, overrides=(*changes_of("B+"), f"planner.latency={latency}"))
    kept = [spec for name, spec in launch.graph.nodes.items() if name != "recorder"]
    simulation = Simulation(*kept, seed=1, seats=launch.seats, links=launch.links)
    actions: list[Action] = simulation.record_topic("action", Action)
    states: list[RobotState] = simulation.record_topic("robot/state", RobotState)
    guard: list[GuardState] = simulation.record_topic("guard/state", GuardState)
    plans_ns: list[int] = []
    simulation.observe(
        lambda stamped: plans_ns.append(stamped.envelope.published_ns) if stamped.envelope.topic == "subtask" else None
    )
    try:
        simulation.run(60.0, until=lambda: bool(actions) and actions[-1].skill == "place")
        told = len(plans_ns)
        simulation.run(5.0, until=lambda: len(plans_ns) > told)  # no round of the planner is under way then
        simulation.run(later_s)  # one begins every 2 s and takes 0.9 s
        plan = simulation.latest("subtask")
        assert states[-1].is_grasping
        assert guard[-1].mode == "moving"
        said_ns, number = simulation.clock.now_ns(), (len(actions), len(states), len(guard))
        simulation.publish("heard", Utterance(speaker="Sam", text="Mhm"), source="person")
        simulation.run(PLANS_AFTER_S + 0.05)
        again = simulation.latest("subtask")
        held_until = len(states)
        simulation.run(30.0, until=lambda: not states[-1].is_grasping)
        truth = simulation.latest("sim/truth")
    finally:
        simulation.close()
    assert any(state.mode == "holding" for state in guard[number[2] :]), "it held"
    answered_ns = next(at_ns for at_ns in plans_ns if at_ns > said_ns)
    assert answered_ns - said_ns == pytest.approx(to_ns(PLANS_AFTER_S), abs=to_ns(0.01)), "one round"
    assert isinstance(plan, Subtask)
    assert isinstance(again, Subtask)
    same: Subtask = msgspec.structs.replace(plan, listened_ns=again.listened_ns)  # type: ignore[type-var]  # a Struct
    assert again == same, "the plan has not changed"
    assert all(state.is_grasping for state in states[number[1] : held_until]), "it kept the cup while it held"
    assert {action.skill for action in actions[number[0] :]} <= {"place"}, "nothing was grasped again"
    assert isinstance(truth, Truth)
    cup = next(one for one in truth.objects if one.name == "blue_cup")
    assert math.dist((cup.x_m, cup.y_m), BIN_XY_M) < 0.2, "it was let go over the bin"


def test_the_planner_of_all_arms_answers_words_that_change_nothing() -> None:
    simulation = Simulation(AnsweringPlanner(), seed=1)
    plans = simulation.record_topic("subtask", Subtask)
    simulation.publish("heard", Utterance(speaker="Sam", text="Put the cups in the bin"))
    simulation.run(0.01)
    before = len(plans)
    simulation.publish("heard", Utterance(speaker="Sam", text="Mhm"))
    simulation.run(0.01)
    assert plans[before:] == plans[before - 1 : before], "the same plan, told at once"
