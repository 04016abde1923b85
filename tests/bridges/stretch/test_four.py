"""The Stretch 4 keeps the robot protocol, above a server that behaves as the maker's does, and its lease stands."""

from __future__ import annotations

import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from bridges.stretch.four import HOME_PRIORITY, RUNSTOP_PRIORITY, Stretch4Robot
from bridges.stretch.four_link import NAMES, ServerLink, Unreadable, endpoints, read_pickle
from bridges.stretch.four_status import opening_m, read_status, servo_of
from nodes.robot.conformance import PERIOD_S, Bench, RobotConformance
from nodes.robot.protocol import RobotError
from nodes.robot.robot_from_launch import limits_problem
from nodes.stretch.limits import STRETCH_4
from runtime.clock import SystemClock, to_ns
from runtime.errors import ParameterError
from runtime.msgs import JointCommand, RobotStatus
from tests.bridges.stretch.fake_stretch4 import DirectLink, SocketServer, World

CLOCK = SystemClock()


class FourBench(Bench):
    """In virtual time."""

    robot: Stretch4Robot

    def __init__(self, speed: str = "default") -> None:
        self.world = World()
        self.link = DirectLink(self.world)
        super().__init__(Stretch4Robot(speed, link=self.link))

    def pass_time(self, seconds: float) -> None:
        super().pass_time(seconds)
        self.world.advance(seconds)

    def press_runstop(self, is_on: bool) -> None:
        self.world.press(is_on)

    def unhome(self) -> None:
        for joint in self.world.joints.values():
            joint.is_homed = False

    def touch(self) -> Literal["lift", "base"]:
        self.world.joints["lift"].stands_at = self.world.joints["lift"].at + 0.05
        return "lift"

    @property
    def status(self) -> RobotStatus:
        return self.robot.status(self.now_ns)

    def other(self, client: str = "client_other", priority: int = 0) -> None:
        """Somebody else commands once."""
        self.link.hear({"client_id": client, "cmd_dict": {}, "priority": priority, "seq": 1})


class TestStretch4Robot(RobotConformance):
    limits = "nodes.stretch.limits:STRETCH_4"

    def make(self) -> Bench:
        return FourBench()


class TestSlowStretch4Robot(TestStretch4Robot):
    def make(self) -> Bench:
        return FourBench("slow")


@pytest.fixture
def bench() -> Iterator[FourBench]:
    bench = FourBench()
    bench.robot.start(bench.now_ns)
    bench.drift(0.1)
    yield bench
    bench.close()


def driving(bench: FourBench, **speeds: float) -> JointCommand:
    return JointCommand(position=bench.robot.read(bench.now_ns).position, **speeds)
