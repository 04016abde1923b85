"""Turn order and termination: by values."""

from __future__ import annotations

import random

import pytest

from nodes.episodes.dialogue.ending import why_ended
from nodes.episodes.dialogue.rules import EpisodeRules, WinCheck, addressed, check, problem_of, seats_to_ask
from nodes.msgs.episode import Turn
from runtime import UserError
from tests.support.episode_cast import act
from tests.support.sentences import pattern, sentence


def turn(number: int, speaker: str, kind: str = "speak", text: str = "x") -> Turn:
    return Turn(index=number - 1, number=number, speaker=speaker, kind=kind, argument=text)  # type: ignore[arg-type]


def test_round_robin_goes_seat_by_seat_and_skips_who_left() -> None:
    asked, last = [], -1
    for number in range(1, 6):
        (last,) = seats_to_ask(EpisodeRules(), number, (0, 1, 2), 3, random.Random(0), last)
        asked.append(last)
    assert asked == [0, 1, 2, 0, 1]


def test_a_vacant_seat_gives_nobody_a_second_turn() -> None:
    asked, last = [], 0
    for number in range(2, 8):
        (last,) = seats_to_ask(EpisodeRules(), number, (0, 2), 3, random.Random(0), last)
        asked.append(last)
    assert asked == [2, 0, 2, 0, 2, 0]


def test_a_first_name_is_a_recipient_where_it_means_one_person() -> None:
    everyone = ("Ana Ruiz", "Ben Okafor", "Ben Lund")
    assert addressed(act("speak", "psst", ("ana", "Ben", "Ben Lund")), everyone).to == ("Ana Ruiz", "Ben", "Ben Lund")


def test_simultaneous_asks_all_and_random_repeats_with_its_seed() -> None:
    assert seats_to_ask(EpisodeRules(order="simultaneous"), 1, (0, 1, 2), 3, random.Random(0)) == (0, 1, 2)
    rules = EpisodeRules(order="random")
    draws = [[seats_to_ask(rules, n, (0, 1, 2), 3, chance) for n in range(30)] for chance in map(random.Random, (5, 5))]
    assert draws[0] == draws[1]
    assert {seat for (seat,) in draws[0]} == {0, 1, 2}


def test_the_twentieth_turn_ends_the_episode_and_the_nineteenth_does_not() -> None:
    talk = [turn(number, "Ana") for number in range(1, 21)]
    assert why_ended(EpisodeRules(), talk[:19], 19, ["Ana", "Ben"], []) == ""
    assert why_ended(EpisodeRules(), talk, 20, ["Ana", "Ben"], []) == "turn limit: 20 turns"


def test_the_first_leave_ends_a_talk_of_two_but_not_of_three() -> None:
    left = [turn(1, "Ana", "leave", "")]
    assert why_ended(EpisodeRules(), left, 1, ["Ben"], ["Ana"]) == "left: Ana"
    assert why_ended(EpisodeRules(), left, 1, ["Ben", "Cai"], ["Ana"]) == ""


def test_more_than_two_silent_acts_in_a_row_are_stale() -> None:
    silent = [turn(number, "Ana", "none", "") for number in (1, 2, 3)]
    assert why_ended(EpisodeRules(), silent[:2], 2, ["Ana", "Ben"], []) == ""
    assert why_ended(EpisodeRules(), silent, 3, ["Ana", "Ben"], []) == sentence("episodes.is_silent", number=3)
    assert why_ended(EpisodeRules(), [*silent[:2], turn(3, "Ben")], 3, ["Ana", "Ben"], []) == ""


def test_a_game_is_won_by_who_may_win_it_and_all_reasons_are_given() -> None:
    rules = EpisodeRules(wins=(WinCheck(pattern=r"\bcheckmate\b", who="Ben", text="said checkmate"),), max_turns=2)
    assert why_ended(rules, [turn(1, "Ana", text="Checkmate!")], 1, ["Ana", "Ben"], []) == ""
    reason = why_ended(rules, [turn(2, "Ben", text="Checkmate!")], 2, ["Ana", "Ben"], [])
    assert reason == "won: Ben (said checkmate); turn limit: 2 turns"


def test_private_messages_name_people_who_are_there() -> None:
    everyone = ("Ana", "Ben", "Cai")
    assert problem_of(act("speak", "psst", ("Ben",)), "Ana", everyone, everyone) == ""
    assert "no 'Bob'" in problem_of(act("speak", "psst", ("Bob",)), "Ana", everyone, everyone)
    assert "cannot send" in problem_of(act("speak", "psst", ("Ana",)), "Ana", everyone, everyone)
    assert "has left" in problem_of(act("speak", "psst", ("Cai",)), "Ana", everyone[:2], everyone)
    assert "needs an argument" in problem_of(act("speak", " "), "Ana", everyone, everyone)


def test_rules_that_cannot_work_are_refused_in_a_sentence() -> None:
    with pytest.raises(UserError, match=f"max_turns is 0; {pattern('episodes.at_least_one')}"):
        check(EpisodeRules(max_turns=0))
    with pytest.raises(UserError, match=pattern("episodes.no_regular_expression")):
        check(EpisodeRules(wins=(WinCheck(pattern="("),)))


def test_the_winner_may_be_another_than_who_said_it() -> None:
    taboo = WinCheck(pattern=r"\bmoon\b", who="Ana", winner="Ben", text="the forbidden word")
    talk = [turn(1, "Ana", text="Under the Moon.")]
    assert why_ended(EpisodeRules(wins=(taboo,)), talk, 1, ["Ana", "Ben"], []) == "won: Ben (the forbidden word)"
