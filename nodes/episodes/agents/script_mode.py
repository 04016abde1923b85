"""SCRIPT: one model that knows everything writes the whole episode at once; the acts are then played as written."""

from __future__ import annotations

import msgspec

from nodes.episodes.agents.acts import read_act
from nodes.episodes.agents.seat_caller import SeatCaller
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.models.chat_format import ModelAnswer
from nodes.models.json_reading import UnreadableError, read_object
from runtime.msgs.episode import ACT_KINDS, Act

SCRIPT_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "script": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "speaker": {"type": "string"},
                    "action_type": {"type": "string", "enum": list(ACT_KINDS)},
                    "argument": {"type": "string"},
                },
                "required": ["speaker", "action_type", "argument"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["script"],
    "additionalProperties": False,
}


def script_prompt(plan: EpisodePlan) -> str:
    """Everything about everybody, and the task to write it."""
    return (
        f"Write the script of an episode between {', '.join(plan.names)}, who act towards their own private goals.\n\n"
        f"{plan.briefings[0].background}\n\n"
        f"At most {plan.rules.max_turns} turns. action_type is one of {', '.join(ACT_KINDS)}. Answer with one JSON "
        'object and nothing else: {"script": [{"speaker": "NAME", "action_type": "...", "argument": "..."}]}'
    )


async def write_script(plan: EpisodePlan, caller: SeatCaller) -> list[tuple[int, Act]]:
    """The script as (seat, act). Raises OutageError, or UnreadableError after one re-ask."""
    prompt = script_prompt(plan)
    try:
        return _read(await caller.ask(prompt, SCRIPT_SCHEMA, "script"), plan)
    except UnreadableError as problem:
        again = f"{prompt}\n\nYour last answer could not be read ({problem}). Answer again, as asked."
        return _read(await caller.ask(again, SCRIPT_SCHEMA, "re-ask"), plan)


def _read(answer: ModelAnswer, plan: EpisodePlan) -> list[tuple[int, Act]]:
    if answer.ending == "declined":
        raise UnreadableError(f"the model declines to write it: {answer.text[:200]}")
    if answer.ending == "cut":
        raise UnreadableError("the script was cut off at the limit of its length; allow more with #tokens=8000")
    return read_script(answer.text, plan)


def read_script(text: str, plan: EpisodePlan) -> list[tuple[int, Act]]:
    """The turns in an answer, cut at the turn limit. Raises UnreadableError naming the turn."""
    rows = read_object(text).get("script")
    if not isinstance(rows, list) or not rows:
        raise UnreadableError("script is no list of turns")
    seats = {name.casefold(): seat for seat, name in enumerate(plan.names)}
    seats |= {name.split()[0].casefold(): seat for seat, name in enumerate(plan.names)}
    found = []
    for number, row in enumerate(rows[: plan.rules.max_turns], start=1):
        speaker = str(row.get("speaker", "")) if isinstance(row, dict) else ""
        seat = seats.get(speaker.strip().casefold())
        if seat is None:
            raise UnreadableError(
                f"turn {number}: there is no speaker {speaker[:60]!r}; known: {', '.join(plan.names)}"
            )
        found.append((seat, read_act(msgspec.json.encode(row).decode()).act))
    return found
