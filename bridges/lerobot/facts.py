"""`LeRobotFacts`: what LeRobot does not tell of a robot and a guard needs, in a TOML file that `[run] robot` may name.

    type = "so101_follower"          # LeRobot's name of the robot
    connecting_moves = false

    [settings]                       # of LeRobot's configuration class
    port = "/dev/ttyACM0"
    id = "left"

    [joints.shoulder_pan]            # in the order of joint vectors
    key = "shoulder_pan.pos"         # LeRobot's
    unit = "rad"                     # or "m"
    scale = 0.0174533                # ours = offset + scale * LeRobot's
    lowest = -1.9                    # rad or m; per s, per s2
    highest = 1.9
    speed = 1.0
    acceleration = 3.0

Its name ends in `.lerobot.toml`. `polyrhythm lerobot facts` writes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, field

from nodes.robot.protocol import JointLimit, RobotLimits
from runtime.errors import UserError
from runtime.serialization.toml_errors import Table, convert, read_toml

GRIPPER = "gripper"
"""What the joint of a gripper is called; 0 is closed, in m between the fingertips."""

Positive = Annotated[float, Meta(gt=0, le=1e6, description="a number above 0")]
Number = Annotated[float, Meta(ge=-1e6, le=1e6, description="a number")]
Setting = int | float | str | bool


class JointFacts(Table, frozen=True):
    """[joints.NAME]: LeRobot's key of a joint, how its number becomes rad or m, and its limits."""

    key: Annotated[str, Meta(min_length=1, description="a key of LeRobot's, like 'elbow_flex.pos'")]
    unit: Literal["rad", "m"]
    scale: Number
    lowest: Number
    highest: Number
    speed: Positive
    acceleration: Positive
    offset: Number = 0.0

    def __post_init__(self) -> None:
        if self.scale == 0.0:
            raise ValueError("scale is 0; expected rad or m for one of LeRobot's units")
        if not self.lowest < self.highest:
            raise ValueError(f"lowest {self.lowest:g} is not below highest {self.highest:g}")

    def ours(self, theirs: float) -> float:
        """In rad or m."""
        return self.offset + self.scale * theirs

    def theirs(self, ours: float) -> float:
        """As LeRobot has it."""
        return (ours - self.offset) / self.scale


class LeRobotFacts(Table, frozen=True):
    """The whole file."""

    type: Annotated[str, Meta(min_length=1, description="a type of LeRobot's, like 'so101_follower'")]
    connecting_moves: bool
    joints: dict[str, JointFacts]
    settings: dict[str, Setting] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.joints:
            raise ValueError("has no [joints.NAME]")
        keys = [joint.key for joint in self.joints.values()]
        if twice := sorted({key for key in keys if keys.count(key) > 1}):
            raise ValueError(f"two joints have the key {', '.join(twice)}")
        if GRIPPER in self.joints and self.joints[GRIPPER].unit != "m":
            raise ValueError(
                f"[joints.{GRIPPER}] is in {self.joints[GRIPPER].unit}; a gripper is told by its opening, m"
            )

    @property
    def limits(self) -> RobotLimits:
        """What a guard keeps to."""
        return RobotLimits(
            joints=tuple(
                JointLimit(name, one.lowest, one.highest, one.speed, one.acceleration)
                for name, one in self.joints.items()
            )
        )

    def ours(self, at: dict[str, float]) -> tuple[float, ...] | None:
        """A joint vector; None where a key lacks."""
        if any(one.key not in at for one in self.joints.values()):
            return None
        return tuple(one.ours(at[one.key]) for one in self.joints.values())

    def theirs(self, position: tuple[float, ...]) -> dict[str, float]:
        """A joint vector in LeRobot's keys and units."""
        return {one.key: one.theirs(value) for one, value in zip(self.joints.values(), position, strict=True)}


def read_facts(name: str) -> LeRobotFacts:
    """The facts of that file. Raises UserError in a sentence."""
    path = Path(name)
    if not path.is_file():
        raise UserError(f"{path}: there is no such file; polyrhythm lerobot facts writes it")
    return convert(read_toml(path), LeRobotFacts, where=str(path))


def limits_of_facts(name: str) -> RobotLimits:
    """What the guard keeps of the robot with that file of facts. Raises UserError."""
    return read_facts(name).limits
