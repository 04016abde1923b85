"""`FollowingRobot`: what drivers share whose robot another process speaks to: what is followed, and what is told.

A command is followed while the robot is ready. After one that was not, none is before a pause, or before one that fits
where the robot stands. Where the robot's side has braked, because it heard nothing of this process while it moved, the
robot is lost for a moment: its guard stops, and lets go of it until a person says go on and arms it.
"""

from __future__ import annotations

import atexit
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

from bridges.stretch.onboard.words import Told
from nodes.msgs import JointCommand, RobotMode, RobotState, RobotStatus
from nodes.robot.protocol import RobotError, RobotLimits, check_command
from runtime.clock import SystemClock, to_ns, to_s
from runtime.errors import ParameterError

WATCHDOG_S = 0.5
"""Without a command for this long everything stands still."""
SEEN_S = 0.2
"""A runstop that we pressed shows in the status by then."""
TOLD_S = 0.3
"""So long a robot whose own side has braked is lost at least: some ticks of a guard."""
NEAR = {"lift": 0.03, "arm": 0.03}
"""How near a command must be to where the robot stands to be followed after it was ignored; others: 0.15 rad."""

MUST_REST = "a command from before is still being sent, far from where the robot stands: let go of it, or arm again"
BRAKED = "its driver was silent while it moved, and the robot's side has braked; see why the driver hung, and go on"
WHYS: dict[RobotMode, str] = {
    "runstopped": "the runstop is pressed; hold the button for two seconds to release it",
    "homing": "it is homing",
    "stowing": "it folds itself",
    "unhomed": "it is not homed; it has to be after each power-up: clear the space around it and home it",
}

STANDS: Mapping[RobotMode, str] = {"runstopped": "it was told to stand; release it"}
"""Of a robot without a button."""

log = logging.getLogger("bridges.stretch.following")


class FollowingRobot(ABC):
    """The `Robot` protocol for a robot that is spoken to by another process. Subclasses say how."""

    is_hardware = True  # never driven in virtual time
    joint_names: tuple[str, ...]
    profiles: ClassVar[tuple[str, ...]]
    gripper_near_m: ClassVar[float]
    """As `NEAR`."""
    lost_s: ClassVar[float] = 1.0
    """A chain that does not measure for this long is lost, and the robot with it."""
    chain_words: ClassVar[Mapping[str, str]] = {}
    """What a chain is called for people, where its own name is not enough."""
    has_battery: ClassVar[bool] = True
    silence: ClassVar[str]
    """Why nothing at all may have measured."""
    own_whys: ClassVar[Mapping[RobotMode, str]] = {}
    """In place of those of `WHYS`."""

    def __init__(self, speed: str) -> None:
        if speed not in self.profiles:
            raise ParameterError(f"{type(self).__name__}: speed is {speed!r}; known: {', '.join(self.profiles)}")
        self._is_open = False
        self._now_ns = self._commanded_ns = self._pressed_until_ns = 0
        self._wanted: JointCommand | None = None
        self._must_rest = False  # commands were ignored
        self._braked_ns: int | None = None  # since when the robot's side has braked by itself

    # what a subclass says

    @property
    @abstractmethod
    def limits(self) -> RobotLimits:
        """Soft limits and speeds as the robot itself has them."""

    @property
    @abstractmethod
    def reading(self) -> Told:
        """All that the robot last said of itself. Raises RobotError where it has said nothing yet and that matters."""

    @property
    def _busy(self) -> RobotMode | None:
        """Whether it homes or stows; none that tells nothing of it."""
        return None

    def _why_away(self) -> str:
        """Why it does not follow, beyond what is common; nothing where it does."""
        return ""

    @abstractmethod
    def _take_hold(self) -> None:
        """Connect, and hear of the robot once. Raises RobotError."""

    @abstractmethod
    def _let_go(self) -> None:
        """Disconnect; what to do first where it moves."""

    @abstractmethod
    def _exchange(self) -> None:
        """Say what is wanted, and hear what the robot says."""

    @abstractmethod
    def _send(self, command: JointCommand | None) -> None:
        """Send what is to be followed; None: everything is to stand."""

    @abstractmethod
    def _do(self, verb: str) -> None:
        """Press or release the robot's own runstop; home or stow, or begin it. Raises RobotError."""

    def _is_gripping(self) -> bool:
        """Whether a gripper that stands still was told to close further, and its motor feels something."""
        return False

    # the protocol

    def start(self, now_ns: int) -> None:
        """Take hold of the robot. Raises RobotError where the maker's software, or the robot, cannot be had."""
        self._now_ns = self._commanded_ns = now_ns
        try:
            self._take_hold()
        except BaseException:
            self._let_go()
            raise
        self._is_open = True
        atexit.register(self.close)

    def read(self, now_ns: int) -> RobotState:
        """Joint state, odometry and contact; as old as its oldest part."""
        self._now_ns = max(now_ns, self._now_ns)
        told = self.reading
        (x, y, heading), (v_mps, vy_mps, w_radps) = told.pose, told.twist
        gripper = [speed for name, speed in zip(self.joint_names, told.velocity, strict=False) if name == "gripper"]
        is_still = bool(gripper) and abs(gripper[0]) < 0.005
        return RobotState(
            read_ns=self._measured_ns,
            position=told.position,
            velocity=told.velocity,
            effort=told.effort,
            base_x_m=x,
            base_y_m=y,
            base_heading_rad=heading,
            base_v_mps=v_mps,
            base_w_radps=w_radps,
            contact=told.contact,
            is_grasping=is_still and self._is_gripping(),
            base_vy_mps=vy_mps,
        )

    def status(self, now_ns: int) -> RobotStatus:
        """Mode, homing, runstop, battery and alerts."""
        self._now_ns = max(now_ns, self._now_ns)
        mode, told = self._mode, self.reading
        why = self._why_lost() if mode == "lost" else self._whys.get(mode, "")
        return RobotStatus(
            read_ns=self._measured_ns,
            mode=mode,
            why=MUST_REST if mode == "ready" and self._must_rest else why,
            is_homed=told.is_homed,
            is_runstopped=told.is_runstopped,
            battery_v=told.battery_v if self.has_battery else None,
            battery_a=told.battery_a if self.has_battery else None,
            is_charging=told.is_charging,
            alerts=told.alerts,
        )

    def command(self, command: JointCommand) -> None:
        """Take joint targets and base velocity. Raises ValueError where they are not one finite position a joint."""
        check_command(command, len(self.joint_names))
        if not self._is_open or self._mode != "ready":
            self._must_rest = True
            return
        if self._must_rest and not self._fits(command):
            return
        self._must_rest = False
        self._wanted, self._commanded_ns = command, self._now_ns
        self._send(command)

    def advance(self, now_ns: int) -> None:
        """Say that somebody is there, hear what the robot says, and stop where commands end."""
        self._now_ns = now_ns
        if not self._is_open:
            return
        self._exchange()
        if self._wanted is None:
            return
        if self._mode != "ready":
            self._ignore()
        elif to_s(now_ns - self._commanded_ns) > WATCHDOG_S:
            self.stop()
            log.warning("no command for %g s: stopping", WATCHDOG_S)

    def stop(self) -> None:
        """Base velocity zero, joints held; the gripper keeps its grip. Homing and stowing end by the runstop only."""
        if not self._is_open or self._busy:
            return
        if self._braked_ns is not None and to_s(self._now_ns - self._braked_ns) >= TOLD_S:
            self._braked_ns = None
        self._must_rest = self._must_rest and self._mode != "ready"
        if self._wanted is not None:
            self._wanted = None
            self._send(None)

    def home(self) -> None:
        """Find the joints' zeros. Raises RobotError where that is refused, or fails before it returns."""
        self._occupy("home")

    def stow(self) -> None:
        """Fold the robot. Raises RobotError where that is refused, or fails before it returns."""
        if self._is_open and not self.reading.is_homed:
            raise RobotError("the robot does not stow before it is homed; home it first")
        self._occupy("stow")

    def runstop(self, is_on: bool) -> None:
        """The software side of the button; it waits for nothing, homing and stowing included."""
        self._opened()
        self._wanted = None
        self._pressed_until_ns = self._now_ns + to_ns(SEEN_S) if is_on else 0
        self._do("runstop" if is_on else "release")

    def close(self) -> None:
        """Stop and let go of the robot."""
        if self._is_open:
            self._is_open = False
            atexit.unregister(self.close)
            self._let_go()
            self._wanted = None

    # what is common

    @property
    def _measured_ns(self) -> int:
        return min(self.reading.read_ns.values(), default=0)

    @property
    def _mode(self) -> RobotMode:
        told = self.reading
        if self._why_lost():
            return "lost"
        if told.is_runstopped or self._now_ns < self._pressed_until_ns:
            return "runstopped"
        return self._busy or ("ready" if told.is_homed else "unhomed")

    @property
    def _whys(self) -> Mapping[RobotMode, str]:
        return {**WHYS, **self.own_whys}

    def _why_lost(self) -> str:
        if not self._is_open:
            return "it is not started"
        if why := self._why_away():
            return why
        measured = self.reading.read_ns
        silent = [chain for chain, read_ns in measured.items() if to_s(self._now_ns - read_ns) > self.lost_s]
        if len(silent) == len(measured):
            return self.silence
        if silent:
            names = " and ".join(self.chain_words.get(chain, chain) for chain in silent)
            return f"{names} does not measure; look at its cable, then end the run and start it again"
        return BRAKED if self._braked_ns is not None else ""

    def _opened(self) -> None:
        if not self._is_open:
            raise RobotError("the robot is not started")

    def _ignore(self) -> None:
        """What was wanted is not followed any more, and not again before a pause."""
        self._must_rest, self._wanted = True, None

    def _has_braked(self) -> None:
        """The robot's side did so by itself, for want of news. Where it moved, a person decides when it goes on."""
        wanted = self._wanted
        if wanted is None:
            return
        self._ignore()
        if not self._fits(wanted):
            self._braked_ns = self._now_ns
            log.warning("%s", BRAKED)

    def _fits(self, command: JointCommand) -> bool:
        near = {**NEAR, "gripper": self.gripper_near_m}
        is_near = all(
            abs(target - position) <= near.get(name, 0.15)
            for name, target, position in zip(self.joint_names, command.position, self.reading.position, strict=True)
        )
        return is_near and command.base_v_mps == command.base_w_radps == command.base_vy_mps == 0.0

    def _occupy(self, verb: str) -> None:
        self._opened()
        if self.reading.is_runstopped:
            raise RobotError(f"the robot does not {verb} while its runstop is pressed; release it first")
        if why := self._why_lost():
            raise RobotError(f"the robot does not {verb}: {why}")
        if busy := self._busy:
            raise RobotError(f"the robot does not {verb} now: {self._whys[busy]}")
        self.stop()
        self._do(verb)

    def _wait(self, is_so: Callable[[], bool], seconds: float, period_s: float = 0.02) -> bool:
        """Until that is so, no longer than this; whether it is."""
        for _ in range(round(seconds / period_s)):
            if is_so():
                return True
            SystemClock().block(period_s)
            self._exchange()
        return is_so()
