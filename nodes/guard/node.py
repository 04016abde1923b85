"""`Guard`: the last node before the motors. A thin shell around the state machine; it ticks by itself at 50 Hz."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from nodes.guard.ceilings import limits_of
from nodes.guard.state_machine import GuardMachine, GuardSettings
from runtime import Node, Publisher, QoS, Subscription, every, on
from runtime.call import current_call
from runtime.errors import ParameterError
from runtime.message import Stamped
from runtime.msgs import GuardState, Interrupt, JointCommand, RobotState

RATE_HZ = 50
TICKS_PER_REPORT = 5
LONGEST_LIFESPAN_S = 0.5


class Guard(Node):
    """Lets the policy's commands through as fast as limits allow, brakes without one, and stops at once when told.

    A command may name a far target: joints go there at their limit speed and acceleration. `arm="auto"` arms as soon
    as the robot's posture is known, which is meant for a simulator; with "manual", the default, the guard stays
    disarmed, because nothing on the bus can arm it yet.
    """

    realtime = True

    command = Subscription(JointCommand, "command", qos=QoS(lifespan_s=0.150))
    state = Subscription(RobotState, "robot/state")
    interrupts = Subscription(Interrupt, "interrupt", qos=QoS(required=False))

    robot_command = Publisher(JointCommand, "robot/command")
    guard_state = Publisher(GuardState, "guard/state")

    def __init__(
        self,
        robot: str = "stretch_3",
        arm: Literal["auto", "manual"] = "manual",
        speed_scale: float = 1.0,
        lifespan_s: float = 0.150,
        max_image_age_s: float = 1.0,
    ) -> None:
        if arm not in ("auto", "manual"):
            raise ParameterError(f"guard: arm is {arm!r}; known: auto, manual")
        if not 0.0 < lifespan_s <= LONGEST_LIFESPAN_S:
            raise ParameterError(
                f"guard: lifespan_s is {lifespan_s}; expected more than 0 and at most {LONGEST_LIFESPAN_S}"
            )
        if not 0.0 < max_image_age_s < float("inf"):
            raise ParameterError(f"guard: max_image_age_s is {max_image_age_s}; expected a positive number of seconds")
        self.arm = arm
        self.machine = GuardMachine(
            limits_of(robot, speed_scale), GuardSettings(lifespan_s=lifespan_s, max_image_age_s=max_image_age_s)
        )
        # The port forgets a stale command too, so that no output inherits the age of one that was not applied.
        self.command.qos = replace(self.command.qos, lifespan_s=lifespan_s)
        self.ticks = 0
        self.offered = ("", -1)
        self.reported: GuardState | None = None
        self.logged_refusal = ""

    @every(hz=RATE_HZ)
    def tick(self) -> None:
        state = self.state.latest()
        if state is not None:
            self.machine.saw(state)
        if self.arm == "auto" and self.machine.mode == "disarmed":
            self.machine.arm(self.clock.now_ns())
        self._offer(self.command.stamped())
        self._output()
        self.ticks += 1
        self._report(is_due=self.ticks % TICKS_PER_REPORT == 1)

    @on(interrupts)
    def interrupted(self, interrupt: Interrupt) -> None:
        """Act at arrival: braking does not wait for the next tick."""
        now_ns = self.clock.now_ns()
        call = current_call.get()
        trigger = call.trigger if call is not None else None
        heard_ns = (trigger.envelope.utterance_ns or trigger.envelope.published_ns) if trigger is not None else now_ns
        self.machine.interrupt(interrupt, heard_ns, now_ns)
        if interrupt.depth in ("stop", "replan"):
            self._output()
        self._report(is_due=True)

    def _offer(self, stamped: Stamped[JointCommand] | None) -> None:
        if stamped is None or (stamped.envelope.source, stamped.envelope.seq) == self.offered:
            return
        self.offered = (stamped.envelope.source, stamped.envelope.seq)
        self.machine.offer(stamped, self.clock.now_ns())

    def _output(self) -> None:
        command = self.machine.tick(self.clock.now_ns())
        if command is not None:
            self.robot_command.publish(command)

    def _report(self, *, is_due: bool) -> None:
        report = self.machine.report()
        before = self.reported
        is_news = before is None or (before.mode, before.reason) != (report.mode, report.reason)
        if is_news:
            self.log.info("%s: %s", report.mode, report.reason)
        if is_due and self.machine.refusal != self.logged_refusal:  # not at every tick: a flood is logged in drips
            self.logged_refusal = self.machine.refusal
            self.log.warning("refused: %s (%d so far)", self.machine.refusal, self.machine.rejected)
        if is_due or is_news:
            self.reported = report
            self.guard_state.publish(report)
