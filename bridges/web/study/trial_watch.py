"""`TrialWatch`: whether a trial counts, since the robot may move and what happens is recorded; told in its events."""

from __future__ import annotations

import tomllib
from collections.abc import Callable

from bridges.web.console.feed import Recorders, is_stopped
from bridges.web.study.session import Event, Recorder, SessionProgress
from nodes.msgs import GuardState
from runtime.clock import to_ns, to_s
from runtime.message import Stamped

RECORDS_WITHIN_NS = to_ns(3.0)
"""A recorder says twice a second what it does; so long it may take to its first word on a trial."""
GUARD_GONE_S = 3.0
"""A guard tells ten times a second how it is; who is silent for so long lets nothing move."""
GUARD_GONE = "nothing has been heard of the guard"
TRIAL_RECORDER = ":TrialRecorder"


def has_trial_recorder(launch_text: str) -> bool:
    """Whether a launch file has what records each trial."""
    try:
        nodes = tomllib.loads(launch_text).get("nodes", {})
    except tomllib.TOMLDecodeError:
        return False
    return any(str(one.get("use", "")).endswith(TRIAL_RECORDER) for one in nodes.values())


class TrialWatch:
    """Used in the server's thread. `guard` gives the guard's last word."""

    def __init__(
        self, guard: Callable[[], Stamped[GuardState] | None], recorders: Recorders, *, is_recorded: bool
    ) -> None:
        self._guard = guard
        self._recorders = recorders
        self._is_recorded = is_recorded
        self.begin(0)

    def why_not_begin(self, now_ns: int) -> str:
        """Why a trial that began now would not count, as a sentence; "" where it does."""
        recorder = self._recorders.document(now_ns)
        if self.records and recorder["mode"] not in ("waiting", "recording"):
            return f"nothing is recorded: {recorder['why']}"
        return self.why_not_end(now_ns)

    def why_not_end(self, now_ns: int) -> str:
        """Why one that ended now would not be completed. What there is of its recording is told in the data."""
        guard = self._guard()
        if guard is None:
            return ""  # a study without a robot
        if guard.age_s(now_ns) > GUARD_GONE_S:
            return f"{GUARD_GONE} for {guard.age_s(now_ns):.0f} s: see whether the robot's run is alive"
        if guard.message.is_stopped or guard.message.mode == "disarmed":
            return f"the robot is {guard.message.mode} ({guard.message.reason}): resume it first"
        return ""

    @property
    def records(self) -> bool:
        """Whether this graph records its trials."""
        return self._is_recorded or self._recorders.are_known

    def begin(self, now_ns: int) -> None:
        """A trial starts."""
        self._began_ns = now_ns
        self._is_stopped = self._is_lost = self._has_recorded = self._has_gaps = False

    def news(self, progress: SessionProgress, now_s: float, now_ns: int) -> list[Event]:
        """What has changed in the running trial since the last look; each change is told once."""
        found: list[Event] = []
        is_still, why, silent_s = self._is_still(now_ns)
        if is_still is not None and (is_still and not progress.is_paused) != self._is_stopped:
            self._is_stopped = not self._is_stopped
            text, before_s = (why, silent_s) if self._is_stopped else ("", 0.0)
            found.append(progress.robot(now_s, text, is_stopped=self._is_stopped, before_s=before_s))
        if not self.records:
            return found
        recorder = self._recorders.document(now_ns)
        if recorder["mode"] == "recording":
            if self._is_lost:
                found.append(progress.recorded(now_s, recorder["file"], missing_s=None))
            self._has_recorded, self._is_lost = True, False
        elif not self._is_lost and (self._has_recorded or now_ns - self._began_ns > RECORDS_WITHIN_NS):
            missing_s = 0.0 if self._has_recorded else round(to_s(now_ns - self._began_ns), 3)
            found.append(progress.recorded(now_s, recorder["why"], missing_s=missing_s))
            self._is_lost = self._has_gaps = True
        return found

    def _is_still(self, now_ns: int) -> tuple[bool | None, str, float]:
        """Whether the robot may not move, why, and since how many seconds before now; None: not known."""
        guard = self._guard()
        if guard is not None and guard.age_s(now_ns) > GUARD_GONE_S:
            return True, GUARD_GONE, round(guard.age_s(now_ns), 3)
        return is_stopped(guard, now_ns), "" if guard is None else guard.message.reason, 0.0

    @property
    def recorder(self) -> Recorder:
        """What there is of the trial's recording."""
        if not self.records:
            return ""
        return ("parts" if self._has_gaps else "whole") if self._has_recorded else "none"
