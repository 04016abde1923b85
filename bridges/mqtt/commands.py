"""What a command over MQTT must be to be applied: fresh, not retained, seen for the first time, allowed here."""

from __future__ import annotations

from typing import Annotated

import msgspec

from runtime.serialization.msgspec_cache import from_json

VERBS = ("say", "stop", "estop", "resume", "runstop", "release", "home", "stow")
LONGEST_LIFE_MS = 30_000
"""A command that claims to be good for longer is refused, which also bounds how many nonces are remembered."""
LARGEST_BYTES = 4096
MOST_NONCES = 10_000
STOPS = ("stop", "estop", "runstop")
"""Never refused because of how much else comes."""

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

    def judge(
        self, verb: str, payload: bytes, *, is_retained: bool, now_ms: int
    ) -> tuple[Command | None, CommandReply]:
        """Return the command to apply, or None, and what to answer."""
        command, why = self._read(payload)
        if not why and command is not None:
            why = self._why_not(verb, command, is_retained=is_retained, now_ms=now_ms)
        if why or command is None:
            self.refused += 1
            return None, CommandReply(command.id if command is not None else "", verb, False, why)
        if len(self._nonces) < MOST_NONCES:
            self._nonces[command.nonce] = command.expires_ms
        return command, CommandReply(command.id, verb, True)

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
        if is_retained:
            return "a retained command is never applied; publish it without retain"
        if verb not in self.allowed:
            known = ", ".join(self.allowed) or "none: it is read-only"
            return f"{verb!r} is not allowed here; allowed: {known}"
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
            return "this nonce was used already"
        if len(self._nonces) >= MOST_NONCES and verb not in STOPS:
            return f"more than {MOST_NONCES} commands within {LONGEST_LIFE_MS // 1000} s"
        return ""
