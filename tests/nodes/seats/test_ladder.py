"""Silent holders: told of, replaced or stopped as the launch file says; a restart alone moves nothing."""

from __future__ import annotations

from typing import Literal

import pytest

from nodes.guard.node import Guard
from nodes.msgs import (
    GuardState,
    Interrupt,
    JointCommand,
    OutOfBudget,
    Reference,
    SceneDescription,
    SeatRequest,
    Subtask,
    Utterance,
)
from nodes.seats.ladder import DRIVER_BACK, DRIVER_GONE, GO_ON, Ladder
from runtime import Node, ParameterError, Publisher, Simulation, every
from runtime.coordination.lease import Lease
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.seats_table import Rung, SeatTable
from tests.support.robots.still_robot import StillRobot
from tests.support.sentences import pattern
from tests.support.standing import HOME


class Planner(Node):
    """Repeats its subtask until it is told to fall silent."""

    seat = "planner"
    subtask = Publisher(Subtask, "subtask")
    is_silent = False

    @every(hz=2)
    def tick(self) -> None:
        if not self.is_silent:
            self.subtask.publish(
                Subtask(
                    id="1",
                    text="Put the cups in the bin",
                    state="work",
                    skill="place",
                    things=(Reference(label="cup", count=0),),
                    relation="in",
                    place="bin",
                )
            )


class VLM(Node):
    """Reports progress."""

    seat = "vlm"
    description = Publisher(SceneDescription, "description")
    progress = "working"

    @every(hz=5)
    def tick(self) -> None:
        self.description.publish(SceneDescription(text="", subtask_id="1", progress=self.progress))  # type: ignore[arg-type]


class Drive(Node):
    """Drives ahead."""

    seat = "policy"
    command = Publisher(JointCommand, "command")
    is_silent = False

    @every(hz=20)
    def tick(self) -> None:
        if not self.is_silent:
            self.command.publish(JointCommand(position=HOME, base_v_mps=0.2))


class Room:
    def __init__(self, fallback: Planner | None = None, **ladders: tuple[Rung, ...]) -> None:
        self.planner, self.vlm, self.policy = Planner(), VLM(), Drive()
        self.sim = Simulation(
            NodeSpec("planner", Planner, instance=self.planner),
            NodeSpec("fallback", Planner, instance=fallback or Planner()),
            NodeSpec("vlm", VLM, instance=self.vlm),
            NodeSpec("policy", Drive, instance=self.policy),
            NodeSpec("guard", Guard, instance=Guard(arm="auto")),
            StillRobot(),
            Ladder(),
            seats={
                "planner": SeatTable(holder="planner", shadows=("fallback",), ladder=ladders.get("planner", ())),
                "vlm": SeatTable(holder="vlm", ladder=ladders.get("vlm", ())),
                "policy": SeatTable(holder="policy", ladder=ladders.get("policy", ())),
            },
        )
        self.said: list[Utterance] = self.sim.record_topic("said", Utterance)
        self.states: list[GuardState] = self.sim.record_topic("guard/state", GuardState)
        self.leases: list[Lease] = self.sim.record_topic("lease", Lease)

    @property
    def mode(self) -> str:
        return self.states[-1].mode

    @property
    def texts(self) -> list[str]:
        return [utterance.text for utterance in self.said]


def test_a_silent_planner_is_told_of_then_the_subtask_is_finished_then_the_robot_holds() -> None:
    room = Room(
        planner=(Rung(silent_s=2.0, text="no plan"), Rung(silent_s=3.0, do="hold", after_subtask=True, text="I wait"))
    )
    room.sim.run(seconds=2.0)
    assert room.texts == []
    room.planner.is_silent = True
    room.sim.run(seconds=6.0)
    assert room.texts == ["no plan"]
    assert room.mode == "moving"
    room.vlm.progress = "finished"
    room.sim.run(seconds=1.0)
    assert room.texts == ["no plan", "I wait"]
    assert room.mode == "stopped"
    assert "silent" in room.states[-1].reason


def test_a_holder_that_comes_back_does_not_move_a_robot_that_was_stopped_for_it() -> None:
    room = Room(planner=(Rung(silent_s=1.0, do="hold", text="I wait"),))
    room.sim.run(seconds=1.0)
    room.planner.is_silent = True
    room.sim.run(seconds=3.0)
    room.planner.is_silent = False
    room.sim.run(seconds=3.0)
    assert room.mode == "stopped"
    assert room.texts == ["I wait", "My planner is back."]
    room.sim.publish("interrupt", Interrupt(id="r", depth="resume", text="go on", by="Ann"))
    room.sim.run(seconds=0.5)
    assert room.mode == "moving"


def test_a_seat_goes_to_the_candidate_that_the_ladder_names() -> None:
    room = Room(planner=(Rung(silent_s=1.5, do="hand_over", to="fallback", text="The other one plans."),))
    room.sim.run(seconds=1.0)
    room.planner.is_silent = True
    room.sim.run(seconds=3.0)
    assert [(x.seat, x.holder, x.number) for x in room.leases if not x.is_repetition] == [("planner", "fallback", 1)]
    assert room.texts == ["The other one plans."], "that the other one begins is no return of the first"


def test_a_candidate_that_falls_silent_too_is_not_handed_the_seat_again() -> None:
    fallback = Planner()
    room = Room(
        fallback,
        planner=(
            Rung(silent_s=1.5, do="hand_over", to="fallback", text="The other one plans."),
            Rung(silent_s=3.0, do="hold", text="I wait."),
        ),
    )
    requests = room.sim.record_topic("seat/request", SeatRequest)
    room.sim.run(seconds=1.0)
    room.planner.is_silent = True
    room.sim.run(seconds=3.0)
    fallback.is_silent = True
    room.sim.run(seconds=5.0)
    assert [one.holder for one in requests] == ["fallback"]
    assert room.texts == ["The other one plans.", "I wait."]
    assert room.mode == "stopped"


def test_a_silent_policy_is_held_by_the_guard_long_before_the_ladder_speaks() -> None:
    room = Room(policy=(Rung(silent_s=1.0, text="I cannot move"),))
    room.sim.run(seconds=1.0)
    room.policy.is_silent = True
    room.sim.run(seconds=0.25)
    assert room.mode == "holding"
    assert room.texts == []
    room.sim.run(seconds=1.5)
    assert room.texts == ["I cannot move"]


def test_who_has_not_begun_is_not_silent() -> None:
    room = Room(planner=(Rung(silent_s=0.5, text="no plan"),))
    room.planner.is_silent = True
    room.sim.run(seconds=3.0)
    assert room.texts == []


def test_who_has_not_begun_keeps_nobody_from_being_missed() -> None:
    room = Room(planner=(Rung(silent_s=0.5, text="no plan"),), policy=(Rung(silent_s=1.0, text="I cannot move"),))
    room.planner.is_silent = True
    room.sim.run(seconds=1.0)
    room.policy.is_silent = True
    room.sim.run(seconds=2.0)
    assert room.texts == ["I cannot move"]


@pytest.mark.parametrize("progress", ["working", "finished"])
def test_a_seat_that_waits_keeps_no_other_one_from_being_missed(progress: str) -> None:
    waits = Rung(silent_s=1.0 if progress == "working" else 60.0, text="no plan", after_subtask=True)
    room = Room(planner=(waits,), policy=(Rung(silent_s=1.0, text="I cannot move"),))
    room.vlm.progress = progress
    room.sim.run(seconds=1.0)
    room.planner.is_silent = room.policy.is_silent = True
    room.sim.run(seconds=3.0)
    assert room.texts == ["I cannot move"]


def silent() -> Planner:
    """A planner that never begins."""
    planner = Planner()
    planner.is_silent = True
    return planner


def test_who_has_the_seat_that_it_would_be_handed_keeps_no_other_one_from_being_missed() -> None:
    room = Room(
        silent(),
        planner=(Rung(silent_s=1.0, do="hand_over", to="fallback", text="no plan"),),
        policy=(Rung(silent_s=1.0, text="I cannot move"),),
    )
    room.sim.run(seconds=1.0)
    room.sim.publish("lease", Lease(seat="planner", holder="fallback", number=1), source="guard")
    room.policy.is_silent = True
    room.sim.run(seconds=1.1)  # both are due at one look of the ladder
    assert room.texts == ["I cannot move"]


@pytest.mark.parametrize(("kind", "texts"), [("person", []), ("model", ["no plan"])])
def test_a_person_on_a_seat_may_be_as_silent_as_they_like(kind: Literal["person", "model"], texts: list[str]) -> None:
    room = Room(planner=(Rung(silent_s=1.0, text="no plan"),))
    room.sim.run(seconds=1.0)
    room.sim.publish("lease", Lease(seat="planner", holder="me-1", number=1, kind=kind), source="guard")
    room.planner.is_silent = True
    room.sim.run(seconds=3.0)
    assert room.texts == texts


def test_who_is_given_a_seat_that_nobody_was_heard_on_has_all_the_time_to_begin() -> None:
    room = Room(silent(), planner=(Rung(silent_s=1.0, text="no plan"),))
    room.planner.is_silent = True
    room.sim.publish("lease", Lease(seat="planner", holder="fallback", number=1), source="guard")
    room.sim.run(seconds=3.0)
    assert room.texts == []


@pytest.mark.parametrize(("silent_s", "said"), [(1.1, [0, 1]), (1.101, [0, 0])])
def test_a_rung_is_taken_once_its_time_is_over_to_the_very_moment(silent_s: float, said: list[int]) -> None:
    room = Room(silent(), planner=(Rung(silent_s=silent_s, text="no plan"),))
    room.sim.run(seconds=0.6)
    room.planner.is_silent = True
    told = []
    for until_s in (1.5, 1.7):  # it was heard at 0.5 s, and the ladder looks five times a second
        room.sim.run(seconds=until_s - room.sim.clock.now_ns() * 1e-9)
        told.append(len(room.texts))
    assert told == said


def test_a_holder_whose_model_may_not_be_asked_any_more_counts_as_silent_whatever_it_says() -> None:
    room = Room(planner=(Rung(silent_s=1.0, text="no plan"), Rung(silent_s=2.0, do="hold", text="I wait")))
    interrupts = room.sim.record_topic("interrupt", Interrupt)
    room.sim.run(seconds=1.0)
    for _ in range(2):  # it is told again and again
        room.sim.publish("seat/out_of_budget", OutOfBudget(seat="planner", why="300 calls were made"))
        room.sim.publish("seat/out_of_budget", OutOfBudget(seat="wheels", why="nobody sits there"))
        room.sim.run(seconds=0.9)
    assert room.texts == ["no plan"], "it begins at the top, and once"
    room.sim.run(seconds=1.0)
    assert room.texts == ["no plan", "I wait"]
    assert [one.text for one in interrupts] == ["300 calls were made"]
    room.sim.publish("lease", Lease(seat="planner", holder="fallback", number=1), source="guard")
    room.sim.run(seconds=0.9)
    room.planner.is_silent = True
    room.sim.run(seconds=0.5)
    assert room.texts == ["no plan", "I wait"], "whoever sits there next has time to begin"


def test_a_rung_tells_why_by_whom_and_under_which_id() -> None:
    room = Room(planner=(Rung(silent_s=1.0, text="no plan"), Rung(silent_s=2.0, do="hold", text="I wait")))
    interrupts = room.sim.record_topic("interrupt", Interrupt)
    room.sim.run(seconds=1.0)
    room.planner.is_silent = True
    room.sim.run(seconds=4.0)
    assert {utterance.speaker for utterance in room.said} == {"robot"}
    assert [(one.id, one.depth, one.by) for one in interrupts] == [("ladder-1", "stop", "ladder")]
    assert interrupts[0].text.startswith("the planner has been silent for 2.")
    assert room.states[-1].reason == f"stopped by ladder: {interrupts[0].text}"


def test_a_ladder_asks_for_a_seat_in_its_own_name() -> None:
    room = Room(planner=(Rung(silent_s=1.5, do="hand_over", to="fallback"),))
    requests = room.sim.record_topic("seat/request", SeatRequest)
    room.sim.run(seconds=1.0)
    room.planner.is_silent = True
    room.sim.run(seconds=3.0)
    assert requests[0] == SeatRequest(seat="planner", do="take", holder="fallback", kind="script", by="ladder")


def test_a_ladder_without_seats_watches_nobody() -> None:
    ladder = Ladder(speaker="butler")
    assert (ladder.speaker, ladder.watches, ladder.progress, ladder.count) == ("butler", {}, "", 0)
    ladder.on_start()
    assert ladder.watches == {}
    ladder.tick()
    ladder.commanded(JointCommand(position=HOME))


def test_a_driver_that_is_gone_is_told_of_and_its_return_too() -> None:
    robot = StillRobot()
    sim = Simulation(robot, Ladder(driver_gone_s=0.5))
    said: list[Utterance] = sim.record_topic("said", Utterance)
    sim.run(seconds=2.0)
    assert said == []
    robot.is_silent = True
    sim.run(seconds=0.4)
    assert said == []
    sim.run(seconds=3.0)
    assert [one.text for one in said] == [DRIVER_GONE], "once"
    robot.is_silent = False
    sim.run(seconds=1.0)
    assert [one.text for one in said] == [DRIVER_GONE, DRIVER_BACK]


class Stopped(Node):
    """A guard that waits for a person, or one that lets commands through."""

    state = Publisher(GuardState, "guard/state")

    def __init__(self, mode: Literal["moving", "stopped", "disarmed"]) -> None:
        self.mode = mode

    @every(hz=10)
    def tick(self) -> None:
        self.state.publish(GuardState(mode=self.mode, reason="so"))


@pytest.mark.parametrize(("mode", "asked"), [("moving", ""), ("stopped", GO_ON), ("disarmed", GO_ON)])
def test_who_feels_the_body_again_asks_for_a_go_on_only_where_the_guard_waits_for_one(
    mode: Literal["moving", "stopped", "disarmed"], asked: str
) -> None:
    robot = StillRobot()
    sim = Simulation(robot, Stopped(mode), Ladder(driver_gone_s=0.5))
    said = sim.record_topic("said", Utterance)
    sim.run(seconds=1.0)
    robot.is_silent = True
    sim.run(seconds=1.0)
    robot.is_silent = False
    sim.run(seconds=1.0)
    assert said[-1].text == DRIVER_BACK + asked


def test_a_driver_that_never_was_is_not_missed_and_no_time_is_refused() -> None:
    sim = Simulation(Ladder())
    said: list[Utterance] = sim.record_topic("said", Utterance)
    sim.run(seconds=3.0)
    assert said == []
    for driver_gone_s in (0.0, float("inf"), float("nan")):
        with pytest.raises(
            ParameterError, match=pattern("seats.seconds_expected", name="driver_gone_s", value=driver_gone_s)
        ):
            Ladder(driver_gone_s=driver_gone_s)
