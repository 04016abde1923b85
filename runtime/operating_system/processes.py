"""What a process has started and left behind: found by its session and by a mark in the environment, and ended.

A child that takes a session of its own (`start_new_session=True`) is found by the mark, which programs hand on.
Without a process table only the process group is ended.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Collection, Iterator
from pathlib import Path

from runtime.operating_system.machine import PROCESSES, can

FAMILY = "POLYRHYTHM_PROCESS"
"""Environment variable: of whose family a process is, as its "pid/run"."""
PATH, OUTER_PATH = "PYTHONPATH", "POLYRHYTHM_OUTER_PYTHONPATH"
"""Where a Python finds modules besides its own; and what it was for whoever started the run."""
MOST_FILES = 4096
_PASSES = 3  # who forks meanwhile is found in the next one


def foreign_environment() -> dict[str, str]:
    """Return the environment for a child that is another Python: without what would lead it to our modules."""
    return {name: value for name, value in os.environ.items() if name not in (PATH, "PYTHONHOME")}


def forget_path() -> None:
    """Give back the PYTHONPATH of whoever started the run: what a node starts may be another Python, which would find
    our libraries there. What this process imports is found by now, in `sys.path`."""
    outer = os.environ.pop(OUTER_PATH, None)
    if outer is not None:
        os.environ.pop(PATH, None)
        os.environ.update({PATH: outer} if outer else {})


def found_family(run: str) -> None:
    """Mark all that this process will start, in the run with that name."""
    os.environ[FAMILY] = f"{os.getpid()}/{run}"


def open_more_files() -> None:
    """Let this process and its children open as many files as the system allows them, 4096 at most.

    Whoever logs in may have fewer to begin with; sockets and cameras of a large graph need more.
    """
    try:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (OSError, ValueError):
        pass  # what the system refuses is told where a file cannot be opened


def end_families(pids: Collection[int], run: str) -> None:
    """Kill what these processes of that run have started and left behind; never this process."""
    for pid in pids:
        try:
            if pid != os.getpgrp():
                os.killpg(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # nobody is left in it
    for _ in range(_PASSES):
        found = list(_family(pids, run)) if pids else []
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        if not found:
            return


def reap_orphans(known: Collection[int]) -> None:
    """Take leave of ended children that nobody here has started: the first process of a container inherits them."""
    for pid, parent, _, state in _all_processes():
        if parent == os.getpid() and state == "Z" and pid not in known:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue


def _family(pids: Collection[int], run: str) -> Iterator[int]:
    marks = [f"{FAMILY}={pid}/{run}\0".encode() for pid in pids]
    for pid, _, session, state in _all_processes():
        if pid == os.getpid() or pid in pids or state == "Z":
            continue
        if session in pids or any(mark in _environment(pid) for mark in marks):
            yield pid


def _environment(pid: int) -> bytes:
    try:
        return b"\0" + (PROCESSES / str(pid) / "environ").read_bytes() + b"\0"
    except OSError:
        return b""  # it has ended, or is not ours to see


def _all_processes() -> Iterator[tuple[int, int, int, str]]:
    """Of each process its id, its parent's, its session's, and its state."""
    if not can("process table"):
        return
    for name in os.listdir(PROCESSES):
        if name.isdigit():
            try:
                text = Path(PROCESSES, name, "stat").read_text(errors="replace")
            except OSError:
                continue
            state, parent, _, session = text.rpartition(")")[2].split()[:4]
            yield int(name), int(parent), int(session), state
