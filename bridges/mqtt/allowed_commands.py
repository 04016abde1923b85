"""What a command over MQTT must be to be applied: fresh, not retained, seen for the first time, allowed here."""

from __future__ import annotations

from collections import deque
from typing import Annotated, Any

import msgspec

from runtime.serialization.msgspec_cache import from_json

VERBS = ("say", "stop", "estop", "resume", "runstop", "release", "home", "stow")
LONGEST_LIFE_MS = 30_000
"""A command that claims to be good for longer is refused, which also bounds how many nonces are remembered."""
LARGEST_BYTES = 4096
MOST_NONCES = 10_000
STOPS = ("stop", "estop", "runstop")
"""Closed means stopped: never refused for a clock, a form, a missing nonce, or how much else comes."""

UNNAMED = "unnamed"
USED = "this nonce was used already"

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[^+#\x00]*$")]


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The payload of `cmd/<verb>`, as JSON."""

    id: Name
    nonce: Annotated[str, msgspec.Meta(min_length=8, max_length=64)]
    expires_ms: int  # wall-clock time, ms since 1970
    reply_to: Annotated[str, msgspec.Meta(max_length=200)] = ""  # below reply/ of this robot
    robot: str = ""  # where given, it has to be this one's name
    text: Annotated[str, msgspec.Meta(max_length=500)] = ""  # of say


class CommandReply(msgspec.Struct, frozen=True):
    """The answer on the reply topic: whether the command was handed on to the robot's graph."""

    id: str
    verb: str
    ok: bool
    why: str = ""


class Gatekeeper:
    """Judges commands, and remembers the nonces of those that are not expired yet."""

    def __init__(self, robot: str, allowed: tuple[str, ...], reply_prefix: str) -> None:
        self.robot = robot
        self.allowed = allowed
        self.reply_prefix = reply_prefix
        self.refused = 0
        self._nonces: dict[str, int] = {}  # until when
        self._stops: deque[str] = deque(maxlen=MOST_NONCES)  # nonces of stops, which no clock bounds
        self._unnamed = 0

    def judge(
        self, verb: str, payload: bytes, *, is_retained: bool, now_ms: int
    ) -> tuple[Command | None, CommandReply]:
        """Return the command to apply, or None, and what to answer."""
        if verb in STOPS:
            return self._stop(verb, payload, is_retained=is_retained)
        command, why = self._read(payload)
        if not why and command is not None:
            why = self._why_not(verb, command, is_retained=is_retained, now_ms=now_ms)
        if why or command is None:
            self.refused += 1
            return None, CommandReply(command.id if command is not None else "", verb, False, why)
        if len(self._nonces) < MOST_NONCES:
            self._nonces[command.nonce] = command.expires_ms
        return command, CommandReply(command.id, verb, True)

    def _stop(self, verb: str, payload: bytes, *, is_retained: bool) -> tuple[Command | None, CommandReply]:
        """Judge a stop: a button's bare word is one, too."""
        fields = fields_of(payload)
        name = _word(fields.get("id"), 64) or UNNAMED
        nonce = _word(fields.get("nonce"), 64)
        why = self._why_never(verb, is_retained=is_retained) or (USED if nonce and nonce in self._stops else "")
        if why:
            self.refused += 1
            return None, CommandReply(name, verb, False, why)
        if nonce:
            self._stops.append(nonce)
        else:
            self._unnamed += 1  # each press of a button is a stop of its own
            nonce = f"press-{self._unnamed}"
        wanted = _word(fields.get("reply_to"), 200)
        reply_to = wanted if self.may_reply_to(wanted) else ""
        return Command(id=name, nonce=nonce, expires_ms=0, reply_to=reply_to), CommandReply(name, verb, True)

    def may_reply_to(self, topic: str) -> bool:
        """Return whether an answer may go to this topic; nobody makes a robot publish to topics of others."""
        return (
            topic.startswith(self.reply_prefix) and len(topic) > len(self.reply_prefix) and not set(topic) & set("+#")
        )

    def _read(self, payload: bytes) -> tuple[Command | None, str]:
        if len(payload) > LARGEST_BYTES:
            return None, f"{len(payload)} bytes; a command has at most {LARGEST_BYTES}"
        try:
            return from_json(payload, Command), ""
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            return None, f"not a command: {problem}"

    def _why_not(self, verb: str, command: Command, *, is_retained: bool, now_ms: int) -> str:
        if never := self._why_never(verb, is_retained=is_retained):
            return never
        if command.robot and command.robot != self.robot:
            return f"it is for {command.robot!r}; this is {self.robot!r}"
        left_ms = command.expires_ms - now_ms
        if left_ms <= 0:
            return f"expired {-left_ms / 1000:.1f} s ago; are both clocks right?"
        if left_ms > LONGEST_LIFE_MS:
            text = f"good for {left_ms / 1000:.0f} s; at most {LONGEST_LIFE_MS // 1000} s are accepted"
            return f"{text}; are both clocks right?"
        if command.reply_to and not self.may_reply_to(command.reply_to):
            return f"reply_to is {command.reply_to!r}; expected a topic below {self.reply_prefix}"
        if (verb == "say") != bool(command.text.strip()):
            return "say needs a text" if verb == "say" else f"{verb} takes no text"
        self._nonces = {nonce: until_ms for nonce, until_ms in self._nonces.items() if until_ms > now_ms}
        if command.nonce in self._nonces:
            return USED
        if len(self._nonces) >= MOST_NONCES:
            return f"more than {MOST_NONCES} commands within {LONGEST_LIFE_MS // 1000} s"
        return ""

    def _why_never(self, verb: str, *, is_retained: bool) -> str:
        """Why not even a stop is taken."""
        if is_retained:
            return "a retained command is never applied; publish it without retain"
        if verb not in self.allowed:
            known = ", ".join(self.allowed) or "none: it is read-only"
            return f"{verb!r} is not allowed here; allowed: {known}"
        return ""


def fields_of(payload: bytes) -> dict[str, Any]:
    """The fields of a payload; none where it is no JSON object, as a button's "PRESS" or nothing at all."""
    try:
        return from_json(payload, dict[str, Any]) if len(payload) <= LARGEST_BYTES else {}
    except msgspec.MsgspecError:
        return {}


def _word(value: object, longest: int) -> str:
    """A field of text; "" where it is none, or too long."""
    return value if isinstance(value, str) and len(value) <= longest else ""
