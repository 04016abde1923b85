"""A run names handlers that hold up others, that fail and that never return; the last two change its exit code."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from runtime import NS_PER_S, Message, Node, every
from runtime.clock import SystemClock
from runtime.coordination.fence import PreemptionEpochs
from runtime.execution.bound_node import BoundNode, NodeOutput
from runtime.execution.long_calls import LongCalls, SlowCalls
from runtime.message import Envelope
from tests.support.sentences import sentence

ROOT = Path(__file__).resolve().parents[3]
NODES = "tests.runtime.execution.slow_nodes"


def ran(folder: Path, cls: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "run.toml").write_text(f'[nodes.it]\nuse = "{NODES}:{cls}"\n')
    command = [sys.executable, "-m", "runtime", "run", str(folder / "run.toml"), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.processes
def test_a_handler_that_blocks_is_named_live_and_at_the_end(tmp_path: Path) -> None:
    done = ran(tmp_path, "Sleepy", "--for", "1.2")
    assert done.returncode == 0, done.stdout
    live, end = (line for line in done.stdout.splitlines() if "make it blocking or async" in line)
    assert f"it: warning: tick took 0.3 s of its 0.2 s; {sentence('runtime.make_it_blocking')}" in live
    assert f"tick took up to 0.3 s of its 0.2 s; {sentence('runtime.make_it_blocking')}; 2 times in this run" in end


@pytest.mark.processes
@pytest.mark.parametrize("cls", [pytest.param("Endless", marks=pytest.mark.long), "EndlessLoop", "Slumber"])
def test_a_plain_handler_that_never_returns_is_named_with_its_line_while_it_runs_and_at_the_end(
    tmp_path: Path, cls: str
) -> None:
    done = ran(tmp_path, cls, "--for", "1.5")
    assert done.returncode == 1, done.stdout + done.stderr
    told = re.findall(r"it: warning: tick still runs after (\S+) s of its 0.2 s, at slow_nodes.py:(\d+); ", done.stdout)
    assert len(told) >= 2, done.stdout
    lines = (ROOT / "tests/runtime/execution/slow_nodes.py").read_text().splitlines()
    assert {lines[int(line) - 1].split("#")[0].strip() for _, line in told} <= {"while True:", "pass", "time.sleep(60)"}
    assert float(told[-1][0]) > float(told[0][0])
    assert "it was killed by SIGKILL" in done.stderr or "it had to be left behind" in done.stderr


class Silent(NodeOutput):
    """Nobody listens."""

    def send(self, envelope: Envelope, message: Message) -> None:
        return


def test_of_a_call_that_goes_on_fewer_and_fewer_lines_are_told(caplog: pytest.LogCaptureFixture) -> None:
    time_s, is_over = 0.0, threading.Event()

    class Waits(Node):
        @every(hz=5)
        def tick(self) -> None:
            is_over.wait()

    bound = BoundNode(Waits(), name="it", clock=SystemClock(), seed=0, output=Silent(), fence=PreemptionEpochs())
    calls = LongCalls([bound], lambda: round(time_s * NS_PER_S))
    thread = threading.Thread(target=bound.node.tick)  # type: ignore[attr-defined]  # of the class above
    thread.start()
    try:
        calls.watch_thread(thread, bound.lanes[0])
        for look in range(240):
            time_s = look / 2
            calls.look()
    finally:
        is_over.set()
        thread.join()
    calls.look()
    assert [float(record.getMessage().split()[4]) for record in caplog.records] == [
        0.5,
        1.0,
        2.0,
        4.0,
        8.0,
        16.0,
        32.0,
        64.0,
    ]


def test_an_on_start_that_does_not_return_is_named_with_its_line(caplog: pytest.LogCaptureFixture) -> None:
    time_s, begun, is_over = 0.0, threading.Event(), threading.Event()

    class Loads(Node):
        def on_start(self) -> None:
            begun.set()
            is_over.wait()

    bound = BoundNode(Loads(), name="it", clock=SystemClock(), seed=0, output=Silent(), fence=PreemptionEpochs())
    calls = LongCalls([bound], lambda: round(time_s * NS_PER_S))

    def start() -> None:
        with calls.starting():
            bound.start(0)

    thread = threading.Thread(target=start)
    thread.start()
    try:
        assert begun.wait(30)
        for look in range(60):
            time_s = look / 2
            calls.look()
    finally:
        is_over.set()
        thread.join()
    calls.look()
    told = [record.getMessage() for record in caplog.records]
    assert [float(line.split()[4]) for line in told] == [5.0, 10.0, 20.0]
    lines = Path(__file__).read_text().splitlines()
    said = re.fullmatch(
        rf"on_start still runs after 5.0 s, at {Path(__file__).name}:(\d+); the run waits for it", told[0]
    )
    assert said
    assert lines[int(said[1]) - 1].strip() in {"begun.set()", "is_over.wait()"}


@pytest.mark.processes
def test_a_handler_that_never_returns_ends_the_run_with_1(tmp_path: Path) -> None:
    done = ran(tmp_path, "Stuck", "--for", "0.5")
    assert done.returncode == 1, done.stdout + done.stderr
    assert sentence("runtime.left_behind", node="it") in done.stderr


@pytest.mark.processes
@pytest.mark.parametrize(
    ("cls", "arguments", "code"),
    [("Failing", ["--for", "0.5"], 1), ("Failing", ["--for", "0.5", "--allow-failures"], 0), ("Ending", [], 1)],
)
def test_handlers_that_fail_are_told_at_the_end_and_change_the_exit_code(
    tmp_path: Path, cls: str, arguments: list[str], code: int
) -> None:
    done = ran(tmp_path, cls, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    (told,) = (line for line in done.stderr.splitlines() if sentence("runtime.last_failure") in line)
    assert told.startswith("failed: it: " if code else "allowed: it: ")


class Lines:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def warning(self, text: str, *arguments: object) -> None:
        self.lines.append(text % arguments)


@pytest.mark.parametrize(
    ("took_s", "period_s", "said"),
    [
        (3.0, 0.2, f"tick took 3.0 s of its 0.2 s; {sentence('runtime.make_it_blocking')}"),
        (0.15, 0.2, ""),
        (0.05, 0.01, ""),
        (0.4, 0.0, ""),
        (
            0.6,
            0.0,
            f"tick took 0.6 s, and {sentence('runtime.nothing_else_ran')}; {sentence('runtime.make_it_blocking')}",
        ),
    ],
)
def test_what_is_slow_depends_on_the_period(took_s: float, period_s: float, said: str) -> None:
    lines = Lines()
    slow = SlowCalls(lines)  # type: ignore[arg-type]  # all that it uses of a logger
    slow.tell("tick", took_s, period_s)
    assert "".join(lines.lines) == said
    slow.sum_up()
    assert [line.endswith("; once in this run") for line in lines.lines[1:]] == ([True] if said else [])


@pytest.mark.processes
def test_a_handler_that_sleeps_past_its_next_ticks_leaves_the_run_to_end_at_its_time(tmp_path: Path) -> None:
    done = ran(tmp_path, "Sleeper", "--for", "0.7")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("tick ends") == 1, done.stdout  # no second tick began after the order to stop
    assert (
        f"tick took up to 1.4 s of its 0.2 s; {sentence('runtime.make_it_blocking')}; once in this run" in done.stdout
    )
