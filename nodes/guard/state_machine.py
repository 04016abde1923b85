"""The guard as a pure state machine: commands, robot states and interrupts in, one safe command per tick out.

Time is passed in; nothing is published; nothing sleeps. Whatever is sent to it, and by whomever, its output is finite
and within every limit. Without a fresh command it brakes. `TRANSITIONS` lists the modes and the events that lead from
one to another. `OUTPUT` says what may leave in each mode, and `tick` knows no other way out. An event that a mode does
not know is a fault of this program: the robot is stopped, and it is told.

Names that end in `_ns` are times or durations of the run's monotonic clock. Joint positions are in m or rad, in the
order of `RobotLimits.joints`. The durations and counts below are design choices of this project, not values of a
standard.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal, NamedTuple

from nodes.guard.base_motion import BaseWatch
from nodes.guard.lasting_faults import LASTS_S, RELAXES, RUNSTOP_S, TOUCHES, CommandedMotion, Conduct
from nodes.guard.monitors import FUTURE_NS, GuardSettings, Monitors, is_whole
from nodes.guard.motion_profile import Motion, Wheels, base_velocity, brake, drive, toward
from nodes.guard.release import Release
from nodes.guard.retreat import SHARE, WayBack
from nodes.guard.space import BodyMotion, Space
from nodes.robot.protocol import RobotLimits
from runtime.clock import to_ns, to_s
from runtime.message import UNKNOWN_NS, Envelope, Stamped
from runtime.msgs import Cause, GuardState, Interrupt, JointCommand, RobotState, RobotStatus
from runtime.msgs.robot import AnswerCode

Mode = Literal["disarmed", "armed", "moving", "holding", "retreating", "stopped", "estopped"]
Event = Literal["arm", "command", "hold", "service", "retreat", "stop", "resume", "release", "estop", "rearm"]

TRANSITIONS: dict[tuple[Mode, Event], Mode] = {
    ("disarmed", "arm"): "armed",  # the only way in; needs a measured posture, which becomes the first target
    ("disarmed", "stop"): "stopped",
    ("disarmed", "service"): "disarmed",  # a robot is homed before anybody arms its guard
    ("armed", "command"): "moving",
    ("armed", "stop"): "stopped",
    ("moving", "command"): "moving",
    ("moving", "hold"): "holding",  # no usable command, no fresh robot state, or a replan
    ("moving", "stop"): "stopped",
    ("holding", "command"): "moving",
    ("holding", "stop"): "stopped",
    ("armed", "service"): "disarmed",  # the robot homes or stows by itself; its posture is new afterwards
    ("holding", "service"): "disarmed",
    ("stopped", "retreat"): "retreating",  # by a person, after pain or contact: slowly back
    ("retreating", "hold"): "holding",
    ("retreating", "stop"): "stopped",
    ("retreating", "estop"): "estopped",
    ("stopped", "stop"): "stopped",  # latched: commands, silence and time change nothing
    ("stopped", "resume"): "holding",  # by a person, after the stop
    ("stopped", "release"): "disarmed",  # as resume, for a guard without control of the robot
    ("disarmed", "estop"): "estopped",
    ("armed", "estop"): "estopped",
    ("moving", "estop"): "estopped",
    ("holding", "estop"): "estopped",
    ("stopped", "estop"): "estopped",
    ("estopped", "estop"): "estopped",  # latched, over restarts too: no words resume it
    ("estopped", "rearm"): "stopped",  # by an authorised person; motion still waits for a resume
}

Output = Literal["nothing", "braking", "release", "retreat", "command"]

OUTPUT: dict[Mode, Output] = {
    "disarmed": "nothing",
    "armed": "command",
    "moving": "command",
    "holding": "command",
    "retreating": "retreat",
    "stopped": "release",  # braking; what touches or holds somebody lets go
    "estopped": "braking",
}
"""What may leave in each mode, at most: each also brakes where it has nothing to do, and nothing leaves while the guard
has let go of the robot. A mode that is missing here brakes.
"""

CLOSED = tuple(mode for mode, output in OUTPUT.items() if output != "command")
"""Modes in which every command is refused. A policy that keeps sending commands meanwhile commits no fault."""

CROWD = "many"
"""Stands for everybody who stopped the robot after the first `MOST_STOPPERS`; only an operator lifts such a stop."""
MOST_STOPPERS = 16
NOBODY = "/"
"""Begins the key of a stop that no person has made, by a page's button, a tool or a bridge; no person has such one."""

MOST_SOURCES = 16
"""How many command sources are remembered between two decisions of a person; commands of further ones are refused.

The bound keeps invented names from filling the memory.
"""

FASTEST_SPEED = 100.0
"""Largest base velocity that a command may ask for, m/s or rad/s; a command beyond it is refused as a mistake."""

RANGE_SHARE, RANGE_MARGIN = 0.1, 0.05
"""A target further outside a joint's range than this share of it, and this much in m or rad, is a mistake, such as
degrees for radians. One within is followed to the end of the range, and counted.
"""

EDGE = 1e-6
"""A target that is no further beyond a range is at its end, by rounding."""

RESTARTED_NS = to_ns(0.5)
"""A source that was silent for this long may restart its sequence numbers; a person must then let it drive again."""

GO_ON_NS = to_ns(5.0)
"""A request to resume is valid for this long after it was said; whoever said it may look elsewhere by then."""

LONGEST_HOLD_NS = to_ns(1.5)
"""A soft hold ends by itself after this time at the latest. It waits for a second judgement, and is no stop."""

SLOWED_NS = to_ns(0.5)
"""The reason for a slower motion stays in the report for this long, so that it does not flicker from tick to tick."""

SLEPT_NS = to_ns(1.0)
"""A guard that was not called for longer than this stops the robot: it does not know what happened meanwhile."""

LONGEST_TEXT = 1000
"""Most characters kept of a cause or an utterance, which is published ten times a second and saved with the latch."""

GRIPPER = "gripper"
"""Name of the joint that may hold a person; a larger position is a wider opening."""
CLOSED_SHARE = 0.1
"""Share of the gripper's range; a gripper that is further than this from fully open may still hold somebody."""

LEAVES_S = 0.6
"""A touch that was there when the way back began, and stays for longer than this, s, is behind the robot: it stops."""

SERVICE_STARTS_NS = to_ns(0.5)
"""For this long after homing or stowing was accepted the robot counts as busy with it, whatever its status says."""


STUCK = "it shows one picture while the robot moves"


class Refusal(NamedTuple):
    """Why a request is refused: a code for programs, a sentence for people."""

    code: AnswerCode
    why: str


@dataclass(slots=True)
class _Source:
    seq: int
    published_ns: int


class GuardMachine:
    """Decides at every tick which command may reach the motors of one robot.

    `limits` are hard: no output exceeds them. `settings` are those of the launch file. `space` limits the body as a
    whole. The caller passes the time of each call as `now_ns`; it never goes back.
    """

    def __init__(self, limits: RobotLimits, settings: GuardSettings | None = None, space: Space | None = None) -> None:
        self.limits = limits
        self.space = space or Space(limits)
        self.settings = settings or GuardSettings()
        self.mode: Mode = "disarmed"
        self.reason = "not armed"
        self.reason_text = ""  # its second part, behind who or what stopped the robot
        self.stop_cause = ""
        self.stopped_by = ""
        self.stop_heard_ns = 0
        self.held_ns = 0
        self.rejected = 0
        self.clamped: dict[str, int] = {}  # by source: commands a little beyond a joint's range
        self.mistaken: dict[str, int] = {}  # and far beyond
        self.is_picture_stuck = False  # the robot's camera shows one picture where it must show another
        self.refusal = ""
        self.is_refusal_expected = False  # only because the guard is stopped, or else in a mode of `CLOSED`
        self.at_rest_ns = 0
        self.estop_cause = ""
        self.monitors = Monitors(limits, self.settings)
        self.conduct = Conduct(limits, self.settings.max_effort_percent)
        self.base = BaseWatch()
        self._conduct_ns = 0  # when the conduct was looked at last
        self.runstop_reason = ""  # why only the robot's own runstop can stop it; "": it need not
        self._release = Release(limits)
        self.way_back = WayBack()
        self._stoppers: dict[str, str] = {}  # whose stops stand: the names, by what tells people apart
        self._lets_go = False  # a person asked to be let go: open the gripper
        self._slowed = ("", -SLOWED_NS)  # why the robot goes slower than asked, and when it last did
        self._was_armed = False
        self._looked_ns = 0
        self._service_ns = -SERVICE_STARTS_NS
        self._came_back = ""  # a command source that has restarted its sequence numbers
        self._is_way_blocked = False
        self._retreat_ns = 0  # when the way back began
        self._last_stop_heard_ns = 0
        self._last_stop = ""  # the id of the last stop; "" for one that nobody can take back
        self._hold = ""  # the id of the soft hold
        self._hold_until_ns = 0
        self._fence_ns = -1  # commands published at or before it are void
        self._command: Stamped[JointCommand] | None = None
        self._sources: dict[str, _Source] = {}
        self._joints: tuple[Motion, ...] = ()
        self._wheels = Wheels()
        self._ticked_ns = 0

    # inputs

    def update_state(self, state: RobotState) -> None:
        """Take in the newest measured state of the robot; one with missing or non-finite joint positions is ignored."""
        self.monitors.update_state(state)

    def update_status(self, status: RobotStatus) -> None:
        """Take in what the robot reports of itself: its mode and whether its runstop is pressed."""
        self.monitors.update_status(status)
        if status.is_runstopped:
            self._service_ns = -SERVICE_STARTS_NS  # a runstop ends homing and stowing

    def check_monitors(self, now_ns: int) -> Cause:
        """Stop the robot for faults that begin now, and return who stopped it, or "" where nothing new did.

        Faults are: a pressed runstop, contact, lasting effort, a silent or lost driver, a command source that
        restarted, a guard that was frozen, and a blocked way back. Call this at every tick, before `check_conduct`.
        """
        by, why = self.monitors.news(now_ns)
        is_silent = self._was_armed and self.monitors.is_silent(now_ns)
        if not why and is_silent:
            by, why = "driver", f"the driver has been silent for {self.settings.driver_silence_s:g} s"
        is_lost = self._was_armed and self.monitors.lost != ""
        if not why and is_lost:
            by, why = "driver", f"the robot does not follow: {self.monitors.lost}"
        slept_ns, self._looked_ns = now_ns - (self._looked_ns or now_ns), now_ns
        if self._was_armed and slept_ns > SLEPT_NS:
            self._zero_velocity()
            if not why:
                by, why = "guard", f"the guard stood still for {to_s(slept_ns):.1f} s"
        if not why and self._came_back:
            by, why = "guard", f"{self._came_back} was restarted"
        if not why and self._is_way_blocked:
            by, why = "guard", "the way back is not free; the next go on leads ahead"
        was_stopped, state = self.mode in ("stopped", "estopped"), self.monitors.state
        if why and (not was_stopped or by == "runstop"):
            heard_ns = now_ns if state is None or by != "contact" else state.read_ns
            self.stop(by, why, heard_ns, now_ns)
        if self.monitors.is_runstopped or is_silent or is_lost:
            self._disengage(now_ns)
        return "" if was_stopped else by

    def check_conduct(self, now_ns: int) -> Cause:
        """Stop the robot for faults that last, and return which fault stopped it, or "" where none did.

        Faults are: a joint that does not follow its target, motion that nobody asked for, contact, effort, and a sensor
        that reports nothing. A fault that goes on after the stop sets `runstop_reason`, which asks for the robot's own
        runstop. The times are `LASTS_S` and `RUNSTOP_S`. Call this at every tick, after `check_monitors`.
        """
        state = self.monitors.state
        is_watched = state is not None and not self.monitors.is_stale(now_ns) and not self.monitors.is_runstopped
        dt_s, self._conduct_ns = to_s(now_ns - (self._conduct_ns or now_ns)), now_ns
        if state is None or not is_watched or self.is_busy(now_ns):
            self.conduct.forget()
            self.base.forget()
            self.runstop_reason = ""
            return ""
        is_stopped, asked = self.mode in ("stopped", "estopped"), self.commanded()
        faults = self.conduct.check(state, asked, now_ns)
        base = self.base.check(state, asked, dt_s, is_stopped=is_stopped)
        if is_stopped:
            lasting = [why for fault, (age_s, why) in faults.items() if age_s > LASTS_S[fault] + RUNSTOP_S[fault]]
            lasting += [base[1]] if base is not None else []
            self.runstop_reason = lasting[0] if lasting and self._joints else ""
            return ""
        self.runstop_reason = ""
        if base is not None:
            found, why = base if "motion" not in faults else ("motion", faults["motion"][1])
            self.stop(found, why, now_ns, now_ns)
            return found
        for fault, (age_s, why) in faults.items():
            if self.mode == "retreating" and fault in TOUCHES and to_s(now_ns - self._retreat_ns) <= LEAVES_S:
                continue  # it leaves what it touches; check_monitors stops for a new touch
            if age_s > LASTS_S[fault] and self.mode != "disarmed":
                self.stop(fault, why, now_ns, now_ns)
                return fault
        return ""

    def commanded(self) -> CommandedMotion:
        """The motion that the guard asks of the motors now: joint targets, and base velocity in m/s and rad/s."""
        v_mps, w_radps = base_velocity(self._wheels, self.limits.base)
        return CommandedMotion(self._joints, v_mps, w_radps, self._wheels.sideways_mps)

    def estop(self, why: str, now_ns: int) -> None:
        """Latch the emergency stop for the reason `why`; the next tick brakes."""
        self._void_commands(now_ns)
        self._last_stop_heard_ns = max(self._last_stop_heard_ns, now_ns)
        self._last_stop = ""
        if self.mode != "estopped":
            self.estop_cause = why
            if self.mode != "stopped":
                self.stop_cause, self.stop_heard_ns, self.held_ns = "estop", now_ns, 0
            self.stopped_by = "estop"
        self._enter("estop", "emergency stop", self.estop_cause)

    def rearm(self, by: str, now_ns: int) -> bool:
        """Turn an emergency stop into an ordinary latched stop; False where there is no emergency stop.

        `by` names the authorised person, for the report. Motion still waits for a resume.
        """
        if self.mode != "estopped":
            return False
        self._void_commands(now_ns)
        self._last_stop_heard_ns = max(self._last_stop_heard_ns, now_ns)
        self.estop_cause = ""
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
        self._stoppers = dict(stoppers or {})

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
        self._joints = tuple(Motion(position) for position in state.position)
        self._wheels = Wheels()
        self._ticked_ns = now_ns
        self._was_armed = True
        self._void_commands(now_ns)
        self._reset_sources()
        self._enter("arm", "armed, no command yet")
        return True

    def accept_command(self, stamped: Stamped[JointCommand], now_ns: int) -> str:
        """Take in a command and return why it is refused, or "" where it is accepted; call it once per message.

        An accepted command replaces the one before. It is checked again for its age at every tick in which it is
        applied.
        """
        refusal = self._malformation(stamped)
        is_expected = not refusal and self.mode in CLOSED
        if is_expected:
            refusal = f"{stamped.envelope.source}: the guard is {self.mode}"
        if refusal := refusal or self._command_refusal(stamped, now_ns):
            self.reject(refusal, is_expected=is_expected)
            return refusal
        envelope = stamped.envelope
        ranges = zip(stamped.message.position, self.limits.joints, strict=True)
        if any(not limit.lowest - EDGE <= position <= limit.highest + EDGE for position, limit in ranges):
            _count(self.clamped, envelope.source)
        self._sources[envelope.source] = _Source(envelope.seq, envelope.published_ns)
        self._command = stamped
        return ""

    def is_busy(self, now_ns: int) -> bool:
        """Whether the robot homes or stows, or was told to within the last `SERVICE_STARTS_NS`."""
        return self.monitors.is_in_service or now_ns - self._service_ns < SERVICE_STARTS_NS

    def needs_runstop(self, now_ns: int) -> bool:
        """Whether only the robot's own runstop can stop it now.

        That is so while the guard is stopped and the robot homes or stows, or while a fault goes on that it was stopped
        for.
        """
        is_needed = self.is_busy(now_ns) or self.runstop_reason != ""
        return self.mode in ("stopped", "estopped") and is_needed and not self.monitors.is_runstopped

    def begin_service(self, now_ns: int) -> Refusal | None:
        """Let go of the robot so that it can home or stow; returns None, or why that is refused.

        It is refused unless the robot stands still, with a known state, and is neither stopped, runstopped nor busy.
        """
        if self.mode in ("stopped", "estopped"):
            return Refusal("estopped" if self.mode == "estopped" else "stopped", f"the guard is {self.mode}")
        if self.monitors.is_runstopped:
            return Refusal("runstopped", "the robot's runstop is pressed")
        if self.mode in ("moving", "retreating") or not self.is_at_rest:
            return Refusal("moving", "the robot is under command")
        if self.is_busy(now_ns):
            return Refusal("busy", "the robot homes or stows already")
        if self.monitors.is_stale(now_ns):
            return Refusal("not_ready", "the robot's state is not known")
        self._void_commands(now_ns)
        self._disengage(now_ns)
        self._service_ns = now_ns
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
            self._last_stop_heard_ns = max(self._last_stop_heard_ns, heard_ns)
            self._last_stop = interrupt.id
            self._void_commands(now_ns)
            if interrupt.is_pain or interrupt.cause in RELAXES:
                self.way_back.touch()
            self._lets_go |= interrupt.is_caught
            self._note_stopper(interrupt)
            if self.mode != "stopped":
                self.stop_cause, self.stop_heard_ns, self.held_ns = interrupt.id, heard_ns, 0
                self.stopped_by = interrupt.by
                self._release.forget()
            if self.mode not in ("stopped", "estopped"):
                self._enter("stop", f"stopped by {interrupt.by or 'unknown'}", interrupt.text)
        elif interrupt.depth == "replan":
            self._void_commands(now_ns)
            self._hold_moving(f"waiting for a new plan: {interrupt.text}")
        elif interrupt.depth == "hold":
            self._hold_softly(interrupt, now_ns)
        elif interrupt.depth == "resume":
            if self.mode not in ("stopped", "estopped"):
                return Refusal("not_stopped", "nothing is stopped")
            refusal = self._resume_refusal(interrupt, heard_ns, now_ns)
            if refusal is None and not is_operator:
                refusal = self._grip_refusal(now_ns) or self._withdraw_stop(interrupt)
            if refusal is not None:
                self.reject(f"resume by {interrupt.by or 'unknown'!r} refused: {refusal.why}")
                return refusal
            self._void_commands(now_ns)
            self._reset_sources()
            self.stop_cause, self.stopped_by, self.stop_heard_ns = "", "", 0
            self._stoppers = {}
            self._lets_go = False
            if self._is_way_blocked:
                self.way_back.forget()
            self._is_way_blocked = False
            if self.way_back.begin(is_false_alarm=interrupt.takes_back != ""):
                self._retreat_ns = now_ns
                self._enter("retreat", f"moving back slowly the way it came, resumed by {interrupt.by}")
                return None
            self._enter("resume" if self._was_armed else "release", f"resumed by {interrupt.by}, no command yet")
        return None

    def transfer_control(self, holder: str, now_ns: int) -> None:
        """Give control to another command source: earlier commands are void, and the output goes on without a jump."""
        self._void_commands(now_ns)
        self._reset_sources()
        self._hold_moving(f"handed over to {holder or 'nobody'}, no command yet")

    def name_stop(self, ident: str) -> None:
        """Record the id under which the guard has published its own stop."""
        self.stop_cause = ident

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
        if not self._joints or output == "nothing":
            if self.mode in ("stopped", "estopped"):
                self._note_rest(now_ns)
            return None
        dt_s = min(to_s(max(now_ns - self._ticked_ns, 0)), self.settings.longest_step_s)
        self._ticked_ns = max(now_ns, self._ticked_ns)
        command = self._usable_command(now_ns) if output == "command" else None
        if command is not None:
            self._follow(command, dt_s, now_ns)
        elif output == "retreat":
            self._retreat(dt_s, now_ns)
        else:
            self._brake(dt_s, now_ns, may_release=output == "release")
        self._note_rest(now_ns)
        if self.monitors.state is not None and not self.monitors.is_stale(now_ns):
            self.way_back.note(self.monitors.state, dt_s)
        v_mps, w_radps = base_velocity(self._wheels, self.limits.base)
        return JointCommand(
            position=tuple(motion.position for motion in self._joints),
            base_v_mps=v_mps,
            base_w_radps=w_radps,
            base_vy_mps=self._wheels.sideways_mps,
        )

    def report(self) -> GuardState:
        """The guard's mode and its reason, to be published for everybody."""
        return GuardState(
            mode="stopped" if self.mode == "estopped" else "moving" if self.mode == "retreating" else self.mode,
            reason=self.reason,
            stopped_by=self.stopped_by,
            holder="" if self._command is None else self._command.envelope.source,
            stop_cause=self.stop_cause,
            stop_heard_ns=self.stop_heard_ns,
            held_ns=self.held_ns,
            at_rest_ns=self.at_rest_ns,
            estop=self.estop_cause,
            is_armed=self._was_armed,
            rejected=self.rejected,
            is_retreating=self.mode == "retreating",
            clamped=dict(self.clamped),
            mistaken=dict(self.mistaken),
        )

    def signature(self, now_ns: int) -> tuple[object, ...]:
        """All that decides about motion, each time as its order to now, for whoever searches the guard's states."""
        monitors = self.monitors
        return (
            self.mode, bool(self._joints), self._was_armed, self.is_at_rest, self._command is not None,
            now_ns < self._hold_until_ns, self._came_back != "", self._is_way_blocked, self.way_back.signature,
            tuple(sorted(self._stoppers)), self._lets_go, self.is_busy(now_ns), monitors.is_stale(now_ns),
            monitors.is_silent(now_ns), monitors.is_runstopped, monitors.lost != "", len(self._sources),
        )  # fmt: skip

    @property
    def stoppers(self) -> dict[str, str]:
        """Whose stops stand: their names, by what tells people apart."""
        return dict(self._stoppers)

    @property
    def applied(self) -> Stamped[JointCommand] | None:
        """The command that the last tick applied; None where it braked."""
        return self._command

    @property
    def is_at_rest(self) -> bool:
        """Whether the commanded velocity of every joint and wheel is zero; the measured one may not be zero yet."""
        return self._wheels == Wheels() and all(motion.velocity == 0.0 for motion in self._joints)

    # decisions

    def _malformation(self, stamped: Stamped[JointCommand]) -> str:
        command, envelope = stamped.message, stamped.envelope
        # Finite first: a clamp turns NaN into full speed (max(-1, min(1, nan)) is 1.0).
        if not is_whole(command.position, len(self.limits.joints)):
            return f"{envelope.source}: position is not {len(self.limits.joints)} finite numbers"
        if beyond := self._far_beyond(command):
            _count(self.mistaken, envelope.source)
            return f"{envelope.source}: {beyond}"
        if not all(map(_is_speed, (command.base_v_mps, command.base_w_radps, command.base_vy_mps))):
            return f"{envelope.source}: base velocity is not a finite number below {FASTEST_SPEED:g}"
        if command.base_vy_mps and not self.limits.base.is_omni:
            return f"{envelope.source}: base_vy_mps is {command.base_vy_mps:g}, but this base does not drive sideways"
        return ""

    def _far_beyond(self, command: JointCommand) -> str:
        """What is wrong with a target that is no mere overshoot; "" where all are near their joints' ranges."""
        for position, limit in zip(command.position, self.limits.joints, strict=True):
            margin = RANGE_SHARE * (limit.highest - limit.lowest) + RANGE_MARGIN
            if not limit.lowest - margin <= position <= limit.highest + margin:
                return (
                    f"{limit.name} is asked to {position:g}, and its range is {limit.lowest:g} to {limit.highest:g}; "
                    "expected m and rad"
                )
        return ""

    def _command_refusal(self, stamped: Stamped[JointCommand], now_ns: int) -> str:
        envelope = stamped.envelope
        if envelope.published_ns > now_ns + FUTURE_NS:
            return f"{envelope.source}: stamped in the future"
        if envelope.published_ns <= self._fence_ns:
            return f"{envelope.source}: sent before the guard was last armed, stopped or interrupted"
        if old := self._staleness(stamped, now_ns):
            return f"{envelope.source}: {old}"
        last = self._sources.get(envelope.source)
        if last is None and len(self._sources) >= MOST_SOURCES:
            return f"{envelope.source}: more than {MOST_SOURCES} sources of commands"
        if last is not None:
            gap_ns = envelope.published_ns - last.published_ns
            if gap_ns <= 0 or (envelope.seq <= last.seq and gap_ns < RESTARTED_NS):
                return f"{envelope.source}: out of order"
            if envelope.seq <= last.seq:
                self._came_back = envelope.source
                return f"{envelope.source}: restarted; heard again once a person says go on"
        holder = self._command
        if holder is not None and holder.envelope.source != envelope.source and not self._staleness(holder, now_ns):
            return f"{envelope.source}: {holder.envelope.source} is in command"
        return ""

    def _staleness(self, stamped: Stamped[JointCommand], now_ns: int) -> str:
        settings, envelope = self.settings, stamped.envelope
        if to_s(now_ns - envelope.published_ns) > settings.lifespan_s:
            return f"no command for {settings.lifespan_s * 1e3:.0f} ms"
        for origin, oldest_s in settings.max_ages_s:
            if origin in settings.needs and origin not in envelope.origins:
                return f"there is no {origin} behind the command"
            if origin == "image" and origin in envelope.origins and self.is_picture_stuck:
                return f"the camera behind the command is stuck: {STUCK}"
            if oldest_s is not None and (why := _age_problem(envelope, origin, oldest_s, now_ns)):
                return why
        return ""

    def _usable_command(self, now_ns: int) -> Stamped[JointCommand] | None:
        """The command to apply at this moment; None, having entered the mode that goes with it, where there is none."""
        stamped = self._command
        if stamped is None:
            return None
        if now_ns < self._hold_until_ns:
            return None  # the newest command waits, and is checked again after the hold
        why = self._staleness(stamped, now_ns)
        if not why and self.monitors.is_stale(now_ns):
            why = f"robot/state is older than {self.settings.max_state_age_s * 1e3:.0f} ms"
        if why:
            self._command = None
            self._hold_moving(why)
            return None
        return stamped

    def _follow(self, stamped: Stamped[JointCommand], dt_s: float, now_ns: int) -> None:
        """Take one step towards the command, as far as the body may go; hold where it can go nowhere."""
        state = self.monitors.state
        if state is None:
            return
        age_s = to_s(max(now_ns - state.read_ns, 0))
        step, why = self.space.follow(BodyMotion(self._joints, self._wheels), stamped.message, state, age_s, dt_s)
        self._joints, self._wheels = step
        if why:
            self._slowed = (why, now_ns)
            if self.is_at_rest:
                self.held_ns = self.held_ns or now_ns
                self._hold_moving(f"kept still: {why}")
                return
        self.held_ns = 0
        slowed, since_ns = self._slowed
        is_slowed = now_ns - since_ns < SLOWED_NS
        self._enter("command", f"commanded by {stamped.envelope.source}" + (f", slowed: {slowed}" if is_slowed else ""))

    def _retreat(self, dt_s: float, now_ns: int) -> None:
        """Take one step back along the way it came; hold at its end. With a stale robot state it waits."""
        if now_ns < self._hold_until_ns or self.monitors.is_stale(now_ns):
            self._brake(dt_s, now_ns)
            return
        step = self.way_back.step(dt_s)
        if step is None:
            self.way_back.forget()
            self._enter("hold", "moved back, no command yet")
            self._brake(dt_s, now_ns)
            return
        joints = tuple(
            brake(motion, limit, dt_s)
            if limit.name == GRIPPER
            else toward(motion, target, replace(limit, speed=limit.speed * SHARE), dt_s)
            for motion, target, limit in zip(self._joints, step.position, self.limits.joints, strict=True)
        )
        slow = replace(self.limits.base, wheel_speed_mps=self.limits.base.wheel_speed_mps * SHARE)
        wheels = drive(self._wheels, step.base_v_mps, step.base_w_radps, slow, dt_s, step.base_vy_mps)
        if not self._may_go(joints, wheels, dt_s, now_ns):
            self._is_way_blocked = True  # the next check_monitors stops the robot: it went back less than it owes
            self._brake(dt_s, now_ns)
            return
        self.held_ns = 0
        self._joints, self._wheels = joints, wheels

    def _may_go(self, joints: tuple[Motion, ...], wheels: Wheels, dt_s: float, now_ns: int) -> bool:
        """Whether the body may take this step, which no command has asked for."""
        state = self.monitors.state
        before, after = BodyMotion(self._joints, self._wheels), BodyMotion(joints, wheels)
        if state is None:
            return False
        age_s = to_s(max(now_ns - state.read_ns, 0))
        return dt_s <= 0.0 or not self.space.fault(before, after, state, age_s, dt_s)

    def _brake(self, dt_s: float, now_ns: int, *, may_release: bool = False) -> None:
        if not self.held_ns:
            self.held_ns = now_ns
        wheels = drive(self._wheels, 0.0, 0.0, self.limits.base, dt_s)
        joints = tuple(
            brake(motion, limit, dt_s) for motion, limit in zip(self._joints, self.limits.joints, strict=True)
        )
        if may_release and self.way_back.is_touch:
            state = None if self.monitors.is_stale(now_ns) else self.monitors.state
            released = self._release.step(self._joints, state, dt_s, now_ns)
            if self._may_go(released, wheels, dt_s, now_ns):
                joints = released
        if may_release and self._lets_go:
            opened = tuple(
                toward(motion, limit.highest, limit, dt_s) if limit.name == GRIPPER else joint
                for motion, joint, limit in zip(self._joints, joints, self.limits.joints, strict=True)
            )
            if self._may_go(opened, wheels, dt_s, now_ns):
                joints = opened
        self._joints, self._wheels = joints, wheels

    def _hold_softly(self, interrupt: Interrupt, now_ns: int) -> None:
        """Brake for a short time without voiding commands; only the hold's own id ends it early."""
        if interrupt.takes_back:
            if interrupt.takes_back == self._hold:
                self._hold, self._hold_until_ns = "", 0
        elif self.mode in ("moving", "retreating") or now_ns < self._hold_until_ns:
            self._hold = interrupt.id
            hold_s = interrupt.hold_s if isfinite(interrupt.hold_s) else to_s(LONGEST_HOLD_NS)
            self._hold_until_ns = now_ns + min(max(to_ns(hold_s), 0), LONGEST_HOLD_NS)
            self._hold_moving(f"holding for a moment, not understood: {interrupt.text}")  # a way back goes on by itself

    def _hold_moving(self, why: str) -> None:
        """Hold a robot that follows a command; in any other mode there is none to hold."""
        if self.mode == "moving":
            self._enter("hold", why)

    def _void_commands(self, now_ns: int) -> None:
        self._fence_ns = max(self._fence_ns, now_ns)
        self._command = None

    def _note_stopper(self, interrupt: Interrupt) -> None:
        """Record who stopped the robot: each person lifts their own stop, as with personal locks on a machine."""
        key, by = stopper_of(interrupt), interrupt.by
        if not key or key in self._stoppers or CROWD in self._stoppers:
            return
        if len(self._stoppers) >= MOST_STOPPERS:
            key = by = CROWD
        if self.mode in ("stopped", "estopped") and self._stoppers:
            self.reason += f"; also stopped by {by}"
            self.reason_text += f"; also stopped by {by}"
        self._stoppers[key] = by

    def _grip_refusal(self, now_ns: int) -> Refusal | None:
        """Why the person who asked to be let go may still be in the gripper; None where it is measured open."""
        state = self.monitors.state
        places = [place for place, limit in enumerate(self.limits.joints) if limit.name == GRIPPER]
        if not (self._lets_go and self._joints and places):
            return None
        limit = self.limits.joints[places[0]]
        open_at = limit.highest - CLOSED_SHARE * (limit.highest - limit.lowest)
        if state is not None and not self.monitors.is_stale(now_ns) and state.position[places[0]] >= open_at:
            return None
        return Refusal("caught", "the gripper is not open yet")

    def _withdraw_stop(self, interrupt: Interrupt) -> Refusal | None:
        """Lift this person's own stop; returns why the robot stays stopped all the same, or None."""
        self._stoppers.pop(stopper_of(interrupt), None)
        if not self._stoppers:
            return None
        return Refusal("another_person", f"{', '.join(sorted(self._stoppers.values()))} stopped the robot as well")

    def _resume_refusal(self, interrupt: Interrupt, heard_ns: int, now_ns: int) -> Refusal | None:
        """Why this request does not lift what is latched; None where it does."""
        if self.mode == "estopped":
            return Refusal("estopped", "an emergency stop is only left by re-arming")
        if interrupt.cause not in ("person", ""):  # "": whoever calls this has looked
            return Refusal("not_a_person", "only a person lifts a stop")
        if self.monitors.is_runstopped:
            return Refusal("runstopped", "the robot's runstop is pressed")
        if heard_ns <= self._last_stop_heard_ns:
            return Refusal("too_early", "it was said before the stop")
        if heard_ns > now_ns + FUTURE_NS:
            return Refusal("in_the_future", "it is stamped in the future")
        if now_ns - heard_ns > GO_ON_NS:
            return Refusal("too_late", f"it was said {to_s(now_ns - heard_ns):.1f} s ago")
        if interrupt.takes_back and interrupt.takes_back != self._last_stop:
            return Refusal("another_stop", "it takes back another stop than the last one")
        return None

    def _reset_sources(self) -> None:
        """After a person's decision, accept sources that restarted. What they sent before stays void."""
        self._came_back = ""
        # Sources that sent nothing after the fence are forgotten: people come and go all day.
        self._sources = {
            name: _Source(-1, source.published_ns)
            for name, source in self._sources.items()
            if source.published_ns > self._fence_ns
        }

    def _disengage(self, now_ns: int) -> None:
        """Stop sending commands: the robot's posture is no longer known, and the next target will be measured then."""
        if self._joints:
            self._joints, self._wheels, self._was_armed = (), Wheels(), False
            self.way_back.forget()
            self.held_ns = self.held_ns or now_ns

    def _zero_velocity(self) -> None:
        """Assume standstill: a robot that was sent nothing for so long has stopped by its own watchdog."""
        self._joints = tuple(Motion(motion.position) for motion in self._joints)
        self._wheels = Wheels()

    def _note_rest(self, now_ns: int) -> None:
        self.at_rest_ns = (self.at_rest_ns or now_ns) if self.is_at_rest and self.monitors.is_still else 0

    def _enter(self, event: Event, reason: str, text: str | None = None) -> None:
        mode = TRANSITIONS.get((self.mode, event))
        if mode is None:
            self._void_commands(self._ticked_ns)
            reason, text = f"a fault of the guard: {self.mode} does not know the event {event}", None
            self.reject(reason)
            mode = "estopped" if self.mode == "estopped" else "stopped"
        self.mode, self.reason_text = mode, text or ""
        self.reason = reason if text is None else f"{reason}: {text}"


def stopper_of(interrupt: Interrupt) -> str:
    """The key of whoever has to lift this stop; "" where any person may, since no person and no tool has made it."""
    if interrupt.person:
        return interrupt.person
    return f"{NOBODY}{interrupt.by}" if interrupt.cause in ("person", "") else ""


def _count(counts: dict[str, int], source: str) -> None:
    if source in counts or len(counts) < MOST_SOURCES:
        counts[source] = counts.get(source, 0) + 1


def _is_speed(value: float) -> bool:
    return isfinite(value) and abs(value) <= FASTEST_SPEED


def _age_problem(envelope: Envelope, origin: str, oldest_s: float, now_ns: int) -> str:
    """Why the age of the image, plan or utterance behind a command forbids it; "" where it is allowed."""
    born_ns = envelope.origins.get(origin)
    if born_ns is None:  # no such origin behind the command
        return ""
    if born_ns == UNKNOWN_NS:
        return (
            f"the age of the {origin} behind the command is not known; read the {origin}'s port in the handler that "
            f"publishes it, or say publish(..., stems_from=...); the log of {envelope.source} names the line"
        )
    if born_ns > now_ns + FUTURE_NS:
        return f"the {origin} behind the command is stamped in the future"
    if to_s(now_ns - born_ns) > oldest_s:
        return f"the {origin} behind the command is older than {oldest_s:g} s"
    return ""
