"""Trials with a person in command: their tool, their page or the console itself is lost while a key is held down."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from bench.faults.measures import KILLED, STALE, Figures, held, stale
from bench.faults.nodes import SPEED_MPS
from bench.faults.rig import MOVING, ROOT, STOPPED, FaultError, Rig
from bench.faults.trials import Trial
from nodes.msgs.signature import request, token_of
from nodes.stretch.limits import STOW

LINK = "link lost to held, ms"
BACK = "seat taken back, ms"
LINE = f'command {{"position": {list(STOW)}, "base_v_mps": {SPEED_MPS}}}\n'.encode()
KEY_S = 0.05
ADDRESS = re.compile(r"console: operator: (http://\S+)")
FROZEN_S = 1.5

Person = Callable[[Rig], AbstractContextManager[subprocess.Popen[bytes]]]


@contextlib.contextmanager
def at_tool(rig: Rig) -> Iterator[subprocess.Popen[bytes]]:
    """`polyrhythm seat take policy --as me`, told by a pipe to drive ahead, 20 times a second."""
    command = [sys.executable, "-m", "runtime", "seat", "take", "policy", "--by", "rig", "--run", str(rig.process.pid)]
    tool = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    assert tool.stdin is not None
    pipe, is_over = tool.stdin.fileno(), threading.Event()
    os.set_blocking(pipe, False)

    def hold_key() -> None:
        while not is_over.wait(KEY_S):
            with contextlib.suppress(BlockingIOError, BrokenPipeError):
                os.write(pipe, LINE)

    hand = threading.Thread(target=hold_key)
    hand.start()
    try:
        yield tool
    finally:
        is_over.set()
        hand.join()
        _end(tool)
        with contextlib.suppress(BrokenPipeError):
            tool.stdin.close()


@contextlib.contextmanager
def at_page(rig: Rig) -> Iterator[subprocess.Popen[bytes]]:
    """The console's page, driving ahead."""
    rig.wait("the console's address", lambda: _addresses(rig))
    command = [sys.executable, "-m", "bench.faults.page", _addresses(rig)[-1]]
    page = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        yield page
    finally:
        _end(page)


def _addresses(rig: Rig) -> list[str]:
    """Where the console said that it is, each time; it comes back at the same place."""
    return [match[1] for line in list(rig.output) if (match := ADDRESS.search(line))]


def lost(person: Person, number: signal.Signals, process: str = "") -> Trial:
    """A person drives at full speed when their tool, or that process of the run, is killed or frozen."""

    def trial(rig: Rig) -> Figures:
        rig.wait_moving()
        told = len(_addresses(rig))
        with person(rig) as hand:
            _await_person(rig, hand)
            pid = rig.pid(process) if process else hand.pid
            start_ns = rig.send_signal(process, number) if process else _signal(hand, number)
            figures = held(rig, start_ns)
            held_ns = next(record[0] for record in rig.guard.since(start_ns) if record[1] != MOVING)
            if process and number == signal.SIGSTOP:
                figures[KILLED] = rig.wait_killed(process, pid, start_ns)
            elif number == signal.SIGSTOP:
                time.sleep(FROZEN_S)
                _signal(hand, signal.SIGCONT)
                time.sleep(0.5)
            figures |= {LINK: (held_ns - start_ns) * 1e-6, STALE: stale(rig, start_ns)}
            if person is at_tool:
                figures[BACK] = (_stopped_ns(rig, start_ns) - start_ns) * 1e-6
        give_back(rig)
        if process:
            rig.wait("the console is back", lambda: len(_addresses(rig)) > told)
        rig.wait_moving()
        return figures

    return trial


def _await_person(rig: Rig, hand: subprocess.Popen[bytes]) -> None:
    """Until the person has the robot at full speed. Raises FaultError, at once where their process has ended."""
    begun_ns = time.monotonic_ns()

    def drives() -> bool:
        if hand.poll() is not None:
            raise FaultError(f"the person's process ended with {hand.returncode}; the run said:\n{rig.tail()}")
        return _is_driven(rig, begun_ns)

    rig.wait("a person drives", drives, 60.0)


def give_back(rig: Rig) -> None:
    """As `polyrhythm seat give policy` does it; where the model sits there already, only the lease's number changes."""
    token, now_ns = token_of(rig.run.folder), time.monotonic_ns()
    rig.send("seat/request", request(token, "give", "policy", "", "rig", now_ns))


def _stopped_ns(rig: Rig, since_ns: int) -> float:
    """When the guard noticed that nobody renews the lease: it stops, and the seat goes home."""

    def stops() -> list[float]:
        return [record[0] for record in rig.guard.since(since_ns) if record[1] == STOPPED]

    rig.wait("the guard takes the seat back", stops, 5.0)
    return stops()[0]


def _is_driven(rig: Rig, since_ns: int) -> bool:
    """Whether somebody else than the policy has the robot at full speed."""
    records = rig.guard.since(since_ns)
    return len(records) > 1 and rig.is_moving() and records[-1][10] > records[max(0, len(records) - 10)][10]


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> int:
    now_ns = time.monotonic_ns()
    process.send_signal(number)
    return now_ns


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
