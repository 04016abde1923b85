"""The base at a pty keeps the robot protocol: at the other end is firmware of ours, no hardware was touched."""

from __future__ import annotations

import os
import tty

import pytest
from serial_base import LIMITS, SILENT_NS, SerialBase

from nodes.robot.conformance import Bench, RobotConformance
from nodes.robot.protocol import RobotError
from runtime.clock import NS_PER_S

STEP_S = 0.02


class Firmware:
    """The other end of the line: follows wheel speeds and pan within its own limits, and stops when nobody speaks."""

    def __init__(self) -> None:
        self.line, self.far_end = os.openpty()
        tty.setraw(self.line)
        os.set_blocking(self.line, False)
        self.port = os.ttyname(self.far_end)
        self.wanted, self.speed, self.way_m = (0.0, 0.0), [0.0, 0.0], [0.0, 0.0]
        self.pan = self.pan_goal = 0.0
        self.is_pressed = False
        self.silent_s = 0.0

    def step(self) -> None:
        try:
            lines = os.read(self.line, 1 << 14).split(b"\n")
        except BlockingIOError:
            lines = []
        self.silent_s = 0.0 if lines else self.silent_s + STEP_S
        for words in (line.split() for line in lines if line.startswith(b"v ") and line.count(b" ") == 3):
            self.wanted, self.pan_goal = (float(words[1]), float(words[2])), float(words[3])
        is_halted = self.is_pressed or self.silent_s > 0.5
        change = LIMITS.base.acceleration_mps2 * STEP_S
        for side in range(2):
            off = (0.0 if is_halted else self.wanted[side]) - self.speed[side]
            self.speed[side] += min(max(off, -change), change)
            self.way_m[side] += self.speed[side] * STEP_S
        step = LIMITS.joints[0].speed * STEP_S
        if not is_halted:
            self.pan += min(max(self.pan_goal - self.pan, -step), step)
        told = f"o {self.way_m[0]:.6f} {self.way_m[1]:.6f} {self.pan:.5f} {int(self.is_pressed)} 12.1\n"
        os.write(self.line, told.encode())

    def close(self) -> None:
        os.close(self.line)
        os.close(self.far_end)


class BaseBench(Bench):
    robot: SerialBase

    def __init__(self) -> None:
        self.firmware = Firmware()
        super().__init__(SerialBase(self.firmware.port))

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds / STEP_S)):
            super().pass_time(STEP_S)
            self.firmware.step()

    def press_runstop(self, is_on: bool) -> None:
        self.firmware.is_pressed = is_on

    def close(self) -> None:
        super().close()
        self.firmware.close()


class TestSerialBase(RobotConformance):
    limits = "serial_base:LIMITS"

    def make(self) -> Bench:
        return BaseBench()


def test_a_port_that_is_not_there_is_told() -> None:
    with pytest.raises(RobotError, match="/dev/no_such_port"):
        SerialBase("/dev/no_such_port").start(NS_PER_S)


def test_a_line_that_falls_silent_is_lost_and_garbage_is_passed_over() -> None:
    bench = BaseBench()
    bench.robot.start(bench.now_ns)
    bench.drift(0.2)
    assert bench.mode == "ready"
    os.write(bench.firmware.line, b"o nan 0 0 0 0\n\xff\xfe broken\no 1 2\n")
    before = bench.robot.read(bench.now_ns)
    bench.now_ns += 2 * SILENT_NS
    bench.robot.advance(bench.now_ns)
    assert bench.mode == "lost"
    assert bench.robot.read(bench.now_ns) == before, "nothing was measured, so the stamp stands still"
    bench.close()
