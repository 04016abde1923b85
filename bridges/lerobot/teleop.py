"""`LeRobotTeleop`: any teleoperator of LeRobot's that gives the arm's own joints holds the policy's seat.

A leader that stands elsewhere than the arm moves nothing: the person brings it near first, and `leader` tells how far
each joint is still away. So it is whenever this node receives its seat, and after each stop.
"""

from __future__ import annotations

from bridges.lerobot.device import DeviceHello, LeRobotDevice, Setting
from bridges.lerobot.facts import LeRobotFacts, read_facts
from nodes.msgs import GuardState, JointCommand, JointVector, RobotState
from nodes.robot.protocol import RobotError
from nodes.robot.robot_from_launch import ForRobot
from nodes.seats.seat_node import Seated
from runtime import Message, ParameterError, Publisher, QoS, Subscription, UserError, every, needs_real_time, on, to_ns

STALE_S = 0.2
"""Where the leader was longer ago than this is no command."""
AHEAD_S = 0.15
"""So long a goal of the leader's motors counts, and so far ahead it is by their speed."""
LARGEST = 1.0
FASTEST = 2.0


class LeaderState(Message, kind="state"):
    """Whether the leader leads, and how far each joint of it is from the arm's, m or rad."""

    is_engaged: bool
    away: JointVector = ()
    why: str = ""


class LeRobotTeleop(ForRobot, Seated):
    """`facts` is the file of the arm that is led, `device` is LeRobot's type of the leader, with its `settings`.

    It leads once every joint is within `tolerance` (rad, and a tenth of it in m) of the arm's. What the arm's joints
    are called is taken from `facts`: a leader without one of them is refused.

    A leader with motors is brought there by them, where `motor_speed` says how fast they may be (rad/s, and a tenth of
    it in m/s; 0: they stay limp). They let go once it leads, and where the robot is stopped or nobody says where it is.
    """

    seat = "policy"
    provenance = "person:leader"

    state = Subscription(RobotState, "robot/state", qos=QoS(lifespan_s=0.25))
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))
    command = Publisher(JointCommand, "command")
    leader = Publisher(LeaderState, "leader")

    def __init__(
        self,
        facts: str,
        device: str,
        settings: dict[str, Setting] | None = None,
        python: str = "",
        tolerance: float = 0.1,
        motor_speed: float = 0.0,
    ) -> None:
        if not 0.0 <= motor_speed <= FASTEST:
            raise ParameterError(f"leader: motor_speed is {motor_speed}; expected 0 to {FASTEST:g} rad/s")
        if not 0.0 < tolerance <= LARGEST:
            raise ParameterError(f"leader: tolerance is {tolerance}; expected more than 0 and at most {LARGEST:g} rad")
        self.facts_file, self.kind, self.tolerance = facts, device, tolerance
        self.link = LeRobotDevice("teleoperator", device, settings or {}, python)
        self.facts: LeRobotFacts | None = None
        self.motor_speed = motor_speed
        self.is_stopped = True  # until the guard says otherwise: motors move nothing before
        self.is_engaged = False
        self._told: tuple[bool, str] | None = None

    def problems(self) -> list[str]:
        """What is wrong with the file of facts; the leader is not connected."""
        try:
            read_facts(self.facts_file)
        except UserError as problem:
            return [str(problem)]
        return []

    def libraries(self) -> tuple[str, ...]:
        """LeRobot's own, where there is no environment that has it."""
        return self.link.libraries()

    def on_start(self) -> None:
        """Connect the leader. Raises UserError where it is not there, or has other joints."""
        needs_real_time(self, "a leader")
        self.facts = read_facts(self.facts_file)
        try:
            hello = self.link.open()
        except RobotError as problem:
            raise UserError(f"node {self.name}: {problem}") from problem
        if why := self._why_not(hello, self.facts):
            self.link.close()
            raise UserError(f"node {self.name}: {self.kind} {why}")
        if self.motor_speed and not hello.motors:
            self.link.close()
            raise UserError(f"node {self.name}: {self.kind} has no motors that take goals; leave out motor_speed")

    @staticmethod
    def _why_not(hello: DeviceHello, facts: LeRobotFacts) -> str:
        """Why this leader cannot lead that arm, as a sentence that continues; "" where it can."""
        if not hello.calibrated:
            return "is not calibrated on this machine: run lerobot-calibrate with the same id"
        keys = [joint.key for joint in facts.joints.values()]
        if lacking := [key for key in keys if key not in hello.joints]:
            has = ", ".join(hello.joints) or "none"
            return f"has no {', '.join(lacking)}, by which {facts.type} is moved; it has {has}"
        return ""

    def on_stop(self) -> None:
        """Let go of the leader."""
        self.link.close()

    def on_seat(self) -> None:
        """Whoever led before, the person brings the leader to the arm first."""
        self.is_engaged = False

    @on(guard)
    def guarded(self, guard: GuardState) -> None:
        """After a stop, likewise: the leader may have gone on."""
        self.is_stopped = guard.is_stopped or guard.mode not in ("armed", "moving")
        if guard.is_stopped:
            self.is_engaged = False

    @every(hz=50)
    def follow(self) -> None:
        """Lead the arm, where the leader is where the arm is."""
        now_ns = self.clock.now_ns()
        reading, state, facts = self.link.exchange(), self.state.latest(), self.facts
        wanted = facts.ours(reading.at) if facts is not None else None
        if wanted is None or facts is None or self.clock.since_s(reading.ns) > STALE_S:
            self._lose(self.link.why_silent(now_ns) or "the leader says nothing")
            return
        if state is None or len(state.position) != len(wanted):
            self._lose("the arm says nothing")
            return
        away = tuple(one - other for one, other in zip(wanted, state.position, strict=True))
        if not self.is_engaged:
            far = [
                name
                for (name, joint), by in zip(facts.joints.items(), away, strict=True)
                if abs(by) > self.tolerance * (1.0 if joint.unit == "rad" else 0.1)
            ]
            self.is_engaged = not far
            if far:
                self._bring(facts, wanted, state.position)
                self._tell(f"bring the leader to the arm: {', '.join(far)}", away)
                return
        self._tell("", away)
        self.command.publish(JointCommand(position=wanted))

    def _bring(self, facts: LeRobotFacts, at: JointVector, there: JointVector) -> None:
        """Have its motors go towards the arm, within their speed; nothing where they are to stay limp."""
        if not self.motor_speed or self.is_stopped:
            return
        goal = []
        for joint, now, arm in zip(facts.joints.values(), at, there, strict=True):
            most = self.motor_speed * AHEAD_S * (1.0 if joint.unit == "rad" else 0.1)
            goal.append(min(max(arm, now - most, joint.lowest), now + most, joint.highest))
        self.link.exchange(facts.theirs(tuple(goal)), until_ns=self.clock.now_ns() + to_ns(AHEAD_S))

    def _lose(self, why: str) -> None:
        self.is_engaged = False
        self._tell(why, ())

    def _tell(self, why: str, away: JointVector) -> None:
        self.leader.publish(LeaderState(is_engaged=self.is_engaged, away=away, why=why))
        if self._told != (self.is_engaged, why):
            self._told = (self.is_engaged, why)
            self.log.info("%s", why or "the leader leads")
