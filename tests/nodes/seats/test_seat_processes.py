"""Seats and latches in real processes: a person takes over, is lost, drives by keyboard; stops outlive runs."""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.faults.nodes import MODES
from bench.faults.rig import HOLDING, Rig
from nodes.mcap.file import BagReader
from nodes.mcap.parts import parts_of
from nodes.msgs import Comparison, GuardState, JointCommand, Utterance
from nodes.msgs.signature import order, token_of
from nodes.stretch.limits import STRETCH_3
from runtime.clock import SystemClock, to_ns
from runtime.command_line.attach import Sender, StopSignal, hear
from runtime.coordination.lease import Lease
from runtime.serialization.codec import decode
from runtime.supervision.registry import FoundRun, device_folder, find_runs
from tests.support.guard.guard_story import STEP_S, wheels
from tests.support.robots import real_robot
from tests.support.running import eventually
from tests.support.sentences import sentence

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[3]
LONG_S = 60.0
DEMO_S = 280.0
SEAT = {"seats.policy": 'holder = "policy"'}


def command(*arguments: str) -> list[str]:
    """`polyrhythm` with these arguments."""
    return [sys.executable, "-m", "runtime", *arguments]


class Started:
    """A run of a launch file, its output, and what it says on topics."""

    def __init__(self, launch: Path | str, folder: Path, *options: str) -> None:
        self.folder = folder
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command("run", str(launch), "--out", str(folder), *options),
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def found(self) -> list[FoundRun]:
        return [run for run in find_runs() if run.info.supervisor_pid == self.process.pid]

    def await_running(self) -> FoundRun:
        """Once all of its processes run."""

        def is_running() -> bool:
            assert self.process.poll() is None, self.text
            return any(
                set(run.states()) == set(run.info.processes)
                and all(state.state == "running" for state in run.states().values())
                for run in self.found
            )

        eventually(is_running, "all processes run", LONG_S)
        return self.found[0]

    def await_guard(self, is_so: Callable[[GuardState], bool], what: str, within_s: float = LONG_S) -> GuardState:
        """The first state of the guard of which that is true."""
        with StopSignal() as stop_signal:
            for arrival in hear(self.found[0], ["guard/state"], stop_signal, for_s=within_s):
                if arrival is not None and is_so(state := decode(arrival.frames, GuardState).message):
                    return state
        raise AssertionError(f"not within {within_s:g} s: {what}\n{self.text[-2000:]}")

    def say(self, text: str) -> None:
        """A person says that."""
        sender = Sender(self.found[0], "heard", provenance="person:test")
        sender.publish(Utterance(speaker="Ana", text=text))
        sender.close()

    def go_on(self) -> None:
        """Say so, as often as needed: the demo's own story stops the robot too."""
        for _ in range(20):
            try:
                self.await_guard(lambda state: state.mode == "moving" and state.holder == "policy", "it moves", 3.0)
                return
            except AssertionError:
                sender = Sender(self.found[0], "guard/order", provenance="person:test")
                token = token_of(self.found[0].folder)
                sender.publish(order(token, "resume", "Ana", SystemClock().now_ns()))
                sender.close()
        raise AssertionError(f"the model never acts again\n{self.text[-2000:]}")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(LONG_S)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Started]]:
    """Starts launch files, one after the other, with a folder each."""
    runs: list[Started] = []

    def started(launch: Path | str, *options: str) -> Started:
        folder = tmp_path / f"run{len(runs)}"
        folder.mkdir()
        runs.append(Started(launch, folder, *options))
        return runs[-1]

    yield started
    for run in runs:
        run.close()


@pytest.fixture
def rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    """The small graph of the fault matrix, with the changes given."""
    running = Rig(request.param)
    try:
        yield running
    finally:
        running.close()


def seat(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`polyrhythm seat` to its end."""
    return subprocess.run(
        command("seat", *arguments), cwd=ROOT, capture_output=True, text=True, timeout=LONG_S, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.long
def test_a_person_takes_the_policys_seat_in_the_demo_and_the_model_goes_on_in_shadow_and_finishes(
    start: Callable[..., Started],
) -> None:
    demo = start("laptop", "--seed", "1", "--set", "run.report=")  # a table that is soon cleared, and no pictures of it
    name = str(demo.process.pid)
    demo.await_running()
    demo.await_guard(lambda state: state.mode == "moving", "the robot moves", DEMO_S)

    taken = seat("take", "policy", "--as", "me", "--by", "Ana", "--for", "3", "--run", name)
    assert taken.returncode == 0, taken.stderr
    assert "policy: you (me-" in taken.stdout
    assert "given back" in taken.stdout
    demo.go_on()

    tool = subprocess.Popen(
        command("seat", "take", "policy", "--by", "Ana", "--for", "60", "--run", name),
        cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert tool.stdout is not None
    assert "policy: you (me-" in tool.stdout.readline()
    tool.kill()
    tool.wait()
    tool.stdout.close()
    demo.await_guard(lambda state: state.mode == "stopped", "the lost link is noticed")
    demo.go_on()
    assert demo.process.wait(DEMO_S) == 0, demo.text[-3000:]

    recording = Recording(demo.folder / "run.mcap")
    leases = [(lease.holder.partition("-")[0], lease.number) for lease in recording.leases]
    assert leases == [("me", 1), ("policy", 2), ("me", 3), ("policy", 4)]
    assert recording.leases[0].displaced == "policy"
    assert [lease.why for lease in recording.leases][1::2] == ["given back", sentence("guard.link_to_holder_is_lost")]
    recording.check_continuity()
    (begin_ns, end_ns), *_ = recording.spans("me")
    in_shadow = [ns for ns, source in recording.commands if source == "policy" and begin_ns < ns < end_ns]
    assert len(in_shadow) > 20, "the displaced model goes on, and is recorded"
    assert any(one.shadow == "policy" for one in recording.comparisons)
    for out in recording.outputs_between(begin_ns + to_ns(2.0), end_ns):
        assert wheels(out) == (0.0, 0.0), "what a shadow says moves nothing"


class Recording:
    """What of a recording is looked at here."""

    def __init__(self, path: Path) -> None:
        self.leases: list[Lease] = []
        self.lease_ns: list[int] = []
        self.commands: list[tuple[int, str]] = []
        self.outputs: list[tuple[int, JointCommand]] = []
        self.comparisons: list[Comparison] = []
        for part in parts_of(path):
            for message in BagReader(part):
                at_ns = message.envelope.published_ns
                if message.topic == "lease" and not message.message(Lease).is_repetition:
                    self.leases.append(message.message(Lease))
                    self.lease_ns.append(at_ns)
                elif message.topic == "command":
                    self.commands.append((at_ns, message.envelope.source))
                elif message.topic == "robot/command":
                    self.outputs.append((at_ns, message.message(JointCommand)))
                elif message.topic == "seat/comparison":
                    self.comparisons.append(message.message(Comparison))

    def spans(self, holder: str) -> list[tuple[int, int]]:
        """From when to when somebody of that name held the seat."""
        ends = [*self.lease_ns[1:], self.outputs[-1][0]]
        return [
            (begin, end)
            for lease, begin, end in zip(self.leases, self.lease_ns, ends, strict=True)
            if lease.holder.startswith(holder)
        ]

    def outputs_between(self, begin_ns: int, end_ns: int) -> list[JointCommand]:
        return [out for at_ns, out in self.outputs if begin_ns < at_ns < end_ns]

    def check_continuity(self) -> None:
        """From tick to tick no wheel changes its speed, no joint its place, by more than the longest step allows."""
        pairs = list(zip(self.outputs, self.outputs[1:], strict=False))
        assert len(pairs) > 500
        for (_, before), (_, after) in pairs:
            for old, new in zip(wheels(before), wheels(after), strict=True):
                assert abs(new - old) <= STRETCH_3.base.acceleration_mps2 * STEP_S + 1e-6
            for limit, here, there in zip(STRETCH_3.joints, before.position, after.position, strict=True):
                assert abs(there - here) <= limit.speed * STEP_S + 1e-6


@pytest.mark.parametrize("rig", [SEAT], indirect=True)
def test_a_person_drives_by_keyboard_and_q_gives_the_seat_back(rig: Rig) -> None:
    rig.wait_moving()
    ours, theirs = pty.openpty()
    tool = subprocess.Popen(
        command("seat", "take", "policy", "--keys", "--run", str(rig.process.pid)), cwd=ROOT, stdin=theirs,
        stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    try:
        assert b"keys:" in read_until(ours, b"give it back")
        assert b"lift " in read_until(ours, b"guard: "), "one line tells what is asked, and what the guard does"

        def backwards() -> bool:
            os.write(ours, b"s")
            record = rig.guard.last()
            return record is not None and record[7] < -0.1

        eventually(backwards, "the robot drives backwards while s is held", LONG_S)
        released_ns = SystemClock().now_ns()

        def is_held() -> bool:
            return any(record[1] == HOLDING for record in rig.guard.since(released_ns))

        eventually(is_held, "released, it is held", LONG_S)
        os.write(ours, b"q")
        told = read_until(ours, b"given back")
        assert told.splitlines()[-1].endswith(b"\x1b[Kpolicy: given back"), "not behind what stood in that line"
        assert tool.wait(LONG_S) == 0
        rig.wait_moving()  # by the policy, forward again, with no word of anybody
    finally:
        tool.kill()
        tool.wait()
        os.close(ours)


LADDER = {
    "run": "frozen_s = 60.0",
    "ladder": 'use = "nodes.seats.ladder:Ladder"\nprocess = "robot"',
    "seats.vlm": 'holder = "vlm"\nladder = [{ silent_s = 0.6, text = "I cannot see." },'
    ' { silent_s = 2.0, do = "hold", text = "I wait." }]',
}


@pytest.mark.parametrize("rig", [LADDER], indirect=True)
def test_the_ladder_of_a_vlm_that_dies_says_why_and_holds_and_its_return_moves_nothing(rig: Rig) -> None:
    rig.wait_moving()
    said: list[str] = []
    rig.send_signal("vlm", signal.SIGKILL)  # it may be back before the ladder's first rung
    eventually(lambda: is_running_again(rig, "vlm"), "it is restarted", LONG_S)
    rig.send_signal("vlm", signal.SIGSTOP)
    try:
        with StopSignal() as stop_signal:
            for arrival in hear(rig.run, ["said"], stop_signal, for_s=LONG_S):
                if arrival is not None:
                    said.append(decode(arrival.frames, Utterance).message.text)
                if said[-1:] == ["I wait."]:
                    break
        assert said[-2:] == ["I cannot see.", "I wait."]
        rig.wait("the robot is stopped", lambda: mode_of(rig) == "stopped")
    finally:
        rig.send_signal("vlm", signal.SIGCONT)
    eventually(lambda: "vlm: heard again" in "".join(rig.output), "it is back", LONG_S)
    assert mode_of(rig) == "stopped"
    rig.wait_moving()  # which says "Go on"


def is_running_again(rig: Rig, process: str) -> bool:
    state = rig.run.states()[process]
    return state.restarts == 1 and state.state in ("running", "restarted")


def mode_of(rig: Rig) -> str:
    record = rig.guard.last()
    return "" if record is None else MODES[int(record[1])]


def test_an_emergency_stop_outlives_the_graph_and_a_renamed_file_and_two_runs_of_one_robot_are_refused(
    start: Callable[..., Started], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYRHYTHM_FAULTS", str(tmp_path))  # where the policy looks what to do wrong: nothing
    kept = device_folder() / "robots" / "tests.support.robots.real_robot_LIMITS"
    shutil.rmtree(kept, ignore_errors=True)
    launch = tmp_path / "latching.toml"
    launch.write_text(real_robot.LAUNCH)

    def guard(run: Started, do: str) -> int:
        asked = command("guard", do, "--by", "Ana", "--run", str(run.process.pid))
        return subprocess.run(asked, cwd=ROOT, timeout=LONG_S, check=False, stdout=subprocess.DEVNULL).returncode

    first = start(launch)
    first.await_running()
    assert guard(first, "arm") == 0
    first.await_guard(lambda state: state.mode == "moving", "the robot moves")
    renamed = tmp_path / "another_name.toml"
    renamed.write_text(real_robot.LAUNCH)
    for name in ("XDG_STATE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "another"))
    second_run = subprocess.run(command("run", str(renamed)), cwd=ROOT, capture_output=True, text=True, timeout=LONG_S)
    assert second_run.returncode == 2
    assert "robot tests.support.robots.real_robot:LIMITS is in use: " in second_run.stderr
    assert f"pid {first.process.pid}" in second_run.stderr, "by the machine's address, or by the lock in the home"
    assert guard(first, "estop") == 0
    first.await_guard(lambda state: bool(state.estop), "it is latched")
    first.close()

    second = start(renamed)
    second.await_running()
    state = second.await_guard(lambda state: True, "the guard's state")
    assert state.mode == "estopped"
    assert state.estop
    assert guard(second, "arm") == 1
    assert guard(second, "rearm") == 0
    state = second.await_guard(lambda state: not state.estop, "re-armed")
    assert state.mode == "stopped"
    states = [second.await_guard(lambda state: True, "the guard's state").mode for _ in range(3)]
    assert states == ["stopped"] * 3, "re-arming alone moves nothing"
    second.close()
    shutil.rmtree(kept)


def read_until(fd: int, end: bytes) -> bytes:
    """What a terminal shows, up to there."""
    text = b""
    while end not in text:
        text += os.read(fd, 4096)
    return re.sub(rb"\x1b\[[0-9;]*m", b"", text)
