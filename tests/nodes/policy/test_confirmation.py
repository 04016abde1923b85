"""A risky action from the question to the yes: the local VLM waits for a person instead of trying again at once."""

from __future__ import annotations

from typing import cast

from nodes.msgs import Action, Feedback, FeedbackCode, Reference, SeenObject, Subtask, Utterance
from nodes.policy.expert import ExpertPolicy
from nodes.vlm.belief import TableBelief
from nodes.vlm.choice.hold import YES_WITHIN_S
from nodes.vlm.local import LocalVLM
from nodes.vlm.memory import update
from runtime import Simulation
from runtime.launch.graph import NodeSpec
from tests.support.robots.still_robot import StillRobot

QUESTION = "Shall I pick the brown bottle? Please answer."


def thing(label: str, colour: str, x_m: float, size_m: float) -> SeenObject:
    return SeenObject(
        label=label,
        colour=colour,
        x_m=x_m,
        y_m=-0.6,
        z_m=0.6,
        width_m=size_m,
        height_m=size_m,
        u_px=0.0,
        v_px=0.0,
        is_place=label == "bin",
    )


SEEN = (thing("bottle", "brown", 0.0, 0.17), thing("bin", "", 0.5, 0.3))


class Room:
    """A bottle that is seen all the time, and the order to put it away."""

    def __init__(self) -> None:
        self.vlm = LocalVLM()
        self.belief = cast(TableBelief, self.vlm.work.belief)
        self.sim = Simulation(
            StillRobot(),
            NodeSpec("policy", ExpertPolicy, params={"sees": False}),
            NodeSpec("vlm", LocalVLM, instance=self.vlm),
        )
        self.said: list[Utterance] = self.sim.record_topic("said", Utterance)
        self.actions: list[Action] = self.sim.record_topic("action", Action)
        self.feedback: list[Feedback] = self.sim.record_topic("feedback", Feedback)
        self.run(0.5)
        task = Subtask(
            id="1",
            text="Put the bottle in the bin",
            state="work",
            skill="place",
            things=(Reference(label="bottle", count=0),),
            relation="in",
            place="bin",
        )
        self.sim.publish("subtask", task, source="planner")
        self.run(2.0)

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.1)):
            self.belief.known = update(self.belief.known, SEEN, lambda _: False)
            self.sim.run(seconds=0.1)

    def say(self, text: str) -> None:
        self.sim.publish("heard", Utterance(speaker="Ana", text=text))
        self.run(1.0)

    @property
    def questions(self) -> int:
        return [utterance.text for utterance in self.said].count(QUESTION)

    @property
    def picks(self) -> list[str]:
        return [action.id for action in self.actions if action.skill == "pick"]

    @property
    def begun(self) -> list[str]:
        return [told.action_id for told in self.feedback if told.status == "running"]


def test_a_person_is_asked_once_and_their_yes_begins_the_action() -> None:
    room = Room()
    assert (room.questions, len(room.picks), room.begun) == (1, 1, [])
    room.run(5.0)
    assert (room.questions, len(room.picks), room.begun) == (1, 1, []), "nothing is tried while they think"
    room.say("Yes, please.")
    assert room.questions == 1
    assert room.picks[-1] in room.begun


def test_that_a_person_is_asked_is_told_by_a_code_and_not_by_how_the_question_is_worded() -> None:
    room = Room()
    assert [(one.status, one.code) for one in room.feedback] == [("failure", "consent")]
    codes: tuple[FeedbackCode, ...] = ("consent", "")
    for code in codes:
        vlm = LocalVLM()
        vlm.work.deeds.doing = Action(id="a1", skill="pick", text="pick up the bottle")
        vlm.learn(Feedback(action_id="a1", status="failure", why="May I?", code=code))
        assert vlm.work.hold.yes_state == ("asked" if code else "not asked")


def test_a_no_leaves_it_and_okay_is_no_yes() -> None:
    room = Room()
    room.say("Okay.")
    assert (room.questions, room.begun) == (1, [])
    room.say("No, not the brown one.")
    room.run(YES_WITHIN_S + 2.0)
    assert (room.questions, len(room.picks)) == (1, 1)


def test_who_says_nothing_is_asked_again_and_then_left_in_peace() -> None:
    room = Room()
    room.run(YES_WITHIN_S + 8.0)
    assert room.questions == 2
    room.run(3 * (YES_WITHIN_S + 8.0))
    assert room.questions == 3
    assert not set(room.picks) & set(room.begun)
