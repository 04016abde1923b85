"""A language model as judge: all it may know, reasoning before each score, temperature 0, ranges checked, by name.

A failed evaluation is a state of its own: no score is made up, and none is zero.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nodes.episodes.agents.repair import UnreadableError, clean, read_object
from nodes.episodes.agents.seat_caller import OutageError, SeatCaller
from nodes.episodes.dialogue.package_prompts import PackagePrompts
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.prompt import history_text
from nodes.episodes.evaluation.dimensions import PUBLISHED, SEVEN, Dimension
from runtime.msgs.episode import Score, Scores, Turn


def judge_prompt(plan: EpisodePlan, turns: Sequence[Turn], dimensions: Sequence[Dimension]) -> str:
    """All about everybody, what happened, and what to answer."""
    people = "\n\n".join(
        f"{truth.name}\nProfile: {truth.profile}\nSecret: {truth.secret or '(none)'}\nPrivate goal: {truth.goal}"
        for truth in plan.truths
    )
    return (
        f"Judge an episode between {', '.join(plan.names)}.\n\nScenario: {plan.context}\n\n{people}\n\n"
        f"What happened:\n{history_text(turns)}\n\n{judge_question(dimensions)}"
    )


def judge_question(dimensions: Sequence[Dimension]) -> str:
    """What a judge is asked of every episode; a card shows it."""
    scales = "\n".join(
        "\n  ".join((f"- {one.name}, {one.low} to {one.high}: {one.instruction}", *one.meanings)) for one in dimensions
    )
    shape = '{"evaluations": {"NAME": {"DIMENSION": {"reasoning": "...", "score": 0}}}}'
    return (
        f"Score every participant on every dimension, with whole numbers:\n{scales}\n\n"
        "Each participant knew only their own goal and what the relationship shows. Write the reasoning first, then "
        f"the score. Answer with one JSON object and nothing else, with the participants' full names as keys:\n{shape}"
    )


def judge_schema(plan: EpisodePlan, dimensions: Sequence[Dimension]) -> dict[str, object]:
    """The JSON schema of an evaluation; `reasoning` stands before `score`."""
    one = {
        "type": "object",
        "properties": {"reasoning": {"type": "string"}, "score": {"type": "integer"}},
        "required": ["reasoning", "score"],
        "additionalProperties": False,
    }
    person = _object({dimension.name: one for dimension in dimensions})
    return _object({"evaluations": _object(dict.fromkeys(plan.names, person))})


def _object(properties: dict[str, object] | dict[str, dict[str, object]]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_scores(text: str, plan: EpisodePlan, dimensions: Sequence[Dimension]) -> tuple[Score, ...]:
    """The scores in an answer, by name. Raises UnreadableError naming participant and dimension."""
    found = read_object(text)
    people = found.get("evaluations", found)
    if not isinstance(people, dict):
        raise UnreadableError("evaluations is no object")
    by_name = {str(name).strip().casefold(): value for name, value in people.items()}
    scores = []
    for name in plan.names:
        person = by_name.get(name.casefold(), by_name.get(name.split()[0].casefold()))
        for key in (f"agent_{plan.names.index(name) + 1}", f"agent_{plan.names.index(name) + 1}_evaluation"):
            person = by_name.get(key) if person is None else person
        if not isinstance(person, dict):
            raise UnreadableError(f"there is no evaluation of {name}; found {', '.join(map(str, people)) or '(none)'}")
        for dimension in dimensions:
            part = person.get(dimension.name, person.get(PUBLISHED.get(dimension.name, "")))
            if isinstance(part, list | tuple) and len(part) == 2:
                part = {"reasoning": part[0], "score": part[1]}
            if not isinstance(part, dict) or "score" not in part:
                raise UnreadableError(f"{name}: {dimension.name} is missing")
            value = _number(part["score"])
            problem = dimension.problem_of(value)
            if problem:
                raise UnreadableError(f"{name}: {problem}")
            reasoning = clean(str(part.get("reasoning", "")))
            assert isinstance(value, int | float)
            scores.append(Score(name=name, dimension=dimension.name, score=float(value), reasoning=reasoning))
    return tuple(scores)


def _number(value: object) -> object:
    """A score written as a text ("7", "7/10") as the number that it is; anything else as it came."""
    found = re.fullmatch(r"\s*(-?\d+(?:\.0+)?)\s*(?:/\s*\d+)?\s*", value) if isinstance(value, str) else None
    return float(found[1]) if found else value


async def judge_by_model(
    judge: str,
    caller: SeatCaller,
    plan: EpisodePlan,
    turns: Sequence[Turn],
    dimensions: Sequence[Dimension] = SEVEN,
    like: PackagePrompts | None = None,
) -> Scores:
    """One evaluation; after an unreadable or out-of-range answer one re-ask, then a failed evaluation.

    `like`: a published package whose judge's prompt is used, on its seven dimensions.
    """
    prompt, schema = judge_prompt(plan, turns, dimensions), judge_schema(plan, dimensions)
    if like is not None:
        prompt, schema = like.judge_prompt(plan, turns), like.judge_schema
    why = ""
    for attempt in range(2):
        again = f"\n\nYour last answer cannot be used ({why}). Answer again, as asked." if attempt else ""
        try:
            answer = await caller.ask(prompt + again, schema, "judge")
            if answer.ending == "declined":
                why = f"the model declines to judge: {answer.text[:200]}"
                break
            scores = read_scores(answer.text, plan, dimensions)
        except OutageError as problem:
            why = str(problem)
            break
        except UnreadableError as problem:
            why = str(problem)
        else:
            return Scores(episode=plan.id, judge=judge, state="done", scores=scores)
    return Scores(episode=plan.id, judge=judge, state="failed", scores=(), why=why)
