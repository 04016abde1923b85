"""The robot file: a TOML table that names an MJCF or URDF and says what neither of them can.

    model   = "arm.urdf"                          # beside this file
    hand    = "tool0"                             # link or site: z out of the gripper, y along its opening
    gripper = ["finger_left", "finger_right"]     # joints whose sum is the opening

Ranges, speeds and efforts are those of the model; `[joints.NAME]` gives what it lacks, and may narrow what it has.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta, field

from nodes.robot.looks import in_package
from runtime.errors import UserError, naming
from runtime.serialization.toml_errors import Table, convert, read_toml

Positive = Annotated[float, Meta(gt=0, le=1e6, description="a number above 0")]
Number = Annotated[float, Meta(ge=-1e6, le=1e6, description="a number")]
Opening = Annotated[tuple[Number, Number], Meta(description="two openings in m, like [0.0, 0.08]")]
Vector3 = Annotated[tuple[Number, Number, Number], Meta(description="three numbers, like [0.0, 0.0, 0.5]")]

DEFAULT_RISE_S = 0.25
"""Where nobody names an acceleration, a joint takes this long to its full speed."""


class JointTable(Table, frozen=True):
    """[joints.NAME]: what the model does not say of a joint, or what is to be less than it says; m or rad, per s."""

    lowest: Number | None = None
    highest: Number | None = None
    speed: Positive | None = None
    acceleration: Positive | None = None
    effort: Positive | None = None  # N or N m
    folded: Number | None = None
    opening_m: Opening | None = None  # of a gripper that turns, or that another follows: at its ends


class BaseTable(Table, frozen=True):
    """[base]: the robot drives, as on two wheels; see `nodes.robot.protocol.BaseLimit`."""

    wheel_speed_mps: Positive
    acceleration_mps2: Positive
    track_m: Positive  # between the wheels
    joints: Annotated[tuple[str, ...], Meta(description="a list of joints")] = ()
    """Of the model: its wheels, or those by which it goes over a plane. They are no entries of the joint vectors."""


class CameraTable(Table, frozen=True):
    """[cameras.NAME]: a camera on a link, for models that have none; it looks along z, with x to the right."""

    link: Annotated[str, Meta(description="the name of a link")]
    fovy_deg: Annotated[float, Meta(gt=1, lt=170, description="1 to 170")] = 55.0
    place_m: Vector3 = (0.0, 0.0, 0.0)
    looks_at_m: Vector3 | None = None  # in the frame of the link; otherwise ahead, along z


class RobotTable(Table, frozen=True):
    """The whole file."""

    model: Annotated[str, Meta(description="an MJCF or URDF file, beside this one or as 'package:file.xml'")]
    hand: Annotated[str, Meta(description="the name of a link or a site")] = "hand"
    gripper: Annotated[tuple[str, ...], Meta(description="a list of joints")] = ()
    mount_m: Vector3 = (0.0, 0.0, 0.0)
    yaw_rad: Number = 0.0
    tip_speed_mps: Positive | None = None  # of the fastest part of its body: the guard limits the body as a whole
    floor_m: Number = 0.0  # with that: below this no part goes
    base: BaseTable | None = None
    joints: dict[str, JointTable] = field(default_factory=dict)
    cameras: dict[str, CameraTable] = field(default_factory=dict)


def path_of(name: str) -> Path:
    """The robot file of that name: a path, or "package:file.toml". Raises UserError where there is none."""
    path = in_package(name) or Path(name)
    if not path.is_file():
        raise UserError(f"{path}: there is no such robot file; expected a TOML file, as docs/new-robot.md shows it")
    return path


def model_path(path: Path, table: RobotTable) -> Path:
    """The model that a robot file names. Raises UserError where it names a package that is not installed."""
    with naming(f"{path}: model:"):
        return in_package(table.model) or path.parent / table.model


def read_robot(path: Path) -> RobotTable:
    """What stands in a robot file. Raises UserError in a sentence."""
    return convert(read_toml(path), RobotTable, where=str(path))
