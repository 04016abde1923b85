"""What is latched belongs to the robot: no other file, no restart and no full disk loses it."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from nodes.guard.node import Guard
from nodes.guard.persistence import BLOCK_BYTES, Disk, SavedState, StateFile, place_of, read
from nodes.robot.driver import Driver
from runtime.errors import UserError
from runtime.msgs import EStop, Interrupt
from runtime.run_facts import RunFacts
from runtime.supervision.registry import Claims

STRETCH = "bridges.stretch.robot:StretchRobot"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "polyrhythm"


def started(run: Path, *, memory: Any = "machine", claims: tuple[str, ...] = (), launch_file: str = "a.toml") -> Guard:
    run.mkdir(exist_ok=True)
    guard = Guard(memory=memory)
    seats = {"policy": {"holder": "policy"}}
    guard.run_info = RunFacts.of({
        "registry": str(run), "launch_file": launch_file, "claims": claims, "seats": seats
    })  # fmt: skip
    guard.on_start()
    return guard


def test_what_one_launch_file_latched_stands_for_any_other_with_the_same_robot(tmp_path: Path, state: Path) -> None:
    started(tmp_path / "1", launch_file="stretch.toml").emergency(EStop(source="button", is_pressed=True, why="toe"))
    other = started(tmp_path / "2", launch_file="wizard.toml")
    assert other.machine.estop_cause == "button: toe"
    assert sorted(path.name for path in (state / "robots").iterdir()) == ["stretch_3"]


def test_a_real_robots_latch_outlives_the_run_whatever_memory_says(tmp_path: Path, state: Path) -> None:
    claims = Driver(robot=STRETCH).claims()
    assert claims == Guard(memory="machine").claims() == ("robot stretch_3",)
    started(tmp_path / "1", memory="run", claims=claims).emergency(EStop(source="b", is_pressed=True))
    assert started(tmp_path / "2", memory="run", claims=claims).machine.mode == "estopped"
    assert place_of("run", "stretch_3", RunFacts.of({"registry": "x"})) == Path("x/guard.json"), (
        "a simulated one's does not"
    )
    assert (Driver().claims(), Guard(memory="run").claims()) == ((), ())


def test_a_robot_that_one_run_has_is_refused_to_the_next_until_it_ends(state: Path) -> None:
    first = Claims(["robot stretch_3"], "stretch")
    with pytest.raises(UserError, match=r"^robot stretch_3 is in use: stretch \(pid \d+\) has it"):
        Claims(["robot stretch_3"], "wizard")
    Claims(["robot other"], "other").close()
    first.close()
    Claims(["robot stretch_3"], "wizard").close()


def test_a_guard_that_could_keep_nothing_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    with pytest.raises(UserError, match=r"cannot be written .*, so what is latched would be lost; make room there"):
        started(tmp_path / "1")


class Full(Disk):
    """A disk without room for anything new."""

    def write(self, path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_the_first_write_of_all_makes_room_for_what_is_latched_on_a_full_disk(tmp_path: Path, state: Path) -> None:
    guard = started(tmp_path / "1")
    assert guard.keeper is not None
    path = guard.keeper.path
    assert path.stat().st_size == BLOCK_BYTES
    guard.keeper = StateFile(path, disk=Full())
    guard.emergency(EStop(source="button", is_pressed=True))
    assert path.stat().st_size == BLOCK_BYTES, "it needs no block more"
    assert started(tmp_path / "1").machine.mode == "estopped"


@pytest.mark.parametrize("damage", ["", None], ids=["empty", "deleted"])
def test_where_the_file_is_lost_in_mid_run_epochs_and_leases_go_on_above_all_that_were_given_out(
    tmp_path: Path, state: Path, damage: str | None
) -> None:
    first = started(tmp_path / "1")
    for number in range(3):
        first.interrupted(Interrupt(id=str(number), depth="stop", text="Ouch!", by="Ana"))
    assert first.keeper is not None
    if damage is None:
        first.keeper.path.unlink()
    else:
        first.keeper.path.write_text(damage)
    second = started(tmp_path / "1")
    assert second.machine.reason == "stopped by guard: what was latched before is not known"
    assert all(second.arbitration.epochs[seat] > epoch for seat, epoch in first.arbitration.epochs.items())
    assert second.arbitration.leases["policy"].number > first.arbitration.leases["policy"].number
    known = read(first.keeper.path)
    assert known is not None
    assert known.stop
    assert known != SavedState()
