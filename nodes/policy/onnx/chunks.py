"""`Playback`: how a policy's chunks become one smooth command. Pure values; the time is passed in.

Every chunk is a plan of timed steps from the moment that it was seen. Each is played at its age, between its steps by
interpolation, and the command is the mean of all plans that reach to now. A plan's weight is zero as it arrives, so
that the steps of the time that the model took are frozen; it rises and falls as a parabola over `blend_s`. So no
command jumps where a plan comes or goes. Where two plans in a row are far off to the same side, the world has changed:
the plans before them fade.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nodes.msgs import ActionChunk, JointCommand, JointVector
from nodes.policy.onnx.inputs import PolicyAnswer
from nodes.policy.onnx.tensors import COLUMNS
from runtime.clock import to_ns
from runtime.message import Stamped

BLEND_S = 1.2
"""How long a chunk counts by default. Longer is smoother; what a chunk says anew counts in full after half of it."""

FEW = 3
"""A chunk counts at least so many times as long as it took to come: slow answers still overlap."""

SMOOTH_S = 0.1
"""Of the bell that evens out single steps within a chunk: what is shorter is noise."""

FAINT = 1e-6
"""The weight of a chunk outside of its parabola: it is played to its end where there is no other."""

SURPRISE = np.array([0.03, 0.03, 0.15, 0.15, 0.15, 0.03, 0.15, 0.15, 0.1, 0.3])
"""How far from the mean a chunk is far off: m, m, rad, rad, rad, m, rad, rad, m/s, rad/s."""

FADE_S = 0.3
"""How long older plans take to fade."""

LEAD = (0.1, 0.1, 0.5, 0.5, 0.5, 0.1, 0.5, 0.5)
"""How far what was commanded may be ahead of what is felt, m or rad, for a chunk that is relative to both."""

SENT_FOR_S = 1.0
"""How long a command is remembered."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """One chunk on the clock: rows of eight positions, base v and w, the first for `seen_ns`."""

    rows: NDArray[np.float64]  # (steps, 10)
    step_ns: int
    seen_ns: int
    came_ns: int
    action_id: str
    far_off: NDArray[np.float64]  # (10,): 1 or -1 where it came with a surprise, and to which side
    faded_ns: int | None = None  # since when it fades

    def __post_init__(self) -> None:
        """Nobody changes a plan, so a worker need not be given a copy of it."""
        for numbers in (self.rows, self.far_off):
            numbers.setflags(write=False)

    @property
    def end_ns(self) -> int:
        """When its last step has ended, in ns."""
        return self.seen_ns + len(self.rows) * self.step_ns

    def at(self, now_ns: int) -> NDArray[np.float64]:
        """Return the row (10,) for now, between two steps; before the first and after the last step, that one."""
        place = min(max((now_ns - self.seen_ns) / self.step_ns, 0.0), len(self.rows) - 1.0)
        step = min(int(place), len(self.rows) - 2) if len(self.rows) > 1 else 0
        share = place - step
        found: NDArray[np.float64] = self.rows[step] * (1 - share)
        return found + self.rows[step + 1] * share if share else found

    def weight(self, now_ns: int, blend_s: float) -> float:
        """Return its weight among the plans of now; 0 where it says nothing about now."""
        if not self.came_ns <= now_ns < self.end_ns:
            return 0.0
        counts_ns = max(to_ns(blend_s), FEW * (self.came_ns - self.seen_ns))
        until_ns = min(self.end_ns, self.came_ns + counts_ns)
        share = (now_ns - self.came_ns) / max(until_ns - self.came_ns, 1)
        here = max(share * (1 - share), FAINT)
        if self.faded_ns is None:
            return here
        left = max(1 - (now_ns - self.faded_ns) / to_ns(FADE_S), 0.0)
        return here * left**2


@dataclass(frozen=True, slots=True, eq=False)
class Playback:
    """The plans that may still count, and what was commanded last."""

    blend_s: float = BLEND_S
    plans: tuple[Plan, ...] = ()  # oldest first
    sent: tuple[tuple[int, JointVector], ...] = ()  # when and what, oldest first

    def with_chunk(self, chunk: ActionChunk, *, seen_ns: int, came_ns: int) -> Playback:
        """Return the playback with one chunk more, and without plans for another action."""
        rows = np.column_stack([chunk.position, chunk.base_v_mps, chunk.base_w_radps])
        rows, step_ns, far_off = _even(rows, chunk.step_s), to_ns(chunk.step_s), np.zeros(COLUMNS)
        plan = Plan(rows, step_ns, seen_ns, came_ns, chunk.action_id, far_off)
        plans = tuple(one for one in self.plans if one.end_ns > came_ns and one.action_id == chunk.action_id)
        if (mean := replace(self, plans=plans)._row(came_ns)) is not None:
            off = plan.at(came_ns) - mean
            plan = replace(plan, far_off=np.sign(off) * (np.abs(off) > SURPRISE))
        agreeing = 0  # how many before it are as far off to the same side
        while agreeing < len(plans) and (plans[-1 - agreeing].far_off * plan.far_off > 0).any():
            agreeing += 1
        if agreeing:
            old, new = plans[: len(plans) - agreeing], plans[len(plans) - agreeing :]
            plans = (*(one if one.faded_ns is not None else replace(one, faded_ns=came_ns) for one in old), *new)
        return replace(self, plans=(*plans, plan))

    def flushed(self) -> Playback:
        """Return a playback without any plan or memory, as after a stop."""
        return Playback(self.blend_s)

    def command(self, now_ns: int) -> JointCommand | None:
        """Return the row (10,) to command now; None where no plan reaches to now."""
        row = self._row(now_ns)
        if row is None:
            return None
        numbers = row.tolist()
        return JointCommand(position=tuple(numbers[:8]), base_v_mps=numbers[8], base_w_radps=numbers[9])

    def with_sent(self, position: JointVector, now_ns: int) -> Playback:
        """Return the playback after a command was sent."""
        kept = tuple(one for one in self.sent if one[0] > now_ns - to_ns(SENT_FOR_S))
        return replace(self, sent=(*kept, (now_ns, position)))

    def ahead(self, from_ns: int, steps: int, step_s: float) -> NDArray[np.float64] | None:
        """Return what is planned from then on, (steps, 10), its end repeated; None where nothing is."""
        found: list[NDArray[np.float64]] = []
        for step in range(steps):
            row = self._row(from_ns + to_ns(step * step_s))
            if row is None and not found:
                return None
            found.append(found[-1] if row is None else row)
        return np.stack(found)

    def anchor(self, felt: JointVector, felt_ns: int) -> JointVector:
        """Where a chunk starts that is relative to now: what was commanded when the joints were felt.

        The felt joints lag behind their command. A chunk that started at them would give that way up again each time,
        and the robot would creep. It starts within `LEAD` of them, so that a robot that is held does not wind up.
        """
        before = [position for sent_ns, position in self.sent if sent_ns <= felt_ns]
        if not before:
            return felt
        return tuple(min(max(one, at - lead), at + lead) for one, at, lead in zip(before[-1], felt, LEAD, strict=True))

    def _row(self, now_ns: int) -> NDArray[np.float64] | None:
        total, row = 0.0, np.zeros(COLUMNS)
        for plan in self.plans:
            if weight := plan.weight(now_ns, self.blend_s):
                total += weight
                row += weight * plan.at(now_ns)
        return row / total if total else None


def as_message(answer: PolicyAnswer, step_s: float, felt_ns: int, action_id: str) -> ActionChunk:
    """Make a plan of a message's chunk, which answers what was felt then, for that action."""
    return ActionChunk(
        position=np.ascontiguousarray(answer.chunk[:, :8]),
        base_v_mps=np.ascontiguousarray(answer.chunk[:, 8]),
        base_w_radps=np.ascontiguousarray(answer.chunk[:, 9]),
        step_s=step_s,
        action_id=action_id,
        done=answer.done,
        felt_ns=felt_ns,
    )


def seen_ns(stamped: Stamped[ActionChunk]) -> int:
    """When the image behind the chunk was captured, in ns; where there is none, when the joints were felt."""
    image_ns = stamped.envelope.born_ns("image")
    return stamped.message.felt_ns if image_ns is None else image_ns


def _even(rows: NDArray[np.float64], step_s: float) -> NDArray[np.float64]:
    """Without what is shorter than `SMOOTH_S`; a straight line and both ends stay as they are."""
    reach = min(int(3 * SMOOTH_S / step_s), len(rows) - 1)
    if reach < 1:
        return rows
    bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step_s / SMOOTH_S) ** 2)
    before, after = 2 * rows[0] - rows[reach:0:-1], 2 * rows[-1] - rows[-2 : -reach - 2 : -1]
    longer = np.concatenate([before, rows, after])
    even = np.zeros_like(rows)
    for place, share in enumerate((bell / bell.sum()).tolist()):
        even += share * longer[place : place + len(rows)]
    return even
