"""Claims about `nodes/vlm/local.py` and `nodes/vlm/eyes/poses.py`."""

from __future__ import annotations

import math
from typing import Literal, cast

import msgspec
import mujoco
import numpy as np
import pytest

from nodes.msgs import (
    JOINTS,
    Action,
    Feedback,
    GuardState,
    Image,
    Interrupt,
    Reference,
    RobotState,
    Scene,
    SceneDescription,
    SeenObject,
    Subtask,
    Utterance,
    aimed_at,
)
from nodes.policy.hand_over import HAND_OVER
from nodes.policy.skill_catalogue import SPECS, catalogue_of
from nodes.sim.camera import FARTHEST_M
from nodes.sim.rendering.renderer import RayRenderer
from nodes.stretch import kinematics as k
from nodes.stretch.body import BODY
from nodes.stretch.limits import STOW
from nodes.vlm.belief import TableBelief
from nodes.vlm.choice.giving_up import HAND_WITHIN_S, MOST_TRIES
from nodes.vlm.choice.hold import LooksRound
from nodes.vlm.eyes.poses import pose_at
from nodes.vlm.local import LocalVLM
from runtime import ParameterError
from runtime.clock import Clock, to_s
from runtime.message import Envelope, Message, Stamped
from tests.support.sentences import pattern, sentence
from tests.support.table import build_scene

CUPS = Subtask(
    id="task-1.0",
    text="Put every cup in the bin",
    state="work",
    skill="place",
    things=(Reference(label="cup", count=0),),
    relation="in",
    place="bin",
)
PAN, TILT = k.look_at((0.1, -0.65, 0.5), 0.0, 0.0, 0.0)
POSITION = (*STOW[:6], PAN, TILT)


def state(read_ns: int, position: tuple[float, ...] = POSITION, base_x_m: float = 0.0) -> RobotState:
    zeros = (0.0,) * len(JOINTS)
    return RobotState(
        read_ns=read_ns, position=position, velocity=zeros, effort=zeros, base_x_m=base_x_m, base_y_m=0.0,
        base_heading_rad=0.0, base_v_mps=0.0, base_w_radps=0.0,
    )  # fmt: skip


def turned(axis: int, angle_rad: float) -> tuple[float, ...]:
    """A quaternion: about x (1), y (2) or z (3)."""
    return (math.cos(angle_rad / 2), *(math.sin(angle_rad / 2) * (axis == one) for one in (1, 2, 3)))


def picture(
    hand_m: tuple[float, float, float] | None = None,
    down_rad: float = 0.0,
    cup_m: tuple[float, float, float] | None = None,
    lies_rad: float = 0.0,
) -> Image:
    """The table of seed 0; with a person's hand over it that points so far down, or the blue cup there."""
    scene = build_scene(0)
    model = mujoco.MjModel.from_xml_string(scene.xml)
    data = mujoco.MjData(model)
    for name, value in zip(JOINTS, POSITION, strict=True):
        if name != "gripper":
            data.qpos[model.joint(name).qposadr[0]] = value
    if hand_m is not None:
        hand = model.body("hand").mocapid[0]
        data.mocap_pos[hand] = hand_m
        mujoco.mju_mulQuat(data.mocap_quat[hand], turned(3, math.pi / 2), turned(2, down_rad))  # its arm is behind it
    if cup_m is not None:
        cup = model.joint("blue_cup_free").qposadr[0]
        data.qpos[cup : cup + 7] = (*cup_m, *turned(1, lies_rad))
    mujoco.mj_forward(model, data)
    camera = RayRenderer(model, "head", 160, 120, FARTHEST_M)
    rgb, depth = camera.render(data)
    return Image(camera="head", captured_ns=0, rgb=rgb, depth_m=depth, focal_px=camera.focal_px)


PICTURE = picture()
CATALOGUE = catalogue_of(SPECS.values())


class Bench:
    """A VLM at a table, and what it published."""

    def __init__(self) -> None:
        self.vlm = LocalVLM()
        self.belief = cast(TableBelief, self.vlm.work.belief)
        self.ns = 1_000_000_000
        self.vlm.clock = cast(Clock, self)
        vars(self.vlm.image)["clock"] = self
        self.actions: list[Action] = []
        self.lines: list[str] = []
        self.descriptions: list[SceneDescription] = []
        self.scenes: list[Scene] = []
        for port in (self.vlm.action, self.vlm.said, self.vlm.description, self.vlm.scene):
            port.sink = lambda _, message, __: self._take(message)

    is_virtual = True

    def now_ns(self) -> int:
        return self.ns

    def since_s(self, stamp_ns: int) -> float:
        return to_s(self.ns - stamp_ns)

    def _take(self, message: Message) -> None:
        if isinstance(message, Action):
            self.actions.append(message)
        elif isinstance(message, Utterance):
            self.lines.append(message.text)
        elif isinstance(message, SceneDescription):
            self.descriptions.append(message)
        elif isinstance(message, Scene):
            self.scenes.append(message)

    def look(self, images: int = 3, states_late_ns: int = 0, picture: Image = PICTURE) -> None:
        """Let it see the table that often; the robot's state comes so long after it was measured."""
        for _ in range(images):
            self.ns += 200_000_000
            shot = msgspec.structs.replace(picture, captured_ns=self.ns - 5_000_000)  # type: ignore[type-var]  # a Struct
            envelope = Envelope("head/image", "head_camera", 1, self.ns)
            self.vlm.image.push(Stamped(shot, envelope))
            for ago_ns in (20_000_000, 0):
                self.vlm.remember(state(self.ns - ago_ns - states_late_ns))
            self.vlm.tick()

    def end(self, status: str, why: str = "") -> None:
        """The policy reports on the newest action."""
        assert status in ("running", "success", "failure")
        self.vlm.learn(Feedback(action_id=self.actions[-1].id, status=status, why=why))  # type: ignore[arg-type]  # checked

    def progress(self) -> str:
        return self.descriptions[-1].progress

    def hear(self, text: str) -> None:
        self.vlm.listen(Utterance(speaker="Sam", text=text))


def at_work() -> Bench:
    bench = Bench()
    bench.look()
    bench.vlm.take_subtask(CUPS)
    return bench


def target(bench: Bench) -> tuple[str, str]:
    found = bench.actions[-1].target
    assert found is not None
    return found.colour, found.label


def test_it_finds_the_cups_in_the_picture_and_announces_the_nearest() -> None:
    bench = at_work()
    assert (bench.actions[-1].skill, target(bench)) == ("pick", ("blue", "cup"))
    assert bench.lines == ["I will pick up the blue cup."]


def test_an_objection_changes_the_action_at_once_without_waiting_for_a_tick() -> None:
    bench = at_work()
    bench.hear("No, not the blue one")
    assert len(bench.actions) == 2
    assert target(bench) != ("blue", "cup")
    assert bench.lines[-1].startswith("I will pick up the ")


@pytest.mark.parametrize("text", ["No!", "Not that one, please"])
def test_an_objection_without_a_name_is_about_the_action_under_way(text: str) -> None:
    """In the first seconds of virtual time too: a long one began before its zero."""
    bench = at_work()
    bench.hear(text)
    assert target(bench) != ("blue", "cup")
    assert bench.lines[-1].startswith(sentence("vlm.leaves_for_another", what="blue cup"))


def test_words_within_a_second_mean_what_was_just_retracted() -> None:
    bench = at_work()
    for text in ("No", "Not that one", "Not the blue one"):
        bench.hear(text)
        bench.ns += 400_000_000
    assert [one.target.colour for one in bench.actions if one.target is not None] == ["blue", "yellow"]
    assert {one.colour for one in bench.vlm.work.vetoed} == {"blue"}


@pytest.mark.parametrize(
    ("after_s", "began_before_s", "is_left"), [(1.9, 1.0, False), (2.2, 1.0, True), (3.0, 2.5, False)]
)
def test_that_one_is_what_was_under_way_when_the_person_began_to_speak(
    after_s: float, began_before_s: float, is_left: bool
) -> None:
    bench = at_work()
    bench.hear("Not the blue one")
    bench.ns += int(after_s * 1e9)
    bench.vlm.listen(Utterance(speaker="Sam", text="Not that one", captured_ns=bench.ns - int(began_before_s * 1e9)))
    assert (len(bench.actions) == 3) is is_left


@pytest.mark.parametrize("text", ["I like the blue cup", "I really like the blue one", "Nice cups"])
def test_a_liking_changes_nothing(text: str) -> None:
    bench = at_work()
    bench.hear(text)
    assert len(bench.actions) == 1
    assert bench.vlm.work.vetoed == ()


def test_what_is_wanted_instead_holds_the_robot_until_there_is_a_plan_and_what_it_holds_goes_back() -> None:
    bench = at_work()
    bench.vlm.skills.push(Stamped(CATALOGUE, Envelope("skills", "policy", 1, bench.ns)))
    bench.end("success")
    bench.hear("The red cup instead")
    assert [one.skill for one in bench.actions] == ["pick", "place", "hold"]
    bench.look(1)
    assert len(bench.actions) == 3
    red = msgspec.structs.replace(CUPS, id="task-2.0", things=(Reference(label="cup", colour="red"),))  # type: ignore[type-var]  # a Struct
    bench.vlm.take_subtask(red)
    assert (bench.actions[-1].skill, target(bench)) == ("pick", ("red", "cup"))
    assert bench.lines[-1] == "I put the blue cup back. I will pick up the red cup."


def test_a_place_that_cannot_be_reached_is_given_up_and_that_is_said() -> None:
    bench = at_work()
    bench.end("success")
    for _ in range(20):
        bench.vlm.remember(msgspec.structs.replace(state(bench.ns), is_grasping=True))  # type: ignore[type-var]  # a Struct
        if bench.progress() == "failed":
            break
        bench.end(*(("failure", "the bin is out of reach") if bench.actions[-1].skill == "place" else ("success",)))
        bench.look()
    assert [one.skill for one in bench.actions].count("place") == MOST_TRIES
    assert bench.lines[-1] == sentence("vlm.holds_still", place="bin", what="blue cup")


def test_a_picked_cup_goes_to_the_bin_and_the_next_one_follows() -> None:
    bench = at_work()
    bench.end("success")
    assert (bench.actions[-1].skill, target(bench)[1]) == ("place", "bin")
    bench.end("success")
    assert bench.actions[-1].skill == "pick"
    assert target(bench) != ("blue", "cup")


def test_a_failed_pick_is_not_repeated_before_the_cup_is_seen_again() -> None:
    bench = at_work()
    bench.end("failure", "nothing is between the fingers")
    assert target(bench) != ("blue", "cup")
    assert bench.vlm.work.deeds.failures == {"blue cup": 1}


def test_a_failed_place_is_not_repeated_before_the_bin_is_seen_again() -> None:
    bench = at_work()
    bench.end("success")
    bench.vlm.remember(msgspec.structs.replace(state(bench.ns), is_grasping=True))  # type: ignore[type-var]  # a Struct
    bench.end("failure", "the bin is out of reach")
    assert [action.skill for action in bench.actions] == ["pick", "place", "look"]
    bench.end("success")
    bench.look()
    assert (bench.actions[-1].skill, target(bench)[1]) == ("place", "bin"), "it still holds what belongs there"


def test_a_stop_starts_nothing_and_going_on_decides_afresh() -> None:
    bench = at_work()
    bench.vlm.interrupted(Interrupt(id="reflex-1", depth="stop", text="Ouch!", by="Sam"))
    assert bench.lines[-1] == sentence("vlm.sorry")
    bench.look()
    assert len(bench.actions) == 1
    assert bench.progress() == "held"
    bench.vlm.interrupted(Interrupt(id="reflex-2", depth="resume", text="Go on", by="Sam"))
    bench.look(1)
    assert [action.skill for action in bench.actions] == ["pick", "pick"]


@pytest.mark.parametrize(("state", "by_word"), [("wait", True), ("done", True), ("wait", False), ("done", False)])
def test_a_lifted_stop_lets_no_deed_go_on_that_is_not_to_be_done_now(
    state: Literal["wait", "done"], by_word: bool
) -> None:
    bench = at_work()
    bench.vlm.interrupted(Interrupt(id="reflex-1", depth="stop", text="Stop, not there!", by="Sam"))
    bench.vlm.follow(GuardState(mode="stopped", reason="Sam"))
    bench.vlm.take_subtask(msgspec.structs.replace(CUPS, state=state))  # type: ignore[type-var]  # a Struct
    bench.look(1)
    assert [action.skill for action in bench.actions] == ["pick"], "the guard holds the robot"
    if by_word:
        bench.vlm.interrupted(Interrupt(id="reflex-2", depth="resume", text="Go on", by="Sam"))
    bench.vlm.follow(GuardState(mode="holding", reason="resumed"))
    bench.look(3)
    assert [action.skill for action in bench.actions] == ["pick", "hold"], "a policy goes on by itself"
    bench.vlm.take_subtask(CUPS)
    assert bench.actions[-1].skill == "pick"


def test_it_believes_the_guard_about_being_stopped() -> None:
    bench = at_work()
    bench.vlm.follow(GuardState(mode="stopped", reason="console"))
    bench.look(1)
    assert bench.progress() == "held"
    bench.vlm.follow(GuardState(mode="holding", reason="resumed"))
    bench.look(1)
    assert bench.progress() == "working"


def test_a_new_order_waits_for_the_planner_but_not_for_ever() -> None:
    bench = at_work()
    bench.vlm.interrupted(Interrupt(id="reflex-1", depth="replan", text="Make me a coffee", by="Sam"))
    bench.look(2)
    assert len(bench.actions) == 1
    bench.vlm.take_subtask(CUPS)
    bench.look(1)
    assert len(bench.actions) == 2
    bench.vlm.interrupted(Interrupt(id="reflex-2", depth="replan", text="Make me a coffee", by="Sam"))
    bench.look(40)
    assert len(bench.actions) > 2


def test_a_slow_planner_is_waited_for_as_long_as_is_said() -> None:
    bench = at_work()
    bench.vlm.work.hold.plan_wait_s = 20.0
    bench.vlm.interrupted(Interrupt(id="reflex-1", depth="replan", text="Make me a coffee", by="Sam"))
    bench.look(40)
    assert len(bench.actions) == 1
    with pytest.raises(ParameterError, match=pattern("vlm.plan_wait", value="0")):
        LocalVLM(plan_wait_s=0.0)


def test_an_action_that_nobody_answers_is_sent_again() -> None:
    bench = at_work()
    bench.look(19)
    assert len(bench.actions) == 1
    bench.look(3)
    assert [action.id for action in bench.actions] == ["localvlm-1", "localvlm-2"]
    assert bench.lines == ["I will pick up the blue cup."]  # nothing is said twice


def test_the_description_names_what_is_seen_and_the_subtask() -> None:
    bench = at_work()
    bench.look(1)
    description = bench.descriptions[-1]
    assert (description.subtask_id, description.progress) == ("task-1.0", "working")
    assert description.text.startswith(
        sentence("vlm.description", doing="picking up the blue cup", subtask="Put every cup in the bin")
    )
    assert "red cup" in description.text
    assert len([one for one in description.objects if one.label == "cup"]) == 5


BALL = Subtask(id="task-2.0", text="", state="work", skill="hand_over", things=(Reference(label="ball"),))


def with_a_ball() -> Bench:
    """It holds the ball that it is to give, and sees no hand yet."""
    bench = Bench()
    bench.look()
    catalogue = catalogue_of((*SPECS.values(), HAND_OVER.spec))
    bench.vlm.skills.push(Stamped(catalogue, Envelope("skills", "policy", 1, bench.ns)))
    bench.vlm.take_subtask(BALL)
    assert target(bench) == ("purple", "ball")
    bench.end("success")
    bench.look(1)
    assert bench.lines[-1] == sentence("vlm.offers", what="purple ball")
    return bench


def test_what_a_person_is_to_have_goes_into_the_hand_that_the_image_shows() -> None:
    bench = with_a_ball()
    for x_m in (-0.40, -0.35, -0.3):  # it is on its way
        bench.look(1, picture=picture((x_m, -0.62, 0.66)))
    assert bench.actions[-1].skill == "pick"
    bench.look(1, picture=picture((-0.3, -0.62, 0.66)))
    assert bench.actions[-1].skill == "hand_over"
    found = bench.actions[-1].target
    assert found is not None
    assert math.hypot(found.x_m + 0.3, found.y_m + 0.62) < 0.05
    bench.end("success")
    bench.look(3)
    assert bench.progress() == "finished"
    assert bench.belief.holding is None
    bench.vlm.take_subtask(msgspec.structs.replace(BALL, state="done"))  # type: ignore[type-var]  # a Struct
    bench.vlm.take_subtask(msgspec.structs.replace(BALL, id="task-3.0"))  # type: ignore[type-var]  # a Struct
    bench.look(1)
    assert bench.progress() == "working"  # the same again is a new order


def test_the_planner_is_told_what_a_hand_points_at_and_what_it_holds() -> None:
    bench = Bench()
    bench.look(images=10)
    (cup,) = [one for one in bench.descriptions[-1].objects if one.colour == "blue" and not one.is_place]
    assert not bench.scenes[-1].people
    kinds = {(one.colour, one.label) for one in bench.scenes[-1].things}
    bench.look(picture=picture((cup.x_m, cup.y_m - 0.2, cup.z_m + 0.2 * math.tan(0.7)), 0.7))
    (person,) = bench.scenes[-1].people
    assert (person.hand, person.points_at, person.holds) == ("point", cup.id, "")
    bench.look(picture=picture((0.1, -0.62, 0.66)))
    assert [(one.hand, one.points_at) for one in bench.scenes[-1].people] == [("open", "")]
    bench.look(images=6, picture=picture((0.1, -0.62, 0.66), cup_m=(0.1, -0.62, 0.73)))
    scene = bench.scenes[-1]
    assert [(one.hand, one.holds) for one in scene.people] == [("", cup.id)]
    assert [(one.subject, one.object) for one in scene.relations if one.relation == "held by"] == [(cup.id, "person")]
    assert {(one.colour, one.label) for one in scene.things} <= kinds, "an arm is no thing on the table"
    bench.look(images=6)
    assert not bench.scenes[-1].people


def test_a_hand_that_nobody_holds_out_is_waited_for_no_longer_than_a_while() -> None:
    bench = with_a_ball()
    bench.look(round(HAND_WITHIN_S / 0.2) - 5)
    assert bench.progress() == "working"
    bench.look(10)
    assert bench.progress() == "failed"
    assert bench.descriptions[-1].why == sentence("vlm.no_hand", what="purple ball")


# --- poses


def test_a_pose_is_interpolated_between_close_states() -> None:
    found = pose_at((state(0), state(20_000_000, base_x_m=0.01)), 5_000_000, BODY)
    assert found is not None
    assert found.base_x_m == pytest.approx(0.0025)


def test_an_image_newer_or_older_than_all_states_has_no_pose() -> None:
    states = (state(10_000_000), state(20_000_000))
    assert pose_at(states, 25_000_000, BODY) is None
    assert pose_at(states, 5_000_000, BODY) is None
    assert pose_at((), 5, BODY) is None


def test_between_distant_states_the_head_must_have_been_still() -> None:
    turned = (*POSITION[:6], PAN + 0.5, TILT)
    assert pose_at((state(0), state(100_000_000, turned)), 50_000_000, BODY) is None
    assert pose_at((state(0), state(100_000_000)), 50_000_000, BODY) is not None


def test_a_state_that_comes_after_its_image_as_a_real_robots_does_leaves_nothing_unseen() -> None:
    bench = Bench()
    bench.look(states_late_ns=60_000_000)
    bench.vlm.take_subtask(CUPS)
    assert (bench.actions[-1].skill, target(bench)) == ("pick", ("blue", "cup"))


def test_positions_are_those_of_the_odometry_frame() -> None:
    bench = at_work()
    found = bench.actions[-1].target
    assert found is not None
    laid = next(thing for thing in build_scene(0).things if thing.name == "blue_cup")
    assert math.hypot(found.x_m - laid.x_m, found.y_m - laid.y_m) < 0.01
    assert np.isfinite(found.z_m)


def test_a_cup_that_leaves_its_place_without_the_robot_is_named() -> None:
    bench = at_work()
    bench.look(images=10)
    bench.end("failure", "it slipped")  # and was knocked off the table: no image shows it again
    empty = msgspec.structs.replace(PICTURE, depth_m=np.full_like(PICTURE.depth_m, 9.0))  # type: ignore[type-var]  # a Struct
    bench.look(images=12, picture=empty)
    assert ("blue", "cup") in {(one.colour, one.label) for one in bench.descriptions[-1].gone}
    assert bench.descriptions[-1].tried[0].startswith("blue cup, 1 time")


@pytest.mark.parametrize("fallen_m", [(0.7, -0.3, 0.04), (-0.7, -0.5, 0.04)], ids=["lies as a cup", "lies as a block"])
def test_a_cup_that_was_knocked_to_the_floor_is_found_there_and_named_in_scene_and_progress(
    fallen_m: tuple[float, float, float],
) -> None:
    bench = at_work()
    bench.look(images=10)
    wanted = bench.descriptions[-1].wanted
    bench.end("failure", "it slipped")
    shown = picture(cup_m=fallen_m, lies_rad=math.pi / 2)
    bench.look(images=16, picture=shown)
    told = bench.descriptions[-1]
    (cup,) = [one for one in told.objects if one.colour == "blue"]
    assert (cup.label, told.gone, told.wanted) == ("cup", (), wanted)
    assert math.dist((cup.x_m, cup.y_m), fallen_m[:2]) < 0.05
    assert bench.belief.table_z_m == pytest.approx(0.5, abs=0.01), "the floor is taken for no table"
    scene = next(one for one in reversed(bench.scenes) if one.things)
    assert [one.object for one in scene.relations if one.subject == cup.id] == ["floor"]
    while bench.progress() != "failed":
        bench.end("failure" if bench.actions[-1].skill == "pick" else "success", "the arm does not get there")
        bench.look(images=4, picture=shown)
    assert "blue cup on the floor" in bench.descriptions[-1].why
    assert bench.descriptions[-1].wanted == wanted, "a thing that is tried again and again is lost once"


def test_what_a_box_hides_is_not_told_as_gone() -> None:
    bench = at_work()
    bench.look()
    (box,) = [one for one in bench.descriptions[-1].objects if one.is_place]
    cup = bench.actions[-1].target
    assert cup is not None
    for at_m, gone in (((cup.x_m, cup.y_m), {"cup"}), ((box.x_m, box.y_m), set())):
        bench.belief.lost = (msgspec.structs.replace(cup, x_m=at_m[0], y_m=at_m[1]),)  # type: ignore[type-var]  # a Struct
        bench.look(images=1)
        assert {one.label for one in bench.descriptions[-1].gone} == gone


def armed(bench: Bench) -> None:
    bench.vlm.follow(GuardState(mode="armed", reason="", is_armed=True))


def rounds(bench: Bench) -> int:
    bench.look()
    return [one.skill for one in bench.actions].count("look_round")


@pytest.mark.parametrize(("looks_round", "before", "after"), [("asked", 0, 0), ("armed", 1, 1), ("never", 0, 0)])
def test_the_head_looks_round_once_after_arming_and_for_nobody_who_is_no_person(
    looks_round: LooksRound, before: int, after: int
) -> None:
    bench = Bench()
    bench.vlm.work.looks_round.mode = looks_round
    envelope = Envelope("skills", "policy", 1, bench.ns)
    bench.vlm.skills.push(Stamped(catalogue_of(SPECS.values()), envelope))
    bench.hear("Hello")
    assert rounds(bench) == 0, "it is not armed"
    armed(bench)
    assert rounds(bench) == before
    bench.hear("Hello")
    assert rounds(bench) == after
    looked = [bench.belief.has_looked]
    if after:
        assert "I look round." in bench.lines
        bench.end("success")
        assert rounds(bench) == after
    looked.append(bench.belief.has_looked)
    assert looked == [False, after > 0]


@pytest.mark.parametrize("first", ["put_back", "pick"])
def test_what_the_robot_set_down_keeps_its_id_wherever_it_is_seen_then(first: str) -> None:
    bench = at_work()
    blue = next(one for one in bench.belief.objects if one.colour == "blue")
    red = msgspec.structs.replace(blue, colour="red", x_m=blue.x_m + 0.5)  # type: ignore[type-var]  # a Struct
    belief = TableBelief(bench.belief.shapes)

    def see(*things: SeenObject) -> None:
        for _ in range(3):
            belief.remember([with_(one, id="") for one in things], lambda _: True)

    def with_(thing: SeenObject, **more: object) -> SeenObject:
        return msgspec.convert({**msgspec.to_builtins(thing), **more}, SeenObject)

    def at(x_m: float) -> SeenObject:
        return with_(blue, x_m=x_m)

    def ends(skill: str, target: SeenObject | None = None) -> None:
        belief.succeeded(Action(id="1", skill=skill, arguments=aimed_at(target)))

    see(at(0.0), red)
    blue, red = sorted(belief.objects, key=lambda one: one.colour)
    ends("pick", blue)
    see(red)
    if first == "pick":  # the policy puts the blue one back before it takes the red one
        see(at(0.3), red)
        ends("pick", red)
    else:
        ends("put_back")
        see(at(0.3), red)
    assert [one.id for one in belief.objects if one.colour == "blue"] == [blue.id]
    see(at(0.3), at(-0.4))
    assert len({one.id for one in belief.objects if one.colour == "blue"}) == 2, "another one is another one"
