"""The study's node: what is kept is published, and who withdraws ends what runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from bridges.web.http.client import Session
from bridges.web.http.wire import NoteMark
from bridges.web.study import wire
from bridges.web.study.journal import read_events
from bridges.web.study.node import Study
from bridges.web.study.protocol import EXAMPLE, read_protocol
from bridges.web.study.session import Event, SessionProgress, told
from bridges.web.study.session_store import SessionStore
from runtime import Simulation
from runtime.coordination.lease import LEASE_TOPIC, Lease
from runtime.msgs import Mark

PROTOCOL = read_protocol(EXAMPLE)


def opened(node: Study, sim: Simulation, folder: Path) -> tuple[SessionStore, Session, Session]:
    """The study under way, everybody on the seats of its first condition; who guides it, and who takes part."""
    sim.run(seconds=0.1)
    node.store = store = SessionStore(PROTOCOL, folder, node.tell)  # in virtual time it opens none by itself
    for seat in PROTOCOL.condition[0].seats:
        sim.publish(LEASE_TOPIC, Lease(seat=seat, holder=seat, number=1))
    sim.run(seconds=0.1)
    return store, Session("g", "experimenter", "g"), Session("p", "participant", "p")


def test_what_is_kept_is_published_and_a_role_does_only_what_is_its_own(tmp_path: Path) -> None:
    node = Study(folder=str(tmp_path))
    sim = Simulation(node)
    trials, answers, notes = (sim.record(port) for port in (Study.trial, Study.answer, Study.note))
    steps, marks = sim.record(Study.step), sim.record(Study.mark)
    store, guide, person = opened(node, sim, tmp_path)
    for session, message in (
        (person, wire.BeginSession(2)),
        (guide, wire.BeginSession(2)),
        (guide, wire.Agree(3)),
        (person, wire.Agree(3)),
        (person, wire.AnswerItem("before/about-you", "robots", "much")),
        (person, wire.AnswerItem("before/about-you", "robots", "much")),  # again, as after a lost link: kept once
        (person, wire.Skip()),
        (guide, wire.Skip()),
        (person, wire.StartTrial()),
        (guide, wire.StartTrial()),
        (person, NoteMark("x")),
        (guide, NoteMark("laughter", "loud")),
        (person, wire.ExperimenterNote("x")),
        (guide, wire.ExperimenterNote("They laughed.")),
        (guide, wire.EndTrial("aborted")),
        (guide, wire.Speak("x")),
    ):
        node.handle(session, message)
    sim.run(seconds=0.1)
    assert [(one.participant, one.number, one.attempt, one.phase) for one in trials] == [
        ("P02", 1, 1, "started"),
        ("P02", 1, 1, "aborted"),
    ]
    assert (trials[0].task, trials[0].condition) == tuple(one.id for one in PROTOCOL.trials_of(2)[0])
    assert [(one.item, one.value) for one in answers] == [("robots", "much")]
    assert [one.what for one in steps if one.what != "condition"] == ["begin", "consent", "skip"]
    assert [(one.label, one.note) for one in marks] == [("laughter", "loud")]
    assert [one.text for one in notes] == ["They laughed."]
    assert set(person.notices) == {"only the experimenter does that"}
    assert set(guide.notices) == {"only the participant does that"}
    store.close()


@pytest.mark.parametrize("who", ["participant", "experimenter"])
def test_who_withdraws_in_a_trial_ends_it_with_its_recording_and_the_robot_stops(who: str, tmp_path: Path) -> None:
    node = Study(folder=str(tmp_path))
    sim = Simulation(node)
    trials, steps, stops = sim.record(Study.trial), sim.record(Study.step), sim.record(Study.interrupt)
    store, guide, person = opened(node, sim, tmp_path)
    for session, message in (
        (guide, wire.BeginSession(1)),
        (person, wire.Agree(3)),
        (guide, wire.Skip()),
        (guide, wire.StartTrial()),
        (person if who == "participant" else guide, wire.Withdraw()),
    ):
        node.handle(session, message)
    sim.run(seconds=0.1)
    assert guide.notices == person.notices == []
    assert [one.phase for one in trials] == ["started", "aborted"]
    assert [one.what for one in steps if one.what != "condition"] == ["begin", "consent", "skip", "withdraw"]
    assert [one.depth for one in stops] == ["stop"]
    assert store.progress is not None
    assert store.progress.is_over
    store.close()
    read = read_events(tmp_path / "P01.jsonl")
    progress = SessionProgress.of(PROTOCOL, Event("begin", 0.0, number=1, protocol=PROTOCOL.sha))
    assert told(progress, read[1:]).has_withdrawn


def test_a_participants_stop_is_never_refused(tmp_path: Path) -> None:
    node = Study(folder=str(tmp_path))
    sim = Simulation(node)
    heard, stops = sim.record(Study.speak), sim.record(Study.interrupt)
    store, guide, person = opened(node, sim, tmp_path)
    for session, message in ((guide, wire.BeginSession(1)), (person, wire.Agree(3)), (guide, wire.Skip())):
        node.handle(session, message)
    node.handle(person, wire.Speak("Stop!"))  # between the trials
    assert person.notices == ["nobody listens at the moment, but the robot stops"]
    node.handle(guide, wire.StartTrial())
    for words in (*["one more word"] * 20, "Stop!", "Stop!"):
        node.handle(person, wire.Speak(words))
    sim.run(seconds=0.1)
    assert [one.text for one in stops] == ["participant: Stop!"]
    assert [one.text for one in heard][-2:] == ["Stop!", "Stop!"]
    assert len(heard) < 20
    store.close()


class Pages:
    """Notes what is asked of the pages' host."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def renew(self, role: str) -> None:
        self.asked.append(f"another token for {role}")

    def send_away(self) -> None:
        self.asked.append("those with old tokens go")

    def poke(self) -> None: ...

    def token(self, role: str) -> str:
        return f"{role} {len(self.asked)}"


@pytest.mark.parametrize("how", ["withdraws", "is done"])
def test_each_participant_has_a_token_of_their_own(how: str, tmp_path: Path) -> None:
    node, pages = Study(folder=str(tmp_path)), Pages()
    sim = Simulation(node)
    store, guide, person = opened(node, sim, tmp_path)
    node.pages = cast(Any, pages)
    for session, message in ((guide, wire.BeginSession(1)), (person, wire.Agree(3))):
        node.handle(session, message)
    assert pages.asked == ["those with old tokens go"]
    if how == "withdraws":
        node.handle(person, wire.Withdraw())
    else:
        while store.progress is not None and not store.progress.is_over:
            node.handle(guide, wire.Skip())
    node.handle(guide, NoteMark(label="late"))  # what is noted afterwards takes nothing back again
    assert pages.asked == ["those with old tokens go", "another token for participant"]
    fresh = Session("next", "participant", "participant", pages.token("participant"))
    assert node.state(fresh, 0)["view"]["step"] is None  # welcome, and nothing of the one before
    assert node.state(person, 0)["view"]["over"]
    node.handle(guide, wire.BeginSession(2))
    assert pages.asked[2:] == ["those with old tokens go"]
    store.close()


def test_a_wizard_s_mistake_is_kept_with_the_trial_in_which_it_was_marked(tmp_path: Path) -> None:
    node = Study(folder=str(tmp_path))
    sim = Simulation(node)
    marks = sim.record(Study.mark)
    store, guide, person = opened(node, sim, tmp_path)
    slip = Mark(label="wizard mistake", note="said “Yes.”", by="Wiz")
    sim.publish("mark", slip)  # before there is any trial
    sim.run(seconds=0.1)
    for session, message in (
        (guide, wire.BeginSession(2)), (person, wire.Agree(3)), (guide, wire.Skip()), (guide, wire.StartTrial()),
    ):  # fmt: skip
        node.handle(session, message)
    sim.publish("mark", slip)
    sim.run(seconds=0.1)
    node.handle(guide, NoteMark("laughter", "loud"))
    sim.run(seconds=0.1)
    store.close()
    kept = [one for one in read_events(tmp_path / "P02.jsonl") if one.what == "mark"]
    assert [(one.by, one.item, one.step) for one in kept] == [
        ("Wiz", "wizard mistake", "trial-1"),
        ("experimenter", "laughter", "trial-1"),
    ]
    assert [one.label for one in marks].count("wizard mistake") <= 2  # as it was published, and not told again
