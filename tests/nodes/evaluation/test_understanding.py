"""Claims about `polyrhythm eval understanding`."""

from __future__ import annotations

import hashlib
import json
import random

import pytest

from nodes.evaluation.understanding import FOLDER, SETS, LabelledUtterance, figures_of_scores, main, read_set, score


def test_the_tuning_half_is_understood_without_a_wrong_deed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["count"] == 2785
    assert figures["right"]["share"] >= 0.95
    assert figures["wrong_deeds"]["count"] == 0


def test_the_fresh_tuning_half_is_understood_without_a_wrong_deed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--set", "fresh-tuning", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["count"] == 140
    assert figures["right"]["share"] >= 0.92
    assert figures["wrong_deeds"]["count"] == 0


def test_an_utterance_that_breaks_off_anywhere_or_runs_into_another_is_read() -> None:
    generator = random.Random(1)
    texts = [line.text.split() for line in read_set((FOLDER / "understanding_tuning.jsonl").read_bytes())]
    for words in texts:
        other = generator.choice(texts)
        text = " ".join(words[: generator.randrange(len(words) + 1)] + other[generator.randrange(len(other)) :])
        assert score(LabelledUtterance(text=text, deed="nothing")).deed
        assert score(LabelledUtterance(text=" ".join(words[:-1]), deed="nothing")).deed


@pytest.mark.parametrize("name", ["heldout", "fresh-heldout"])
def test_a_held_out_half_is_the_one_whose_hash_was_committed(name: str) -> None:
    told = (FOLDER.parents[2] / "docs" / "decisions" / "held-out-sets.md").read_text("utf-8")
    assert hashlib.sha256((FOLDER / SETS[name]).read_bytes()).hexdigest() in told


def test_a_label_without_a_skill_says_only_that_something_is_done() -> None:
    both = score(LabelledUtterance(text="Wash the bowl and then put it on the shelf.", deed="do"))
    assert (both.deed, both.wrong) == ("do", ())


def test_doing_what_nobody_asked_for_is_a_wrong_deed_and_asking_is_none() -> None:
    done = score(LabelledUtterance(text="Put the red cup in the sink.", deed="nothing"))
    assert done.is_wrong_deed
    asked = score(LabelledUtterance(text="Move the red cup.", deed="do", skill="place"))
    assert asked.wrong == ("deed",)
    assert not asked.is_wrong_deed
    figures = figures_of_scores([done, asked])
    assert figures["wrong_deeds"] == pytest.approx({"count": 1, "share": 0.5, "low": 0.0945, "high": 0.9055}, abs=1e-3)


def test_a_field_that_a_label_does_not_state_is_not_compared() -> None:
    (line,) = read_set(
        b'{"text": "Put all the cups in the sink.", "deed": "do", "skill": "place", '
        b'"things": [{"kind": "cup"}], "place": "sink"}'
    )
    assert score(line).wrong == ()
