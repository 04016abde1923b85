"""A trial counts where the robot could move and what happened was recorded; what was so stands in the data."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridges.web.console.feed import Recorders
from bridges.web.http.open_page import Session
from bridges.web.study import wire
from bridges.web.study.export import gather, write
from bridges.web.study.journal import SessionFolder, open_session
from bridges.web.study.node import Study
from bridges.web.study.protocol import EXAMPLE, read_protocol
from bridges.web.study.session import Event
from bridges.web.study.session_store import SessionStore
from bridges.web.study.trial_watch import TrialWatch, has_trial_recorder
from nodes.msgs import GuardState, RecorderState
from runtime import Simulation
from runtime.clock import to_ns
from runtime.message import Envelope, Stamped

PROTOCOL = read_protocol(EXAMPLE)
BEGAN_S = 1_700_000_000.0


class Room:
    """A robot and a recorder, as they say what they do, and a trial of a session."""

    def __init__(self, folder: Path) -> None:
        self.now_s = 100.0
        self.mode, self.recorders, self.silent_s = "holding", Recorders(), 0.0
        self.watch = TrialWatch(self.guard, self.recorders, is_recorded=True)
        self.sessions = SessionFolder(folder)
        self.progress, self.journal = open_session(self.sessions, PROTOCOL, 1, BEGAN_S, "x")
        self.add(self.progress.consent(BEGAN_S, 3))
        self.add(self.progress.skip(BEGAN_S, "x"))

    @property
    def now_ns(self) -> int:
        return to_ns(self.now_s)

    def add(self, event: Event) -> None:
        self.journal.write(event)
        self.progress.apply(event)

    def guard(self) -> Stamped[GuardState]:
        state: Any = GuardState(mode=self.mode, reason="somebody said stop")  # type: ignore[arg-type]
        return Stamped(state, Envelope("guard/state", "guard", 1, self.now_ns - to_ns(self.silent_s)))

    def records(self, mode: Any, why: str = "") -> None:
        state = RecorderState(mode=mode, file="P01-trial-1-1.mcap", why=why)
        self.recorders.take(Stamped(state, Envelope("trial_recorder/state", "r", 1, self.now_ns)))

    def passes(self, seconds: float, recorder: str = "recording") -> None:
        for _ in range(round(seconds * 10)):
            self.now_s += 0.1
            self.records(recorder, "no space")
            for event in self.watch.news(self.progress, BEGAN_S + self.now_s, self.now_ns):
                self.add(event)

    def start(self) -> None:
        self.watch.begin(self.now_ns)
        self.add(self.progress.start(BEGAN_S + self.now_s, "x"))

    def ends(self, how: Any = "completed") -> dict[str, Any]:
        """The trial's row in the data."""
        self.add(self.progress.finish(BEGAN_S + self.now_s, "x", how, self.watch.recorder))
        return gather(self.sessions.path).rows["trials"][-1]

    def __enter__(self) -> Room:
        return self

    def __exit__(self, *_: object) -> None:
        self.journal.close()
        self.sessions.close()


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    with Room(tmp_path / "study") as opened:
        yield opened


@pytest.mark.parametrize("mode", ["stopped", "estopped", "disarmed"])
def test_with_a_robot_that_may_not_move_no_trial_counts(room: Room, mode: str) -> None:
    room.records("waiting")
    assert room.watch.why_not_begin(room.now_ns) == ""
    room.mode = mode
    assert "somebody said stop" in room.watch.why_not_begin(room.now_ns)


def test_without_a_word_of_the_guard_no_trial_counts_and_the_robot_is_known_to_stand(room: Room) -> None:
    room.start()
    room.passes(2.0)
    for _ in range(50):
        room.silent_s += 0.1
        room.passes(0.1)
    assert "guard for 5 s" in room.watch.why_not_end(room.now_ns)
    room.silent_s = 0.0
    room.passes(1.0)
    assert room.watch.why_not_end(room.now_ns) == ""
    assert room.ends()["robot_stopped_s"] == pytest.approx(5.0, abs=0.3)


def test_without_a_recording_no_trial_counts_where_the_launch_file_has_a_recorder(room: Room) -> None:
    assert room.watch.why_not_begin(room.now_ns), "it has said nothing yet"
    room.records("stopped", "no space left")
    assert "no space left" in room.watch.why_not_begin(room.now_ns)
    room.records("recording")
    assert room.watch.why_not_begin(room.now_ns) == ""
    room.now_s += 10.0
    assert room.watch.why_not_begin(room.now_ns), "it is silent"
    without = TrialWatch(room.guard, Recorders(), is_recorded=False)
    assert without.why_not_begin(room.now_ns) == "", "a study that is not recorded says so in its data"
    assert has_trial_recorder('[nodes.r]\nuse = "nodes.recording.trial_recorder:TrialRecorder"\n')
    assert not has_trial_recorder('[nodes.study]\nuse = "bridges.web.study.node:Study"\n')


def test_how_long_the_robot_was_stopped_and_nothing_was_recorded_stands_in_the_trials_table(room: Room) -> None:
    room.start()
    room.passes(1.0, "waiting")  # the recorder opens its file
    room.passes(4.0)
    room.mode = "stopped"
    room.passes(6.0)
    room.mode = "holding"
    room.passes(1.0)
    room.passes(3.0, "stopped")
    room.passes(2.0)
    row = room.ends()
    assert row["robot_stopped_s"] == pytest.approx(6.0, abs=0.15)
    assert (row["recorder"], row["unrecorded_s"]) == ("parts", pytest.approx(3.0, abs=0.15))
    told = [(one["what"], one["how"]) for one in gather(room.sessions.path).rows["events"]]
    ways = ("stopped", "free", "lost", "recording")
    assert told[-4:] == [("robot" if how in ways[:2] else "recorder", how) for how in ways]


def test_a_pause_stops_the_robot_and_is_no_time_of_its_stop(room: Room) -> None:
    room.start()
    room.passes(1.0)
    room.add(room.progress.pause(BEGAN_S + room.now_s, "x", is_on=True))
    room.mode = "stopped"
    room.passes(5.0)
    room.mode = "holding"
    room.add(room.progress.pause(BEGAN_S + room.now_s, "x", is_on=False))
    room.passes(1.0)
    row = room.ends()
    assert (row["paused_s"], row["robot_stopped_s"], row["recorder"]) == (pytest.approx(5.0, abs=0.01), 0.0, "whole")


def test_a_trial_of_which_nothing_was_recorded_says_so_and_is_not_counted(room: Room) -> None:
    room.start()
    room.passes(5.0, "stopped")
    assert room.ends("completed")["recorder"] == "none"
    assert gather(room.sessions.path).rows["sessions"][0]["trials_completed"] == 0


def test_a_trial_whose_time_is_over_with_a_stopped_robot_does_not_count(tmp_path: Path) -> None:
    node = Study(folder=str(tmp_path))
    sim = Simulation(node)
    sim.run(seconds=0.1)
    node.store = store = SessionStore(PROTOCOL, tmp_path, node.tell)
    guide, person = Session("g", "experimenter", "g"), Session("p", "participant", "p")
    for session, message in ((guide, wire.BeginSession(1)), (person, wire.Agree(3)), (guide, wire.Skip())):
        node.handle(session, message)
    sim.publish("guard/state", GuardState(mode="stopped", reason="somebody said stop"))
    sim.run(seconds=0.1)
    node.handle(guide, wire.StartTrial())
    assert store.progress is not None
    assert store.progress.phase == "ready", "it does not start"
    assert guide.notices
    store.close()


def test_an_answer_that_is_refused_takes_back_the_one_before_it(tmp_path: Path) -> None:
    node = Study(folder=str(tmp_path))
    sim = Simulation(node)
    sim.run(seconds=0.1)
    node.store = store = SessionStore(PROTOCOL, tmp_path, node.tell)
    guide, person = Session("g", "experimenter", "g"), Session("p", "participant", "p")
    for session, message in ((guide, wire.BeginSession(1)), (person, wire.Agree(3))):
        node.handle(session, message)
    step = "before/about-you"
    for value in (20, 200):
        node.handle(person, wire.AnswerItem(step, "age", value))
    assert store.progress is not None
    assert store.progress.answers[step]["age"] == ""
    assert person.notices == ["unfit"]
    for item, given in (("age", 24), ("robots", "much"), ("gender", "")):
        node.handle(person, wire.AnswerItem(step, item, given))
    node.handle(guide, wire.Skip())
    store.close()
    assert {one.stat().st_mode & 0o777 for one in tmp_path.iterdir() if one.is_file()} == {0o600}


def test_what_people_answered_is_of_this_user_alone_and_opens_in_excel_where_that_is_asked_for(
    room: Room, tmp_path: Path
) -> None:
    step = room.progress.step
    while step.questionnaire is None:
        room.add(room.progress.skip(BEGAN_S, "x"))
        step = room.progress.step
    for item in step.questionnaire.item:
        value = {"text": "ü", "choice": (item.choices or ("",))[0]}.get(item.kind, item.low)
        room.add(room.progress.answer(BEGAN_S, step.ident, item.id, value))
    room.add(room.progress.submit(BEGAN_S, step.ident, 390))
    out = tmp_path / "export"
    write(gather(room.sessions.path), out, excel=True)
    assert (out / "answers.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    with (out / "answers.csv").open(encoding="utf-8-sig", newline="") as file:
        assert {one["screen_width_px"] for one in csv.DictReader(file)} == {"390"}
    for folder in (room.sessions.path, out):
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {one.stat().st_mode & 0o777 for one in folder.iterdir()} == {0o600}
