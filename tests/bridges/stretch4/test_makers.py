"""The driver of a Stretch 4 against the maker's own server class, and against the maker's own client for the lease.

Needs an environment with stretch4_body: POLYRHYTHM_STRETCH4_PYTHON names its interpreter. `make interop` makes one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest

from bridges.stretch4.link import FOLDER
from bridges.stretch4.robot import Stretch4Robot
from nodes.msgs import JointCommand
from nodes.robot.conformance import PERIOD_S, Bench, RobotConformance
from nodes.robot.protocol import RobotError
from runtime.clock import SystemClock
from tests.bridges.stretch.patient_bench import PatientBench
from tests.bridges.stretch4.test_robot import DRIVER, modes_after_it_is_lost

PYTHON = os.environ.get("POLYRHYTHM_STRETCH4_PYTHON", "")
CLOCK = SystemClock()
WAIT_S = 10.0

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(
        not PYTHON, reason="POLYRHYTHM_STRETCH4_PYTHON names no Python that has stretch4_body; make interop makes one"
    ),
]


class Makers:
    """A program with a class of the maker's: its server, or a client of it."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [PYTHON, "-m", "tests.interop.stretch4_makers", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.getcwd()},
        )  # fmt: skip
        assert self._answer() == {"up": True}

    def do(self, what: str, value: object = None) -> dict[str, Any]:
        self.tell(what, value)
        return self._answer()

    def tell(self, what: str, value: object = None) -> None:
        """Without waiting: a driver that waits is one that hangs."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"what": what, **({"value": value} if value is not None else {})}) + "\n")
        self.process.stdin.flush()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


class MakersBench(Bench):
    robot: Stretch4Robot

    def __init__(self) -> None:
        self.server = Makers("server")
        super().__init__(Stretch4Robot())
        self.now_ns = CLOCK.now_ns()

    def pass_time(self, seconds: float) -> None:
        CLOCK.block(seconds)
        self.now_ns = CLOCK.now_ns()

    def press_runstop(self, is_on: bool) -> None:
        self.server.do("press", is_on)

    def unhome(self) -> None:
        self.server.do("unhome")

    def touch(self) -> Literal["lift", "base"]:
        self.server.do("touch")
        return "lift"

    def close(self) -> None:
        super().close()
        self.server.close()

    def set_off(self) -> JointCommand:
        """To the left, whatever this machine does meanwhile; the command that it follows."""
        command = JointCommand(position=self.robot.read(self.now_ns).position, base_vy_mps=0.2)
        begun_s = CLOCK.now_s()
        while self.server.do("look")["base"][1] < 0.15:
            assert CLOCK.now_s() - begun_s < WAIT_S, self.why
            self.run(PERIOD_S, None if self.why else command)
        return command

    def until(self, is_so: Callable[[], bool], command: JointCommand | None = None) -> float:
        begun_s = CLOCK.now_s()
        while not is_so():
            assert CLOCK.now_s() - begun_s < WAIT_S, self.robot.status(self.now_ns)
            self.run(PERIOD_S, command)
        return CLOCK.now_s() - begun_s

    @property
    def why(self) -> str:
        return self.robot.status(self.now_ns).why


class PatientMakersBench(PatientBench, MakersBench):
    """For what is no claim about a hold."""


class TestStretch4AgainstTheMakersServer(RobotConformance):
    limits = "nodes.stretch.limits:STRETCH_4"

    def make(self) -> Bench:
        return PatientMakersBench()


@pytest.fixture
def bench() -> Iterator[MakersBench]:
    bench = MakersBench()
    bench.robot.start(bench.now_ns)
    bench.drift(0.1)
    yield bench
    bench.close()


@pytest.mark.parametrize("priority", ["1", "3"])
def test_the_makers_client_takes_the_robot_and_it_does_not_move_again_by_itself(
    bench: MakersBench, priority: str
) -> None:
    gamepad = Makers("client", "gamepad_of_the_maker", priority)
    command = bench.set_off()
    gamepad.tell("go on")
    taken = "gamepad_of_the_maker commands it through its server"
    seconds = bench.until(lambda: taken in bench.why, command)
    print(f"\nlost {seconds:.3f} s after the maker's client began, priority {priority}")
    assert bench.server.do("look")["lease_holder"] == "gamepad_of_the_maker"
    bench.until(lambda: bench.server.do("look")["base"] == [0.0, 0.0, 0.0], command)
    bench.run(2.0, command)
    assert bench.mode == "lost"
    gamepad.close()
    bench.until(lambda: bench.mode == "ready", command)
    bench.run(0.5, command)
    assert bench.server.do("look")["base"] == [0.0, 0.0, 0.0], "what was ordered before is not followed"
    bench.run(0.1)
    bench.set_off()


def test_the_makers_client_of_the_same_priority_does_not_take_it_while_it_is_commanded(bench: MakersBench) -> None:
    other = Makers("client", "client_of_the_maker", "0")
    bench.set_off()
    other.tell("go on")
    for _ in range(4):
        bench.run(0.5, bench.set_off())
        assert "client_of_the_maker" not in bench.why
    bench.run(1.5)
    bench.until(lambda: bench.mode == "lost")
    assert "client_of_the_maker" in bench.why
    with pytest.raises(RobotError, match="client_of_the_maker"):
        bench.robot.home()
    other.close()


def test_a_pause_by_the_makers_client_is_told(bench: MakersBench) -> None:
    other = Makers("client", "pauser", "0")
    other.do("pause")
    bench.until(lambda: bench.mode == "lost")
    assert "its server is PAUSED" in bench.why
    other.do("unpause")
    bench.until(lambda: bench.mode == "ready")
    other.close()


@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_the_makers_server_killed_or_frozen_is_told(bench: MakersBench, how: str) -> None:
    command = bench.set_off()
    os.kill(bench.server.process.pid, 9 if how == "killed" else 19)
    try:
        seconds = bench.until(lambda: "its server says nothing" in bench.why, command)
        print(f"\nlost {seconds:.3f} s after the maker's server was {how}")
    finally:
        os.kill(bench.server.process.pid, 18)


def test_a_chain_that_does_not_measure_is_named(bench: MakersBench) -> None:
    bench.server.do("freeze", "wrist_roll")
    bench.until(lambda: bench.mode == "lost")
    assert bench.why.startswith("wrist_roll does not measure")


@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_the_keeper_brakes_the_base_of_a_dead_driver_and_the_makers_server_takes_its_word(how: str) -> None:
    server = Makers("server")
    server.do("firmware", 0)
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, FOLDER], stdout=subprocess.PIPE, text=True)
    try:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "up\n"
        begun_s = CLOCK.now_s()
        while server.do("look")["base"][0] < 0.19:
            assert CLOCK.now_s() - begun_s < WAIT_S
        os.kill(driver.pid, 9 if how == "killed" else 19)
        begun_s = CLOCK.now_s()
        told_s = 0.0
        while (stands := server.do("look"))["base"] != [0.0, 0.0, 0.0]:
            told_s = told_s or (CLOCK.now_s() - begun_s if stands["asked"] == [0.0, 0.0, 0.0] else 0.0)
            assert CLOCK.now_s() - begun_s < WAIT_S
        print(
            f"\ndriver {how}, 0.2 m/s: the base was told after {told_s:.3f} s, at rest {CLOCK.now_s() - begun_s:.3f} s"
        )
        if how == "frozen":
            os.kill(driver.pid, 18)
            assert modes_after_it_is_lost(driver) == ["lost\n"] * 5
            stands = server.do("look")
            assert (stands["asked"], stands["base"]) == ([0.0] * 3, [0.0] * 3), "it goes on when a person says so"
    finally:
        driver.kill()
        driver.wait()
        assert driver.stdout is not None
        driver.stdout.close()
        server.close()
