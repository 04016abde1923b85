"""A file is whole or as before: `runtime/operating_system/whole_file.py`."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.errors import TransportError
from runtime.operating_system.whole_file import is_only_writer, write_whole
from runtime.supervision.registry import Claims


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


def test_a_file_has_one_writer_until_it_is_closed(tmp_path: Path) -> None:
    with (tmp_path / "lines").open("ab") as first, (tmp_path / "lines").open("ab") as second:
        assert is_only_writer(first)
        assert not is_only_writer(second)
        first.close()
        assert is_only_writer(second)


def test_a_folder_without_locks_is_not_taken_for_one_that_another_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with (tmp_path / "lines").open("ab") as file, pytest.raises(OSError, match="No locks available"):
        is_only_writer(file)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(TransportError, match="No locks available"):
        Claims(["a robot without locks"], "run")
