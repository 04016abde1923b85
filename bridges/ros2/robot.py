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

from bridges.ros2.link import TWISTS, Link, link_problem, open_link, type_problem
from nodes.msgs import JointCommand, RobotMode, RobotState, RobotStatus
from nodes.recording.ros2_messages import (
    BaseValues,
    JointValues,
    base_values,
    joint_values,
    robot_state,
    set_bool_request,
    stamp_ns_of,
    trajectory_goal,
    trigger_request,
    twist,
    twist_stamped,
)
from nodes.robot.protocol import RobotError, RobotLimits, check_command
from nodes.robot.robot_from_launch import load_limits
from runtime.clock import NS_PER_S, SystemClock, to_ns, to_s, wall_time_ns
from runtime.errors import ParameterError, UserError, choices

FIRST_S = 5.0
"""A robot that says nothing of its joints for this long at the start is none."""
LOST_S = 0.5
GOAL_PERIOD_S = 0.1
GOAL_S = 0.2
"""In how long a goal's point is to be reached: what becomes of this process, the arm rests after that."""
ZEROS_S = 0.5
"""For how long a stop says that the base stands; then others may drive it."""
WATCHDOG_S = 0.5
ANSWER_S = 1.0
"""A base that stands for so long though it is asked to move is told of."""
SLOWEST = 0.02
"""m/s or rad/s: less is not asked for motion."""
LONGEST_S = 120.0
"""For homing and stowing: a Stretch takes about half of it."""
SMALLEST = 0.0005
"""m or rad: less is no new goal."""

log = logging.getLogger("bridges.ros2.robot")

WHYS: dict[RobotMode, str] = {
    "lost": "its joint states do not come, or do not change their stamp; do its driver and the bridge run?",
    "runstopped": "it was told to stand; release it",
}


class Ros2Robot:
    """`limits` names the robot's, as "module:NAME"; `names` says what ROS calls joints, as "lift=joint_lift, ...".

    `trajectory` is the action of the joints, `cmd_vel` the topic of the base, "" where it has none. Its type is the one
    that ROS hears, or where that is not told `cmd_vel_type`: Twist, or TwistStamped for controllers of Jazzy and newer.
    `home`, `stow` and `runstop` name services of the robot (std_srvs Trigger, Trigger, SetBool), "" where it has none.
    """

    is_hardware = True

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
        if problem := link_problem(at, speaks, domain):
            raise ParameterError(problem)
        if cmd_vel_type not in TWISTS:
            raise ParameterError(f"cmd_vel_type is {cmd_vel_type!r}; {choices(TWISTS)}")
        self._cmd_vel_type = cmd_vel_type
        self._home_service, self._stow_service, self._runstop_service = home, stow, runstop
        self.limits: RobotLimits = load_limits(limits)
        self._at, self._speaks, self._domain = at, speaks, domain
        self._joint_states, self._odom, self._cmd_vel, self._trajectory = joint_states, odom, cmd_vel, trajectory
        renamed = dict(part.strip().split("=", 1) for part in names.split(",") if "=" in part)
        known = [joint.name for joint in self.limits.joints]
        if unknown := set(renamed) - set(known):
            raise ParameterError(f"names has {', '.join(sorted(unknown))}; the robot's joints are {', '.join(known)}")
        self._names = tuple(renamed.get(name, name) for name in known)
        self._link: Link | None = None
        self._clock = SystemClock()
        self._heard: deque[tuple[str, Any, int]] = deque(maxlen=50)
        self._told: set[str] = set()
        self._joints: JointValues | None = None
        self._base = BaseValues()
        self._measured_ns = self._stamp_ns = self._now_ns = 0
        self._alerts: tuple[str, ...] = ()
        self._is_runstopped = False
        self._commanded_ns = 0
        self._is_moving = False  # since the last stop something was asked of it
        self._zeros_until_ns = 0
        self._asked_from: tuple[int, BaseValues] | None = None  # since when the base is asked to move and stands, where
        self._goal: tuple[float, ...] = ()
        self._goal_ns = -NS_PER_S

    def start(self, now_ns: int) -> None:
        """Connect and wait for its joints. Raises RobotError where there are none."""
        self._now_ns = now_ns
        try:
            self._link = open_link(self._at, self._speaks, self._domain, self._tell)
        except UserError as problem:
            raise RobotError(str(problem)) from problem
        link = self._link
        if self._cmd_vel:
            heard = link.graph_types().get(self._cmd_vel, set())
            if self._cmd_vel_type not in heard:
                self._cmd_vel_type = min(heard & set(TWISTS), default=self._cmd_vel_type)
            link.advertise(self._cmd_vel, self._cmd_vel_type, reliable=False)
            if mismatch := type_problem(self._cmd_vel, self._cmd_vel_type, {self._cmd_vel: heard}):
                self.close()
                raise RobotError(f'{mismatch}; name the topic of the base, or "" where it has none')
        link.subscribe(self._joint_states, "sensor_msgs/msg/JointState", lambda value: self._hear("joints", value))
        if self._odom:
            link.subscribe(self._odom, "nav_msgs/msg/Odometry", lambda value: self._hear("pose", value))
        began_ns = self._clock.now_ns()
        while self._joints is None and not self._alerts and self._clock.since_s(began_ns) < FIRST_S:
            self._clock.block(0.01)
            self._take_in()
        if self._joints is None:
            said = "; ".join(self._alerts)
            self.close()
            raise RobotError(
                f"no joint states on {self._joint_states} that name {', '.join(self._names)} within {FIRST_S:g} s"
                f"{f' ({said})' if said else ''}; is the robot's driver running, and its topic named so?"
            )

    def read(self, now_ns: int) -> RobotState:
        """Joints and odometry as last heard; `read_ns` is when that came, and stands still where their stamp does."""
        self._take_in()
        assert self._joints is not None, "it has not started"
        base = self._base if self.limits.base.is_omni else self._base._replace(vy_mps=0.0)
        return robot_state(min(self._measured_ns, now_ns), self._joints, base)

    def status(self, now_ns: int) -> RobotStatus:
        """Ready while joint states come; what ROS refused last is an alert."""
        mode = self._mode
        return RobotStatus(
            read_ns=min(self._measured_ns, now_ns),
            mode=mode,
            why=WHYS.get(mode, ""),
            is_runstopped=self._is_runstopped,
            alerts=self._alerts,
        )

    def command(self, command: JointCommand) -> None:
        """Send base velocity, and joints where their targets moved. Raises ValueError for what is not finite."""
        check_command(command, len(self._names))
        if self._mode != "ready" or self._link is None:
            return
        self._commanded_ns = self._now_ns
        self._is_moving = True
        if self._cmd_vel and self.limits.base.wheel_speed_mps:
            base = self.limits.base
            half_turn = command.base_w_radps * base.track_m / 2
            left, right = (
                min(max(side, -base.wheel_speed_mps), base.wheel_speed_mps)
                for side in (command.base_v_mps - half_turn, command.base_v_mps + half_turn)
            )
            rest = base.wheel_speed_mps - max(abs(left), abs(right)) if base.is_omni else 0.0
            aside = min(max(command.base_vy_mps, -rest), rest)
            self._drive((left + right) / 2, (right - left) / base.track_m, aside)
        if self._trajectory and to_s(self._now_ns - self._goal_ns) >= GOAL_PERIOD_S:
            limits = zip(command.position, self.limits.joints, strict=True)
            target = tuple(min(max(value, limit.lowest), limit.highest) for value, limit in limits)
            if not self._goal or max(abs(a - b) for a, b in zip(target, self._goal, strict=True)) > SMALLEST:
                self._goal, self._goal_ns = target, self._now_ns
                goal = trajectory_goal(self._names, target, GOAL_S)
                self._link.send_goal(self._trajectory, goal, lambda why: self._tell("goal", why))

    def advance(self, now_ns: int) -> None:
        """Take in what came; stop where nobody has commanded for a while; say again that the base stands."""
        self._now_ns = now_ns
        self._take_in()
        if self._is_moving and (self._mode != "ready" or to_s(now_ns - self._commanded_ns) > WATCHDOG_S):
            self.stop()
        if now_ns < self._zeros_until_ns and not self._is_moving:
            self._stand()

    def stop(self) -> None:
        """Base velocity zero, and the arm's goals cancelled: its controller then holds where it is."""
        if self._link is None or not self._is_moving:
            return
        self._is_moving = False
        self._zeros_until_ns = self._now_ns + to_ns(ZEROS_S)
        self._stand()
        if self._trajectory:
            self._goal = ()
            self._link.cancel_goals(self._trajectory)

    def home(self) -> None:
        """Ask the service; may take minutes. Raises RobotError where there is none, or it refuses."""
        self._ask(self._home_service, "home")

    def stow(self) -> None:
        """Ask the service; may take minutes. Raises RobotError where there is none, or it refuses."""
        self._ask(self._stow_service, "stow")

    def runstop(self, is_on: bool) -> None:
        """Stop, and follow no command until it is released; the robot's own is pressed where a service does that."""
        self._is_runstopped = is_on
        if self._runstop_service and self._link is not None:
            request = set_bool_request(is_on)
            self._link.call(self._runstop_service, request, lambda answer, why: self._note("runstop", answer, why))
        if is_on:
            self._is_moving = self._link is not None  # also where it seems to stand: a goal may be on its way
            self.stop()

    def close(self) -> None:
        """Stop and leave ROS."""
        link = self._link
        if link is None:
            return
        try:
            self.stop()
        finally:
            self._link = None
            link.close()

    def _ask(self, service: str, what: str) -> None:
        if self._is_runstopped:
            raise RobotError(f"the robot is not told to {what} while its runstop is pressed; release it first")
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

    @property
    def _mode(self) -> RobotMode:
        if self._joints is None or self._clock.since_s(self._measured_ns) > LOST_S:
            return "lost"
        return "runstopped" if self._is_runstopped else "ready"

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
                self._base = base_values(value)
                continue
            found = joint_values(value, self._names)
            if isinstance(found, str):
                named = f"; it names {', '.join(value.name)}" if value.name else ""
                self._tell("joints", f"{self._joint_states} is left out: {found}{named}")
                continue
            self._joints = found.or_zero()
            stamp_ns = stamp_ns_of(value.header)
            if stamp_ns == 0 or stamp_ns != self._stamp_ns:
                self._measured_ns = came_ns
            self._stamp_ns = stamp_ns

    def _tell(self, key: str, sentence: str) -> None:
        if key not in self._told:
            self._told.add(key)
            self._alerts = (*self._alerts, sentence)[-5:]
            log.warning("%s", sentence)
