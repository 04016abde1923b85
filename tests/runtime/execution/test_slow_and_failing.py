"""A run names handlers that hold up others, that fail and that never return; the last two change its exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runtime.execution.failures import SlowCalls

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
    assert "it: warning: tick took 0.3 s of its 0.2 s; make it blocking or async" in live
    assert "tick took up to 0.3 s of its 0.2 s; make it blocking or async; 2 times in this run" in end


@pytest.mark.processes
def test_a_handler_that_never_returns_ends_the_run_with_1(tmp_path: Path) -> None:
    done = ran(tmp_path, "Stuck", "--for", "0.5")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "it had to be left behind: a handler of it does not return" in done.stderr


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
    assert "handler calls ended in an error; the log tells where" in done.stderr
    assert ("failed: handlers of it ended in errors; --allow-failures counts" in done.stderr) == (code == 1)


class Lines:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def warning(self, text: str, *arguments: object) -> None:
        self.lines.append(text % arguments)


@pytest.mark.parametrize(
    ("took_s", "period_s", "said"),
    [
        (3.0, 0.2, "tick took 3.0 s of its 0.2 s; make it blocking or async"),
        (0.15, 0.2, ""),
        (0.05, 0.01, ""),
        (0.4, 0.0, ""),
        (0.6, 0.0, "tick took 0.6 s, and nothing else of its process ran meanwhile; make it blocking or async"),
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
    assert "tick took up to 1.4 s of its 0.2 s; make it blocking or async; once in this run" in done.stdout
