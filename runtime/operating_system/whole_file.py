"""`write_whole`: a file is written beside its name and renamed, so that nobody ever finds half of it."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, data: bytes, *, is_synced: bool = False) -> None:
    """Put it in the place of what stands there; with `is_synced` a power cut leaves the old or the new, too.

    Raises OSError with the name of `path`: then what stood there stays, and nothing is left beside it.
    """
    draft = path.with_name(f".{path.name}.part")
    try:
        with draft.open("wb") as file:
            file.write(data)
            if is_synced:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    except OSError as problem:
        draft.unlink(missing_ok=True)
        raise type(problem)(problem.errno, problem.strerror, str(path)) from problem
