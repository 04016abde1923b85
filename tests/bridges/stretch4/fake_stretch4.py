"""A Stretch 4 without a robot: a body that moves as it is told, and a server with the maker's messages and lease.

`World` is the body and what the server does with a command. `Lease` is who may command; `tests/interop/stretch4` puts
the maker's own server class in its place. Facts are of stretch4_body 2026.10.21.2.
"""

from __future__ import annotations

import math
import pickle
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import zmq

from bridges.stretch4.link import SILENT_S, Command, Status, brake_command, read_pickle
from runtime.clock import SystemClock

STEP_S = 0.01
LEASE_S = 1.1
FIRMWARE_S = 1.0
"""A wheel that hears nothing for so long stands."""
SERVOS = ("wrist_yaw", "wrist_pitch", "wrist_roll", "stretch_gripper")
RANGES = {
    "lift": (0.0, 1.2), "arm": (0.0, 0.55), "wrist_yaw": (-1.134, 4.276), "wrist_pitch": (-1.117, 4.258),
    "wrist_roll": (-1.117, 4.258), "stretch_gripper": (-1.745, 5.236),
}  # fmt: skip
STOW = {"arm": 0.0, "lift": 0.15, "wrist_yaw": 3.14, "wrist_pitch": 0.0, "wrist_roll": 0.0, "stretch_gripper": 0.0}
ROUTINES = {"routine_robot_home": 3.0, "routine_robot_stow": 30.0}


@dataclass
class Joint:
    """A motor with a trapezoidal profile."""

    at: float
    low: float
    high: float
    goal: float = 0.0
    speed: float = 0.0
    most: float = 1.0
    push: float = 1.0
    stands_at: float | None = None
    """Something is in its way there."""
    is_homed: bool = True
    effort: float = 0.0
    sag_m: float = 0.0
    """So far below where it was sent it hangs."""
    collides: dict[str, bool] = field(default_factory=lambda: {"pos": False, "neg": False})

    def __post_init__(self) -> None:
        self.goal = self.at

    def move_to(self, goal: float, speed: float, acceleration: float) -> None:
        if (
            self.is_homed
            and not (self.collides["pos"] and goal > self.at)
            and not (self.collides["neg"] and goal < self.at)
        ):
            self.goal, self.most, self.push = min(max(goal, self.low), self.high), speed, acceleration

    def step(self, dt_s: float) -> None:
        way = self.goal - self.at
        change = self.push * dt_s
        fast = min(self.most, math.sqrt(2 * self.push * abs(way) + change * change / 4) - change / 2)
        wanted = math.copysign(max(fast, 0.0), way)
        self.speed += min(max(wanted - self.speed, -change), change)
        there = self.at + self.speed * dt_s
        if self.stands_at is not None and (self.at - self.stands_at) * (there - self.stands_at) <= 0 != self.speed:
            self.effort, self.speed = math.copysign(40.0, way), 0.0
            return
        self.effort = 0.0
        if abs(way) <= abs(self.speed) * dt_s and (there - self.at) * way >= 0:
            there, self.speed = self.goal, 0.0
        self.at = there

    def brake(self) -> None:
        self.goal, self.speed = self.at, 0.0


class World:
    """The body, its server's dispatch and its status."""

    def __init__(self) -> None:
        self.joints = {name: Joint((low + high) / 4, low, high) for name, (low, high) in RANGES.items()}
        self.joints["stretch_gripper"] = Joint(1.0, *RANGES["stretch_gripper"])
        self.base, self.asked, self.base_push = [0.0] * 3, [0.0] * 3, (0.25, 1.0)
        self.pose = [1.0, -2.0, 0.5]  # the server has run for a while
        self.is_runstopped = False
        self.state = "RUNNING"
        self.frozen: set[str] = set()
        self.pushing: set[str] = set()
        """Wheels that met something."""
        self.alerts: dict[str, object] = {}
        self.has_firmware_watchdog = True
        self.heard_s = self.now_s = 0.0
        self.routine, self.routine_id, self.routine_left_s = "routine_nop", 0, 0.0
        self.last_id: object = 0
        self.is_last_done = False
        self.fails = False
        self.stamps: dict[str, float] = {}
        self.status_id = 0
        self.extra: dict[str, object] = {}
        self.dispatched: list[Command] = []

    # what its server does

    @property
    def is_busy(self) -> bool:
        return self.routine != "routine_nop"

    def dispatch(self, commands: dict[str, Command]) -> list[object]:
        if self.state != "RUNNING":
            return []
        was_busy = self.is_busy
        for command in commands.values():
            subsystem, method, ident, args, kwargs = command
            self.dispatched = [*self.dispatched[-400:], command]
            if subsystem == "routines":
                self._routine(str(method), ident)
            elif not was_busy:
                self._obey(str(subsystem), str(method), args, kwargs)
        return []

    def _routine(self, method: str, ident: object) -> None:
        if method == "cancel":
            if self.is_busy:
                self._end(is_done=False)
        elif method in ROUTINES and not self.is_busy and ident != self.last_id:
            self.routine, self.routine_id, self.routine_left_s = method, ident, ROUTINES[method]  # type: ignore[assignment]

    def _end(self, *, is_done: bool) -> None:
        self.last_id, self.is_last_done = self.routine_id, is_done
        for joint in self.joints.values():
            joint.brake()
            if self.routine == "routine_robot_home" and is_done:
                joint.is_homed = True
        self.routine, self.routine_id = "routine_nop", 0

    def _obey(self, subsystem: str, method: str, args: Any, kwargs: Any) -> None:
        if subsystem == "power_periph":
            self.press(method == "trigger_runstop")
        elif self.is_runstopped:
            return
        elif subsystem == "omnibase":
            x, y, w, a_m, a_r = args
            self.asked, self.base_push, self.heard_s = [x, y, w], (min(a_m, 0.5), min(a_r, 4.0)), self.now_s
        elif subsystem in ("lift", "arm"):
            self.joints[subsystem].move_to(args[0], kwargs["v_m"], kwargs["a_m"])
        else:
            joint, goal, speed, acceleration = args
            if joint == "stretch_gripper":
                goal = -goal * RANGES[joint][0] / 100.0
            self.joints[joint].move_to(goal, speed, acceleration)

    def press(self, is_on: bool) -> None:
        self.is_runstopped = is_on
        if is_on:
            self.asked = [0.0] * 3
            self.base_push = (2.0, 8.0)
            for joint in self.joints.values():
                joint.brake()

    # how it moves

    def advance(self, seconds: float) -> None:
        for _ in range(round(seconds / STEP_S)):
            self.step()

    def step(self) -> None:
        self.now_s += STEP_S
        if self.has_firmware_watchdog and self.now_s - self.heard_s > FIRMWARE_S:
            self.asked = [0.0] * 3
        if self.is_busy:
            self._step_routine()
        for joint in self.joints.values():
            joint.step(STEP_S)
        for axis in range(3):
            change = self.base_push[axis // 2] * STEP_S
            self.base[axis] += min(max(self.asked[axis] - self.base[axis], -change), change)
        middle = self.pose[2] + self.base[2] * STEP_S / 2
        c, s = math.cos(middle), math.sin(middle)
        self.pose[0] += (self.base[0] * c - self.base[1] * s) * STEP_S
        self.pose[1] += (self.base[0] * s + self.base[1] * c) * STEP_S
        self.pose[2] += self.base[2] * STEP_S

    def _step_routine(self) -> None:
        if self.is_runstopped:
            self._end(is_done=False)
            return
        self.routine_left_s -= STEP_S
        if self.routine == "routine_robot_stow":
            for name, there in STOW.items():
                self.joints[name].move_to(there, 0.3, 0.5)
            if all(abs(self.joints[name].at - there) < 1e-6 for name, there in STOW.items()):
                self.routine_left_s = 0.0
        if self.routine_left_s <= 0.0:
            self._end(is_done=not self.fails)

    # what it says

    def status(self, lease: dict[str, object]) -> Status:
        """As the maker's server tells it, numbers of numpy's included."""
        self.status_id += 1
        for name in ("lift", "arm", "wheel_0", "wheel_1", "wheel_2", "power", *SERVOS):
            if name not in self.frozen:
                self.stamps[name] = 1.7e9 + self.status_id * 0.01
        prismatic = {}
        for name in ("lift", "arm"):
            joint = self.joints[name]
            prismatic[name] = {
                "timestamp_pc": 1.7e9 + self.status_id * 0.01,  # goes on whatever the board does
                "pos": joint.at - joint.sag_m, "vel": joint.speed, "force": 0.0,
                "motor": self._motor(name, joint.effort, joint.is_homed, joint.effort != 0.0),
                "in_collision_stop": dict(joint.collides), "soft_motion_limits": [joint.low, joint.high],
            }  # fmt: skip
        tip: dict[str, object] = {
            "is_homed": all(self.joints[name].is_homed for name in SERVOS),
            "joint_names": [*SERVOS],
        }
        for name in SERVOS:
            joint = self.joints[name]
            tip[name] = {
                "timestamp_pc": self.stamps[name], "pos": joint.at, "vel": np.float64(joint.speed),
                "effort": joint.effort, "pos_calibrated": joint.is_homed, "in_collision_stop": dict(joint.collides),
                "soft_motion_limits": [joint.low, joint.high] if joint.is_homed else [None, None],
                "overtemp_error": False, "overload_error": False, "pos_pct": math.degrees(joint.at),
                "gripper_conversion": {"aperture_m": np.float64(0.0386)},
                "over_current_error": False, "stall_overload": False, "comm_errors": {"rates": np.zeros(3)},
            }  # fmt: skip
        return {
            **prismatic,
            "end_of_arm": tip,
            "omnibase": {
                "x": self.pose[0], "y": self.pose[1], "theta": self.pose[2], "x_vel": np.float64(self.base[0]),
                "y_vel": self.base[1], "theta_vel": self.base[2], "effort": (0, 0, 0),
                **{f"wheel_{number}": self._motor(f"wheel_{number}", 0.0, True, False) for number in range(3)},
            },
            "power_periph": {
                "timestamp": self.stamps["power"], "voltage": np.float32(26.5), "battery_current": 2.0,
                "battery_soc": 80, "charger_is_charging": False, "runstop_event": self.is_runstopped,
                "low_soc_alert": False, "high_current_alert": False, "over_tilt_type": None, **self.alerts,
            },
            "server": {"state": self.state, "status_id": self.status_id, **lease},
            "routines": {
                "active_routine": self.routine, "active_routine_id": self.routine_id,
                "last_routine_id": self.last_id or uuid.UUID(int=7), "last_routine_successful": self.is_last_done,
            },
            "safety_layer": {"safe_motion_manager": {"safe_motion_overtilt_avoid": {"in_overtilt": False}}},
            **self.extra,
        }  # fmt: skip

    def _motor(self, name: str, effort: float, is_homed: bool, is_guarded: bool) -> dict[str, object]:
        return {
            "timestamp": self.stamps[name], "effort_pct": effort, "pos_calibrated": int(is_homed),
            "in_guarded_event": int(is_guarded or name in self.pushing), "is_drv_fault": 0,
            "runstop_on": int(self.is_runstopped),
        }  # fmt: skip


class Lease:
    """Who may command: the first, while it does at least once a second; a higher priority takes it."""

    def __init__(self) -> None:
        self.holder: object = None
        self.priority: int | None = None
        self.expiry_s = 0.0

    def take(self, message: dict[str, Any], now_s: float, *, is_busy: bool) -> bool:
        if is_busy:
            self.expiry_s = now_s + LEASE_S
        if self.priority is not None and message["priority"] > self.priority:
            self.holder = self.priority = None
        if self.holder is not None and now_s > self.expiry_s:
            self.holder = self.priority = None
        if self.holder is None:
            self.holder, self.priority = message["client_id"], message["priority"]
        elif message["client_id"] != self.holder:
            return False
        self.expiry_s = now_s + LEASE_S
        return True

    def told(self) -> dict[str, object]:
        return {
            "lease_holder": str(self.holder), "lease_holder_priority": str(self.priority), "lease_expiry": self.expiry_s
        }  # fmt: skip


class DirectLink:
    """The server in this process and in a time of its own: its messages, without its sockets."""

    client = "polyrhythm_test"

    def __init__(self, world: World) -> None:
        self.world, self.lease = world, Lease()
        self.beats = ""
        self.sent = 0
        self.problem = ""
        self.is_silent = False
        self._beaten_s, self._has_braked = 0.0, False

    def open(self) -> None:
        """Nothing to connect."""

    def keep(self) -> None:
        """What the keeper beside the driver does all the time."""
        if self.beats.endswith("c") and not self._has_braked and self.world.now_s - self._beaten_s > SILENT_S:
            self._has_braked = True
            self.hear({"client_id": self.client, "cmd_dict": brake_command(), "priority": 0, "seq": None})

    def send(self, commands: dict[str, Command], priority: int = 0) -> None:
        self.sent += 1
        self.hear({"client_id": self.client, "cmd_dict": commands, "priority": priority, "seq": self.sent})

    def hear(self, message: dict[str, Any]) -> None:
        """What anybody sends to the server."""
        message = pickle.loads(pickle.dumps(message))
        if not self.is_silent and self.lease.take(message, self.world.now_s, is_busy=self.world.is_busy):
            self.world.dispatch(message["cmd_dict"])

    def newest(self) -> Status | None:
        return None if self.is_silent else read_pickle(pickle.dumps(self.world.status(self.lease.told())))

    def beat(self, *, moves: bool) -> bool:
        self.beats = (self.beats + ("c" if moves else "r"))[-100:]
        braked, self._has_braked, self._beaten_s = self._has_braked, False, self.world.now_s
        return braked

    def ended(self) -> str:
        return self.problem

    def close(self) -> None:
        """Nothing to let go of."""


class SocketServer:
    """The server on its three sockets, in a thread: in a folder, as the maker's has them."""

    def __init__(self, folder: Path, world: World | None = None, tamper: Callable[[bytes], bytes] = bytes) -> None:
        self.folder, self.world, self.lease = folder, world or World(), Lease()
        self.tamper = tamper
        self.is_silent = False
        self._ends = threading.Event()
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="stretch 4", daemon=True)

    def __enter__(self) -> SocketServer:
        self._thread.start()
        assert self._is_up.wait(5.0)
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join(5.0)

    def _serve(self) -> None:
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        status, admin, command = (context.socket(kind) for kind in (zmq.PUB, zmq.REP, zmq.SUB))
        command.setsockopt(zmq.CONFLATE, 1)
        command.setsockopt(zmq.SUBSCRIBE, b"")
        status.setsockopt(zmq.CONFLATE, 1)
        for name, socket in (("status", status), ("admin", admin), ("command", command)):
            socket.bind(f"ipc://{self.folder}/port_{name}")
        self._is_up.set()
        clock = SystemClock()
        begun_s = clock.now_s() - self.world.now_s
        while not self._ends.is_set():
            clock.block(max(0.0, begun_s + self.world.now_s + STEP_S - clock.now_s()))
            while self.world.now_s + begun_s < clock.now_s():
                self.world.step()
            while admin.poll(0):
                admin.send(admin.recv())
            if command.poll(0):
                message = pickle.loads(command.recv())
                if self.lease.take(message, clock.now_s(), is_busy=self.world.is_busy):
                    self.world.dispatch(message["cmd_dict"])
            if not self.is_silent:
                status.send(self.tamper(pickle.dumps(self.world.status(self.lease.told()))))
        context.destroy(linger=0)
