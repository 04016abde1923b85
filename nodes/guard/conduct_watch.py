"""`ConductWatch`: what joints and base do against what is asked of them; a pure part of the guard."""

from __future__ import annotations

from collections.abc import Collection

from nodes.guard.base_watch import BaseWatch
from nodes.guard.lasting_faults import LASTS_S, RUNSTOP_S, CommandedMotion, Conduct, Fault
from nodes.msgs import RobotState
from nodes.robot.protocol import RobotLimits
from runtime.clock import to_s


class ConductWatch:
    """Finds the fault that must stop the robot, and the one that goes on although it was stopped."""

    def __init__(self, limits: RobotLimits, max_effort_percent: float) -> None:
        self.runstop_reason = ""  # why only the robot's own runstop can stop it; "": it need not
        self._joints = Conduct(limits, max_effort_percent)
        self._base = BaseWatch()
        self._looked_ns = 0

    def look(
        self, state: RobotState | None, asked: CommandedMotion, now_ns: int, *, is_stopped: bool, but: Collection[Fault]
    ) -> tuple[Fault, str] | None:
        """The fault for which the robot must be stopped now, and why; None where there is none, or it is stopped.

        Without a `state` all that was found is forgotten. `but` names faults that do not count at this moment.
        """
        dt_s, self._looked_ns = to_s(now_ns - (self._looked_ns or now_ns)), now_ns
        self.runstop_reason = ""
        if state is None:
            self._joints.forget()
            self._base.forget()
            return None
        faults = self._joints.check(state, asked, now_ns)
        base = self._base.check(state, asked, dt_s, is_stopped=is_stopped)
        if is_stopped:
            lasting = [why for fault, (age_s, why) in faults.items() if age_s > LASTS_S[fault] + RUNSTOP_S[fault]]
            lasting += [base[1]] if base is not None else []
            self.runstop_reason = lasting[0] if lasting and asked.joints else ""
            return None
        if base is not None:
            return base if "motion" not in faults else ("motion", faults["motion"][1])
        found = ((fault, why) for fault, (age_s, why) in faults.items() if fault not in but and age_s > LASTS_S[fault])
        return next(found, None)
