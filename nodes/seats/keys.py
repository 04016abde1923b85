"""Driving from a terminal's keyboard: a key acts while it repeats, and nothing pressed is nothing sent."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from typing import Any, ClassVar

from runtime.clock import SystemClock, to_ns, to_s
from runtime.command_line.attach import Arrival, Sender
from runtime.msgs import JOINTS, JointCommand
from runtime.serialization.codec import decode

PERIOD_S = 0.05
ACTIVE_S = 0.15
"""How long one key press acts; longer than that without a repetition and nothing is sent."""
BASE = {"w": (0.15, 0.0), "s": (-0.15, 0.0), "a": (0.0, 0.5), "d": (0.0, -0.5)}
STEPS = {"u": ("lift", 0.02), "j": ("lift", -0.02), "i": ("arm", 0.02), "k": ("arm", -0.02),
         "o": ("gripper", 0.01), "p": ("gripper", -0.01)}  # fmt: skip


class Keys:
    """Turns keys into commands from the posture that the guard asks for now."""

    _before: ClassVar[list[Any] | None] = None

    def __init__(self, sender: Sender) -> None:
        self.sender = sender
        self.clock = SystemClock()
        self.posture: tuple[float, ...] = ()
        self.base = (0.0, 0.0)
        self.until_ns = self.sent_ns = 0
        if sys.stdin.isatty():
            type(self)._before = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)

    @classmethod
    def restore(cls) -> None:
        """Give the terminal back as it was."""
        if cls._before is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, cls._before)
            cls._before = None

    def drive(self, arrival: Arrival | None) -> bool:
        """Read keys and send what they mean; False at q or the end of the input."""
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
        """Act on one key."""
        self.base = BASE.get(key, (0.0, 0.0))
        if key in STEPS and len(self.posture) == len(JOINTS):  # the arm of a Stretch; another robot has other joints
            name, step = STEPS[key]
            place = JOINTS.index(name)
            self.posture = (*self.posture[:place], self.posture[place] + step, *self.posture[place + 1 :])
        self.until_ns = now_ns + to_ns(ACTIVE_S) if key in BASE or key in STEPS else 0
