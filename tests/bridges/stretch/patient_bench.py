"""A bench in real time on a busy machine: where the robot's side has held, it lets go and asks again."""

from __future__ import annotations

from bridges.stretch.following import BRAKED
from nodes.msgs import JointCommand, RobotState
from nodes.robot.conformance import PERIOD_S, Bench

MOST_HELD_S = 20.0
"""In one stretch of commands. The robot's side holds where commands come too late, and lets go when asked again."""


class PatientBench(Bench):
    """How long it held is told at the end."""

    held = 0

    def run(self, seconds: float, command: JointCommand | None = None) -> RobotState:
        """As a driver does; after a hold all the seconds that were asked for begin anew."""
        asked = left = round(seconds / PERIOD_S)
        patience = round(MOST_HELD_S / PERIOD_S)
        while left > 0:
            status = self.robot.status(self.now_ns)
            was_held = (status.mode == "ready" and status.why != "") or status.why == BRAKED
            self.held += was_held
            patience -= was_held
            assert patience > 0, f"held for {MOST_HELD_S:g} s: {status.why}"
            super().run(PERIOD_S, None if was_held else command)
            left = asked if was_held else left - 1
        return self.robot.read(self.now_ns)

    def close(self) -> None:
        super().close()
        if self.held:
            print(f"-- this machine was so busy that the robot held for {self.held * PERIOD_S:.2f} s in all")
