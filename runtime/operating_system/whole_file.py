"""`write_whole`: a file is written beside its name and renamed, so that nobody ever finds half of it.

`is_only_writer`: of one that grows, one process at a time is the writer.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO, Any

PRIVATE = 0o600


def write_whole(path: Path, data: bytes, *, mode: int = 0o666, is_synced: bool = False) -> None:
    """Put it in the place of what stands there; with `is_synced` a power cut leaves the old or the new, too.

    `mode` says who may read a new file, less what the umask takes.

    Raises OSError with the name of `path`: then what stood there stays, and nothing is left beside it.
    """
    draft = path.with_name(f".{path.name}.part")
    try:
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(data)
            if is_synced:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    except OSError as problem:
        draft.unlink(missing_ok=True)
        raise type(problem)(problem.errno, problem.strerror, str(path)) from problem


def is_only_writer(file: IO[Any]) -> bool:
    """Take an open file's lock, which the system lets go of when it is closed, however its process ends.

    False where another process has it. Raises OSError where none can be had, as in some folders of a network.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
