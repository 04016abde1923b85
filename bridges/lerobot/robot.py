"""`LeRobotRobot`: any robot of LeRobot's and its plug-ins behind the `Robot` protocol, so behind the guard.

LeRobot's arms go to the newest goal for ever, whoever sent it and whatever has become of him. So a goal reaches 0.15 s
ahead at most, at the joint's own speed, and the side process drops goals that are older: whatever ends or hangs, the
arm comes to rest there. Tested with a plug-in that behaves as a bus does, and with no arm yet.
"""

from __future__ import annotations

import msgspec

from bridges.lerobot.device import DeviceHello, DeviceLink, DeviceReading, LeRobotDevice, own_libraries
from bridges.lerobot.facts import GRIPPER, read_facts
from bridges.stretch.following import STANDS, FollowingRobot
from bridges.stretch.onboard.words import Told
from nodes.msgs import JointCommand
from nodes.robot.protocol import RobotError, RobotLimits
from runtime.clock import SystemClock, to_ns, to_s

AHEAD_S = 0.15
"""How far ahead of where a joint was measured a goal may be, by its speed."""
FIRST_S = 5.0
"""The first reading comes by then."""
STILL_S = 0.3
"""For so long it is watched whether connecting has moved it, unless it was sent somewhere."""
MOVED = 0.01
"""Share of its range that a joint may be measured elsewhere while it stands."""
SILENT_S = 0.5
"""From this age on it is asked why nothing is measured."""
GRIPS = 0.8
"""A gripper that stands though it was told to close by this share of what may be asked of it holds something."""


class LeRobotRobot(FollowingRobot):
    """`facts` is the file of this arm, `python` LeRobot's (the environment of `polyrhythm lerobot install`).

    An arm that moves when it connects is refused, unless `is_clear` says that its space is clear each time.
    """

    profiles = ("default",)
    gripper_near_m = 0.12
    has_battery = False
    own_whys = STANDS
    silence = "LeRobot's device has not measured for a second; are its power and its cable in?"

    libraries = staticmethod(own_libraries)

    def __init__(self, facts: str, python: str = "", is_clear: bool = False, link: DeviceLink | None = None) -> None:
        super().__init__("default")
        self._facts, self._is_clear = read_facts(facts), is_clear
        self.joint_names = tuple(self._facts.joints)
        self._limits = self._facts.limits
        self._link: DeviceLink = link or LeRobotDevice("robot", self._facts.type, self._facts.settings, python)
        self._told = Told()
        self._measured = DeviceReading()
        self._sent: list[float] | None = None
        self._is_pressed = False
        self._first: tuple[int, tuple[float, ...]] | None = None
        self._before: tuple[float, ...] | None = None
        self._moved: list[str] = []  # joints that did so before anybody asked

    @property
    def limits(self) -> RobotLimits:
        """Those of the file."""
        return self._limits

    @property
    def reading(self) -> Told:
        """What was measured last."""
        return self._told

    def _take_hold(self) -> None:
        facts = self._facts
        if facts.connecting_moves and not self._is_clear:
            raise RobotError(
                f"{facts.type} moves when it connects: clear its space, and say so by robot_params is_clear = true"
            )
        self._check(self._link.open())
        self._wait(lambda: bool(self._told.position) or not self._link.is_there, FIRST_S, 0.01)
        if not self._told.position:
            why = self._link.why_silent(SystemClock().now_ns())
            raise RobotError(f"{facts.type}: {why or f'it has measured nothing within {FIRST_S:g} s'}")

    def _check(self, hello: DeviceHello) -> None:
        """Whether it is the robot of the facts. Raises RobotError."""
        facts = self._facts
        if not hello.calibrated:
            raise RobotError(
                f"{facts.type} is not calibrated on this machine: run LeRobot's lerobot-calibrate with the same id "
                "(docs/lerobot-arms.md); nothing was moved"
            )
        if not self._is_clear:
            self._moved = [name for name, joint in facts.joints.items() if joint.key in hello.moved]
        self._before = facts.ours(hello.before)
        keys = [joint.key for joint in facts.joints.values()]
        lacking = [key for key in keys if key not in hello.joints or key not in hello.actions]
        if lacking:
            known = ", ".join(hello.joints) or "none"
            raise RobotError(f"{facts.type} has no {', '.join(lacking)}, which its facts name; it has {known}")
        if forgotten := [key for key in hello.actions if key not in keys]:
            raise RobotError(f"{facts.type} is also moved by {', '.join(forgotten)}, of which its facts say nothing")

    def _let_go(self) -> None:
        if self._wanted is not None:
            self._send(None)
        self._link.close()

    def _why_away(self) -> str:
        if self._moved:
            return (
                f"it has moved by itself, as it was connected or since ({', '.join(self._moved)}): keep off. Where "
                "that belongs to it, say connecting_moves = true in its facts"
            )
        is_fresh = self._told.position and to_s(self._now_ns - self._measured.ns) < SILENT_S
        return "" if is_fresh and self._link.is_there else self._link.why_silent(self._now_ns)

    def _is_gripping(self) -> bool:
        if self._sent is None or self._wanted is None or GRIPPER not in self.joint_names:
            return False
        place = self.joint_names.index(GRIPPER)
        asked = self._told.position[place] - self._sent[place]
        return asked > GRIPS * AHEAD_S * self._limits.joints[place].speed

    def _exchange(self) -> None:
        self._take(self._link.exchange())

    def _take(self, found: DeviceReading) -> None:
        """Note a new reading; one without all joints is none."""
        position = self._facts.ours(found.at)
        if position is None or found.ns <= self._measured.ns:
            return
        before, self._measured = self._measured, found
        seconds = to_s(found.ns - before.ns)
        then = self._told.position or position
        self._first = first = self._first or (found.ns, self._before or position)
        if self._sent is None and not self._is_clear and to_s(found.ns - first[0]) < STILL_S:
            self._moved = self._moved or [
                joint.name
                for joint, was, now in zip(self._limits.joints, first[1], position, strict=True)
                if abs(now - was) > MOVED * (joint.highest - joint.lowest)
            ]
        self._told = Told(
            read_ns={"arm": found.ns},
            position=position,
            velocity=tuple((new - old) / seconds for old, new in zip(then, position, strict=True)),
            effort=(0.0,) * len(position),
            is_homed=True,
            is_runstopped=self._is_pressed,
        )

    def _send(self, command: JointCommand | None) -> None:
        if command is None:
            goal = self._resting()
        else:
            goal = [
                min(max(target, at - AHEAD_S * joint.speed, joint.lowest), at + AHEAD_S * joint.speed, joint.highest)
                for joint, target, at in zip(self._limits.joints, command.position, self._told.position, strict=True)
            ]
        self._sent = goal
        until_ns = self._now_ns + to_ns(AHEAD_S)
        self._take(self._link.exchange(self._facts.theirs(tuple(goal)), until_ns=until_ns))

    def _resting(self) -> list[float]:
        """Where braking takes each joint, and no further than it was sent; a gripper keeps its grip."""
        sent, goal = self._sent or list(self._told.position), []
        for joint, at, speed, there in zip(
            self._limits.joints, self._told.position, self._told.velocity, sent, strict=True
        ):
            rest = at + speed * abs(speed) / (2 * joint.acceleration)
            goal.append(there if joint.name == GRIPPER else min(max(rest, min(at, there)), max(at, there)))
        return goal

    def _do(self, verb: str) -> None:
        if verb in ("home", "stow"):
            raise RobotError(f"LeRobot's arms do not {verb} by themselves: a person calibrates and folds them by hand")
        self._is_pressed = verb == "runstop"
        if self._told.position:
            if self._is_pressed:
                self._send(None)
            self._told = msgspec.structs.replace(self._told, is_runstopped=self._is_pressed)
