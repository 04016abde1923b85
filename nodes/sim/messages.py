"""What the simulator publishes besides a robot's own topics. No policy, VLM or planner listens to any of it."""

from __future__ import annotations

import numpy as np
from msgspec import field
from numpy.typing import NDArray

from runtime.message import Message


class World(Message, kind="state"):
    """The whole state of the simulation, for the processes that render it (topic `sim/world`)."""

    stepped_ns: int
    qpos: NDArray[np.float64]  # (nq,)
    mocap_pos: NDArray[np.float64]  # (nmocap, 3)
    mocap_quat: NDArray[np.float64] | None = None  # (nmocap, 4); None where a person's parts never turn


class BodyPart(Message):
    """The collaborator puts a hand or a foot somewhere, odometry frame (topic `sim/body`)."""

    part: str  # "hand" or "foot"
    x_m: float
    y_m: float
    z_m: float
    yaw_rad: float = 0.0  # where it points, or the face looks
    pitch_rad: float = 0.0  # above 0: down, as in a nod
    gesture: str = ""  # of a hand: "open" to be given something, "point", "hold:NAME" takes a thing, "drop" lets go


class ObjectTruth(Message, kind="state"):
    """Where a thing really is, odometry frame, and how it is."""

    name: str  # "blue_cup"
    label: str
    colour: str
    x_m: float
    y_m: float
    z_m: float
    is_in_bin: bool = False
    held_by: str = ""  # "robot", "person"
    width_m: float = 0.0
    height_m: float = 0.0
    place: str = ""  # on or in which it stands; "floor"; "" in the air
    fill: float = 0.0
    contents: tuple[str, ...] = ()
    is_dirty: bool = False
    is_open: bool = False
    is_emptied: bool = False  # what was in it is gone
    was_lifted: bool = False  # by the robot, ever
    owner: str = ""  # the name that stands on it


class Truth(Message, kind="state"):
    """What a person in the room sees: things, and whether the robot touches them (topic `sim/truth`)."""

    objects: tuple[ObjectTruth, ...] = ()
    touched: tuple[str, ...] = ()  # parts of the person that the robot has touched since the truth before
    is_moving: bool = False  # any joint but the head's, or the base, moves
    robot_x_m: float = 0.0
    robot_y_m: float = 0.0
    robot_heading_rad: float = 0.0
    robot_v_mps: float = 0.0  # ahead
    impulse_n_s: dict[str, float] | None = None
    """N s that the robot's touches have given to each part since the start; None where nobody measured it."""
    dirty_places: tuple[str, ...] = ()
    scenario: str = ""  # the file that says what stands there, or its name
    person: dict[str, BodyPart] = field(default_factory=dict)
    """Where the parts of the person are, by name; the hand's gesture without the thing that it takes."""


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


class ScenarioVerdict(Message):
    """How a scenario ended (topic `sim/verdict`), judged by the simulator's world."""

    is_right: bool
    wrong_deed: str = ""  # the condition that must never hold and did; "" for none
    missing: tuple[str, ...] = ()  # what should hold in the end and does not
    duration_s: float = 0.0  # of the run until then


class Obstacles(Message, kind="state"):
    """What a range finder at the base sees in the room besides the furniture on the map: x, y and radius, m."""

    furniture: tuple[tuple[float, float, float], ...] = ()
    people: tuple[tuple[float, float, float], ...] = ()  # what moves and has legs
