"""Invariants of a whole episode, whatever the agents answer: properties over random acts and orders."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.episodes.dialogue.asynchronous import AsynchronousDialogue
from nodes.episodes.dialogue.messages import BeginEpisode
from nodes.episodes.dialogue.rules import EpisodeRules, Order
from nodes.episodes.dialogue.turn_based import Sent, TurnBasedDialogue
from nodes.msgs.episode import ACT_KINDS, Act, Observation, Reply, Turn
from tests.support.episode_cast import plan

NAMES = ("Ana Ruiz", "Ben Okafor", "Cai Lund")

acts = st.builds(
    Act,
    kind=st.sampled_from(ACT_KINDS),
    argument=st.sampled_from(["", "Hello.", "One two three. Four five! Six?", "Mhm."]),
    to=st.lists(st.sampled_from([*NAMES, "Zoe"]), max_size=2).map(tuple),
)
answers = st.tuples(acts, st.floats(0, 1), st.sampled_from(["", "", "", "unreadable answer"]))


def play(
    order: Order, given_answers: Sequence[tuple[Act, float, str]], seed: int
) -> tuple[TurnBasedDialogue, list[Sent]]:
    """Play by hand, without a bus: every ask is answered by the next of the answers, pauses end at once."""
    rules = EpisodeRules(order=order, max_turns=8)
    kind = AsynchronousDialogue if order == "asynchronous" else TurnBasedDialogue
    conduct = kind("e", plan("trio").briefings, rules, random.Random(seed))
    everything: list[Sent] = []
    waiting: list[tuple[int, Observation]] = []
    now_s, number, token = 0.0, 0, 0
    sent = conduct.begin(0.0)
    for _ in range(2000):
        everything.append(sent)
        waiting += sent.observations
        if sent.pause is not None:
            token = sent.pause.token
        if conduct.outcome is not None:
            break
        if waiting:
            seat, observation = waiting.pop(0)
            act, urgency, note = given_answers[number % len(given_answers)]
            number += 1
            reply = Reply(episode="e", seat=seat, ask=observation.ask, act=act, urgency=urgency, note=note)
            sent = conduct.reply(reply, now_s)
        else:
            now_s += 0.5
            sent = conduct.waited(token, now_s)
    return conduct, everything


@given(
    st.sampled_from(["round-robin", "simultaneous", "random", "asynchronous"]),
    st.lists(answers, min_size=1, max_size=30),
    st.integers(0, 5),
)
@settings(max_examples=200, deadline=None)
def test_every_episode_ends_for_a_reason_and_keeps_its_books(
    order: Order, given_answers: list[tuple[Act, float, str]], seed: int
) -> None:
    conduct, everything = play(order, given_answers, seed)
    assert conduct.outcome is not None
    assert conduct.outcome.reason
    assert conduct.outcome.turns == len(conduct.turns)
    assert [turn.index for turn in conduct.turns] == list(range(len(conduct.turns)))
    assert [turn for sent in everything for turn in sent.turns] == conduct.turns
    assert all(turn.number <= 8 for turn in conduct.turns)
    left: set[str] = set()
    for turn in conduct.turns:
        assert turn.speaker not in left or turn.kind == "speak"  # what was under way when somebody left is kept
        if turn.kind == "leave":
            left.add(turn.speaker)
        assert "Zoe" not in turn.to
        assert turn.speaker not in turn.to


@given(
    st.sampled_from(["round-robin", "simultaneous", "random", "asynchronous"]),
    st.lists(answers, min_size=1, max_size=30),
    st.integers(0, 5),
)
@settings(max_examples=100, deadline=None)
def test_nobody_is_told_what_was_said_to_others_and_nothing_twice(
    order: Order, given_answers: list[tuple[Act, float, str]], seed: int
) -> None:
    _, everything = play(order, given_answers, seed)
    told: dict[int, list[Turn]] = {}
    for sent in everything:
        for seat, observation in sent.observations:
            told.setdefault(seat, []).extend(observation.heard)
    for seat, turns in told.items():
        assert all(turn.is_for(NAMES[seat]) for turn in turns)
        assert [turn.index for turn in turns] == sorted({turn.index for turn in turns})


def test_a_reply_that_nobody_waits_for_changes_nothing() -> None:
    conduct = TurnBasedDialogue("e", plan().briefings, EpisodeRules(max_turns=1), random.Random(0))
    conduct.begin(0.0)
    early = Reply(episode="e", seat=1, ask=1, act=Act(kind="speak", argument="me first"))
    assert conduct.reply(early, 0.0) == Sent()
    conduct.reply(Reply(episode="e", seat=0, ask=1, act=Act(kind="speak", argument="one")), 0.0)
    after_the_limit = Reply(episode="e", seat=1, ask=1, act=Act(kind="speak", argument="the turn too many"))
    assert conduct.reply(after_the_limit, 0.0) == Sent()
    assert [turn.argument for turn in conduct.turns] == ["one"]
    assert conduct.refused == 2


def test_begin_is_no_state() -> None:
    conduct = TurnBasedDialogue("e", plan().briefings, EpisodeRules(), random.Random(0))
    assert len(conduct.begin(0.0).observations) == 1
    assert conduct.begin(0.0) == Sent()
    assert BeginEpisode() == BeginEpisode()
