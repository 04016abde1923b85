"""The guard as a pure state machine: commands, robot states and interrupts in, one safe command per tick out.

Time is passed in; nothing is published; nothing sleeps. Whatever is sent to it, and by whomever, its output is finite
and within every limit. Without a fresh command it brakes. The tables are in `nodes/guard/modes.py`; `tick` knows no
other way out than `OUTPUT` of its mode. All that decides besides the mode is a part with a table of its own: the latch,
the soft hold, the sources of commands, the way back, and the control of the body.

Names that end in `_ns` are times or durations of the run's monotonic clock. Joint positions are in m or rad, in the
order of `RobotLimits.joints`. The durations and counts below are design choices of this project, not values of a
standard.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodes.guard.command_sources import CommandSources
from nodes.guard.commanded_body import CommandedBody
from nodes.guard.conduct_watch import ConductWatch
from nodes.guard.immediate_faults import GuardSettings, Monitors
from nodes.guard.lasting_faults import RELAXES, TOUCHES, CommandedMotion
from nodes.guard.modes import CLOSED, OUTPUT, STOPPED, TRANSITIONS, Event
from nodes.guard.retreat import WayBack
from nodes.guard.soft_hold import SoftHold
from nodes.guard.space import Space
from nodes.guard.stop_latch import Latch, Refusal
from nodes.msgs import Cause, GuardMode, GuardState, Interrupt, JointCommand, RobotState, RobotStatus
from nodes.robot.protocol import RobotLimits
from runtime.clock import to_ns, to_s
from runtime.message import Stamped

SLOWED_NS = to_ns(0.5)
"""The reason for a slower motion stays in the report for this long, so that it does not flicker from tick to tick."""

LONGEST_TEXT = 1000
"""Most characters kept of a cause or an utterance, which is published ten times a second and saved with the latch."""

LEAVES_S = 0.6
"""A touch that was there when the way back began, and stays for longer than this, s, is behind the robot: it stops."""


class GuardMachine:
    """Decides at every tick which command may reach the motors of one robot.

    `limits` are hard: no output exceeds them. `settings` are those of the launch file. `space` limits the body as a
    whole. The caller passes the time of each call as `now_ns`; it never goes back.
    """

    def __init__(self, limits: RobotLimits, settings: GuardSettings | None = None, space: Space | None = None) -> None:
        self.limits = limits
        self.settings = settings or GuardSettings()
        self.mode: GuardMode = "disarmed"
        self.reason = "not armed"
        self.reason_text = ""  # its second part, behind who or what stopped the robot
        self.rejected = 0
        self.refusal = ""
        self.is_refusal_expected = False  # only because the guard is stopped, or else in a mode of `CLOSED`
        self.monitors = Monitors(limits, self.settings)
        self.conduct = ConductWatch(limits, self.settings.max_effort_percent)
        self.latch, self.hold, self.way_back = Latch(), SoftHold(), WayBack(limits)
        self.sources = CommandSources(limits, self.settings)
        self.body = CommandedBody(limits, self.settings, space or Space(limits), self.monitors)
        self._slowed = ("", -SLOWED_NS)  # why the robot goes slower than asked, and when it last did

    # inputs

    def update_state(self, state: RobotState) -> None:
        """Take in the newest measured state of the robot; one with missing or non-finite joint positions is ignored."""
        self.monitors.update_state(state)

    def update_status(self, status: RobotStatus) -> None:
        """Take in what the robot reports of itself: its mode and whether its runstop is pressed."""
        self.monitors.update_status(status)
        if status.is_runstopped:
            self.body.end_service()

    def check_monitors(self, now_ns: int) -> Cause:
        """Stop the robot for faults that begin now, and return who stopped it, or "" where nothing new did.

        Faults are: a pressed runstop, contact, lasting effort, a silent or lost driver, a command source that
        restarted, a guard that was frozen, and a blocked way back. Call this at every tick, before `check_conduct`.
        """
        is_engaged = self.body.is_engaged
        by, why = self.monitors.news(now_ns, is_engaged=is_engaged)
        if is_engaged and self.monitors.has_slept:
            self.body.zero_velocity()
        if not why and self.sources.restarted:
            by, why = "guard", f"{self.sources.restarted} was restarted"
        if not why and self.way_back.is_blocked:
            by, why = "guard", "the way back is not free; the next go on leads ahead"
        was_stopped, state = self.is_stopped, self.monitors.state
        if why and (not was_stopped or by == "runstop"):
            heard_ns = now_ns if state is None or by != "contact" else state.read_ns
            self.stop(by, why, heard_ns, now_ns)
        # Its posture is no longer known: nothing is told to it, and the next first target will be measured then.
        is_lost = self.monitors.is_runstopped or self.monitors.is_silent(now_ns) or self.monitors.lost != ""
        if is_lost and self.body.lose(now_ns):
            self.way_back.forget()
        return "" if was_stopped else by

    def check_conduct(self, now_ns: int) -> Cause:
        """Stop the robot for faults that last, and return which fault stopped it, or "" where none did.

        Faults are: a joint that does not follow its target, motion that nobody asked for, contact, effort, and a sensor
        that reports nothing. A fault that goes on after the stop sets `conduct.runstop_reason`, which asks for the
        robot's own runstop. The times are `LASTS_S` and `RUNSTOP_S`. Call this at every tick, after `check_monitors`.
        """
        is_watched = not (self.monitors.is_stale(now_ns) or self.monitors.is_runstopped or self.is_busy(now_ns))
        # On its way back it leaves what it touches; check_monitors stops for a new touch.
        is_leaving = self.mode == "retreating" and to_s(now_ns - self.way_back.begun_ns) <= LEAVES_S
        found = self.conduct.look(
            self.monitors.state if is_watched else None,
            self.commanded(),
            now_ns,
            is_stopped=self.is_stopped,
            but=TOUCHES if is_leaving else (),
        )
        if found is None or self.mode == "disarmed":
            return ""
        fault, why = found
        self.stop(fault, why, now_ns, now_ns)
        return fault

    def commanded(self) -> CommandedMotion:
        """The motion that the guard asks of the motors now: joint targets, and base velocity in m/s and rad/s."""
        return self.body.motion()

    def estop(self, why: str, now_ns: int) -> None:
        """Latch the emergency stop for the reason `why`; the next tick brakes."""
        self.sources.void(now_ns)
        if not self.is_stopped:
            self.body.stop_anew()
        self.latch.press(why, self.mode, now_ns)
        self._enter("estop", "emergency stop", self.latch.estop)

    def rearm(self, by: str, now_ns: int) -> bool:
        """Turn an emergency stop into an ordinary latched stop; False where there is no emergency stop.

        `by` names the authorised person, for the report. Motion still waits for a resume.
        """
        if self.mode != "estopped":
            return False
        self.sources.void(now_ns)
        self.latch.rearm(now_ns)
        self._enter("rearm", f"re-armed by {by}, waiting to be told to go on")
        return True

    def restore(self, stop: str, estop: str, now_ns: int, stoppers: Mapping[str, str] | None = None) -> None:
        """Take over what an earlier guard had latched when it ended: a stop, an emergency stop, and whose stops stand.

        `stop` and `estop` are the reasons, "" where nothing was latched.
        """
        if stop or estop:
            self.stop("guard", stop or estop, now_ns, now_ns, ident="restart")
        if estop:
            self.estop(estop, now_ns)
        self.latch.restore(stoppers or {})

    def arm(self, now_ns: int) -> bool:
        """Accept commands from now on, with the measured posture as the first target; False where the guard may not be
        armed.

        It may be armed only while it is disarmed, has a fresh robot state, and the robot is neither runstopped, busy
        nor lost.
        """
        state = self.monitors.state
        if self.mode != "disarmed" or state is None or self.monitors.is_stale(now_ns) or self.monitors.is_runstopped:
            return False
        if self.is_busy(now_ns) or self.monitors.lost:
            return False
        self.body.engage(state.position, now_ns)
        self.sources.void(now_ns)
        self.sources.reset()
        self._enter("arm", "armed, no command yet")
        return True

    def accept_command(self, stamped: Stamped[JointCommand], now_ns: int) -> str:
        """Take in a command and return why it is refused, or "" where it is accepted; call it once per message.

        An accepted command replaces the one before. It is checked again for its age at every tick in which it is
        applied.
        """
        refusal = self.sources.malformation(stamped)
        is_expected = not refusal and self.mode in CLOSED
        if is_expected:
            refusal = f"{stamped.envelope.source}: the guard is {self.mode}"
        if refusal := refusal or self.sources.refusal(stamped, now_ns):
            self.reject(refusal, is_expected=is_expected)
            return refusal
        self.sources.take(stamped)
        return ""

    def is_busy(self, now_ns: int) -> bool:
        """Whether the robot homes or stows, or was told to within the last `SERVICE_STARTS_NS`."""
        return self.monitors.is_in_service or self.body.is_in_service(now_ns)

    def needs_runstop(self, now_ns: int) -> bool:
        """Whether only the robot's own runstop can stop it now.

        That is so while the guard is stopped and the robot homes or stows, or while a fault goes on that it was stopped
        for.
        """
        is_needed = self.is_busy(now_ns) or self.conduct.runstop_reason != ""
        return self.is_stopped and is_needed and not self.monitors.is_runstopped

    def begin_service(self, now_ns: int) -> Refusal | None:
        """Let go of the robot so that it can home or stow; returns None, or why that is refused.

        It is refused unless the robot stands still, with a known state, and is neither stopped, runstopped nor busy.
        """
        if self.mode == "stopped" or self.mode == "estopped":  # as names of codes
            return Refusal(self.mode, f"the guard is {self.mode}")
        if self.monitors.is_runstopped:
            return Refusal("runstopped", "the robot's runstop is pressed")
        if self.mode in ("moving", "retreating") or not self.is_at_rest:
            return Refusal("moving", "the robot is under command")
        if self.is_busy(now_ns):
            return Refusal("busy", "the robot homes or stows already")
        if self.monitors.is_stale(now_ns):
            return Refusal("not_ready", "the robot's state is not known")
        self.sources.void(now_ns)
        if self.body.serve(now_ns):
            self.way_back.forget()
        self._enter("service", "the robot homes or stows")
        return None

    def stop(self, cause: Cause, why: str, heard_ns: int, now_ns: int, *, ident: str = "") -> None:
        """Latch a stop for a fault that the guard itself has found. It has no id until `name_stop`, so no words take it
        back.

        `why` is a sentence. `heard_ns` is the time of what caused it.
        """
        found = Interrupt(id=ident, depth="stop", text=why[:LONGEST_TEXT], by=cause, cause=cause)
        self.interrupt(found, heard_ns, now_ns)

    def interrupt(
        self, interrupt: Interrupt, heard_ns: int, now_ns: int, *, is_operator: bool = False
    ) -> Refusal | None:
        """Act on an interrupt of a person or a node; returns why a "resume" is refused, and None in every other case.

        A "stop" is latched, a "replan" and a "hold" brake, and a "resume" lifts a stop. A resume is refused where it
        names no person, where it was said before the stop or too long ago, and where another person's stop stands.
        `heard_ns` is the time of what caused the interrupt. `is_operator` says that the caller has verified a signed
        order, which lifts the stop of anybody. Braking begins with the next tick.
        """
        if interrupt.depth == "stop":
            heard_ns = min(heard_ns, now_ns)  # a clock that is ahead does not keep the robot stopped until then
            self.sources.void(now_ns)
            if interrupt.is_pain or interrupt.cause in RELAXES:
                self.way_back.touch()
            if self.mode != "stopped":
                self.body.stop_anew()
            if also := self.latch.stop(interrupt, heard_ns, self.mode):
                self.reason += f"; also stopped by {also}"
                self.reason_text += f"; also stopped by {also}"
            if not self.is_stopped:
                self._enter("stop", f"stopped by {interrupt.by or 'unknown'}", interrupt.text)
        elif interrupt.depth == "replan":
            self.sources.void(now_ns)
            self._hold_moving(f"waiting for a new plan: {interrupt.text}")
        elif interrupt.depth == "hold":
            if self.hold.ask(interrupt, self.mode, now_ns):  # a way back goes on by itself
                self._hold_moving(f"holding for a moment, not understood: {interrupt.text}")
        elif interrupt.depth == "resume":
            return self._resume(interrupt, heard_ns, now_ns, is_operator=is_operator)
        return None

    def _resume(self, interrupt: Interrupt, heard_ns: int, now_ns: int, *, is_operator: bool) -> Refusal | None:
        if not self.is_stopped:
            return Refusal("not_stopped", "nothing is stopped")
        is_runstopped = self.monitors.is_runstopped
        refusal = self.latch.refusal(interrupt, self.mode, heard_ns, now_ns, is_runstopped=is_runstopped)
        if refusal is None and not is_operator and self.latch.is_caught and self.body.may_hold_somebody(now_ns):
            refusal = Refusal("caught", "the gripper is not open yet")
        refusal = refusal or self.latch.withdraw(interrupt, self.mode, is_operator=is_operator)
        if refusal is not None:
            self.reject(f"resume by {interrupt.by or 'unknown'!r} refused: {refusal.why}")
            return refusal
        self.sources.void(now_ns)
        self.sources.reset()
        self.latch.open()
        if self.way_back.begin(now_ns, is_false_alarm=interrupt.takes_back != ""):
            self._enter("retreat", f"moving back slowly the way it came, resumed by {interrupt.by}")
        else:
            self._enter("resume" if self.body.is_engaged else "release", f"resumed by {interrupt.by}, no command yet")
        return None

    def transfer_control(self, holder: str, now_ns: int) -> None:
        """Give control to another command source: earlier commands are void, and the output goes on without a jump."""
        self.sources.void(now_ns)
        self.sources.reset()
        self._hold_moving(f"handed over to {holder or 'nobody'}, no command yet")

    def name_stop(self, ident: str) -> None:
        """Record the id under which the guard has published its own stop."""
        self.latch.cause = ident

    def reject(self, why: str, *, is_expected: bool = False) -> None:
        """Count a refused request and keep the reason for the report; `is_expected` where the mode alone refuses it."""
        self.rejected += 1
        self.refusal, self.is_refusal_expected = why, is_expected

    # output

    def tick(self, now_ns: int) -> JointCommand | None:
        """Compute the command that the driver may apply now; None while the guard is disarmed or has let go of the
        robot.

        Call it once per control period. A period that is longer than `longest_step_s` counts as that long, so a late
        tick moves no further. Joints are in m or rad, base velocity in m/s and rad/s.
        """
        output = OUTPUT.get(self.mode, "braking")
        body = self.body
        if not body.is_engaged or output == "nothing":
            if self.is_stopped:
                body.note_rest(now_ns)
            return None
        dt_s = body.begin_tick(now_ns)
        command = self._usable_command(now_ns) if output == "command" else None
        if command is not None:
            self._follow(command, dt_s, now_ns)
        elif output == "retreat":
            self._retreat(dt_s, now_ns)
        else:
            may_release = output == "release"
            relaxes, opens = may_release and self.way_back.is_touch, may_release and self.latch.is_caught
            body.brake(dt_s, now_ns, relaxes=relaxes, opens=opens)
        body.note_rest(now_ns)
        if self.monitors.state is not None and not self.monitors.is_stale(now_ns):
            self.way_back.note(self.monitors.state, dt_s)
        return body.command()

    def report(self) -> GuardState:
        """The guard's mode and its reason, to be published for everybody."""
        holder = self.sources.newest
        return GuardState(
            mode=self.mode,
            reason=self.reason,
            stopped_by=self.latch.by,
            holder="" if holder is None else holder.envelope.source,
            stop_cause=self.latch.cause,
            stop_heard_ns=self.latch.heard_ns,
            held_ns=self.body.held_ns,
            at_rest_ns=self.body.at_rest_ns,
            estop=self.latch.estop,
            is_armed=self.body.is_engaged,
            rejected=self.rejected,
            clamped=dict(self.sources.clamped),
            mistaken=dict(self.sources.mistaken),
        )

    def signature(self, now_ns: int) -> tuple[object, ...]:
        """All that decides about motion, each time as its order to now, for whoever searches the guard's states."""
        monitors = self.monitors
        return (
            self.mode, self.body.control, self.is_at_rest, self.hold.state(now_ns), self.is_busy(now_ns),
            self.way_back.signature, self.latch.signature, self.sources.signature, monitors.is_stale(now_ns),
            monitors.is_silent(now_ns), monitors.is_runstopped, monitors.lost != "",
        )  # fmt: skip

    @property
    def is_stopped(self) -> bool:
        """Whether a stop is latched, an emergency stop or another."""
        return self.mode in STOPPED

    @property
    def applied(self) -> Stamped[JointCommand] | None:
        """The command that the last tick applied; None where it braked."""
        return self.sources.newest

    @property
    def is_at_rest(self) -> bool:
        """Whether the commanded velocity of every joint and wheel is zero; the measured one may not be zero yet."""
        return self.body.is_at_rest

    # decisions

    def _usable_command(self, now_ns: int) -> Stamped[JointCommand] | None:
        """The command to apply at this moment; None, having entered the mode that goes with it, where there is none."""
        stamped = self.sources.newest
        if stamped is None or self.hold.is_on(now_ns):
            return None  # the newest command waits, and is checked again after a hold
        why = self.sources.staleness(stamped, now_ns)
        if not why and self.monitors.is_stale(now_ns):
            why = f"robot/state is older than {self.settings.max_state_age_s * 1e3:.0f} ms"
        if why:
            self.sources.newest = None
            self._hold_moving(why)
            return None
        return stamped

    def _follow(self, stamped: Stamped[JointCommand], dt_s: float, now_ns: int) -> None:
        """Take one step towards the command, as far as the body may go; hold where it can go nowhere."""
        if why := self.body.follow(stamped.message, dt_s, now_ns):
            self._slowed = (why, now_ns)
            if self.is_at_rest:
                self._hold_moving(f"kept still: {why}")
                return
        slowed, since_ns = self._slowed
        is_slowed = now_ns - since_ns < SLOWED_NS
        self._enter("command", f"commanded by {stamped.envelope.source}" + (f", slowed: {slowed}" if is_slowed else ""))

    def _retreat(self, dt_s: float, now_ns: int) -> None:
        """Take one step back along the way it came; hold at its end. With a stale robot state it waits."""
        if self.hold.is_on(now_ns) or self.monitors.is_stale(now_ns):
            self.body.brake(dt_s, now_ns)
            return
        step = self.way_back.step(dt_s)
        if step is None:
            self._enter("hold", "moved back, no command yet")
            self.body.brake(dt_s, now_ns)
        elif not self.body.go_back(step, dt_s, now_ns):
            self.way_back.block()  # the next check_monitors stops the robot

    def _hold_moving(self, why: str) -> None:
        """Hold a robot that follows a command; in any other mode there is none to hold."""
        if self.mode == "moving":
            self._enter("hold", why)

    def _enter(self, event: Event, reason: str, text: str | None = None) -> None:
        mode = TRANSITIONS.get((self.mode, event))
        if mode is None:
            self.sources.void(self.body.ticked_ns)
            reason, text = f"a fault of the guard: {self.mode} does not know the event {event}", None
            self.reject(reason)
            mode = "estopped" if self.mode == "estopped" else "stopped"
        self.mode, self.reason_text = mode, text or ""
        self.reason = reason if text is None else f"{reason}: {text}"
