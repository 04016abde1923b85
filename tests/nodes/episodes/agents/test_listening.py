"""Offline agents listen, deals are read as people write them, and the offline judge says what it cannot tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.listening import main
from nodes.episodes.agents.agent import RulesBrain, ScriptedBrain
from nodes.episodes.agents.deal_reading import agreed_number, agreed_shares, division_in, numbers_in, offer_in, stance
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.planning import plan_of_task, with_seed
from nodes.episodes.evaluation.by_rules import judge_by_rules
from nodes.msgs.episode import Deal, Turn
from tests.support.episode_cast import act, play
from tests.support.episode_cast import plan as cast_plan

LABELLED = Path(__file__).parent / "labelled" / "deal_lines.tsv"
DIALOGUES = LABELLED.with_name("deal_dialogues.tsv")
CELLO = Deal(about="the cello", unit="EUR", opening=1800, step=10)


def said(speaker: str, text: str, index: int = 0) -> Turn:
    return Turn(index=index, number=index + 1, speaker=speaker, kind="speak", argument=text)


@pytest.mark.parametrize(
    ("part", "wrong_at_most", "invented_at_most"), [("tuning", 10, 4), ("held-out", 10, 4), ("fresh", 28, 11)]
)
def test_labelled_lines_are_read_as_right_as_the_page_says(
    part: str, wrong_at_most: int, invented_at_most: int
) -> None:
    """100 lines the patterns were written with, 100 others by the same author, and 100 harder ones of another."""
    missed, invented, count = [], [], 0
    for line in LABELLED.read_text(encoding="utf-8").splitlines():
        its_part, label, text = line.split("\t")
        if its_part != part:
            continue
        count += 1
        has_deal = agreed_number([said("A", "I could do 1,500 euros."), said("B", text, 1)], CELLO) == 1500
        missed += [text] if label == "deal" and not has_deal else []
        invented += [text] if label == "none" and has_deal else []
    assert count == 100
    assert len(missed) + len(invented) <= wrong_at_most, (missed, invented)
    assert len(invented) <= invented_at_most, invented


def test_deals_in_180_short_dialogues_are_read_and_few_are_invented() -> None:
    """Two to five lines each, mostly without a currency; 92 have no deal (sarcasm, conditions, others' prices)."""
    missed, invented = [], []
    rows = DIALOGUES.read_text(encoding="utf-8").splitlines()
    for row in rows:
        _, label, unit, *lines = row.split("\t")
        turns = [said(line[0], line[3:], index) for index, line in enumerate(lines)]
        price = agreed_number(turns, Deal(about="the cello", unit=unit))
        if label == "none":
            invented += [] if price is None else [row]
        elif price != float(label):
            missed.append(row)
    assert len(rows) == 180
    assert len(missed) <= 12, missed
    assert len(invented) <= 2, invented


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("I can do 1650.", 1650),
        ("How about sixteen fifty?", 1650),
        ("You said 1700 on the phone.", None),
        ("400 now and 1,200 when it arrives.", 1600),
        ("I paid 1900 for it; I could let it go at 1750.", 1750),
        ("I have owned it since 1950, with 20 minutes of use.", None),
        ("In 2 weeks I turn 40.", None),
        ("1,500 dollars", None),
    ],
)
def test_a_price_without_a_currency_is_an_offer_where_nothing_counted_follows(text: str, offered: float | None) -> None:
    assert offer_in(text, CELLO) == offered


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,500 euros, or €1600; fifteen hundred euros at most.", [1500, 1600, 1500]),
        ("1.5k EUR", [1500]),
        ("I have three children and 20 minutes.", []),
        ("two thousand euros", [2000]),
    ],
)
def test_numbers_are_read_as_people_write_them(text: str, numbers: list[float]) -> None:
    assert numbers_in(text, CELLO) == numbers


def test_three_divide_what_all_three_said_yes_to() -> None:
    names = ("Ana Ruiz", "Ben Okafor", "Cai Lund")
    deal = Deal(about="the corner", items={"Saturday": 4, "awning": 2, "key": 1})
    text = "I take 2 Saturdays, Ben gets 1 Saturday and 2 awnings, Cai gets 1 Saturday and the key."
    shares = division_in(text, "Ana Ruiz", deal, names)
    assert shares is not None
    assert shares["Cai Lund"] == {"Saturday": 1, "awning": 0, "key": 1}
    turns = [said("Ana Ruiz", text), said("Ben Okafor", "Agreed.", 1)]
    assert agreed_shares(turns, deal, names) is None
    assert agreed_shares([*turns, said("Cai Lund", "Deal, Ana.", 2)], deal, names) == shares
    plan = plan_of_task("three-stalls", order="round-robin", mode="AGENTS", max_turns=20)
    assert any(len(turn.argument.split(" gets ")) == 3 for turn in play(plan).conduct.turns), "it names all three"


@pytest.mark.parametrize("task", ["three-stalls", "dog-piano-car", "last-day-of-the-allotment"])
def test_what_offline_agents_propose_is_read_and_what_all_others_accept_is_a_deal(task: str) -> None:
    plan = plan_of_task(task, order="round-robin", mode="AGENTS", max_turns=20)
    assert plan.deal is not None
    proposed = accepted = 0
    for seed in range(10):
        turns = play(with_seed(plan, seed)).conduct.turns
        for turn in turns:
            if turn.kind == "speak" and "I take " in turn.argument:
                proposed += 1
                assert division_in(turn.argument, turn.speaker, plan.deal, plan.names) is not None, turn.argument
            elif turn.argument.startswith(("Agreed. Let's", "Deal, ", "I accept")):
                accepted += 1
                assert stance(turn.argument) == "yes", turn.argument
    assert proposed > 20
    assert accepted > 10 or len(plan.names) == 2, "two repeat what they accept"


def goal_of(plan: EpisodePlan, lines: list[str]) -> tuple[float | None, list[Turn]]:
    brain = ScriptedBrain([act("speak", line) for line in lines])
    turns = play(plan, [RulesBrain(), brain]).conduct.turns
    scores = judge_by_rules(plan, turns).scores
    return next(one.score for one in scores if one.name == plan.names[0] and one.dimension == "GOAL"), turns


def test_what_is_said_and_in_which_order_decides_and_the_log_names_the_turn() -> None:
    plan = plan_of_task("give-me-the-keys", order="round-robin", mode="AGENTS", max_turns=20)
    reasons = list(plan.truths[1].facts.says)
    moved, turns = goal_of(plan, [*reasons, "I am glad that you hear me, and I'd bring you the shopping each week."])
    assert moved == 4.0
    gave_way = next(turn for turn in turns if turn.because >= 0 and turn.speaker == plan.names[0])
    assert turns[gave_way.because].speaker == plan.names[1]
    insulted, _ = goal_of(plan, ["I hate you, liar.", "You're an idiot.", *reasons])
    assert insulted == 2.0, "nobody is moved by insults"


def test_a_price_follows_from_how_far_the_other_comes() -> None:
    plan = plan_of_task("cello-with-a-crack", order="round-robin", mode="AGENTS", max_turns=20)
    steps = ["1,250 EUR", "1,300 EUR", "1,420 EUR", "1,500 EUR", "1,590 EUR"]
    stubborn = ["1,250 EUR"] * 9
    assert goal_of(plan, steps)[0] != goal_of(plan, stubborn)[0]


def test_what_rules_cannot_tell_is_not_judged_and_stands_in_no_mean() -> None:
    plan = cast_plan("music")
    turns = [said(plan.names[0], "Could you turn it down?"), said(plan.names[1], "I hate you, liar.", 1)]
    found = {(one.name, one.dimension): one.score for one in judge_by_rules(plan, turns).scores}
    first, second = plan.names
    assert found[first, "BEL"] is found[first, "GOAL"] is found[first, "REL"] is found[first, "SOC"] is None
    assert (found[second, "REL"], found[second, "SOC"]) == (-3.0, -1.0)


@pytest.mark.long
def test_over_twenty_seeds_most_scenarios_end_differently_and_most_agents_listen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main() == 0, capsys.readouterr().out
