"""A file is whole or as before: `runtime/operating_system/whole_file.py`."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.operating_system.whole_file import write_whole


@pytest.fixture
def full_disk() -> Iterator[None]:
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("is_synced", [False, True])
def test_a_disk_that_fills_leaves_what_stood_there_and_nothing_beside_it(
    tmp_path: Path, full_disk: None, *, is_synced: bool
) -> None:
    file = tmp_path / "log.json"
    write_whole(file, b"before", is_synced=is_synced)
    with pytest.raises(OSError, match=os.strerror(errno.EFBIG)) as told:
        write_whole(file, b"x" * 5000, is_synced=is_synced)
    assert (told.value.errno, told.value.filename) == (errno.EFBIG, str(file))
    assert file.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [file]
