"""The watchdog: a program of its own presses the robot's runstop where the guard fails, and at nothing else."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

from nodes.guard import watchdog
from nodes.guard.feed import SILENT_NS, WatchdogFeed
from nodes.guard.lasting_faults import CommandedMotion
from nodes.guard.watchdog import ECHO, FEED, LOOK_S, SILENT_S, Presser, Watch
from tests.support.guard.driving import DRIVING
from tests.support.running import Runs, eventually, is_alive
from tests.support.sentences import sentence

STEP_S = LOOK_S
DRIVES = (0.3, 0.0, 0.0)
STANDS = (0.0, 0.0, 0.0)


class Told:
    """A guard that tells what it does, and a robot that does as it is asked unless a test says otherwise."""

    def __init__(self) -> None:
        self.watch, self.now_s, self.number, self.pid = Watch(), 100.0, 0, 4711
        self.place_m = self.odometry_m = 0.0
        self.joints, self.targets = [0.5, 0.1], [0.5, 0.1]
        self.own_m: float | None = None

    def frame(self, mode: str, asked: tuple[float, ...], v_mps: float, *, may_move: bool = True) -> bytes:
        self.number += 1
        measured = [self.now_s, self.odometry_m, 0.0, 0.0, v_mps, 0.0, 0.0]
        body = json.dumps([self.pid, self.number, mode, may_move, asked, measured, self.joints, self.targets]).encode()
        return b"%x %b" % (crc32(body), body)

    def turn(
        self, mode: str = "moving", asked: tuple[float, ...] = DRIVES, *, v_mps: float | None = None,
        odometry_mps: float | None = None, own_mps: float | None = None, may_move: bool = True,
    ) -> str:  # fmt: skip
        """One turn of the watchdog: a word of the guard, a line of the own way, a look."""
        speed = asked[0] if v_mps is None else v_mps
        self.now_s += STEP_S
        self.odometry_m += (speed if odometry_mps is None else odometry_mps) * STEP_S
        if own_mps is not None:
            self.own_m = (self.own_m or 0.0) + own_mps * STEP_S
            self.watch.see(f"{self.own_m} 0 0 {own_mps} 0 0".encode(), self.now_s)
        assert self.watch.hear(self.frame(mode, asked, speed, may_move=may_move), self.now_s) == self.number
        return self.watch.look(self.now_s)

    def turns(self, seconds: float, **told: object) -> list[str]:
        return [self.turn(**told) for _ in range(round(seconds / STEP_S))]  # type: ignore[arg-type]  # as `turn` has it

    def silent(self, seconds: float) -> list[str]:
        found = []
        for _ in range(round(seconds / STEP_S)):
            self.now_s += STEP_S
            found.append(self.watch.look(self.now_s))
        return found


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_guard_that_may_move_the_robot_and_falls_silent_is_found_within_a_quarter_of_a_second(told: Told) -> None:
    assert set(told.turns(2.0)) == {""}
    assert told.silent(SILENT_S) == [""] * round(SILENT_S / STEP_S)
    assert told.silent(2 * STEP_S)[-1] != ""


def test_a_guard_that_has_let_go_of_the_robot_or_has_ended_may_be_silent(told: Told) -> None:
    told.turns(1.0)
    told.turn("ended", STANDS, may_move=False)
    assert set(told.silent(5.0)) == {""}


def test_a_watchdog_that_slept_itself_judges_nobodys_silence_by_it(told: Told) -> None:
    told.turns(1.0)
    told.now_s += 3.0
    assert told.watch.look(told.now_s) == ""
    assert told.silent(SILENT_S + 2 * STEP_S)[-1] != "", "it judges what it sees from then on"


GARBLED = (
    lambda frame: frame[:-1],
    lambda frame: frame.replace(b"moving", b"movinG"),
    lambda frame: b"",
    lambda frame: b"x y",
    lambda frame: b"%x []" % crc32(b"[]"),
    lambda frame: b"%x 7" % crc32(b"7"),
    lambda frame: b"\xff" * 300,
)


@pytest.mark.parametrize("change", GARBLED)
def test_a_word_that_is_garbled_is_no_word(told: Told, change: object) -> None:
    assert callable(change)
    told.turns(1.0)
    assert told.watch.hear(change(told.frame("moving", DRIVES, 0.3)), told.now_s) is None
    assert told.silent(SILENT_S + 2 * STEP_S)[-1] != ""


def test_a_word_that_is_told_again_is_no_word(told: Told) -> None:
    told.turns(1.0)
    old = told.frame("moving", DRIVES, 0.3)
    assert told.watch.hear(old, told.now_s) == told.number
    assert told.watch.hear(old, told.now_s) is None


def test_another_guard_in_place_of_one_that_might_move_the_robot_is_told_at_once(told: Told) -> None:
    told.turns(1.0)
    told.pid, told.number = 4712, 0
    assert told.watch.hear(told.frame("stopped", STANDS, 0.0, may_move=False), told.now_s) is None
    assert told.watch.look(told.now_s) != ""
    assert told.watch.pid == 4711, "who is ended is the one who was lost"
    assert told.turn("stopped", STANDS, may_move=False) == ""
    assert told.watch.pid == 4712


def test_a_robot_that_brakes_and_stands_while_it_is_stopped_is_left_alone(told: Told) -> None:
    told.turns(2.0)
    for number in range(25):
        assert told.turn("stopped", (0.3 - 0.012 * number, 0.0, 0.0), v_mps=0.3 - 0.010 * number) == ""
    assert set(told.turns(10.0, mode="stopped", asked=STANDS, v_mps=0.005, odometry_mps=0.0005)) == {""}


def test_a_stopped_robot_that_creeps_is_found_within_6_cm(told: Told) -> None:
    told.turns(1.0)
    told.turns(2.0, mode="stopped", asked=STANDS)
    began_m = told.odometry_m
    while not told.turn("stopped", STANDS, v_mps=0.099):
        assert told.odometry_m - began_m < 0.06


def test_a_stopped_robot_that_does_not_brake_is_found(told: Told) -> None:
    told.turns(2.0)
    began_m = told.odometry_m
    while not told.turn("stopped", STANDS, v_mps=0.3):
        assert told.odometry_m - began_m < 0.25


def test_a_stopped_robot_that_only_its_own_way_sees_move_is_found(told: Told) -> None:
    told.turns(1.0, own_mps=0.3)
    assert set(told.turns(3.0, mode="stopped", asked=STANDS, own_mps=0.0)) == {""}
    assert any(told.turns(1.0, mode="stopped", asked=STANDS, own_mps=0.1))


def test_a_stopped_joint_that_leaves_its_target_is_found_and_one_that_goes_to_it_is_not(told: Told) -> None:
    told.turns(2.0, mode="stopped", asked=STANDS)
    for _ in range(10):
        told.targets[0], told.joints[0] = told.targets[0] + 0.04, told.joints[0] + 0.036
        assert told.turn("stopped", STANDS) == ""
    told.joints[0] -= 0.6
    assert told.turn("stopped", STANDS) != ""


@pytest.mark.parametrize(
    ("v_mps", "odometry_mps", "own_mps"),
    [(0.3, 0.0, None), (0.0, 0.3, None), (0.3, 0.3, 0.0), (0.3, 0.3, 0.6), (0.3, -0.3, None)],
)
def test_two_sources_that_disagree_are_found_within_two_seconds(
    told: Told, v_mps: float, odometry_mps: float, own_mps: float | None
) -> None:
    assert set(told.turns(3.0, own_mps=None if own_mps is None else 0.3)) == {""}
    assert any(told.turns(2.5, v_mps=v_mps, odometry_mps=odometry_mps, own_mps=own_mps))


def test_sources_that_are_a_tenth_apart_are_left_alone(told: Told) -> None:
    assert set(told.turns(20.0, v_mps=0.3, odometry_mps=0.27, own_mps=0.33)) == {""}


def test_what_a_robot_was_pushed_while_the_guard_had_let_go_of_it_does_not_count(told: Told) -> None:
    told.turns(1.0, own_mps=0.3)
    told.turns(5.0, mode="disarmed", asked=STANDS, own_mps=0.5, may_move=False)
    assert set(told.turns(3.0, own_mps=0.3)) == {""}


def test_it_imports_the_standard_library_alone_and_has_at_most_300_lines() -> None:
    text = Path(watchdog.__file__).read_text()
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names])
    }
    assert imported <= sys.stdlib_module_names
    assert len(text.splitlines()) <= 300


class Ended:
    """Processes that somebody ends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        monkeypatch.setattr(os, "pidfd_open", lambda pid: 99)
        monkeypatch.setattr(signal, "pidfd_send_signal", self._end)

    def _end(self, held: int, number: int) -> None:
        assert (held, number) == (99, signal.SIGKILL)
        self.count += 1


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Ended:
    return Ended(monkeypatch)


def press(hand: Presser, until_s: float, why: str = "silent", start_s: float = 0.0) -> None:
    for step in range(round((until_s - start_s) / STEP_S)):
        hand.act(why, 12, start_s + step * STEP_S, is_over=False)


def test_without_a_command_the_process_of_the_guard_is_ended(ended: Ended) -> None:
    press(Presser(()), 1.0)
    assert ended.count == 1


def test_a_command_that_cannot_be_started_or_fails_ends_the_process_of_the_guard(ended: Ended, tmp_path: Path) -> None:
    press(Presser((str(tmp_path / "none"),)), 1.0)
    assert ended.count == 1
    hand = Presser((sys.executable, "-c", "raise SystemExit(3)"))

    def is_ended() -> bool:
        hand.act("silent", 12, 0.5, is_over=False)
        return ended.count == 2

    eventually(is_ended, "a failed command is made up for")


def test_it_presses_three_times_at_most_and_again_for_the_next_fault(ended: Ended) -> None:
    hand = Presser(())
    press(hand, 20.0)
    assert ended.count == 3
    hand.act("", 12, 20.0, is_over=True)
    press(hand, 20.5, start_s=20.1)
    assert ended.count == 4


# --- as a program


class Program:
    """The watchdog as its supervisor starts it, beside a guard that drives and is answered."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.now_ns = 0
        self.feed = WatchdogFeed(folder, 0)
        command = [sys.executable, "-I", "-S", watchdog.__file__, str(folder), *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
        assert self._process.stdout is not None
        self._out, self._text = self._process.stdout, b""
        os.set_blocking(self._out.fileno(), False)

    def says(self, words: str) -> bool:
        self._text += self._out.read() or b""
        return words in self._text.decode()

    def answers(self) -> bool:
        """Whether it has answered within the last half of the time in which it must."""
        self.now_ns += SILENT_NS // 2
        self.feed.tell("disarmed", CommandedMotion((), 0.0, 0.0), None, self.now_ns)
        later_ns = self.now_ns + SILENT_NS * 3 // 4
        return self.feed.tell("disarmed", CommandedMotion((), 0.0, 0.0), None, later_ns)

    def __enter__(self) -> Program:
        eventually(self.answers, "it answers")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._out.close()
        self.feed.close(self.now_ns)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("no-such-encoder", sentence("guard.own_way_missing", command="no-such-encoder")),
        ("true", sentence("guard.own_way_ends", command="true")),
        ("cat /dev/zero", sentence("guard.own_way_silent", command="cat /dev/zero")),
    ],
)
def test_a_state_that_cannot_be_read_is_told_and_the_guard_is_watched_all_the_same(
    tmp_path: Path, command: str, told: str
) -> None:
    with Program(tmp_path, f"--state={command}") as program:
        eventually(lambda: program.says(told), "it is told")
        eventually(program.answers, "it answers")


@pytest.mark.processes
@pytest.mark.parametrize("name", [FEED, ECHO])
def test_a_socket_that_was_deleted_from_the_folder_of_the_run_is_made_again(tmp_path: Path, name: str) -> None:
    with Program(tmp_path) as program:
        (tmp_path / name).unlink()
        eventually((tmp_path / name).exists, "it is there again") if name == FEED else None
        eventually(program.answers, "it answers again")
        assert (tmp_path / name).exists()


# --- beside a run


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    with Runs(monkeypatch) as started:
        yield started


@pytest.mark.processes
def test_a_frozen_guard_is_ended_by_the_watchdog_and_a_frozen_watchdog_stops_the_robot(
    runs: Runs, tmp_path: Path
) -> None:
    file, log = tmp_path / "watched.toml", tmp_path / "log"
    file.write_text(DRIVING)
    run = runs.start(file, log)
    eventually(lambda: any(runs.folder.rglob(FEED)), "the watchdog listens")  # one that heard no guard watches none
    eventually(lambda: "commanded by policy" in log.read_text(), "the robot drives")
    guard = run.states()["robot"].pid
    os.kill(guard, signal.SIGSTOP)
    eventually(lambda: not is_alive(guard), "the guard's process is ended", 10.0)
    eventually(lambda: "watchdog: warning: the guard" in log.read_text(), "what the watchdog did is told")
    eventually(lambda: run.states()["robot"].state == "running" and run.states()["robot"].pid != guard, "it is back")
    watched = _watchdog_of(run.info.supervisor_pid)
    os.kill(watched, signal.SIGSTOP)
    eventually(lambda: _watchdog_of(run.info.supervisor_pid) not in (0, watched), "another one watches", 15.0)
    assert not is_alive(watched)


def _watchdog_of(supervisor: int) -> int:
    for child in Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split():
        try:
            if b"watchdog.py" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
        except OSError:
            continue
    return 0
