"""Driving from a terminal's keyboard: a key acts while it repeats, and without a key nothing is sent."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from nodes.msgs import JOINTS, JointCommand
from runtime.clock import SystemClock, to_ns, to_s
from runtime.command_line.attach import Arrival, Sender
from runtime.serialization.codec import decode

PERIOD_S = 0.05
ACTIVE_S = 0.15
"""How long one key press acts, s; without a repetition nothing is sent afterwards."""
BASE = {"w": (0.15, 0.0), "s": (-0.15, 0.0), "a": (0.0, 0.5), "d": (0.0, -0.5)}
STEPS = {"u": ("lift", 0.02), "j": ("lift", -0.02), "i": ("arm", 0.02), "k": ("arm", -0.02),
         "o": ("gripper", 0.01), "p": ("gripper", -0.01)}  # fmt: skip
STRETCH_KEYS = """  w s  ahead, back    u j  lift up, down    o p  open, close
  a d  turn           i k  arm out, in      q    give it back
  r    keep the last seconds, where the recorder holds them in memory"""
OTHER_KEYS = """  w s  ahead, back    1-9  choose a joint    q  give it back
  a d  turn           u j  move it up, down  r  keep the last seconds"""
STEP = 0.02
"""How far one key press moves a chosen joint, m or rad."""


class Keys:
    """Turns keys into commands, from the posture that the guard asks for now.

    It sets the terminal to read single keys; call `restore` at the end.
    """

    _before: ClassVar[list[Any] | None] = None

    def __init__(
        self, sender: Sender, joints: Sequence[str] = JOINTS, keep_last: Callable[[], None] = lambda: None
    ) -> None:
        """`keep_last` has the seconds before now saved."""
        self.keep_last = keep_last
        self.sender = sender
        self.joints = tuple(joints)
        self.chosen = 0  # of another robot than a Stretch
        self.clock = SystemClock()
        self.posture: tuple[float, ...] = ()
        self.base = (0.0, 0.0)
        self.until_ns = self.sent_ns = 0
        if sys.stdin.isatty():
            type(self)._before = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)

    @classmethod
    def restore(cls) -> None:
        """Return the terminal to its former settings."""
        if cls._before is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, cls._before)
            cls._before = None

    def drive(self, arrival: Arrival | None) -> bool:
        """Read the keys pressed and send the command that they mean; False at q, or at the end of the input.

        `arrival` is the newest message of the run; one on `robot/command` gives the posture to start from.
        """
        now_ns = self.clock.now_ns()
        # A key that is held from the start does not keep the first posture away.
        is_idle = now_ns > self.until_ns or not self.posture
        if arrival is not None and arrival.topic == "robot/command" and is_idle:
            self.posture = decode(arrival.frames, JointCommand).message.position
        while select.select([sys.stdin], [], [], 0)[0]:
            # Not by sys.stdin.read: what it reads ahead is not seen by select, and would act after the key's release.
            data = os.read(sys.stdin.fileno(), 1 << 10)
            if not data or b"q" in data:
                return False
            for key in data.decode(errors="replace"):
                self.press(key, now_ns)
        if self.posture and now_ns < self.until_ns and to_s(now_ns - self.sent_ns) > PERIOD_S:
            self.sent_ns = now_ns
            v_mps, w_radps = self.base
            self.sender.publish(JointCommand(position=self.posture, base_v_mps=v_mps, base_w_radps=w_radps))
        return True

    def press(self, key: str, now_ns: int) -> None:
        """Act on one key that was pressed at `now_ns`."""
        if key == "r":
            self.keep_last()
            return
        self.base = BASE.get(key, (0.0, 0.0))
        if self.joints != JOINTS and key.isdecimal() and 1 <= int(key) <= len(self.joints):
            self.chosen = int(key) - 1
        place, step = self._step(key)
        if step and place < len(self.posture):
            self.posture = (*self.posture[:place], self.posture[place] + step, *self.posture[place + 1 :])
        self.until_ns = now_ns + to_ns(ACTIVE_S) if key in BASE or step else 0

    def _step(self, key: str) -> tuple[int, float]:
        """Which joint the key moves, and how far, in m or rad; 0.0 where it moves none."""
        if self.joints != JOINTS:
            return self.chosen, {"u": STEP, "j": -STEP}.get(key, 0.0)
        name, step = STEPS.get(key, ("lift", 0.0))
        return JOINTS.index(name), step

    @property
    def told(self) -> str:
        """The help text for the keys, in lines."""
        return STRETCH_KEYS if self.joints == JOINTS else OTHER_KEYS

    @property
    def status(self) -> str:
        """The commanded positions of what the keys move; needs a known posture."""
        if self.joints != JOINTS:
            return f"{self.chosen + 1} {self.joints[self.chosen]} {self.posture[self.chosen]:.2f}"
        return ", ".join(f"{name} {self.posture[JOINTS.index(name)]:.2f} m" for name in ("lift", "arm", "gripper"))
