"""A pan-tilt head on a serial line, as a robot: limits, class, a stand-in for the device, a node that looks about.

The device keeps speeds and ranges itself. It understands lines of text: "aim PAN TILT" in rad, "halt", "button 0|1".
It answers each with positions and speeds. For yours, write another `Line`, with the words that your device understands.
"""

from __future__ import annotations

import math
from typing import Protocol

from nodes.msgs import JointCommand, RobotState, RobotStatus
from nodes.robot.protocol import JointLimit, RobotLimits, check_command
from runtime import Node, Publisher, QoS, Subscription, every

LIMITS = RobotLimits(
    joints=(  # name, lowest, highest, speed, acceleration: rad, per s, per s2
        JointLimit("pan", -2.6, 2.6, 1.5, 6.0),
        JointLimit("tilt", -0.8, 0.6, 1.0, 4.0),
    ),
)
WATCHDOG_S = 0.3
STEP_S = 0.01


class Line(Protocol):
    """What a robot's class needs of the wire: one line out, one line back; and, of a stand-in, its time."""

    def ask(self, words: str) -> str: ...

    def pass_time(self, seconds: float) -> None: ...


class Device:
    """The stand-in: what the head's own processor does. A real one sits behind a `Line` on `serial.Serial`."""

    def __init__(self) -> None:
        self.angles_rad, self.aims_rad, self.speeds_radps = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
        self.is_pressed = False
        self.silent_s = 0.0

    def ask(self, words: str) -> str:
        verb, *numbers = words.split()
        if verb == "aim" and not self.is_pressed:
            self.aims_rad = [float(number) for number in numbers]
            self.silent_s = 0.0
        elif verb == "halt":
            self.aims_rad = list(self.angles_rad)
        elif verb == "button":
            self.is_pressed = numbers == ["1"]
            self.aims_rad = list(self.angles_rad)
        return " ".join(f"{value:.9f}" for value in (*self.angles_rad, *self.speeds_radps))

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds / STEP_S)):
            self.silent_s += STEP_S
            if self.silent_s > WATCHDOG_S:
                self.aims_rad = list(self.angles_rad)
            for at, joint in enumerate(LIMITS.joints):
                goal = min(max(self.aims_rad[at], joint.lowest), joint.highest)
                most = joint.speed * STEP_S
                move = min(max(goal - self.angles_rad[at], -most), most)
                self.angles_rad[at] += move
                self.speeds_radps[at] = move / STEP_S


class PanTilt:
    """Keeps the protocol of a robot; what each member promises stands in Polyrhythm's docs/new-robot.md."""

    is_hardware = False  # say True where its line is a real one
    limits: RobotLimits = LIMITS

    def __init__(self, line: Line | None = None) -> None:
        self._line = line or Device()
        self._now_ns = 0
        self._is_pressed = False

    def start(self, now_ns: int) -> None:
        self._now_ns = now_ns

    def advance(self, now_ns: int) -> None:
        self._line.pass_time((now_ns - self._now_ns) * 1e-9)
        self._now_ns = now_ns

    def read(self, now_ns: int) -> RobotState:
        pan_rad, tilt_rad, pan_radps, tilt_radps = map(float, self._line.ask("read").split())
        return RobotState(
            read_ns=self._now_ns, position=(pan_rad, tilt_rad), velocity=(pan_radps, tilt_radps), effort=(0.0, 0.0),
            base_x_m=0.0, base_y_m=0.0, base_heading_rad=0.0, base_v_mps=0.0, base_w_radps=0.0,
        )  # fmt: skip

    def status(self, now_ns: int) -> RobotStatus:
        if self._is_pressed:
            return RobotStatus(
                read_ns=self._now_ns, mode="runstopped", why="the runstop is pressed", is_runstopped=True
            )
        return RobotStatus(read_ns=self._now_ns, mode="ready")

    def command(self, command: JointCommand) -> None:
        check_command(command, len(LIMITS.joints))
        self._line.ask("aim {} {}".format(*command.position))

    def stop(self) -> None:
        self._line.ask("halt")

    def home(self) -> None:
        """It knows its zeros."""

    def stow(self) -> None:
        """It has no folded posture."""

    def runstop(self, is_on: bool) -> None:
        self._is_pressed = is_on
        self._line.ask(f"button {int(is_on)}")

    def close(self) -> None:
        self.stop()


class LookAbout(Node):
    """A policy that looks from side to side."""

    seat = "policy"

    state = Subscription(RobotState, "robot/state", qos=QoS(lifespan_s=0.25))
    command = Publisher(JointCommand, "command")

    def __init__(self, reach_rad: float = 1.0) -> None:
        self.reach_rad = reach_rad

    @every(hz=20)
    def tick(self) -> None:
        if self.state.latest() is not None:
            pan_rad = self.reach_rad * math.sin(self.clock.now_s())
            self.command.publish(JointCommand(position=(pan_rad, -0.2)))
