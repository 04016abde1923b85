"""The emergency stop by signal: it needs no socket, no file and no library, so that it works where a run is in ruins.

`polyrhythm guard estop` finds the process of each guard in /proc, or by ps, and sends it a real-time signal. The guard
answers the same way, once its output brakes. The kernel checks that both are of one user. Linux has such signals, macOS
has none. `runtime.operating_system.held_signal` says how a guard is known.
`EstopSignals` starts one thread, which waits for the signal; everywhere else in a run the signal is blocked.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from runtime.clock import NS_PER_S, SystemClock, to_ns
from runtime.operating_system.held_signal import HELD, MARK, SIGNAL, be_known, block
from runtime.operating_system.machine import can

__all__ = ["ANSWER_S", "SIGNAL", "EstopSignals", "GuardProcess", "be_known", "block", "guard_processes", "press"]

ANSWER_S = 0.3
"""A guard that does not answer within this time, s, is frozen or gone."""
_MOST_WAITING = 64
_PROCESSES = "/proc"


class EstopSignals:
    """In a guard's process: receives the signals of those who press, and answers once their stop has taken effect."""

    def __init__(self) -> None:
        import threading  # here and below: the tool at a terminal has no use for it, and loads as little as it can

        self._pressed: deque[tuple[int, int]] = deque(maxlen=_MOST_WAITING)  # pid, uid
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._wait, name="estop-signals")

    def start(self) -> None:
        """Start to listen."""
        self._thread.start()

    def take(self) -> list[tuple[int, int]]:
        """The process and user of each press since the last call."""
        return [self._pressed.popleft() for _ in range(len(self._pressed))]

    def answer(self, pid: int) -> None:
        """Tell the sender that the robot is held."""
        if SIGNAL is not None:
            try:
                os.kill(pid, SIGNAL)
            except (ProcessLookupError, PermissionError):
                pass  # it has gone

    def close(self) -> None:
        """Stop listening."""
        self._end.set()
        if SIGNAL is not None and self._thread.ident is not None:
            signal.pthread_kill(self._thread.ident, SIGNAL)
        self._thread.join()

    def _wait(self) -> None:
        from runtime.operating_system.real_time import TRANSPORT_PRIORITY, ask_for_fifo, name_thread

        assert SIGNAL is not None
        name_thread("estop-signals")
        ask_for_fifo(TRANSPORT_PRIORITY)  # where it is not granted, it goes on as an ordinary thread
        while True:
            # Without a time: Python's sigtimedwait makes up a sender where a freeze outlasts that time.
            found = signal.sigwaitinfo({SIGNAL})
            if self._end.is_set():
                return
            if found.si_pid:
                self._pressed.append((found.si_pid, found.si_uid))


class GuardProcess(NamedTuple):
    """The process of a guard, which stays the same one whatever becomes of its pid."""

    pid: int
    supervisor_pid: int
    run: str
    descriptor: int  # by which it is held; -1 where the system has none

    @property
    def is_run(self) -> bool:
        """Whether it is the supervisor of a run with a guard, rather than the guard's own process."""
        return self.pid == self.supervisor_pid

    @property
    def title(self) -> str:
        """The name of its run, for people: "stretch (pid 4711)"."""
        return f"{self.run} (pid {self.supervisor_pid})"

    def signal(self, number: int) -> bool:
        """Send it a signal; returns whether it was still there."""
        try:
            if self.descriptor < 0:
                os.kill(self.pid, number)
            else:
                signal.pidfd_send_signal(self.descriptor, number)
        except ProcessLookupError:
            return False
        return True


def guard_processes() -> list[GuardProcess]:
    """The guards' processes of this user, oldest first.

    A run whose guard does not listen yet, or not again, is there in its place.
    """
    if not can("process table"):
        return _listed_by_ps()
    found = _known_processes()
    listening = {process.supervisor_pid for process in found if not process.is_run}
    return [process for process in found if not process.is_run or process.pid not in listening]


def _known_processes() -> list[GuardProcess]:
    found = []
    for name in os.listdir(_PROCESSES):
        if name.isdigit() and (process := _known_process(int(name))) is not None:
            found.append(process)
    return sorted(found, key=lambda process: process.pid)


def _listed_by_ps() -> list[GuardProcess]:
    """The general way; between the look and a signal the process might have ended and another one have its number."""
    import subprocess  # a stop loads as little as it can

    told = subprocess.run(
        ["ps", "-ww", "-U", str(os.getuid()), "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=False
    )
    found = []
    for line in told.stdout.splitlines():
        pid, parent, *arguments = line.split()
        run = next((argument.removeprefix(MARK) for argument in arguments if argument.startswith(MARK)), "")
        if run:
            found.append(GuardProcess(int(pid), int(parent), run, -1))
    return sorted(found, key=lambda process: process.pid)


def _known_process(pid: int) -> GuardProcess | None:
    place = f"{_PROCESSES}/{pid}"
    try:
        if os.stat(place).st_uid != os.getuid() or not _held_name(place):
            return None
        descriptor = os.pidfd_open(pid)
    except OSError:  # it has ended, or is not ours to see
        return None
    try:  # once more, of the very process that is held now
        own, supervisor_pid, run = _held_name(place).split(":", 2)
        if int(own) == pid:  # a child that it forked holds the same, and is no guard
            return GuardProcess(pid, int(supervisor_pid), run, descriptor)
    except (OSError, ValueError):
        pass
    os.close(descriptor)
    return None


def _held_name(place: str) -> str:
    """What `be_known` said of that process; "" where it said nothing. Raises OSError."""
    with open(f"{place}/status", "rb", 0) as file:
        mask = file.read().partition(b"SigBlk:")[2].split(maxsplit=1)[0]
    assert SIGNAL is not None
    if not int(mask, 16) >> (SIGNAL - 1) & 1:  # every process of a run blocks it, and hardly any other does
        return ""
    for name in os.listdir(f"{place}/fd"):
        try:
            target = os.readlink(f"{place}/fd/{name}")
        except FileNotFoundError:
            continue
        if target.startswith(f"/memfd:{HELD}"):
            return target.removeprefix(f"/memfd:{HELD}").removesuffix(" (deleted)")
    return ""


def press(processes: Iterable[GuardProcess], answer_s: float = ANSWER_S) -> list[GuardProcess]:
    """Stop these robots, and return the processes that did not answer in time; for programs with one thread only."""
    assert SIGNAL is not None
    block()
    waiting = {process.pid: process for process in processes}
    clock = SystemClock()
    end_ns = clock.now_ns() + to_ns(answer_s)
    for process in list(waiting.values()):
        if not process.signal(SIGNAL):
            del waiting[process.pid]
    while waiting and (left_ns := end_ns - clock.now_ns()) > 0:
        found = signal.sigtimedwait({SIGNAL}, left_ns / NS_PER_S)
        if found is not None and found.si_signo == SIGNAL:  # another where this tool itself was frozen for so long
            waiting.pop(found.si_pid, None)
    return list(waiting.values())
