"""`episodes predict`: after each turn a seat is asked, apart from play, what the other wants and will do next.

Whoever predicts knows what the seat knew: its briefing and the turns that it perceived. The truth is the run's: the
goal that the other really had, and the act that really came. Predictions are answers in the log of calls. Whether they
came true are scores of the turn after which they were made.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

from nodes.episodes.agents.acts import kind_of
from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.seat_caller import OutageError, SeatCaller, asked_again
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.prompt import background_text, history_text
from nodes.episodes.results.store import Store, TurnScore, judge_seat
from nodes.episodes.runner.runner import side_by_side
from nodes.models.json_reading import UnreadableError, folded, read_object
from nodes.models.servers import Servers
from nodes.msgs.episode import ACT_KINDS, Turn
from nodes.statistics.paired import wilson
from runtime.errors import UserError

WANTS, BELIEVES, NEXT = "predicts wants", "predicts believes", "predicts next act"
QUESTIONS = (WANTS, BELIEVES, NEXT)
OPTIONS = 4
BASELINES = ("majority", "last act")
"""The most usual answer of all other episodes; and that things stay as they are."""


Said = dict[tuple[str, int, int, str], str]
"""Episode, seat, turn, question: what was predicted."""


class AskedTurn(msgspec.Struct, frozen=True):
    """One seat after one turn: what it may be asked, and the truth."""

    episode: str
    seat: int
    turn: int  # index of the last turn that has happened
    heard: tuple[Turn, ...]
    goals: tuple[str, ...]  # one of them is the other's
    truths: dict[str, str]  # question -> answer: a goal's letter, "yes" or "no", an act's kind


def moments_of(
    plan: EpisodePlan, turns: Sequence[Turn], goals: Sequence[str], has_deal: bool | None
) -> list[AskedTurn]:
    """Every moment at which a seat of two waits for the other, with other scenarios' goals beside the true one.

    What the other believes is whether there will be a deal: the only belief whose truth the run knows, by its end.
    """
    found = []
    for seat, name in enumerate(plan.names[:2]):
        other = plan.truths[1 - seat]
        chance = random.Random(f"goals {plan.id} {seat}")
        others = sorted(set(goals) - {truth.goal for truth in plan.truths})
        wrong = chance.sample(others, k=min(OPTIONS - 1, len(others)))
        options = [*wrong, other.goal]
        chance.shuffle(options)
        for place, turn in enumerate(turns[1:], start=1):
            if turn.speaker != other.name or turn.fault:
                continue
            truths = {WANTS: "abcd"[options.index(other.goal)], NEXT: turn.kind}
            truths |= {} if has_deal is None else {BELIEVES: "yes" if has_deal else "no"}
            heard = tuple(one for one in turns[:place] if one.is_for(name))
            found.append(AskedTurn(plan.id, seat, place - 1, heard, tuple(options), truths))
    return found


def all_moments(store: Store) -> list[AskedTurn]:
    """The moments of all finished episodes of two, in turns."""
    plans = [store.plan(row.id) for row in store.episodes() if row.state == "done"]
    goals = [truth.goal for plan in plans for truth in plan.truths]
    found = []
    for plan in plans:
        if len(plan.names) == 2 and plan.rules.order == "round-robin" and len(set(goals)) > 2:
            checks = store.checks(plan.id) or {}
            has_deal = bool(checks["has_deal"]) if plan.deal is not None and checks else None
            found += moments_of(plan, store.turns(plan.id), goals, has_deal)
    return found


def baseline(name: str, moments: Sequence[AskedTurn]) -> Said:
    """What a baseline predicts at each moment of each question."""
    usual: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for one in moments:
        for question, truth in one.truths.items():
            usual["", question][truth] += 1
            usual[one.episode, question][truth] += 1
    said: Said = {}
    for one in moments:
        own = one.heard[-1].speaker if one.heard else ""  # turns alternate, and the last one is its own
        theirs = [turn.kind for turn in one.heard if turn.speaker != own]
        for question in one.truths:
            elsewhere = usual["", question] - usual[one.episode, question]
            common = min(elsewhere, key=lambda each: (-elsewhere[each], each), default="")
            is_last = name == "last act" and question == NEXT and theirs
            said[_key(one, question)] = theirs[-1] if is_last else common
    return said


def _key(moment: AskedTurn, question: str) -> tuple[str, int, int, str]:
    return moment.episode, moment.seat, moment.turn, question


_ASK = """{background}

So far:
{history}

Now, apart from play: think of {other}.
1. What does {other} want? Choose a letter.
{goals}
2. Does {other} believe that the two of you will come to a deal? yes or no.
3. What will {other} do next? One of: {kinds}.
Answer with one JSON object and nothing else: {{"wants": "a", "believes": "yes", "next": "speak"}}"""


async def predicted(
    store: Store, moments: Sequence[AskedTurn], model: str, jobs: int = 16
) -> tuple[Said, dict[str, int]]:
    """A model's predictions, `jobs` asked at a time and kept as they come; of each question how many nobody can read.

    Raises OutageError.
    """
    said: Said = {}
    servers, unreadable = Servers(), Counter[str]()
    spec = AgentSpec.parse(model, temperature=0.0)
    spec.check_model(servers)

    async def ask(one: AskedTurn) -> None:
        plan = store.plan(one.episode)
        prompt = _ASK.format(
            background=background_text(plan.briefings[one.seat]), history=history_text(one.heard),
            other=plan.names[1 - one.seat], kinds=", ".join(ACT_KINDS),
            goals="\n".join(f"{letter}: {goal}" for letter, goal in zip("abcd", one.goals, strict=False)),
        )  # fmt: skip
        seat = judge_seat(f"{model} predicts {one.seat} {one.turn}")
        caller = SeatCaller(spec, servers, store.answers(one.episode), seat, tokens=200)
        read = read_prediction((await caller.ask(prompt, {"type": "object"}, "predict")).text, one.goals)
        if missing := [question for question in one.truths if question not in read]:
            again = asked_again(prompt, ", ".join(missing))
            read = read_prediction((await caller.ask(again, {"type": "object"}, "re-ask")).text, one.goals) | read
        for question in one.truths:
            unreadable[question] += question not in read
            said[_key(one, question)] = read.get(question, "")

    async with servers:
        await side_by_side(jobs, moments, ask)
    return said, {question: number for question, number in unreadable.items() if number}


_LEAD = (
    r"(?:i (?:think|guess|choose)[:,]? )?(?:(?:the |my )?(?:answer|option|letter|choice|goal|guess)(?: is)?[: ]*)?\W*"
)
"""What models write before a letter."""


def read_prediction(text: str, goals: Sequence[str]) -> dict[str, str]:
    """What an answer predicts, by question, as models write it: "(a)", "a: the goal", the goal itself, "Yes."."""
    try:
        found = folded(read_object(text))
    except UnreadableError:
        return {}
    said = {key: _words(value) for key, value in found.items()}
    read: dict[str, str] = {}
    wants, letters = said.get("wants", ""), "abcd"[: len(goals)]
    same = [letter for letter, goal in zip(letters, goals, strict=True) if _words(goal).startswith(wants.rstrip(" .…"))]
    if letter := re.match(rf"{_LEAD}([{letters}])\s*(?:$|[:.,)*'\"\]\-])", wants):
        read[WANTS] = letter[1]
    elif wants and len(same) == 1:
        read[WANTS] = same[0]
    if answer := re.match(r"(?:probably |likely |i think )?(yes|no|true|false)\b", said.get("believes", "")):
        read[BELIEVES] = {"true": "yes", "false": "no"}.get(answer[1], answer[1])
    if kind := kind_of(re.sub(r"^(to|an?) ", "", said.get("next", "")), r"(s|es|ing)?(\b.*)?"):
        read[NEXT] = kind
    return read


def _words(value: object) -> str:
    while isinstance(value, list | dict) and len(value) == 1:  # ["a"], {"letter": "a"}
        (value,) = value.values() if isinstance(value, dict) else value
    return re.sub(r"\s+", " ", str(value).strip().casefold()).strip(" \"'*([{<")


def keep(store: Store, moments: Sequence[AskedTurn], who: str, said: Said) -> None:
    """Whether each prediction came true, as scores of the turn after which it was made."""
    by_episode: dict[str, list[TurnScore]] = defaultdict(list)
    for one in moments:
        right = {question: float(said.get(_key(one, question)) == truth) for question, truth in one.truths.items()}
        by_episode[one.episode] += [TurnScore(one.turn, who, *both) for both in right.items()]
    for episode, scores in by_episode.items():
        store.save_turn_scores(episode, scores)


def accuracy(store: Store, who: str) -> dict[str, dict[str, Any]]:
    """Of each question: the accuracy over all turns, by fives of turns, and by meetings of `sessions`; with intervals.

    An interval is Wilson's at 95 %, as if each prediction stood by itself.
    """
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in store.episodes():
        tags = store.plan(row.id).tags
        meeting = f"{tags[2]}, memory {tags[1]}" if tags[:1] and tags[0].startswith("session ") else ""
        for one in store.turn_scores(row.id):
            if one.judge == who and one.dimension in QUESTIONS:
                turns = f"turns {one.turn // 5 * 5 + 1}-{one.turn // 5 * 5 + 5}"
                for part in ("all", turns, *([meeting] if meeting else [])):
                    found[one.dimension][part].append(one.score)
    return {
        question: {
            "n": len(parts["all"]),
            **{part: sum(s) / len(s) for part, s in sorted(parts.items(), key=lambda one: (len(one[0]), one[0]))},
            "intervals": {part: wilson(round(sum(s)), len(s)) for part, s in parts.items()},
        }
        for question, parts in found.items()
    }


def predict(asked: argparse.Namespace) -> int:
    """Predictions at every moment, by baselines and a model, and how many came true."""
    with Store.open(asked.run) as store:
        moments = all_moments(store)
        if not moments:
            raise UserError(f"{asked.run}: holds no finished round-robin episodes of two with different goals")
        for name in BASELINES:
            keep(store, moments, name, baseline(name, moments))
        unreadable: dict[str, int] = {}
        if asked.by:
            try:
                said, unreadable = asyncio.run(predicted(store, moments, asked.by, asked.jobs))
            except OutageError as problem:
                raise UserError(f"{asked.by}: {problem}; the same command goes on") from problem
            keep(store, moments, asked.by, said)
        found = {who: accuracy(store, who) for who in (*BASELINES, *([asked.by] if asked.by else []))}
    if asked.json:
        print(msgspec.json.encode({"accuracy": found, "unreadable": unreadable}).decode())
        return 0
    for who, questions in found.items():
        for question, parts in questions.items():
            bounds = {part: f"[{low:.2f}, {high:.2f}]" for part, (low, high) in parts["intervals"].items()}
            print(f"{who[:24]:24} {question:20} {parts['all']:.3f} {bounds['all']} of {parts['n']}")
            for part in [part for part in bounds if part != "all"]:
                print(f"{'':46}{part:26} {parts[part]:.2f} {bounds[part]}")
    for question, number in unreadable.items():
        print(f"{question}: {number} answers could not be read, also when asked again; they count as wrong")
    return 0
