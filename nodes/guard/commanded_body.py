"""`CommandedBody`: the motion that the guard asks of the robot, while it has control of it; a pure part of the guard.

All that leaves is made here, in steps that keep the limits: towards a command, back along a way, or braking.
"""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from typing import Literal

from nodes.guard.immediate_faults import GuardSettings, Monitors
from nodes.guard.lasting_faults import CommandedMotion
from nodes.guard.motion_profile import Motion, Wheels, base_velocity, brake, drive, toward
from nodes.guard.pressure_release import Release
from nodes.guard.retreat import SHARE, TrailStep
from nodes.guard.space import BodyMotion, Space
from nodes.msgs import JointCommand, JointVector
from nodes.robot.protocol import RobotLimits
from runtime.clock import to_ns, to_s

GRIPPER = "gripper"
"""Name of the joint that may hold a person; a larger position is a wider opening."""
CLOSED_SHARE = 0.1
"""Share of the gripper's range; a gripper that is further than this from fully open may still hold somebody."""

SERVICE_STARTS_NS = to_ns(0.5)
"""For this long after homing or stowing was accepted the robot counts as busy with it, whatever its status says."""

Control = Literal["released", "engaged", "service"]
ControlEvent = Literal["arm", "lose", "serve", "over"]

CONTROL: dict[tuple[Control, ControlEvent], Control] = {
    ("released", "arm"): "engaged",  # with the measured posture as the first target
    ("engaged", "lose"): "released",  # a runstop, a silent or lost driver: its posture is not known any more
    ("released", "serve"): "service",  # it homes or stows by itself
    ("engaged", "serve"): "service",
    ("service", "over"): "released",  # after `SERVICE_STARTS_NS` its status tells, and a runstop ends it
}
"""What leads from one to another; what is not listed changes nothing. Only an engaged robot is told anything."""


class CommandedBody:
    """Joints and wheels as they are commanded now, and since when they hold and rest."""

    def __init__(self, limits: RobotLimits, settings: GuardSettings, space: Space, monitors: Monitors) -> None:
        self.limits, self.settings, self.space, self.monitors = limits, settings, space, monitors
        self.control: Control = "released"
        self.held_ns = 0  # since when it brakes or holds; 0 while it moves
        self.at_rest_ns = 0
        self.ticked_ns = 0
        self._joints: tuple[Motion, ...] = ()
        self._wheels = Wheels()
        self._release = Release(limits)
        self._served_until_ns = 0

    @property
    def is_engaged(self) -> bool:
        """Whether the guard has control of the robot, since a measured posture was its first target."""
        return self.control == "engaged"

    @property
    def is_at_rest(self) -> bool:
        """Whether the commanded velocity of every joint and wheel is zero; the measured one may not be zero yet."""
        return self._wheels == Wheels() and all(motion.velocity == 0.0 for motion in self._joints)

    def is_in_service(self, now_ns: int) -> bool:
        """Whether the robot was told to home or stow within the last `SERVICE_STARTS_NS`."""
        if now_ns >= self._served_until_ns:
            self._enter("over")
        return self.control == "service"

    def engage(self, position: JointVector, now_ns: int) -> None:
        """Take control, with this measured posture as the first target; m or rad."""
        if self._enter("arm"):
            self._joints, self._wheels = tuple(map(Motion, position)), Wheels()
            self.ticked_ns = now_ns

    def lose(self, now_ns: int) -> bool:
        """Tell the robot nothing any more, its posture being unknown; whether the guard had control until now."""
        return self._let_go("lose", now_ns)

    def serve(self, now_ns: int) -> bool:
        """Let the robot home or stow; whether the guard had control until now."""
        self._served_until_ns = now_ns + SERVICE_STARTS_NS
        return self._let_go("serve", now_ns)

    def end_service(self) -> None:
        """A runstop ends homing and stowing."""
        self._enter("over")

    def stop_anew(self) -> None:
        """Forget since when it holds and what it releases, at the beginning of a stop."""
        self.held_ns = 0
        self._release.forget()

    def zero_velocity(self) -> None:
        """Assume standstill: a robot that was sent nothing for so long has stopped by its own watchdog."""
        self._joints = tuple(Motion(motion.position) for motion in self._joints)
        self._wheels = Wheels()

    def motion(self) -> CommandedMotion:
        """What is asked of the motors now: joint targets, and base velocity in m/s and rad/s."""
        v_mps, w_radps = base_velocity(self._wheels, self.limits.base)
        return CommandedMotion(self._joints, v_mps, w_radps, self._wheels.sideways_mps)

    def command(self) -> JointCommand:
        """The same as the driver takes it."""
        asked = self.motion()
        return JointCommand(
            position=tuple(joint.position for joint in asked.joints),
            base_v_mps=asked.base_v_mps,
            base_w_radps=asked.base_w_radps,
            base_vy_mps=asked.base_vy_mps,
        )

    def begin_tick(self, now_ns: int) -> float:
        """How long this step is, s: what lies behind the last one, and at most `longest_step_s`."""
        dt_s = min(to_s(max(now_ns - self.ticked_ns, 0)), self.settings.longest_step_s)
        self.ticked_ns = max(now_ns, self.ticked_ns)
        return dt_s

    def note_rest(self, now_ns: int) -> None:
        """Record since when nothing is asked to move and nothing is measured to."""
        is_still = self.is_at_rest and self.monitors.is_still
        self.at_rest_ns = (self.at_rest_ns or now_ns) if is_still else 0

    def follow(self, command: JointCommand, dt_s: float, now_ns: int) -> str:
        """Take one step towards a command, as far as the body may go; returns why not all the way, or ""."""
        state = self.monitors.state
        if state is None:
            return ""
        age_s = to_s(max(now_ns - state.read_ns, 0))
        step, why = self.space.follow(BodyMotion(self._joints, self._wheels), command, state, age_s, dt_s)
        self._joints, self._wheels = step
        self.held_ns = (self.held_ns or now_ns) if why and self.is_at_rest else 0
        return why

    def go_back(self, step: TrailStep, dt_s: float, now_ns: int) -> bool:
        """Take one slow step of a way back, the gripper keeping its grip; where it is not free, brake: False."""
        joints = tuple(
            brake(motion, limit, dt_s)
            if limit.name == GRIPPER or isnan(target)
            else toward(motion, target, replace(limit, speed=limit.speed * SHARE), dt_s)
            for motion, target, limit in zip(self._joints, step.position, self.limits.joints, strict=True)
        )
        slow = replace(self.limits.base, wheel_speed_mps=self.limits.base.wheel_speed_mps * SHARE)
        wheels = drive(self._wheels, step.base_v_mps, step.base_w_radps, slow, dt_s, step.base_vy_mps)
        if not self._may_go(joints, wheels, dt_s, now_ns):
            self.brake(dt_s, now_ns)
            return False
        self.held_ns = 0
        self._joints, self._wheels = joints, wheels
        return True

    def brake(self, dt_s: float, now_ns: int, *, relaxes: bool = False, opens: bool = False) -> None:
        """Take one step of the braking profile.

        Where it `relaxes`, targets of blocked joints return to them; where it `opens`, the gripper does.
        """
        self.held_ns = self.held_ns or now_ns
        wheels = drive(self._wheels, 0.0, 0.0, self.limits.base, dt_s)
        joints = tuple(
            brake(motion, limit, dt_s) for motion, limit in zip(self._joints, self.limits.joints, strict=True)
        )
        if relaxes:
            state = None if self.monitors.is_stale(now_ns) else self.monitors.state
            released = self._release.step(self._joints, state, dt_s, now_ns)
            if self._may_go(released, wheels, dt_s, now_ns):
                joints = released
        if opens:
            opened = tuple(
                toward(motion, limit.highest, limit, dt_s) if limit.name == GRIPPER else joint
                for motion, joint, limit in zip(self._joints, joints, self.limits.joints, strict=True)
            )
            if self._may_go(opened, wheels, dt_s, now_ns):
                joints = opened
        self._joints, self._wheels = joints, wheels

    def may_hold_somebody(self, now_ns: int) -> bool:
        """Whether the gripper is not measured open, of a robot that has one and is under control."""
        state = self.monitors.state
        places = [place for place, limit in enumerate(self.limits.joints) if limit.name == GRIPPER]
        if not (self.is_engaged and places):
            return False
        limit = self.limits.joints[places[0]]
        open_at = limit.highest - CLOSED_SHARE * (limit.highest - limit.lowest)
        return state is None or self.monitors.is_stale(now_ns) or state.position[places[0]] < open_at

    def _may_go(self, joints: tuple[Motion, ...], wheels: Wheels, dt_s: float, now_ns: int) -> bool:
        """Whether the body may take this step, which no command has asked for."""
        state = self.monitors.state
        before, after = BodyMotion(self._joints, self._wheels), BodyMotion(joints, wheels)
        if state is None:
            return False
        age_s = to_s(max(now_ns - state.read_ns, 0))
        return dt_s <= 0.0 or not self.space.fault(before, after, state, age_s, dt_s)

    def _let_go(self, event: ControlEvent, now_ns: int) -> bool:
        was_engaged = self.is_engaged
        self._enter(event)
        if was_engaged:
            self._joints, self._wheels = (), Wheels()
            self.held_ns = self.held_ns or now_ns
        return was_engaged

    def _enter(self, event: ControlEvent) -> bool:
        control = CONTROL.get((self.control, event))
        self.control = control or self.control
        return control is not None
