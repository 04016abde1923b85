"""What the simulator publishes besides a robot's own topics. No policy, VLM or planner listens to any of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from runtime.message import Message


class World(Message, kind="state"):
    """The whole state of the simulation, for the processes that render it (topic `sim/world`)."""

    stepped_ns: int
    qpos: NDArray[np.float64]  # (nq,)
    mocap_pos: NDArray[np.float64]  # (nmocap, 3)
    mocap_quat: NDArray[np.float64] | None = None  # (nmocap, 4); None where a person's parts never turn


class ObjectTruth(Message, kind="state"):
    """Where a thing really is, odometry frame."""

    name: str  # "blue_cup"
    label: str
    colour: str
    x_m: float
    y_m: float
    z_m: float
    is_in_bin: bool
    held_by: str = ""  # "robot", "person"


class Truth(Message, kind="state"):
    """What a person in the room sees: things, and whether the robot touches them (topic `sim/truth`)."""

    objects: tuple[ObjectTruth, ...]
    touched: tuple[str, ...]  # parts of the collaborator that the robot touches: "foot", "hand"
    is_moving: bool  # any joint or the base moves
    robot_x_m: float
    robot_y_m: float
    robot_heading_rad: float
    impulse_n_s: dict[str, float] | None = None
    """N s that the robot's touches have given to each part since the start; None where nobody measured it."""


class BodyPart(Message):
    """The collaborator puts a hand or a foot somewhere, odometry frame (topic `sim/body`)."""

    part: str  # "hand" or "foot"
    x_m: float
    y_m: float
    z_m: float
    yaw_rad: float = 0.0  # where it points, or the face looks
    pitch_rad: float = 0.0  # above 0: down, as in a nod
    gesture: str = ""  # of a hand: "open" to be given something, "point", "hold:NAME" takes a thing, "drop" lets go


class Interruption(Message):
    """The interruption, at the end of its (first) words; nobody on the robot's side listens to it."""

    scenario: str
    kind: str
    moment: str
    text: str  # "" in a control without words
    is_new_wording: bool
    thing: str  # name of what was picked first: "blue_cup"
    wants: str
    offset_s: float
    phase: str  # in which phase the robot really was
