"""`TwinRobot`: all boards and servos of a Stretch 3 in one world, with what can go wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from bridges.stretch.twin.boards import MotorBoard, PowerBoard, WristBoard
from bridges.stretch.twin.motion import Motor
from bridges.stretch.twin.servos import ServoBus, ServoTwin
from nodes.msgs import JOINTS

LIFT_RAD_PER_M = 1 / (12 * 0.005 / math.pi / 2)
"""Pinion of 12 teeth, belt pitch 5 mm: stretch_body's `robot_params_SE3`."""
ARM_RAD_PER_M = 1 / (0.0167 * 10 / 3.875 / (2 * math.pi))
WHEEL_RAD_PER_M = 3.8 / (0.1016 / 2)
BOARDS = ("pimu", "left_wheel", "right_wheel", "lift", "arm", "wacc")
BUSES = ("end_of_arm", "head")
PORTS = (*BOARDS, *BUSES)
FAR = 1e9
SERVOS = {
    # number, hard stops and first place in ticks of a homed one, model, sag in ticks per s
    "wrist_yaw": (13, -60.0, 9400.0, 7136.0, 1080, 0.0),
    "wrist_pitch": (15, 700.0, 2080.0, 1220.0, 1020, -500.0),
    "wrist_roll": (16, 120.0, 3980.0, 2048.0, 1060, 0.0),
    "stretch_gripper": (14, -40.0, 9150.0, 4000.0, 1060, 0.0),
    "head_pan": (11, -30.0, 3860.0, 1250.0, 1060, 0.0),
    "head_tilt": (12, 1750.0, 3180.0, 2180.0, 1060, 0.0),
}
HEAD = ("head_pan", "head_tilt")
GRIPPER_TOUCHING = 3279.0
_PER_RAD = 4096 / math.tau
TICKS = {
    # where a joint of JOINTS is at zero, and ticks per rad, of the gripper per m of opening; as in `robot_params_SE3`
    "wrist_yaw": ("wrist_yaw", 7136.0, -2.4 * _PER_RAD),
    "wrist_pitch": ("wrist_pitch", 1024.0, -_PER_RAD),
    "wrist_roll": ("wrist_roll", 2048.0, _PER_RAD),
    "gripper": ("stretch_gripper", GRIPPER_TOUCHING, GRIPPER_TOUCHING / 100 * 70 / 0.09),
    "head_pan": ("head_pan", 1250.0, -_PER_RAD),
    "head_tilt": ("head_tilt", 2048.0, -_PER_RAD),
}
RAD_PER_M = {"lift": LIFT_RAD_PER_M, "arm": ARM_RAD_PER_M}
ROLLING_PERCENT = 3.0
STEP_S = 0.004


class TwinRobot:
    """A Stretch 3 with a dex wrist and its gripper, homed, its lift at half its height."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self.stepped_s = now_s()
        self.motors = {
            "left_wheel": MotorBoard(Motor(-FAR, FAR, 0.0), 1, now_s),
            "right_wheel": MotorBoard(Motor(-FAR, FAR, 0.0), 2, now_s),
            "arm": MotorBoard(Motor(0.0, 0.52 * ARM_RAD_PER_M, 0.05 * ARM_RAD_PER_M), 3, now_s),
            "lift": MotorBoard(Motor(0.0, 1.10 * LIFT_RAD_PER_M, 0.45 * LIFT_RAD_PER_M), 4, now_s),
        }
        self.power = PowerBoard(list(self.motors.values()), now_s)
        self.servos = {
            name: ServoTwin(
                number,
                Motor(low, high, place, sag=sag, load_percent=4.0),
                model,
                GRIPPER_TOUCHING if name == "stretch_gripper" else None,
            )
            for name, (number, low, high, place, model, sag) in SERVOS.items()
        }
        self.buses = {
            "head": ServoBus([self.servos[name] for name in HEAD]),
            "end_of_arm": ServoBus([servo for name, servo in self.servos.items() if name not in HEAD]),
        }
        self.calls: Mapping[str, Callable[[bytes], bytes]] = {
            "pimu": self.power.call,
            "wacc": WristBoard(now_s).call,
            **{name: board.call for name, board in self.motors.items()},
        }
        self.silent: set[str] = set()
        """Ports that take what they are sent and answer nothing."""

    def step(self) -> None:
        """Let the world catch up with the clock."""
        now_s = self._now_s()
        while self.stepped_s + STEP_S <= now_s:
            self.stepped_s += STEP_S
            for board in self.motors.values():
                board.step(STEP_S)
            for servo in self.servos.values():
                servo.step(STEP_S)

    def stand_at(self, position: Sequence[float]) -> None:
        """Stand there at once, at rest; m and rad in the order of JOINTS."""
        for name, value in zip(JOINTS, position, strict=True):
            motor, zero, scale = self.axis(name)
            motor.place = zero + value * scale
            motor.stand()

    def position(self) -> tuple[float, ...]:
        """Where its joints really are; m and rad in the order of JOINTS."""
        axes = (self.axis(name) for name in JOINTS)
        return tuple((motor.place - zero) / scale for motor, zero, scale in axes)

    def velocity(self) -> tuple[float, ...]:
        """How fast its joints really are; m/s and rad/s in the order of JOINTS."""
        axes = (self.axis(name) for name in JOINTS)
        return tuple(motor.speed / scale for motor, _, scale in axes)

    def feel(self, between_m: float | None, wheels_percent: float, blocked: Mapping[str, float]) -> None:
        """What its parts meet: how wide a thing between the fingers is, how hard the wheels push, and which of lift and
        arm do not get on, with the sign of that direction."""
        _, zero, scale = TICKS["gripper"]
        self.servos["stretch_gripper"].between = None if between_m is None else zero + between_m * scale
        for name in ("left_wheel", "right_wheel"):
            self.motors[name].motor.load_percent = max(ROLLING_PERCENT, wheels_percent)
        for name in RAD_PER_M:
            motor, sign = self.motors[name].motor, blocked.get(name, 0.0)
            motor.obstacles = {} if not sign else {"above" if sign > 0 else "below": motor.place}

    def axis(self, name: str) -> tuple[Motor, float, float]:
        """A joint's motor, its place at zero, and how much of its place is a m or rad."""
        if name in RAD_PER_M:
            return self.motors[name].motor, 0.0, RAD_PER_M[name]
        servo, zero, scale = TICKS[name]
        return self.servos[servo].motor, zero, scale

    def where(self) -> dict[str, object]:
        """How it stands, as no encoder but the world knows it; m, rad and ticks."""
        lift, arm = self.motors["lift"].motor, self.motors["arm"].motor
        wheels = [self.motors[name].motor for name in ("left_wheel", "right_wheel")]
        return {
            "now_ns": round(self._now_s() * 1e9),
            "lift_m": lift.place / LIFT_RAD_PER_M,
            "lift_mps": lift.speed / LIFT_RAD_PER_M,
            "arm_m": arm.place / ARM_RAD_PER_M,
            "position": self.position(),
            "velocity": self.velocity(),
            "stepped_ns": round(self.stepped_s * 1e9),
            "wheels_m": [wheel.place / WHEEL_RAD_PER_M for wheel in wheels],
            "wheels_mps": [wheel.speed / WHEEL_RAD_PER_M for wheel in wheels],
            "ticks": {name: servo.motor.place for name, servo in self.servos.items()},
            "ticks_per_s": {name: servo.motor.speed for name, servo in self.servos.items()},
            "torque": {name: servo.motor.has_torque for name, servo in self.servos.items()},
            "bus_busy_s": {name: bus.busy_s for name, bus in self.buses.items()},
            "is_runstopped": self.power.is_runstopped,
        }

    def unhome(self) -> None:
        """Forget where its joints are, as one that was carried about without power."""
        for name in ("lift", "arm"):
            self.motors[name].is_calibrated = False
            self.motors[name].motor.offset = -self.motors[name].motor.place
        self.servos["wrist_yaw"].unhome()
        self.servos["stretch_gripper"].unhome()

    def do(self, what: str, value: object) -> None:
        """What a hand does to it, or fate. Raises ValueError for what it does not know."""
        is_on = bool(value)
        if what == "feel" and isinstance(value, Mapping):
            self.feel(**value)
        elif what == "stand_at" and isinstance(value, Sequence):
            self.stand_at(value)
        elif what == "runstop":
            self.power.press(is_on=is_on)
        elif what in ("unplug", "plug"):
            self.buses[str(value)].is_unplugged = what == "unplug"
        elif what in ("silent", "answering"):
            (self.silent.add if what == "silent" else self.silent.discard)(str(value))
        elif what == "hot":
            self.servos[str(value)].heat(75)
        elif what == "unhome":
            self.unhome()
        elif what == "lift_ceiling_m":
            self.motors["lift"].motor.obstacles["above"] = float(str(value)) * LIFT_RAD_PER_M
        elif what == "between_fingers":
            self.servos["stretch_gripper"].between = float(str(value)) if value is not None else None
        elif what == "battery_v":
            self.power.battery_v = float(str(value))
        elif what == "carpet_percent":
            for wheel in ("left_wheel", "right_wheel"):
                self.motors[wheel].motor.load_percent = float(str(value))
        elif what == "cliff":
            self.power.cliffs = 15 if is_on else 0
        elif what == "tilt_rad":
            self.power.tilt_rad = float(str(value))
        else:
            raise ValueError(f"a twin knows no {what!r}")
