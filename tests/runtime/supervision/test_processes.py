"""Runs of real processes over ZeroMQ: they start whole, lose nothing, restart what dies, and leave nothing behind."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runtime.transport.shared_memory import FOLDER, is_available
from tests.support.running import eventually
from tests.support.sentences import sentence

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[3]
LONG_S = 60.0  # bound of every wait; on a quiet machine nothing here takes a tenth of it


class Run:
    """A `polyrhythm run` under way, and what it has printed so far."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "runtime", "run", *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.output = ""
        self.watched: dict[int, int] = {}  # pid -> a file descriptor that is readable once the process has ended
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self.output += line
                for pid in re.findall(r"\[pid (\d+)\] (?:re)?started", line):
                    self.watched[int(pid)] = os.pidfd_open(int(pid))
                self._news.notify_all()

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait until the output holds the pattern."""
        found: list[re.Match[str]] = []

        def is_there() -> bool:
            match = re.search(pattern, self.output)
            if match is not None:
                found.append(match)
            return match is not None

        with self._news:
            assert self._news.wait_for(is_there, LONG_S), f"{pattern!r} never came:\n{self.output}"
        return found[0]

    def pid_of(self, process: str) -> int:
        return int(self.wait_for(rf"{process} \[pid (\d+)\] running")[1])

    def end(self) -> int:
        """Wait for the end of the run; its exit code."""
        code = self.process.wait(LONG_S)
        self._reader.join(LONG_S)
        return code

    def is_gone(self, within_s: float = 0.0) -> bool:
        """Whether every child process ends within that time."""
        return all(select.select([fd], [], [], within_s)[0] for fd in self.watched.values())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid, fd in self.watched.items():
            if not select.select([fd], [], [], 0)[0]:
                os.killpg(pid, signal.SIGKILL)
            os.close(fd)
        self._reader.join(LONG_S)
        assert self.process.stdout is not None
        self.process.stdout.close()


Start = Callable[..., Run]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a run of some nodes, as "name use params" lines or as a shipped file's name."""
    runs: list[Run] = []

    def started(*nodes: str, options: str = "") -> Run:
        file = tmp_path / "graph.toml"
        tables = []
        for node in nodes:
            name, cls, *rest = node.split(maxsplit=2)
            tables.append(f'[nodes.{name}]\nuse = "tests.support.graph_nodes:{cls}"\n' + "".join(rest))
        file.write_text("\n".join(tables))
        runs.append(Run(str(file) if nodes else "hello", *options.split()))
        return runs[-1]

    yield started
    for run in runs:
        run.close()


def test_hello_beats_from_its_first_beat_on(start: Start) -> None:
    run = start(options="--for 1.2")
    assert run.end() == 0
    assert re.findall(r"listener: heard beat (\d+)", run.output)[:2] == ["41", "42"]
    assert run.is_gone()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_every_process(start: Start, number: signal.Signals) -> None:
    run = start()
    run.wait_for("heard beat")
    run.process.send_signal(number)
    assert run.end() == 0
    assert "supervisor: stopping" in run.output
    assert len(run.watched) == 2
    assert run.is_gone()


@pytest.mark.alone
def test_processes_end_within_two_seconds_of_their_supervisors_death(start: Start) -> None:
    run = start("counter Counter", "hanging Hanging", "loop HangingLoop")
    run.wait_for("hanging: hangs")
    run.wait_for("loop: hangs")
    run.process.kill()
    assert run.end() == -signal.SIGKILL
    assert len(run.watched) == 3
    assert run.is_gone(within_s=2.0)


def test_handlers_that_hang_do_not_keep_a_run_from_ending(start: Start) -> None:
    run = start("hanging Hanging", "loop HangingLoop")
    run.wait_for("hanging: hangs")
    run.wait_for("loop: hangs")
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == 1
    assert "hanging-blocking did not end in time" in run.output
    assert run.is_gone()


def test_every_message_from_the_first_to_the_last_crosses_processes_in_order(start: Start) -> None:
    run = start("counter Counter params = { last = 400 }", "checker Checker params = { last = 400 }")
    assert run.end() == 0, run.output
    assert "done: 400 heard, dropped {}" in run.output


def test_what_is_published_in_on_start_crosses_processes(start: Start) -> None:
    run = start("greeter Greeter", "checker Checker params = { last = 1 }")
    assert run.end() == 0, run.output
    assert "done: 1 heard, dropped {}" in run.output


def test_who_stops_late_hears_what_the_others_say_at_their_end(start: Start) -> None:
    run = start("farewell Farewell", "mourner Mourner")
    assert run.end() == 0, run.output
    assert re.findall(r"mourner: heard word (\d)", run.output) == ["1", "2", "3"]


def test_a_node_that_somebody_ends_by_a_signal_is_told_with_the_signal(start: Start) -> None:
    run = start("counter Counter params = { last = 100000 }", "checker Checker params = { last = 100000 }")
    run.wait_for("checker: 50 heard")
    os.kill(run.pid_of("counter"), signal.SIGTERM)
    assert run.end() == 1
    assert sentence("runtime.ended_by_signal", node="counter") in run.output


def test_a_killed_publisher_is_restarted_and_its_first_message_heard(start: Start) -> None:
    run = start("counter Counter", "checker Checker params = { last = 100, starts = 2 }")
    run.wait_for("checker: 50 heard")
    os.kill(run.pid_of("counter"), signal.SIGKILL)
    assert run.end() == 1, "what is repaired is told"
    assert run.output.splitlines()[-1].startswith(sentence("runtime.was_restarted", node="counter"))
    assert "failed: was killed by SIGKILL" in run.output
    assert "restarted" in run.output
    assert "done: 100 heard, dropped {}" in run.output


def test_a_killed_listener_is_restarted_and_hears_on(start: Start) -> None:
    run = start("counter Counter", "checker Checker params = { last = 1000000 }", options="--allow-restarts")
    run.wait_for("checker: 50 heard")
    os.kill(run.pid_of("checker"), signal.SIGKILL)
    run.wait_for(r"(?s)checker \[pid \d+\] restarted.*checker: 50 heard")
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 0
    assert run.is_gone()


def test_a_process_that_crashes_again_and_again_ends_the_run(start: Start) -> None:
    run = start("crasher Crasher", "counter Counter")
    assert run.end() == 1
    assert run.output.count("restarted") == 3
    assert "failed: crasher exited with code 5, for the 4th time within 10 s" in run.output.splitlines()[-1]
    assert run.is_gone()


def test_a_process_that_is_never_restarted_ends_the_run(start: Start) -> None:
    run = start('crasher Crasher restart = "never"', "counter Counter")
    assert run.end() == 1
    assert run.output.splitlines()[-1] == "failed: crasher exited with code 5"


def test_a_node_that_cannot_start_ends_the_run_in_words(start: Start) -> None:
    run = start("broken NeverStarts", "counter Counter", "checker Checker params = { last = 9 }")
    assert run.end() == 1
    assert run.output.splitlines()[-1].endswith("on_start of broken failed: ValueError: the model is missing")
    assert run.is_gone()


def test_large_arrays_cross_processes_whole_and_read_only(start: Start) -> None:
    run = start("painter Painter", "critic Critic")
    assert run.end() == 0, run.output
    assert "done: 5 seen, whole True, writeable False" in run.output


def segments_of(pid: int) -> list[Path]:
    return list(FOLDER.glob(f"polyrhythm-{os.getuid()}-{pid}-*"))


@pytest.mark.skipif(not is_available(), reason="needs /dev/shm")
def test_whoever_is_killed_leaves_no_shared_memory(start: Start) -> None:
    run = start("painter Painter", "watcher Watcher", "slow Watcher params = { keep = 9 }")
    painter = run.pid_of("painter")
    run.wait_for(r"watcher: 10 images(.|\n)*slow: 10 images|slow: 10 images(.|\n)*watcher: 10 images")
    assert segments_of(painter)
    os.kill(run.pid_of("slow"), signal.SIGKILL)
    os.kill(painter, signal.SIGKILL)
    again = int(run.wait_for(rf"painter \[pid (?!{painter}\b)(\d+)\] restarted")[1])
    eventually(lambda: bool(segments_of(again)), "the new painter uses shared memory")
    assert not segments_of(painter)
    os.kill(again, signal.SIGKILL)
    run.process.send_signal(signal.SIGINT)
    run.end()
    assert not segments_of(again)


@pytest.mark.skipif(not is_available(), reason="needs /dev/shm")
def test_what_a_run_killed_as_a_whole_leaves_in_shared_memory_the_next_run_removes(start: Start) -> None:
    run = start("painter Painter", "watcher Watcher")
    painter = run.pid_of("painter")
    run.wait_for("watcher: 10 images")
    assert segments_of(painter)  # SIGKILL removes no file; once they are dead, any other run of this user may
    for pid in (run.process.pid, *run.watched):
        os.killpg(pid, signal.SIGKILL)
    run.end()
    assert run.is_gone(LONG_S)
    start().wait_for("heard beat")
    assert not segments_of(painter)


@pytest.mark.alone
def test_a_realtime_node_ticks_on_while_a_sibling_blocks_their_process(start: Start) -> None:
    together = ' process = "both"'
    run = start(
        "sleeper Sleeper" + together, "metronome Metronome" + together, "loop LoopMetronome" + together, "judge Judge"
    )
    assert run.end() == 0, run.output
    match = re.search(r"done: 100 steady, (\d+) shaky", run.output)
    assert match is not None
    assert int(match[1]) < 60
