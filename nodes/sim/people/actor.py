"""`Actor`: simulated people who say a scenario's own lines, each when what it waits for has come about.

It sees the simulator's truth, as people in the room would. Lines, goals and checks are parameters: no story is in here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nodes.msgs import GuardState, Utterance
from nodes.sim.messages import ObjectTruth, Truth
from nodes.sim.people.judgement import ON_TABLE_M, list_words
from runtime import Node, Publisher, QoS, Subscription, UserError, on, to_ns, to_s

EARLIER = "earlier"
"""Who says the order that the robot had before anybody of the scenario was there."""

KINDS = ("start", "then", "said", "lifted", "binned")
LIFTED_M = 0.06
"""A thing so much higher than where it stood is in the gripper."""
ARRIVAL_S = 1.0
QUIET_S = 12.0
"""Nobody speaks and nothing moves for so long: it is over."""


@dataclass(frozen=True, slots=True)
class ActorLine:
    """One line: who says it, so long after what. `then` is the line before; `said` a pattern of the robot's words."""

    kind: str
    what: str
    after_s: float
    who: str
    text: str

    @staticmethod
    def parse(line: str) -> ActorLine:
        """Of "KIND[:WHAT] | SECONDS | WHO | TEXT". Raises UserError."""
        parts = [part.strip() for part in line.split(" | ", 3)]
        kind, _, what = parts[0].partition(":")
        try:
            if len(parts) != 4 or kind not in KINDS or not parts[3]:
                raise ValueError
            re.compile(what)
            return ActorLine(kind, what.strip(), float(parts[1]), parts[2], parts[3])
        except (ValueError, re.error) as problem:
            raise UserError(
                f"actor: cue {line[:80]!r}; expected KIND[:WHAT] | SECONDS | WHO | TEXT with KIND of {', '.join(KINDS)}"
            ) from problem


class Actor(Node):
    """Says `order` at the start, as somebody said it earlier, and each of the `cues` once.

    The run is good when all that is wanted (`binned`, names of things) is in the bin and none of the things `left` is.
    It ends when it has been quiet for a while, or after `patience_s`.
    """

    provenance = "script:actor-1"
    is_ears = True  # it plays people

    said = Subscription(Utterance, "said")
    truth = Subscription(Truth, "sim/truth")
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))

    heard = Publisher(Utterance, "heard")

    def __init__(
        self,
        cues: tuple[str, ...] = (),
        order: str = "",
        binned: tuple[str, ...] = (),
        left: tuple[str, ...] = (),
        patience_s: float = 240.0,
    ) -> None:
        self.cues = [ActorLine.parse(line) for line in cues]
        self.order = order
        self.binned = tuple(binned)
        self.left = tuple(left)
        if not 0.0 < patience_s < float("inf"):
            raise UserError(f"actor: patience_s is {patience_s}; expected a positive number of seconds")
        self.patience_s = patience_s
        self.due_ns: dict[int, int] = {}  # cue -> when it is to be said
        self.spoken: set[int] = set()
        self.arrived_ns = 0
        self.lively_ns = 0  # when somebody last spoke or something moved
        self.stood_m: dict[str, float] = {}  # thing -> height at the start

    @on(said)
    def listen(self, utterance: Utterance) -> None:
        """What the robot says."""
        self.lively_ns = self.clock.now_ns()
        for number, cue in enumerate(self.cues):
            if cue.kind == "said" and re.search(cue.what, utterance.text, re.I):
                self._plan(number)

    @on(truth)
    def watch(self, truth: Truth) -> None:
        """What the robot does, and the time that goes by."""
        now_ns = self.clock.now_ns()
        if truth.is_moving:
            self.lively_ns = now_ns
        if not self._has_begun(now_ns, truth):
            return
        for number, cue in enumerate(self.cues):
            thing = next((one for one in truth.objects if one.name == cue.what), None)
            if thing is None:
                continue
            is_lifted = not thing.is_in_bin and thing.z_m > self.stood_m.get(thing.name, thing.z_m) + LIFTED_M
            if (cue.kind == "binned" and thing.is_in_bin) or (cue.kind == "lifted" and is_lifted):
                self._plan(number)
        self._speak(now_ns)
        self._conclude(now_ns, truth)

    def _has_begun(self, now_ns: int, truth: Truth) -> bool:
        """Everybody is there and the robot is ready; true once they have had a moment."""
        if not self.arrived_ns:
            if self.guard.latest() is not None:
                self.arrived_ns = self.lively_ns = now_ns
                self.stood_m = {thing.name: thing.z_m for thing in truth.objects}
            return False
        if to_s(now_ns - self.arrived_ns) < ARRIVAL_S:
            return False
        if self.order:
            self._say(EARLIER, self.order)
            self.order = ""
        for number, cue in enumerate(self.cues):
            if cue.kind == "start":
                self._plan(number)
        return True

    def _plan(self, number: int) -> None:
        if number not in self.due_ns:
            self.due_ns[number] = self.clock.now_ns() + to_ns(self.cues[number].after_s)

    def _speak(self, now_ns: int) -> None:
        for number, cue in enumerate(self.cues):
            if number in self.spoken or self.due_ns.get(number, now_ns + 1) > now_ns:
                continue
            self.spoken.add(number)
            self._say(cue.who, cue.text)
            if number + 1 < len(self.cues) and self.cues[number + 1].kind == "then":
                self._plan(number + 1)

    def _say(self, who: str, text: str) -> None:
        self.lively_ns = self.clock.now_ns()
        self.heard.publish(Utterance(speaker=who, text=text))

    def _conclude(self, now_ns: int, truth: Truth) -> None:
        is_late = to_s(now_ns - self.arrived_ns) > self.patience_s
        is_quiet = to_s(now_ns - self.lively_ns) > QUIET_S and len(self.spoken) == len(self.due_ns)
        if is_late or is_quiet:
            ok, reason = outcome(truth.objects, self.binned, self.left)
            self.finish(
                ok=ok, reason=f"not done after {self.patience_s:g} s: {reason}" if is_late and not ok else reason
            )


def outcome(things: tuple[ObjectTruth, ...], binned: tuple[str, ...], left: tuple[str, ...]) -> tuple[bool, str]:
    """Whether things are where they are wanted, and where all those are, in words."""
    inside = {thing.name for thing in things if thing.is_in_bin}
    fallen = {thing.name for thing in things if not thing.is_in_bin and thing.z_m <= ON_TABLE_M}
    ok = set(binned) <= inside and not set(left) & (inside | fallen)
    names = [*binned, *(name for name in left if name not in binned)]
    places = (
        ("in the bin", [name for name in names if name in inside]),
        ("on the floor", [name for name in names if name in fallen]),
        ("where it stood", [name for name in names if name not in inside | fallen]),
    )
    parts = [f"{list_words([name.replace('_', ' ') for name in some])} {where}" for where, some in places if some]
    return ok, "; ".join(parts) or "nothing was wanted"
