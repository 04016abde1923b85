"""The guard's file: there at once for whoever restarts a process, on the disk itself for whoever cuts the power."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from nodes.guard.ledger import Disk, Keeper, Ledger, read
from nodes.guard.node import Guard
from runtime.msgs import EStop

PRESSED = Ledger(epochs=(1, 1, 1), stop="emergency stop", estop="button: pressed")
RELEASED = Ledger(epochs=(1, 1, 1), stop="re-armed by Ann")


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
    Keeper(path, disk=disk).note(PRESSED)
    assert read(path) == PRESSED
    assert disk.calls == [("write", "guard.json.new"), ("replace", "guard.json.new -> guard.json")]


def test_a_sync_writes_syncs_renames_and_syncs_the_folder_in_this_order(tmp_path: Path, disk: NotedDisk) -> None:
    keeper = Keeper(tmp_path / "guard.json", disk=disk)
    keeper.note(PRESSED)
    disk.calls.clear()
    keeper.sync()
    assert disk.calls == [
        ("write", "guard.json.sync"),
        ("sync", "guard.json.sync"),
        ("replace", "guard.json.sync -> guard.json"),
        ("sync", tmp_path.name),
    ]
    keeper.sync()
    assert len(disk.calls) == 4, "nothing is new, nothing is written"
    assert read(keeper.path) == PRESSED


def test_what_was_noted_during_a_sync_is_not_put_back(tmp_path: Path, disk: NotedDisk) -> None:
    keeper = Keeper(tmp_path / "guard.json", disk=disk)
    keeper.note(RELEASED)
    seen = []

    def press() -> None:
        keeper.note(PRESSED)
        seen.append(read(keeper.path))

    disk.meanwhile = press
    keeper.sync()
    assert seen == [PRESSED]
    assert read(keeper.path) == PRESSED
    assert disk.calls[-2] == ("replace", "guard.json.sync -> guard.json"), "the newest was synced too"
    assert [call for call in disk.calls if call[0] == "sync"] == [
        ("sync", "guard.json.sync"),
        ("sync", "guard.json.sync"),
        ("sync", tmp_path.name),
    ]


def test_a_ledger_that_was_read_is_not_written_again(tmp_path: Path, disk: NotedDisk) -> None:
    keeper = Keeper(tmp_path / "guard.json", PRESSED, disk)
    keeper.note(PRESSED)
    keeper.sync()
    assert disk.calls == []


def test_a_full_disk_stops_no_guard_and_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    guard = Guard(arm="auto", memory="run")
    vars(guard)["run_info"] = {"registry": str(tmp_path), "launch_file": "x/robot.toml"}
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
