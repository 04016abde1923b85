"""What an interrupt led to: how soon the robot was held, at rest and moving again, or what it did instead."""

from __future__ import annotations

from dataclasses import dataclass

from nodes.msgs import Action, GuardState, Interrupt, Subtask
from nodes.report.run import Run, TopicMessages
from nodes.robot.rest import is_at_rest
from runtime.clock import to_s
from runtime.message import Stamped

WITHIN_NS = 15_000_000_000
"""A plan or an action that comes later than that is not taken for an answer to the interrupt."""
LATEST_REPORT_NS = 2_000_000_000
"""The guard reports at 10 Hz; a hold that it reports later than that belongs to another stop."""


@dataclass(frozen=True, slots=True)
class StopTimes:
    """From what was heard or felt to the robot held, at rest, released; None where that did not happen."""

    held_ms: float | None = None  # 0 where something else had stopped it already
    at_rest_ms: float | None = None
    resumed_s: float | None = None
    is_cause: bool = False


def heard_ns(run: Run, interrupt: Stamped[Interrupt]) -> int:
    """When that was said or felt that raised the interrupt."""
    return interrupt.envelope.begun_ns("utterance")


def stop_times(run: Run, interrupt: Stamped[Interrupt]) -> StopTimes:
    """How a stop went."""
    if interrupt.message.depth != "stop":
        return StopTimes()
    since_ns = heard_ns(run, interrupt)
    held = run.guard.first_after(interrupt.envelope.published_ns, _is_held)
    if held is None or held.envelope.published_ns - interrupt.envelope.published_ns > LATEST_REPORT_NS:
        return StopTimes()
    # A guard that felt a touch itself holds before it hears of the interrupt, and names it in its next state.
    named = run.guard.first_after(
        interrupt.envelope.published_ns,
        lambda state: _is_held(state) and state.stop_cause == interrupt.message.id,
    )
    rest = run.robot.first_after(held.message.held_ns, is_at_rest)
    resumed = run.guard.next_after(held, lambda state: not state.is_stopped)
    return StopTimes(
        held_ms=max(0, held.message.held_ns - since_ns) * 1e-6,
        at_rest_ms=None if rest is None else max(0, rest.envelope.published_ns - since_ns) * 1e-6,
        resumed_s=None if resumed is None else to_s(resumed.envelope.published_ns - since_ns),
        is_cause=named is not None and named.message.held_ns == held.message.held_ns,
    )


def followed(run: Run, interrupt: Stamped[Interrupt]) -> str:
    """What followed an interrupt, as a phrase."""
    depth = interrupt.message.depth
    if depth == "stop":
        return _after_stop(stop_times(run, interrupt))
    since_ns = heard_ns(run, interrupt)
    if depth == "resume":
        moving = run.guard.first_after(interrupt.envelope.published_ns, lambda state: state.is_moving)
        return "nothing" if moving is None else f"moving after {_seconds(since_ns, moving):.2f} s"
    parts = []
    for word, text in (("plan", _change(run.subtasks, since_ns)), ("action", _change(run.actions, since_ns))):
        if text is not None:
            parts.append(f"{word} after {_seconds(since_ns, text):.2f} s: {text.message.text}")
    return "; ".join(parts) or "nothing changed"


def _change(
    track: TopicMessages[Subtask] | TopicMessages[Action], at_ns: int
) -> Stamped[Subtask] | Stamped[Action] | None:
    """The first plan or action soon after that stamp that is another than before."""
    before = track.last_before(at_ns)
    text = "" if before is None else before.message.text
    changed = track.first_after(at_ns, lambda message: message.text != text)
    return None if changed is None or changed.envelope.published_ns - at_ns > WITHIN_NS else changed


def _seconds(since_ns: int, stamped: Stamped[GuardState] | Stamped[Subtask] | Stamped[Action]) -> float:
    return to_s(stamped.envelope.published_ns - since_ns)


def _after_stop(times: StopTimes) -> str:
    if times.held_ms is None:
        return "nothing"
    parts = [f"held after {times.held_ms:.1f} ms" if times.is_cause or times.held_ms else "was held already"]
    if times.at_rest_ms is not None:
        parts.append(f"measured still after {times.at_rest_ms * 1e-3:.2f} s")
    if times.resumed_s is not None:
        parts.append(f"released after {times.resumed_s:.1f} s")
    return "; ".join(parts)


def _is_held(state: GuardState) -> bool:
    return state.is_stopped and state.held_ns > 0
