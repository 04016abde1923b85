"""`Monitors`: what must stop the robot at once: silence, runstop, contact, effort. A pure part of the guard."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from nodes.msgs import Cause, RobotState, RobotStatus
from nodes.robot.protocol import RobotLimits
from nodes.robot.rest import is_at_rest
from runtime.clock import to_ns, to_s

FUTURE_NS = to_ns(0.005)
"""How far ahead of now a stamp may be. A stamp further ahead is refused, because it would lengthen its own validity."""

SLEPT_NS = to_ns(1.0)
"""A guard that was not called for longer than this stops the robot: it does not know what happened meanwhile."""


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """What a launch file may set of the guard. It may lower the robot's limits and never raise them.

    Names in `_s` are in s; `max_effort_percent` is 0 to 100 percent of a joint's maximum. `needs` names the origins
    ("image", "plan", "utterance") without which a command is refused.
    """

    lifespan_s: float = 0.150
    max_state_age_s: float = 0.200  # so that the robot is held within 250 ms of its last state
    max_image_age_s: float = 1.0
    max_plan_age_s: float | None = None  # None: no limit
    max_utterance_age_s: float | None = None
    needs: frozenset[str] = frozenset()  # a command that lacks one of these origins is refused
    longest_step_s: float = 0.040  # a late tick moves no further than this much time allows
    max_effort_percent: float = 95.0  # of a joint, for longer than `effort_s`: it pushes
    effort_s: float = 0.3
    driver_silence_s: float = 1.0  # a driver that is silent for longer is dead: latched stop

    @property
    def max_ages_s(self) -> tuple[tuple[str, float | None], ...]:
        """For each origin of a command, its largest age in s; None where there is no limit."""
        return ("image", self.max_image_age_s), ("plan", self.max_plan_age_s), ("utterance", self.max_utterance_age_s)


class Monitors:
    """Holds the newest robot state and status, and tells which of their faults are new."""

    def __init__(self, limits: RobotLimits, settings: GuardSettings) -> None:
        self.limits = limits
        self.settings = settings
        self.state: RobotState | None = None
        self.is_runstopped = False
        self.is_in_service = False
        """Whether the robot moves by itself, because it homes or stows."""
        self.lost = ""
        """Why the driver does not control the robot any more; "" while it does."""
        self.has_slept = False
        """Whether the guard was not called for longer than `SLEPT_NS` before the last look."""
        self._looked_ns = 0
        self._is_garbled = False
        self._was_runstopped = False
        self._touching: frozenset[str] = frozenset()
        self._pushing_since_ns: dict[int, int] = {}
        self._pushed: frozenset[int] = frozenset()

    def update_state(self, state: RobotState) -> None:
        """Take in the measured state; one with missing or non-finite joint positions is ignored."""
        self._is_garbled = not is_whole(state.position, len(self.limits.joints))
        if not self._is_garbled:
            self.state = state

    def update_status(self, status: RobotStatus) -> None:
        """Take in the status that the robot reports."""
        self.is_runstopped = status.is_runstopped
        self.is_in_service = status.mode in ("homing", "stowing")
        self.lost = (status.why or "it is lost") if status.mode == "lost" else ""

    def is_stale(self, now_ns: int) -> bool:
        """Whether the newest state is too old to move by (`max_state_age_s`), or stamped in the future."""
        return self._is_older(self.settings.max_state_age_s, now_ns)

    def is_silent(self, now_ns: int) -> bool:
        """Whether the driver has sent no valid state for `driver_silence_s`."""
        return self._is_older(self.settings.driver_silence_s, now_ns)

    @property
    def is_still(self) -> bool:
        """Whether the robot is measured to stand still, not only commanded to."""
        return self.state is not None and is_at_rest(self.state, tuple(joint.name for joint in self.limits.joints))

    def news(self, now_ns: int, *, is_engaged: bool) -> tuple[Cause, str]:
        """Who stops the robot and why, where the newest state or status shows a new fault; ("", "") otherwise.

        A fault is reported once, when it begins. Where the guard `is_engaged`, nobody may be away: the driver, or the
        guard itself. Call this at every tick.
        """
        slept_ns, self._looked_ns = now_ns - (self._looked_ns or now_ns), now_ns
        self.has_slept = slept_ns > SLEPT_NS
        by, why = self._felt(now_ns)
        if why or not is_engaged:
            return by, why
        if self.is_silent(now_ns):
            return "driver", self._silence(now_ns)
        if self.lost:
            return "driver", f"the robot does not follow: {self.lost}"
        return ("guard", f"the guard stood still for {to_s(slept_ns):.1f} s") if self.has_slept else ("", "")

    def _felt(self, now_ns: int) -> tuple[Cause, str]:
        """What the robot itself shows: a runstop, contact, effort."""
        pressed, self._was_runstopped = self.is_runstopped and not self._was_runstopped, self.is_runstopped
        if pressed:
            return "runstop", "the robot's runstop is pressed"
        state = self.state
        if state is None:
            return "", ""
        touching = frozenset(state.contact)
        new, self._touching = sorted(touching - self._touching), touching
        return ("contact", f"contact: {', '.join(new)}") if new else self._pushes(state, now_ns)

    def _silence(self, now_ns: int) -> str:
        """What a driver that tells nothing usable tells instead."""
        if self._is_garbled:
            return f"the driver tells no posture: expected {len(self.limits.joints)} finite joint positions"
        if self.state is not None and self.state.read_ns > now_ns + FUTURE_NS:
            return f"the driver's states are stamped {to_s(self.state.read_ns - now_ns):.1f} s ahead of the run's clock"
        return f"the driver has been silent for {self.settings.driver_silence_s:g} s"

    def _is_older(self, age_s: float, now_ns: int) -> bool:
        state = self.state
        return state is None or not -FUTURE_NS <= now_ns - state.read_ns <= to_ns(age_s)

    def _pushes(self, state: RobotState, now_ns: int) -> tuple[Cause, str]:
        """The joints that begin to exceed `max_effort_percent` for `effort_s`; the gripper is meant to push."""
        most, now = self.settings.max_effort_percent, {}
        for place, (limit, effort) in enumerate(zip(self.limits.joints, state.effort, strict=False)):
            if abs(effort) >= most and limit.name != "gripper":
                now[place] = self._pushing_since_ns.get(place, now_ns)
        self._pushing_since_ns = now
        long = frozenset(place for place, since_ns in now.items() if to_s(now_ns - since_ns) > self.settings.effort_s)
        new, self._pushed = sorted(long - self._pushed), long
        names = ", ".join(self.limits.joints[place].name for place in new)
        return ("effort", f"effort above {most:g} % for {self.settings.effort_s:g} s: {names}") if new else ("", "")


def is_whole(position: tuple[float, ...], size: int) -> bool:
    """Whether a joint vector has exactly `size` numbers, all of them finite."""
    return len(position) == size and all(isfinite(value) for value in position)
