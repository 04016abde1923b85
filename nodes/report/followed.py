"""What an interrupt led to: how soon the robot was held, at rest and moving again, or what it did instead."""

from __future__ import annotations

from dataclasses import dataclass

from nodes.report.run import Run
from runtime.message import Stamped
from runtime.msgs import GuardState, Interrupt, RobotState

STILL_BASE_MPS = 0.005
STILL_JOINT_PER_S = 0.01
WITHIN_NS = 15_000_000_000
"""A plan or an action that comes later than that is not taken for an answer to the interrupt."""


@dataclass(frozen=True, slots=True)
class StopTimes:
    """None where it did not happen, or was no stop."""

    held_ms: float | None = None
    at_rest_ms: float | None = None
    resumed_s: float | None = None


def heard_ns(run: Run, interrupt: Stamped[Interrupt]) -> int:
    """When that was said or felt that raised the interrupt."""
    return interrupt.envelope.utterance_ns or interrupt.envelope.published_ns


def stop_times(run: Run, interrupt: Stamped[Interrupt]) -> StopTimes:
    """How a stop went, from what was heard or felt; nothing for one that came while the robot was stopped already."""
    if interrupt.message.depth != "stop":
        return StopTimes()
    since_ns = heard_ns(run, interrupt)
    held = run.guard.first_after(since_ns, lambda state: _is_held_by(state, interrupt.message))
    if held is None:
        return StopTimes()
    held_ns = held.message.held_ns
    rest = run.robot.first_after(held_ns, is_still)
    resumed = run.guard.first_after(held.envelope.published_ns, lambda state: state.mode != "stopped")
    return StopTimes(
        held_ms=(held_ns - since_ns) * 1e-6,
        at_rest_ms=None if rest is None else (rest.envelope.published_ns - since_ns) * 1e-6,
        resumed_s=None if resumed is None else (resumed.envelope.published_ns - since_ns) * 1e-9,
    )


def is_still(state: RobotState) -> bool:
    """Whether neither base nor any joint moves to speak of."""
    is_turning = abs(state.base_w_radps) > STILL_JOINT_PER_S
    is_driving = abs(state.base_v_mps) > STILL_BASE_MPS
    return not is_driving and not is_turning and all(abs(speed) <= STILL_JOINT_PER_S for speed in state.velocity)


def followed(run: Run, interrupt: Stamped[Interrupt]) -> str:
    """What followed an interrupt, as a phrase."""
    depth = interrupt.message.depth
    if depth == "stop":
        return _after_stop(run, interrupt)
    since_ns = heard_ns(run, interrupt)
    parts = []
    if depth == "resume":
        moving = run.guard.first_after(since_ns, lambda state: state.mode == "moving")
        if moving is not None:
            parts.append(f"moving after {run.at_s(moving.envelope.published_ns) - run.at_s(since_ns):.2f} s")
    for word, track in (("plan", run.subtasks), ("action", run.actions)):
        answer = track.first_after(interrupt.envelope.published_ns)
        if answer is not None and answer.envelope.published_ns - since_ns <= WITHIN_NS:
            after_s = (answer.envelope.published_ns - since_ns) * 1e-9
            parts.append(f"{word} after {after_s:.2f} s: {answer.message.text}")
        if depth == "resume":
            break
    return "; ".join(parts) or "nothing"


def _after_stop(run: Run, interrupt: Stamped[Interrupt]) -> str:
    times = stop_times(run, interrupt)
    if times.held_ms is None:
        before = run.guard.last_before(interrupt.envelope.published_ns)
        return "was stopped already" if before is not None and before.message.mode == "stopped" else "nothing"
    parts = [f"held after {times.held_ms:.1f} ms"]
    if times.at_rest_ms is not None:
        parts.append(f"at rest after {times.at_rest_ms * 1e-3:.2f} s")
    if times.resumed_s is not None:
        parts.append(f"released after {times.resumed_s:.1f} s")
    return "; ".join(parts)


def _is_held_by(state: GuardState, interrupt: Interrupt) -> bool:
    return state.stop_cause == interrupt.id and state.held_ns > 0
