"""The guard's file: there at once for whoever restarts a process, on the disk itself for whoever cuts the power."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bench.faults.matrix import Skip, mount_small
from nodes.guard.node import Guard
from nodes.guard.persistence import Disk, SavedState, StateFile, read
from nodes.guard.stop_latch import CROWD
from nodes.msgs import EStop, Interrupt, JointCommand
from runtime import Simulation
from runtime.launch.graph import NodeSpec
from runtime.run_facts import RunFacts
from tests.support.robots.still_robot import StillRobot
from tests.support.sentences import sentence
from tests.support.standing import HOME

PRESSED = SavedState(epochs={"planner": 1, "vlm": 1, "policy": 1}, stop="emergency stop", estop="button: pressed")
RELEASED = SavedState(epochs={"planner": 1, "vlm": 1, "policy": 1}, stop="re-armed by Ann")


class NotedDisk(Disk):
    """A disk that writes down what was asked of it, and in which order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.meanwhile: Any = None  # called once in the middle of a sync

    def write(self, path: Path, data: bytes) -> None:
        self.calls.append(("write", path.name))
        super().write(path, data)

    def sync(self, path: Path) -> None:
        self.calls.append(("sync", path.name))
        super().sync(path)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()

    def replace(self, draft: Path, path: Path) -> None:
        self.calls.append(("replace", f"{draft.name} -> {path.name}"))
        super().replace(draft, path)


@pytest.fixture
def disk() -> NotedDisk:
    return NotedDisk()


def test_what_is_noted_is_there_at_once_and_waits_for_no_disk(tmp_path: Path, disk: NotedDisk) -> None:
    path = tmp_path / "guard.json"
    StateFile(path, disk=disk).note(PRESSED)
    assert read(path) == PRESSED
    assert disk.calls == [("write", "guard.json.new"), ("replace", "guard.json.new -> guard.json")]


def test_a_sync_writes_syncs_renames_and_syncs_the_folder_in_this_order(tmp_path: Path, disk: NotedDisk) -> None:
    state_file = StateFile(tmp_path / "guard.json", disk=disk)
    state_file.note(PRESSED)
    disk.calls.clear()
    state_file.sync()
    assert disk.calls == [
        ("write", "guard.json.sync"),
        ("sync", "guard.json.sync"),
        ("replace", "guard.json.sync -> guard.json"),
        ("sync", tmp_path.name),
    ]
    state_file.sync()
    assert len(disk.calls) == 4, "nothing is new, nothing is written"
    assert read(state_file.path) == PRESSED


def test_what_was_noted_during_a_sync_is_not_put_back(tmp_path: Path, disk: NotedDisk) -> None:
    state_file = StateFile(tmp_path / "guard.json", disk=disk)
    state_file.note(RELEASED)
    seen = []

    def press() -> None:
        state_file.note(PRESSED)
        seen.append(read(state_file.path))

    disk.meanwhile = press
    state_file.sync()
    assert seen == [PRESSED]
    assert read(state_file.path) == PRESSED
    assert disk.calls[-2] == ("replace", "guard.json.sync -> guard.json"), "the newest was synced too"
    assert [call for call in disk.calls if call[0] == "sync"] == [
        ("sync", "guard.json.sync"),
        ("sync", "guard.json.sync"),
        ("sync", tmp_path.name),
    ]


def test_a_state_file_that_was_read_is_not_written_again(tmp_path: Path, disk: NotedDisk) -> None:
    state_file = StateFile(tmp_path / "guard.json", PRESSED, disk)
    state_file.note(PRESSED)
    state_file.sync()
    assert disk.calls == []


def test_a_full_disk_stops_no_guard_and_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    guard = Guard(arm="auto", memory="run")
    guard.run_info = RunFacts.of({"registry": str(tmp_path), "launch_file": "x/robot.toml"})
    guard.on_start()
    guard.emergency(EStop(source="button", is_pressed=True))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Disk, "sync", full)
    for _ in range(3):
        guard.settle()
    told = [record.message for record in caplog.records if "cannot be synced" in record.message]
    assert len(told) == 1
    assert "No space left" in told[0]
    monkeypatch.undo()
    guard.settle()
    assert guard.disk_problem == ""


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own for a state file's first note, and for nothing more."""
    place = tmp_path / "small"
    place.mkdir()
    try:
        mount_small(place)
    except Skip as why:
        pytest.skip(str(why))
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_an_emergency_stop_on_a_full_disk_outlives_the_guard(full_disk: Path) -> None:
    path = full_disk / "guard.json"
    state_file = StateFile(path, disk=Disk())
    state_file.note(SavedState(armed_in="this run"))
    with (full_disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while True:
            filler.write(bytes(1 << 12))
    state_file.note(PRESSED)
    assert read(path) == PRESSED
    state_file.note(RELEASED)
    assert read(path) == RELEASED, "a shorter one leaves no end of the longer one"


def driven(state_file: StateFile) -> tuple[Simulation, Guard]:
    """A robot that drives under a guard which keeps what it latches there."""
    guard = Guard(arm="auto", memory="run")
    sim = Simulation(StillRobot(), NodeSpec("guard", Guard, instance=guard))
    sim.run(seconds=0.2)
    guard.state_file = state_file
    for _ in range(10):
        sim.publish("command", JointCommand(position=HOME, base_v_mps=0.2), source="policy")
        sim.run(seconds=0.05)
    assert guard.machine.mode == "moving"
    return sim, guard


def test_a_stop_on_a_disk_that_has_filled_up_brakes_at_once_and_outlives_the_guard(full_disk: Path) -> None:
    state_file = StateFile(full_disk / "guard.json")
    state_file.reserve()
    sim, guard = driven(state_file)
    with (full_disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while True:
            filler.write(bytes(1 << 12))
    sim.publish("interrupt", Interrupt(id="s", depth="stop", text="Stop!", by="Ann"))
    asked_ns = sim.clock.now_ns()
    sim.run(seconds=0.1)
    assert guard.machine.mode == "stopped"
    assert 0 <= guard.machine.body.held_ns - asked_ns < 25_000_000
    found = read(state_file.path)
    assert found is not None
    assert (found.stop, found.locks) == (sentence("guard.stopped_by", by="Ann", why="Stop!"), {"/Ann": "Ann"})


def test_a_disk_that_fails_in_the_middle_of_a_stop_takes_nothing_of_it_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Disk):
        def write(self, path: Path, data: bytes) -> None:
            raise OSError(errno.EIO, "Input/output error")

        def overwrite(self, path: Path, data: bytes) -> None:
            raise OSError(errno.EIO, "Input/output error")

    sim, guard = driven(StateFile(tmp_path / "guard.json", disk=Broken()))
    sim.publish("interrupt", Interrupt(id="s", depth="stop", text="Stop!", by="Ann"))
    asked_ns = sim.clock.now_ns()
    sim.run(seconds=2.0)
    assert guard.machine.mode == "stopped"
    assert 0 <= guard.machine.body.held_ns - asked_ns < 25_000_000
    assert guard.machine.is_at_rest
    told = [record.message for record in caplog.records if "a restart would not know of this" in record.message]
    assert told
    assert len(told) < 5, "at a change, and not at each tick"


def test_where_the_file_cannot_be_written_at_all_the_reason_is_the_disks(tmp_path: Path) -> None:
    class Full(Disk):
        def write(self, path: Path, data: bytes) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    state_file = StateFile(tmp_path / "guard.json", disk=Full())
    for _ in range(2):  # it is tried again
        with pytest.raises(OSError, match="No space left"):
            state_file.note(PRESSED)


def test_a_file_that_was_deleted_is_made_again_with_all_that_is_known(tmp_path: Path) -> None:
    path = tmp_path / "guard.json"
    StateFile(path, PRESSED).reserve()
    assert read(path) == PRESSED
    path.write_bytes(b"not touched")
    StateFile(path, RELEASED).reserve()
    assert path.read_bytes() == b"not touched"


def test_a_file_for_which_there_was_no_room_at_first_is_made_once_there_is(tmp_path: Path) -> None:
    class Filling(Disk):
        is_full = True

        def write(self, path: Path, data: bytes) -> None:
            if self.is_full:
                raise OSError(errno.ENOSPC, "No space left on device")
            super().write(path, data)

    disk = Filling()
    state_file = StateFile(tmp_path / "guard.json", disk=disk)
    with pytest.raises(OSError, match="No space left"):
        state_file.reserve()
    state_file.note(SavedState())  # nothing new
    assert not state_file.path.exists()
    disk.is_full = False
    state_file.reserve()
    assert read(state_file.path) == SavedState()


def test_nothing_latched_needs_no_sync(tmp_path: Path, disk: NotedDisk) -> None:
    state_file = StateFile(tmp_path / "guard.json", disk=disk)
    state_file.reserve()
    disk.calls.clear()
    state_file.sync()
    assert disk.calls == []


def test_a_stop_that_an_older_version_latched_is_lifted_by_an_operator_only(tmp_path: Path) -> None:
    path = tmp_path / "guard.json"
    path.write_text('{"stop": "stopped by Sam: Ouch!", "stoppers": ["Sam"]}')
    known = read(path)
    assert known is not None
    assert known.locks == {CROWD: CROWD}
    path.write_text('{"stop": "", "armed_in": "a run"}')
    assert read(path) == SavedState(armed_in="a run")


def test_a_file_that_was_deleted_between_two_runs_is_told_from_a_new_robot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def run_of(number: int) -> Guard:
        (tmp_path / f"run{number}").mkdir()
        guard = Guard()
        guard.run_info = RunFacts.of({"registry": str(tmp_path / f"run{number}"), "launch_file": "x/robot.toml"})
        guard.on_start()
        return guard

    assert run_of(1).machine.mode == "disarmed", "a new robot"
    assert run_of(2).machine.mode == "disarmed", "nothing was latched"
    (file,) = tmp_path.glob("**/guard.json")
    file.unlink()
    assert run_of(3).machine.mode == "stopped"
    assert sentence("guard.was_deleted") in caplog.text
    assert file.exists()
