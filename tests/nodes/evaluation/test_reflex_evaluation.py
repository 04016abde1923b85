"""Claims about `nodes/evaluation/reflex.py`."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from nodes.evaluation import command, reflex
from nodes.evaluation.reflex import Line, ReflexFigures, StoryCost, figures_of, read, score, story_costs
from nodes.evaluation.reflex_cost import hold_delay_s
from nodes.interrupts.stop_classifier import StopClassifier
from tests.support.sentences import sentence

LINES = [
    Line("Stop!", "en", "stop_plain", "stop"),
    Line("Blimp wozzle!", "en", "stop_plain", "stop"),
    Line("Frobble nark", "en", "stop_plain", "stop"),
    Line("Make me a coffee", "en", "stop_plain", "stop"),
    Line("Make me a tea", "en", "order", "order"),
    Line("Blimp soup", "de", "statement", "none"),
    Line("Stop the blimp", "de", "homograph", "none"),
    Line("Go on", "en", "resume", "resume"),
    Line("Go on", "en", "not_resume", "not_resume"),
]


def figures(**said: float) -> ReflexFigures:
    certainty = {"Blimp wozzle!": 0.99, "Blimp soup": 0.01, **said}
    return figures_of("made", score(LINES, lambda text: certainty.get(text, 0.3), StopClassifier))


def test_a_stop_counts_as_latched_by_the_table_by_the_judge_or_as_held() -> None:
    stops = {one.group: one for one in figures().stops}["stop_plain"]
    assert stops.latched_by_table.successes == 1
    assert stops.latched.successes == 2
    assert (stops.latched_or_held.successes, stops.latched_or_held.runs) == (3, 4)
    held = {one.group: one for one in figures(**{"Make me a coffee": StopClassifier.HOLDS_FROM}).stops}["stop_plain"]
    assert (held.latched.successes, held.latched_or_held.successes) == (2, 4)


def test_the_cost_of_harmless_lines_stands_beside_it() -> None:
    cost = {one.group: one for one in figures().harmless}["de"]
    assert (cost.latched.successes, cost.held_softly.successes, cost.shortened.successes) == (1, 1, 1)


def test_precision_and_recall_are_told_per_depth() -> None:
    depths = {one.depth: one for one in figures().depths}
    assert (depths["stop"].precision.successes, depths["stop"].precision.runs) == (2, 3)
    assert (depths["replan"].precision.successes, depths["replan"].precision.runs) == (1, 2)
    assert depths["amend"].recall.runs == 0


def test_shouts_taken_for_orders_and_stops_lifted_by_mistake_are_counted() -> None:
    told = figures()
    assert told.shouts_taken_by_table == 1
    assert (told.shouts_taken_for_orders, told.lifted_by_mistake, told.resumes.successes) == (1, 1, 1)


def test_on_the_tuning_half_the_goals_are_met(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["reflex", "--json"]) == 0
    told = msgspec.json.decode(capsys.readouterr().out, type=ReflexFigures)
    assert told.lines == len(read("tuning")) >= 1200
    assert all(one.latched.share >= 0.8 and one.latched_or_held.share >= 0.95 for one in told.stops)
    assert all(one.latched.share <= 0.05 and one.held_softly.share <= 0.25 for one in told.harmless[:-1])
    assert (told.shouts_taken_for_orders, told.lifted_by_mistake) == (0, 0)


def test_both_halves_have_every_kind_of_utterance_in_twelve_languages() -> None:
    halves = (read("tuning"), read("heldout"))
    assert sum(map(len, halves)) >= 1500
    for half in halves:
        languages = {line.language for line in half}
        assert len(languages) >= 12
        assert {(line.language, line.kind) for line in half} == {
            (language, kind) for language in languages for kind in {line.kind for line in half}
        }


def test_no_utterance_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["reflex"]) == 0
    out = capsys.readouterr().out
    assert [line.text for line in read("tuning") if len(line.text) > 12 and line.text in out] == []


def test_a_held_out_half_that_is_another_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reflex_heldout.jsonl").write_bytes(msgspec.json.encode(LINES[0]) + b"\n")
    monkeypatch.setattr(reflex, "DATA", tmp_path)
    assert command.main(["reflex", "--set", "heldout"]) != 0
    assert sentence("evaluation.another_set") in capsys.readouterr().err


def test_a_set_of_ones_own_is_scored_from_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "own.jsonl"
    own.write_bytes(b"\n".join(map(msgspec.json.encode, LINES)) + b"\n")
    assert command.main(["reflex", "--set", str(own)]) == 0
    assert f"{own}: {len(LINES)} lines" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"text": "halt", "language": "de", "kind": "stop_plain"}', "line 2: Object missing required field `expect`"),
        ('{"text": "halt", "language": "de", "kind": "a", "expect": "b"}', "line 2: Invalid enum value 'b'"),
        ('{"text": "halt", "language": "de", "kind": "a", "expect": "stop", "tag": "b"}', "unknown field `tag`"),
        ("halt", "line 2: JSON is malformed"),
        (None, "--set "),
        ("", "holds no line"),
    ],
)
def test_a_file_that_is_no_set_is_refused_with_its_line(
    text: str | None, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.jsonl"
    if text is not None:
        own.write_text(f"\n{text}")
    assert command.main(["reflex", "--set", str(own)]) == 2
    assert str(own) in (error := capsys.readouterr().err)
    assert told in error


def test_the_hash_of_the_held_out_half_is_the_one_that_was_committed() -> None:
    page = Path(__file__).parents[3] / "docs" / "decisions" / "held-out-sets.md"
    assert all(one in page.read_text(encoding="utf-8") for one in reflex.SHA256.values())


def test_what_holds_cost_in_the_story_is_told_beside_the_recall() -> None:
    certainty = StopClassifier().certainty
    figures = figures_of("tuning", score(LINES, certainty, StopClassifier))
    assert "the story" not in "\n".join(reflex.lines_of(figures))
    story = (StoryCost(lasted_s=60.0, holds=0), StoryCost(lasted_s=66.0, holds=11))
    told = "\n".join(reflex.lines_of(msgspec.structs.replace(figures, hold_delay_s=1.2, story=story)))
    assert "done after 60.0 s, 0.00 needless holds a minute" in told
    assert "after 66.0 s, 10.00" in told


@pytest.mark.long
def test_the_story_comes_to_its_end_beside_somebody_who_talks_all_the_time() -> None:
    alone, talked = story_costs()
    assert alone.holds == 0
    assert talked.holds > 0
    assert alone.lasted_s < talked.lasted_s < 2 * alone.lasted_s


@pytest.mark.long
def test_a_soft_hold_costs_about_its_own_length() -> None:
    assert 0.5 < hold_delay_s() < 2.0
