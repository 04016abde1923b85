"""A small mobile base on a serial line behind the `Robot` protocol: two wheels, a camera on a servo, a button.

The line speaks text, 115,200 baud. To the base, m/s and rad: `v LEFT RIGHT PAN`. From it, 50 times a second:
`o LEFT_M RIGHT_M PAN BUTTON BATTERY_V`, with the ways of its wheels since it was switched on. Its firmware must stop by
itself 0.5 s after the last line; `test_serial_base.py` has one that does, at the other end of a pty.
"""

from __future__ import annotations

import math
import os
import termios
import tty

from nodes.msgs import JointCommand, RobotState, RobotStatus
from nodes.robot.protocol import BaseLimit, JointLimit, RobotError, RobotLimits, check_command
from runtime.clock import NS_PER_S

LIMITS = RobotLimits(
    joints=(JointLimit("pan", -1.5, 1.5, 2.0, 10.0),),
    base=BaseLimit(wheel_speed_mps=0.4, acceleration_mps2=0.5, track_m=0.20),
)
SILENT_NS = NS_PER_S // 2
FORGET_NS = NS_PER_S // 4
"""Without a command for so long the wheels stop."""


class SerialBase:
    """The base at `port`. It never blocks: what does not fit into the line is dropped, and said again 20 ms later."""

    limits = LIMITS
    is_hardware = True

    def __init__(self, port: str = "/dev/ttyUSB0") -> None:
        self._port = port
        self._line = -1
        self._rest = b""
        self._wheels_m: tuple[float, float] | None = None
        self._pose = [0.0, 0.0, 0.0]
        self._speed = (0.0, 0.0)
        self._pan = self._pan_goal = self._pan_speed = 0.0
        self._is_pressed = self._is_held = False
        self._battery_v = 0.0
        self._read_ns = 0
        self._wanted = (0.0, 0.0)
        self._now_ns = self._commanded_ns = 0

    def start(self, now_ns: int) -> None:
        """Open the line; nothing moves. Raises RobotError where there is none."""
        try:
            self._line = os.open(self._port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
            tty.setraw(self._line)
            settings = termios.tcgetattr(self._line)
            settings[4] = settings[5] = termios.B115200
            termios.tcsetattr(self._line, termios.TCSANOW, settings)
        except (OSError, termios.error) as problem:
            raise RobotError(f"{self._port}: the base is not there ({problem}); plug it in, or name its port") from None

    def advance(self, now_ns: int) -> None:
        """Read what has come, and say again what is wanted."""
        self._now_ns = now_ns
        if self._line < 0:
            return
        if now_ns - self._commanded_ns > FORGET_NS:  # the firmware hears this line for ever: nobody else would stop it
            self._wanted = (0.0, 0.0)
        try:
            self._rest += os.read(self._line, 1 << 12)
        except BlockingIOError:
            pass
        except OSError:  # unplugged: the stamp stands still, and the guard holds
            return
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            self._take(line, now_ns)
        stands = self._is_held or self._is_pressed
        left, right = (0.0, 0.0) if stands else self._wanted
        try:
            os.write(self._line, f"v {left:.4f} {right:.4f} {self._pan_goal:.4f}\n".encode())
        except OSError:
            pass  # full, or unplugged

    def _take(self, line: bytes, now_ns: int) -> None:
        word, *numbers = line.split()[:6] or [b""]
        try:
            left, right, pan, button, battery = map(float, numbers)
        except ValueError:
            return  # half a line, as at the start
        if word != b"o" or not all(map(math.isfinite, (left, right, pan, battery))):
            return
        period_s = (now_ns - self._read_ns) / NS_PER_S
        if self._wheels_m is not None and 0.0 < period_s < 1.0:
            left_m, right_m = left - self._wheels_m[0], right - self._wheels_m[1]
            turned = (right_m - left_m) / LIMITS.base.track_m
            heading = self._pose[2] + turned / 2
            self._pose[0] += (left_m + right_m) / 2 * math.cos(heading)
            self._pose[1] += (left_m + right_m) / 2 * math.sin(heading)
            self._pose[2] += turned
            self._speed = (left_m + right_m) / 2 / period_s, turned / period_s
            self._pan_speed = (pan - self._pan) / period_s
        elif self._wheels_m is None:
            self._pan_goal = pan  # it stays where it was found
        self._wheels_m, self._pan, self._battery_v, self._read_ns = (left, right), pan, battery, now_ns
        self._is_pressed = bool(button)

    def read(self, now_ns: int) -> RobotState:
        """As of the last line that came whole."""
        x, y, heading = self._pose
        return RobotState(
            read_ns=self._read_ns, position=(self._pan,), velocity=(self._pan_speed,), effort=(0.0,), base_x_m=x,
            base_y_m=y, base_heading_rad=heading, base_v_mps=self._speed[0], base_w_radps=self._speed[1], contact=(),
        )  # fmt: skip

    def status(self, now_ns: int) -> RobotStatus:
        """Ready while lines come and no button is pressed."""
        is_stopped = self._is_held or self._is_pressed
        is_silent = self._wheels_m is None or now_ns - self._read_ns > SILENT_NS
        why = "the runstop is pressed" if is_stopped else f"nothing comes from {self._port}" if is_silent else ""
        return RobotStatus(
            read_ns=self._read_ns, mode="runstopped" if is_stopped else "lost" if is_silent else "ready", why=why,
            is_runstopped=is_stopped, battery_v=self._battery_v,
        )  # fmt: skip

    def command(self, command: JointCommand) -> None:
        """Take a pan and a velocity. Raises ValueError where they are not finite, one a joint."""
        check_command(command, 1)
        if self._is_held or self._is_pressed:
            return
        limit, base = LIMITS.joints[0], LIMITS.base
        self._pan_goal = min(max(command.position[0], limit.lowest), limit.highest)
        half = command.base_w_radps * base.track_m / 2
        wheels = (command.base_v_mps - half, command.base_v_mps + half)
        left, right = (min(max(one, -base.wheel_speed_mps), base.wheel_speed_mps) for one in wheels)
        self._wanted = (left, right)
        self._commanded_ns = self._now_ns

    def stop(self) -> None:
        """Wheels to zero; the servo stays where it is."""
        self._wanted = (0.0, 0.0)
        if abs(self._pan_speed) > 0.02 or abs(self._pan_goal - self._pan) > 0.05:
            self._pan_goal = self._pan

    def home(self) -> None:
        """It has no zeros to find. Raises RobotError while the runstop is pressed."""
        self._refuse("home")

    def stow(self) -> None:
        """The camera looks ahead. Raises RobotError while the runstop is pressed."""
        self._refuse("stow")
        self._pan_goal = 0.0

    def runstop(self, is_on: bool) -> None:
        """Stop, or let go; after it nothing moves by itself."""
        self.stop()
        self._is_held = is_on

    def close(self) -> None:
        """Stop it and close the line; twice as well."""
        self.stop()
        if self._line >= 0:
            try:
                os.write(self._line, f"v 0 0 {self._pan:.4f}\n".encode())
            except OSError:
                pass
            os.close(self._line)
            self._line = -1

    def _refuse(self, what: str) -> None:
        if self._is_held or self._is_pressed:
            raise RobotError(f"the base does not {what} while its runstop is pressed; release it first")
