"""Studies without a browser: orders, protocol files, sessions as events, and files that survive a kill."""

from __future__ import annotations

import csv
import io
import itertools
import os
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridges.web.questionnaire.questionnaire import questionnaire_of, shipped
from bridges.web.study.export import gather
from bridges.web.study.journal import SessionFile, SessionFolder, answers_table, open_session, read_events
from bridges.web.study.protocol import EXAMPLE, Protocol, balanced_square, drawn_for, order_of, read_protocol
from bridges.web.study.rehearse import Rehearsal
from bridges.web.study.session import Event, SessionProgress, SessionRefused, told
from bridges.web.study.session_store import SessionStore
from bridges.web.study.steps import media_name, steps_of
from bridges.web.study.views import experimenter_view, participant_view
from nodes.episodes.evaluation.dimensions import SEVEN
from runtime.errors import UserError
from tests.support.sentences import pattern, sentence

PROTOCOL = read_protocol(EXAMPLE)


def story_of(number: int = 1, protocol: Protocol = PROTOCOL) -> SessionProgress:
    return SessionProgress.of(protocol, Event("begin", 0.0, number=number, protocol=protocol.sha))


def fill(progress: SessionProgress, now_s: float = 1.0) -> list[Event]:
    """Answer everything that the step asks for, and hand it in."""
    asked = progress.step.questionnaire
    assert asked is not None
    step, events = progress.step.ident, []
    for item in asked.item:
        value = item.choices[0] if item.choices else "fine" if item.kind == "text" else item.low
        events.append(progress.answer(now_s, step, item.id, value))
        progress.apply(events[-1])
    events.append(progress.submit(now_s, step))
    progress.apply(events[-1])
    return events


def played(progress: SessionProgress) -> list[Event]:
    """A whole session."""
    events = [progress.consent(1.0, 3)]
    progress.apply(events[0])
    while not progress.is_over:
        if progress.step.kind == "trial":
            for event in (progress.start(2.0, "x"), Event("said", 2.1, by="robot", text="Hi")):
                progress.apply(event)
                events.append(event)
            events.append(progress.finish(3.0, "x", "completed"))
            progress.apply(events[-1])
        else:
            events += fill(progress)
    return events


@pytest.mark.parametrize("size", range(1, 9))
def test_a_square_balances_places_and_what_follows_what(size: int) -> None:
    rows = balanced_square(size)
    assert all(sorted(row) == list(range(size)) for row in rows)
    places = Counter((place, one) for row in rows for place, one in enumerate(row))
    pairs = Counter((one, other) for row in rows for one, other in itertools.pairwise(row))
    assert len(places) == size * size
    assert len(set(places.values())) == 1
    assert len(pairs) == size * (size - 1)
    assert len(set(pairs.values())) <= 1


def test_orders_are_seeded_and_go_round() -> None:
    first = [order_of(4, number, "latin-square", 5) for number in range(1, 9)]
    assert first == [order_of(4, number, "latin-square", 5) for number in range(1, 9)]
    assert first[:4] == first[4:]
    assert first != [order_of(4, number, "latin-square", 6) for number in range(1, 9)]
    assert order_of(3, 9, "fixed", 1) == [0, 1, 2]
    assert sorted(order_of(6, 3, "random", 1)) == list(range(6))


def test_over_a_round_each_task_is_done_under_each_condition_in_each_place() -> None:
    found = Counter(
        (place, task.id, condition.id)
        for number in range(1, 5)
        for place, (task, condition) in enumerate(PROTOCOL.trials_of(number))
    )
    assert len(found) == 8
    assert set(found.values()) == {1}


MINIMAL = """
title = "T"
[consent]
text = "c"
statements = ["s"]
[[task]]
id = "t"
title = "t"
text = "t"
[[condition]]
id = "c"
title = "c"
"""


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("title", "tytle"), "the file has the unknown key 'tytle'; did you mean 'title'? known: agents, code"),
        (('id = "c"', 'id = "../c"'), sentence("bridges.wrong_id", table="condition", id="../c")),
        (('statements = ["s"]', "statements = []"), sentence("bridges.consent_needs_text")),
        (('title = "T"', 'title = "T"\ncode = "P"'), "code is 'P'; expected a name with {number} in it"),
        (('title = "T"', 'title = "T"\ncode = "{0.x}"'), "code is '{0.x}'; expected a name with {number} in it"),
        (("[[task]]", '[questionnaires]\nend = ["tlx"]\n[[task]]'), "[questionnaires] names 'tlx', which there is not"),
        (("[[task]]", '[[mark]]\nkey = "m"\nlabel = "x"\n[[task]]'), "[[mark]] 'x' has the key 'm'; expected a digit"),
        (("[[task]]", "[design]\ntasks = 'sorted'\n[[task]]"), "[design] tasks is 'sorted'; expected \"latin"),
        (('text = "t"', 'text = "t"\nlimit_s = -1'), "[[task]] t: limit_s is -1.0; expected 0 (none) or a positive"),
        (("[[task]]", '[[questionnaire]]\nid="q"\ntitle="q"\nitem=[]\n[[task]]'), "[[questionnaire]] 'q' needs an id"),
        (
            ("[[task]]", '[[questionnaire]]\nid="q"\ntitle="q"\nitem=[{id="a",text="b",low=5,high=5}]\n[[task]]'),
            f"[[questionnaire]] 'q' item 1 ('a') goes from 5 to 5; {sentence('bridges.low_below_high')}",
        ),
        (("title = ", "= "), ', line 2, column 1: is no TOML: Invalid statement: = "T"'),
    ],
)
def test_a_mistake_in_a_protocol_is_told_in_a_sentence(change: tuple[str, str], told: str, tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(MINIMAL.replace(*change, 1))
    with pytest.raises(UserError) as told_so:
        read_protocol(file)
    assert str(told_so.value).startswith(str(file))
    assert told in str(told_so.value)


def test_the_seven_dimensions_are_those_of_the_evaluation() -> None:
    asked = shipped("seven-dimensions")
    assert asked is not None
    assert [(item.id, item.low, item.high) for item in asked.item] == [(one.name, one.low, one.high) for one in SEVEN]


def test_a_session_goes_from_consent_to_thanks() -> None:
    progress = story_of()
    kinds = [step.kind for step in progress.steps]
    assert kinds == ["consent", "questionnaire", "trial", "questionnaire", "trial", *["questionnaire"] * 4, "thanks"]
    played(progress)
    assert progress.step.kind == "thanks"


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (lambda progress: progress.consent(0.0, 2), sentence("bridges.not_all_ticked")),
        (lambda progress: progress.submit(0.0, "consent"), "the session is at 'Before we begin' now"),
        (lambda progress: progress.start(0.0, "x"), "the session is at 'Before we begin' now"),
        (lambda progress: progress.skip(0.0, "x"), sentence("bridges.consent_stays")),
        (lambda progress: progress.note(0.0, "x", " "), "the note is empty"),
    ],
)
def test_what_does_not_fit_the_step_is_refused(wish: Any, why: str) -> None:
    with pytest.raises(SessionRefused, match=why):
        wish(story_of())


def test_answers_are_checked_and_required() -> None:
    progress = story_of()
    progress.apply(progress.consent(0.0, 3))
    step = progress.step.ident
    for item, value in (("age", 17), ("age", "old"), ("age", True), ("robots", "never"), ("nothing", 1)):
        with pytest.raises(SessionRefused):
            progress.answer(0.0, step, item, value)
    with pytest.raises(SessionRefused, match=pattern("bridges.one_unanswered")):
        progress.submit(0.0, step)


def test_a_broken_off_trial_can_be_started_again_and_time_ends_one() -> None:
    progress = story_of()
    progress.apply(progress.consent(0.0, 3))
    fill(progress)
    progress.apply(progress.start(10.0, "x"))
    assert not progress.is_due(249.0)
    assert progress.is_due(250.0)
    progress.apply(progress.finish(20.0, "x", "aborted"))
    assert (progress.phase, progress.step.ident) == ("ready", "trial-1")
    again = progress.start(30.0, "x")
    assert again.attempt == 2
    progress.apply(again)
    progress.apply(progress.finish(40.0, "clock", "time"))
    assert progress.step.ident == "trial-1/nasa-tlx"


def test_a_participant_never_sees_condition_notes_or_what_comes_next() -> None:
    progress = story_of()
    while True:
        seen = str(participant_view(PROTOCOL, progress))
        for task, condition in PROTOCOL.trials_of(1):
            assert condition.title not in seen
            assert condition.notes not in seen
            assert task.notes not in seen
        if progress.is_over:
            break
        if progress.step.kind == "consent":
            progress.apply(progress.consent(0.0, 3))
        elif progress.step.kind == "trial" and progress.phase == "ready":
            progress.apply(progress.start(0.0, "x"))
        elif progress.step.kind == "trial":
            progress.apply(progress.finish(0.0, "x", "completed"))
        else:
            fill(progress)
    assert "wizard" in str(experimenter_view(PROTOCOL, progress, [])).lower()


def test_dialogue_is_shown_from_the_start_of_the_trial_and_not_where_the_study_forbids_it() -> None:
    progress = story_of()
    progress.apply(progress.consent(0.0, 3))
    progress.apply(Event("said", 1.0, by="robot", text="before", how="said"))
    fill(progress)
    progress.apply(progress.start(2.0, "x"))
    progress.apply(Event("said", 3.0, by="robot", text="during", how="said"))
    progress.apply(progress.mark(4.0, "x", "laughter", ""))
    assert [line["text"] for line in participant_view(PROTOCOL, progress)["step"]["lines"]] == ["during"]


def test_participants_are_shown_names_that_the_study_chooses_and_never_an_operator() -> None:
    protocol = msgspec.structs.replace(PROTOCOL, names={"robot": "Robin"})
    progress = story_of(protocol=protocol)
    progress.apply(progress.consent(0.0, 3))
    fill(progress)
    progress.apply(progress.start(2.0, "x"))
    for who in ("robot", "operator", "collaborator"):
        progress.apply(Event("said", 3.0, by=who, text="Hello.", how="heard"))
    lines = participant_view(protocol, progress)["step"]["lines"]
    assert [line["who"] for line in lines] == ["Robin", "", "collaborator"]
    assert [line["who"] for line in progress.lines] == [
        "robot",
        "operator",
        "collaborator",
    ]  # the data stay as they are


def test_a_session_is_its_events_wherever_they_are_cut() -> None:
    whole = played(story_of())
    for cut in range(len(whole) + 1):
        read = told(story_of(), whole[:cut])
        live = story_of()
        for event in whole[:cut]:
            live.apply(event)
        assert (read.place, read.phase, read.answers, read.lines) == (live.place, live.phase, live.answers, live.lines)


def test_a_file_that_was_torn_by_a_kill_is_read_up_to_its_last_whole_line(tmp_path: Path) -> None:
    folder = SessionFolder(tmp_path)
    progress, journal = open_session(folder, PROTOCOL, 7, 0.0, "x")
    journal.write(progress.consent(1.0, 3))
    journal.close()
    path = folder.file("P07")
    whole = path.read_bytes()
    for cut in range(whole.index(b"\n") + 1, len(whole) + 1):
        path.write_bytes(whole[:cut])
        assert len(read_events(path)) == 1 + (cut == len(whole))
    path.write_bytes(whole + b'{"what":"answ')
    again, journal = open_session(folder, PROTOCOL, 7, 2.0, "x")
    assert again.step.ident == "before/about-you"
    journal.write(again.note(3.0, "x", "on we go"))
    journal.close()
    assert [event.what for event in read_events(path)] == ["begin", "consent", "note"]
    folder.close()


def test_two_runs_do_not_share_a_folder_and_a_finished_number_is_not_taken_twice(tmp_path: Path) -> None:
    folder = SessionFolder(tmp_path)
    with pytest.raises(UserError, match=pattern("bridges.another_run_writes")):
        SessionFolder(tmp_path)
    journal = SessionFile(folder.file("P01"))
    for event in (Event("begin", 0.0, number=1, protocol=PROTOCOL.sha), *played(story_of())):
        journal.write(event)
    journal.close()
    with pytest.raises(UserError, match=pattern("bridges.session_is_over", code="P01")):
        open_session(folder, PROTOCOL, 1, 0.0, "x")
    other = SessionFile(folder.file("P02"))
    other.write(Event("begin", 0.0, number=2, protocol="another"))
    other.close()
    with pytest.raises(UserError, match=pattern("bridges.begun_with_another", file="P02.jsonl")):
        open_session(folder, PROTOCOL, 2, 0.0, "x")
    folder.file("P03").write_text("hello\n")
    with pytest.raises(UserError, match=r"P03.jsonl:1: no event of a session"):
        open_session(folder, PROTOCOL, 3, 0.0, "x")
    folder.close()


def test_a_run_goes_on_with_what_the_last_one_left_and_calls_its_trial_interrupted(tmp_path: Path) -> None:
    heard: list[Event] = []
    store = SessionStore(PROTOCOL, tmp_path, lambda progress, event: heard.append(event))
    assert store.go_on(0.0) == ""
    store.begin(4, 0.0, "x")
    store.do(lambda progress: progress.consent(1.0, 3))
    store.do(lambda progress: progress.skip(1.0, "x"))
    store.do(lambda progress: progress.start(2.0, "x"))
    store.close()  # as a kill would: nothing is written at the end
    heard.clear()
    again = SessionStore(PROTOCOL, tmp_path, lambda progress, event: heard.append(event))
    assert again.go_on(9.0) == "P04"
    assert again.progress is not None
    assert (again.progress.phase, again.progress.step.ident, again.progress.attempt) == ("ready", "trial-1", 1)
    assert [(event.what, event.how) for event in heard] == [("begin", ""), ("trial", "interrupted")]
    with pytest.raises(SessionRefused, match="the session of P04 is not over"):
        again.begin(5, 9.0, "x")
    again.close()


@pytest.mark.parametrize("rated", ["", '{"episode":"e","rater":"ada","name":"robot","dimension":"GOAL","score":7}\n'])
def test_who_rates_a_trial_of_the_session_does_not_keep_the_next_run_from_going_on(rated: str, tmp_path: Path) -> None:
    store = SessionStore(PROTOCOL, tmp_path, lambda progress, event: None)
    store.begin(4, 0.0, "x")
    store.close()
    ratings = tmp_path / "P04-trial-1-1.ratings.jsonl"
    ratings.write_text(rated)
    os.utime(ratings, (4e9, 4e9))
    again = SessionStore(PROTOCOL, tmp_path, lambda progress, event: None)
    assert again.go_on(9.0) == "P04"
    assert again.sessions() == ["P04"]
    again.close()


def test_answers_are_a_table_with_task_and_condition() -> None:
    progress = story_of(2)
    played(progress)
    rows = list(csv.DictReader(io.StringIO(answers_table(progress))))
    trials = PROTOCOL.trials_of(2)
    load = [row for row in rows if row["questionnaire"] == "nasa-tlx"]
    assert len(load) == 12
    assert {(row["trial"], row["task"], row["condition"]) for row in load} == {
        (str(place), task.id, condition.id) for place, (task, condition) in enumerate(trials, 1)
    }
    assert {row["agent"] for row in rows if row["questionnaire"] == "seven-dimensions"} == {"the robot", "you"}


def changed(tmp_path: Path, *changes: tuple[str, str]) -> Protocol:
    """The example with pieces of its text changed."""
    text = EXAMPLE.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return read_protocol(path)


PRACTICE = (
    'id      = "cups"',
    'id = "warm-up"\ntitle = "Warming up"\ntext = "Say hello."\npractice = true\n\n[[task]]\nid      = "cups"',
)


def test_practice_comes_first_asks_nothing_afterwards_and_is_told_apart_in_the_tables(tmp_path: Path) -> None:
    protocol = changed(tmp_path, PRACTICE)
    idents = [step.ident for step in steps_of(protocol, 1) if step.trial]
    assert idents == ["practice-1", "trial-2", "trial-2/nasa-tlx", "trial-3", "trial-3/nasa-tlx"]
    assert [task.id for task, _ in protocol.trials_of(1)].count("warm-up") == 0
    Rehearsal(protocol, tmp_path / "played", 1, (), ()).play(1)
    trials = gather(tmp_path / "played").rows["trials"]
    assert [(one["task"] == "warm-up", one["practice"]) for one in trials] == [(True, "yes"), (False, ""), (False, "")]


def test_conditions_drawn_for_each_trial_come_equally_often_and_by_the_seed(tmp_path: Path) -> None:
    protocol = changed(tmp_path, ('trials     = "paired"', 'trials     = "drawn"'))
    drawn = [tuple(condition.id for _, condition in protocol.trials_of(number)) for number in range(1, 41)]
    assert all(sorted(one) == ["autonomous", "wizard"] for one in drawn)
    assert {one[0] for one in drawn} == {"autonomous", "wizard"}
    assert [drawn_for(5, 2, 3, seed=1)] * 2 == [drawn_for(5, 2, 3, seed=1) for _ in range(2)]
    assert sorted(Counter(drawn_for(5, 2, 3, seed=1)).values()) == [2, 3]


BRANCHES = (
    ('[questionnaires]\nbefore      = ["about-you"]', '[questionnaires]\nbefore      = ["first", "more", "about-you"]'),
    (
        '[[questionnaire]]\nid    = "about-you"',
        """[[questionnaire]]
id = "first"
title = "First"
[[questionnaire.item]]
id = "met"
text = "Have you met a robot?"
kind = "choice"
choices = ["yes", "no"]
[[questionnaire.item]]
id = "which"
text = "Which one?"
kind = "text"
when = { met = "yes" }

[[questionnaire]]
id = "more"
title = "More"
when = { "first/met" = "yes" }
[[questionnaire.item]]
id = "often"
text = "How often?"

[[questionnaire]]
id    = "about-you\"""",
    ),
)


@pytest.mark.parametrize(("met", "comes_next"), [("yes", "before/more"), ("no", "before/about-you")])
def test_an_answer_decides_what_is_asked_next(met: str, comes_next: str, tmp_path: Path) -> None:
    progress = story_of(protocol=changed(tmp_path, *BRANCHES))
    progress.apply(progress.consent(1.0, 3))
    progress.apply(progress.answer(2.0, "before/first", "met", met))
    if met == "yes":
        with pytest.raises(SessionRefused, match=pattern("bridges.one_unanswered")):
            progress.submit(3.0, "before/first")
        progress.apply(progress.answer(3.0, "before/first", "which", "A red one."))
    progress.apply(progress.submit(4.0, "before/first"))
    assert progress.step.ident == comes_next


def test_what_a_later_answer_took_off_the_page_is_no_answer() -> None:
    asked = questionnaire_of(tomllib.loads(BRANCHES[1][1] + "\ntitle = 'You'")["questionnaire"][0], "first")
    assert asked.asked({"met": "yes", "which": "red"}) == {"met": "yes", "which": "red"}
    assert asked.asked({"met": "no", "which": "red"}) == {"met": "no"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ((BRANCHES[1][0], BRANCHES[1][1].replace("{ met", "{ seen")), sentence("bridges.item_before_it")),
        ((BRANCHES[1][0], BRANCHES[1][1].replace("first/met", "first/seen")), "when names 'first/seen'"),
        (('id      = "cups"', 'id      = "cups"\nmedia = ["gone.png"]'), "media 'gone.png' is not there"),
        (('id      = "cups"', 'id      = "cups"\nmedia = ["film.avi"]'), sentence("bridges.no_page_shows_it")),
    ],
)
def test_a_branch_or_a_picture_that_leads_nowhere_is_told(change: tuple[str, str], told: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=told):
        changed(tmp_path, change)


def test_pictures_and_videos_have_an_address_on_the_participant_s_page(tmp_path: Path) -> None:
    (tmp_path / "cups.png").write_bytes(b"a picture")
    protocol = changed(tmp_path, ('id      = "cups"', 'id      = "cups"\nmedia = ["cups.png"]'))
    assert protocol.media == {"cups.png": tmp_path / "cups.png"}
    shown = [
        step.document()["media"] for step in steps_of(protocol, 1) if step.task is not None and step.task.id == "cups"
    ]
    assert shown == [[f"/static/{media_name('cups.png')}"]]


def test_an_experimenter_who_is_to_be_blind_sees_neither_answers_nor_the_condition(tmp_path: Path) -> None:
    blind = "[experimenter]\nsees_answers = false\nsees_condition = false\n\n[participant]"
    for changes, sees in (((), True), ((("[participant]", blind),), False)):
        protocol = changed(tmp_path, *changes)
        progress = story_of(protocol=protocol)
        progress.apply(progress.consent(1.0, 3))
        fill(progress)
        progress.apply(Event("condition", 2.0, by="study", item="planner", value="human_planner", how="set"))
        seen = experimenter_view(protocol, progress, [])
        assert bool(seen["answers"]) is sees
        assert ("human_planner" in str(seen)) is sees
        assert ("The models decide" in str(seen)) is sees
        assert seen["missing"] == 0


def test_a_protocol_that_is_edited_in_mid_study_changes_no_session_and_nothing_is_lost(tmp_path: Path) -> None:
    path, folder = tmp_path / "protocol.toml", tmp_path / "study"
    path.write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    first = SessionStore(read_protocol(path), folder, lambda progress, event: None)
    first.begin(1, 0.0, "x")
    first.do(lambda progress: progress.consent(1.0, 3))
    first.close()
    path.write_text(
        EXAMPLE.read_text(encoding="utf-8").replace("title  = ", "title = 'Edited' # ", 1), encoding="utf-8"
    )
    edited = SessionStore(read_protocol(path), folder, lambda progress, event: None)
    assert edited.go_on(2.0) == ""
    [kept] = folder.glob("protocol-*.toml")
    told = sentence("bridges.begun_with_another", file="P01.jsonl") + sentence("bridges.go_on_with_it", kept=kept)
    assert edited.left_behind() == f"the session of P01 is not over: {told}"
    with pytest.raises(SessionRefused, match=re.escape(told)):
        edited.begin(1, 2.0, "x")
    edited.begin(2, 3.0, "x")
    edited.close()
    again = SessionStore(read_protocol(kept), folder, lambda progress, event: None)
    again.begin(1, 4.0, "x")
    assert again.progress is not None
    assert (again.progress.code, again.progress.place) == ("P01", 1)
    again.do(lambda progress: progress.withdraw(5.0, "P01"))
    again.close()
    last = SessionStore(read_protocol(path), folder, lambda progress, event: None)
    assert last.left_behind() == ""
    last.close()
    titles = {read_protocol(one).title for one in folder.glob("protocol-*.toml")}
    assert titles == {PROTOCOL.title, "Edited"}


def test_after_a_clock_that_went_back_an_hour_a_participant_sees_only_what_was_said_in_this_trial() -> None:
    progress = story_of()
    for event in (
        Event("consent", 7200.0, value=3), Event("skip", 7200.0),
        Event("trial", 7300.0, step="trial-1", how="started", number=1, attempt=1),
        Event("said", 7301.0, by="collaborator", text="Before.", how="heard"),
        Event("trial", 3600.0, step="trial-1", how="interrupted", number=1, attempt=1),  # a new run, and its clock
        Event("trial", 3700.0, step="trial-1", how="started", number=1, attempt=2),
        Event("said", 3701.0, by="collaborator", text="Now.", how="heard"),
    ):  # fmt: skip
        progress.apply(event)
    assert [line["text"] for line in participant_view(PROTOCOL, progress)["step"]["lines"]] == ["Now."]
    assert progress.elapsed_s(3702.0) == 2.0
