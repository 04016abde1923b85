"""`Ros2Robot`: a robot that ROS 2 drives, behind the `Robot` protocol, so that only the guard's commands reach it.

It hears /joint_states and /odom, and says cmd_vel for the base and FollowJointTrajectory for the joints: a goal of one
point, sent anew while the guard's targets move, and cancelled at every stop. It has met no ROS and no robot yet: go
through docs/ros2.md before it does.
"""

from __future__ import annotations

import logging
from collections import deque
from queue import Empty, SimpleQueue
from typing import Any

import msgspec

from bridges.ros2.link import TWISTS, Link, link_problem, open_link, type_problem
from bridges.stretch.following import STANDS, FollowingRobot
from bridges.stretch.onboard.words import Told
from nodes.msgs import JointCommand
from nodes.recording.ros2_messages import (
    BaseValues,
    base_values,
    joint_values,
    set_bool_request,
    stamp_ns_of,
    trajectory_goal,
    trigger_request,
    twist,
    twist_stamped,
)
from nodes.robot.protocol import RobotError, RobotLimits
from nodes.robot.robot_from_launch import load_limits
from runtime.clock import NS_PER_S, SystemClock, to_ns, to_s, wall_time_ns
from runtime.errors import ParameterError, UserError, choices

FIRST_S = 5.0
"""A robot that says nothing of its joints for this long at the start is none."""
GOAL_PERIOD_S = 0.1
GOAL_S = 0.2
"""In how long a goal's point is to be reached: what becomes of this process, the arm rests after that."""
ZEROS_S = 0.5
"""For how long a stop says that the base stands; then others may drive it."""
ANSWER_S = 1.0
"""A base that stands for so long though it is asked to move is told of."""
SLOWEST = 0.02
"""m/s or rad/s: less is not asked for motion."""
LONGEST_S = 120.0
"""For homing and stowing: a Stretch takes about half of it."""
SMALLEST = 0.0005
"""m or rad: less is no new goal."""

log = logging.getLogger("bridges.ros2.robot")


class Ros2Robot(FollowingRobot):
    """`limits` names the robot's, as "module:NAME"; `names` says what ROS calls joints, as "lift=joint_lift, ...".

    `trajectory` is the action of the joints, `cmd_vel` the topic of the base, "" where it has none. Its type is the one
    that ROS hears, or where that is not told `cmd_vel_type`: Twist, or TwistStamped for controllers of Jazzy and newer.
    `home`, `stow` and `runstop` name services of the robot (std_srvs Trigger, Trigger, SetBool), "" where it has none.
    """

    profiles = ("default",)
    gripper_near_m = 0.15
    has_battery = False
    own_whys = STANDS
    lost_s = 0.5
    silence = "its joint states do not come, or do not change their stamp; do its driver and the bridge run?"

    def __init__(
        self,
        at: str,
        limits: str = "nodes.stretch.limits:STRETCH_3",
        speaks: str = "ros2dds",
        domain: int = 0,
        joint_states: str = "/joint_states",
        odom: str = "/odom",
        cmd_vel: str = "/cmd_vel",
        cmd_vel_type: str = TWISTS[0],
        trajectory: str = "",
        names: str = "",
        home: str = "",
        stow: str = "",
        runstop: str = "",
    ) -> None:
        super().__init__("default")
        if problem := link_problem(at, speaks, domain):
            raise ParameterError(problem)
        if cmd_vel_type not in TWISTS:
            raise ParameterError(f"cmd_vel_type is {cmd_vel_type!r}; {choices(TWISTS)}")
        self._cmd_vel_type = cmd_vel_type
        self._services = {"home": home, "stow": stow, "runstop": runstop, "release": runstop}
        self._limits = load_limits(limits)
        self._at, self._speaks, self._domain = at, speaks, domain
        self._joint_states, self._odom, self._cmd_vel, self._trajectory = joint_states, odom, cmd_vel, trajectory
        renamed = dict(part.strip().split("=", 1) for part in names.split(",") if "=" in part)
        self.joint_names = known = tuple(joint.name for joint in self._limits.joints)
        if unknown := set(renamed) - set(known):
            raise ParameterError(f"names has {', '.join(sorted(unknown))}; the robot's joints are {', '.join(known)}")
        self._names = tuple(renamed.get(name, name) for name in known)
        self._link: Link | None = None
        self._clock = SystemClock()
        self._heard: deque[tuple[str, Any, int]] = deque(maxlen=50)
        self._told_of: set[str] = set()
        self._told = Told(is_homed=True)
        self._base = BaseValues()
        self._stamp_ns = 0
        self._zeros_until_ns = 0
        self._asked_from: tuple[int, BaseValues] | None = None  # since when the base is asked to move and stands, where
        self._goal: tuple[float, ...] = ()
        self._goal_ns = -NS_PER_S

    @property
    def limits(self) -> RobotLimits:
        """Those of the name that was given."""
        return self._limits

    @property
    def reading(self) -> Told:
        """What was heard last: joints and odometry, whose stamps are when they came, or stand still where theirs do."""
        return self._told

    def _take_hold(self) -> None:
        try:
            self._link = link = open_link(self._at, self._speaks, self._domain, self._tell)
        except UserError as problem:
            raise RobotError(str(problem)) from problem
        if self._cmd_vel:
            heard = link.graph_types().get(self._cmd_vel, set())
            if self._cmd_vel_type not in heard:
                self._cmd_vel_type = min(heard & set(TWISTS), default=self._cmd_vel_type)
            link.advertise(self._cmd_vel, self._cmd_vel_type, reliable=False)
            if mismatch := type_problem(self._cmd_vel, self._cmd_vel_type, {self._cmd_vel: heard}):
                raise RobotError(f'{mismatch}; name the topic of the base, or "" where it has none')
        link.subscribe(self._joint_states, "sensor_msgs/msg/JointState", lambda value: self._hear("joints", value))
        if self._odom:
            link.subscribe(self._odom, "nav_msgs/msg/Odometry", lambda value: self._hear("pose", value))
        self._wait(lambda: bool(self._told.position or self._told.alerts), FIRST_S, 0.01)
        if not self._told.position:
            said = "; ".join(self._told.alerts)
            raise RobotError(
                f"no joint states on {self._joint_states} that name {', '.join(self._names)} within {FIRST_S:g} s"
                f"{f' ({said})' if said else ''}; is the robot's driver running, and its topic named so?"
            )

    def _let_go(self) -> None:
        link = self._link
        if link is None:
            return
        try:
            if self._wanted is not None:
                self._send(None)
        finally:
            self._link = None
            link.close()

    def _send(self, command: JointCommand | None) -> None:
        link = self._link
        if link is None:
            return
        if command is None:
            self._zeros_until_ns = self._now_ns + to_ns(ZEROS_S)
            self._stand()
            if self._trajectory:
                self._goal = ()
                link.cancel_goals(self._trajectory)
            return
        if self._cmd_vel and self._limits.base.wheel_speed_mps:
            base = self._limits.base
            half_turn = command.base_w_radps * base.track_m / 2
            left, right = (
                min(max(side, -base.wheel_speed_mps), base.wheel_speed_mps)
                for side in (command.base_v_mps - half_turn, command.base_v_mps + half_turn)
            )
            rest = base.wheel_speed_mps - max(abs(left), abs(right)) if base.is_omni else 0.0
            aside = min(max(command.base_vy_mps, -rest), rest)
            self._drive((left + right) / 2, (right - left) / base.track_m, aside)
        if self._trajectory and to_s(self._now_ns - self._goal_ns) >= GOAL_PERIOD_S:
            limits = zip(command.position, self._limits.joints, strict=True)
            target = tuple(min(max(value, limit.lowest), limit.highest) for value, limit in limits)
            if not self._goal or max(abs(a - b) for a, b in zip(target, self._goal, strict=True)) > SMALLEST:
                self._goal, self._goal_ns = target, self._now_ns
                goal = trajectory_goal(self._names, target, GOAL_S)
                link.send_goal(self._trajectory, goal, lambda why: self._tell("goal", why))

    def _ignore(self) -> None:
        super()._ignore()
        self._send(None)

    def _exchange(self) -> None:
        """Take in what came; say again that the base stands."""
        self._take_in()
        if self._now_ns < self._zeros_until_ns and self._wanted is None:
            self._stand()

    def _do(self, verb: str) -> None:
        service, link = self._services[verb], self._link
        if verb in ("home", "stow"):
            self._ask(service, verb)
            return
        self._told = msgspec.structs.replace(self._told, is_runstopped=verb == "runstop")
        if service and link is not None:
            request = set_bool_request(verb == "runstop")
            link.call(service, request, lambda answer, why: self._note("runstop", answer, why))
        if verb == "runstop":  # also where it seems to stand: a goal may be on its way
            self._send(None)

    def _ask(self, service: str, what: str) -> None:
        if not service or self._link is None:
            raise RobotError(f"this robot is told to {what} by its own software; {what}= names no service of ROS")
        answers: SimpleQueue[tuple[Any, str]] = SimpleQueue()
        self._link.call(service, trigger_request(), lambda answer, why: answers.put((answer, why)))
        try:
            answer, why = answers.get(timeout=LONGEST_S)
        except Empty:
            answer, why = None, f"{service} has not answered for {LONGEST_S:g} s"
        if answer is None or not answer.success:
            raise RobotError(why or f"{service} refuses: {answer.message}")

    def _note(self, what: str, answer: Any, why: str) -> None:
        """In a thread of the link: an answer that nobody waits for."""
        if answer is None or not answer.success:
            self._tell(what, why or f"{what} is refused: {answer.message}")

    def _stand(self) -> None:
        if self._link is not None and self._cmd_vel:
            self._drive(0.0, 0.0)

    def _drive(self, v_mps: float, w_radps: float, vy_mps: float = 0.0) -> None:
        """Say it to the base, and notice where odometry says that it does not listen."""
        assert self._link is not None
        value = twist(v_mps, w_radps, vy_mps)
        is_stamped = self._cmd_vel_type == TWISTS[1]
        self._link.publish(self._cmd_vel, twist_stamped(wall_time_ns(), value) if is_stamped else value)
        asked, here = max(abs(v_mps), abs(vy_mps), abs(w_radps)), self._base
        if asked < SLOWEST or not self._odom:
            self._asked_from = None
        elif self._asked_from is None or self._has_moved(self._asked_from[1], here):
            self._asked_from = (self._now_ns, here)
        elif to_s(self._now_ns - self._asked_from[0]) > ANSWER_S:
            self._tell(
                "base",
                f"the base does not move by {self._odom} though {self._cmd_vel} asks for it for {ANSWER_S:g} s as "
                f"{self._cmd_vel_type}; does its controller hear that topic, in that type (cmd_vel_type), and is its "
                "clock this machine's?",
            )

    @staticmethod
    def _has_moved(then: BaseValues, now: BaseValues) -> bool:
        return any(abs(a - b) > SMALLEST for a, b in zip(then, now, strict=True))

    def _hear(self, kind: str, value: Any) -> None:
        """In a thread of the link."""
        self._heard.append((kind, value, self._clock.now_ns()))

    def _take_in(self) -> None:
        while self._heard:
            kind, value, came_ns = self._heard.popleft()
            if kind == "pose":
                self._base = base = base_values(value)
                aside_mps = base.vy_mps if self._limits.base.is_omni else 0.0
                self._told = msgspec.structs.replace(
                    self._told,
                    pose=(base.x_m, base.y_m, base.heading_rad),
                    twist=(base.v_mps, aside_mps, base.w_radps),
                )
                continue
            found = joint_values(value, self._names)
            if isinstance(found, str):
                named = f"; it names {', '.join(value.name)}" if value.name else ""
                self._tell("joints", f"{self._joint_states} is left out: {found}{named}")
                continue
            stamp_ns = stamp_ns_of(value.header)
            is_new = stamp_ns == 0 or stamp_ns != self._stamp_ns
            self._stamp_ns = stamp_ns
            joints = found.or_zero()
            self._told = msgspec.structs.replace(
                self._told,
                read_ns={"joints": came_ns} if is_new else self._told.read_ns,
                position=joints.position,
                velocity=joints.velocity,
                effort=joints.effort,
            )

    def _tell(self, key: str, sentence: str) -> None:
        if key not in self._told_of:
            self._told_of.add(key)
            self._told = msgspec.structs.replace(self._told, alerts=(*self._told.alerts, sentence)[-5:])
            log.warning("%s", sentence)
