"""What the driver and the process that speaks to stretch_body say to each other, and how each knows the other.

Both ends of one pipe between two processes of one machine: MessagePack, signed by a key that the driver hands to the
process it starts, with a counter that only rises. Positions are m and rad in the order of JOINTS, the gripper's the
opening between its fingertips.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Generic, TypeVar

import msgspec

JOINTS = ("lift", "arm", "wrist_yaw", "wrist_pitch", "wrist_roll", "gripper", "head_pan", "head_tilt")
CHAINS = ("lift", "arm", "left_wheel", "right_wheel", "pimu", "end_of_arm", "head")
"""What has a stamp of its own: the boards on USB, and the two buses of Dynamixels."""


M = TypeVar("M", bound=msgspec.Struct)


class Goals(msgspec.Struct, frozen=True, array_like=True):
    """Where the joints are to go, and how fast the base."""

    position: tuple[float, ...]
    v_mps: float
    w_radps: float


class MotionOrder(msgspec.Struct, frozen=True, array_like=True):
    """What the driver wants from now on; without goals, that everything stands."""

    counter: int
    lease: int
    """Whose goals these are; a lease that has lapsed is followed by a new one, never by the same."""
    goals: Goals | None = None
    verb: str = ""  # home, stow, runstop, release, close
    verb_number: int = 0
    """A verb is done once, however often it is sent."""


class Limit(msgspec.Struct, frozen=True, array_like=True):
    """One joint of this very robot: range, speed and acceleration; m or rad."""

    name: str
    lowest: float
    highest: float
    speed: float
    acceleration: float


class Hello(msgspec.Struct, frozen=True, array_like=True):
    """The first word of the process: which robot it holds, or why it holds none."""

    problem: str = ""
    python: str = ""
    library: str = ""
    model: str = ""
    tool: str = ""
    joints: list[Limit] = []
    wheel_speed_mps: float = 0.0
    wheel_acceleration_mps2: float = 0.0
    track_m: float = 0.0
    avoids_collisions: bool = False
    notes: list[str] = []


class Told(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """What any robot says of itself; stamps are nanoseconds of the machine's monotonic clock."""

    read_ns: dict[str, int] = {}
    """When each chain last measured anything."""
    position: tuple[float, ...] = ()
    velocity: tuple[float, ...] = ()
    effort: tuple[float, ...] = ()
    pose: tuple[float, float, float] = (0.0, 0.0, 0.0)
    twist: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """To the front, to the left, turning."""
    contact: tuple[str, ...] = ()
    """Joints, or "base", that touch something; "cliff", "tilt": the base must not go on."""
    is_homed: bool = False
    is_runstopped: bool = False
    battery_v: float = 0.0
    battery_a: float = 0.0
    is_charging: bool = False
    alerts: tuple[str, ...] = ()


class Reading(Told, frozen=True, array_like=True, kw_only=True):
    """What a Stretch 3 says of itself, and what has become of the driver's orders."""

    counter: int = 0
    lease: int = 0
    """That which is live; 0: none, everything is held."""
    wheel_effort: tuple[float, ...] = ()
    gripper_percent: float = 0.0
    guarded: tuple[str, ...] = ()
    dangers: tuple[str, ...] = ()
    busy: str = ""  # homing, stowing
    verb_number: int = 0
    """The newest verb that is over."""
    verb_problem: str = ""
    order_age_ms: dict[str, float] = {}
    """By lane, how old the newest goals were when they had been written to the motors."""
    refused: int = 0
    """Messages that were not signed by the driver, or came again."""


class Seal(Generic[M]):
    """Signs messages of one side and opens those of the other: BLAKE2b with the key that both have."""

    def __init__(self, key: bytes, mine: bytes, others: bytes, kind: type[M]) -> None:
        self._key, self._mine, self._others = key, mine, others
        self._decoder = msgspec.msgpack.Decoder(kind)
        self._encoder = msgspec.msgpack.Encoder()
        self.refused = 0

    def close(self, message: msgspec.Struct) -> bytes:
        """The message with its signature before it."""
        body = self._encoder.encode(message)
        return self._signature(self._mine, body) + body

    def open(self, frame: bytes) -> M | None:
        """The message, or None where it is not the other side's, or cannot be read; such are counted."""
        signature, body = frame[:16], frame[16:]
        if not hmac.compare_digest(signature, self._signature(self._others, body)):
            self.refused += 1
            return None
        try:
            return self._decoder.decode(body)
        except msgspec.MsgspecError:
            self.refused += 1
            return None

    def _signature(self, who: bytes, body: bytes) -> bytes:
        return hashlib.blake2b(body, digest_size=16, key=self._key, person=who).digest()
