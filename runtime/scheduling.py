"""Real-time scheduling of threads, where the operating system grants it (Linux, with the right to SCHED_FIFO).

In a process with a `realtime` node the control loops go first, then what brings them messages; blocking handlers stay
ordinary, so that a slow model never stands before a stop.
"""

from __future__ import annotations

import os

CONTROL_PRIORITY = 20
TRANSPORT_PRIORITY = 15


def ask_for_fifo(priority: int) -> str:
    """Give the calling thread, and those it starts, that priority; "" where granted, else the refusal in words."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except AttributeError:
        return "this operating system has no SCHED_FIFO"
    except OSError as refusal:
        return f"SCHED_FIFO is refused ({refusal.strerror}); grant it with: ulimit -r {priority}, or CAP_SYS_NICE"
    return ""


def be_ordinary() -> None:
    """Give the calling thread the ordinary scheduling again, which it may have lost to the thread that started it."""
    try:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except (AttributeError, OSError):
        pass  # then it never was anything else
