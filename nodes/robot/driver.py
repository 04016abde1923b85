"""`Driver`: the only node that talks to the robot. It obeys the guard in its process and nobody else."""

from __future__ import annotations

import importlib
import inspect
from typing import cast

from nodes.msgs import JOINTS, DriverOrder, GuardState, JointCommand, JointVector, RobotMode, RobotState, RobotStatus
from nodes.robot.protocol import Robot, RobotError, RobotLimits, is_complete
from nodes.robot.robot_from_launch import ForRobot, claim_of, joint_names, load_limits
from runtime import ALONE, Node, Publisher, QoS, Subscription, UserError, every, needs_real_time, on

Parameter = int | float | str | bool

METHODS = ("start", "read", "status", "command", "advance", "stop", "home", "stow", "runstop", "close")
"""The methods that a driver calls of a `Robot`."""
COMMAND_LIFESPAN_S = 0.15
ORDER_LIFESPAN_S = 2.0
BESIDE = QoS(required=False, in_process=True, lifespan_s=ORDER_LIFESPAN_S)
"""Orders of the guard reach the driver within their process, through no socket, so that nobody else can send them."""
TICKS_PER_STATUS = 10
MOST_TOLD = 8
BRAKES_TICKS = 100
"""Two seconds at 50 Hz: twice what the base of a Stretch takes to brake, four times what its lift does."""
CUT = 1e-3
"""A speed that is cut by less, m/s or rad/s, is not worth a word."""

SIMULATED = "nodes.sim.robot:SimRobot"


class Driver(ForRobot, Node):
    """Applies the newest command while it is fresh, stops the robot otherwise, and publishes the measured state at 50
    Hz.

    `robot` names a class that implements the `Robot` protocol, as "module:Class"; `robot_params` are its arguments.
    `limits` names the limits that its guard uses, as "module:NAME", from `[run] robot` of the launch file ("": a
    Stretch). A command is fresh for 0.15 s. The guard must run in the same process. Homing and stowing come on one
    topic and the runstop on another, because homing may take half a minute and a runstop must not wait.
    """

    realtime = True
    robot_parameter = "limits"
    fixed = frozenset({"control", "robot/command", "robot/state", "robot/status", "driver/service", "driver/runstop"})
    thread_safe = ("robot",)

    command = Subscription(JointCommand, "robot/command", qos=QoS(in_process=True, lifespan_s=COMMAND_LIFESPAN_S))
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False, in_process=True))
    service = Subscription(DriverOrder, "driver/service", qos=BESIDE)
    button = Subscription(DriverOrder, "driver/runstop", qos=BESIDE)
    state = Publisher(RobotState, "robot/state", qos=ALONE)
    status = Publisher(RobotStatus, "robot/status", qos=ALONE)

    def __init__(
        self,
        robot: str = SIMULATED,
        robot_params: dict[str, Parameter] | None = None,
        limits: str = "",
    ) -> None:
        self._robot_name = robot
        self._limits = limits
        self._joints = joint_names(load_limits(limits)) if limits else JOINTS
        self._brake = Brake(self._joints)
        self._due = Brake(self._joints)  # what a guard may ask that brakes from its own word at the first look
        self._met_ns: int | None = None  # when that word was said, or that it is stopped
        self._robot_params = dict(robot_params or {})
        self._is_commanded = False
        self._read: RobotState | None = None
        self._is_cut = False
        self._ticks = 0
        self._told = ("", "")
        self._mode: RobotMode | None = None
        self._losses: list[str] = []
        self.robot: Robot | None = None

    def problems(self) -> list[str]:
        """Sentences on what is wrong with the robot's class or its arguments; the robot is neither made nor moved."""
        robot = self._robot_name
        if robot == SIMULATED:
            return []  # a check need not load its physics
        try:
            found = robot_class(robot)
        except UserError as problem:
            return [str(problem)]
        lacking = [name for name in METHODS if not callable(getattr(found, name, None))]
        if lacking:
            return [f"robot {robot!r} is no robot: it lacks {', '.join(lacking)}; docs/new-robot.md says what one does"]
        try:
            inspect.signature(found).bind(**self._robot_params)
        except TypeError as problem:
            return [f"robot {robot!r} does not take these robot_params: {problem}"]
        if not isinstance(getattr(found, "is_hardware", None), bool):
            return [
                f"robot {robot!r} does not say whether it is a real one, and counts as one; write is_hardware = True "
                "into its class, or False where it is simulated"
            ]
        own = getattr(found, "limits", None)  # of the class where it knows them before it is started
        if isinstance(own, RobotLimits) and joint_names(own) != self._joints:
            return [_others(robot, own, self._joints)]
        return []

    def devices(self) -> tuple[str, ...]:
        """The name of the robot where it is real hardware; empty where it is simulated."""
        if self._robot_name == SIMULATED:
            return ()
        return (claim_of(self._limits),) if is_real(robot_class(self._robot_name)) else ()

    def libraries(self) -> tuple[str, ...]:
        """The libraries that the robot's class needs: its attribute `libraries`, or what that function returns."""
        try:
            found = getattr(robot_class(self._robot_name), "libraries", ())
        except UserError:
            return ()  # `problems` tells it
        return cast(tuple[str, ...], found() if callable(found) else found)

    def on_start(self) -> None:
        """Connect to the robot, which never moves it.

        Raises UserError for a real robot in virtual time, and where its joints differ from those of the guard. Raises
        RobotError where the robot cannot be reached.
        """
        if is_real(robot_class(self._robot_name)):
            simulated = 'with a simulated one, such as "nodes.sim.kinematic:KinematicRobot"'
            needs_real_time(self, f"robot {self._robot_name!r} is a real one and", simulated)
        self.robot = make_robot(self._robot_name, self._robot_params)
        self.robot.start(self.clock.now_ns())
        own = getattr(self.robot, "limits", None)
        if isinstance(own, RobotLimits) and joint_names(own) != self._joints:
            raise UserError(f"node {self.name}: {_others(self._robot_name, own, self._joints)}")

    def on_stop(self) -> None:
        """Stop the robot and release it."""
        if self.robot is None:
            return
        try:
            self.robot.stop()
        finally:  # closing is what lets go of the motors, and of the robot for the next run
            self.robot.close()

    @every(hz=50)
    def control(self) -> None:
        """Advance the robot's time, read it, publish its state, and apply the newest command or stop."""
        if self.robot is None:
            return
        try:
            self._look(self.robot)
        finally:  # a robot that cannot be read brakes as the guard says, and is not left at its last speed
            self._obey(self.robot)

    def _look(self, robot: Robot) -> None:
        robot.advance(self.clock.now_ns())
        self._read = robot.read(self.clock.now_ns())
        self.state.publish(self._read)
        self._ticks += 1
        status = robot.status(self.clock.now_ns())
        if self._ticks % TICKS_PER_STATUS == 1 or status.mode != self._mode:
            self._tell(status)  # a change at once: the guard lets go of a robot that is pressed to stand, or that homes
        if status.mode == "lost" and self._mode not in (None, "lost") and len(self._losses) < MOST_TOLD:
            self._losses.append(f"the robot was lost{f': {status.why}' if status.why else ''}")
        self._mode = status.mode

    def losses(self) -> list[str]:
        """Each time that the robot was lost after it had been there."""
        return self._losses

    def _obey(self, robot: Robot) -> None:
        # None once it is older than its lifespan. What is measured does not stem from it, so it hands on no age.
        stamped = self.command.peek()
        command = stamped.message if stamped is not None else None
        is_usable = command is not None and is_complete(command, len(self._joints))
        if stamped is not None and command is not None and is_usable:
            robot.command(self._allowed(command, stamped.envelope.published_ns))
        else:
            self._brake.forget()
            robot.stop()
        if is_usable is not self._is_commanded:
            self._is_commanded = is_usable
            self.log.info("commands arrive" if is_usable else "no usable command: the robot stands still")

    def _allowed(self, asked: JointCommand, asked_ns: int) -> JointCommand:
        """The command, or what is left of it while the guard says that the robot is stopped."""
        guard, read = self.guard.peek(), self._read  # not read: what is measured does not stem from what is asked
        if read is None or len(read.position) != len(asked.position):
            return asked
        is_stopped = guard is not None and guard.message.is_stopped
        told = self._brake.apply(asked, read.position, is_stopped=is_stopped)
        if guard is None or not is_stopped:
            self._met_ns = None
        elif self._met_ns is None:
            self._met_ns = max(asked_ns, guard.envelope.published_ns)
        # A guard that brakes is no faster than at the first look; one that has let go of the robot asks no more.
        is_since = self._met_ns is not None and asked_ns > self._met_ns
        due = self._due.apply(asked, read.position, is_stopped=is_since)
        is_cut = abs(due.base_v_mps - asked.base_v_mps) + abs(due.base_w_radps - asked.base_w_radps) > CUT
        if is_cut and not self._is_cut:
            self.log.error("the guard is stopped, and asks for motion all the same: the robot only brakes")
        self._is_cut = is_cut
        return told

    @on(service, blocking=True)
    def serve(self, order: DriverOrder) -> None:
        """Home or stow, on a thread of its own, because that blocks on a real robot."""
        robot = self.robot
        if robot is None:
            return
        try:
            robot.home() if order.verb == "home" else robot.stow()
        except RobotError as problem:
            self.log.warning("%s, %s, refused by the robot: %s", order.verb, order.why, problem)

    @on(button)
    def press(self, order: DriverOrder) -> None:
        """Press or release the robot's own runstop."""
        if self.robot is not None:
            self.robot.runstop(order.verb == "runstop")

    def _tell(self, status: RobotStatus) -> None:
        self.status.publish(status)
        before, self._told = self._told, (status.mode, status.why)
        if before != self._told and (status.mode != "ready" or before[0]):
            self.log.info("robot: %s%s", status.mode, f": {status.why}" if status.why else "")


class Brake:
    """What a stopped robot may be told, whatever its guard asks: wheels brake, joints brake or come back.

    No speed of the base grows or turns round, and all are zero after `BRAKES_TICKS`. A target comes nearer to where its
    joint is measured, or goes on by half of what it would in that time at the speed at which the stop met it; else it
    stays. A gripper may open.
    """

    def __init__(self, joints: tuple[str, ...]) -> None:
        self._joints = joints
        self._last: JointCommand | None = None
        self._steps: tuple[float, ...] = ()
        self._room: tuple[float, ...] | None = None  # of each joint, since the stop
        self._left = BRAKES_TICKS

    def forget(self) -> None:
        """Nothing was told to the robot: it stands."""
        self._last, self._room = None, None

    def apply(self, asked: JointCommand, measured: JointVector, *, is_stopped: bool) -> JointCommand:
        """The command that the robot is told now."""
        last = self._last or JointCommand(position=measured)
        told = self._braked(asked, last, measured) if is_stopped else asked
        self._room = self._room if is_stopped else None
        self._steps = tuple(abs(new - old) for new, old in zip(told.position, last.position, strict=True))
        self._last = told
        return told

    def _braked(self, asked: JointCommand, last: JointCommand, measured: JointVector) -> JointCommand:
        keeps = self._left / (self._left + 1)  # in even steps to zero
        self._left = max(self._left - 1, 0)
        if self._room is None:
            self._left, keeps = BRAKES_TICKS - 1, 1.0  # a guard that stops between two ticks has not braked yet
            self._room = tuple(BRAKES_TICKS / 2 * step for step in self._steps) or (0.0,) * len(measured)
        position, room = [], []
        for name, new, old, here, left in zip(
            self._joints, asked.position, last.position, measured, self._room, strict=True
        ):
            is_back = abs(new - here) <= abs(old - here) or (name == "gripper" and new > old)
            position.append(new if is_back or abs(new - old) <= left else old)
            room.append(left if is_back else max(left - abs(new - old), 0.0))
        self._room = tuple(room)
        return JointCommand(
            position=tuple(position),
            base_v_mps=_slower(asked.base_v_mps, last.base_v_mps, keeps),
            base_w_radps=_slower(asked.base_w_radps, last.base_w_radps, keeps),
            base_vy_mps=_slower(asked.base_vy_mps, last.base_vy_mps, keeps),
        )


def _slower(new: float, old: float, keeps: float) -> float:
    return min(max(new, min(keeps * old, 0.0)), max(keeps * old, 0.0))


def _others(robot: str, limits: RobotLimits, joints: tuple[str, ...]) -> str:
    return (
        f"robot {robot!r} has the joints {', '.join(joint_names(limits))}, but its guard is told of "
        f"{', '.join(joints)}; name the limits of this very robot in [run] robot"
    )


def robot_class(name: str) -> type[Robot]:
    """The class that "module:Class" names. Raises UserError where it cannot be loaded."""
    module_name, _, class_name = name.partition(":")
    try:
        return cast(type[Robot], getattr(importlib.import_module(module_name), class_name))
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f'robot {name!r} cannot be loaded: {error}; expected "module:Class"') from error


def is_real(robot: type[Robot]) -> bool:
    """Whether the class stands for real hardware; one that does not set `is_hardware` to False counts as real."""
    return getattr(robot, "is_hardware", True) is not False


def make_robot(name: str, params: dict[str, Parameter]) -> Robot:
    """The robot that "module:Class" names, made with these arguments.

    Raises UserError where the class cannot be loaded, or the arguments do not fit.
    """
    try:
        return robot_class(name)(**params)
    except TypeError as error:
        raise UserError(f"robot {name!r} does not take these robot_params: {error}") from error
