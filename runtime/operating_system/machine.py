"""Abilities that not every machine has: tested once, here; without one, everything else takes the general way.

`POLYRHYTHM_PORTABLE=1` in the environment switches all of them off, as on a machine without any; processes of a run
inherit it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

PORTABLE = "POLYRHYTHM_PORTABLE"
NATIVE = "POLYRHYTHM_NATIVE"
"""Environment variable; 0 uses Python for what is also written in C."""
SHARED_MEMORY = Path("/dev/shm")
PROCESSES = Path("/proc")

_NO_SESSION = "4294967295"  # what the kernel calls it, as in a container

Ability = Literal["packets", "shared memory", "process table", "fifo", "die with parent", "fork"]

WITHOUT: Mapping[Ability, str] = {
    "packets": "states between processes go by ZeroMQ",
    "shared memory": "large arrays travel inside their message",
    "process table": "processes are listed by ps, and nobody notices one that is frozen",
    "fifo": "timers are as steady as the system lets them be",
    "fork": "each process of a run imports by itself what it needs",
    "die with parent": "a server that a killed command started is ended by a person",
}
"""What is done where an ability is missing."""


def is_portable() -> bool:
    """Whether the environment asks for the general way everywhere."""
    return os.environ.get(PORTABLE, "") not in ("", "0")


def is_without_native() -> bool:
    """Whether the environment asks for Python in place of C."""
    return is_portable() or os.environ.get(NATIVE, "1") in ("", "0")


def can(ability: Ability) -> bool:
    """Whether this machine has the ability, and the environment does not forbid it."""
    return not is_portable() and _ABILITIES[ability]()


def has_shared_memory(folder: Path = SHARED_MEMORY) -> bool:
    """Whether there are locks of open files, as on 64-bit Linux, and a folder in memory."""
    is_linux = sys.platform == "linux" and sys.maxsize > 1 << 32
    return not is_portable() and is_linux and os.access(folder, os.W_OK | os.X_OK)


def login() -> str:
    """What tells one login of this account from another: a desktop, an ssh; "" where this machine knows of none.

    Terminals of one desktop are of one login. A service has none.
    """
    try:
        session = (PROCESSES / "self" / "sessionid").read_text(encoding="ascii").strip()
    except OSError:
        session = ""
    if session and session != _NO_SESSION:
        return session
    return " ".join(filter(None, (os.environ.get("SSH_CONNECTION"), os.environ.get("XDG_SESSION_ID"))))


def _has_packets() -> bool:
    """Unix sockets of packets, and anonymous memory for what is larger than one."""
    import socket  # not at the top: an emergency stop at a terminal does without, and starts sooner

    return sys.platform == "linux" and hasattr(socket, "SOCK_SEQPACKET") and hasattr(os, "memfd_create")


_ABILITIES: Mapping[Ability, Callable[[], bool]] = {
    "packets": _has_packets,
    "shared memory": has_shared_memory,
    "process table": lambda: (PROCESSES / "self" / "stat").is_file() and hasattr(os, "pidfd_open"),
    "fifo": lambda: hasattr(os, "sched_setscheduler"),
    "die with parent": lambda: sys.platform == "linux",
    "fork": lambda: sys.platform == "linux" and hasattr(os, "pidfd_open"),
}


def temporary_folder() -> Path | None:
    """Where temporary files go; shared memory where the disk is read-only, and None where that is not there either."""
    import tempfile  # a stop at a terminal does without

    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:
        return SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK | os.X_OK) else None


def full_temporary_folder() -> Path | None:
    """Where temporary files would go if there were room: those of programs that were started before it was full."""
    said = (*map(os.environ.get, ("TMPDIR", "TEMP", "TMP")), "/tmp", "/var/tmp")
    return next((Path(place) for place in said if place and os.access(place, os.W_OK | os.X_OK)), None)


def home() -> Path:
    """This user's home; for an account without one, a folder of temporary files that nobody else can write."""
    try:
        return Path.home()
    except RuntimeError:
        folder = (temporary_folder() or Path("/")) / f"polyrhythm-home-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if status.st_uid == os.getuid() and not status.st_mode & 0o077:
            return folder
    except OSError:
        pass  # whoever needs it says so
    return Path("/nonexistent")
