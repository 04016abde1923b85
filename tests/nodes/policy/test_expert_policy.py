"""The scripted policy with the real guard and the simulated robot, in virtual time.

Most of them trust the action's position; the last ones look through the simulated head camera.
"""

from __future__ import annotations

import itertools
import math
from typing import Literal

import msgspec
import numpy as np
import pytest

from nodes.guard.node import Guard
from nodes.msgs import (
    Action,
    Feedback,
    GuardState,
    Interrupt,
    JointCommand,
    RobotState,
    SeenObject,
    Utterance,
    aimed_at,
)
from nodes.policy.expert import ExpertPolicy
from nodes.sim.camera import SimCamera
from nodes.sim.driver import SimDriver
from nodes.sim.messages import BodyPart, ObjectTruth, Truth
from nodes.sim.world.table_scene import BIN_XY_M, BIN_Z_M
from nodes.stretch.kinematics import ARM, HEAD_PAN, HEAD_TILT, LIFT, WRIST_YAW, grasp_point, to_odometry
from nodes.stretch.limits import STOW
from runtime import Simulation
from runtime.message import Stamped
from tests.support.sentences import sentence

BIN = SeenObject(
    label="bin",
    colour="teal",
    x_m=BIN_XY_M[0],
    y_m=BIN_XY_M[1],
    z_m=sum(BIN_Z_M) / 2,
    width_m=0.26,
    height_m=BIN_Z_M[1] - BIN_Z_M[0],
    u_px=0.0,
    v_px=0.0,
)


class Kitchen:
    """A graph of driver, guard and policy, and what happened in it."""

    def __init__(self, seed: int = 0, *, sees: bool = False, skills: tuple[str, ...] = ()) -> None:
        self.driver = SimDriver(robot_params={"seed": seed})
        self.policy = ExpertPolicy(sees=sees, skills=skills)
        cameras = [SimCamera()] if sees else []
        self.sim = Simulation(self.driver, Guard(arm="auto"), self.policy, *cameras, seed=seed)
        self.feedback: list[Feedback] = self.sim.record(ExpertPolicy.feedback)
        self.commands: list[JointCommand] = self.sim.record(ExpertPolicy.command)
        self.states: list[RobotState] = self.sim.record(SimDriver.state)
        self.guards: list[GuardState] = self.sim.record(Guard.guard_state)
        self.truths: list[Truth] = self.sim.record(SimDriver.truth)
        self.sim.run(seconds=0.5)

    def thing(self, name: str) -> ObjectTruth:
        return next(thing for thing in self.truths[-1].objects if thing.name == name)

    def seen(self, name: str, *, off: tuple[float, float] = (0.0, 0.0)) -> SeenObject:
        thing = self.thing(name)
        height_m = 2 * (thing.z_m - 0.5)
        return SeenObject(
            label=thing.label,
            colour=thing.colour,
            x_m=thing.x_m + off[0],
            y_m=thing.y_m + off[1],
            z_m=thing.z_m,
            width_m=0.07,
            height_m=height_m,
            u_px=0.0,
            v_px=0.0,
        )

    def act(self, action: Action, seconds: float = 40.0) -> Feedback | None:
        """Publish an action and run until it is over, or for that long."""
        self.sim.publish("action", action)

        def is_over() -> bool:
            return any(f.action_id == action.id and f.status != "running" for f in self.feedback)

        self.sim.run(seconds=seconds, until=is_over)
        last = [feedback for feedback in self.feedback if feedback.action_id == action.id]
        return last[-1] if last and last[-1].status != "running" else None

    def pick(self, name: str, seconds: float = 40.0) -> Feedback | None:
        return self.act(Action(id=f"pick {name}", skill="pick", arguments=aimed_at(self.seen(name))), seconds)

    def place(self, number: int = 0, seconds: float = 40.0) -> Feedback | None:
        return self.act(Action(id=f"place {number}", skill="place", arguments=aimed_at(BIN, "place")), seconds)

    def interrupt(self, depth: str, by: str = "person") -> None:
        assert depth in ("stop", "resume", "replan")
        self.sim.publish("interrupt", Interrupt(id=f"i-{depth}", depth=depth, text=depth, by=by))  # type: ignore[arg-type]  # asserted above


def moved_m(one: ObjectTruth, two: ObjectTruth) -> float:
    return math.dist((one.x_m, one.y_m, one.z_m), (two.x_m, two.y_m, two.z_m))


def test_pick_and_place_put_the_cup_in_the_bin_and_touch_nothing_else() -> None:
    kitchen = Kitchen()
    before = {thing.name: thing for thing in kitchen.truths[-1].objects}
    picked = kitchen.pick("red_cup")
    assert picked is not None
    assert picked.status == "success", picked.why
    placed = kitchen.place()
    assert placed is not None
    assert placed.status == "success", placed.why
    kitchen.sim.run(seconds=1.5)
    assert kitchen.thing("red_cup").is_in_bin
    others = [thing for thing in kitchen.truths[-1].objects if thing.name != "red_cup"]
    assert max(moved_m(thing, before[thing.name]) for thing in others) < 0.005


@pytest.mark.long
def test_things_are_let_go_beside_each_other_in_the_bin() -> None:
    kitchen = Kitchen()
    ways_m: list[float] = []
    for number, name in enumerate(("red_cup", "green_cup", "white_cup")):
        kitchen.pick(name)
        placed = kitchen.place(number)
        assert placed is not None
        assert placed.status == "success", placed.why
        state = kitchen.states[-1]
        ways_m.append(math.hypot(*grasp_point(state.position)[:2]))
    kitchen.sim.run(seconds=1.5)
    assert all(kitchen.thing(name).is_in_bin for name in ("red_cup", "green_cup", "white_cup"))
    assert min(abs(one - other) for one, other in itertools.combinations(ways_m, 2)) > 0.05


def test_starting_moves_nothing_and_says_nothing() -> None:
    kitchen = Kitchen()
    kitchen.sim.run(seconds=2.0)
    assert kitchen.commands == []
    assert max(abs(a - b) for a, b in zip(kitchen.states[-1].position, STOW, strict=True)) < 0.01


def test_the_first_command_keeps_arm_and_base_where_they_are() -> None:
    kitchen = Kitchen()
    kitchen.pick("red_cup", seconds=0.2)
    first = kitchen.commands[0]
    assert abs(first.position[ARM] - STOW[ARM]) < 0.01
    assert abs(first.base_v_mps) <= 0.3


def test_another_pick_in_mid_lowering_goes_up_first_and_then_succeeds() -> None:
    kitchen = Kitchen()
    before = {thing.name: thing for thing in kitchen.truths[-1].objects}
    kitchen.sim.publish("action", Action(id="one", skill="pick", arguments=aimed_at(kitchen.seen("red_cup"))))
    kitchen.sim.run(seconds=40.0, until=lambda: any("lowering" in f.why for f in kitchen.feedback))
    kitchen.sim.run(seconds=1.2)
    picked = kitchen.pick("green_cup")
    assert [(f.status, f.code) for f in kitchen.feedback if f.action_id == "one"][-1] == ("failure", "replaced")
    assert picked is not None
    assert picked.status == "success", picked.why
    assert moved_m(kitchen.thing("red_cup"), before["red_cup"]) < 0.01


def test_a_pick_while_holding_puts_the_held_cup_back_first() -> None:
    kitchen = Kitchen()
    before = kitchen.thing("blue_cup")
    kitchen.pick("blue_cup")
    kitchen.sim.run(seconds=1.0)
    picked = kitchen.pick("green_cup", seconds=60.0)
    assert picked is not None
    assert picked.status == "success", picked.why
    assert moved_m(kitchen.thing("blue_cup"), before) < 0.02


def test_placing_the_held_cup_on_itself_puts_it_back() -> None:
    kitchen = Kitchen()
    before = kitchen.thing("blue_cup")
    target = kitchen.seen("blue_cup")
    kitchen.pick("blue_cup")
    kitchen.place(seconds=1.0)
    back = kitchen.act(Action(id="back", skill="place", arguments=aimed_at(target, "place")))
    assert back is not None
    assert back.status == "success", back.why
    assert moved_m(kitchen.thing("blue_cup"), before) < 0.02


def test_what_touched_the_table_too_early_is_set_down_higher_after_the_way_back() -> None:
    kitchen = Kitchen()
    picked = kitchen.pick("red_cup")
    assert picked is not None
    assert picked.status == "success", picked.why
    cup = kitchen.seen("red_cup")
    low_m = 0.5 - 0.012  # the table is said to be lower than it is
    spot = SeenObject(
        label="table", colour="", x_m=cup.x_m, y_m=cup.y_m, z_m=low_m, width_m=0.0, height_m=0.0, u_px=0.0, v_px=0.0,
        is_place=True,
    )  # fmt: skip
    on_table = Action(id="on table", skill="place", arguments=aimed_at(spot, "place"))
    kitchen.sim.publish("action", on_table)
    touches = 0

    def is_stopped() -> bool:
        return kitchen.guards[-1].mode == "stopped"

    def is_over() -> bool:
        return kitchen.feedback[-1].action_id == on_table.id and kitchen.feedback[-1].status != "running"

    kitchen.sim.run(seconds=15.0, until=lambda: is_stopped() or is_over())
    while is_stopped() and touches < 4:
        assert kitchen.guards[-1].stopped_by == "contact", kitchen.guards[-1].reason
        touches += 1
        kitchen.sim.run(seconds=5.0, until=lambda: kitchen.guards[-1].at_rest_ns > 0)
        kitchen.sim.run(seconds=0.5)
        kitchen.interrupt("resume")
        kitchen.sim.run(seconds=0.5)
        assert kitchen.guards[-1].mode == "retreating"
        kitchen.sim.run(seconds=10.0, until=lambda: kitchen.guards[-1].mode != "retreating")
        assert kitchen.states[-1].is_grasping, "nothing is let go on the way back"
        kitchen.sim.run(seconds=15.0, until=lambda: is_stopped() or is_over())
    answer = kitchen.feedback[-1]
    assert touches > 0, "without a touch nothing is shown"
    assert answer.status == "success", answer.why
    kitchen.sim.run(seconds=1.0)
    cup = kitchen.seen("red_cup")
    assert cup.z_m == pytest.approx(0.5 + cup.height_m / 2, abs=0.01)


def test_a_cup_that_is_not_there_is_a_failure_with_a_reason() -> None:
    kitchen = Kitchen()
    there = kitchen.seen("red_cup")
    gap = SeenObject(
        label="cup",
        colour="pink",
        x_m=0.40,
        y_m=-0.47,
        z_m=there.z_m,
        width_m=0.07,
        height_m=0.1,
        u_px=0.0,
        v_px=0.0,
    )
    failed = kitchen.act(Action(id="gap", skill="pick", arguments=aimed_at(gap)))
    assert failed is not None
    assert (failed.status, failed.why) == ("failure", f"{sentence('policy.nothing_between_fingers')} at the pink cup")


def test_a_cup_that_no_arm_gets_to_is_told_by_a_code() -> None:
    kitchen = Kitchen()
    far = kitchen.seen("red_cup", off=(0.0, -0.6))
    told = kitchen.act(Action(id="far", skill="pick", arguments=aimed_at(far)))
    assert told is not None
    assert (told.status, told.code) == ("failure", "out_of_reach"), told.why


def test_place_with_an_empty_gripper_fails() -> None:
    failed = Kitchen().place()
    assert failed is not None
    assert (failed.status, failed.why) == ("failure", sentence("policy.nothing_to_place"))


def test_a_place_cut_off_while_the_gripper_opens_is_done_when_it_is_asked_for_again_and_once_only() -> None:
    kitchen = Kitchen()
    kitchen.pick("red_cup")
    kitchen.sim.publish("action", Action(id="place 0", skill="place", arguments=aimed_at(BIN, "place")))
    kitchen.sim.run(seconds=40.0, until=lambda: not kitchen.states[-1].is_grasping)
    kitchen.act(Action(id="hold", skill="hold"))
    assert [one.status for one in kitchen.feedback if one.action_id == "place 0"][-1] == "failure", "it was cut off"
    kitchen.sim.run(seconds=2.0)
    assert kitchen.thing("red_cup").is_in_bin
    answers = [kitchen.place(1), kitchen.pick("green_cup"), kitchen.place(2), kitchen.place(3)]
    assert [one.status for one in answers if one is not None] == ["success"] * 3 + ["failure"]


def test_a_stop_in_mid_pick_holds_and_resuming_finishes_the_pick() -> None:
    kitchen = Kitchen()
    kitchen.pick("red_cup", seconds=3.0)
    kitchen.interrupt("stop")
    kitchen.sim.run(seconds=2.0)
    held = kitchen.states[-1]
    kitchen.sim.run(seconds=35.0)  # longer than any phase may take
    state = kitchen.states[-1]
    assert abs(state.base_x_m - held.base_x_m) < 0.002
    assert abs(state.position[LIFT] - held.position[LIFT]) < 0.002
    kitchen.interrupt("resume")
    kitchen.sim.run(
        seconds=40.0,
        until=lambda: any(f.status != "running" for f in kitchen.feedback),
    )
    assert kitchen.feedback[-1].status == "success"


def test_a_stop_while_carrying_keeps_the_cup() -> None:
    kitchen = Kitchen()
    kitchen.pick("red_cup")
    kitchen.place(seconds=2.0)
    kitchen.interrupt("stop")
    kitchen.sim.run(seconds=5.0)
    assert kitchen.states[-1].is_grasping
    kitchen.interrupt("resume")
    kitchen.sim.run(
        seconds=40.0, until=lambda: any(f.status == "success" and "place" in f.why for f in kitchen.feedback)
    )
    kitchen.sim.run(seconds=1.5)
    assert kitchen.thing("red_cup").is_in_bin


def test_hold_stops_where_the_robot_is() -> None:
    kitchen = Kitchen()
    kitchen.pick("red_cup", seconds=3.0)
    held = kitchen.act(Action(id="hold", skill="hold"))
    assert held is not None
    assert held.status == "success"
    kitchen.sim.run(seconds=2.0)
    one = kitchen.states[-1]
    kitchen.sim.run(seconds=2.0)
    two = kitchen.states[-1]
    assert math.dist(one.position, two.position) < 0.005
    assert abs(one.base_x_m - two.base_x_m) < 0.001


def test_a_replan_sets_the_action_aside_and_holds() -> None:
    kitchen = Kitchen()
    kitchen.pick("red_cup", seconds=3.0)
    kitchen.interrupt("replan")
    kitchen.sim.run(seconds=2.0)
    assert kitchen.feedback[-1].status == "failure"
    assert kitchen.feedback[-1].why == "set aside: person said 'replan'"
    one = kitchen.states[-1].base_x_m
    kitchen.sim.run(seconds=1.0)
    assert abs(kitchen.states[-1].base_x_m - one) < 0.001


def test_the_policys_own_image_corrects_a_target_that_is_3_cm_off() -> None:
    kitchen = Kitchen(seed=1, sees=True)
    truth = kitchen.thing("green_cup")
    action = Action(id="off", skill="pick", arguments=aimed_at(kitchen.seen("green_cup", off=(0.03, -0.03))))
    picked = kitchen.act(action)
    assert picked is not None
    assert picked.status == "success", picked.why
    assert kitchen.policy.progress is not None
    held = kitchen.policy.progress.held
    assert held is not None
    assert math.dist((held.x_m, held.y_m), (truth.x_m, truth.y_m)) < 0.01


def test_a_place_that_the_image_shows_empty_fails_before_the_gripper_goes_down() -> None:
    kitchen = Kitchen(seed=1, sees=True)
    there = kitchen.thing("red_cup")
    corner_x_m = 0.40 if there.x_m < 0.0 else -0.48  # the table's corner that is farther from it
    empty = kitchen.seen("red_cup", off=(corner_x_m - there.x_m, -0.44 - there.y_m))
    failed = kitchen.act(Action(id="gone", skill="pick", arguments=aimed_at(empty)))
    assert failed is not None
    assert (failed.status, failed.why) == ("failure", sentence("policy.is_not_there", what="red cup"))
    assert not any("lowering" in feedback.why for feedback in kitchen.feedback)


def test_commands_carry_the_age_of_the_newest_image_looked_at() -> None:
    kitchen = Kitchen(seed=1, sees=True)
    ages_s: list[float] = []

    def note(stamped: Stamped[JointCommand]) -> None:
        envelope = stamped.envelope
        if envelope.topic == "command" and envelope.begun_ns("image"):
            ages_s.append((envelope.published_ns - envelope.begun_ns("image")) * 1e-9)

    kitchen.sim.observe(note)
    kitchen.pick("green_cup")
    assert len(ages_s) > 100
    assert max(ages_s) < 0.25


@pytest.mark.parametrize(("skill", "moving", "other"), [("nod", HEAD_TILT, HEAD_PAN), ("shake", HEAD_PAN, HEAD_TILT)])
def test_a_gesture_of_the_head_moves_the_head_alone_and_ends_where_it_began(
    skill: Literal["nod", "shake"], moving: int, other: int
) -> None:
    kitchen = Kitchen()
    begin = kitchen.states[-1].position
    done = kitchen.act(Action(id=skill, skill=skill), seconds=10.0)
    assert done is not None
    assert done.status == "success", done.why
    kitchen.sim.run(seconds=1.0)
    track = np.array([state.position for state in kitchen.states])
    turns = np.diff(np.sign(np.diff(track[:, moving])[np.abs(np.diff(track[:, moving])) > 1e-3]))
    assert np.ptp(track[:, moving]) > 0.15
    assert np.count_nonzero(turns) >= 3  # there and back, twice
    assert np.ptp(track[:, other]) < 0.02
    assert np.ptp(track[:, :6], axis=0).max() < 0.02
    assert kitchen.states[-1].position == pytest.approx(begin, abs=0.06)


def test_pointing_turns_the_closed_gripper_towards_the_thing() -> None:
    kitchen = Kitchen()
    thing = kitchen.seen("red_cup")
    done = kitchen.act(Action(id="point", skill="point", arguments=aimed_at(thing)), seconds=20.0)
    assert done is not None
    assert done.status == "success", done.why
    kitchen.sim.run(seconds=0.5)
    state = kitchen.states[-1]
    base = (state.base_x_m, state.base_y_m, state.base_heading_rad)
    tip = to_odometry(*base, grasp_point(state.position))
    wrist = to_odometry(*base, np.array([0.0, -0.16 - state.position[ARM], tip[2]]))
    towards = np.array([thing.x_m, thing.y_m]) - wrist[:2]
    along = (tip - wrist)[:2]
    angle = abs(math.atan2(along[0] * towards[1] - along[1] * towards[0], float(along @ towards)))
    assert angle < 0.15
    assert state.position[WRIST_YAW] != pytest.approx(STOW[WRIST_YAW], abs=0.3)
    assert math.dist(tip, (thing.x_m, thing.y_m, thing.z_m)) > 0.1  # without touching it


def giving(name: str = "purple_ball") -> tuple[Kitchen, Action]:
    """The robot holds a thing, a person's open hand is beside it, and the action that sets the one onto the other."""
    kitchen = Kitchen(skills=("nodes.policy.hand_over:HAND_OVER",))
    picked = kitchen.pick(name)
    assert picked is not None
    assert picked.status == "success", picked.why
    x_m = kitchen.thing(name).x_m - 0.25
    hand = BodyPart(part="hand", x_m=x_m, y_m=-0.62, z_m=0.66, yaw_rad=math.pi / 2, gesture="open")
    kitchen.sim.publish("sim/body", hand)
    palm = SeenObject(
        label="hand", colour="", x_m=x_m, y_m=-0.60, z_m=0.676, width_m=0.0, height_m=0.0, u_px=0.0, v_px=0.0,
        is_place=True,
    )  # fmt: skip
    return kitchen, Action(id="give 1", skill="hand_over", arguments=aimed_at(palm, "person"))


def test_what_is_held_is_given_into_an_open_hand_after_a_yes_and_no_hand_is_touched() -> None:
    kitchen, give = giving()
    asked = kitchen.act(give)
    assert asked is not None
    assert (asked.status, asked.why) == ("failure", "Shall I hand over what I hold? Please answer.")
    assert kitchen.thing("purple_ball").held_by == "robot"
    kitchen.sim.publish("heard", Utterance(speaker="Ana", text="Yes"))
    kitchen.sim.run(seconds=0.1)
    given = kitchen.act(Action(id="give 2", skill="hand_over", arguments=give.arguments))
    assert given is not None
    assert given.status == "success", given.why
    kitchen.sim.run(seconds=3.0)
    assert kitchen.thing("purple_ball").held_by == "person"
    assert not any(truth.touched for truth in kitchen.truths)


def test_an_empty_gripper_gives_nothing() -> None:
    kitchen, give = giving()
    kitchen.sim.publish("heard", Utterance(speaker="Ana", text="Yes"))
    kitchen.place()
    kitchen.act(give)
    kitchen.sim.publish("heard", Utterance(speaker="Ana", text="Yes"))
    kitchen.sim.run(seconds=0.1)
    told = kitchen.act(Action(id="give 2", skill="hand_over", arguments=give.arguments))
    assert told is not None
    assert told.why == sentence("policy.nothing_to_hand_over")


def test_a_kind_without_a_word_is_picked_by_its_place_after_one_yes() -> None:
    kitchen = Kitchen(sees=True)
    seen = kitchen.seen("orange_block")
    stapler = msgspec.structs.replace(seen, label="stapler", colour="black")  # type: ignore[type-var]  # a Struct
    asked = kitchen.act(Action(id="first", skill="pick", arguments=aimed_at(stapler)))
    assert asked is not None
    assert (asked.status, asked.code) == ("failure", "consent")
    kitchen.sim.publish("heard", Utterance(speaker="Ana", text="Yes"))
    kitchen.sim.run(seconds=0.2)
    done = kitchen.act(Action(id="second", skill="pick", arguments=aimed_at(stapler)))
    assert done is not None
    assert done.status == "success", done.why
    assert kitchen.states[-1].is_grasping
    again = kitchen.act(Action(id="third", skill="place", arguments=aimed_at(BIN, "place")))
    assert again is not None
    assert again.status == "success", again.why
    empty = kitchen.act(Action(id="fourth", skill="pick", arguments=aimed_at(stapler)))  # nothing is there any more
    assert empty is not None
    assert empty.status == "failure"
    assert empty.code != "consent"  # it is asked about once


def test_the_head_alone_looks_round_and_slowly() -> None:
    kitchen = Kitchen()
    done = kitchen.act(Action(id="round", skill="look_round"), seconds=30.0)
    assert done is not None
    assert done.status == "success", done.why
    track = np.array([state.position for state in kitchen.states])
    times_s = np.array([state.read_ns for state in kitchen.states]) * 1e-9
    assert np.ptp(track[:, HEAD_PAN]) > 1.5
    assert np.ptp(track[:, :6], axis=0).max() < 0.02
    assert np.abs(np.diff(track[:, HEAD_PAN]) / np.diff(times_s)).max() < 0.9
