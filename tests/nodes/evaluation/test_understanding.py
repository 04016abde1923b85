"""Claims about `polyrhythm eval understanding`."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

import msgspec
import pytest

from nodes.evaluation.labelled_sets import read_set
from nodes.evaluation.understanding import (
    FOLDER,
    KITCHEN,
    SETS,
    LabelledUtterance,
    figures_of_scores,
    main,
    score,
)
from nodes.interrupts.intent import understand
from nodes.msgs import Scene, SeenObject, SkillArgument, SkillSpec
from nodes.planner.orders import ALIASES, Order, Surroundings
from nodes.planner.talk.dialogue import Dialogue
from nodes.planner.talk.questions import OpenQuestion
from nodes.planner.words.parser import parser_of
from nodes.planner.words.understanding import Conversation, Intent, after_robot, understand_in
from tests.nodes.planner.heard import hear


def test_the_tuning_half_is_understood_without_a_wrong_deed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["count"] == 2805
    assert figures["right"]["share"] >= 0.95
    assert figures["wrong_deeds"]["count"] == 0


def test_the_fresh_tuning_half_is_understood_without_a_wrong_deed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--set", "fresh-tuning", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["count"] == 140
    assert figures["right"]["share"] >= 0.92
    assert figures["wrong_deeds"]["count"] == 0


@pytest.mark.long
def test_an_utterance_that_breaks_off_anywhere_or_runs_into_another_is_read() -> None:
    generator = random.Random(1)
    texts = [line.text.split() for line in read_set("tuning", SETS, LabelledUtterance)[0]]
    for words in texts:
        other = generator.choice(texts)
        text = " ".join(words[: generator.randrange(len(words) + 1)] + other[generator.randrange(len(other)) :])
        assert score(LabelledUtterance(text=text, deed="nothing")).deed
        assert score(LabelledUtterance(text=" ".join(words[:-1]), deed="nothing")).deed


@pytest.mark.parametrize("name", ["heldout", "fresh-heldout"])
def test_a_held_out_half_is_the_one_whose_hash_was_committed(name: str) -> None:
    told = (FOLDER.parents[2] / "docs" / "decisions" / "held-out-sets.md").read_text("utf-8")
    assert hashlib.sha256(SETS[name].read_bytes()).hexdigest() in told


def test_a_set_of_ones_own_is_scored_from_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.jsonl").write_text('{"text": "Pick up the red cup.", "deed": "ask"}\n\n')
    assert main(["--set", str(tmp_path / "own.jsonl"), "--wrong"]) == 0
    assert "ask -> do (deed): Pick up the red cup." in capsys.readouterr().out


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
    line = msgspec.json.decode(
        b'{"text": "Put all the cups in the sink.", "deed": "do", "skill": "place", '
        b'"things": [{"kind": "cup"}], "place": "sink"}',
        type=LabelledUtterance,
    )
    assert score(line).wrong == ()


def empty_kitchen() -> Surroundings:
    """The kitchen that the utterances are about, with all of its places and skills, before any thing was seen."""
    places = [
        SeenObject(
            id=name, label=name, colour="", x_m=0.0, y_m=0.0, z_m=0.5, width_m=0.0, height_m=0.0, u_px=0.0, v_px=0.0,
            is_place=True, state=("waste",) if name in KITCHEN.waste else (),
        )
        for name in sorted(KITCHEN.places)
    ]  # fmt: skip
    thing = (SkillArgument(name="thing", type="thing"),)
    skills = tuple(
        SkillSpec(name=ALIASES.get(name, name), sentence="", arguments=thing) for name in sorted(KITCHEN.skills)
    )
    return Surroundings(Scene(things=tuple(places), kinds=tuple(sorted(KITCHEN.kinds))), skills)


def read_in_context(line: LabelledUtterance) -> tuple[Intent, Dialogue]:
    """What the parser's reading is, and the planner's plan before it hears the line."""
    talk, parser = Conversation(), parser_of(KITCHEN)
    for one in line.context:
        heard = one.who == "person"
        talk = understand_in(one.text, KITCHEN, talk, parser)[1] if heard else after_robot(one.text, talk, parser)
    asked = OpenQuestion("order", "", 0, (talk.question,), talk.awaits) if talk.question is not None else None
    plan = Dialogue(
        number=1 if talk.orders else 0, current=next(iter(talk.orders), None), talk=talk,
        questions=(asked,) if asked is not None and asked.awaits else (),
    )  # fmt: skip
    return understand_in(line.text, KITCHEN, talk, parser)[0], plan


def work(plan: Dialogue) -> tuple[Order, ...]:
    return (plan.current, *plan.later) if plan.current is not None else plan.later


def without_exceptions(order: Order) -> tuple[object, ...]:
    return order.skill, order.things, order.place, order.relation


@pytest.mark.parametrize("name", ["tuning", "fresh-tuning"])
@pytest.mark.long
def test_the_planner_does_what_is_scored_on_each_tuned_line_and_answers_it(name: str) -> None:
    """A stop is the reflex's; an undo needs a deed that can be undone."""
    around = empty_kitchen()
    for line in read_set(name, SETS, LabelledUtterance)[0]:
        intent, plan = read_in_context(line)
        after, reply = hear(plan, line.text, around, 1_000_000_000)
        skills = {order.skill for order in intent.orders} if intent.deed == "do" else set()
        is_stop = understand(line.text).wants == "stop"
        if skills & {"stop", "wait"}:
            assert is_stop or after.is_over or after.is_paused, line.text
        elif intent.deed == "do" and "undo" not in skills and not is_stop:  # what stands beside a stop waits
            before = work(plan) if intent.is_addition else ()
            assert work(after) == tuple(dict.fromkeys((*before, *intent.orders))), line.text
        elif intent.deed != "do":
            assert list(map(without_exceptions, work(after))) == list(map(without_exceptions, work(plan))), line.text
            assert after.number == plan.number, line.text
        assert reply or is_stop or intent.deed == "nothing" or skills & {"stop"}, line.text
