"""A language model as judge: all it may know, reasoning before each score, temperature 0, ranges checked, by name.

A failed evaluation is a state of its own: no score is made up, and none is zero.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from nodes.episodes.agents.acts import clean
from nodes.episodes.agents.seat_caller import OutageError, SeatCaller
from nodes.episodes.dialogue.package_prompts import PackagePrompts
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.prompt import TEXT, history_text, json_object
from nodes.episodes.evaluation.dimensions import PUBLISHED, SEVEN, Dimension
from nodes.models.json_reading import UnreadableError, folded, layers, read_json, read_number
from nodes.msgs.episode import Score, Scores, Turn


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


def judge_schema(names: Sequence[str], dimensions: Sequence[Dimension]) -> dict[str, object]:
    """The JSON schema of an evaluation; `reasoning` stands before `score`."""
    return json_object({"evaluations": json_object(dict.fromkeys(names, _person(dimensions)))})


def _person(dimensions: Sequence[Dimension]) -> dict[str, object]:
    one = json_object({"reasoning": TEXT, "score": {"type": "integer"}})
    return json_object({dimension.name: one for dimension in dimensions})


Asked = tuple[str, str]
"""Who is scored on which dimension, by names."""


class ReadScores(msgspec.Struct, frozen=True):
    """What an answer holds of what was asked, and why it lacks the rest."""

    scores: dict[Asked, Score]
    problems: dict[Asked, str]

    @property
    def why(self) -> str:
        """The first problem; "" where there is none."""
        return next(iter(self.problems.values()), "")


def read_scores(text: str, names: Sequence[str], dimensions: Sequence[Dimension]) -> ReadScores:
    """The scores in an answer, by name and dimension. Raises UnreadableError where it holds no object."""
    found = read_json(text).fields  # of one that was cut off, the scores that stand there whole
    said = (_by_name(folded(layer).get("evaluations", layer), names) for layer in layers(found))
    people = next((one for one in said if one), {})
    read = ReadScores({}, {})
    for name in names:
        person = _by_dimension(people.get(name))
        for dimension in dimensions:
            part = next((person[key] for key in _keys_of(dimension) if key in person), None)
            score, why = _score(name, dimension, part, people.get(name))
            if score is None:
                read.problems[name, dimension.name] = why
            else:
                read.scores[name, dimension.name] = score
    return read


def _by_name(people: object, names: Sequence[str]) -> dict[str, object]:
    """What an answer says of each participant, however it names them."""
    rows = [row for row in people if isinstance(row, dict)] if isinstance(people, list) else []
    said = {str(next((row[key] for key in row if str(key).casefold() in _NAMES), "")): row for row in rows}
    said |= {str(key): value for key, value in people.items()} if isinstance(people, dict) else {}
    given = {re.sub(r"[\s_\-]+", " ", key.strip().casefold()): value for key, value in said.items()}
    found: dict[str, object] = {}
    for number, name in enumerate(names, start=1):
        parts = [name.casefold(), *(part for part in (name.split()[0].casefold(), name.split()[-1].casefold())
                                    if sum(part in other.casefold().split() for other in names) == 1)]  # fmt: skip
        parts += [f"{kind} {number}{more}" for kind in ("agent", "participant") for more in ("", " evaluation")]
        if (key := next((part for part in parts if part in given), None)) is not None:
            found[name] = given[key]
    return found


_NAMES = ("name", "participant", "agent", "character", "person")


def _by_dimension(person: object) -> dict[str, object]:
    """What is said of one participant, by dimension as it names them."""
    if isinstance(person, dict):
        inner = next((value for key, value in person.items() if str(key).casefold() in ("scores", "dimensions")), None)
        return _by_dimension(inner) if isinstance(inner, dict | list) else folded(person)
    rows = [folded(row) for row in person if isinstance(row, dict)] if isinstance(person, list) else []
    return {str(row.get("dimension", row.get("name", ""))).strip().casefold().replace(" ", "_"): row for row in rows}


def _keys_of(dimension: Dimension) -> tuple[str, ...]:
    known = (dimension.name, dimension.title, PUBLISHED.get(dimension.name, ""))
    return tuple(key.casefold().replace(" ", "_") for key in known if key)


def _score(name: str, dimension: Dimension, part: object, person: object) -> tuple[Score | None, str]:
    """One score, or why it is none: never one out of range, and never one that was not written."""
    if person is None:
        return None, f"there is no evaluation of {name}"
    if isinstance(part, list | tuple) and len(part) == 2:
        part = {"reasoning": part[0], "score": part[1]}
    if isinstance(part, dict):
        part = folded(part)
        reasoning, value = clean(str(part.get("reasoning", ""))), part.get("score")
    else:
        reasoning, value = "", part
    if value is None:
        return None, f"{name}: {dimension.name} is missing"
    number = read_number(value, (dimension.high, -dimension.low, dimension.high - dimension.low))
    problem = dimension.problem_of(value if number is None else number)
    if problem or number is None:
        return None, f"{name}: {problem}"
    return Score(name=name, dimension=dimension.name, score=number, reasoning=reasoning), ""


async def judge_by_model(
    judge: str,
    caller: SeatCaller,
    plan: EpisodePlan,
    turns: Sequence[Turn],
    dimensions: Sequence[Dimension] = SEVEN,
    like: PackagePrompts | None = None,
) -> Scores:
    """One evaluation; what is unreadable or out of range is asked for once more, alone; then a failed evaluation.

    `like`: a published package whose judge's prompt is used, on its seven dimensions.
    """
    prompt, schema = judge_prompt(plan, turns, dimensions), judge_schema(plan.names, dimensions)
    if like is not None:
        prompt, schema = like.judge_prompt(plan, turns), like.judge_schema
    scores: dict[Asked, Score] = {}
    problems = {(name, one.name): "" for name in plan.names for one in dimensions}
    why = ""
    for attempt in range(2):
        try:
            again, wanted = _again(problems, dimensions, why) if attempt else ("", schema)
            answer = await caller.ask(prompt + again, wanted, "judge")
            if answer.ending in ("declined", "full"):
                is_full = answer.ending == "full"
                why = answer.text if is_full else f"the model declines to judge: {answer.text[:200]}"
                break
            read = read_scores(answer.text, plan.names, dimensions)
        except OutageError as problem:
            why = str(problem)
            break
        except UnreadableError as problem:
            why = str(problem)
            continue
        scores |= {asked: score for asked, score in read.scores.items() if asked in problems}
        problems = {asked: text for asked, text in read.problems.items() if asked not in scores}
        why = next(iter(problems.values()), "")
        if not problems:
            every = tuple(scores[name, one.name] for name in plan.names for one in dimensions)
            return Scores(episode=plan.id, judge=judge, state="done", scores=every)
    return Scores(episode=plan.id, judge=judge, state="failed", scores=(), why=why)


def _again(problems: Mapping[Asked, str], dimensions: Sequence[Dimension], why: str) -> tuple[str, dict[str, object]]:
    """What is asked after an answer of which these scores cannot be used, and the schema: for those alone."""
    of = {name: [one for one in dimensions if (name, one.name) in problems] for name, _ in problems}
    schema = json_object({"evaluations": json_object({name: _person(missing) for name, missing in of.items()})})
    listed = "; ".join(f"{name}: {', '.join(one.name for one in missing)}" for name, missing in of.items())
    if len(of) and not any(problems.values()):
        return f"\n\nYour last answer cannot be used ({why}). Answer again, as asked.", schema
    return f"\n\nOf your last answer this cannot be used ({why}). Answer again for these alone: {listed}.", schema
