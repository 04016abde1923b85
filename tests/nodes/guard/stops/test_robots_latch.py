"""What is latched belongs to the robot: no other file, no restart and no full disk loses it."""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nodes.guard.node import Guard
from nodes.guard.persistence import BLOCK_BYTES, Disk, SavedState, StateFile, place_of, read
from nodes.msgs import EStop, Interrupt
from nodes.robot.driver import Driver
from runtime.errors import TransportError, UserError
from runtime.run_facts import RunFacts
from runtime.supervision.registry import Claims
from tests.support.sentences import pattern, sentence

STRETCH = "bridges.stretch.robot:StretchRobot"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("runtime.supervision.registry.SHARED", tmp_path / "shared")
    monkeypatch.setattr("pwd.getpwuid", lambda _: SimpleNamespace(pw_name="ana", pw_dir=str(tmp_path / "home")))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "polyrhythm"


def started(run: Path, *, memory: Any = "machine", devices: tuple[str, ...] = (), launch_file: str = "a.toml") -> Guard:
    run.mkdir(exist_ok=True)
    guard = Guard(memory=memory)
    seats = {"policy": {"holder": "policy"}}
    guard.run_info = RunFacts.of({
        "registry": str(run), "launch_file": launch_file, "devices": devices, "seats": seats
    })  # fmt: skip
    guard.on_start()
    return guard


def test_what_one_launch_file_latched_stands_for_any_other_with_the_same_robot(tmp_path: Path, state: Path) -> None:
    started(tmp_path / "1", launch_file="stretch.toml").emergency(EStop(source="button", is_pressed=True, why="toe"))
    other = started(tmp_path / "2", launch_file="wizard.toml")
    assert other.machine.latch.estop == "button: toe"
    assert sorted(path.name for path in (state / "robots").iterdir()) == ["stretch_3"]


def test_a_real_robots_latch_outlives_the_run_whatever_memory_says(tmp_path: Path, state: Path) -> None:
    devices = Driver(robot=STRETCH).devices()
    assert devices == Guard(memory="machine").claims() == ("robot stretch_3",)
    started(tmp_path / "1", memory="run", devices=devices).emergency(EStop(source="b", is_pressed=True))
    assert started(tmp_path / "2", memory="run", devices=devices).machine.mode == "estopped"
    assert place_of("run", "stretch_3", RunFacts.of({"registry": "x"})) == Path("x/guard.json"), (
        "a simulated one's does not"
    )
    assert (Driver().devices(), Guard().devices(), Guard(memory="run").claims()) == ((), (), ())


def test_a_robot_that_one_run_has_is_refused_to_the_next_until_it_ends(state: Path) -> None:
    first = Claims(["robot stretch_3"], "stretch")
    with pytest.raises(
        UserError, match="^" + pattern("guard.robot_in_use", robot="robot stretch_3", holder=r"stretch \(pid \d+\)")
    ):
        Claims(["robot stretch_3"], "wizard")
    Claims(["robot other"], "other").close()
    first.close()
    Claims(["robot stretch_3"], "wizard").close()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="addresses of the machine are Linux's")
def test_a_lock_file_that_a_cleaner_deletes_gives_the_robot_to_nobody_else(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Claims(["robot stretch_3"], "stretch")
    shutil.rmtree(state / "claims")
    with pytest.raises(UserError, match=rf"^robot stretch_3 is in use: pid {os.getpid()} of ana \("):
        Claims(["robot stretch_3"], "wizard")
    Claims(["robot other"], "other").close()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))  # a simulated robot: what is latched is elsewhere
    Claims(["robot stretch_3"], "wizard").close()
    monkeypatch.setenv("XDG_STATE_HOME", str(state.parent))
    first.close()
    Claims(["robot stretch_3"], "wizard").close()


def device(tmp_path: Path) -> tuple[str]:
    """A robot that no other test has on this machine."""
    return (f"robot {tmp_path.parent.name}-{tmp_path.name}",)


def elsewhere(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    for name in ("XDG_STATE_HOME", "HOME", "XDG_RUNTIME_DIR", "TMPDIR"):
        monkeypatch.setenv(name, str(place))


def test_a_real_robot_is_refused_to_a_second_run_whatever_the_environment_says(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot = device(tmp_path)
    first = Claims((), "stretch", robot)
    elsewhere(monkeypatch, tmp_path / "another")
    with pytest.raises(
        UserError, match=rf"^{robot[0]} is in use: pid {os.getpid()} of ana \(.*\) has it, and two runs"
    ):
        Claims((), "wizard", robot)
    monkeypatch.setattr("runtime.supervision.registry.sys.platform", "darwin")  # there is the lock in the home alone
    with pytest.raises(
        UserError, match="^" + pattern("guard.robot_in_use", robot=robot[0], holder=rf"stretch \(pid {os.getpid()}\)")
    ):
        Claims(robot, "wizard", robot)
    first.close()
    Claims(robot, "wizard", robot).close()


def test_what_is_latched_on_a_real_robot_stands_whatever_the_environment_says(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(tmp_path / "1", devices=device(tmp_path)).emergency(EStop(source="button", is_pressed=True, why="toe"))
    elsewhere(monkeypatch, tmp_path / "another")
    assert started(tmp_path / "2", memory="run", devices=device(tmp_path)).machine.latch.estop == "button: toe"
    other = started(tmp_path / "3", devices=("robot other",))
    assert other.machine.mode == "disarmed"


def test_a_latch_moves_to_the_shared_folder_once_there_is_one(tmp_path: Path, state: Path) -> None:
    first = started(tmp_path / "1", devices=("robot r",))
    first.emergency(EStop(source="button", is_pressed=True, why="toe"))
    assert first.state_file is not None
    (tmp_path / "shared").mkdir()
    second = started(tmp_path / "2", devices=("robot r",))
    assert second.machine.latch.estop == "button: toe"
    assert second.state_file is not None
    assert second.state_file.path == tmp_path / "shared" / "robots" / "r" / "guard.json"
    assert not first.state_file.path.exists(), "it stands in one place"


@pytest.mark.parametrize("newer", ["home", "elsewhere"])
def test_of_two_latches_the_newer_one_moves_to_the_shared_folder(tmp_path: Path, state: Path, newer: str) -> None:
    places = {"home": tmp_path / "home" / ".local" / "state" / "polyrhythm", "elsewhere": state}
    for name, place in places.items():
        file = place / "robots" / "r" / "guard.json"
        file.parent.mkdir(parents=True)
        StateFile(file).note(SavedState(stop=f"stopped by {name}"))
        os.utime(file, ns=(1, 2_000_000_000 if name == newer else 1_000_000_000))
    (tmp_path / "shared").mkdir()
    guard = started(tmp_path / "1", devices=("robot r",))
    assert guard.machine.reason == sentence("guard.stopped_by", by="guard", why=f"stopped by {newer}")


@pytest.mark.parametrize("damage", ["unreadable", "damaged"])
def test_a_latch_that_cannot_be_carried_over_is_no_latch_lifted(tmp_path: Path, state: Path, damage: str) -> None:
    old = tmp_path / "home" / ".local" / "state" / "polyrhythm" / "robots" / "r" / "guard.json"
    old.parent.mkdir(parents=True)
    old.write_text("{")
    if damage == "unreadable":
        (tmp_path / "shared").mkdir()
        (tmp_path / "shared" / "robots").symlink_to("/proc/nowhere")
        with pytest.raises(UserError, match=pattern("guard.would_be_lost")):
            started(tmp_path / "1", devices=("robot r",))
        return
    guard = started(tmp_path / "1", devices=("robot r",))
    assert guard.machine.reason == sentence("guard.stopped_by", by="guard", why=sentence("guard.latch_is_unknown"))


def test_an_account_without_a_home_is_told_where_a_latch_can_be(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(_: int) -> None:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", nobody)
    with pytest.raises(TransportError, match=r"has no home on this machine, so .* has no place; make .*shared$"):
        Claims((), "stretch", device(tmp_path))
    (tmp_path / "shared").mkdir()
    Claims((), "stretch", device(tmp_path)).close()


def as_another_account(robot: tuple[str], told: Any) -> None:
    """What a run of the account nobody is told; it changes its account for good, so it has a process of its own."""
    os.setgid(65534)
    os.setuid(65534)
    try:
        Claims((), "theirs", robot).close()
    except (UserError, TransportError) as problem:
        told.put(str(problem))
    else:
        told.put("it was given")


@pytest.mark.processes
@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another account")
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="addresses of the machine are Linux's")
def test_a_robot_that_one_account_drives_is_refused_to_another_account(tmp_path: Path, state: Path) -> None:
    robot, fork = device(tmp_path), multiprocessing.get_context("fork")
    told: Any = fork.SimpleQueue()
    first = Claims((), "ours", robot)
    try:
        other = fork.Process(target=as_another_account, args=(robot, told))
        other.start()
        assert told.get().startswith(f"{robot[0]} is in use: pid {os.getpid()} of ana")
        other.join(10)
    finally:
        first.close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another account")
def test_in_the_shared_folder_each_account_that_may_write_there_finds_and_changes_the_latch(
    tmp_path: Path, state: Path
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o2770)
    guard = started(tmp_path / "1", devices=("robot r",))
    guard.emergency(EStop(source="button", is_pressed=True))
    assert guard.state_file is not None
    guard.settle()
    path = guard.state_file.path
    assert [oct(one.stat().st_mode & 0o7777) for one in (path.parents[1], path.parent, path)] == [
        "0o2770",
        "0o2770",
        "0o660",
    ]


def test_a_guard_that_could_keep_nothing_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    with pytest.raises(UserError, match=f"cannot be written .*, {pattern('guard.would_be_lost')}; make room there"):
        started(tmp_path / "1")


def test_a_simulated_robots_guard_starts_also_where_its_run_can_keep_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(_: StateFile) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(StateFile, "reserve", full)
    assert started(tmp_path / "1", memory="run").machine.mode == "disarmed"
    assert (
        "guard.json: "
        + sentence("guard.cannot_be_written", why="No space left on device")
        + ", "
        + sentence("guard.would_be_lost")
        in caplog.text
    )


class Full(Disk):
    """A disk without room for anything new."""

    def write(self, path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_the_first_write_of_all_makes_room_for_what_is_latched_on_a_full_disk(tmp_path: Path, state: Path) -> None:
    guard = started(tmp_path / "1")
    assert guard.state_file is not None
    path = guard.state_file.path
    assert path.stat().st_size == BLOCK_BYTES
    guard.state_file = StateFile(path, disk=Full())
    guard.emergency(EStop(source="button", is_pressed=True))
    assert path.stat().st_size == BLOCK_BYTES, "it needs no block more"
    assert started(tmp_path / "1").machine.mode == "estopped"


@pytest.mark.parametrize("letter", ["x", "動", "🛑", "\x01"])
def test_all_that_may_be_latched_has_room_in_the_file_that_was_made_while_there_was_room(
    tmp_path: Path, state: Path, letter: str
) -> None:
    guard = started(tmp_path / "1")
    assert guard.state_file is not None
    path, text = guard.state_file.path, letter * 5000
    guard.state_file = StateFile(path, disk=Full())
    for number in range(40):
        name = f"{number}{text}"
        guard.interrupted(Interrupt(id=name, depth="stop", text=text, by=name))
    guard.emergency(EStop(source=text, is_pressed=True, why=text))
    assert path.stat().st_size == BLOCK_BYTES
    after = started(tmp_path / "1").machine
    assert (after.mode, len(after.latch.stoppers)) == ("estopped", 17)


@pytest.mark.parametrize("damage", ["", None], ids=["empty", "deleted"])
def test_where_the_file_is_lost_in_mid_run_epochs_and_leases_go_on_above_all_that_were_given_out(
    tmp_path: Path, state: Path, damage: str | None
) -> None:
    first = started(tmp_path / "1")
    for number in range(3):
        first.interrupted(Interrupt(id=str(number), depth="stop", text="Ouch!", by="Ana"))
    assert first.state_file is not None
    if damage is None:
        first.state_file.path.unlink()
    else:
        first.state_file.path.write_text(damage)
    second = started(tmp_path / "1")
    assert second.machine.reason == sentence("guard.stopped_by", by="guard", why=sentence("guard.latch_is_unknown"))
    assert all(second.arbitration.epochs[seat] > epoch for seat, epoch in first.arbitration.epochs.items())
    assert second.arbitration.leases["policy"].number > first.arbitration.leases["policy"].number
    known = read(first.state_file.path)
    assert known is not None
    assert known.stop
    assert known != SavedState()


def test_a_real_robot_is_never_armed_by_the_start_of_a_run(tmp_path: Path, state: Path) -> None:
    guard = Guard(arm="auto")
    guard.run_info = RunFacts.of({"registry": str(tmp_path), "devices": ("robot r",)})
    with pytest.raises(UserError, match="arm is 'auto', and robot r is a real one, which a person arms"):
        guard.on_start()
