"""A run on a machine without what machines have: each time a sentence, or all is well; never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.namespaces import skip_without
from tests.support.sentences import sentence

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[3]
RUN = (sys.executable, "-m", "runtime", "run", "hello", "--for", "0.3")
NO_HOME = ("env", "-u", "HOME", "-u", "TMPDIR", "-u", "XDG_RUNTIME_DIR", "-u", "XDG_STATE_HOME")
READ_ONLY = """
mount --rbind / / && mount -o remount,bind,ro / || exit 77
for place in $(cut -d' ' -f2 /proc/self/mounts); do
    case $place in /proc*|/sys*|/dev*) ;; *) mount -o remount,bind,ro "$place" ;; esac
done
mount -t tmpfs -o ro none /tmp || exit 77
if touch /root/here /tmp/here "$PWD/here"; then exit 78; fi
exec "$@"
"""
"""A root that nobody can write, and nothing where /tmp was."""


def ran(*command: str) -> tuple[int, str]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode == 77:
        pytest.skip("no mounts can be made here")
    told = done.stdout + done.stderr
    assert "Traceback" not in told
    return done.returncode, told


@pytest.mark.parametrize("most", [20, 25, 30])
def test_too_few_open_files_are_a_sentence_and_the_run_ends(most: int) -> None:
    code, told = ran("sh", "-c", f'ulimit -n {most}; exec "$@"', "sh", *RUN)
    assert code == 1, told
    assert told.rstrip().endswith(sentence("runtime.too_few_files")), told


def test_few_open_files_to_begin_with_are_no_limit_where_the_system_allows_more() -> None:
    code, told = ran("sh", "-c", 'ulimit -S -n 25; exec "$@"', "sh", *RUN)
    assert code == 0, told


ENDS = """
import os
from runtime import Node

class Ends(Node):
    def on_start(self) -> None:
        os.write(2, b"Too many open files (src/ipc_listener.cpp:297)\\n")
        os.abort()
"""


def test_what_libzmq_says_before_it_ends_a_process_stands_in_the_last_lines_also_after_a_report(
    tmp_path: Path,
) -> None:
    (tmp_path / "ends.py").write_text(ENDS)
    (tmp_path / "ends.toml").write_text(
        '[nodes.ends]\nuse = "ends:Ends"\nrestart = "never"\n[run]\nreport = "nodes.report.command:report_run"\n'
    )
    done = subprocess.run(
        (sys.executable, "-m", "runtime", "run", "ends.toml", "--record", "no_robot.mcap"),
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    why = f"Too many open files; {sentence('runtime.too_few_files')}"
    failed = [line for line in done.stderr.splitlines() if line.startswith("failed: ")]
    assert failed == [f"failed: ends was killed by SIGABRT at on_start (ends.py:8): {why}"]


@skip_without("--mount")
@pytest.mark.long
def test_three_cameras_fit_into_the_shared_memory_that_a_container_has(tmp_path: Path) -> None:
    small = 'mount -t tmpfs -o size=64m tmpfs /dev/shm || exit 77; exec "$@"'
    run = (*RUN[:4], "laptop", "--for", "5", "--out", str(tmp_path / "run"))
    code, told = ran("unshare", "--mount", "sh", "-c", small, "sh", *run)
    assert code == 0, told
    assert "No space" not in told


@skip_without("--user", "--map-user=12345")
def test_without_a_home_and_with_a_user_whom_nobody_knows_all_is_well() -> None:
    code, told = ran("unshare", "--user", "--map-user=12345", "--map-group=12345", *NO_HOME, *RUN)
    assert code == 0, told
    assert "heard beat" in told


@skip_without("--mount")
def test_with_a_root_that_cannot_be_written_and_no_tmp_a_run_needs_no_more_than_shared_memory() -> None:
    code, told = ran("unshare", "--mount", "sh", "-c", READ_ONLY, "sh", *NO_HOME, *RUN)
    assert code == 0, told
    assert "heard beat" in told


@skip_without("--mount")
def test_where_nothing_at_all_can_be_written_a_sentence_says_what_to_set() -> None:
    nowhere = f"mount -t tmpfs -o ro none /dev/shm || exit 77\n{READ_ONLY}"
    code, told = ran("unshare", "--mount", "sh", "-c", nowhere, "sh", *NO_HOME, *RUN)
    assert code in (1, 2), told
    assert "TMPDIR" in told.splitlines()[-1]
