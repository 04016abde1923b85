"""The study's node: what is kept is published, and who withdraws ends what runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast, get_args

import pytest

from bridges.web.http.open_page import Session
from bridges.web.http.server import STATIC
from bridges.web.http.wire import NoteMark
from bridges.web.speech.push_to_talk import Refusal
from bridges.web.study import wire
from bridges.web.study.journal import read_events
from bridges.web.study.node import Study
from bridges.web.study.protocol import EXAMPLE, Protocol, read_protocol
from bridges.web.study.session import Event, RefusalCode, SessionProgress, told
from bridges.web.study.session_store import SessionStore
from nodes.msgs import Mark
from runtime import Simulation
from runtime.coordination.lease import LEASE_TOPIC, Lease
from tests.bridges.web.http.test_jsonl import fill_up
from tests.support.sentences import sentence

PROTOCOL = read_protocol(EXAMPLE)


def opened(
    node: Study, sim: Simulation, folder: Path, protocol: Protocol = PROTOCOL
) -> tuple[SessionStore, Session, Session]:
    """The study under way, everybody on the seats of its first condition; who guides it, and who takes part."""
    sim.run(seconds=0.1)
    node.store = store = SessionStore(protocol, folder, node.tell)  # in virtual time it opens none by itself
    for seat in protocol.condition[0].seats:
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
    assert set(person.notices) == {"not_yours"}
    assert set(guide.notices) == {sentence("bridges.participant_only")}
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
    assert person.notices == ["not_heard_stops"]
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

    def notice(self, role: str, text: str) -> None:
        self.asked.append(f"{role}: {text}")

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


def test_every_refusal_is_a_code_that_the_participant_s_page_has_words_for() -> None:
    for file, codes in (("study/strings_en.js", get_args(RefusalCode)), ("speech/talk_en.js", get_args(Refusal))):
        known = set(re.findall(r"^  (\w+):", (STATIC / file).read_text(encoding="utf-8"), re.MULTILINE))
        assert {code for code in codes if code} <= known


def test_while_the_disk_is_full_in_a_trial_each_is_told_once_and_the_trial_goes_on_until_there_is_room(
    tmp_path: Path,
) -> None:
    node, pages = Study(folder=str(tmp_path)), Pages()
    sim = Simulation(node)
    trials, stops = sim.record(Study.trial), sim.record(Study.interrupt)
    store, guide, person = opened(node, sim, tmp_path)
    for session, message in (
        (guide, wire.BeginSession(1)), (person, wire.Agree(3)), (guide, wire.Skip()), (guide, wire.StartTrial()),
    ):  # fmt: skip
        node.handle(session, message)
    node.pages = cast(Any, pages)
    assert store.journal is not None
    assert store.progress is not None
    file = fill_up(store.journal)
    node.handle(guide, NoteMark("laughter"))
    node.handle(guide, wire.EndTrial())
    node.handle(person, wire.Speak("Hello."))
    node.handle(person, wire.Withdraw())
    sim.run(seconds=0.1)
    assert set(guide.notices) == {sentence("bridges.nothing_was_changed", why="No space left on device")}
    assert person.notices == ["not_kept"]
    assert pages.asked == [
        f"experimenter: what collaborator said: {sentence('bridges.written_later', why='No space left on device')}"
    ]
    assert [one.depth for one in stops] == ["stop"], "who wants to stop has a robot that stands"
    store.progress.started_at_s -= 3600.0  # its time is over
    for _ in range(20):
        node.beat(0)
    assert len(pages.asked) == 2
    assert store.progress.phase == "running"
    store.journal.file = file
    node.beat(0)
    sim.run(seconds=0.1)
    assert [one.phase for one in trials] == ["started", "time"]
    node.handle(person, wire.Withdraw())
    store.close()
    events = [one for one in read_events(tmp_path / "P01.jsonl") if one.what != "condition"]
    assert [one.what for one in events] == ["begin", "consent", "skip", "trial", "said", "trial", "withdraw"]
    assert [one.text for one in events if one.what == "said"] == ["Hello."]


@pytest.mark.parametrize(
    "text", ["\N{WAVING HAND SIGN}\N{EMOJI MODIFIER FITZPATRICK TYPE-5} שלום\u202eabc", "よい" * 5_000, "\0\x1b[2J"]
)
def test_an_answer_of_any_signs_is_kept_as_it_was_written(text: str, tmp_path: Path) -> None:
    node = Study(folder=str(tmp_path))
    sim = Simulation(node)
    answers = sim.record(Study.answer)
    store, guide, person = opened(node, sim, tmp_path)
    node.handle(guide, wire.BeginSession(1))
    node.handle(person, wire.Agree(3))
    while store.progress is not None and store.progress.step.ident != "end/closing":
        node.handle(guide, wire.StartTrial() if store.progress.step.kind == "trial" else wire.Skip())
        if store.progress.phase == "running":
            node.handle(guide, wire.EndTrial())
    said = wire.decode(json.dumps({"t": "answer", "step": "end/closing", "item": "words", "value": text}))
    node.handle(person, said)
    node.handle(person, wire.AnswerItem("end/closing", "words", "x" * 16_001))
    sim.run(seconds=0.1)
    store.close()
    assert person.notices == ["unfit"]
    assert [one.value for one in answers] == [text]
    assert [one.value for one in read_events(tmp_path / "P01.jsonl") if one.what == "answer"] == [text]


def test_a_participant_is_sent_pictures_of_the_study_s_camera_and_only_while_a_trial_runs(tmp_path: Path) -> None:
    path, node = tmp_path / "protocol.toml", Study(folder=str(tmp_path))
    path.write_text(EXAMPLE.read_text(encoding="utf-8").replace("[participant]", '[participant]\ncamera = "room"'))
    sim = Simulation(node)
    store, guide, person = opened(node, sim, tmp_path, read_protocol(path))
    shown = []
    for session, message in (
        (guide, wire.BeginSession(1)), (person, wire.Agree(3)), (guide, wire.Skip()), (guide, wire.StartTrial()),
        (guide, wire.EndTrial("completed")),
    ):  # fmt: skip
        node.handle(session, message)
        view = node.state(person, 0)["view"]
        shown.append((person.shown, view["step"].get("camera", "")))
    assert shown == [((), "")] * 3 + [(("room",), "room"), ((), "")]
    store.close()
