"""Named postures: a file of them, which operators go to while they hold a button."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from nodes.robot.protocol import RobotLimits
from runtime.errors import ParameterError, choices, naming
from runtime.serialization.toml_errors import Table, convert, read_toml

POSES = Path(__file__).with_name("poses.toml")


class NamedPose(Table, frozen=True):
    """Where some joints go; a posture of the head alone is a look."""

    name: Annotated[str, Meta(min_length=1, max_length=24)]
    joints: dict[str, float]


class _File(Table, frozen=True):
    pose: tuple[NamedPose, ...] = ()


def read_poses(path: Path, limits: RobotLimits, *, is_own: bool) -> list[dict[str, Any]]:
    """The postures of a file; of those that are shipped, the ones that this robot has the joints for.

    Raises ParameterError where a file of one's own names a joint or a value that the robot does not have.
    """
    with naming("console: poses", ParameterError):
        poses = convert(read_toml(path), _File, str(path)).pose
    ranges = {joint.name: joint for joint in limits.joints}
    found = []
    for pose in poses:
        wrong = [
            name
            for name, value in pose.joints.items()
            if name not in ranges or not ranges[name].lowest <= value <= ranges[name].highest
        ]
        if wrong and is_own:
            expected = (
                f"{ranges[wrong[0]].lowest:g} to {ranges[wrong[0]].highest:g}"
                if wrong[0] in ranges
                else f"one of {choices(ranges)}"
            )
            raise ParameterError(f"console: poses {path}: {pose.name!r}: {wrong[0]}: expected {expected}")
        if not wrong:
            found.append({"name": pose.name, "joints": pose.joints})
    return found
