"""The driver against the maker's own stretch_body, above boards and servos that a twin plays.

Needs an environment with stretch_body: POLYRHYTHM_STRETCH_PYTHON names its interpreter. `make interop` makes one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bridges.stretch.bringup import STEPS, Progress, Refused, StretchBringup, report
from bridges.stretch.calibration import load
from bridges.stretch.following import BRAKED
from bridges.stretch.link import OnboardProcess, found_python
from bridges.stretch.robot import StretchRobot, calibration_file
from bridges.stretch.twin.twin_driver import PatientStretch, TwinProcess, TwinStretch
from bridges.stretch.twin.wire import PacketReader, framed, packet_crc, status_packet, unframed
from nodes.msgs import JOINTS, JointCommand, RobotState
from nodes.robot.conformance import PERIOD_S, Bench, RobotConformance
from nodes.robot.protocol import RobotError
from runtime.clock import SystemClock
from tests.bridges.stretch.patient_bench import PatientBench
from tests.support.sentences import pattern, sentence

PYTHON = os.environ.get("POLYRHYTHM_STRETCH_PYTHON", "")
CLOCK = SystemClock()

needs_library = pytest.mark.skipif(
    not PYTHON, reason="POLYRHYTHM_STRETCH_PYTHON names no Python that has stretch_body; make interop makes one"
)


def python_with_library() -> str:
    return PYTHON or found_python()


class TwinBench(PatientBench):
    """Real time: the library's threads, the lanes and the twin go at their own rates."""

    robot: StretchRobot

    def __init__(self, twin: TwinProcess) -> None:
        self.twin = twin
        self.link = OnboardProcess(python_with_library(), "default", avoid_collisions=False)
        super().__init__(PatientStretch(link=self.link))
        self.now_ns = CLOCK.now_ns()
        self.due_ns = self.now_ns

    def pass_time(self, seconds: float) -> None:
        self.due_ns = max(self.due_ns + round(seconds * 1e9), CLOCK.now_ns())
        CLOCK.block(max(0.0, (self.due_ns - CLOCK.now_ns()) * 1e-9))
        self.now_ns = CLOCK.now_ns()

    def drift(self, seconds: float) -> RobotState:
        """A homing that took its half minute in `home` need not be waited for again."""
        return super().drift(min(seconds, 4.0))

    def press_runstop(self, is_on: bool) -> None:
        self.twin.do("runstop", is_on)
        if self.link.pid:
            self.drift(0.3)

    def unhome(self) -> None:
        self.twin.do("unhome")

    def touch(self) -> str:
        self.twin.do("lift_ceiling_m", 0.5)
        return "lift"

    def arrive(self, position: tuple[float, ...], seconds: float = 20.0) -> RobotState:
        """Send all joints there."""
        until_ns = CLOCK.now_ns() + round(seconds * 1e9)
        while CLOCK.now_ns() < until_ns:
            state = self.run(0.2, JointCommand(position=position))
            if all(abs(is_at - wanted) < 0.01 for is_at, wanted in zip(state.position, position, strict=True)):
                return state
        return state

    def set_off(self, seconds: float = 20.0) -> dict[str, Any]:
        """Lift, wrist and base on their way; where the machine was so busy that they were held, once more."""
        until_ns = CLOCK.now_ns() + round(seconds * 1e9)
        while True:
            self.run(0.1)
            self.run(1.2, moving(self))
            stands = self.twin.do("where")
            if min(abs(speed) for speed in stands["wheels_mps"]) > 0.05:
                return stands
            assert CLOCK.now_ns() < until_ns, "it never set off"

    def until(self, condition: Any, seconds: float = 5.0) -> float:
        """Wait for a fact; how many seconds it took."""
        begun_ns = CLOCK.now_ns()
        while not condition():
            assert (CLOCK.now_ns() - begun_ns) * 1e-9 < seconds, "it did not come to pass"
            self.drift(PERIOD_S)
        return (CLOCK.now_ns() - begun_ns) * 1e-9


@pytest.fixture
def twin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TwinProcess]:
    twin = TwinProcess(tmp_path / "fleet", python_with_library())
    for name, value in twin.environment.items():
        monkeypatch.setenv(name, value)
    yield twin
    twin.close()


@pytest.fixture
def bench(twin: TwinProcess) -> Iterator[TwinBench]:
    bench = TwinBench(twin)
    bench.robot.start(bench.now_ns)
    bench.drift(0.5)
    yield bench
    bench.close()


def test_a_frame_comes_back_as_it_went() -> None:
    for data in (b"\x01", b"\0", b"a\0\0b", bytes(range(58)), b"\0" * 40):
        assert unframed(framed(data)[:-1]) == data
        assert 0 not in framed(data)[:-1]
    assert unframed(b"\x05abc") is None
    assert unframed(framed(b"hello")[:-2]) is None


def test_a_packet_of_the_manual_is_read() -> None:
    """Read of the present position of servo 1, from Robotis' e-manual: FF FF FD 00 01 07 00 02 84 00 04 00 1D 15."""
    packet = bytes.fromhex("fffffd0001070002840004001d15")
    assert packet_crc(packet[:-2]) == 0x151D
    assert list(PacketReader().feed(packet[:5])) == []
    assert list(PacketReader().feed(b"noise" + packet)) == [(1, 2, bytes.fromhex("84000400"), 14)]
    assert status_packet(1, 0, bytes.fromhex("a6000000")) == bytes.fromhex("fffffd000108005500a60000008cc0")


@needs_library
@pytest.mark.long
@pytest.mark.processes
class TestTwin(RobotConformance):
    """The whole suite, in real time."""

    def make(self) -> Bench:
        return TwinBench(self.request.getfixturevalue("twin"))


@needs_library
@pytest.mark.processes
def test_the_library_runs_unchanged_and_the_robot_goes_where_it_is_sent(bench: TwinBench) -> None:
    assert bench.robot.hello.library == "0.7.31"
    position = list(bench.robot.read(bench.now_ns).position)
    position[JOINTS.index("wrist_pitch")] = -0.5
    position[JOINTS.index("lift")] += 0.05
    position[JOINTS.index("wrist_yaw")] += 0.3
    state = bench.arrive(tuple(position))
    assert state.position[0] == pytest.approx(position[0], abs=0.01)
    assert state.position[2] == pytest.approx(position[2], abs=0.02)
    assert bench.twin.do("where")["lift_m"] == pytest.approx(position[0], abs=0.01)


def test_nothing_of_the_library_is_patched() -> None:
    """The seam is the ports of the fleet folder; the process that speaks to it sets nothing of it."""
    onboard = Path(__file__).parents[3] / "bridges" / "stretch"
    for source in [*onboard.glob("onboard/*.py"), *onboard.glob("twin/*.py")]:
        text = source.read_text()
        assert "setattr(" not in text, source
        assert "import stretch_body" not in text, source


def test_a_twin_does_not_play_in_virtual_time() -> None:
    with pytest.raises(RobotError, match=pattern("bridges.run_without_virtual")):
        TwinStretch(python="python3").start(0)


def moving(bench: TwinBench) -> JointCommand:
    position = list(bench.robot.read(bench.now_ns).position)
    position[JOINTS.index("lift")] += 0.5
    position[JOINTS.index("wrist_yaw")] += 3.0
    return JointCommand(position=tuple(position), base_v_mps=0.1)


def speeds(stands: dict[str, Any]) -> float:
    """The fastest of what moves: m/s, and turns of servos."""
    wheels = max(abs(speed) for speed in stands["wheels_mps"])
    turns = max(abs(speed) for speed in stands["ticks_per_s"].values()) / 4096
    return float(max(abs(stands["lift_mps"]), wheels, turns))


@needs_library
@pytest.mark.long
@pytest.mark.processes
@pytest.mark.parametrize("fault", ["unplug end_of_arm", "unplug head", "silent lift", "silent pimu", "pull left_wheel"])
def test_a_chain_that_leaves_is_named_and_the_robot_stands(bench: TwinBench, fault: str) -> None:
    what, chain = fault.split()
    bench.set_off()
    bench.twin.do(what, chain)
    old = bench.until(lambda: bench.now_ns - bench.robot.read(bench.now_ns).read_ns > 0.25e9)
    lost = bench.until(lambda: bench.mode == "lost")
    print(f"-- {fault}: too old for the guard after {old:.2f} s, lost after {old + lost:.2f} s")
    assert old < 0.6
    assert "does not measure" in bench.robot.status(bench.now_ns).why
    bench.until(lambda: speeds(bench.twin.do("where")) < 0.005, 6.0)


@needs_library
@pytest.mark.long
@pytest.mark.processes
def test_a_hot_motor_is_an_alert(bench: TwinBench) -> None:
    bench.twin.do("hot", "wrist_roll")
    seconds = bench.until(lambda: "hot wrist_roll" in bench.robot.status(bench.now_ns).alerts)
    print(f"-- hot motor: alert after {seconds:.2f} s")


@needs_library
@pytest.mark.long
@pytest.mark.processes
@pytest.mark.parametrize("who", ["the driver hangs", "the library's process is killed"])
def test_whoever_dies_leaves_a_robot_that_stands(twin: TwinProcess, who: str) -> None:
    bench = TwinBench(twin)
    bench.robot.start(bench.now_ns)
    try:
        dies_leaves_a_robot_that_stands(bench, twin, who)
    finally:
        bench.close()
    again = TwinBench(twin)  # nobody holds the library's lock
    again.robot.start(again.now_ns)
    again.close()


def dies_leaves_a_robot_that_stands(bench: TwinBench, twin: TwinProcess, who: str) -> None:
    bench.drift(0.5)
    stands = bench.set_off()
    begun_ns, lift_m, wheel_m = CLOCK.now_ns(), stands["lift_m"], stands["wheels_m"][0]
    if who == "the library's process is killed":
        os.kill(bench.link.pid, signal.SIGKILL)
    while speeds(stands := twin.do("where")) > 0.005:
        assert CLOCK.now_ns() - begun_ns < 10e9
        CLOCK.block(0.005)
    seconds = (CLOCK.now_ns() - begun_ns) * 1e-9
    lift_cm, base_cm = 100 * (stands["lift_m"] - lift_m), 100 * (stands["wheels_m"][0] - wheel_m)
    print(f"-- {who}: at rest after {seconds:.2f} s; lift {lift_cm:.1f} cm on, base {base_cm:.1f} cm on")
    assert lift_cm < 6
    assert base_cm < 20
    bench.drift(0.1)
    assert bench.mode == "lost"
    why = bench.robot.status(bench.now_ns).why
    assert "SIGKILL" in why if who == "the library's process is killed" else why == BRAKED


@needs_library
@pytest.mark.long
@pytest.mark.processes
def test_a_held_wrist_does_not_sag(bench: TwinBench) -> None:
    position = list(bench.robot.read(bench.now_ns).position)
    position[JOINTS.index("wrist_pitch")] = 0.0
    bench.arrive(tuple(position))
    before = bench.twin.do("where")["ticks"]["wrist_pitch"]
    bench.run(1.0)
    stands = bench.twin.do("where")
    assert stands["torque"]["wrist_pitch"]
    assert abs(stands["ticks"]["wrist_pitch"] - before) < 20


@needs_library
@pytest.mark.long
@pytest.mark.processes
def test_a_second_program_is_refused(bench: TwinBench) -> None:
    with pytest.raises(RobotError, match=pattern("bridges.another_program")):
        TwinBench(bench.twin).robot.start(bench.now_ns)


@needs_library
@pytest.mark.long
@pytest.mark.processes
def test_orders_reach_the_buses_at_115200_baud_in_time(bench: TwinBench) -> None:
    """All joints stream at 50 Hz for 5 s; the lanes coalesce, and the bus has time left for its status rounds."""
    state = bench.robot.read(bench.now_ns)
    before, begun_ns = bench.twin.do("where")["bus_busy_s"], CLOCK.now_ns()
    ages: dict[str, list[float]] = {"steppers": [], "wrist": [], "head": []}
    for tick in range(250):
        position = [
            place + (0.001 if name in ("lift", "arm", "gripper") else 0.004) * (tick % 100)
            for name, place in zip(JOINTS, state.position, strict=True)
        ]
        bench.run(PERIOD_S, JointCommand(position=tuple(position)))
        for lane, age_ms in bench.robot.reading.order_age_ms.items():
            ages[lane].append(age_ms)
    seconds = (CLOCK.now_ns() - begun_ns) * 1e-9
    busy = bench.twin.do("where")["bus_busy_s"]
    for lane, told in ages.items():
        told.sort()
        print(f"-- lane {lane}: goals {told[len(told) // 2]:.1f} ms old when written (median), worst {told[-1]:.1f} ms")
    for bus in busy:
        share = (busy[bus] - before[bus]) / seconds
        print(f"-- bus {bus}: {100 * share:.0f} % of the wire in use")
        assert share < 0.8


@needs_library
@pytest.mark.long
@pytest.mark.processes
def test_bring_up_goes_through_all_its_steps_and_leaves_the_robot_as_it_was(twin: TwinProcess) -> None:
    """A person's part is played: who presses the runstop and holds a sponge. Most of it is at a tenth of the speed."""

    def person(asked: str) -> None:
        print(f"   {asked}")
        for said, what, value in (
            ("press the runstop", "runstop", True),
            ("hold it for two seconds", "runstop", False),
            ("hold a sponge", "between_fingers", 5200.0),
            ("take it out again", "between_fingers", None),
        ):
            if said in asked:
                twin.do(what, value)

    twin.do("unhome")
    robot = PatientStretch(link=OnboardProcess(python_with_library(), "default", avoid_collisions=False))
    progress = Progress("twin")
    robot.start(CLOCK.now_ns())
    try:
        for _ in range(3):  # an answer that a busy machine gives too late ends a homing; it goes on where it was left
            with suppress(Refused):
                StretchBringup(robot, progress, person).run([name for name in STEPS if name != "machine"], lambda: None)
                break
    finally:
        robot.close()
    print(report(progress))
    assert all(step.is_done for step in progress.steps)
    assert {stop.joint for stop in progress.stops} == {"lift", "arm", "wrist_yaw", "base"}
    assert all(0.0 < stop.speed < 0.3 and stop.seconds < 0.5 for stop in progress.stops)
    assert abs(twin.do("where")["wheels_m"][0]) < 0.03
    assert load(calibration_file()).is_measured


@needs_library
@pytest.mark.processes
def test_after_a_run_that_died_the_service_presses_the_runstop(twin: TwinProcess) -> None:
    """As `ExecStopPost` of the unit does it: by the robot's own power board, when nobody else speaks to it."""
    script = Path(__file__).parents[3] / "bridges" / "stretch" / "onboard" / "runstop.py"
    for result, is_pressed in (("success", False), ("watchdog", True)):
        environment = {**os.environ, "SERVICE_RESULT": result}
        ended = subprocess.run([PYTHON, "-E", str(script)], env=environment, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0, ended.stderr
        assert twin.do("where")["is_runstopped"] is is_pressed
    assert sentence("bridges.runstop_is_pressed") in ended.stdout


@needs_library
@pytest.mark.long
@pytest.mark.processes
def test_a_driver_that_dies_while_the_library_starts_leaves_nobody_who_holds_the_robot(twin: TwinProcess) -> None:
    script = Path(__file__).parents[3] / "bridges" / "stretch" / "onboard"
    settings = {"profile": "default", "avoid_collisions": False, "key": "00" * 32, "endpoint": f"ipc://{twin.folder}/b"}
    with subprocess.Popen([PYTHON, "-E", str(script)], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        process.communicate(json.dumps(settings).encode() + b"\n", timeout=60)  # and its input ends
    again = TwinBench(twin)
    again.robot.start(again.now_ns)
    again.close()
