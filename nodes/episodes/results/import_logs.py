"""`episodes import`: EpisodeLogs (ours, or the sotopia package's JSONL) become a run to browse, judge again and report.

A log holds what was said and how it was scored, and no facts: checks of deals and of what was learned find nothing.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

import msgspec

from nodes.episodes.dialogue.plan import EpisodePlan, GroundTruth
from nodes.episodes.dialogue.rules import EpisodeRules
from nodes.episodes.evaluation.dimensions import NOT_JUDGED, PUBLISHED
from nodes.episodes.results.card import card_of
from nodes.episodes.results.export import ENVIRONMENT
from nodes.episodes.results.store import Store
from runtime.errors import UserError
from runtime.msgs.episode import ActKind, Briefing, Outcome, Score, Scores, Turn
from runtime.serialization.toml_errors import read_text


class LoggedEpisode(msgspec.Struct, frozen=True):
    """What is read of one line; other keys are ignored."""

    environment: str
    agents: tuple[str, ...]
    messages: tuple[tuple[tuple[str, str, str], ...], ...]
    pk: str | None = None
    models: tuple[str, ...] | None = None
    tag: str | None = None
    reasoning: str = ""
    rewards: tuple[tuple[float, dict[str, float]] | float, ...] = ()


_ACTS: tuple[tuple[ActKind, re.Pattern[str]], ...] = (
    ("none", re.compile(r"did nothing$")),
    ("leave", re.compile(r"left the conversation$")),
    ("speak", re.compile(r'said: "?(?P<text>.*?)"?$', re.S)),
    ("non-verbal communication", re.compile(r"\[non-verbal communication\] (?P<text>.*)$", re.S)),
    ("action", re.compile(r"\[action\] (?P<text>.*)$", re.S)),
)
_PRIVATE = re.compile(r"^\[private to \[?(?P<names>[^\]]*)\]+ ")
_GOAL = re.compile(r"goal:?\s*(?P<goal>.+)$", re.I | re.M)


def import_logs(asked: argparse.Namespace) -> int:
    """Make a run of the lines that can be read; the others are named and left out."""
    lines = read_text(asked.file).split("\n")
    found: list[tuple[EpisodePlan, list[Turn], LoggedEpisode]] = []
    left_out = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            log = msgspec.json.decode(line, type=LoggedEpisode)
            found.append((*read_log(log, number), log))
        except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
            left_out += 1
            print(f"left out: {asked.file}:{number}: {problem}", file=sys.stderr)
    if not found:
        raise UserError(f"{asked.file}: holds no episode; expected one EpisodeLog as JSON a line")
    out = asked.out or asked.file.with_suffix(".sqlite")
    with Store.create(out, {"judges": [], "dimensions": [], "is_imported": True}) as store:
        store.add(plan for plan, _, _ in found)
        store.set_card(card_of([plan for plan, _, _ in found], []) | {"imported": asked.file.name})
        for plan, turns, log in found:
            outcome = Outcome(episode=plan.id, state="done", reason="imported", turns=len(turns))
            store.save_played(plan.id, turns, (), outcome)
            for scores in scores_of(log, plan):
                store.save_scores(scores)
    print(f"{len(found)} episodes, {left_out} left out\n\nrun: {out}")
    return 0


def read_log(log: LoggedEpisode, number: int) -> tuple[EpisodePlan, list[Turn]]:
    """Plan and turns of a log. Raises ValueError where it tells of fewer than two who act."""
    told = (
        {receiver: text for sender, receiver, text in log.messages[0] if sender == ENVIRONMENT} if log.messages else {}
    )
    speakers = [sender for group in log.messages for sender, _, _ in group if sender != ENVIRONMENT]
    names = tuple(dict.fromkeys([name for name in told if name != ENVIRONMENT] + speakers))
    if len(names) < 2:
        raise ValueError(f"expected messages of two participants or more, found {len(names)}")
    turns: list[Turn] = []
    for place, group in enumerate(log.messages):
        for sender, _, text in group:
            if sender != ENVIRONMENT and (act := act_of(text)) is not None:
                kind, argument, to = act
                turns.append(
                    Turn(index=len(turns), number=max(1, place), speaker=sender, kind=kind, argument=argument, to=to)
                )
    models = log.models or ()
    agents = tuple(models[1:]) if len(models) == len(names) + 1 else ("unknown",) * len(names)
    goals = [found["goal"] if (found := _GOAL.search(told.get(name, ""))) else "(not in the log)" for name in names]
    context = next((line for line in told.get(names[0], "").split("\n") if "scenario" in line.lower()), "")
    scenario = re.sub(r"[^a-z0-9_-]", "-", log.environment.lower())[:64] or "unknown"
    plan = EpisodePlan(
        id=re.sub(r"[^\w.-]", "-", log.pk or f"{scenario}-{number}"),
        task=scenario,
        scenario=scenario,
        context=context.strip(),
        kind="",
        relationship="",
        briefings=tuple(
            Briefing(
                seat=seat, name=name, scenario=context, participants=names, goal=goal, background=told.get(name, "")
            )
            for seat, (name, goal) in enumerate(zip(names, goals, strict=True))
        ),
        truths=tuple(
            GroundTruth(
                name=name,
                character=log.agents[seat] if seat < len(log.agents) else "",
                goal=goal,
                profile=told.get(name, ""),
            )
            for seat, (name, goal) in enumerate(zip(names, goals, strict=True))
        ),
        rules=EpisodeRules(max_turns=max(1, len(log.messages))),
        agents=agents,
        seed=number,
        tags=(log.tag,) if log.tag else (),
    )
    return plan, turns


def act_of(text: str) -> tuple[ActKind, str, tuple[str, ...]] | None:
    """The act in a log's words; None where they are none."""
    text = text.strip()
    to: tuple[str, ...] = ()
    if private := _PRIVATE.match(text):
        to = tuple(name.strip(" '\"") for name in private["names"].split(",") if name.strip())
        text = text[private.end() :]
    for kind, pattern in _ACTS:
        if found := pattern.match(text):
            return kind, found.groupdict().get("text") or "", to
    return None


def scores_of(log: LoggedEpisode, plan: EpisodePlan) -> list[Scores]:
    """The log's rewards as an evaluation by the judge that it names; a bare number is a failed one."""
    judge = (log.models[0] if log.models else "") or "imported"
    names = {published: own for own, published in PUBLISHED.items()}
    line = re.compile(rf"^{re.escape(judge)}, ({'|'.join(map(re.escape, plan.names))}), ([\w-]+): (.*)$", re.M)
    why = {(name, dimension): text for name, dimension, text in line.findall(log.reasoning)}  # of our own exports
    found: list[Score] = []
    for name, reward in zip(plan.names, log.rewards, strict=False):
        if isinstance(reward, tuple):
            values: dict[str, Any] = {names.get(key, key): value for key, value in reward[1].items()}
            values.pop("overall_score", None)
            found += [
                Score(name=name, dimension=key, score=value, reasoning=why.pop((name, key), ""))
                for key, value in values.items()
            ]
    found += [
        Score(name=name, dimension=dimension, score=None, reasoning=text)
        for (name, dimension), text in why.items()
        if text.startswith(NOT_JUDGED)
    ]
    if not log.rewards:
        return []
    if not found:
        return [Scores(episode=plan.id, judge=judge, state="failed", scores=(), why="the log has no scores")]
    return [Scores(episode=plan.id, judge=judge, state="done", scores=tuple(found))]
