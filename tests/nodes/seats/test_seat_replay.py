"""A recording on a seat: under a lease like anybody's, without a jump, marked as a replay, and never by itself."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from nodes.guard.node import Guard
from nodes.mcap.file import BagWriter
from nodes.msgs import Action, GuardState, JointCommand, RobotState, SceneDescription, Subtask
from nodes.msgs.signature import Signatures, request
from nodes.seats.command import main
from nodes.seats.recorded_track import RecordedTrack, TrackMessage, read_score
from nodes.seats.replayed import ReplayedPolicy, ReplayedVLM
from nodes.stretch.limits import STRETCH_3
from runtime import Node, Publisher, Simulation, Subscription, every
from runtime.coordination.lease import Lease
from runtime.errors import ParameterError, UserError
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.seats_table import SeatTable
from runtime.message import Envelope, Message, Stamped
from tests.support.robots.still_robot import StillRobot
from tests.support.sentences import sentence
from tests.support.standing import HOME

TOKEN = "t" * 64
MS = 1_000_000
SEATS = {0: "planner", 1: "vlm", 2: "policy", -1: ""}
START_NS = 77_000_000_000
FAST = JointCommand(position=(1.0, *HOME[1:]), base_v_mps=-0.3)


def write(path: Path, notes: list[tuple[int, str, str, int, Message]], holder: str = "policy") -> Path:
    """A recording of these: ms, topic, source, seat, message."""
    seats = {seat: {"holder": holder if seat == "policy" else seat} for seat in ("planner", "vlm", "policy")}
    bag = BagWriter(path, {"seats": json.dumps(seats), "clock": "real"})
    for seq, (at_ms, topic, source, seat, message) in enumerate(notes):
        bag.write(
            Stamped(message, Envelope(topic, source, seq + 1, START_NS + at_ms * MS, {"image": 1}, seat=SEATS[seat]))
        )
    bag.close({"outcome": "{}"})
    return path


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Two seconds of driving back, after one of talk."""
    notes: list[tuple[int, str, str, int, Message]] = [
        (0, "subtask", "planner", 0, Subtask(id="planner-1", text="x")),
    ]
    notes += [(1000 + 50 * number, "command", "policy", 2, FAST) for number in range(40)]
    return write(tmp_path / "run.mcap", notes)


# --- the score


def test_a_score_begins_with_its_first_note_and_keeps_the_pace(recording: Path) -> None:
    score = read_score(recording, "policy", {"command": JointCommand})
    assert len(score.notes) == 40
    assert score.length_s == pytest.approx(1.95)
    assert [note.at_ns for note in score.notes[:3]] == [0, 50 * MS, 100 * MS]
    assert read_score(recording, "policy", {"command": JointCommand}, from_s=2.0).length_s == pytest.approx(0.95)


def test_who_held_the_seat_is_heard_and_its_shadows_are_not(tmp_path: Path) -> None:
    def command(number: int) -> JointCommand:
        return JointCommand(position=HOME, base_v_mps=number * 0.1)

    path = write(
        tmp_path / "run.mcap",
        [
            (0, "command", "policy", 2, command(0)),
            (10, "command", "shadow", 2, command(1)),
            (20, "lease", "guard", -1, Lease(seat="policy", holder="me-7", number=1, kind="person")),
            (30, "command", "policy", 2, command(2)),
            (40, "command", "me-7", -1, command(3)),
            (50, "lease", "guard", -1, Lease(seat="vlm", holder="other", number=4)),
            (60, "command", "me-7", -1, command(4)),
        ],
    )
    score = read_score(path, "policy", {"command": JointCommand})
    assert [getattr(note.message, "base_v_mps", None) for note in score.notes] == [0.0, pytest.approx(0.3), 0.4]


def test_ids_are_those_of_the_recording_and_nobody_s_here(tmp_path: Path) -> None:
    folder = tmp_path / "monday"
    folder.mkdir()
    scene = SceneDescription(text="x", subtask_id="planner-1", progress="working")
    action = Action(id="vlm-3", skill="look")
    path = write(folder / "run.mcap", [(0, "action", "vlm", 1, action), (5, "description", "vlm", 1, scene)])
    score = read_score(path, "vlm", {"action": Action, "description": SceneDescription})
    one, two = (note.message for note in score.notes)
    assert isinstance(one, Action)
    assert isinstance(two, SceneDescription)
    assert (score.name, one.id, two.subtask_id) == ("monday", "monday/vlm-3", "monday/planner-1")


def test_a_late_player_skips_states_and_no_events() -> None:
    command, action = JointCommand(position=HOME), Action(id="a", skill="look")
    notes = (
        TrackMessage(0, "command", command),
        TrackMessage(1, "action", action),
        TrackMessage(2, "action", action),
        TrackMessage(3, "command", FAST),
    )
    score = RecordedTrack("x", notes)
    assert [note.at_ns for note in score.due(10)] == [1, 2, 3]
    assert score.is_over
    assert score.due(10) == []
    score.begin()
    assert [note.at_ns for note in score.due(1)] == [0, 1]


def test_a_recording_in_which_the_seat_said_nothing_is_told(recording: Path) -> None:
    with pytest.raises(UserError, match="nobody on the seat vlm said anything on action there"):
        read_score(recording, "vlm", {"action": Action})


# --- on a seat


class Drive(Node):
    """The live policy: ahead."""

    seat = "policy"
    provenance = "model:drive-1"
    command = Publisher(JointCommand, "command")
    state = Subscription(RobotState, "robot/state")

    @every(hz=20)
    def tick(self) -> None:
        self.command.publish(JointCommand(position=(0.1, *HOME[1:]), base_v_mps=0.3))


class Room:
    def __init__(self, recording: Path, *, holder: str = "policy") -> None:
        self.guard = Guard(arm="auto")
        shadows = tuple({"policy", "replayed"} - {holder})
        self.sim = Simulation(
            NodeSpec("policy", Drive),
            NodeSpec("replayed", ReplayedPolicy, params={"recording": str(recording)}),
            NodeSpec("guard", Guard, instance=self.guard),
            StillRobot(),
            seats={"policy": SeatTable(holder=holder, shadows=shadows, kinds={"replayed": "replay"})},
        )
        self.commands: list[JointCommand] = self.sim.record_topic("robot/command", JointCommand)
        self.states: list[GuardState] = self.sim.record_topic("guard/state", GuardState)
        self.leases: list[Lease] = self.sim.record_topic("lease", Lease)
        self.said: list[Stamped[Any]] = []
        self.sim.observe(lambda one: self.said.append(one) if one.envelope.source == "replayed" else None)
        self.sim.run(seconds=0.1)
        self.guard.proofs = Signatures(TOKEN)

    def ask(self, do: Any, holder: str = "", token: str = TOKEN) -> None:
        self.sim.publish("seat/request", request(token, do, "policy", holder, "Ann", self.sim.clock.now_ns()))


def test_it_says_nothing_before_somebody_puts_it_on_the_seat(recording: Path) -> None:
    room = Room(recording)
    room.sim.run(seconds=3.0)
    assert room.said == []
    room.ask("take", "replayed", token="wrong")
    room.sim.run(seconds=1.0)
    assert room.said == []
    assert room.states[-1].holder == "policy"


def test_named_as_the_holder_it_does_not_move_a_robot_either(recording: Path) -> None:
    room = Room(recording, holder="replayed")
    room.sim.run(seconds=3.0)
    assert room.said == []
    assert room.commands[-1].base_v_mps == 0.0


def test_it_takes_over_without_a_jump_at_its_own_pace_and_then_the_robot_holds(recording: Path) -> None:
    room = Room(recording)
    room.sim.run(seconds=1.5)
    assert room.commands[-1].base_v_mps == pytest.approx(0.3)
    room.ask("take", "replayed")
    room.sim.run(seconds=1.9)
    assert room.states[-1].holder == "replayed"
    assert room.commands[-1].base_v_mps == pytest.approx(-0.267, abs=0.04)
    room.sim.run(seconds=1.0)
    assert room.states[-1].mode == "holding", "a recording that is over is silence"
    room.sim.run(seconds=1.5)
    assert room.commands[-1].base_v_mps == 0.0
    base, dt_s = STRETCH_3.base, 0.02
    for before, after in pairwise(room.commands):
        assert abs(after.base_v_mps - before.base_v_mps) <= base.acceleration_mps2 * dt_s + 1e-9
        for one, two, limit in zip(before.position, after.position, STRETCH_3.joints, strict=True):
            assert abs(two - one) <= limit.speed * dt_s + 1e-9
    news = [lease for lease in room.leases if not lease.is_repetition]
    assert [(lease.holder, lease.kind, lease.displaced) for lease in news] == [("replayed", "replay", "policy")]


def test_its_messages_say_what_they_are_and_how_old_nothing_behind_them_is(recording: Path) -> None:
    room = Room(recording)
    room.ask("take", "replayed")
    room.sim.run(seconds=1.0)
    assert {one.envelope.provenance.partition(":")[0] for one in room.said} == {"replay"}
    assert {one.envelope.born_ns("image") for one in room.said} == {None}


def test_given_back_it_is_silent_and_taken_again_it_begins_anew(recording: Path) -> None:
    room = Room(recording)
    room.ask("take", "replayed")
    room.sim.run(seconds=0.5)
    room.ask("give")
    room.sim.run(seconds=0.1)
    said = len(room.said)
    room.sim.run(seconds=1.0)
    assert len(room.said) == said
    assert room.states[-1].holder == "policy"
    room.ask("take", "replayed")
    room.sim.run(seconds=3.0)
    assert len(room.said) == said + 40


def test_each_seat_has_its_own_replay(tmp_path: Path) -> None:
    path = write(tmp_path / "run.mcap", [(0, "action", "vlm", 1, Action(id="1", skill="look"))])
    sim = Simulation(NodeSpec("replayed", ReplayedVLM, params={"recording": str(path)}))
    actions = sim.record_topic("action", Action)
    sim.run(seconds=0.1)
    sim.publish("lease", Lease(seat="vlm", holder="replayed", number=1, is_repetition=True))
    sim.run(seconds=0.2)
    assert actions == [], "a repeated lease is no hand-over"
    sim.publish("lease", Lease(seat="vlm", holder="replayed", number=2))
    sim.run(seconds=0.2)
    assert len(actions) == 1


def test_a_recording_that_is_not_there_is_told_before_anything_starts(tmp_path: Path) -> None:
    assert ReplayedPolicy(str(tmp_path / "no.mcap")).problems() == [
        sentence("seats.no_recording", path=repr(str(tmp_path / "no.mcap")))
    ]
    with pytest.raises(ParameterError, match="from_s is -1"):
        ReplayedPolicy("x.mcap", from_s=-1)


def test_the_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    assert "--replay RUN.mcap" in capsys.readouterr().out
