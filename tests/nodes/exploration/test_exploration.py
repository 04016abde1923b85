"""Explore, be asked, explore, answer: the score by hand, rooms by seed, questions that need trying, all policies."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path

import msgspec
import pytest

from nodes.exploration.command import BASELINES, baseline, main
from nodes.exploration.examiner import Examiner, in_view, score_of
from nodes.exploration.explorer import LOOK_DOWN_RAD, ExplorerNode, FrontierExplorer, Memory
from nodes.exploration.messages import ExplorationResult, StepDone
from nodes.exploration.room import (
    MOST,
    MOVES,
    SIDE,
    THINGS,
    TRIED_BY,
    Cell,
    Room,
    RoomThing,
    answer,
    cell_after,
    majority,
    metres,
    phrases,
    question_in,
    questions_of,
    ways,
)
from nodes.guard.node import Guard
from nodes.mcap.file import BagReader
from nodes.msgs import RobotState
from nodes.robot.driver import Driver
from nodes.stretch.body import BODY
from nodes.stretch.kinematics import HEAD_PAN
from nodes.stretch.limits import STOW
from runtime import NodeSpec, Simulation
from tests.support.sentences import sentence
from tests.support.servers.fake_openai_server import FakeOpenAI, answers


def test_the_score_is_the_papers_formula() -> None:
    assert score_of(0.5, 0.9, 100, 0.01) == pytest.approx(0.5 + 0.4 * math.exp(-1))
    assert score_of(0.5, 0.9, 100, 0.0) == pytest.approx(0.9)  # k = 0: Acc_ref
    assert score_of(0.5, 0.9, 100, 1e9) == pytest.approx(0.5)  # k large: Acc_exp


def test_a_room_is_its_seed_and_withholds_what_has_to_be_tried() -> None:
    assert Room(3).things == Room(3).things != Room(4).things
    room = Room(3)
    thing = next(iter(room.things.values()))
    room.at = thing.at
    trial = TRIED_BY[thing.kind][0]
    assert room.do(f"{trial} {thing.name}") == (thing.name, thing.state)
    room.at = (0, 0) if thing.at[0] + thing.at[1] > 3 else (11, 11)
    assert room.do(f"{trial} {thing.name}") is None  # out of reach: a step, and nothing
    assert room.steps == 2


def test_more_than_half_of_the_questions_need_trying_and_each_is_true_of_the_room() -> None:
    assert len(phrases()) >= 20
    for seed in range(10):
        room = Room(seed)
        questions = questions_of(room, seed)
        assert sum(question.needs_trying for question in questions) >= len(questions) / 2
        states = {thing.name: thing.state for thing in room.things.values()}
        places = {thing.name: thing.at for thing in room.things.values()}
        assert [answer(question, states, places, {}) for question in questions] == [q.answer for q in questions]


def test_who_knows_nothing_answers_what_is_usual_elsewhere() -> None:
    usual = majority(range(100, 120))
    for question in questions_of(Room(0), 0):
        assert answer(question, {}, {}, usual) == usual["|".join(question.choices)]


def test_all_of_the_floor_is_reached_and_no_way_leads_through_a_thing() -> None:
    for seed in range(20):
        room = Room(seed)
        taken = {thing.at for thing in room.things.values()}
        assert room.at not in taken
        assert set(ways(room.at, taken)) == {(x, y) for x in range(SIDE) for y in range(SIDE)} - taken
        assert not any(cell_after(room.at, move) in taken for move in room.actions() if move in MOVES)


def test_as_many_questions_as_may_be_asked_can_be_asked_of_any_room() -> None:
    for seed in range(50):
        assert len(questions_of(Room(seed), seed, MOST)) == MOST


def test_a_text_says_what_is_asked_and_not_its_answer() -> None:
    for question in questions_of(Room(5), 5):
        assert question_in(question.text, Room(5).things) == msgspec.structs.replace(question, answer="")
    assert question_in("What time is it?", Room(5).things) is None


HERE = (2, 6)


def seen_from(*things: str, pan_rad: float = 0.0, heading_rad: float = 0.0) -> tuple[set[str], set[Cell]]:
    """Of "red mug 5 6" and the like by the head camera of a robot in `HERE` that faces east."""
    told = [one.rsplit(" ", 2) for one in things]
    laid = [RoomThing(name, name.split()[-1], name.split()[0], (int(x), int(y)), "") for name, x, y in told]
    state = RobotState(
        read_ns=0, position=(*STOW[:HEAD_PAN], pan_rad, LOOK_DOWN_RAD), velocity=(0.0,) * 8, effort=(0.0,) * 8,
        base_x_m=0.0, base_y_m=0.0, base_heading_rad=heading_rad, base_v_mps=0.0, base_w_radps=0.0,
    )  # fmt: skip
    return in_view(BODY, state, HERE, laid)


def test_the_camera_sees_ahead_of_it_and_neither_beside_nor_far_away() -> None:
    things = ("red mug 5 6", "blue mug 2 9", "green mug 8 6")  # 1.8 m ahead, 1.8 m to the right, 3.6 m ahead
    assert seen_from(*things)[0] == {"red mug"}
    assert seen_from(*things, pan_rad=-math.pi / 2)[0] == {"blue mug"}
    assert seen_from(*things, heading_rad=-math.pi / 2)[0] == {"blue mug"}
    assert seen_from(*things, heading_rad=math.pi)[0] == set()


def test_what_stands_high_hides_thing_and_floor_behind_it_and_what_is_low_does_not() -> None:
    hidden, floor = seen_from("white cupboard 4 6", "red mug 6 6")
    assert hidden == {"white cupboard"}
    assert {(4, 5), (5, 5), (6, 5)} <= floor
    assert not {(4, 6), (5, 6), (6, 6)} & floor
    assert seen_from("white pan 4 6", "red mug 6 6")[0] == {"white pan", "red mug"}


@pytest.mark.long
def test_a_thing_that_was_not_seen_is_not_tried() -> None:
    _, _, steps = explored("random", 3, steps=12, questions=3, most_steps=1)
    seen: set[str] = set()
    for step in steps:
        seen |= {one.name for one in step.things}
        assert {one.partition(" ")[2] for one in step.actions if one not in MOVES} <= seen
    assert 0 < len(steps[0].things) < len(steps[-1].things) < THINGS


def test_a_frontier_goes_around_what_it_has_not_seen_but_cannot_enter() -> None:
    memory = Memory()
    floor = tuple((x, y) for x in range(SIDE) for y in range(SIDE) if (x, y) != (2, 4))
    memory.look(StepDone(number=0, x=2, y=6, actions=("east", "south", "west"), things=(), floor=floor, left=9))
    assert asyncio.run(FrontierExplorer().act(memory, ())) in ("east", "west")  # what is unseen lies in the north


def explored(policy: str, seed: int, **task: int) -> tuple[ExplorationResult, list[RobotState], list[StepDone]]:
    """One room with a kinematic robot behind its guard, in virtual time."""
    simulation = Simulation(
        NodeSpec("explorer", ExplorerNode, params={"policy": policy}),
        NodeSpec("examiner", Examiner, params=dict(task)),
        NodeSpec("driver", Driver, params={"robot": "nodes.sim.kinematic:KinematicRobot"}),
        NodeSpec("guard", Guard, params={"arm": "auto"}),
        seed=seed,
    )
    results: list[ExplorationResult] = simulation.record_topic("room/result", ExplorationResult)
    states: list[RobotState] = simulation.record_topic("robot/state", RobotState)
    steps: list[StepDone] = simulation.record_topic("room/step", StepDone)
    for _ in range(120):
        simulation.run(seconds=5.0)
        if results:
            break
    simulation.close()
    return results[0], states, steps


@pytest.mark.long
def test_the_robots_body_goes_through_the_room_and_refines_what_it_was_asked() -> None:
    result, states, steps = explored("frontier", 3, steps=3, questions=3, most_steps=60)
    assert result.acc_ref == 1.0 >= result.acc_exp  # it looks for what it was asked until it knows
    assert result.late_steps == 0
    assert result.t3 == steps[-1].number - 3
    assert result.score == pytest.approx(score_of(result.acc_exp, 1.0, result.t3, 0.01))
    room = Room(3)
    where = [(state.base_x_m, state.base_y_m) for state in states]
    for step in steps:  # each step ends where the body is
        assert any(math.dist(metres((step.x, step.y), room.began_at), at) < 0.12 for at in where)
    for thing in room.things.values():  # 0.6 m cells: the base passes beside things, never over them
        assert min(math.dist(metres(thing.at, room.began_at), at) for at in where) > 0.4


def test_a_random_robot_does_worse_and_ends_too() -> None:
    result, _, steps = explored("random", 3, steps=3, questions=3, most_steps=6)
    assert result.t3 == 6
    assert [step.number for step in steps] == sorted(step.number for step in steps)
    assert 0.0 <= result.acc_exp <= result.acc_ref <= 1.0


def test_who_sees_nothing_is_right_by_chance_or_by_what_is_usual() -> None:
    usual = majority(range(100, 150))
    chance, most = ([baseline(name, seed, 20, usual)["score"] for seed in range(40)] for name in BASELINES)
    assert 0.35 < sum(chance) / 40 < 0.5 < sum(most) / 40 < 0.65  # yes or no, three or four choices


@pytest.mark.long
@pytest.mark.processes
def test_one_command_makes_a_table_with_the_baselines_and_a_recording_of_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = tmp_path / "task.toml"
    task.write_text("[explore]\nsteps = 4\nquestions = 5\nenergy = 0.02\nmost_steps = 3\n")
    go, prose, stop = answers('{"action": "north"}'), answers("Let me look around."), answers('{"action": "done"}')
    with FakeOpenAI(go, prose, go, go, stop) as server:
        model, out = f"m@{server.url}", tmp_path / "out"
        asked = ["--policy", model, "--policy", "frontier", "--seeds", "1", "--task", str(task), "--out", str(out)]
        assert main([*asked, "--jobs", "1", "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)["policies"]
        assert sentence("exploration.could_not_answer") in server.requests[4].user_text
        assert main([*asked, "--jobs", "1"]) == 0  # all of it stands there already
        assert len(server.requests) == 5
    assert list(rows) == [*BASELINES, model, "frontier"]
    assert rows[model]["t3"] == 0  # done at once
    assert rows[model]["unreadable"] >= 1
    recordings = sorted(out.glob("*/run.mcap"))
    assert len(recordings) == 2
    topics = {message.topic for message in BagReader(recordings[0])}
    assert {"robot/state", "room/step", "heard", "said", "scene", "room/result"} <= topics


@pytest.mark.parametrize(
    ("table", "policy", "why"),
    [("step = 4", "random", sentence("exploration.unknown_key", key="step", meant="steps")),
     ("steps = -1", "random", sentence("exploration.wrong_task", steps=-1, questions=20)),
     ("questions = 500", "random", sentence("exploration.wrong_task", steps=25, questions=500)),
     ("steps = ", "random", sentence("exploration.no_toml")),
     ("", "frontal", sentence("exploration.no_such_policy", policy="frontal"))],
)  # fmt: skip
def test_a_task_or_a_policy_that_is_none_is_a_sentence_before_anything_moves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    table: str, policy: str, why: str,
) -> None:  # fmt: skip
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    task = tmp_path / "task.toml"
    task.write_text(f"[explore]\n{table}\n")
    assert main(["--task", str(task), "--policy", policy, "--out", str(tmp_path / "out")]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
