"""`CommandSources`: which commands of which source may be followed; a pure part of the guard."""

from __future__ import annotations

from math import isfinite
from typing import Literal, NamedTuple

from nodes.guard.immediate_faults import FUTURE_NS, GuardSettings, is_whole
from nodes.msgs import JointCommand
from nodes.robot.protocol import RobotLimits
from runtime.clock import to_ns, to_s
from runtime.message import UNKNOWN_NS, Envelope, Stamped

MOST_SOURCES = 16
"""How many command sources are remembered between two decisions of a person; commands of further ones are refused.

The bound keeps invented names from filling the memory.
"""

FASTEST_MPS, FASTEST_RADPS = 5.0, 20.0
"""Largest base velocities that a command may ask for; one beyond is a mistake, such as degrees or cm, and refused."""

RANGE_SHARE, RANGE_MARGIN = 0.1, 0.05
"""A target further outside a joint's range than this share of it, and this much in m or rad, is a mistake, such as
degrees for radians. One within is followed to the end of the range, and counted.
"""

EDGE = 1e-6
"""A target that is no further beyond a range is at its end, by rounding."""

RESTARTED_NS = to_ns(0.5)
"""A source that was silent for this long may restart its sequence numbers; a person must then let it drive again."""

STUCK = "it shows one picture while the robot moves"

Order = Literal["first", "next", "old", "again", "one too many"]

ORDERS: dict[Order, str] = {
    "first": "",
    "next": "",
    "old": "out of order",
    "again": "restarted; heard again once a person says go on",
    "one too many": f"more than {MOST_SOURCES} sources of commands",
}
"""Why a command is refused for its place among those of its source; "" where it is not."""


class _Source(NamedTuple):
    seq: int
    published_ns: int


class CommandSources:
    """What was heard of each source, the fence behind which commands are void, and the newest command."""

    def __init__(self, limits: RobotLimits, settings: GuardSettings) -> None:
        self.limits, self.settings = limits, settings
        self.newest: Stamped[JointCommand] | None = None
        self.restarted = ""  # a source that began to count anew; the next look at the monitors stops the robot
        self.clamped: dict[str, int] = {}  # by source: commands a little beyond a joint's range
        self.mistaken: dict[str, int] = {}  # and far beyond, or beyond any base's speed
        self.is_picture_stuck = False  # the robot's camera shows one picture where it must show another
        self._fence_ns = -1  # commands published at or before it are void
        self._heard: dict[str, _Source] = {}

    @property
    def signature(self) -> tuple[object, ...]:
        """Whether a command is at hand, whether a source restarted, and of how many something is known."""
        return self.newest is not None, self.restarted != "", len(self._heard)

    def void(self, now_ns: int) -> None:
        """Void the command at hand, and all that were sent until now."""
        self._fence_ns = max(self._fence_ns, now_ns)
        self.newest = None

    def reset(self) -> None:
        """After a person's decision, accept sources that restarted. What they sent before stays void."""
        self.restarted = ""
        # Sources that sent nothing after the fence are forgotten: people come and go all day.
        self._heard = {
            name: _Source(-1, source.published_ns)
            for name, source in self._heard.items()
            if source.published_ns > self._fence_ns
        }

    def take(self, stamped: Stamped[JointCommand]) -> None:
        """Replace the newest command by one that was not refused."""
        envelope = stamped.envelope
        ranges = zip(stamped.message.position, self.limits.joints, strict=True)
        if any(not limit.lowest - EDGE <= position <= limit.highest + EDGE for position, limit in ranges):
            _count(self.clamped, envelope.source)
        self._heard[envelope.source] = _Source(envelope.seq, envelope.published_ns)
        self.newest = stamped

    def malformation(self, stamped: Stamped[JointCommand]) -> str:
        """What is wrong with the numbers of a command, whenever it was sent; "" where nothing is."""
        command, envelope = stamped.message, stamped.envelope
        # Finite first: a clamp turns NaN into full speed (max(-1, min(1, nan)) is 1.0).
        if not is_whole(command.position, len(self.limits.joints)):
            return f"{envelope.source}: position is not {len(self.limits.joints)} finite numbers"
        if beyond := self._far_beyond(command):
            _count(self.mistaken, envelope.source)
            return f"{envelope.source}: {beyond}"
        ahead, left, turning = speeds = command.base_v_mps, command.base_vy_mps, command.base_w_radps
        if not all(map(isfinite, speeds)):
            return f"{envelope.source}: base velocity is not finite numbers"
        if max(abs(ahead), abs(left)) > FASTEST_MPS or abs(turning) > FASTEST_RADPS:
            _count(self.mistaken, envelope.source)
            return (
                f"{envelope.source}: the base is asked for {ahead:g} ahead, {left:g} left and {turning:g} turning; "
                f"expected at most {FASTEST_MPS:g} m/s and {FASTEST_RADPS:g} rad/s"
            )
        if command.base_vy_mps and not self.limits.base.is_omni:
            return f"{envelope.source}: base_vy_mps is {command.base_vy_mps:g}, but this base does not drive sideways"
        return ""

    def refusal(self, stamped: Stamped[JointCommand], now_ns: int) -> str:
        """Why a command is refused for its age, its place among those of its source, or its source; "" where not."""
        envelope = stamped.envelope
        if envelope.published_ns > now_ns + FUTURE_NS:
            return f"{envelope.source}: stamped in the future"
        if envelope.published_ns <= self._fence_ns:
            return f"{envelope.source}: sent before the guard was last armed, stopped or interrupted"
        if old := self.staleness(stamped, now_ns):
            return f"{envelope.source}: {old}"
        order = self._order(envelope)
        if order == "again":
            self.restarted = envelope.source
        if why := ORDERS[order]:
            return f"{envelope.source}: {why}"
        holder = self.newest
        if holder is not None and holder.envelope.source != envelope.source and not self.staleness(holder, now_ns):
            return f"{envelope.source}: {holder.envelope.source} is in command"
        return ""

    def staleness(self, stamped: Stamped[JointCommand], now_ns: int) -> str:
        """Why a command, or what is behind it, is too old to be followed at this moment; "" where it is not."""
        settings, envelope = self.settings, stamped.envelope
        if to_s(now_ns - envelope.published_ns) > settings.lifespan_s:
            return f"no command for {settings.lifespan_s * 1e3:.0f} ms"
        for origin, oldest_s in settings.max_ages_s:
            if origin in settings.needs and origin not in envelope.origins:
                return f"there is no {origin} behind the command"
            if origin == "image" and origin in envelope.origins and self.is_picture_stuck:
                return f"the camera behind the command is stuck: {STUCK}"
            if oldest_s is not None and (why := _age_problem(envelope, origin, oldest_s, now_ns)):
                return why
        return ""

    def _order(self, envelope: Envelope) -> Order:
        """The place of a command among those of its source."""
        last = self._heard.get(envelope.source)
        if last is None:
            return "first" if len(self._heard) < MOST_SOURCES else "one too many"
        gap_ns = envelope.published_ns - last.published_ns
        if gap_ns <= 0 or (envelope.seq <= last.seq and gap_ns < RESTARTED_NS):
            return "old"
        return "again" if envelope.seq <= last.seq else "next"

    def _far_beyond(self, command: JointCommand) -> str:
        """What is wrong with a target that is no mere overshoot; "" where all are near their joints' ranges."""
        for position, limit in zip(command.position, self.limits.joints, strict=True):
            margin = RANGE_SHARE * (limit.highest - limit.lowest) + RANGE_MARGIN
            if not limit.lowest - margin <= position <= limit.highest + margin:
                return (
                    f"{limit.name} is asked to {position:g}, and its range is {limit.lowest:g} to {limit.highest:g}; "
                    "expected m and rad"
                )
        return ""


def _count(counts: dict[str, int], source: str) -> None:
    if source in counts or len(counts) < MOST_SOURCES:
        counts[source] = counts.get(source, 0) + 1


def _age_problem(envelope: Envelope, origin: str, oldest_s: float, now_ns: int) -> str:
    """Why the age of the image, plan or utterance behind a command forbids it; "" where it is allowed."""
    born_ns = envelope.origins.get(origin)
    if born_ns is None:  # no such origin behind the command
        return ""
    if born_ns == UNKNOWN_NS:
        return (
            f"the age of the {origin} behind the command is not known; read the {origin}'s port in the handler that "
            f"publishes it, or say publish(..., stems_from=...); the log of {envelope.source} names the line"
        )
    if born_ns > now_ns + FUTURE_NS:
        return f"the {origin} behind the command is stamped in the future"
    if to_s(now_ns - born_ns) > oldest_s:
        return f"the {origin} behind the command is older than {oldest_s:g} s"
    return ""
