"""What is measured on one very robot in five minutes: what its gripper's motor feels, and its wheels on this floor."""

from __future__ import annotations

from pathlib import Path

import msgspec

from runtime.operating_system.whole_file import write_whole

WHEEL_EFFORT_PERCENT = 60.0
"""Of wheels that were never calibrated: stretch_body's own default for its guarded moves of the base."""
FELT_PERCENT = 12.0
"""Of a gripper that was never calibrated: below the 20 % at which stretch_body backs off, above what moving takes."""


class Calibration(msgspec.Struct, frozen=True):
    """What tells a touch from none, for one robot; percent of the motors' efforts and of the gripper's way."""

    grip_percent: float = -50.0
    """How far the gripper closes when it is to close; -100 is all it can."""
    empty: list[tuple[float, float]] = []
    """Effort of the gripper holding nothing, by where it stands, from wide to closed."""
    grasp_percent: float = FELT_PERCENT
    """So much more than empty is a thing between the fingers."""
    wheel_percent: float = WHEEL_EFFORT_PERCENT
    """More than what driving on this floor takes."""
    is_measured: bool = False

    def is_grasping(self, percent: float, effort: float) -> bool:
        """Whether a gripper that stands at `percent` of its way with this effort has something between its fingers.

        Not measured, it says no where the fingertips touch: what they press on then may be each other.
        """
        if not self.empty:
            return percent > 1.0 and abs(effort) > self.grasp_percent
        _, usual = min(self.empty, key=lambda place: abs(place[0] - percent))
        return abs(effort) - usual > self.grasp_percent


def load(path: Path) -> Calibration:
    """What was measured, or what is usual where nothing was. Raises ValueError where the file is no calibration."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Calibration)
    except OSError:
        return Calibration()
    except msgspec.MsgspecError as problem:
        raise ValueError(f"{path}: {problem}; measure again: polyrhythm bringup stretch --again calibrate") from problem


def save(path: Path, calibration: Calibration) -> None:
    write_whole(path, msgspec.json.format(msgspec.json.encode(calibration)))
