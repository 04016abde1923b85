"""The boards of a Stretch 3 on USB: four motor boards, the power board, the wrist board.

Calls, flags and layouts are those that stretch_body 0.7.31 packs and unpacks (`stepper.py` protocol 5, `pimu.py`
protocol 6, `wacc.py` protocol 3); what the firmware does with them is modelled from its documentation and from how
stretch_body uses it, and is nowhere measured.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bridges.stretch.twin.motion import Motor

AMPERE_PER_TICK = (3.3 / 255) / (5 * 0.150)
MOST_AMPERE = 4.4
WHEEL_WATCHDOG_S = 1.0

SAFETY, FREEWHEEL, HOLD, POS_PID, VEL_PID, POS_TRAJ, VEL_TRAJ, CURRENT, POS_TRAJ_INCR, WAYPOINT = range(10)
SYNC_MODE, GUARDED_MODE, VEL_WATCHDOG = 4, 8, 64


@dataclass
class MotorCommand:
    """What a motor board is told to do."""

    mode: int = SAFETY
    x: float = 0.0
    v: float = 0.0
    a: float = 0.0
    contact_positive_a: float = 3.0
    contact_negative_a: float = -3.0
    increment: int = 0


class MotorBoard:
    """A stepper with its board."""

    def __init__(self, motor: Motor, kind: int, now_s: Callable[[], float]) -> None:
        self.motor, self._kind, self._now_s = motor, kind, now_s
        self.command = MotorCommand()
        self._queued: MotorCommand | None = None
        self._config = SYNC_MODE | GUARDED_MODE
        self._increment = 0
        self._commanded_s = 0.0
        self._guarded = 0
        self._is_guarded = False
        self.is_calibrated = True
        self.is_runstopped = False
        self._cycles = 0

    def call(self, request: bytes) -> bytes:
        """The reply to one call."""
        code, data = request[0], request[1:]
        if code == 1:
            self._take(data)
            self._cycles = (self._cycles + 1) & 0xFFFF
            return struct.pack("<BH", 2, self._cycles)
        if code == 3:
            return self._status()
        if code == 5 and len(data) >= 81:
            self._config = data[80]
        if code == 9:
            self._trigger(*struct.unpack_from("<If", data))
        if code == 17:
            return struct.pack("<B20s20sB", 18, b"Stepper.3", b"Stepper.v0.7.1p5", self._kind)
        if code == 25:
            self.motor.stand()
        return bytes((code + 1, 1))

    def sync(self) -> None:
        """The pulse at which queued commands begin."""
        if self._queued is not None:
            queued, self._queued = self._queued, None
            self._begin(queued)

    def runstop(self, *, is_on: bool) -> None:
        """The line that all motors share."""
        self.is_runstopped = is_on
        if is_on:
            self._queued = None
            self.command = MotorCommand()
            self.motor.stand()

    def step(self, seconds: float) -> None:
        """Let time pass."""
        motor = self.motor
        has_watchdog = self._config & VEL_WATCHDOG and self.command.mode in (VEL_PID, VEL_TRAJ)
        if has_watchdog and self._now_s() - self._commanded_s > WHEEL_WATCHDOG_S and motor.velocity is not None:
            motor.velocity = (0.0, motor.velocity[1])
        motor.step(seconds)
        if motor.is_blocked and self._config & GUARDED_MODE and self.command.mode != SAFETY:
            ampere = motor.effort_percent / 100 * MOST_AMPERE
            if not self.command.contact_negative_a < ampere < self.command.contact_positive_a:
                self._guarded += 1
                self._is_guarded = True
                motor.stand()
                self.command = MotorCommand()

    def _take(self, data: bytes) -> None:
        mode, x, v, a, _, _, positive, negative, increment = struct.unpack_from("<BfffffffB", data)
        command = MotorCommand(mode, x, v, a, positive, negative, increment)
        is_pulsed = self._config & SYNC_MODE and mode != SAFETY
        if is_pulsed:
            self._queued = command
        else:
            self._begin(command)

    def _begin(self, command: MotorCommand) -> None:
        if self.is_runstopped and command.mode != SAFETY:
            return
        self.command, self._commanded_s, motor = command, self._now_s(), self.motor
        if command.mode != SAFETY:
            self._is_guarded = False
        if command.mode in (POS_TRAJ, POS_PID):
            motor.goal, motor.velocity = (command.x, abs(command.v), abs(command.a)), None
        elif command.mode == POS_TRAJ_INCR:
            if command.increment != self._increment:
                motor.goal, motor.velocity = (motor.position + command.x, abs(command.v), abs(command.a)), None
            self._increment = command.increment
        elif command.mode in (VEL_PID, VEL_TRAJ):
            motor.goal, motor.velocity = None, (command.v, abs(command.a))
        else:
            motor.stand()

    def _trigger(self, flags: int, data: float) -> None:
        if flags & (1 | 64):
            self.motor.offset = data - self.motor.place
            self.motor.stand()
        if flags & 16:
            self.is_calibrated = False
        if flags & 32:
            self.is_calibrated = True

    def _status(self) -> bytes:
        motor, command = self.motor, self.command
        is_moving = abs(motor.speed) > 0.05
        is_near = motor.goal is None or abs(motor.goal[0] - motor.position) < 0.1
        flags = (
            (1, self.is_calibrated), (2, self.is_runstopped), (4, is_near), (8, not is_moving), (16, is_moving),
            (32, motor.is_blocked), (128, (motor.goal is not None and not is_near) or is_moving), (256, True),
            (512, self._is_guarded), (1024, command.mode == SAFETY), (2048, self._queued is not None),
            (16384, bool(self._config & SYNC_MODE)),
        )  # fmt: skip
        diag = sum(bit for bit, is_set in flags if is_set)
        effort = motor.effort_percent / 100 * MOST_AMPERE / AMPERE_PER_TICK
        stamp = round(self._now_s() * 1e6)
        return struct.pack(
            "<BBfdffIQfIfHf", 4, command.mode, effort, motor.position, motor.speed, 0.0, diag, stamp, 0.0,
            self._guarded, 0.0, 0, 12.6 * 1024 / 20,
        )  # fmt: skip


class PowerBoard:
    """Battery, runstop, cliffs and tilt; it gives the motors their pulse."""

    def __init__(self, motors: Sequence[MotorBoard], now_s: Callable[[], float]) -> None:
        self._motors, self._now_s = motors, now_s
        self.is_runstopped = False
        self.battery_v, self.battery_a = 12.9, 2.1
        self.cliffs = 0
        self.tilt_rad = 0.0
        self._pulses = 0

    def call(self, request: bytes) -> bytes:
        """The reply to one call."""
        code, data = request[0], request[1:]
        if code == 3:
            return self._status()
        if code == 5:
            (flags,) = struct.unpack_from("<I", data)
            if flags & 256:
                self.press(is_on=True)
            if flags & 2:
                self.press(is_on=False)
            return struct.pack("<BI", 6, flags)
        if code == 7:
            return struct.pack("<B20s20s", 8, b"Pimu.3", b"Pimu.v0.7.1p6")
        if code == 9:
            for motor in self._motors:
                motor.sync()
            self._pulses = (self._pulses + 1) & 0x7FFF
            return struct.pack("<Bh", 10, self._pulses)
        return bytes((code + 1, 0))

    def press(self, *, is_on: bool) -> None:
        """The button on the head, or its likeness in software."""
        self.is_runstopped = is_on
        for motor in self._motors:
            motor.runstop(is_on=is_on)

    def _status(self) -> bytes:
        state = self.cliffs & 15
        state |= 16 if self.is_runstopped else 0
        state |= 256 if self.battery_v < 10.5 else 0
        state |= 512 if abs(self.tilt_rad) > 0.17 else 0
        pitch_deg = math.degrees(self.tilt_rad)
        imu = (0.0, 0.0, 9.81, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, pitch_deg, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0)
        temperature = (25.0 * 19.5 + 400) / (3300 / 1024)
        ampere = self.battery_a * 1000 * 0.224 / (3300 / 1024)
        return struct.pack(
            "<B17ffff4fIQHffB", 4, *imu, self.battery_v * 1024 / 20, ampere, temperature, 0.0, 0.0, 0.0, 0.0, state,
            round(self._now_s() * 1e6), 0, 0.0, 0.0, 0,
        )  # fmt: skip


class WristBoard:
    """An accelerometer at the wrist."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s

    def call(self, request: bytes) -> bytes:
        """The reply to one call."""
        code = request[0]
        if code == 3:
            return struct.pack("<BfffhBBBBIIQI", 4, 0.0, 0.0, 9.81, 0, 0, 0, 0, 0, 0, 0, round(self._now_s() * 1e6), 0)
        if code == 7:
            return struct.pack("<B20s20s", 8, b"Wacc.2", b"Wacc.v0.5.0p3")
        return bytes((code + 1, 0))
