"""A `stretch_body` of our own, with the behaviour that the real one documents (0.7.31), in a time that tests advance.

Lift, arm, base and pimu commands wait for `push_command`; head and wrist act at once. Joints that are not homed ignore
moves. Status is refreshed at 25 Hz (wrist and head 15 Hz) into dictionaries that go on changing, of which `get_status`
makes a shallow copy. The gripper counts in percent. Wheels stop after a second without a push; lift and arm have no
such watchdog. A runstop throws away what a motor was doing. A second `startup` is refused while the first one holds.
What a program should not do is written down in `complaints`.
"""

from __future__ import annotations

import copy
import math
import signal
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

STEP_S = 0.005
HOMING_S = 30.0
WHEEL_WATCHDOG_S = 1.0
MOST_PUSHES_HZ = 80.0
TRACK_M = 0.3153
PROFILES = ("slow", "default", "fast", "max")
STEPPERS = {
    "lift": ((0.0, 1.10), (0.05, 0.11, 0.13, 0.15), 0.30, 0.45),
    "arm": ((0.0, 0.52), (0.05, 0.14, 0.30, 0.40), 0.40, 0.05),
}
DYNAMIXELS = {
    "end_of_arm": {
        "wrist_yaw": ((-1.35, 4.50), (0.75, 2.0, 2.5, 6.0), 10.0, 0.1),
        "wrist_pitch": ((-1.571, 0.451), (1.0, 2.0, 2.0, 3.0), 10.0, -0.3),
        "wrist_roll": ((-2.911, 2.918), (1.0, 2.0, 3.0, 4.5), 12.0, 0.0),
        "stretch_gripper": ((-100.0, 178.0), (60.0, 120.0, 160.0, 400.0), 400.0, 10.0),
    },
    "head": {
        "head_pan": ((-3.88, 1.84), (1.0, 3.0, 5.0, 7.0), 14.0, 0.0),
        "head_tilt": ((-1.61, 0.34), (1.0, 3.0, 5.0, 7.0), 14.0, -0.2),
    },
}  # fmt: skip
"""Range, speeds of the four profiles, acceleration, where it is at first; gripper in percent."""


class World:
    """What all devices share: time, power and the hand that presses buttons."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.is_homed = True
        self.is_runstopped = False
        self.is_held = False  # by some program's startup
        self.is_asleep = False  # the library's threads have died
        self.is_homing = False
        self.dead: set[str] = set()  # chains that no longer measure
        self.wheel_effort = [5.0, 5.0]
        self.between_fingers_percent: float | None = None
        self.at_cliff = [False] * 4
        self.is_tilted = False
        self.avoids_collisions = False
        self.has_collision_management = True
        self.starts = True
        self.battery_v = 12.4
        self.obstacle_m: dict[str, float] = {}  # lift or arm: it cannot go above
        self.complaints: list[str] = []
        self.pushes = 0
        self.pushed_s = -math.inf
        self.during_homing: Callable[[], None] = lambda: None
        self.robots: list[Robot] = []

    def advance(self, seconds: float) -> None:
        for _ in range(round(seconds / STEP_S)):
            self.now_s += STEP_S
            for robot in self.robots:
                robot.step()

    def complain(self, text: str) -> None:
        self.complaints.append(text)


class Joint:
    """A profile generator: it moves to a position by a trapezoid, or at a velocity."""

    def __init__(self, world: World, name: str, limit: Any, speed_key: str, accel_key: str) -> None:
        (lowest, highest), speeds, acceleration, position = limit
        self.world, self.name = world, name
        self.params: dict[str, Any] = {
            "motion": {
                key: {speed_key: speed, accel_key: acceleration} for key, speed in zip(PROFILES, speeds, strict=True)
            }
        }
        self.fastest, self.acceleration = speeds[3], acceleration
        self.soft_motion_limits: dict[str, list[Any]] = {
            "collision": [None, None], "user": [None, None], "hard": [lowest, highest], "current": [lowest, highest]
        }  # fmt: skip
        self.params["motion"]["max"][speed_key] = self.fastest
        self.pos, self.vel = position, 0.0
        self.goal: tuple[float, float, float] | None = None
        self.guarded = 0
        self.status: dict[str, Any] = {}

    def clipped(self, x: float) -> float:
        lowest, highest = self.soft_motion_limits["current"]
        return float(min(max(x, lowest), highest))

    def ignores(self) -> bool:
        if self.world.is_homing:
            self.world.complain(f"{self.name} was commanded while homing")
        return self.world.is_runstopped

    def step(self) -> None:
        if self.world.is_runstopped:
            self.goal, self.vel = None, 0.0
        speed = 0.0
        if self.goal is not None:
            x, v, a = self.goal
            left = x - self.pos
            wanted = math.copysign(min(v, math.sqrt(2 * a * abs(left))), left)
            change = a * STEP_S
            speed = self.vel + min(max(wanted - self.vel, -change), change)
            if abs(left) < 1e-4 and abs(speed) < 0.02:
                self.pos, speed = x, 0.0
        obstacle = self.world.obstacle_m.get(self.name)
        after = self.pos + speed * STEP_S
        if obstacle is not None and after > obstacle and speed > 0:
            after, speed, self.goal = self.pos, 0.0, None  # the firmware's guarded event
            self.guarded += 1
            self.status.get("motor", {})["in_guarded_event"] = 1
        self.pos, self.vel = after, speed


class Prismatic(Joint):
    """Lift or arm: a stepper."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name, STEPPERS[name], "vel_m", "accel_m")
        self.queued: tuple[float, float, float] | None = None
        self.status = {"pos": 0.0, "vel": 0.0, "force": 0.0, "timestamp_pc": 0.0, "motor": {"in_guarded_event": 0}}
        self.refresh()

    def move_to(
        self,
        x_m: float,
        v_m: float | None = None,
        a_m: float | None = None,
        stiffness: float | None = None,
        contact_thresh_pos: float | None = None,
        contact_thresh_neg: float | None = None,
    ) -> None:
        if self.ignores() or not self.world.is_homed:
            return  # the real one logs a warning
        speed = min(v_m or self.params["motion"]["default"]["vel_m"], self.fastest)
        self.queued = (self.clipped(x_m), speed, min(a_m or self.acceleration, self.acceleration))

    def push(self) -> None:
        if self.queued is not None:
            self.goal, self.queued = self.queued, None
            self.status["motor"]["in_guarded_event"] = 0

    def refresh(self) -> None:
        self.status.update(pos=self.pos, vel=self.vel, timestamp_pc=self.world.now_s)
        self.status["motor"].update(
            effort_pct=80.0 if self.status["motor"]["in_guarded_event"] else 12.0,
            pos_calibrated=self.world.is_homed,
            runstop_on=self.world.is_runstopped,
            guarded_event=self.guarded,
        )
        if self.name not in self.world.dead:
            self.status["motor"]["timestamp"] = self.world.now_s


MOTOR_RAD_PER_M = 3.8 / (0.1016 / 2)


class Base:
    """Two wheels; velocities only last for a second."""

    def __init__(self, world: World) -> None:
        self.world = world
        speeds = {"slow": (0.04, 0.06), "default": (0.12, 0.12), "fast": (0.25, 0.25), "max": (0.30, 0.30)}
        self.params: dict[str, Any] = {
            "wheel_separation_m": TRACK_M,
            "wheel_diameter_m": 0.1016,
            "motion": {key: {"vel_m": speed, "accel_m": acceleration} for key, (speed, acceleration) in speeds.items()},
        }
        self.queued: tuple[float, float, float] | None = None
        self.acceleration = 0.30
        self.wheels, self.goal = [0.0, 0.0], [0.0, 0.0]
        self.pose = [0.0, 0.0, 0.0]
        self.news_s = -math.inf
        self.status: dict[str, Any] = {}
        self.refresh()

    def set_velocity(self, v_m: float, w_r: float, a: float | None = None) -> None:
        if self.world.is_homing:
            self.world.complain("the base was commanded while homing")
        fastest = max(abs(v_m - w_r * TRACK_M / 2), abs(v_m + w_r * TRACK_M / 2))
        if fastest > 0.30 + 1e-9:
            self.world.complain(f"a wheel was asked for {fastest:.2f} m/s")
        self.queued = (v_m, w_r, min(a or self.params["motion"]["default"]["accel_m"], 0.30))

    def push(self) -> None:
        if self.queued is not None:
            v_m, w_r, self.acceleration = self.queued
            self.queued = None
            self.goal = [v_m - w_r * TRACK_M / 2, v_m + w_r * TRACK_M / 2]
            self.news_s = self.world.now_s

    def step(self) -> None:
        if self.world.is_runstopped:
            self.goal = self.wheels = [0.0, 0.0]
        if self.world.now_s - self.news_s > WHEEL_WATCHDOG_S:
            self.goal = [0.0, 0.0]
        change = self.acceleration * STEP_S
        self.wheels = [
            speed + min(max(goal - speed, -change), change)
            for speed, goal in zip(self.wheels, self.goal, strict=True)
        ]  # fmt: skip
        v_m, w_r = sum(self.wheels) / 2, (self.wheels[1] - self.wheels[0]) / TRACK_M
        self.pose[0] += v_m * math.cos(self.pose[2]) * STEP_S
        self.pose[1] += v_m * math.sin(self.pose[2]) * STEP_S
        self.pose[2] += w_r * STEP_S

    def refresh(self) -> None:
        left, right = self.wheels
        x, y, theta = self.pose
        self.status.update(
            x=x, y=y, theta=theta % math.tau, x_vel=(left + right) / 2, y_vel=0.0, theta_vel=(right - left) / TRACK_M,
            effort=list(self.world.wheel_effort), timestamp_pc=self.world.now_s,
        )  # fmt: skip
        for wheel, speed_mps in zip(("left_wheel", "right_wheel"), self.wheels, strict=True):
            if wheel not in self.world.dead:
                self.status[wheel] = {"timestamp": self.world.now_s, "vel": speed_mps * MOTOR_RAD_PER_M}

    def motor_rad_to_translate(self, x_r: float) -> float:
        return x_r / MOTOR_RAD_PER_M


class Dynamixel(Joint):
    """A joint of the wrist or head; the gripper's position is in percent here."""

    def __init__(self, world: World, name: str, limit: Any) -> None:
        super().__init__(world, name, limit, "vel", "accel")
        self.is_gripper = name == "stretch_gripper"
        self.quick_stops = 0
        self.is_homing = self.is_pushing = False
        self.refresh()

    def move_to(self, x: float, v: float | None, a: float | None) -> None:
        needs_homing = not self.name.startswith("head")
        if self.ignores() or (needs_homing and not self.world.is_homed):
            return
        default = next(iter(self.params["motion"]["default"].values()))
        self.goal = (self.clipped(x), min(v or default, self.fastest), min(a or self.acceleration, self.acceleration))

    def enable_pos(self) -> None:
        self.is_pushing = False

    def quick_stop(self) -> None:
        self.quick_stops += 1
        if not self.ignores():
            self.goal = None
            self.vel = 0.0

    def refresh(self) -> None:
        stuck = self.is_gripper and self.world.between_fingers_percent is not None and abs(self.vel) < 5.0
        self.status.update(
            pos=self.pos, vel=self.vel, effort=-18.0 if stuck else -3.0, stalled=False, overheating_error=False,
            timestamp_pc=self.world.now_s,
        )  # fmt: skip
        if self.is_gripper:
            self.status.update(pos=self.pos / 19.9, vel=self.vel / 19.9, pos_pct=self.pos)


class Chain:
    """The wrist or the head; faster than 15 Hz it holds up the library's threads."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.motors = {joint: Dynamixel(world, joint, limit) for joint, limit in DYNAMIXELS[name].items()}
        self.sent_s = dict.fromkeys(self.motors, (-math.inf, -math.inf))
        self.comm_errors = types.SimpleNamespace(status={"n_rx": 0})

    def move_to(self, joint: str, x_r: float, v_r: float | None = None, a_r: float | None = None) -> None:
        before, last = self.sent_s[joint]
        if self.world.now_s - before < 0.9 / 15:  # one stop between two commands is no stream
            self.world.complain(f"{joint} was commanded faster than 15 Hz")
        self.sent_s[joint] = (last, self.world.now_s)
        self.motors[joint].move_to(x_r, v_r, a_r)


class Pimu:
    """The power board: battery, runstop, tilt and cliffs."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.queued: bool | None = None
        self.status: dict[str, Any] = {"at_cliff": [False] * 4, "bump_event_cnt": 0}
        self.refresh()

    def runstop_event_trigger(self) -> None:
        self.queued = True

    def runstop_event_reset(self) -> None:
        self.queued = False

    def push_command(self) -> None:
        if self.queued is not None:
            self.world.is_runstopped, self.queued = self.queued, None

    push = push_command

    def refresh(self) -> None:
        self.status.update(
            voltage=self.world.battery_v, current=2.1, runstop_event=self.world.is_runstopped,
            low_voltage_alert=self.world.battery_v < 10.5, over_tilt_alert=self.world.is_tilted,
            at_cliff=list(self.world.at_cliff), high_current_alert=False,
            charger_is_charging=False,
        )  # fmt: skip
        if "pimu" not in self.world.dead:
            self.status["timestamp"] = self.world.now_s


class Robot:
    """`stretch_body.robot.Robot`."""

    world: World
    eoa_name = "eoa_wrist_dw3_tool_sg3"

    def __init__(self) -> None:
        world = self.world
        self.params = {"model_name": "SE3"}
        self.lift, self.arm = Prismatic(world, "lift"), Prismatic(world, "arm")
        self.base, self.pimu = Base(world), Pimu(world)
        self.end_of_arm, self.head = Chain(world, "end_of_arm"), Chain(world, "head")
        self.steppers: tuple[Prismatic | Base | Pimu, ...] = (self.lift, self.arm, self.base, self.pimu)
        self.dynamixels = (*self.end_of_arm.motors.values(), *self.head.motors.values())
        self.status: dict[str, Any] = {name: getattr(self, name).status for name in ("lift", "arm", "base", "pimu")}
        for chain in (self.end_of_arm, self.head):
            self.status[chain.name] = {name: motor.status for name, motor in chain.motors.items()}
        self.refreshed_s = [0.0, 0.0]
        self.is_started = False

    def startup(self) -> bool:
        signal.signal(signal.SIGTERM, lambda number, frame: None)
        threading.excepthook = lambda problem: None
        if self.world.is_held or not self.world.starts:
            return False
        self.world.is_held = self.is_started = True
        self.world.robots.append(self)
        return True

    def stop(self) -> None:
        if self.is_started:
            self.is_started = self.world.is_held = False

    def is_homed(self) -> bool:
        return self.world.is_homed

    def enable_collision_mgmt(self) -> None:
        if not self.world.has_collision_management:
            raise AttributeError("no collision models for this robot")
        self.world.avoids_collisions = True

    def disable_collision_mgmt(self) -> None:
        self.world.avoids_collisions = False

    def get_status(self) -> dict[str, Any]:
        return copy.copy(self.status)

    def push_command(self) -> None:
        if self.world.now_s - self.world.pushed_s < 1 / MOST_PUSHES_HZ:
            self.world.complain("commands were pushed faster than 80 Hz")
        self.world.pushes += 1
        self.world.pushed_s = self.world.now_s
        for device in self.steppers:
            device.push()

    def home(self) -> None:
        self.world.is_homing = True
        for _ in range(round(HOMING_S / 0.1)):
            self.world.advance(0.1)
            self.world.during_homing()
            if self.world.is_runstopped:
                self.world.is_homing = False
                return
        self.world.is_homing = False
        self.world.is_homed = True
        self.world.avoids_collisions = self.world.has_collision_management  # whatever it was before

    def stow(self) -> None:
        self.world.advance(1.0)
        self.arm.move_to(0.0)
        self.push_command()
        self.world.advance(5.0)
        self.end_of_arm.move_to("wrist_yaw", 3.0)
        self.lift.move_to(0.30)
        self.push_command()
        self.world.advance(8.0)

    def step(self) -> None:
        moving: tuple[Joint | Base, ...] = (self.lift, self.arm, self.base, *self.dynamixels)
        for device in moving:
            device.step()
        if self.world.is_asleep or not self.is_started:
            return
        threads: tuple[tuple[float, tuple[Any, ...]], ...] = ((25.0, self.steppers), (15.0, self.dynamixels))
        for place, (hz, devices) in enumerate(threads):
            if self.world.now_s - self.refreshed_s[place] >= 1 / hz - 1e-9:
                self.refreshed_s[place] = self.world.now_s
                for one in devices:
                    one.refresh()
                for chain in (self.end_of_arm, self.head):
                    chain.comm_errors.status["n_rx"] += chain.name in self.world.dead


def install(patch: Any) -> World:
    """Make `import stretch_body.robot` find this one, in a world of its own."""
    world = World()
    package, module = types.ModuleType("stretch_body"), types.ModuleType("stretch_body.robot")
    module.Robot = type("Robot", (Robot,), {"world": world})  # type: ignore[attr-defined]
    package.robot = module  # type: ignore[attr-defined]
    patch.setitem(sys.modules, "stretch_body", package)
    patch.setitem(sys.modules, "stretch_body.robot", module)
    return world
