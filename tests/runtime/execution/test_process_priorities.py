"""What a launch file asks of the operating system for a process is checked, granted, or refused in plain words."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runtime import Node, every
from runtime.commands.doctor import examine_launch
from runtime.errors import UserError
from runtime.execution.process_priorities import refusals
from runtime.launch.file import load
from runtime.launch.process_plan import plan
from runtime.launch.tables.processes_table import RealTime, parse_processes
from runtime.operating_system import real_time as scheduling
from runtime.operating_system.machine import can
from tests.support.sentences import sentence

NO_SUCH_CORE = 4095


class Bare(Node):
    """Says once how the system treats its process."""

    realtime = True

    @every(hz=5)
    def tick(self) -> None:
        locked = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmLck"))
        policy, priority = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
        self.log.info("cores %s locked %s policy %d %d", os.sched_getaffinity(0), locked.split()[1], policy, priority)
        self.finish(ok=True, reason="it has been said")


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        (3, "[processes] is 3; expected tables like [processes.NAME]"),
        ({"robo": {}}, sentence("runtime.no_process", name="robo", known="camera, robot")),
        ({"robot": 3}, "[processes.robot] is 3; expected a table [processes.robot] with cpus, fifo, lock_memory"),
        ({"robot": {"nice": 3}}, "[processes.robot] has the unknown key 'nice'; known: cpus, fifo, lock_memory"),
        ({"robot": {"fifo": 100}}, f"[processes.robot] fifo is 100; {sentence('runtime.fifo_range')}"),
        ({"robot": {"fifo": True}}, f"[processes.robot] fifo is true; {sentence('runtime.fifo_range')}"),
        ({"robot": {"cpus": [-1]}}, f"[processes.robot] cpus is [-1]; {sentence('runtime.cores_expected')}"),
        ({"robot": {"cpus": 1}}, f"[processes.robot] cpus is 1; {sentence('runtime.cores_expected')}"),
        ({"robot": {"lock_memory": 1}}, "[processes.robot] lock_memory is 1; expected true or false"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(tables: Any, told: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_processes(tables, ["robot", "camera"])
    assert str(caught.value) == told


FILE = """
[nodes.bare]
use = "tests.runtime.execution.test_process_priorities:Bare"
process = "robot"
[nodes.other]
use = "nodes.hello:Talker"
[processes.robot]
fifo = 30
cpus = [{core}]
lock_memory = true
[processes.other]
cpus = [4095]
"""


def written(folder: Path) -> Path:
    path = folder / "graph.toml"
    path.write_text(FILE.format(core=min(os.sched_getaffinity(0))))
    return path


def test_a_process_is_told_what_the_file_asks_for_it(tmp_path: Path) -> None:
    launch = load(written(tmp_path), ["processes.robot.fifo=0"])
    plans = plan(launch)
    assert plans["robot"].realtime == RealTime(0, (min(os.sched_getaffinity(0)),), lock_memory=True)
    assert plans["other"].realtime == RealTime(cpus=(NO_SUCH_CORE,))


def test_the_doctor_says_before_the_start_what_will_be_refused(tmp_path: Path) -> None:
    found = [one for one in examine_launch(written(tmp_path)) if one.subject == "other"]
    assert [one.level for one in found] == ["note"]
    assert found[0].text.startswith(f"{sentence('runtime.core_is_not_there', core=4095)} 0")


def test_memory_is_not_locked_where_a_limit_would_make_later_memory_impossible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "has_capability", lambda number: False)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (8_192_000, 8_192_000))
    assert scheduling.lock_memory() == sentence("runtime.memory_lock_refused", mb=8.2)
    assert refusals(RealTime(lock_memory=True)) == [scheduling.lock_memory()]
    assert refusals(RealTime()) == []


@pytest.mark.skipif(not can("fifo"), reason="this machine, or the environment, knows no SCHED_FIFO")
def test_a_refused_priority_names_the_ways_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    assert refusals(RealTime(fifo=30)) == [sentence("runtime.fifo_refused", why="Operation not permitted", priority=30)]


def test_what_brings_messages_stands_a_little_below_the_control_loops() -> None:
    assert scheduling.transport_priority(scheduling.CONTROL_PRIORITY) == scheduling.TRANSPORT_PRIORITY
    assert [scheduling.transport_priority(priority) for priority in (0, 1, 30)] == [0, 1, 25]


@pytest.mark.processes
def test_a_run_gets_what_is_granted_and_says_once_what_is_not(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "runtime", "run", str(written(tmp_path)), "--for", "60"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    found = re.search(r"bare: cores \{(\d+)\} locked (\d+) policy (\d) (\d+)", run.stdout)
    assert found is not None, run.stdout
    assert int(found[1]) == min(os.sched_getaffinity(0))
    if scheduling.may_lock_memory() == "":
        assert int(found[2]) > 0
    if scheduling.may_have_fifo(30) == "":
        assert (int(found[3]), int(found[4])) == (os.SCHED_FIFO, 30)
    assert run.stdout.count(f"other: warning: {sentence('runtime.core_is_not_there', core=4095)} ") == 1
    for refusal in refusals(RealTime(30, (), lock_memory=True)):
        assert run.stdout.count(refusal) == 1
