"""A study's sessions as tidy tables, and a protocol that is read before anybody takes part."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from bridges.web.study.command import main
from bridges.web.study.export import TABLES, gather, write
from bridges.web.study.journal import SessionFolder, kept_protocol, open_session
from bridges.web.study.protocol import EXAMPLE, read_protocol
from bridges.web.study.session import Event, SessionRefused
from bridges.web.study.session_store import SessionStore
from runtime.errors import UserError
from tests.support.sentences import pattern, sentence

PROTOCOL = read_protocol(EXAMPLE)
MIDNIGHT_S = 1_700_006_400.0  # 2023-11-15T00:00:00Z
LONG = "ü🤖\u202e" * 3000


def played(folder: SessionFolder, number: int, withdraws_in: int = 0) -> None:
    """A session in which everything is answered with the first value, each event a second after the one before."""
    progress, journal = open_session(folder, PROTOCOL, number, MIDNIGHT_S, "experimenter")

    def add(event: Event) -> None:
        journal.write(event)
        progress.apply(event)

    def now_s() -> float:
        return MIDNIGHT_S + progress.count

    while not progress.is_over:
        step = progress.step
        if step.kind == "consent":
            add(progress.consent(now_s(), 3))
        elif step.kind == "trial" and step.trial == withdraws_in:
            add(progress.start(now_s(), "experimenter"))
            add(progress.finish(now_s(), progress.code, "aborted"))
            add(progress.withdraw(now_s(), progress.code))
        elif step.kind == "trial":
            add(progress.start(now_s(), "experimenter"))
            add(progress.finish(now_s(), "experimenter", "interrupted"))  # the console crashes
            add(progress.start(now_s(), "experimenter"))
            add(Event("said", now_s(), by="collaborator", text='=Take, "the cup"\n', how="heard"))
            add(Event("wizard", now_s(), by="Wiz", how="say", value=1.25))
            add(Event("said", now_s(), by="robot", text="Yes.", how="said"))
            add(Event("said", now_s(), by="robot", text="And yes again.", how="said"))
            add(progress.mark(now_s(), "experimenter", "laughter", "both"))
            add(progress.finish(now_s(), "experimenter", "completed"))
        else:
            assert step.questionnaire is not None
            for item in step.questionnaire.item:
                value = {"text": LONG[:4000], "choice": (item.choices or ("",))[0]}.get(item.kind, item.low)
                add(progress.answer(now_s(), step.ident, item.id, value))
            add(progress.submit(now_s(), step.ident))
    journal.close()


def tables_of(folder: Path) -> dict[str, list[dict[str, str]]]:
    found = {}
    for path in folder.glob("*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            found[path.stem] = list(csv.DictReader(file))
    return found


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Two sessions, in the second of which somebody withdraws."""
    sessions = SessionFolder(tmp_path)
    played(sessions, 1)
    played(sessions, 2, withdraws_in=2)
    sessions.close()
    return tmp_path


def test_sessions_of_several_participants_are_joined_in_tidy_tables(study: Path) -> None:
    assert main(["export", str(study)]) == 0
    found = tables_of(study / "export")
    assert [(one["participant"], one["outcome"], one["trials_completed"]) for one in found["sessions"]] == [
        ("P01", "finished", "2"),
        ("P02", "withdrawn", "1"),
    ]
    assert found["sessions"][0]["began_at"] == "2023-11-15T00:00:00.000Z"
    assert [(one["participant"], one["trial"], one["attempt"], one["outcome"]) for one in found["trials"]] == [
        ("P01", "1", "1", "interrupted"), ("P01", "1", "2", "completed"),
        ("P01", "2", "1", "interrupted"), ("P01", "2", "2", "completed"),
        ("P02", "1", "1", "interrupted"), ("P02", "1", "2", "completed"),
        ("P02", "2", "1", "aborted"),
    ]  # fmt: skip
    orders = [[condition.id for _, condition in PROTOCOL.trials_of(number)] for number in (1, 2)]
    assert [one["condition"] for one in found["trials"]] == [
        *(name for name in orders[0] for _ in range(2)), orders[1][0], orders[1][0], orders[1][1],
    ]  # fmt: skip
    assert found["trials"][1]["duration_s"] == "6.0"
    said = [one for one in found["utterances"] if (one["participant"], one["trial"]) == ("P01", "1")]
    assert [(one["heard_by"], one["after_s"]) for one in said] == [("robot", ""), ("people", "2.0"), ("people", "")]
    assert said[0]["text"] == '=Take, "the cup"\n'
    assert {(one["by"], one["act"], one["after_s"]) for one in found["wizard"]} == {("Wiz", "say", "1.25")}
    words = [one["value"] for one in found["answers"] if one["item"] == "words"]
    assert words == [LONG[:4000]]  # of who was not asked, there is no row
    assert {one["condition"] for one in found["answers"] if one["questionnaire"] == "nasa-tlx"} == set(orders[0])
    assert [one["text"] for one in found["events"] if one["what"] == "mark"] == ["both"] * 3


def test_a_clock_that_is_an_hour_wrong_after_a_crash_loses_nothing_and_makes_no_negative_time(tmp_path: Path) -> None:
    store = SessionStore(PROTOCOL, tmp_path, lambda progress, event: None)
    store.begin(1, MIDNIGHT_S, "x")
    store.do(lambda progress: progress.consent(MIDNIGHT_S, 3))
    store.do(lambda progress: progress.skip(MIDNIGHT_S, "x"))
    store.do(lambda progress: progress.start(MIDNIGHT_S, "x"))
    store.close()  # as a kill would
    early_s = MIDNIGHT_S - 3600.0
    again = SessionStore(PROTOCOL, tmp_path, lambda progress, event: None)
    assert again.go_on(early_s) == "P01"
    again.do(lambda progress: progress.start(early_s + 1.0, "x"))
    again.do(lambda progress: progress.finish(early_s + 31.0, "x", "completed"))
    again.close()
    write(gather(tmp_path), tmp_path / "out")
    trials = tables_of(tmp_path / "out")["trials"]
    assert [(one["outcome"], one["duration_s"]) for one in trials] == [("interrupted", ""), ("completed", "30.0")]


def test_every_column_and_item_stands_in_the_codebook_and_the_protocol_is_kept(study: Path) -> None:
    assert main(["export", str(study), "--out", str(study / "out")]) == 0
    found = tables_of(study / "out")
    book = {(one["table"], one["name"]): one["meaning"] for one in found["codebook"]}
    assert all(book.values())
    for table, columns in TABLES.items():
        assert all((table, column.name) in book for column in columns)
        assert all(set(row) == {column.name for column in columns} for row in found[table])
    asked = {(one["questionnaire"], one["item"]) for one in found["answers"]}
    assert all(("answers", f"{questionnaire}/{item}") in book for questionnaire, item in asked)
    assert (study / "out" / f"protocol-{PROTOCOL.sha[:12]}.toml").read_text() == EXAMPLE.read_text()


def test_a_session_without_its_protocol_is_told_of_and_can_be_given_one(study: Path) -> None:
    kept_protocol(study, PROTOCOL.sha).unlink()
    with pytest.raises(UserError, match=r"P01\.jsonl was begun with a protocol that is not here .*--protocol FILE"):
        main(["export", str(study)])
    assert main(["export", str(study), "--protocol", str(EXAMPLE)]) == 0
    with pytest.raises(UserError, match=pattern("bridges.no_session")):
        main(["export", str(study / "export")])


def test_a_protocol_is_read_before_anybody_takes_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(EXAMPLE), "--participants", "2"]) == 0
    said = capsys.readouterr().out
    for number in (1, 2):
        order = ", ".join(f"{task.id} under {condition.id}" for task, condition in PROTOCOL.trials_of(number))
        assert f"P0{number}: {order}" in said
    assert "balanced over every 2 participants" in said
    assert "trials take 8 min at the most" in said
    assert sentence("bridges.lock_the_voice") in said
    odd = tmp_path / "odd.toml"
    odd.write_text(
        EXAMPLE.read_text().replace('"closing"]', "]").replace('conditions = "latin-square"', 'conditions = "fixed"')
    )
    assert main(["check", str(odd)]) == 0
    said = capsys.readouterr().out
    assert "[[questionnaire]] closing is asked nowhere" in said
    assert sentence("bridges.same_order") in said
    odd.write_text("title = ")
    with pytest.raises(UserError, match=r"odd\.toml"):
        main(["check", str(odd)])


def test_a_rehearsal_plays_the_whole_protocol_with_a_withdrawal_and_a_crash_and_is_the_same_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = []
    for name in ("one", "two"):
        asked = ["rehearse", str(EXAMPLE), "--withdraw", "3", "--crash", "5", "--out", str(tmp_path / name)]
        assert main(asked) == 0
        told.append(capsys.readouterr().out.replace(f"/{name}", ""))
        assert main(["export", str(tmp_path / name), "--parquet"]) == 0
        capsys.readouterr()
    assert told[0] == told[1]
    found = tables_of(tmp_path / "one" / "export")
    assert [one["outcome"] for one in found["sessions"]] == ["finished"] * 2 + ["withdrawn"] + ["finished"] * 3
    crashed = [(one["trial"], one["outcome"]) for one in found["trials"] if one["participant"] == "P05"]
    assert [trial for trial, _ in crashed] == ["1", "1", "2"]
    assert crashed[0] == ("1", "interrupted")
    assert {one["condition"] for one in found["trials"]} == {"autonomous", "wizard"}
    assert len([one for one in found["answers"] if one["questionnaire"] == "nasa-tlx"]) == 6 * (2 * 5)  # P03: none
    for one in found["trials"]:
        assert float(one["duration_s"]) <= 240.0
    with pytest.raises(UserError, match=pattern("recording.is_there_already")):
        main(["rehearse", str(EXAMPLE), "--out", str(tmp_path / "one")])
    assert {one["condition"] for one in found["wizard"]} == {"wizard"}
    script = EXAMPLE.parents[3] / "examples" / "study" / "table.py"
    done = subprocess.run(
        [sys.executable, script, tmp_path / "one" / "export"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "6 participants, 5 of them to the end" in done.stdout
    assert "wizard           nasa-tlx           5" in done.stdout
    parquet = pytest.importorskip("pyarrow.parquet")
    trials = parquet.read_table(tmp_path / "one" / "export" / "trials.parquet")
    assert [str(kind) for kind in trials.schema.types[1:3]] == ["int64", "int64"]
    assert trials.num_rows == len(found["trials"])


OWN = """
id = "warmth"
title = "How was the robot?"
[[item]]
id = "kind"
text = "kind"
low = 1
high = 5
"""


def test_a_questionnaire_of_one_s_own_file_is_asked_and_kept_with_the_protocol(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "warmth.toml").write_text(OWN)
    study = tmp_path / "mine.toml"
    study.write_text(EXAMPLE.read_text().replace('"nasa-tlx"', '"nasa-tlx", "own/warmth.toml"'))
    first = read_protocol(study)
    assert first.questionnaires.after_trial == ("nasa-tlx", "warmth")
    sessions = tmp_path / "sessions"
    assert main(["rehearse", str(study), "--participants", "1", "--out", str(sessions)]) == 0
    (tmp_path / "own" / "warmth.toml").write_text(OWN.replace("high = 5", "high = 7"))
    assert read_protocol(study).sha != first.sha  # edited in mid-study: another protocol
    assert main(["export", str(sessions)]) == 0  # what was asked stands beside the sessions
    book = {one["name"]: one["unit"] for one in tables_of(sessions / "export")["codebook"]}
    assert book["warmth/kind"].startswith("1 () to 5 ()")
    (tmp_path / "own" / "warmth.toml").unlink()
    with pytest.raises(UserError, match=r"warmth\.toml"):
        read_protocol(study)


def test_between_participants_each_has_one_condition_and_every_task(tmp_path: Path) -> None:
    study = tmp_path / "between.toml"
    study.write_text(EXAMPLE.read_text().replace('trials     = "paired"', 'trials     = "between"'))
    protocol = read_protocol(study)
    had = [{condition.id for _, condition in protocol.trials_of(number)} for number in range(1, 9)]
    assert all(len(one) == 1 for one in had)
    assert sorted(next(iter(one)) for one in had) == ["autonomous"] * 4 + ["wizard"] * 4
    assert {task.id for task, _ in protocol.trials_of(1)} == {"cups", "all"}


def test_a_trial_s_time_stands_still_while_it_is_paused(tmp_path: Path) -> None:
    sessions = SessionFolder(tmp_path)
    progress, journal = open_session(sessions, PROTOCOL, 1, MIDNIGHT_S, "experimenter")

    def add(event: Event) -> None:
        journal.write(event)
        progress.apply(event)

    add(progress.consent(MIDNIGHT_S, 3))
    add(progress.skip(MIDNIGHT_S, "experimenter"))
    with pytest.raises(SessionRefused, match="no trial is running"):
        progress.pause(MIDNIGHT_S, "experimenter", is_on=True)
    add(progress.start(MIDNIGHT_S + 10.0, "experimenter"))
    add(progress.pause(MIDNIGHT_S + 110.0, "experimenter", is_on=True))
    with pytest.raises(SessionRefused, match="that is so already"):
        progress.pause(MIDNIGHT_S + 111.0, "experimenter", is_on=True)
    assert not progress.is_due(MIDNIGHT_S + 1000.0)
    add(progress.pause(MIDNIGHT_S + 1010.0, "experimenter", is_on=False))
    assert progress.elapsed_s(MIDNIGHT_S + 1020.0) == pytest.approx(110.0)
    assert not progress.is_due(MIDNIGHT_S + 1149.0)
    assert progress.is_due(MIDNIGHT_S + 1150.0)  # 240 s, without the pause
    add(progress.finish(MIDNIGHT_S + 1150.0, "clock", "time"))
    journal.close()
    sessions.close()
    assert main(["export", str(tmp_path)]) == 0
    found = tables_of(tmp_path / "export")
    assert [(one["duration_s"], one["paused_s"]) for one in found["trials"]] == [("1140.0", "900.0")]
    assert [(one["what"], one["how"]) for one in found["events"] if one["what"] == "pause"] == [
        ("pause", "on"),
        ("pause", "off"),
    ]
