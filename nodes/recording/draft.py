"""`drafted`: whatever is written stands beside its name until it is whole, and only then has that name."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from runtime.errors import RecordingError, UserError, writing


@contextmanager
def drafted(out: Path, *, replaces: bool = False) -> Iterator[Path]:
    """Where to write what becomes `out` once the block has ended; whatever ends it earlier leaves nothing.

    With `replaces` it takes the place of what is called so; else that is not there, or an empty folder. Raises
    UserError where nothing can be written there.
    """
    inside = out.is_dir() and not replaces  # it may be a mount point, whose place nothing takes
    holder = out / ".part" if inside else out.with_name(f".{out.name}.part")
    before = out.with_name(f".{out.name}.before")
    draft = holder / out.name
    _remove(holder)
    with writing(out, "choose another --out"):
        holder.mkdir(parents=True)
    try:
        yield draft
        if inside:
            for one in draft.iterdir():
                one.rename(out / one.name)
        elif replaces:
            _remove(before)
            out.rename(before)
            draft.rename(out)
        else:
            draft.rename(out)
    except (RecordingError, UserError) as problem:
        raise type(problem)(str(problem).replace(str(draft), str(out))) from problem
    finally:
        if before.exists() and not out.exists():
            before.rename(out)
        _remove(holder)
        if replaces:
            _remove(before)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
