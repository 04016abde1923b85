"""`Stretch4Robot`: Hello Robot's Stretch 4 behind the `Robot` protocol, by its own server.

Written from stretch4_body's source (2026.10.21.2), tested against the maker's own server class above a simulated body,
and never yet on a robot. Go through docs/stretch.md before it is. It speaks the server's protocol itself, so that the
maker's library need not be here.

The server has a lease of its own: whoever commands keeps it for 1.1 s. Ours stands above it: this robot follows only
while the lease is ours or nobody's. It commands at priority 0, the lowest, because the maker's gamepad has 1 and homing
3: a person with the gamepad takes the robot out of a policy's hands, and never the other way round.
"""

from __future__ import annotations

import math
from dataclasses import replace
from threading import RLock

import msgspec

from bridges.stretch.following import WHYS, FollowingRobot
from bridges.stretch4.link import FOLDER, ORDER, Command, ServerLink, Stretch4Link, Unreadable, brake_command
from bridges.stretch4.status import (
    GRIPPER,
    JOINTS,
    LIFT_AND_ARM,
    MALFORMED,
    TOOL,
    Stretch4Reading,
    radians_a_metre,
    read_status,
    servo_of,
)
from nodes.msgs import JointCommand, RobotMode
from nodes.robot.protocol import JointLimit, RobotError, RobotLimits
from nodes.robot.robot_from_launch import load_limits
from runtime.clock import SystemClock, to_ns, to_s

LIMITS = "nodes.stretch.limits:STRETCH_4"
"""What its guard keeps; the robot's own are these, narrowed."""
SLOW = {"lift": (0.15, 0.2), "arm": (0.1, 0.1), "gripper": (0.03, 0.11)}
"""Speed and acceleration of the maker's profile `slow` where it differs from our limits; the base's: 0.1 and 0.1."""
START_S = 5.0
LEASE_S = 1.2
"""A lease of the server that nobody renews is over by then."""
TAKEN_S = 0.3
"""Commands that the server takes have given us its lease by then."""
PRESS_S = 2.0
"""So long the runstop is pressed or released again at each turn, unless it is seen before."""
ACCEPTED_S = 1.5
LEAD_S = 0.15
"""Joints are sent no further ahead than braking takes, and what they do in this time."""
HOLD_S = 0.3
"""A hold is said again for so long; the server looks at the newest message only, and may miss one."""
STILL = {"lift": 0.004, "arm": 0.004}
"""A joint as near to where it was sent is left to it, so that holds do not let it sink; others: 0.02 rad."""
GRASP_PERCENT = 20.0
"""Effort of a gripper that holds something: the maker's own bound of a stall. Unproven."""
BUTTON = {"runstop": "trigger_runstop", "release": "clear_runstop"}
PRIORITY, HOME_PRIORITY, RUNSTOP_PRIORITY = 0, 3, 4


class Stretch4Robot(FollowingRobot):
    """The robot whose server runs on this machine. `speed` is one of the maker's motion profiles."""

    joint_names = JOINTS
    profiles = ("slow", "default")
    gripper_near_m = 0.15
    silence = "its server says nothing for a second; does it still run? stretch_body_server --status tells"

    def __init__(
        self, speed: str = "default", address: str = "", folder: str = FOLDER, link: Stretch4Link | None = None
    ) -> None:
        """`folder` has the server's sockets; `address`, a loopback one, names its TCP ports in their place."""
        super().__init__(speed)
        self._link: Stretch4Link = link or ServerLink(address, folder)
        self._limits = load_limits(LIMITS)
        if speed == "slow":
            joints = tuple(
                replace(joint, speed=SLOW[joint.name][0], acceleration=SLOW[joint.name][1])
                if joint.name in SLOW
                else joint
                for joint in self._limits.joints
            )
            base = replace(self._limits.base, wheel_speed_mps=0.1, acceleration_mps2=0.1)
            self._limits = replace(self._limits, joints=joints, base=base)
        self._reading: Stretch4Reading | None = None
        self._origin = (0.0, 0.0, 0.0)  # where its server had it when it was first heard
        self._problem = ""  # why what the server says is not read
        self._gone = ""  # why this run cannot go on with it
        self._sent: dict[str, float] = {}  # where each joint was sent
        self._held: dict[str, Command] = {}
        self._held_until_ns = self._press_until_ns = 0
        self._button = ""
        self._asked_ns: int | None = None  # since when commands are sent without the server's lease
        self._others_ns = 0  # until when somebody else's lease is live
        self._other = ""
        self._verb, self._verb_id, self._has_begun, self._verbs = "", "", False, 0
        self._failed = ""
        self._lock = RLock()  # the driver homes in a thread of its own

    @property
    def limits(self) -> RobotLimits:
        """What its guard keeps; once it is started, with the ranges that the robot itself tells."""
        return self._limits

    @property
    def reading(self) -> Stretch4Reading:
        """All that the robot last said of itself. Raises RobotError before it has said anything."""
        if self._reading is None:
            raise RobotError("a Stretch 4 tells of itself once it is started")
        return self._reading

    def _take_hold(self) -> None:
        self._link.open()
        self._exchange()
        self._wait(lambda: self._reading is not None and not _unheard(self._reading), START_S, 0.01)
        reading = self._reading
        if reading is None:
            raise RobotError(self._problem or "the robot's server does not tell of the robot")
        if silent := _unheard(reading):
            raise RobotError(f"{' and '.join(silent)} of the robot did not measure within {START_S:g} s")
        joints = tuple(_narrowed(joint, reading) for joint in self._limits.joints)
        self._limits = replace(self._limits, joints=joints)

    def _let_go(self) -> None:
        if self._wanted is not None:
            self._send(None)
        if self._is_holding:
            for _ in range(5):
                self._link.send(self._held, PRIORITY)
                SystemClock().block(0.02)
        self._link.close()

    # what it knows

    @property
    def _busy(self) -> RobotMode | None:
        routine = self.reading.routine
        if routine == "routine_nop" and not self._verb:
            return None
        return "stowing" if "stow" in routine + self._verb else "homing"

    @property
    def _whys(self) -> dict[RobotMode, str]:
        return {**WHYS, "homing": f"its server runs {self._verb or self.reading.routine}"}

    def _why_away(self) -> str:
        if why := self._gone or self._problem or self._why_not_ours():
            return why
        return f"{ended}; end the run and start it again" if (ended := self._link.ended()) else ""

    def _why_not_ours(self) -> str:
        """Why nothing is to be said to the server now."""
        if self.reading.server != "RUNNING":
            return f"its server is {self.reading.server}; it commands again once it is RUNNING"
        if self._now_ns < self._others_ns:
            return f"{self._other} commands it through its server; end that program, and go on"
        return ""

    def _is_gripping(self) -> bool:
        target = self._sent.get("gripper")
        is_closing = target is not None and self.reading.servo_rad[2] - target > 0.1
        return is_closing and abs(self.reading.effort[GRIPPER]) >= GRASP_PERCENT

    # what passes between it and the server

    def _exchange(self) -> None:
        with self._lock:
            self._hear()
            reading = self._reading
            if self._link.beat(moves=self._wanted is not None or self._is_holding):
                self._has_braked()
            if reading is None:
                return
            is_on = self._button == BUTTON["runstop"]
            is_seen = reading.is_runstopped == is_on and (not is_on or reading.routine == "routine_nop")
            if is_seen or self._now_ns > self._press_until_ns:
                self._button = ""
            if self._button:
                commands: dict[str, Command] = {"power_periph": _command("power_periph", self._button)}
                if is_on:
                    commands["routines"] = _command("routines", "cancel")
                    self._verb = ""
                self._link.send(commands, RUNSTOP_PRIORITY if is_on else PRIORITY)
            elif self._is_holding:
                self._link.send(self._held, PRIORITY)

    @property
    def _is_holding(self) -> bool:
        """Whether a hold is still to be said; of one that was said long ago nobody knows what came after it."""
        return bool(self._held) and self._now_ns < self._held_until_ns and not self._why_not_ours()

    def _send(self, command: JointCommand | None) -> None:
        if command is None:
            self._held, self._held_until_ns = self._rest(self.reading), self._now_ns + to_ns(HOLD_S)
            self._exchange()
            return
        self._held = {}
        self._link.send(self._followed(command, self.reading), PRIORITY)
        if self._asked_ns is None and self.reading.holder != self._link.client:
            self._asked_ns = self._now_ns

    def _ignore(self) -> None:
        super()._ignore()
        if not self.reading.is_runstopped and not self._busy:
            self._send(None)

    def _do(self, verb: str) -> None:
        self._held = {}
        if verb in BUTTON:
            self._button, self._press_until_ns = BUTTON[verb], self._now_ns + to_ns(PRESS_S)
            self._exchange()
            return
        self._verbs += 1
        ident = f"{self._link.client} {self._verbs}"
        self._verb, self._verb_id, self._has_begun, self._failed = f"routine_robot_{verb}", ident, False, ""
        commands: dict[str, Command] = {"routines": ["routines", self._verb, ident, (), {}]}

        def is_accepted() -> bool:
            if ident in (self.reading.routine_id, self.reading.last_routine_id):
                return True
            self._link.send(commands, HOME_PRIORITY if verb == "home" else PRIORITY)
            return False

        if not self._wait(is_accepted, ACCEPTED_S):
            self._verb = ""
            why = self._why_lost() or "no reason"
            raise RobotError(f"the server did not begin to {verb} within {ACCEPTED_S:g} s: {why}")

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
        before, self._problem = self._reading, ""
        if before is None:  # only what changes is known to be measured now
            self._origin, self._reading = found.pose, msgspec.structs.replace(found, pose=(0.0, 0.0, 0.0))
            return
        now = {name: self._now_ns for name, stamp in found.stamps.items() if stamp != before.stamps.get(name)}
        if found.status_id < before.status_id:
            self._gone = "its server was started again, and its odometry with it; end the run and start it again"
        self._look_at_lease(before, found)
        if self._verb and found.last_routine_id == self._verb_id:
            self._failed = "" if found.is_last_done else self._verb
            self._verb = ""
        elif self._verb and found.routine_id == self._verb_id:
            self._has_begun = True
        elif self._verb and self._has_begun:  # the server was started again meanwhile
            self._verb, self._failed = "", self._verb
        self._reading = msgspec.structs.replace(
            found,
            pose=_seen_from(self._origin, found.pose),
            read_ns={**before.read_ns, **now},
            alerts=(*found.alerts, *([f"{self._failed} failed"] if self._failed else [])),
        )

    def _look_at_lease(self, before: Stretch4Reading, found: Stretch4Reading) -> None:
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

    # what the server is told

    def _followed(self, command: JointCommand, reading: Stretch4Reading) -> dict[str, Command]:
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

    def _rest(self, reading: Stretch4Reading) -> dict[str, Command]:
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

    def _to(self, name: str, there: float, reading: Stretch4Reading) -> Command:
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


def _unheard(reading: Stretch4Reading) -> list[str]:
    return sorted(set(reading.stamps) - set(reading.read_ns))


def _seen_from(origin: tuple[float, float, float], pose: tuple[float, float, float]) -> tuple[float, float, float]:
    x, y, heading = (now - then for now, then in zip(pose, origin, strict=True))
    c, s = math.cos(origin[2]), math.sin(origin[2])
    return c * x + s * y, c * y - s * x, heading


def _narrowed(joint: JointLimit, reading: Stretch4Reading) -> JointLimit:
    """With the range that the robot itself tells, where it tells one."""
    low, high = reading.ranges.get(joint.name, (-math.inf, math.inf))
    low, high = max(joint.lowest, low), min(joint.highest, high)
    return replace(joint, lowest=low, highest=high) if low < high else joint
