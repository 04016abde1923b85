"""The offline agent: it answers what was said, keeps its secrets, works with its hands, and repeats with its seed."""

from __future__ import annotations

import random

import msgspec
import pytest

from nodes.episodes.agents.offline_agent import decide, is_farewell, says_any
from nodes.episodes.dialogue.observation import AgentObservation
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.planning import plan_episode, plan_of_task, tasks_of
from nodes.episodes.dialogue.rules import EpisodeRules
from nodes.episodes.scenarios.library import starter
from nodes.msgs.episode import Act, Briefing, Observation, Turn
from tests.support.episode_cast import play

SCRIPTED = [scenario.id for scenario in starter().scenarios.values() if any(facts.says for facts in scenario.facts)]


def planned(task: str, seed: int = 0) -> EpisodePlan:
    library = starter()
    found = next(each for each in tasks_of(library) if each.scenario == task)
    return plan_episode(library, found, ["rules"], rules=EpisodeRules(), seed=seed)


def sight_of(plan: EpisodePlan, seat: int, *said: tuple[int, str]) -> AgentObservation:
    turns = tuple(
        Turn(index=i, number=i + 1, speaker=plan.names[who], kind="speak", argument=text)
        for i, (who, text) in enumerate(said)
    )
    return AgentObservation(
        plan.briefings[seat], turns, Observation(episode="e", ask=1, turn=len(turns) + 1, asks="act")
    )


@pytest.mark.parametrize("task", SCRIPTED)
def test_no_line_of_a_scenario_says_what_its_seat_hides(task: str) -> None:
    plan = planned(task)
    for briefing in plan.briefings:
        for line in briefing.facts.says:
            assert not says_any(line, (*briefing.facts.hides, *briefing.secret_words)), line


@pytest.mark.parametrize("task", SCRIPTED)
def test_a_whole_episode_repeats_no_line_and_leaks_no_secret(task: str) -> None:
    plan = planned(task)
    turns = play(plan).conduct.turns
    spoken = [turn for turn in turns if turn.kind == "speak"]
    assert len({turn.argument for turn in spoken}) == len(spoken)
    for briefing in plan.briefings:
        for turn in spoken:
            if turn.speaker == briefing.name:
                assert not says_any(turn.argument, (*briefing.facts.hides, *briefing.secret_words)), turn.argument


def test_other_seeds_put_it_differently_and_the_same_seed_the_same() -> None:
    texts = [[turn.argument for turn in play(planned("van-with-a-cough", seed)).conduct.turns] for seed in (0, 0, 1, 2)]
    assert texts[0] == texts[1]
    assert len({tuple(text) for text in texts}) == 3


def test_scenarios_with_one_seed_do_not_all_end_in_the_same_words() -> None:
    tasks = ("last-table", "two-pumpkins", "post-it-today", "give-me-the-keys")
    goodbyes = {
        " ".join(turn.argument for turn in play(planned(task)).conduct.turns if is_farewell(turn)).split(",")[0][:12]
        for task in tasks
    }
    assert len(goodbyes) > 1


def test_a_yes_comes_only_after_the_others_offer() -> None:
    plan = planned("last-table")
    mine = plan.briefings[0].facts.says
    said = [(0, line) for line in mine[:4]]
    impatient = decide(sight_of(plan, 0, *said), random.Random(0)).act
    assert mine[4] not in impatient.argument
    others = [(1, line) for line in plan.briefings[1].facts.says[:4]]
    both = [line for pair in zip(said, others, strict=True) for line in pair]
    acts = [decide(sight_of(plan, 0, *both), random.Random(0), seed).act.argument for seed in range(20)]
    assert 3 < sum(mine[4] in argument for argument in acts) < 20, "some are moved by it, some are not"


def test_two_do_not_say_goodbye_in_the_same_words() -> None:
    for seed in range(5):
        goodbyes = [turn.argument for turn in play(planned("post-it-today", seed)).conduct.turns if is_farewell(turn)]
        assert len({text[:8] for text in goodbyes}) == len(goodbyes)


def test_the_robot_works_with_its_hands_and_leaves_what_it_is_asked_to_leave() -> None:
    plan = plan_of_task("clear-table-by-four", order="round-robin", mode="AGENTS", max_turns=20)
    turns = play(plan).conduct.turns
    done = [turn.argument for turn in turns if turn.kind == "action"]
    assert sorted(done) == [f"puts the {colour} cup in the bin" for colour in ("green", "red", "white", "yellow")]
    assert any("I am done: 4 things" in turn.argument and "not the blue cup" in turn.argument for turn in turns)


def test_a_goal_in_prose_is_given_away_by_nobody_and_the_talk_ends() -> None:
    plan = planned("whose-scarf-is-this")
    bare = [
        Briefing(name=one.name, seat=one.seat, participants=plan.names, scenario="", background="", goal=one.goal)
        for one in plan.briefings
    ]
    conduct = play(msgspec.structs.replace(plan, briefings=tuple(bare), deal=None)).conduct
    spoken = [turn.argument for turn in conduct.turns if turn.kind == "speak"]
    assert 4 < len(spoken) < 20
    assert len(set(spoken)) == len(spoken)
    assert conduct.outcome is not None
    assert conduct.outcome.state == "done"


def test_somebody_who_is_left_alone_leaves() -> None:
    plan = planned("last-table")
    gone = Turn(index=0, number=1, speaker=plan.names[1], kind="leave")
    sight = AgentObservation(plan.briefings[0], (gone,), Observation(episode="e", ask=1, turn=2, asks="act"))
    assert decide(sight, random.Random(0)).act == Act(kind="leave")
