"""What the simulated kitchen publishes besides the robot's own topics: the truth, for people and judges."""

from __future__ import annotations

from runtime.message import Message


class KitchenThing(Message, kind="state"):
    """Where a thing really is, and how it is."""

    name: str  # "red_mug"
    kind: str
    colour: str
    x_m: float
    y_m: float
    z_m: float
    width_m: float
    height_m: float
    place: str = ""  # on or in which it stands; "floor"; "" in the air
    held_by: str = ""  # "robot", "person"
    fill: float = 0.0
    contents: tuple[str, ...] = ()
    is_dirty: bool = False
    is_open: bool = False
    is_emptied: bool = False  # what was in it is gone
    was_lifted: bool = False  # by the robot, ever
    owner: str = ""  # the name that stands on it


class KitchenTruth(Message, kind="state"):
    """All of it (topic `sim/kitchen`)."""

    things: tuple[KitchenThing, ...]
    dirty_places: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()  # parts of the person that the robot has touched so far
    robot_x_m: float = 0.0
    robot_y_m: float = 0.0
    robot_heading_rad: float = 0.0
    is_moving: bool = False
    hand_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    hand_yaw_rad: float = 0.0
    hand_pitch_rad: float = 0.0
    gesture: str = ""
    face_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    face_yaw_rad: float = 0.0
    face_pitch_rad: float = 0.0
    body_m: tuple[float, float, float] = (0.0, 0.0, 0.0)


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
