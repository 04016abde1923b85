"""`LeRobotHandTeleop`: a gamepad of LeRobot's holds the policy's seat: it says where the hand goes, not each joint.

LeRobot's `gamepad` and `keyboard_ee` give delta_x, delta_y, delta_z (ahead, left, up; -1 to 1) and gripper (0 closes, 2
opens). The robot's own kinematics make joints of them, and its guard limits these.
"""

from __future__ import annotations

from bridges.lerobot.device import LeRobotDevice, Setting
from nodes.msgs import GuardState, JointCommand, JointVector, RobotState
from nodes.robot.protocol import RobotError, Twist
from nodes.robot.robot_from_launch import DEFAULT, ForRobot, load_hand, load_limits
from nodes.seats.seat_node import Seated
from runtime import ParameterError, Publisher, QoS, Subscription, UserError, every, needs_real_time, on, to_s

STALE_S = 0.2
"""What was held longer ago than this is no command."""
HZ = 50
LEAD_S = 0.3
"""How far ahead of where a joint is its goal may be, by its speed."""
FASTEST_MPS = 0.5
LET_GO = 0.05
AXES = ("delta_x", "delta_y", "delta_z")
GRIPPER = "gripper"


class LeRobotHandTeleop(ForRobot, Seated):
    """`device` is LeRobot's type of the gamepad, with its `settings`; at its end it moves the hand by `hand_mps`.

    `hand` names the kinematics, a `nodes.robot.protocol:Hand`; otherwise they are those of the robot file that `[run]
    robot` names. Nothing moves before everything was let go of once: at the start, and after each stop.
    """

    robot_parameter = "limits"
    seat = "policy"
    provenance = "person:gamepad"

    state = Subscription(RobotState, "robot/state", qos=QoS(lifespan_s=0.25))
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))
    command = Publisher(JointCommand, "command")

    def __init__(
        self,
        device: str,
        settings: dict[str, Setting] | None = None,
        python: str = "",
        hand: str = "",
        hand_mps: float = 0.1,
        limits: str = "",
    ) -> None:
        if not 0.0 < hand_mps <= FASTEST_MPS:
            raise ParameterError(f"hand_mps is {hand_mps}; expected more than 0 and at most {FASTEST_MPS:g} m/s")
        self.link = LeRobotDevice("hand", device, settings or {}, python)
        self.hand_mps = hand_mps
        self.joints = load_limits(limits or DEFAULT).joints
        self.hand = load_hand(limits, hand)
        self.goal: JointVector = ()  # empty: to begin from where the arm is
        self.is_ready = False
        self.told = ""

    def libraries(self) -> tuple[str, ...]:
        """LeRobot's own, where there is no environment that has it."""
        return self.link.libraries()

    def on_start(self) -> None:
        """Connect it. Raises UserError where it is not there."""
        needs_real_time(self, "a gamepad")
        try:
            self.link.open()
        except RobotError as problem:
            raise UserError(f"node {self.name}: {problem}") from problem

    def on_stop(self) -> None:
        """Let go of it."""
        self.link.close()

    def on_seat(self) -> None:
        """Whoever moved the arm before, it begins anew."""
        self.goal, self.is_ready = (), False

    @on(guard)
    def guarded(self, guard: GuardState) -> None:
        """After a stop, likewise."""
        if guard.is_stopped:
            self.goal, self.is_ready = (), False

    @every(hz=HZ)
    def follow(self) -> None:
        """Move the hand as is held; stand where nothing is."""
        now_ns, reading, state = self.clock.now_ns(), self.link.exchange(), self.state.latest()
        lacking = [axis for axis in AXES if axis not in reading.at]
        if state is None or lacking or to_s(now_ns - reading.ns) > STALE_S:
            self.goal, self.is_ready = (), False
            why = "the arm says nothing" if state is None else "the gamepad says nothing"
            self._tell(self.link.why_silent(now_ns) or why)
            return
        held = [max(-1.0, min(1.0, reading.at[axis])) for axis in AXES]
        grips = max(-1.0, min(1.0, reading.at.get(GRIPPER, 1.0) - 1.0))
        self.is_ready = self.is_ready or max(map(abs, (*held, grips))) < LET_GO
        self._tell("the hand follows" if self.is_ready else "let go of everything once, and the hand follows")
        if not self.is_ready:
            held, grips = [0.0, 0.0, 0.0], 0.0
        self.command.publish(self._step(state.position, Twist(*(self.hand_mps * one for one in held)), grips))

    def _step(self, at: JointVector, twist: Twist, grips: float) -> JointCommand:
        """The goals of the next tick: all joints slower by one share where one of them could not follow."""
        goal = self.goal or at
        rates, base_mps = self.hand.rates(goal, twist)
        rates |= {joint.name: grips * joint.speed for joint in self.joints if joint.name == GRIPPER and grips}
        share = max([1.0, *(abs(rates.get(joint.name, 0.0)) / joint.speed for joint in self.joints)])
        self.goal = tuple(
            min(
                max(now + rates.get(joint.name, 0.0) / share / HZ, here - LEAD_S * joint.speed, joint.lowest),
                here + LEAD_S * joint.speed,
                joint.highest,
            )
            for joint, now, here in zip(self.joints, goal, at, strict=True)
        )
        return JointCommand(position=self.goal, base_v_mps=base_mps / share)

    def _tell(self, what: str) -> None:
        if self.told != what:
            self.told = what
            self.log.info("%s", what)
