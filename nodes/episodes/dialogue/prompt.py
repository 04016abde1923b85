"""The text that a model playing a participant is given: its briefing, what it has perceived, and what to answer.

Pure: the log keeps briefing and the turns held, and gives back the same text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from nodes.msgs.episode import ACT_KINDS, Briefing, Observation, Turn


def json_object(properties: Mapping[str, object]) -> dict[str, object]:
    """The schema of an object with these properties, all of them and no others."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


TEXT = {"type": "string"}
_ACT = {
    "action_type": {"type": "string", "enum": list(ACT_KINDS)},
    "argument": TEXT,
    "to": {"type": "array", "items": TEXT},
}
ACT_SCHEMA = json_object(_ACT)
BID_SCHEMA = json_object({**_ACT, "urgency": {"type": "number"}})

_ROLE = """You play {name}. Act and speak as {name} would, in character, and work towards {name}'s private goal \
without giving away what {name} would keep quiet. Others see only what you say and do."""

_HOW = """Available action types: {available}
- speak: say something; put the words into "argument".
- non-verbal communication: a look, a gesture; describe it in "argument".
- action: something physical; describe it in "argument".
- none: do nothing this time.
- leave: end your part, when your goal is reached, cannot be reached, or the talk is over.
"to" names who alone perceives it (a whisper, a private message); [] means everybody. Speak briefly and naturally, and \
do not repeat yourself."""

_JSON = 'Answer with one JSON object and nothing else: {"action_type": "...", "argument": "...", "to": []}'
_SMALL = """Write the next thing that {first} says, one or two sentences in quotes, and nothing else.{last} An action \
stands between asterisks, *like this*."""
_BID = """Others may speak at any time. "urgency" from 0 to 1 says how much you want to speak now: 0 stay silent, 0.5 \
when nobody else wants to, above 0.8 interrupt. Answer with one JSON object and nothing else: {"action_type": "...", \
"argument": "...", "to": [], "urgency": 0.5}"""


def prompt_template(*, small: bool = False) -> str:
    """What the prompt of an act says besides what the participant knows; a card shows it."""
    return "\n\n".join((_SMALL,) if small else (_ROLE, _HOW, _JSON))


@lru_cache(maxsize=4096)  # a turn is in every later prompt of everybody who heard it
def turn_text(turn: Turn) -> str:
    """A turn as those who perceive it read it."""
    done = {
        "none": "did nothing",
        "leave": "left" + (f": {turn.argument}" if turn.argument else ""),
        "speak": f'said: "{turn.argument}"',
        "non-verbal communication": f"[non-verbal] {turn.argument}",
        "action": f"[action] {turn.argument}",
    }[turn.kind]
    if turn.is_failed:
        done = "(could not be understood)"
    private = f" (privately to {', '.join(turn.to)})" if turn.to else ""
    note = f" [{turn.note}]" if turn.timing else ""
    return f"Turn {turn.number}: {turn.speaker}{private} {done}{note}"


def history_text(turns: Iterable[Turn]) -> str:
    """What has happened, one line per turn, without the silent ones."""
    told = (turn_text(turn) for turn in turns if turn.kind != "none" or turn.is_failed)
    return "\n".join(told) or "(nothing has happened yet)"


def background_text(briefing: Briefing) -> str:
    """What a participant knows at the start: the view that `visibility` made, and whose goal is to be pursued."""
    return f"{briefing.background}\n\nYou are {briefing.name}. Your private goal: {briefing.goal}"


def prompt_text(briefing: Briefing, turns: Sequence[Turn], observation: Observation) -> str:
    """The whole prompt of one ask."""
    parts = [_ROLE.format(name=briefing.name), background_text(briefing), "So far:\n" + history_text(turns)]
    if observation.speaking:
        parts.append(f'{observation.speaking} is speaking and has said so far: "{observation.so_far}"')
    if observation.silence_s:
        parts.append(f"Nobody has spoken for {observation.silence_s:.1f} s.")
    if observation.guidance is not None and observation.guidance.text:
        parts.append(observation.guidance.text)
    if observation.is_last:
        parts.append("This is your last turn.")
    parts.append(f"You are at turn {observation.turn}. " + _HOW.format(available=", ".join(observation.available)))
    if observation.problem:
        parts.append(f"Your last answer was refused: {observation.problem}. Answer again.")
    parts.append(_BID if observation.asks == "bid" else _JSON)
    return "\n\n".join(parts)


def small_prompt_text(briefing: Briefing, turns: Sequence[Turn], observation: Observation) -> str:
    """The prompt for a small model: the talk as a script, to be gone on with by one line; the act is inferred."""
    lines = []
    for turn in turns[-12:]:
        if turn.kind == "speak":
            lines.append(f"{turn.speaker}: {turn.argument}")
        elif turn.kind in ("action", "non-verbal communication"):
            lines.append(f"{turn.speaker}: *{turn.argument}*")
    first = briefing.name.split()[0]
    others = " and ".join(name for name in briefing.participants if name != briefing.name)
    last = f" It is {first}'s last line." if observation.is_last else ""
    return (
        f"{briefing.scenario}\n{briefing.name} talks with {others}. What {first} wants: {briefing.goal}\n"
        + _SMALL.format(first=first, last=last)
        + "\n\n"
        + "\n".join([*lines, f"{briefing.name}:"])
    )
