"""`polyrhythm guard estop`: it works without sockets, files and libraries, also where the guard is frozen."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from bench.faults.rig import ESTOPPED, ROOT, STOPPED, Rig
from nodes.guard import estop_signal
from tests.support.namespaces import skip_without
from tests.support.running import eventually
from tests.support.sentences import sentence

HEAVY = (
    "zmq",
    "numpy",
    "asyncio",
    "msgspec",
    "ssl",
    "runtime.node",
    "runtime.transport.zeromq",
    "nodes.guard.node",
    "runtime.launch",
    "argparse",
    "ctypes",
    "dataclasses",
    "importlib.metadata",
    "inspect",
    "json",
    "socket",
    "threading",
)
SENT = """
import sys
from runtime import cli
from nodes.guard import estop_signal
def press(processes, answer_s=0.0):
    found = list(processes)
    print([name for name in sys.modules])
    return []
estop_signal.press = press
estop_signal.guard_processes = lambda: [estop_signal.GuardProcess(1, 2, "x", -1)]
cli.main(["guard", "estop"])
"""


def test_nothing_heavy_is_loaded_before_the_stop_is_sent() -> None:
    done = subprocess.run([sys.executable, "-c", SENT], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[0]
    assert "'nodes.guard.estop_signal'" in loaded
    assert [name for name in HEAVY if f"'{name}'" in loaded] == []


KNOWN = """
import os, sys
from nodes.guard import estop_signal
estop_signal.block()
estop_signal.be_known("a room", int(sys.argv[1]))
child = os.fork()
if not child:
    sys.stdin.read()
    os._exit(0)
print(child, flush=True)
sys.stdin.read()
os.waitpid(child, 0)
"""


@pytest.mark.processes
def test_a_guard_is_found_by_what_no_cleaner_deletes_and_what_it_forks_is_none() -> None:
    pipe, known = subprocess.PIPE, [sys.executable, "-c", KNOWN]
    with subprocess.Popen([*known, str(os.getpid())], cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as guard:
        assert guard.stdout is not None
        child = int(guard.stdout.readline())
        found = [one for one in estop_signal.guard_processes() if one.pid in (guard.pid, child)]
        assert [(one.pid, one.supervisor_pid, one.run) for one in found] == [(guard.pid, os.getpid(), "a room")]
        guard.communicate()
    assert not any(one.pid == guard.pid for one in estop_signal.guard_processes())


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    try:
        rig.wait_moving()
        yield rig
    finally:
        rig.close()


def estop(rig: Rig) -> tuple[str, dict[str, object]]:
    """What the command says of that rig's run."""
    asked = [sys.executable, "-m", "runtime", "guard", "estop", "--run", str(rig.process.pid), "--json"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False, timeout=40.0)
    assert done.returncode == 0, done.stderr
    (told,) = json.loads(done.stdout)
    return done.stderr, told


@pytest.mark.processes
def test_a_run_whose_folder_was_deleted_holds_within_a_second_says_so_and_can_still_be_stopped(rig: Rig) -> None:
    start_ns = time.monotonic_ns()
    shutil.rmtree(rig.run.folder)
    record = rig.wait_mode(STOPPED, start_ns, "stopped, as its sockets are gone")
    assert record[0] - start_ns < 1.5e9  # 1 s on a machine that has nothing else to do
    rig.wait("it says so", lambda: "no tool reaches it any more; end it and start anew" in rig.tail())
    pid = str(rig.process.pid)
    done = subprocess.run(
        [sys.executable, "-m", "runtime", "guard", "estop", "--run", pid], cwd=ROOT, check=False, timeout=20.0
    )
    assert done.returncode == 0
    rig.wait_mode(ESTOPPED, start_ns, "estopped")


@pytest.mark.processes
def test_a_frozen_guard_is_ended_the_motors_stand_and_the_one_that_comes_back_is_latched(rig: Rig) -> None:
    pid = rig.pid("robot")
    os.kill(pid, signal.SIGSTOP)
    err, told = estop(rig)
    assert told["ended"] == pid
    assert told["latched"] is True
    assert sentence("guard.started_again_and_latched") in err
    rig.wait_whole()
    assert rig.pid("robot") != pid
    last = rig.guard.last()
    assert last is not None
    assert last[1] == ESTOPPED
    motors = rig.motors.last()
    assert motors is not None
    assert motors[1] == 0.0  # their target; they brake for up to a second
    rig.wait("the motors stand", lambda: abs((rig.motors.last() or motors)[2]) < 1e-9, 3.0)


LISTENS = """
import sys
from nodes.guard import estop_signal
estop_signal.block()
signals = estop_signal.EstopSignals()
signals.start()
print("listens", flush=True)
for line in sys.stdin:
    print(signals.take(), flush=True)
signals.close()
"""


@pytest.mark.processes
def test_a_guard_that_was_frozen_hears_only_who_has_pressed() -> None:
    assert estop_signal.SIGNAL is not None
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", LISTENS], cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as guard:
        asked, said = guard.stdin, guard.stdout
        assert asked is not None
        assert said is not None
        assert said.readline() == "listens\n"

        def heard() -> str:
            print("?", file=asked, flush=True)
            return said.readline().strip()

        def is_past(moment: float) -> bool:
            return time.monotonic() > moment

        for _ in range(3):
            guard.send_signal(signal.SIGSTOP)
            eventually(partial(is_past, time.monotonic() + 0.6), "it was frozen for a while")
            guard.send_signal(signal.SIGCONT)
            assert heard() == "[]"
        guard.send_signal(estop_signal.SIGNAL)
        eventually(lambda: heard() == str([(os.getpid(), os.getuid())]), "the press is heard", 5.0)
        asked.close()
        assert guard.wait(5.0) == 0


@pytest.mark.processes
def test_a_stop_by_signal_is_latched_and_names_the_account(rig: Rig) -> None:
    start_ns = time.monotonic_ns()
    _, told = estop(rig)
    assert told == {"run": "faults", "pid": rig.process.pid, "ended": None, "latched": True}
    rig.wait_mode(ESTOPPED, start_ns, "estopped")
    rig.wait("the log names who", lambda: "emergency stop: terminal: pressed by " in "".join(rig.output))


TWO = """
import itertools, json, os, shutil, signal, subprocess, sys, tempfile, time
from pathlib import Path
from bench.faults.rig import ESTOPPED, ROOT, STOPPED, Rig
make = tempfile.mkdtemp
tempfile.mkdtemp = lambda prefix: make(prefix=prefix, dir=sys.argv[1])  # the rigs' own; a run's files are in TMPDIR

def estop():
    start_ns = time.monotonic_ns()
    asked = [sys.executable, "-m", "runtime", "guard", "estop", "--json"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, timeout=60.0)
    return start_ns, {one["pid"]: one for one in json.loads(done.stdout)}

one, other = rigs = Rig(), Rig()
try:
    for rig in rigs:
        rig.wait_moving()
    start_ns, told = estop()
    for rig in rigs:
        rig.wait_mode(ESTOPPED, start_ns, "held")
        assert told[rig.process.pid]["latched"] and told[rig.process.pid]["ended"] is None, told
    print("both are held")
    for rig in rigs:
        rig.wait_moving()
    with open(os.environ["TMPDIR"] + "/filler", "wb", buffering=0) as filler:
        try:
            while filler.write(bytes(1 << 12)):
                pass
        except OSError:
            pass
    for number in itertools.count():
        try:
            open(os.environ["TMPDIR"] + f"/empty-{number}", "w").close()
        except OSError:
            break
    start_ns = time.monotonic_ns()
    said = [sys.executable, "-m", "runtime", "say", "--wait", "1", "Stop!"]
    done = subprocess.run(said, cwd=ROOT, capture_output=True, text=True, timeout=60.0)
    assert done.returncode == 0, done
    for rig in rigs:
        rig.wait_mode(STOPPED, start_ns, "stopped by words")
    print("both have heard, with no room for a file")
    for rig in rigs:
        rig.wait_moving()
    start_ns = time.monotonic_ns()
    shutil.rmtree(one.run.folder)
    one.wait_mode(STOPPED, start_ns, "stopped, as its sockets are gone")
    frozen = other.pid("robot")
    os.kill(frozen, signal.SIGSTOP)
    start_ns, told = estop()
    one.wait_mode(ESTOPPED, start_ns, "held in ruins")
    assert told[other.process.pid]["ended"] == frozen, told
    other.wait("the motors stand", lambda: abs(other.motors.last()[2]) < 1e-9, 5.0)
    print("both are held in ruins")
finally:
    for rig in rigs:
        rig.close()
"""
ALONE = ("--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Processes of their own, so that the stop without a name reaches no robot but those of the test."""


@skip_without(*ALONE)
@pytest.mark.processes
def test_without_a_name_two_live_robots_are_stopped_also_with_a_full_tmp_no_sockets_and_a_frozen_guard(
    tmp_path: Path,
) -> None:
    script = 'mount -t tmpfs -o size=32m,nr_inodes=400 tmpfs "$TMPDIR" && exec "$@"'
    elsewhere = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as small:  # short: sockets have short paths
        done = subprocess.run(
            ["unshare", *ALONE, "sh", "-c", script, "sh", sys.executable, "-c", TWO, str(tmp_path)],
            cwd=ROOT, env={**elsewhere, "TMPDIR": small}, capture_output=True, text=True, check=False, timeout=300.0,
        )  # fmt: skip
    told = ["both are held", "both have heard, with no room for a file", "both are held in ruins"]
    assert done.stdout.splitlines() == told, done.stderr[-3000:]
