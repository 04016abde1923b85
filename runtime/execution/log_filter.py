"""Which log lines of a process belong to a run: those of nodes and of the user's own code, and warnings of anybody.

What libraries tell of themselves ("HTTP Request: POST ...") is nobody's news.
"""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path

_OWN = Path(__file__).resolve().parents[2]
_OWN_PACKAGES = tuple(f"{_OWN / name}/" for name in ("runtime", "nodes", "bridges"))


def is_of_the_run(record: logging.LogRecord) -> bool:
    """Whether a line is told: an info line of an installed library is not."""
    if record.levelno >= logging.WARNING or record.name.startswith("node."):
        return True
    return record.pathname.startswith(_OWN_PACKAGES) or not record.pathname.startswith(_libraries())


@cache
def _libraries() -> tuple[str, ...]:
    import sysconfig  # not at the top: our own lines do without

    return tuple({f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def log_to(handler: logging.Handler) -> None:
    """Give the lines of this process that belong to the run to that handler, where logging is not configured yet."""
    handler.addFilter(is_of_the_run)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
