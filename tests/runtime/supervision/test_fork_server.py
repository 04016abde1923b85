"""Processes that are forked behave as those that are started afresh, and outlive what forked them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.launch.file import find, load
from runtime.operating_system.machine import PORTABLE
from runtime.supervision.fork_server import fork_server, modules_of
from tests.support.running import Runs, eventually, is_alive
from tests.support.sentences import sentence

ROOT = Path(__file__).resolve().parents[3]


def children_of(pid: int) -> dict[int, str]:
    """What a process has started and is still there, with the words under which it stands in lists of processes."""
    found = {}
    for place in Path("/proc").iterdir():
        try:
            if place.name.isdigit() and int((place / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found[int(place.name)] = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:
            continue  # it has gone
    return found


@pytest.mark.processes
def test_a_run_goes_on_when_what_forked_its_processes_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    with Runs(monkeypatch) as runs:
        run = runs.start("hello")
        pids = {name: state.pid for name, state in run.states().items()}
        titles = children_of(run.info.supervisor_pid)
        assert {name: titles[pid] for name, pid in pids.items()} == {
            name: f"polyrhythm {run.folder} {name}" for name in ("talker", "listener")
        }
        os.kill(pids["talker"], signal.SIGKILL)
        eventually(lambda: run.states()["talker"].restarts == 1, "the talker is restarted")
        again = run.states()["talker"].pid
        assert children_of(run.info.supervisor_pid)[again].startswith("polyrhythm ")
        (server,) = [pid for pid, title in titles.items() if title == "polyrhythm fork server"]
        os.kill(server, signal.SIGKILL)
        os.kill(again, signal.SIGKILL)
        eventually(
            lambda: run.states()["talker"].restarts == 2 and run.states()["talker"].state == "running",
            "the talker is restarted without it",
        )
        assert is_alive(pids["listener"])
        assert run.states()["listener"].restarts == 0


@pytest.mark.processes
def test_a_process_has_five_threads_and_those_of_its_handlers_and_each_has_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Runs(monkeypatch) as runs:
        run = runs.start("hello")
        for state in run.states().values():
            tasks = [Path(f"/proc/{state.pid}/task/{task}/comm") for task in os.listdir(f"/proc/{state.pid}/task")]
            main, *others = sorted(tasks, key=lambda task: task.parent.name != str(state.pid))
            assert main.parent.name == str(state.pid)
            names = sorted(task.read_text().strip() for task in others)
            assert names == ["ZMQbg/IO/0", "ZMQbg/Reaper", "bus", "control"]


@pytest.mark.processes
def test_who_cannot_be_forked_is_started_afresh_and_the_others_inherit_nothing_that_two_must_not_share(
    tmp_path: Path,
) -> None:
    launch = tmp_path / "graph.toml"
    launch.write_text(
        "".join(f'[nodes.{name}]\nuse = "tests.support.forked_nodes:Tells"\n' for name in ("one", "other"))
        + '[nodes.judge]\nuse = "tests.support.forked_nodes:Compares"\n'
        + '[nodes.threaded]\nuse = "tests.support.thread_at_import:Threaded"\n'
    )
    done = subprocess.run(
        [sys.executable, "-m", "runtime", "run", str(launch), "--for", "30"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert told.count("is started afresh") == 1
    assert f"threaded {sentence('runtime.started_afresh')}: tests.support.thread_at_import" in told
    assert told.count("output: half a line") == 2
    assert told.count("done at the end") == 1, "what was to be done at the end of the run is done by no node"


def test_nothing_is_forked_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fork_server(load(find("hello"), ["run.start=spawn"])) is None
    monkeypatch.setenv(PORTABLE, "1")
    assert fork_server(load(find("hello"))) is None


def test_a_node_needs_the_module_of_its_class_and_of_its_stand_in() -> None:
    nodes: dict[str, dict[str, object]] = {
        "a": {"use": "one.of:A"},
        "b": {"use": "one.of:B", "stand_in": "two.more:make", "hz": 3},
    }
    assert modules_of(nodes) == {"one.of", "two.more"}
