"""`Stretch4Robot`: Hello Robot's Stretch 4 behind the `Robot` protocol, by its own server.

Written from stretch4_body's source (2026.10.21.2), tested against the maker's own server class above a simulated body,
and never yet on a robot. Go through docs/stretch.md before it is. It speaks the server's protocol itself, so that the
maker's library need not be here.

The server has a lease of its own: whoever commands keeps it for 1.1 s. Ours stands above it: this robot follows only
while the lease is ours or nobody's. It commands at priority 0, the lowest, because the maker's gamepad has 1 and homing
3: a person with the gamepad takes the robot out of a policy's hands, and never the other way round.
"""

from __future__ import annotations

import atexit
import logging
import math
from dataclasses import replace
from threading import RLock

from bridges.stretch.four_link import FOLDER, ORDER, Command, ServerLink, Stretch4Link, Unreadable, brake_command
from bridges.stretch.four_status import (
    GRIPPER,
    JOINTS,
    LIFT_AND_ARM,
    MALFORMED,
    TOOL,
    Reading,
    radians_a_metre,
    read_status,
    servo_of,
)
from nodes.robot.protocol import JointLimit, RobotError, RobotLimits
from nodes.robot.robot_from_launch import load_limits
from runtime.clock import SystemClock, to_ns, to_s
from runtime.errors import ParameterError
from runtime.msgs import JointCommand, RobotMode, RobotState, RobotStatus

LIMITS = "nodes.stretch.limits:STRETCH_4"
"""What its guard keeps; the robot's own are these, narrowed."""
SLOW = {"lift": (0.15, 0.2), "arm": (0.1, 0.1), "gripper": (0.03, 0.11)}
"""Speed and acceleration of the maker's profile `slow` where it differs from our limits; the base's: 0.1 and 0.1."""
PROFILES = ("slow", "default")
WATCHDOG_S = 0.5
"""Without a command for this long everything stands still."""
LOST_S = 1.0
"""A chain that does not measure for this long is lost, and the robot with it."""
START_S = 5.0
LEASE_S = 1.2
"""A lease of the server that nobody renews is over by then."""
TAKEN_S = 0.3
"""Commands that the server takes have given us its lease by then."""
SEEN_S = 0.2
"""A runstop that we pressed shows in the status by then."""
PRESS_S = 2.0
"""So long the runstop is pressed or released again at each turn, unless it is seen before."""
ACCEPTED_S = 1.5
LEAD_S = 0.15
"""Joints are sent no further ahead than braking takes, and what they do in this time."""
HOLD_S = 0.3
"""A hold is said again for so long; the server looks at the newest message only, and may miss one."""
NEAR = {"lift": 0.03, "arm": 0.03, "gripper": 0.15}
"""How near a command must be to where the robot stands to be followed after it was ignored; others: 0.15 rad."""
STILL = {"lift": 0.004, "arm": 0.004}
"""A joint as near to where it was sent is left to it, so that holds do not let it sink; others: 0.02 rad."""
GRASP_PERCENT = 20.0
"""Effort of a gripper that holds something: the maker's own bound of a stall. Unproven."""
PRIORITY, HOME_PRIORITY, RUNSTOP_PRIORITY = 0, 3, 4

log = logging.getLogger("bridges.stretch.four")

WHYS: dict[RobotMode, str] = {
    "runstopped": "the runstop is pressed; hold the button for two seconds to release it",
    "stowing": "it folds itself",
    "unhomed": "it is not homed; it has to be after each power-up: clear the space around it and home it",
}


class Stretch4Robot:
    """The robot whose server runs on this machine. `speed` is one of the maker's motion profiles."""

    is_hardware = True  # never driven in virtual time

    def __init__(
        self, speed: str = "default", address: str = "", folder: str = FOLDER, link: Stretch4Link | None = None
    ) -> None:
        """`folder` has the server's sockets; `address`, a loopback one, names its TCP ports in their place."""
        if speed not in PROFILES:
            raise ParameterError(f"stretch 4: speed is {speed!r}; known: {', '.join(PROFILES)}")
        self._link: Stretch4Link = link or ServerLink(address, folder)
        ceiling = load_limits(LIMITS)
        joints, base = ceiling.joints, ceiling.base
        if speed == "slow":
            joints = tuple(
                replace(joint, speed=SLOW[joint.name][0], acceleration=SLOW[joint.name][1])
                if joint.name in SLOW
                else joint
                for joint in joints
            )
            base = replace(base, wheel_speed_mps=0.1, acceleration_mps2=0.1)
        self.limits: RobotLimits = replace(ceiling, joints=joints, base=base)
        self._is_open = False
        self._reading: Reading | None = None
        self._problem = ""  # why what the server says is not read
        self._gone = ""  # why this run cannot go on with it
        self._read_ns: dict[str, int] = {}
        self._origin = (0.0, 0.0, 0.0)
        self._now_ns = self._commanded_ns = 0
        self._wanted: JointCommand | None = None
        self._sent: dict[str, float] = {}  # where each joint was sent
        self._hold: dict[str, Command] = {}
        self._hold_until_ns = self._press_until_ns = self._seen_until_ns = 0
        self._button = ""
        self._asked_ns: int | None = None  # since when commands are sent without the server's lease
        self._others_ns = 0  # until when somebody else's lease is live
        self._other = ""
        self._verb, self._verb_id, self._has_begun, self._verbs = "", "", False, 0
        self._failed = ""
        self._lock = RLock()  # the driver homes in a thread of its own
        self._must_rest = False  # commands were ignored: none is followed before a pause, or one that fits the posture

    def start(self, now_ns: int) -> None:
        """Connect to the server. Raises RobotError where it cannot be had, is not trusted, or tells of no Stretch 4."""
        self._now_ns = self._commanded_ns = now_ns
        self._link.open()
        self._is_open = True
        atexit.register(self.close)
        try:
            for _ in range(round(START_S / 0.01)):
                self._exchange()
                if self._reading is not None and len(self._read_ns) == len(self._reading.stamps):
                    break
                SystemClock().block(0.01)
            reading = self._reading
            if reading is None:
                raise RobotError(self._problem or "the robot's server does not tell of the robot")
            if silent := sorted(set(reading.stamps) - set(self._read_ns)):
                raise RobotError(f"{' and '.join(silent)} of the robot did not measure within {START_S:g} s")
            self._origin = reading.pose
            self.limits = replace(self.limits, joints=tuple(_narrowed(joint, reading) for joint in self.limits.joints))
        except BaseException:
            self.close()
            raise

    def read(self, now_ns: int) -> RobotState:
        """Joint state, odometry and contact; as old as its oldest part."""
        self._now_ns = max(now_ns, self._now_ns)
        reading = self._known()
        x0, y0, heading0 = self._origin
        x, y, heading = reading.pose
        c, s = math.cos(heading0), math.sin(heading0)
        return RobotState(
            read_ns=self._measured_ns,
            position=reading.position,
            velocity=reading.velocity,
            effort=reading.effort,
            base_x_m=c * (x - x0) + s * (y - y0),
            base_y_m=c * (y - y0) - s * (x - x0),
            base_heading_rad=heading - heading0,
            base_v_mps=reading.twist[0],
            base_w_radps=reading.twist[2],
            contact=reading.touching,
            is_grasping=self._is_grasping(reading),
            base_vy_mps=reading.twist[1],
        )

    def status(self, now_ns: int) -> RobotStatus:
        """Mode, homing, runstop, battery and alerts."""
        self._now_ns = max(now_ns, self._now_ns)
        reading, why = self._known(), self._why_lost()
        mode: RobotMode = "lost" if why else self._mode
        why = why or WHYS.get(mode, "")
        if mode == "homing":
            why = f"its server runs {reading.routine}"
        if mode == "ready" and self._must_rest:
            why = (
                "a command from before is still being sent, far from where the robot stands: let go of it, or arm again"
            )
        return RobotStatus(
            read_ns=self._measured_ns,
            mode=mode,
            why=why,
            is_homed=reading.is_homed,
            is_runstopped=reading.is_runstopped,
            battery_v=reading.battery_v,
            battery_a=reading.battery_a,
            is_charging=reading.is_charging,
            alerts=(*reading.alerts, *([f"{self._failed} failed"] if self._failed else [])),
        )

    def command(self, command: JointCommand) -> None:
        """Take joint targets and base velocity. Raises ValueError where they are not six finite positions."""
        values = (*command.position, command.base_v_mps, command.base_w_radps, command.base_vy_mps)
        if len(command.position) != len(JOINTS) or not all(math.isfinite(value) for value in values):
            raise ValueError(f"joint command {command} is refused; expected {len(JOINTS)} finite positions")
        if not self._is_open or self._mode != "ready":
            self._must_rest = True
            return
        if self._must_rest and not self._fits(command):
            return
        self._must_rest, self._hold = False, {}
        self._wanted, self._commanded_ns = command, self._now_ns
        self._link.send(self._followed(command, self._known()), PRIORITY)
        if self._asked_ns is None and self._known().holder != self._link.client:
            self._asked_ns = self._now_ns

    def advance(self, now_ns: int) -> None:
        """Hear what the robot says, say again what must not be missed, and stop where commands end."""
        self._now_ns = now_ns
        if not self._is_open:
            return
        self._exchange()
        if self._wanted is None:
            return
        if self._mode != "ready":
            self._must_rest, self._wanted = True, None
        elif to_s(now_ns - self._commanded_ns) > WATCHDOG_S:
            log.warning("no command for %g s: stopping", WATCHDOG_S)
            self.stop()

    def stop(self) -> None:
        """Base velocity zero, joints held; the gripper keeps its grip. Homing and stowing end by the runstop only."""
        if not self._is_open or self._reading is None or self._reading.routine != "routine_nop":
            return
        self._must_rest = self._must_rest and self._mode != "ready"
        if self._wanted is None:
            return
        self._wanted = None
        self._hold, self._hold_until_ns = self._held(self._reading), self._now_ns + to_ns(HOLD_S)
        self._exchange()

    def home(self) -> None:
        """Find the joints' zeros; begins it. Raises RobotError where that is refused."""
        self._occupy("home", HOME_PRIORITY)

    def stow(self) -> None:
        """Fold the robot; begins it. Raises RobotError where that is refused."""
        if self._is_open and not self._known().is_homed:
            raise RobotError("the robot does not stow before it is homed; home it first")
        self._occupy("stow", PRIORITY)

    def runstop(self, is_on: bool) -> None:
        """The software side of the button; it ends homing and stowing, whoever has begun them."""
        if not self._is_open:
            raise RobotError("the robot is not started")
        self._wanted, self._hold = None, {}
        self._button = "trigger_runstop" if is_on else "clear_runstop"
        self._press_until_ns = self._now_ns + to_ns(PRESS_S)
        self._seen_until_ns = self._now_ns + to_ns(SEEN_S) if is_on else 0
        self._exchange()

    def close(self) -> None:
        """Stop and let go of the server."""
        if not self._is_open:
            return
        atexit.unregister(self.close)
        self.stop()
        if self._hold:
            for _ in range(round(0.1 / 0.02)):
                self._say(self._hold)
                SystemClock().block(0.02)
        self._is_open = False
        self._link.close()

    # what it knows

    def _known(self) -> Reading:
        if self._reading is None:
            raise RobotError("a Stretch 4 tells of itself once it is started")
        return self._reading

    @property
    def _measured_ns(self) -> int:
        return min(self._read_ns.values(), default=0)

    @property
    def _mode(self) -> RobotMode:
        reading = self._known()
        if self._why_lost():
            return "lost"
        if reading.is_runstopped or self._now_ns < self._seen_until_ns:
            return "runstopped"
        if reading.routine != "routine_nop" or self._verb:
            return "stowing" if "stow" in (reading.routine + self._verb) else "homing"
        return "ready" if reading.is_homed else "unhomed"

    def _why_lost(self) -> str:
        if not self._is_open:
            return "it is not started"
        if self._problem or self._gone:
            return self._gone or self._problem
        silent = sorted(name for name, read_ns in self._read_ns.items() if to_s(self._now_ns - read_ns) > LOST_S)
        if len(silent) == len(self._read_ns):
            return "its server says nothing for a second; does it still run? stretch_body_server --status tells"
        if silent:
            return f"{' and '.join(silent)} does not measure; look at its cable, then start the server again"
        reading = self._known()
        if reading.server != "RUNNING":
            return f"its server is {reading.server}; it commands again once it is RUNNING"
        if self._now_ns < self._others_ns:
            return f"{self._other} commands it through its server; end that program, and go on"
        if ended := self._link.ended():
            return f"{ended}; end the run and start it again"
        return ""

    def _is_grasping(self, reading: Reading) -> bool:
        """It was told to close further than it is, does not move any more, and its motor pushes."""
        target = self._sent.get("gripper")
        if target is None or abs(reading.velocity[GRIPPER]) > 0.005:
            return False
        is_closing = reading.servo_rad[2] - target > 0.1
        return is_closing and abs(reading.effort[GRIPPER]) >= GRASP_PERCENT

    def _fits(self, command: JointCommand) -> bool:
        is_near = all(
            abs(target - position) <= NEAR.get(name, 0.15)
            for name, target, position in zip(JOINTS, command.position, self._known().position, strict=True)
        )
        return is_near and command.base_v_mps == command.base_w_radps == command.base_vy_mps == 0.0

    # what passes between it and the server

    def _exchange(self) -> None:
        with self._lock:
            self._pass()

    def _pass(self) -> None:
        self._hear()
        self._link.beat(drives=self._wanted is not None and _drives(self._wanted))
        reading = self._reading
        if reading is None:
            return
        if self._button and (self._now_ns > self._press_until_ns or self._is_button_seen(reading)):
            self._button = ""
        if self._button:
            commands = {"power_periph": _command("power_periph", self._button)}
            if self._button == "trigger_runstop":
                commands["routines"] = _command("routines", "cancel")
                self._verb = ""
            self._link.send(commands, RUNSTOP_PRIORITY if self._button == "trigger_runstop" else PRIORITY)
        elif self._hold and self._now_ns < self._hold_until_ns and not self._why_lost():
            self._say(self._hold)

    def _is_button_seen(self, reading: Reading) -> bool:
        is_on = self._button == "trigger_runstop"
        return reading.is_runstopped == is_on and (not is_on or reading.routine == "routine_nop")

    def _say(self, commands: dict[str, Command]) -> None:
        self._link.send(commands, PRIORITY)

    def _hear(self) -> None:
        try:
            status = self._link.newest()
            found = read_status(status) if status is not None else None
        except Unreadable as problem:
            self._problem = (
                f"its server sends {problem}, which is not read: reading it could run code; does something else sit at "
                "its sockets?"
            )
            return
        except MALFORMED as problem:
            said = str(problem)[:200]
            self._problem = f"its server tells of no Stretch 4 with a gripper ({type(problem).__name__}: {said})"
            return
        if found is None:
            return
        before, self._reading, self._problem = self._reading, found, ""
        if before is None:
            return  # only what changes is known to be measured now
        if found.status_id < before.status_id:
            self._gone = "its server was started again, and its odometry with it; end the run and start it again"
        for name, stamp in found.stamps.items():
            if stamp != before.stamps.get(name):
                self._read_ns[name] = self._now_ns
        self._look_at_lease(before, found)
        if self._verb and found.last_routine_id == self._verb_id:
            self._failed = "" if found.is_last_done else self._verb
            self._verb = ""
        elif self._verb and found.routine_id == self._verb_id:
            self._has_begun = True
        elif self._verb and self._has_begun:  # the server was started again meanwhile
            self._verb, self._failed = "", self._verb

    def _look_at_lease(self, before: Reading, found: Reading) -> None:
        is_ours = found.holder == self._link.client
        if is_ours:
            self._asked_ns = None
        elif found.renewed != before.renewed:
            self._others_ns, self._other = self._now_ns + to_ns(LEASE_S), found.holder
        elif self._wanted is None:
            self._asked_ns = None
        elif self._asked_ns is not None and to_s(self._now_ns - self._asked_ns) > TAKEN_S:
            self._other = found.holder if found.holder != "None" else "something else"
            self._others_ns, self._asked_ns = self._now_ns + to_ns(LEASE_S), None

    def _occupy(self, verb: str, priority: int) -> None:
        if not self._is_open:
            raise RobotError("the robot is not started")
        if self._known().is_runstopped:
            raise RobotError(f"the robot does not {verb} while its runstop is pressed; release it first")
        if why := self._why_lost():
            raise RobotError(f"the robot does not {verb}: {why}")
        if self._known().routine != "routine_nop":
            raise RobotError(f"the robot does not {verb} while its server runs {self._known().routine}")
        self.stop()
        self._hold = {}
        self._verbs += 1
        ident = f"{self._link.client} {self._verbs}"
        self._verb, self._verb_id, self._has_begun, self._failed = f"routine_robot_{verb}", ident, False, ""
        commands: dict[str, Command] = {"routines": ["routines", self._verb, ident, (), {}]}
        for _ in range(round(ACCEPTED_S / 0.02)):
            self._link.send(commands, priority)
            SystemClock().block(0.02)
            self._exchange()
            if self._known().routine_id == ident or self._known().last_routine_id == ident:
                return
        self._verb = ""
        raise RobotError(
            f"the server did not begin to {verb} within {ACCEPTED_S:g} s: {self._why_lost() or 'no reason'}"
        )

    def _followed(self, command: JointCommand, reading: Reading) -> dict[str, Command]:
        """One message for all joints and the base: the server looks at the newest only."""
        for limit, target, at in zip(self.limits.joints, command.position, reading.position, strict=True):
            lead = limit.speed * limit.speed / (2 * limit.acceleration) + LEAD_S * limit.speed
            goal = min(max(target, limit.lowest), limit.highest)
            self._sent[limit.name] = min(max(goal, at - lead), at + lead)
        opened = reading.servo_rad[1]
        closes = command.position[GRIPPER] <= 0.0 and self._sent["gripper"] <= 0.0
        self._sent["gripper"] = servo_of(0.0 if closes else max(self._sent["gripper"], 1e-4), opened)
        commands = {name: self._to(name, self._sent[name], reading) for name in JOINTS}
        base = self.limits.base
        half_turn = command.base_w_radps * base.track_m / 2
        asked = max(abs(command.base_v_mps - half_turn), abs(command.base_v_mps + half_turn)) + abs(command.base_vy_mps)
        share = min(1.0, base.wheel_speed_mps / asked) if asked else 0.0
        speeds = (share * command.base_v_mps, share * command.base_vy_mps, share * command.base_w_radps)
        faster = (base.acceleration_mps2, 2 * base.acceleration_mps2 / base.track_m)
        commands["omnibase"] = ["omnibase", "set_velocity", ORDER, (*speeds, *faster), {}]
        return commands

    def _held(self, reading: Reading) -> dict[str, Command]:
        """The base brakes, and each joint comes to rest where braking takes it; the gripper keeps its grip."""
        commands = brake_command()
        for limit, at, speed in zip(self.limits.joints, reading.position, reading.velocity, strict=True):
            name, sent = limit.name, self._sent.get(limit.name)
            if name == "gripper" or sent is None:
                continue
            rest = at + speed * abs(speed) / (2 * limit.acceleration)
            rest = min(rest, sent) if speed > 0.0 else max(rest, sent) if speed < 0.0 else rest
            self._sent[name] = sent if abs(sent - rest) < STILL.get(name, 0.02) else rest
            commands[name] = self._to(name, self._sent[name], reading)
        return commands

    def _to(self, name: str, there: float, reading: Reading) -> Command:
        limit = self.limits.joints[JOINTS.index(name)]
        if name in LIFT_AND_ARM:
            there_and_how = {"v_m": limit.speed, "a_m": limit.acceleration}
            return [name, "move_to", ORDER, (there,), there_and_how]
        joint, speed, acceleration, goal = name, limit.speed, limit.acceleration, there
        if name == "gripper":
            closed, opened, _ = reading.servo_rad
            turns = radians_a_metre(opened)
            joint, speed, acceleration = TOOL, speed * turns, acceleration * turns
            goal = -100.0 * there / closed  # its percent: 0 where the fingertips touch, -100 fully closed
        return [f"{joint}.end_of_arm", "move_to", ORDER, (joint, goal, speed, acceleration), {}]


def _command(subsystem: str, method: str) -> Command:
    return [subsystem, method, ORDER, (), {}]


def _drives(command: JointCommand) -> bool:
    return (command.base_v_mps, command.base_w_radps, command.base_vy_mps) != (0.0, 0.0, 0.0)


def _narrowed(joint: JointLimit, reading: Reading) -> JointLimit:
    """With the range that the robot itself tells, where it tells one."""
    low, high = reading.ranges.get(joint.name, (-math.inf, math.inf))
    low, high = max(joint.lowest, low), min(joint.highest, high)
    return replace(joint, lowest=low, highest=high) if low < high else joint
