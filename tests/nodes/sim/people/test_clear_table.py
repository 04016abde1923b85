"""The person of the demo's table: what the rows of `clear-table.toml` make her say and do, and how she judges."""

from __future__ import annotations

import math
from itertools import pairwise

import mujoco
import pytest

from nodes.msgs import GuardState, Utterance
from nodes.sim.messages import BodyPart, ObjectTruth, Truth
from nodes.sim.people.person import ScenarioPerson
from nodes.sim.people.simulated_person import GO_ON
from nodes.sim.world.scenario import DEMO, load_scenario
from runtime import Simulation, UserError
from runtime.message import Envelope, Stamped
from tests.support.sentences import sentence
from tests.support.table import build_scene

ORDER, OUCH = load_scenario(DEMO).words["order"][0], "Ouch! That's my toe!"
CUPS = ("red", "blue", "green", "yellow", "white")


DONE = "green, red, white and yellow cups in bin; blue cup on table"
NOTHING_DONE = "not: green, red, white and yellow cups in bin"


def cup(colour: str, *, place: str = "table") -> ObjectTruth:
    return ObjectTruth(name=f"{colour}_cup", label="cup", colour=colour, x_m=0.0, y_m=-0.5, z_m=0.55, place=place)


def all_but_blue() -> tuple[ObjectTruth, ...]:
    return tuple(cup(colour, place="table" if colour == "blue" else "bin") for colour in CUPS)


class Stage:
    """The person in virtual time, what she said and where her parts are."""

    def __init__(self, script: str = "demo", patience_s: float = 0.0) -> None:
        self.person = ScenarioPerson(script=script, patience_s=patience_s)
        self.sim = Simulation(self.person)
        self.heard = self.sim.record(ScenarioPerson.heard)
        self.feet: list[BodyPart] = self.sim.record(ScenarioPerson.body)
        self.x = 0.0
        self.things = tuple(map(cup, CUPS))
        self.guard("armed")

    @property
    def lines(self) -> list[str]:
        return [one.text for one in self.heard]

    def guard(self, mode: str, by: str = "contact") -> None:
        assert mode in ("armed", "moving", "stopped")
        stopped_by = by if mode == "stopped" else ""
        self.sim.publish("guard/state", GuardState(mode=mode, reason="", stopped_by=stopped_by))  # type: ignore[arg-type]  # checked above

    def wait(self, seconds: float, *, speed: float = 0.0, touched: tuple[str, ...] = ()) -> None:
        for _ in range(round(seconds * 10)):
            self.x += speed * 0.1
            truth = Truth(
                objects=self.things, touched=touched, is_moving=speed != 0.0, robot_x_m=self.x, robot_v_mps=speed
            )
            self.sim.publish("sim/truth", truth)
            self.sim.run(seconds=0.1)
            if self.sim.outcome is not None:
                return

    def robot_says(self, text: str) -> None:
        self.sim.publish("said", Utterance(speaker="robot", text=text))
        self.wait(0.1)


def test_the_order_comes_first_and_again_without_an_answer() -> None:
    stage = Stage()
    stage.wait(2.0)
    assert stage.lines == [ORDER]
    stage.wait(8.0)
    assert stage.lines == [ORDER, ORDER]


def test_the_announcement_of_the_blue_cup_is_objected_to_after_a_moment() -> None:
    stage = Stage()
    stage.wait(2.0)
    stage.robot_says("I will pick up the red cup.")
    stage.wait(2.0)
    assert stage.lines == [ORDER]
    stage.robot_says("I will pick up the blue cup.")
    stage.wait(0.5)
    assert stage.lines == [ORDER]
    stage.wait(0.5)
    assert stage.lines == [ORDER, "No, not the blue one"]
    stage.robot_says("I try the blue cup again.")
    stage.wait(2.0)
    assert stage.lines == [ORDER, "No, not the blue one"]


def test_without_an_announcement_it_objects_by_a_deadline() -> None:
    stage = Stage()
    stage.wait(2.0)
    stage.robot_says("Sure.")
    stage.wait(24.0, speed=0.01)
    assert stage.lines == [ORDER, "No, not the blue one"]


def to_the_foot() -> Stage:
    stage = Stage()
    stage.wait(2.0)
    stage.robot_says("I will pick up the blue cup.")
    stage.wait(2.0)
    stage.wait(1.0, speed=0.2)
    return stage


def test_the_foot_comes_before_a_driving_robot() -> None:
    stage = to_the_foot()
    assert {part.part for part in stage.feet} == {"foot"}
    assert stage.feet[0].part == "foot"
    assert stage.feet[0].x_m > 0.06 + 0.13  # ahead of the base's front edge


def test_a_foot_that_is_not_touched_moves_against_the_base() -> None:
    stage = to_the_foot()
    placed_m = stage.feet[-1].x_m
    stage.wait(4.0)
    assert stage.feet[-1].x_m < placed_m - 0.05


def test_it_cries_out_withdraws_and_forgives() -> None:
    stage = to_the_foot()
    stage.wait(0.1, touched=("foot",))
    assert stage.lines[-1] == OUCH
    stage.guard("stopped")
    stage.wait(2.8)
    assert stage.lines[-1] == OUCH
    assert stage.feet[-1].y_m > 0.8
    stage.wait(0.5)
    assert stage.lines[-1] == GO_ON
    stage.guard("moving")
    stage.wait(10.0)
    assert stage.lines.count(GO_ON) == 1
    assert stage.lines.count(OUCH) == 1


def test_it_does_not_lift_what_somebody_else_has_stopped() -> None:
    stage = to_the_foot()
    stage.wait(0.1, touched=("foot",))
    stage.guard("stopped", by="a bystander")
    stage.wait(20.0)
    assert GO_ON not in stage.lines


def test_it_thanks_and_ends_the_run_when_all_but_blue_is_in_the_bin() -> None:
    stage = Stage()
    stage.wait(2.0)
    stage.things = all_but_blue()
    stage.wait(0.1)
    stage.robot_says("I am done. The cups are in the bin, all but the blue one.")
    stage.wait(2.0)
    assert stage.lines[-1] == "Thank you!"
    assert stage.sim.outcome == (True, DONE)


def test_where_all_is_done_and_the_robot_does_not_say_so_it_is_over_after_a_while() -> None:
    stage = Stage()
    stage.wait(2.0)
    stage.robot_says("Sure.")
    stage.things = all_but_blue()
    stage.wait(18.0)
    assert stage.sim.outcome is None
    stage.wait(5.0)
    assert stage.sim.outcome == (True, DONE)


def test_a_robot_that_is_done_too_early_is_reminded_once() -> None:
    stage = Stage()
    stage.wait(2.0)
    stage.robot_says("I am done.")
    stage.wait(1.0)
    assert stage.lines[-1] == sentence("sim.not_all", spared="blue")
    assert stage.sim.outcome is None
    stage.robot_says("I am done.")
    stage.wait(2.0)
    assert stage.sim.outcome == (False, NOTHING_DONE)


@pytest.mark.parametrize("done", ["I am done. I left the red cup.", "I moved nothing: I see no cups."])
def test_where_a_real_person_gave_orders_too_nobody_judges_whose_were_followed(done: str) -> None:
    stage = Stage()
    stage.wait(2.0)
    words = Utterance(speaker="Ana", text="Please leave the red one")
    stage.person.notice(Stamped(words, Envelope("heard", "somebody", 1, 1, provenance="script:other")))
    assert stage.person.guest == ""
    stage.person.notice(Stamped(words, Envelope("heard", "say", 1, 1, provenance="person")))
    stage.robot_says(done)
    stage.wait(2.0)
    assert stage.sim.outcome == (True, sentence("sim.nobody_judges", guest="Ana", seen=NOTHING_DONE))


def test_patience_ends() -> None:
    stage = Stage(script="quiet", patience_s=20.0)
    stage.wait(2.0)
    stage.robot_says("Sure.")
    stage.wait(22.0)
    assert stage.lines == [ORDER]
    assert stage.sim.outcome == (False, "not: blue, green, red, white and yellow cups in bin")


def test_the_story_leaves_something_open_asks_to_be_shown_and_given_something_and_then_orders() -> None:
    stage = Stage(script="story")
    stage.wait(2.0)
    assert stage.lines == [sentence("sim.put_the_cup")]
    stage.robot_says("Which cup do you mean: the blue cup or the red cup?")
    stage.wait(1.0)
    assert stage.lines[1:] == ["The red one"]
    stage.robot_says("I am done. The red cup is in the bin.")
    stage.wait(1.0)
    assert stage.lines[2:] == [sentence("sim.point_at_the_bottle")]
    stage.robot_says("That is the bottle.")
    stage.wait(1.0)
    assert stage.lines[3:] == [sentence("sim.give_me_the_ball")]
    stage.robot_says("I am done. You have the ball.")
    stage.wait(4.0)
    assert stage.lines[4:] == ["Thank you", ORDER]
    assert stage.sim.outcome is None


def test_a_story_goes_on_where_the_robot_never_answers() -> None:
    stage = Stage(script="story", patience_s=150.0)
    stage.wait(160.0)
    assert ORDER in stage.lines
    assert stage.sim.outcome is not None
    assert not stage.sim.outcome[0]


def test_an_unknown_script_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UserError, match="script is 'opera'; known: demo, spare, quiet, story, brief"):
        ScenarioPerson(script="opera")


def to_the_ball() -> Stage:
    """The story up to the thing that is to be given."""
    stage = Stage(script="story")
    stage.wait(2.0)
    for said in ("Which cup do you mean?", "I am done. The red cup is in the bin.", "That is the bottle."):
        stage.robot_says(said)
        stage.wait(1.0)
    assert stage.lines[3:] == [sentence("sim.give_me_the_ball")]
    return stage


def ball(held_by: str) -> ObjectTruth:
    return ObjectTruth(
        name="purple_ball", label="ball", colour="purple", x_m=0.2, y_m=-0.6, z_m=0.75, is_in_bin=False, held_by=held_by
    )


def test_an_open_hand_comes_beside_what_the_robot_holds_and_its_person_says_yes() -> None:
    stage = to_the_ball()
    stage.things += (ball("robot"),)
    stage.wait(0.1)
    stage.robot_says("Shall I pick the brown bottle? Please answer.")
    stage.wait(2.0)
    assert stage.lines[-1] != "Yes"  # to what is no hand's business
    stage.robot_says("Here is the purple ball. Please hold out your hand.")
    stage.wait(3.0)
    hand = stage.feet[-1]
    assert is_in_the_film(hand)
    assert (hand.part, hand.gesture, hand.y_m, hand.z_m) == ("hand", "open", -0.62, 0.66)
    assert 0.15 < abs(hand.x_m - 0.2) <= 0.25
    steps_m = [abs(one.y_m - other.y_m) for one, other in pairwise(stage.feet)]
    assert max(steps_m) <= 0.06 + 1e-9
    stage.robot_says("Shall I hand over what I hold? Please answer.")
    stage.wait(1.0)
    assert stage.lines[-1] == "Yes"


def is_in_the_film(part: BodyPart, margin_m: float = 0.15) -> bool:
    """Whether the room's camera sees a body of that size there, in a picture of 4 x 3."""
    model = mujoco.MjModel.from_xml_string(build_scene().xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    camera = model.camera("room").id
    axes = data.cam_xmat[camera].reshape(3, 3)
    right, up, back = ((part.x_m, part.y_m, part.z_m) - data.cam_xpos[camera]) @ axes
    half = math.tan(math.radians(model.cam_fovy[camera]) / 2) * -back
    return bool(abs(right) - margin_m < half * 4 / 3 and abs(up) - margin_m < half)


def test_the_hand_goes_with_what_it_was_given_and_the_story_goes_on() -> None:
    stage = to_the_ball()
    stage.things += (ball("robot"),)
    stage.wait(0.1)
    stage.robot_says("Here is the purple ball. Please hold out your hand.")
    stage.wait(3.0)
    stage.things = (*stage.things[:-1], ball("person"))
    stage.robot_says("I am done. You have the ball.")
    stage.wait(5.0)
    assert stage.lines[-2:] == ["Thank you", ORDER]
    assert stage.feet[-1].gesture == ""
    assert not is_in_the_film(stage.feet[-1]), "nobody stands at the picture's edge with a ball for the rest of it"
    stage.things = (*all_but_blue(), ball("person"))
    stage.wait(0.1)
    stage.robot_says("I am done.")
    stage.wait(2.0)
    assert stage.sim.outcome == (True, f"{DONE}; purple ball held by person")


def test_a_story_without_the_ball_in_the_persons_hand_is_not_good_whatever_the_robot_says() -> None:
    stage = to_the_ball()
    stage.robot_says("I am done. You have the ball.")
    stage.wait(5.0)
    stage.things = (*all_but_blue(), ball(""))
    stage.wait(0.1)
    for _ in range(2):
        stage.robot_says("I am done.")
        stage.wait(2.0)
    assert stage.sim.outcome == (False, "not: purple ball held by person")


def test_the_brief_story_has_nothing_to_give() -> None:
    stage = Stage(script="brief")
    stage.wait(2.0)
    for said in ("Which cup do you mean?", "I am done. The red cup is in the bin.", "That is the bottle."):
        stage.robot_says(said)
        stage.wait(4.0)
    assert stage.lines[-2:] == ["Thank you", ORDER]
    stage.things = all_but_blue()
    stage.wait(0.1)
    stage.robot_says("I am done.")
    stage.wait(2.0)
    assert stage.sim.outcome == (True, DONE)
