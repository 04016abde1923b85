"""What a person at the terminal types, as an act."""

from __future__ import annotations

import msgspec

from runtime.msgs.episode import Act

HOW = "Type what you say; /do ACTION, /sign GESTURE, /to NAME: WORDS, /wait, /leave."

COMMANDS = ("/do", "/sign", "/to", "/wait", "/leave")

MURMUR_WORDS = 2
"""So few words beside somebody's speech take nothing from it."""


class Typed(msgspec.Struct, frozen=True):
    """What a person did and when, in the episode's own time: enough to have it happen again."""

    act: Act
    at_ns: int


def urgency_of(act: Act) -> float:
    """How much whoever typed this wants the floor: at once, but for a murmur."""
    if act.kind == "none":
        return 0.0
    is_murmur = act.kind == "speak" and len(act.argument.split()) <= MURMUR_WORDS
    return 0.7 if is_murmur else 0.9


def problem_of_line(line: str) -> str:
    """What is wrong with a typed command, in a sentence; "" where nothing is: it is not said aloud by mistake."""
    command = line.strip().partition(" ")[0]
    if not command.startswith("/") or command in COMMANDS:
        return ""
    return f"{command[:40]} is no command; known: {', '.join(COMMANDS)}"


def act_from_line(line: str) -> Act:
    """The act that a person typed."""
    text = line.strip()
    command, _, rest = text.partition(" ")
    if not text or command == "/wait":
        return Act()
    if command == "/leave":
        return Act(kind="leave", argument=rest)
    if command == "/do":
        return Act(kind="action", argument=rest)
    if command == "/sign":
        return Act(kind="non-verbal communication", argument=rest)
    if command == "/to":
        names, _, words = rest.partition(":")
        to = tuple(name.strip() for name in names.split(",") if name.strip())
        return Act(kind="speak", argument=words.strip(), to=to)
    return Act(kind="speak", argument=text)
