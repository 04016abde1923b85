"""`StretchHardware`: stretch_body's robot, read and commanded chain by chain. Knows no sockets and starts no threads.

Joints are sent to positions no further ahead than they need to brake plus `LEAD_S`, wrist and head a bus period more:
whatever becomes of this process, they come to rest there. The base is given velocities, which its firmware drops after
a second without news. A hold sends a joint to where it comes to rest; it never lets go of its torque, so a held wrist
does not sag.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import math
import os
import sys
from collections.abc import Mapping
from typing import Any

from bridges.stretch.onboard.words import CHAINS, JOINTS, Goals, Hello, Limit, Reading

BUSES = {
    "end_of_arm": ("wrist_yaw", "wrist_pitch", "wrist_roll", "gripper"),
    "head": ("head_pan", "head_tilt"),
}
"""The joints of each bus of Dynamixels."""
GRIPPER_NAME = "stretch_gripper"
APERTURE_M, APERTURE_PERCENT = 0.09, 70.0
"""stretch_body's linear model of the gripper: 0 m of opening at 0 %, 0.09 m at 70 %."""
WIDEST_M = 0.12
"""Beyond this the linear model says more than the fingers open."""
SHUT_M = 0.003
"""An opening below this asks for the grip: the gripper goes on to `grip_percent`, not to where fingertips touch."""
HARDEST_PERCENT = -100.0
GRIP_PERCENT = -50.0
"""How far a gripper closes that was never calibrated; -100 is all it can."""

STEPPER_PERIOD_S = 1 / 25
"""The steppers' own rate; beyond 80 pushes a second the robot drops some."""
BUS_PERIOD_S = 1 / 15
"""Wrist and head: a status round takes 20 ms of their bus, a move 2.5 ms, at 115,200 baud."""
LEAD_S = 0.15
SMALLEST_MOVE = {"lift": 0.0005, "arm": 0.0005, "gripper": 0.001}
"""Less is not worth a message; others: 0.002 rad."""
AGAIN_S, ELSEWHERE = 0.5, {"gripper": 0.005}
"""A servo's write may be lost unheard: one that rests further away than this (others: 0.02 rad) is sent there anew."""
PRESSING_PERCENT = 10.0
"""A gripper that feels more presses on something; where that is too hard, the library opens it a little."""
STILL = {"lift": 0.002, "arm": 0.002}
"""Slower is at rest, m/s; others: 0.02 rad/s."""
STALE_S = 0.15
TOLD_S = 5.0
"""So long a watchdog that fired on a servo is an alert."""
BELIEVED_AFTER = 5
"""Rounds in which a bus tells of the same other place, before it is believed."""

FAULTS = (
    ("overheating_error", "hot"),
    ("overload_error", "overloaded"),
    ("electrical_shock_error", "electrical fault in"),
    ("input_voltage_error", "wrong voltage at"),
)


class BodyError(Exception):
    """stretch_body, or the robot, cannot be had; the text says what to do."""


class StretchHardware:
    """One Stretch. `grip_percent` is how far the gripper closes when it is to close."""

    def __init__(
        self, profile: str = "default", avoid_collisions: bool = True, grip_percent: float = GRIP_PERCENT
    ) -> None:
        self._profile = profile
        self._avoids = avoid_collisions
        self._grip_percent = grip_percent
        self._robot: Any = None
        self._limits: dict[str, Limit] = {}
        self._wheel_mps = self._wheel_mps2 = self._brake_mps2 = self._track_m = 0.0
        self._seen: dict[str, object] = {}
        self._read_ns: dict[str, int] = dict.fromkeys(CHAINS, 0)
        self._errors: dict[str, int] = {}
        self._before = Reading()
        self._now_ns = 0
        self._gripper_at = (0.0, 0)  # opening, and when
        self._sent: dict[str, float] = {}
        self._sent_ns: dict[str, int] = {}
        self._base_sent, self._base_mps2 = (0.0, 0.0), 0.0
        self._blocked: dict[str, float] = {}  # joints that met resistance, and in which direction
        self._believed: dict[str, tuple[int, tuple[float, ...]]] = {}  # by bus: when, and where its joints were
        self._doubts: dict[str, tuple[int, tuple[float, ...]]] = {}  # by bus: how often in a row, and where
        self._doubted: tuple[str, ...] = ()
        self._barks: dict[str, tuple[int, int]] = {}  # watchdog errors counted, and when one was new

    # how it is had, and let go

    def open(self) -> Hello:
        """Take hold of the robot. Raises BodyError in words."""
        robot = _started()
        self._robot = robot
        notes: list[str] = []
        try:
            if self._avoids:
                try:
                    robot.enable_collision_mgmt()
                except (Exception, SystemExit) as problem:  # noqa: BLE001  # it loads models and starts a process
                    self._avoids = False
                    notes.append(
                        f"the robot does not avoid collisions with itself: {type(problem).__name__}: {problem}"
                    )
            else:
                robot.disable_collision_mgmt()
            limits = _limits_of(robot, self._profile)
            base = robot.base.params
            hello = Hello(
                python=".".join(str(part) for part in sys.version_info[:3]),
                library=_version(),
                model=str(robot.params.get("model_name", "")),
                tool=str(getattr(robot, "eoa_name", "")),
                joints=limits,
                wheel_speed_mps=float(base["motion"][self._profile]["vel_m"]),
                wheel_acceleration_mps2=float(base["motion"][self._profile]["accel_m"]),
                track_m=float(base["wheel_separation_m"]),
                avoids_collisions=self._avoids,
                notes=notes,
            )
        except BodyError:
            self.close()
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            self.close()
            raise BodyError(
                f"the Stretch's limits cannot be read ({type(problem).__name__}: {problem}); "
                "expected what stretch_body 0.7 has"
            ) from problem
        self._limits = {limit.name: limit for limit in limits}
        self._wheel_mps, self._wheel_mps2 = hello.wheel_speed_mps, hello.wheel_acceleration_mps2
        self._track_m = hello.track_m
        self._brake_mps2 = float(base["motion"]["max"]["accel_m"])
        return hello

    def close(self) -> None:
        """Let go of the robot."""
        robot, self._robot = self._robot, None
        if robot is not None:
            robot.stop()

    # what it says

    def read(self, now_ns: int) -> Reading:
        """The numbers of its status. What is not told is as it was: a joint thought to be at zero would go there."""
        robot, before = self._robot, self._before
        self._now_ns = now_ns
        status = robot.status  # not get_status: its lock is held while a push waits for a board that left
        for chain in CHAINS:
            if self._has_measured(chain, status) and self._is_plausible(chain, status, now_ns):
                self._read_ns[chain] = now_ns
        position, velocity, effort = [], [], []
        for place, name in enumerate(JOINTS):
            part = _part(status, name)
            was = before.position[place] if before.position else 0.0
            if before.position and name in self._doubted:
                position.append(was)
                velocity.append(0.0)
            elif name == "gripper":
                position.append(self._opening(part, was))
                velocity.append(self._opening_speed(position[-1], before.velocity[place] if before.velocity else 0.0))
            else:
                position.append(_number(part["pos"], was))
                velocity.append(_number(part["vel"]))
            effort.append(_number(part["motor"]["effort_pct"] if "motor" in part else part["effort"]))
        base, pimu = status["base"], status["pimu"]
        reading = Reading(
            read_ns=dict(self._read_ns),
            position=tuple(position),
            velocity=tuple(velocity),
            effort=tuple(effort),
            pose=(_number(base["x"]), _number(base["y"]), self._heading(_number(base["theta"]))),
            twist=self._twist(base),
            wheel_effort=tuple(_number(value) for value in base.get("effort", ())),
            gripper_percent=_number(_part(status, "gripper")["pos_pct"]),
            guarded=tuple(
                name for name in ("lift", "arm") if status[name]["motor"]["in_guarded_event"] or name in self._blocked
            ),
            dangers=(("cliff",) if any(pimu.get("at_cliff", ())) else ())
            + (("tilt",) if pimu.get("over_tilt_alert") else ()),
            is_runstopped=bool(pimu["runstop_event"]),
            is_homed=_is_homed(robot),
            battery_v=_number(pimu["voltage"]),
            battery_a=_number(pimu["current"]),
            is_charging=bool(pimu.get("charger_is_charging", False)),
            alerts=self._alerts(status, now_ns),
        )
        self._before = reading
        for name in reading.guarded:
            if name not in self._blocked and name in self._sent:
                self._blocked[name] = math.copysign(1.0, self._sent[name] - self._at(name))
        return reading

    # what it does

    def send_steppers(self, goals: Goals) -> None:
        """Lift, arm and base, in one push."""
        robot = self._robot
        for name in ("lift", "arm"):
            limit, position = self._limits[name], self._at(name)
            target = self._near(name, goals.position[JOINTS.index(name)], LEAD_S)
            target = min(max(target, limit.lowest), limit.highest)
            direction = self._blocked.get(name)
            if direction is not None:
                if (target - position) * direction > -0.005:
                    target = position  # it does not push on against what it met
                else:
                    del self._blocked[name]
            if self._is_news(name, target):
                getattr(robot, name).move_to(target, limit.speed, limit.acceleration)
        velocity = wheel_clamped(goals.v_mps, goals.w_radps, self._wheel_mps, self._track_m)
        if velocity != (0.0, 0.0) or self._base_sent != (0.0, 0.0):
            change = self._fastest_wheel(velocity) - self._fastest_wheel(self._base_sent)
            if change:  # it brakes as hard as the guard counts on, whatever the profile
                self._base_mps2 = self._wheel_mps2 if change > 0 else self._brake_mps2
            robot.base.set_velocity(*velocity, self._base_mps2)
            self._base_sent = velocity
        robot.push_command()

    def send_bus(self, bus: str, goals: Goals) -> None:
        """The joints of one bus that have somewhere new to go, the gripper last."""
        for name in BUSES[bus]:
            limit = self._limits[name]
            target = goals.position[JOINTS.index(name)]
            if name != "gripper":
                target = self._near(name, target, LEAD_S + BUS_PERIOD_S)
            target = min(max(target, limit.lowest), limit.highest)
            if not self._is_news(name, target) and not self._was_lost(name, target):
                continue
            self._sent_ns[name] = self._now_ns
            if name == "gripper":
                self._robot.end_of_arm.move_to(GRIPPER_NAME, self.percent_of(target))
            else:
                getattr(self._robot, bus).move_to(name, target, limit.speed, limit.acceleration)

    def hold_steppers(self) -> None:
        """The base brakes as hard as it can, lift and arm come to rest where braking takes them."""
        robot = self._robot
        self._blocked = {}
        sent = {name: self._sent.pop(name) for name in ("lift", "arm") if name in self._sent}
        if not sent and self._base_sent == (0.0, 0.0):
            return
        robot.base.set_velocity(0.0, 0.0, self._brake_mps2)
        self._base_sent = (0.0, 0.0)
        for name, there in sent.items():
            limit = self._limits[name]
            getattr(robot, name).move_to(self._rest(name, there), limit.speed, limit.acceleration)
        robot.push_command()

    def hold_bus(self, bus: str) -> None:
        """Each joint that moves is sent to where it comes to rest, with its torque on; the gripper keeps its grip."""
        for name in BUSES[bus]:
            if name == "gripper":
                continue
            was_sent = self._sent.pop(name, None)
            if was_sent is None or (
                abs(self._speed(name)) < STILL.get(name, 0.02) and abs(was_sent - self._at(name)) < 0.05
            ):
                continue
            limit = self._limits[name]
            getattr(self._robot, bus).move_to(name, self._rest(name, was_sent), limit.speed, limit.acceleration)

    def forget(self) -> None:
        """What was sent no longer holds: somebody else moved the joints."""
        self._sent, self._blocked, self._base_sent = {}, {}, (0.0, 0.0)

    def runstop(self, is_on: bool) -> None:
        """The software side of the button on the head; to the power board alone, past what the motors wait for."""
        pimu = self._robot.pimu
        if is_on:
            pimu.runstop_event_trigger()
        else:
            pimu.runstop_event_reset()
        pimu.push_command()

    def home(self) -> str:
        """Find the joints' zeros; blocks for half a minute. What went wrong, or nothing."""
        robot = self._robot
        return self._moved_by_itself("home") or (
            ""
            if _is_homed(robot)
            else "the robot is not homed after homing; was something in its way, or its runstop pressed?"
        )

    def stow(self) -> str:
        """Fold the robot; blocks. What went wrong, or nothing."""
        return self._moved_by_itself("stow")

    def percent_of(self, opening_m: float) -> float:
        """Opening between the fingertips as stretch_body's percent; next to none is the grip."""
        if opening_m < SHUT_M:
            return max(self._grip_percent, HARDEST_PERCENT)
        return opening_m * APERTURE_PERCENT / APERTURE_M

    # what it knows

    def _moved_by_itself(self, verb: str) -> str:
        robot = self._robot
        try:
            getattr(robot, verb)()
        except (Exception, SystemExit) as problem:  # noqa: BLE001  # a device that left, in any of its words
            return f"the robot could not {verb}: {type(problem).__name__}: {problem}"
        finally:
            self.forget()
            self._take_back()
            if not self._avoids:  # both end by switching it on, whatever it was
                robot.disable_collision_mgmt()
        return ""

    def _take_back(self) -> None:
        """A servo whose homing failed goes on pushing with its homing current; it gets back to holding a place."""
        for bus in BUSES:
            for motor in getattr(self._robot, bus).motors.values() if self._robot is not None else ():
                if getattr(motor, "is_homing", False):
                    motor.is_homing = motor.bubble_up_comm_exception = False
                    motor.enable_pos()

    def _has_measured(self, chain: str, status: Mapping[str, Any]) -> bool:
        """Whether a chain has answered since the last look.

        stretch_body stamps a joint with the time of the host whether or not its board answered: a board is alive while
        the stamp of its own clock goes on, a bus while rounds come and its errors do not.
        """
        stamp: object
        if chain in ("lift", "arm"):
            stamp = status[chain]["motor"].get("timestamp")
        elif chain in ("left_wheel", "right_wheel"):
            stamp = status["base"][chain].get("timestamp")
        elif chain == "pimu":
            stamp = status["pimu"].get("timestamp")
        else:
            robot_chain = getattr(self._robot, chain)
            stamp = tuple(part.get("timestamp_pc") for part in status[chain].values())
            errors = int(robot_chain.comm_errors.status["n_rx"])
            has_failed = errors != self._errors.get(chain, errors)
            self._errors[chain] = errors
            if has_failed:
                self._seen[chain] = stamp
                return False
        if stamp == self._seen.get(chain):
            return False
        self._seen[chain] = stamp
        return True

    def _is_plausible(self, bus: str, status: Mapping[str, Any], now_ns: int) -> bool:
        """Whether the joints of a bus can have come where it says since the last time.

        An answer that comes late is taken for that to the next question: speeds of zero become positions of zero, and a
        hold would send the wrist there. Another place is believed once it was told often enough.
        """
        if bus not in BUSES:
            return True
        names = BUSES[bus]
        places = tuple(_number(_part(status, name)["pos"]) for name in names)
        since_ns, before = self._believed.get(bus, (now_ns, places))
        if not self._can_be(bus, before, places, (now_ns - since_ns) * 1e-9):
            times, doubtful = self._doubts.get(bus, (0, places))
            times = times + 1 if self._can_be(bus, doubtful, places, BUS_PERIOD_S) else 1
            self._doubts[bus] = (times, places)
            if times < BELIEVED_AFTER:
                self._doubted = (*(name for name in self._doubted if name not in names), *names)
                return False
        self._doubts.pop(bus, None)
        self._doubted = tuple(name for name in self._doubted if name not in names)
        self._believed[bus] = (now_ns, places)
        return True

    def _can_be(self, bus: str, before: tuple[float, ...], after: tuple[float, ...], seconds: float) -> bool:
        motors = getattr(self._robot, bus).motors
        for name, was, now in zip(BUSES[bus], before, after, strict=True):
            motor = motors[GRIPPER_NAME if name == "gripper" else name]
            if abs(now - was) > float(motor.params["motion"]["max"]["vel"]) * min(seconds, 0.5) + 0.2:
                return False
        return True

    def _alerts(self, status: Mapping[str, Any], now_ns: int) -> tuple[str, ...]:
        pimu = status["pimu"]
        alerts = [
            words
            for key, words in (
                ("over_tilt_alert", "over tilt"),
                ("low_voltage_alert", "low voltage"),
                ("high_current_alert", "high current"),
            )
            if pimu.get(key)
        ]
        if any(pimu.get("at_cliff", ())):
            alerts.append("cliff")
        for bus in BUSES.values():
            for name in bus:
                part = _part(status, name)
                alerts += [f"{words} {name}" for key, words in FAULTS if part.get(key)]
                counted = int(part.get("watchdog_errors") or 0)
                before, since_ns = self._barks.get(name, (counted, -WEEK_NS))
                if counted > before:
                    since_ns = now_ns
                self._barks[name] = (counted, since_ns)
                if now_ns - since_ns < TOLD_S * 1e9:
                    alerts.append(f"watchdog stopped {name}")
        return tuple(alerts)

    def _heading(self, told: float) -> float:
        """Told within a turn, handed on without jumps."""
        before = self._before.pose[2]
        return before + math.remainder(told - before, math.tau)

    def _twist(self, base: Mapping[str, Any]) -> tuple[float, float, float]:
        """By the wheels' own speeds: the library divides by the stamps of two boards, which it asks at two moments."""
        left, right = (
            float(self._robot.base.motor_rad_to_translate(_number(base[wheel].get("vel"))))
            for wheel in ("left_wheel", "right_wheel")
        )
        return (left + right) / 2, 0.0, (right - left) / self._track_m

    def _opening(self, part: Mapping[str, Any], was_m: float) -> float:
        percent = part["pos_pct"]
        if percent is None or not math.isfinite(percent):
            return was_m
        return max(0.0, float(percent) * APERTURE_M / APERTURE_PERCENT)

    def _opening_speed(self, opening_m: float, was: float) -> float:
        """The robot has a speed of the gripper's motor only."""
        at_m, since_ns = self._gripper_at
        now_ns = self._read_ns["end_of_arm"]
        if now_ns == since_ns:
            return was
        self._gripper_at = (opening_m, now_ns)
        return (opening_m - at_m) / ((now_ns - since_ns) * 1e-9) if since_ns else 0.0

    def _fastest_wheel(self, velocity: tuple[float, float]) -> float:
        return abs(velocity[0]) + abs(velocity[1]) * self._track_m / 2

    def _at(self, name: str) -> float:
        return self._before.position[JOINTS.index(name)]

    def _speed(self, name: str) -> float:
        return self._before.velocity[JOINTS.index(name)]

    def _near(self, name: str, target: float, ahead_s: float) -> float:
        """No further ahead than braking takes and the time until it can be told anew."""
        limit, at = self._limits[name], self._at(name)
        lead = limit.speed * limit.speed / (2 * limit.acceleration) + ahead_s * limit.speed
        return min(max(target, at - lead), at + lead)

    def _rest(self, name: str, sent: float) -> float:
        """Where a joint comes to rest: on from where it was when it was last measured, never past where it was sent.

        One that was not measured for long is left to where it was sent, which is near; it would go back.
        """
        limit, at, speed = self._limits[name], self._at(name), self._speed(name)
        chain = next((bus for bus, joints in BUSES.items() if name in joints), name)
        age_s = (self._now_ns - self._read_ns[chain]) * 1e-9
        if age_s > STALE_S:
            return sent
        rest = at + speed * age_s + math.copysign(speed * speed / (2 * limit.acceleration), speed)
        rest = min(max(rest, min(at, sent)), max(at, sent))
        return min(max(rest, limit.lowest), limit.highest)

    def _is_news(self, name: str, target: float) -> bool:
        sent = self._sent.get(name)
        if sent is not None and abs(target - sent) < SMALLEST_MOVE.get(name, 0.002):
            return False
        self._sent[name] = target
        return True

    def _was_lost(self, name: str, target: float) -> bool:
        if name == "gripper" and abs(self._before.effort[JOINTS.index(name)]) > PRESSING_PERCENT:
            return False
        is_late = self._now_ns - self._sent_ns.get(name, self._now_ns) > AGAIN_S * 1e9
        rests = abs(self._speed(name)) < STILL.get(name, 0.02)
        return is_late and rests and abs(target - self._at(name)) > ELSEWHERE.get(name, 0.02)


WEEK_NS = 7 * 24 * 3600 * 1_000_000_000


def wheel_clamped(v_mps: float, w_radps: float, most_mps: float, track_m: float) -> tuple[float, float]:
    """The velocity that is left once each wheel is clamped by itself, as the robot does."""
    half_turn = w_radps * track_m / 2
    left = min(max(v_mps - half_turn, -most_mps), most_mps)
    right = min(max(v_mps + half_turn, -most_mps), most_mps)
    return (left + right) / 2, (right - left) / track_m


def calibration_file() -> str:
    """Where what was measured on this very robot is kept: beside the maker's own calibration."""
    return os.path.join(os.environ.get("HELLO_FLEET_PATH", ""), os.environ.get("HELLO_FLEET_ID", ""), "polyrhythm.json")


def _started() -> Any:
    try:
        module = importlib.import_module("stretch_body.robot")
        robot = module.Robot()
    except ImportError as problem:
        raise BodyError(
            f"stretch_body cannot be imported by {sys.executable} ({problem}); docs/stretch.md, "
            "'The environment', says what to install"
        ) from problem
    except (Exception, SystemExit) as problem:  # it reads the environment and files, and may exit
        raise BodyError(
            f"stretch_body does not load: {type(problem).__name__}: {problem}; "
            "are HELLO_FLEET_PATH and HELLO_FLEET_ID set, as on the robot's own account?"
        ) from problem
    try:
        is_started = bool(robot.startup())
    except (Exception, SystemExit) as problem:
        _stop(robot)
        raise BodyError(f"the Stretch does not start: {type(problem).__name__}: {problem}") from problem
    if not is_started:
        silent = [
            name for name in ("pimu", "base", "lift", "arm", "wacc", "head", "end_of_arm") if _is_dead(robot, name)
        ]
        _stop(robot)
        reason = (
            f"these do not answer: {', '.join(silent)}; is the robot on, are its USB cables in?"
            if silent and len(silent) < 7
            else "another program holds it (stretch_free_robot_process.py ends that), "
            "or no device answers (stretch_system_check.py tells which)"
        )
        raise BodyError(f"the Stretch does not start: {reason}")
    return robot


def _stop(robot: Any) -> None:
    try:
        robot.stop()
    except (Exception, SystemExit):  # noqa: BLE001  # it was never whole
        pass


def _is_dead(robot: Any, name: str) -> bool:
    device = getattr(robot, name, None)
    names = ("left_wheel", "right_wheel") if name == "base" else ("motor",)
    parts = [getattr(device, part, device) for part in names]
    return any(not getattr(part, "hw_valid", True) for part in parts)


def _version() -> str:
    try:
        return importlib.metadata.version("hello-robot-stretch-body")
    except importlib.metadata.PackageNotFoundError:
        return ""


def _is_homed(robot: Any) -> bool:
    return bool(robot.is_homed() if hasattr(robot, "is_homed") else robot.is_calibrated())


def _part(status: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The part of a status that tells of one joint."""
    for bus, joints in BUSES.items():
        if name in joints:
            found: Mapping[str, Any] = status[bus][GRIPPER_NAME if name == "gripper" else name]
            return found
    part: Mapping[str, Any] = status[name]
    return part


def _limits_of(robot: Any, profile: str) -> list[Limit]:
    """Ranges and speeds as this very robot has them."""
    hands = set(robot.end_of_arm.motors)
    lacking = [name for name in ("wrist_yaw", "wrist_pitch", "wrist_roll", GRIPPER_NAME) if name not in hands]
    if lacking:
        model = robot.params.get("model_name", "this Stretch")
        raise BodyError(
            f"{model} with the tool {getattr(robot, 'eoa_name', '?')} has no {', '.join(lacking)}: expected a dex "
            f"wrist and a gripper; mount them and name the tool in the fleet folder's "
            "stretch_user_params.yaml, robot.tool"
        )
    return [_limit_of(robot, name, profile) for name in JOINTS]


def _limit_of(robot: Any, name: str, profile: str) -> Limit:
    if name == "gripper":
        # Its motor's speed in rad/s says little of the opening; stretch_body moves it by its own profile.
        return Limit(name, 0.0, WIDEST_M, 0.12, 1.0)
    bus = next((bus for bus, joints in BUSES.items() if name in joints), None)
    joint, suffix = (getattr(robot, bus).motors[name], "") if bus else (getattr(robot, name), "_m")
    lowest, highest = (float(value) for value in joint.soft_motion_limits["current"])
    motion = joint.params["motion"][profile]
    return Limit(name, lowest, highest, float(motion["vel" + suffix]), float(motion["accel" + suffix]))


def _number(value: Any, otherwise: float = 0.0) -> float:
    """A finite number, also where a device that just woke up leaves it out."""
    number = float(value) if value is not None else otherwise
    return number if math.isfinite(number) else otherwise


def grip_percent_of(path: str) -> float:
    """How far the gripper of this robot closes, as it was calibrated."""
    try:
        with open(path) as file:
            return float(json.load(file)["grip_percent"])
    except (OSError, ValueError, KeyError, TypeError):
        return GRIP_PERCENT
