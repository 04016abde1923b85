"""Without what only Linux has, everything goes the general way: `runtime/operating_system/machine.py`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nodes.guard.estop_signal import guard_processes
from runtime.operating_system import real_time
from runtime.operating_system.held_signal import MARK
from runtime.operating_system.machine import PORTABLE, WITHOUT, can
from runtime.supervision.diagnostics import examine
from runtime.supervision.supervisor import processor_time
from runtime.transport import direct, shared_memory
from runtime.transport.shared_memory import sweep

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def portable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PORTABLE, "1")


@pytest.mark.usefixtures("portable")
def test_one_variable_switches_all_of_it_off() -> None:
    assert not any(can(ability) for ability in WITHOUT)
    assert not direct.is_available()
    assert not shared_memory.is_available()
    assert sweep() == []
    assert real_time.ask_for_fifo(1) == real_time.may_have_fifo(1) == real_time.NO_FIFO
    assert processor_time(os.getpid()) == ""


@pytest.mark.usefixtures("portable")
def test_doctor_says_which_way_a_machine_goes() -> None:
    (found,) = [finding for finding in examine() if finding.subject == "machine"]
    assert found.level == "note"
    assert all(way in found.text for way in WITHOUT.values())


@pytest.mark.processes
@pytest.mark.usefixtures("portable")
@pytest.mark.skipif(shutil.which("ps") is None, reason="ps is not installed (apt install procps)")
def test_a_guard_is_found_and_signalled_without_a_table_of_processes() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()", f"{MARK}some run"], stdin=subprocess.PIPE) as process:
        found = [one for one in guard_processes() if one.pid == process.pid]
        assert [(one.supervisor_pid, one.run.split()[0]) for one in found] == [(os.getpid(), "some")]
        assert found[0].signal(9)
        process.wait(10)
    assert not any(one.pid == process.pid for one in guard_processes())


@pytest.mark.processes
def test_a_graph_of_processes_runs_the_general_way() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "runtime", "run", "hello", "--for", "2"], cwd=ROOT, env={**os.environ, PORTABLE: "1"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "listener: heard" in done.stdout + done.stderr
