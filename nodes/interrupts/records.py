"""`InterruptRecords`: publishes one record per interrupt, with the time to each of its effects."""

from __future__ import annotations

from dataclasses import dataclass, field

from nodes.msgs import Effect, GuardState, Interrupt, InterruptRecord
from runtime import RELIABLE, Fence, Node, Publisher, QoS, Subscription, every, on, to_s

BOUND_S = 3.0
"""Effects that have not come after this time, s, are reported as missing; a Stretch's base needs 1 s to stand."""
MOST_OPEN = 64

DUE: dict[str, tuple[str, ...]] = {
    "amend": ("fenced", "vlm"),
    "replan": ("fenced", "held", "planner", "policy"),
    "stop": ("fenced", "held", "at_rest", "planner", "vlm", "policy"),
    "resume": ("resumed",),
    "hold": ("held",),
}
"""The effects expected at each depth; a replan holds the robot, which need not be at rest before the next action."""

_EFFECTS = {"planner cancelled": "planner", "vlm voided": "vlm", "chunk flushed": "policy"}


@dataclass
class OpenInterrupt:
    """An interrupt whose effects are still expected; `effects` maps each one to its time in ns."""

    interrupt: Interrupt
    cause: str
    heard_ns: int
    raised_ns: int
    effects: dict[str, int] = field(default_factory=dict)


class InterruptRecords(Node):
    """Listens, measures and publishes; it decides nothing."""

    interrupts = Subscription(Interrupt, "interrupt", qos=QoS(required=False))
    fence = Subscription(Fence, "fence", qos=QoS(required=False))
    effects = Subscription(Effect, "interrupt/effect", qos=QoS(required=False))
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False, depth=16))
    record = Publisher(InterruptRecord, "interrupt/record", qos=RELIABLE)

    def __init__(self) -> None:
        self.open: dict[str, OpenInterrupt] = {}
        self.stops: dict[str, int] = {}  # the last ones, by id: when they were heard or felt
        self.early: dict[str, dict[str, int]] = {}  # effects that came before their interrupt
        self.state: GuardState | None = None

    @on(interrupts)
    def begin(self, interrupt: Interrupt) -> None:
        """Open a record for an interrupt."""
        trigger = self.context.trigger
        now_ns = self.clock.now_ns()
        raised_ns = trigger.envelope.published_ns if trigger is not None else now_ns
        heard_ns = trigger.envelope.begun_ns("utterance") if trigger is not None else now_ns
        cause = (trigger.envelope.cause or trigger.envelope.ident) if trigger is not None else ""
        if interrupt.depth == "hold" and interrupt.takes_back:
            return  # the end of one has no effect of its own
        if interrupt.depth == "stop":
            self.stops[interrupt.id] = heard_ns
            while len(self.stops) > MOST_OPEN:
                del self.stops[next(iter(self.stops))]
        if len(self.open) >= MOST_OPEN:
            self._close(next(iter(self.open)))
        if interrupt.id in self.open:
            self._close(interrupt.id)
        one = self.open[interrupt.id] = OpenInterrupt(interrupt, cause, heard_ns, raised_ns)
        one.effects.update(self.early.pop(interrupt.id, {}))
        self._look(one)
        self._close_if_complete(one)

    @on(fence)
    def fenced(self, fence: Fence) -> None:
        """Note that the guard has raised the fence."""
        self._note(fence.interrupt_id, "fenced")

    @on(effects)
    def effected(self, effect: Effect) -> None:
        """Note that a node on a seat has dropped its work."""
        self._note(effect.interrupt_id, _EFFECTS[effect.effect])

    @on(guard)
    def follow(self, state: GuardState) -> None:
        """Note from the guard's state that the robot is held, at rest or resumed."""
        self.state = state
        for one in tuple(self.open.values()):
            self._look(one)
            self._close_if_complete(one)

    @every(hz=5)
    def tick(self) -> None:
        """Close the records that have waited for `BOUND_S`."""
        now_ns = self.clock.now_ns()
        for ident, one in tuple(self.open.items()):
            if to_s(now_ns - one.raised_ns) > BOUND_S:
                self._close(ident)

    def on_stop(self) -> None:
        """Close all records."""
        for ident in tuple(self.open):
            self._close(ident)

    def _look(self, one: OpenInterrupt) -> None:
        """Note the effects that the guard's newest state shows."""
        state, depth = self.state, one.interrupt.depth
        if state is None:
            return
        is_held = state.held_ns and (state.is_stopped or state.mode in ("holding", "disarmed"))
        waits_for_plan = depth == "replan" and (is_held or state.mode == "armed") and "fenced" in one.effects
        if depth == "stop" and state.is_stopped and state.held_ns:
            one.effects.setdefault("held", max(state.held_ns, one.heard_ns))
            if state.at_rest_ns:
                one.effects.setdefault("at_rest", max(state.at_rest_ns, one.heard_ns))
        elif waits_for_plan or (depth == "hold" and is_held):
            one.effects.setdefault("held", max(state.held_ns, one.heard_ns))
        elif depth == "resume" and not state.is_stopped:
            one.effects.setdefault("resumed", self.clock.now_ns())

    def _note(self, ident: str, effect: str) -> None:
        trigger = self.context.trigger
        at_ns = trigger.envelope.published_ns if trigger is not None else self.clock.now_ns()
        one = self.open.get(ident)
        if one is not None:
            for other in tuple(self.open.values()):
                # What a later interrupt has brought about has also come about for those before it: of two stops in
                # one breath the second cancels the handler that was to tell of the first.
                if other.raised_ns <= one.raised_ns:
                    other.effects.setdefault(effect, max(at_ns, other.raised_ns))
                    self._look(other)
                    self._close_if_complete(other)
        elif ident:
            self.early.setdefault(ident, {}).setdefault(effect, at_ns)
            while len(self.early) > MOST_OPEN:
                del self.early[next(iter(self.early))]

    def _note_on(self, one: OpenInterrupt) -> str:
        """What became of a false alarm: how long it kept the robot, from the words that stopped it."""
        stopped_ns, resumed_ns = self.stops.get(one.interrupt.takes_back), one.effects.get("resumed")
        if not one.interrupt.takes_back:
            return ""
        if stopped_ns is None or resumed_ns is None:
            return "false alarm, not resumed"
        return f"false alarm, resumed after {to_s(resumed_ns - stopped_ns):.1f} s"

    def _close_if_complete(self, one: OpenInterrupt) -> None:
        if all(effect in one.effects for effect in DUE[one.interrupt.depth]):
            self._close(one.interrupt.id)

    def _close(self, ident: str) -> None:
        one = self.open.pop(ident)
        times = {f"{name}_ms": max(0, at_ns - one.heard_ns) * 1e-6 for name, at_ns in one.effects.items()}
        self.record.publish(
            InterruptRecord(
                id=ident,
                depth=one.interrupt.depth,
                by=one.interrupt.by,
                text=one.interrupt.text,
                cause=one.cause,
                heard_ns=one.heard_ns,
                takes_back=one.interrupt.takes_back,
                note=self._note_on(one),
                missing=tuple(name for name in DUE[one.interrupt.depth] if name not in one.effects),
                **times,
            )
        )
