"""Real-time scheduling of threads, cores and memory, where the operating system grants it (Linux).

In a process with a `realtime` node the control loops have the highest priority, then what brings them messages.
Blocking handlers stay ordinary, so that a slow model never delays a stop. Each request returns "" where it is granted,
or else why it is refused and what to do about it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
import threading
from collections.abc import Sequence
from pathlib import Path

from runtime.operating_system.machine import can

CONTROL_PRIORITY = 20
TRANSPORT_PRIORITY = 15
HIGHEST_PRIORITY = 99
NO_FIFO = "this machine has no SCHED_FIFO, or POLYRHYTHM_PORTABLE switches it off"

_MCL_CURRENT, _MCL_FUTURE = 1, 2
_CAP_IPC_LOCK = 14
_STATUS = Path("/proc/self/status")
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # no libc before glibc 2.41 has a function for it
_ATTRIBUTES_BYTES = 48
_TURN_NS = 500_000  # the usual turn is 0.7 ms and more


def transport_priority(control_priority: int) -> int:
    """The priority of what brings messages to control loops of this priority."""
    return max(1, control_priority - (CONTROL_PRIORITY - TRANSPORT_PRIORITY)) if control_priority else 0


def ask_for_fifo(priority: int) -> str:
    """Give the calling thread, and those that it starts, this SCHED_FIFO priority."""
    if not can("fifo"):
        return NO_FIFO
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except OSError as refusal:
        return (
            f"SCHED_FIFO is refused ({refusal.strerror}); grant it with: ulimit -r {priority}, "
            f"with 'rtprio {priority}' in /etc/security/limits.conf, or with CAP_SYS_NICE"
        )
    return ""


def may_have_fifo(priority: int) -> str:
    """Whether `ask_for_fifo` would be granted: tries it, and returns to ordinary scheduling."""
    if not can("fifo"):
        return NO_FIFO
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    refusal = ask_for_fifo(priority)
    if not refusal:
        os.sched_setscheduler(0, policy, parameters)
    return refusal


def name_thread(name: str) -> None:
    """Give the calling thread a name that `top -H` shows; only its first 15 bytes count."""
    if can("process table"):
        try:
            Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name[:15])
        except OSError:
            pass  # it is for people who look


def be_ordinary() -> None:
    """Return the calling thread to ordinary scheduling, which it may have lost to the thread that started it."""
    try:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except (AttributeError, OSError):
        pass  # then it never was anything else


def take_short_turns() -> None:
    """Let the calling thread, and those that it starts, go before what computes when they wake, without any rights.

    Linux 6.12 and later let a thread that asks for shorter turns interrupt one with longer turns. Its share of the
    processor stays the same. Elsewhere nothing changes.
    """
    number = _SCHED_SETATTR.get(platform.machine())
    if number is None or not can("process table"):
        return
    wish = struct.pack(
        "=IIQiIQQQ", _ATTRIBUTES_BYTES, os.SCHED_OTHER, 0, os.getpriority(os.PRIO_PROCESS, 0), 0, _TURN_NS, 0, 0
    )
    ctypes.CDLL(None).syscall(ctypes.c_long(number), 0, ctypes.create_string_buffer(wish), 0)


def may_use_cores(cpus: Sequence[int]) -> str:
    """Whether this process may run on these cores, and only on them."""
    if not hasattr(os, "sched_getaffinity"):
        return "this operating system does not bind processes to cores"
    missing = sorted(set(cpus) - os.sched_getaffinity(0))
    if missing:
        names, own = (", ".join(map(str, sorted(group))) for group in (missing, os.sched_getaffinity(0)))
        return f"core {names} is not there for this process; it has {own} (see lscpu, taskset and its control group)"
    return ""


def use_cores(cpus: Sequence[int]) -> str:
    """Bind the calling thread, and those that it starts, to these cores."""
    refusal = may_use_cores(cpus)
    if not refusal:
        try:
            os.sched_setaffinity(0, cpus)
        except OSError as problem:
            return f"cores {', '.join(map(str, cpus))} are refused ({problem.strerror})"
    return refusal


def may_lock_memory() -> str:
    """Whether this process may keep all of its present and later memory from being swapped out.

    Where there is a limit, nothing is locked: memory beyond the limit could not be allocated at all.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if limit == resource.RLIM_INFINITY or has_capability(_CAP_IPC_LOCK):
        return ""
    return (
        f"locking memory is refused: at most {limit / 1e6:.1f} MB may be locked; allow it with: ulimit -l unlimited, "
        "with 'memlock unlimited' in /etc/security/limits.conf, or with CAP_IPC_LOCK"
    )


def lock_memory() -> str:
    """Keep all present and later memory of this process from being swapped out."""
    refusal = may_lock_memory()
    if refusal:
        return refusal
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "mlockall"):
        return "this operating system has no mlockall"
    if library.mlockall(_MCL_CURRENT | _MCL_FUTURE) != 0:
        number = ctypes.get_errno()
        why = "there is not enough of it" if number in (errno.ENOMEM, errno.EAGAIN) else os.strerror(number)
        return f"locking memory is refused: {why}"
    return ""


def has_capability(number: int) -> bool:
    """Whether this process has this Linux capability."""
    try:
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("CapEff:"))
    except (OSError, StopIteration):
        return False
    return bool(int(line.split()[1], 16) >> number & 1)
