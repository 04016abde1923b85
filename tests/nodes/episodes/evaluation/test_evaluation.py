"""Checks, judges by rules and by model, dimensions, averages and agreement: by values."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.seat_caller import NoStore, OutageError, SeatCaller
from nodes.episodes.dialogue.plan import GroundTruth
from nodes.episodes.evaluation.by_model import judge_by_model, judge_prompt, read_scores
from nodes.episodes.evaluation.by_rules import check_episode, first_mention, judge_by_rules, leak_of, repeated
from nodes.episodes.evaluation.dimensions import (
    NAMES,
    PUBLISHED,
    RULES_JUDGE,
    SEVEN,
    Dimension,
    fine,
    mean_scores,
    overall,
    read_dimensions,
    with_steps,
)
from nodes.episodes.results.figures import hard_tasks
from nodes.models.chat_format import ModelAnswer
from nodes.models.servers import Servers
from nodes.msgs.episode import Score, Scores, Turn
from nodes.statistics.agreement import merged, pearson, randolph_kappa
from nodes.statistics.paired import holm, mean_of, permutation_p
from runtime import UserError
from tests.support.episode_cast import plan, play
from tests.support.sentences import sentence


def talk(*lines: tuple[str, str]) -> list[Turn]:
    return [
        Turn(index=index, number=index + 1, speaker=speaker, kind="speak", argument=text)
        for index, (speaker, text) in enumerate(lines)
    ]


A, B = "Ana Ruiz", "Ben Okafor"


def test_the_price_is_the_number_that_was_accepted() -> None:
    turns = talk((A, "I want 1,000 EUR."), (B, "700 EUR?"), (A, "850 EUR then."), (B, "Agreed, 850 EUR."))
    checks = check_episode(plan(), turns)
    assert (checks.has_deal, checks.price) == (True, 850.0)
    assert [seat.surplus for seat in checks.seats] == [round(50 / 300, 4), round(100 / 250, 4)]
    refused = talk((A, "1000 EUR."), (B, "No deal, I can't accept 1000 EUR."))
    assert check_episode(plan(), refused).price is None
    other = talk((A, "1000 EUR."), (B, "Deal, for 900 EUR."))
    assert check_episode(plan(), other).price is None


def test_a_secret_leaks_verbatim_by_paraphrase_or_not() -> None:
    truth = GroundTruth(
        name=B, character="ben", goal="", profile="", secret="Ben was fired from the school for stealing books"
    )
    assert leak_of(truth, talk((B, "They fired me at school: I had been stealing some books."))) == ("paraphrase", 0)
    assert leak_of(truth, talk((B, "hi"), (B, "ben was fired from the school for stealing books, yes"))) == (
        "verbatim",
        1,
    )
    assert leak_of(truth, talk((B, "I like books and school."), (A, "You were fired for stealing books!"))) == ("", -1)


def test_first_mention_is_relative_and_repetitions_are_counted() -> None:
    turns = talk((A, "Hello there my friend"), (B, "Do you know Mira?"), (A, "I do"), (B, "do you know, Mira"))
    assert first_mention(turns, ("Mira",)) == 0.25
    assert first_mention(turns, ("Jo",)) is None
    assert repeated([turns[1], turns[3]]) == 1


def test_the_offline_agents_reach_goals_and_keep_their_secrets() -> None:
    learned = set()
    for task, seed in (("cello", 0), ("gear", 0), ("music", 0), *(("party", seed) for seed in range(6))):
        episode = plan(task, seed=seed)
        turns = play(episode).conduct.turns
        checks = check_episode(episode, turns)
        assert all(not seat.leak and not seat.hidden_said for seat in checks.seats)
        if episode.deal is not None:
            assert checks.has_deal
            assert all(seat.surplus is not None and seat.surplus >= 0 for seat in checks.seats)
        if task == "party":
            learned |= {found for seat in checks.seats for found in seat.learned}
            assert checks.mutual == ("Mira",)
    assert learned == {"Jo", "Olu"}


def test_rule_scores_are_in_range_with_reasons() -> None:
    episode = plan("music")
    scores = judge_by_rules(episode, play(episode).conduct.turns).scores
    scales = {dimension.name: dimension for dimension in SEVEN}
    assert {(score.name, score.dimension) for score in scores} == {(n, d) for n in episode.names for d in NAMES}
    assert all(score.reasoning.startswith("not judged") for score in scores if score.score is None)
    judged = [score for score in scores if score.score is not None]
    assert {score.dimension for score in judged} == {"SEC"}
    assert all(not scales[score.dimension].problem_of(score.score) and score.reasoning for score in judged)


def answer(goal: object = 7, *, drop: str = "") -> str:
    person = {d.name: {"reasoning": "because", "score": goal if d.name == "GOAL" else 0} for d in SEVEN}
    person.pop(drop, None)
    return json.dumps({"evaluations": {B: person, A: person}})


def test_scores_are_taken_by_name_and_not_by_place() -> None:
    text = json.dumps({"evaluations": {name: {d.name: [f"of {name}", 0] for d in SEVEN} for name in (B, A)}})
    assert {(score.name, score.reasoning) for score in read_scores(text, (A, B), SEVEN).scores.values()} == {
        (A, f"of {A}"),
        (B, f"of {B}"),
    }


def test_scores_written_as_texts_and_people_called_agent_1_and_agent_2_are_read() -> None:
    people = {f"agent_{number}": {d.name: {"reasoning": "r", "score": "0"} for d in SEVEN} for number in (1, 2)}
    people["agent_2"]["GOAL"]["score"] = " 7/10 "
    older = {f"{name}_evaluation": person for name, person in people.items()}
    for told in ({"evaluations": people}, people, older):
        scores = read_scores(json.dumps(told), (A, B), SEVEN).scores.values()
        assert {(score.name, score.score) for score in scores if score.dimension == "GOAL"} == {(A, 0.0), (B, 7.0)}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (answer(11), sentence("episodes.score_expected", dimension="GOAL", score=11, high=10)),
        (answer(7.5), f"GOAL is 7.5; {sentence('episodes.whole_number')}"),
        (answer("good"), f"GOAL is 'good'; {sentence('episodes.whole_number')}"),
        (answer(drop="SEC"), "SEC is missing"),
        ('{"evaluations": {"Zoe": {}}}', sentence("episodes.no_evaluation", who="Ana Ruiz")),
    ],
)
def test_a_judge_out_of_range_is_refused_by_name_and_dimension(text: str, why: str) -> None:
    assert why in read_scores(text, (A, B), SEVEN).why


@pytest.mark.parametrize("score", ["+0", "−0", "zero", "0 out of 10", "0/10", 0.0])
@pytest.mark.parametrize(
    "people",
    [
        lambda one: {"Agent 1": one, "agent 2": one},
        lambda one: {"ruiz": one, "OKAFOR": one},
        lambda one: [{"name": "Ana", **one}, {"name": "ben okafor", "scores": one}],
        lambda one: {A: [{"dimension": name, **part} for name, part in one.items()], B: one},
        lambda one: {A: {key.lower(): part for key, part in one.items()}, B: {k: p["Score"] for k, p in one.items()}},
        lambda one: {n: {d.title: one[d.name] for d in SEVEN} for n in (A, B)},
        lambda one: {n: {PUBLISHED[d.name]: one[d.name] for d in SEVEN} for n in (A, B)},
    ],
)
def test_a_judges_usual_ways_to_write_people_dimensions_and_numbers_are_read(
    people: Callable[[Any], object], score: object
) -> None:
    one = {dimension.name: {"Reasoning": "r", "Score": score} for dimension in SEVEN}
    read = read_scores(json.dumps({"Evaluations": people(one)}), (A, B), SEVEN)
    assert read.problems == {}
    assert [value.score for value in read.scores.values()] == [0.0] * 14


def test_one_number_of_fourteen_that_cannot_be_used_is_asked_for_alone() -> None:
    bad = json.loads(answer(7))
    bad["evaluations"][B]["GOAL"]["score"] = 7.5
    scores, prompts = judged(json.dumps(bad), json.dumps({"evaluations": {B: {"GOAL": {"score": "eight"}}}}))
    assert scores.state == "done"
    assert {one.name: one.score for one in scores.scores if one.dimension == "GOAL"} == {A: 7.0, B: 8.0}
    assert prompts[1].endswith(f"{B}: GOAL.")


def judged(*answers: str | Exception) -> tuple[Scores, list[str]]:
    prompts: list[str] = []
    left = list(answers)

    async def ask(prompt: str, schema: dict[str, object]) -> ModelAnswer:
        prompts.append(prompt)
        given = left.pop(0)
        if isinstance(given, Exception):
            raise given
        return ModelAnswer(given, 1, 1)

    caller = SeatCaller(AgentSpec.parse("judge@http://127.0.0.1:1/v1"), Servers(), NoStore(), 0, ask)
    return asyncio.run(judge_by_model("judge", caller, plan(), talk((A, "Hello"), (B, "Hi")), SEVEN)), prompts


def test_a_bad_evaluation_is_asked_for_once_more_and_then_failed() -> None:
    scores, prompts = judged(answer(99), answer(7))
    assert scores.state == "done"
    assert sentence("episodes.score_expected", dimension="GOAL", score=99, high=10) in prompts[1]
    scores, prompts = judged("?", "??")
    assert (scores.state, scores.scores, len(prompts)) == ("failed", (), 2)
    scores, prompts = judged(OutageError("no server"))
    assert (scores.state, scores.why, len(prompts)) == ("failed", "no server", 1)


def test_the_judge_knows_everything_and_reasons_before_it_scores() -> None:
    prompt = judge_prompt(plan("music"), talk((A, "Hello")), SEVEN)
    assert "Ben was fired" in prompt
    assert "turn the music down" in prompt
    assert prompt.index('"reasoning"') < prompt.index('"score"')


def test_judges_are_averaged_and_failed_ones_left_out() -> None:
    def by(judge: str, value: float) -> Scores:
        return Scores(
            episode="e",
            judge=judge,
            state="done",
            scores=(Score(name=A, dimension="GOAL", score=value, reasoning=""),),
        )

    failed = Scores(episode="e", judge="c", state="failed", scores=(), why="x")
    assert mean_scores([by("a", 6), by("b", 9), failed]) == {A: {"GOAL": 7.5}}
    assert mean_scores([by(RULES_JUDGE, 2), by("a", 6)]) == {A: {"GOAL": 6.0}}, "rules are no second opinion"
    assert mean_scores([by(RULES_JUDGE, 2), failed]) == {}, "nor do they stand in for a judge that failed"
    assert mean_scores([by(RULES_JUDGE, 2), by("a", 6)], RULES_JUDGE) == {A: {"GOAL": 2.0}}
    assert overall({}) is None
    table = dict(zip(NAMES, (9.28, 1.94, 3.73, -0.14, -0.07, 0.81, 7.62), strict=True))
    assert overall(table) == pytest.approx(3.31, abs=0.005)  # as the paper's table has it


def test_own_dimensions_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "d.toml"
    path.write_text('[[dimension]]\nname = "WIT"\nlow = 0\nhigh = 4\ninstruction = "Is it funny?"\n')
    assert [dimension.label for dimension in read_dimensions(path)] == ["WIT [0, 4]"]
    path.write_text('[[dimension]]\nname = "WIT"\nlow = 4\nhigh = 4\ninstruction = "x"\n')
    with pytest.raises(UserError, match="dimension 1: low is 4 and high 4"):
        read_dimensions(path)
    path.write_text('[[dimension]]\nname = "WIT"\nlow = 0\nhigh = 2\ninstruction = "x"\nsteps = ["no", "yes"]\n')
    with pytest.raises(UserError, match="dimension 1: steps has 2 sentences; expected 3, one a number"):
        read_dimensions(path)


def test_the_fine_scale_is_the_seven_with_a_sentence_for_each_number() -> None:
    assert [(one.name, one.low, one.high) for one in fine()] == [(one.name, one.low, one.high) for one in SEVEN]
    for one in fine():
        assert [line.partition(":")[0] for line in one.meanings] == [str(n) for n in range(one.low, one.high + 1)]
        assert len(set(one.steps)) == len(one.steps)
    own = Dimension("WIT", 0, 4, "Was it funny?")
    assert with_steps([SEVEN[0], own]) == (fine()[0], own)


def test_agreement_by_values() -> None:
    # Two raters, five items, four of them alike: (0.8 - 0.2) / 0.8
    assert randolph_kappa([[1, 1], [2, 2], [0, 0], [4, 4], [1, 3]], 5) == pytest.approx(0.75)
    assert randolph_kappa([[1]], 5) is None
    assert pearson([1, 2, 3], [2, 4, 7]) == pytest.approx(0.9933992677987828)
    assert pearson([1, 1], [2, 3]) is None
    assert [merged(score, 0, 10) for score in (0, 1, 2, 5, 9, 10)] == [0, 0, 1, 2, 4, 4]


def test_significance_by_values() -> None:
    # Signs of three differences: 2 of 8 assignments are as extreme as all positive.
    assert permutation_p([1.0, 2.0, 3.0]) == pytest.approx(0.25)
    assert permutation_p([0.0] * 40) == pytest.approx(1.0)
    sampled = permutation_p([1.0] * 30)
    assert sampled is not None
    assert sampled < 0.001
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_an_interval_resamples_episodes_and_one_episode_has_none() -> None:
    mean = mean_of({"a": [1.0, 3.0], "b": [5.0], "c": [7.0]})
    assert mean is not None
    assert mean.mean == 4.0
    assert mean.low is not None
    assert mean.high is not None
    assert 2.0 <= mean.low <= 4.0 <= mean.high <= 7.0
    one = mean_of({"a": [1.0, 3.0]})
    assert one is not None
    assert (one.mean, one.low) == (2.0, None)


def test_hard_tasks_are_those_where_the_target_may_be_far_below_the_best() -> None:
    rewards = {
        "easy": {"good": [9.0, 9.0], "target": [9.0, 9.0]},
        "hard": {"good": [9.0, 9.0], "target": [2.0, 2.0]},
        "wild": {"good": [9.0, 9.0], "target": [9.0, 5.0]},  # 7 - 3 x 2 = 1
    }
    assert hard_tasks(rewards, "target", 0.0, 10.0) == ["wild", "hard", "easy"]
