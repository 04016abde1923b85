"""Files of lines: what could not be written whole is not there at all, neither at once nor later."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from bridges.web.http.jsonl import LineFile
from bridges.web.study import session_store
from bridges.web.study.journal import read_events
from bridges.web.study.protocol import EXAMPLE, read_protocol
from bridges.web.study.session import Event, SessionRefused
from bridges.web.study.session_store import SessionStore
from tests.support.sentences import pattern


class FullDisk:
    """A file whose disk takes a few bytes more, and then none."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def fileno(self) -> int:
        number: int = self._file.fileno()
        return number

    def write(self, data: bytes) -> int:
        os.write(self.fileno(), data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")


def fill_up(lines: LineFile) -> Any:
    """From now on there is no page; returns the file for when there is."""
    file: Any = lines.file
    lines.file = FullDisk(file)  # type: ignore[assignment]  # what `write` uses of a file
    return file


def test_a_line_that_the_disk_did_not_take_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    lines = LineFile(path)
    lines.write({"n": 1})
    file = fill_up(lines)
    with pytest.raises(OSError, match="No space left"):
        lines.write({"n": 2})
    assert path.read_bytes() == b'{"n":1}\n'
    lines.file = file
    lines.write({"n": 3})
    lines.close()
    assert path.read_bytes() == b'{"n":1}\n{"n":3}\n'


def test_what_was_refused_on_a_full_disk_is_not_in_the_session_when_it_is_read_again(tmp_path: Path) -> None:
    store = SessionStore(read_protocol(EXAMPLE), tmp_path, lambda progress, event: None)
    store.begin(1, 0.0, "x")
    assert store.journal is not None
    file = fill_up(store.journal)
    for _ in range(3):
        with pytest.raises(SessionRefused, match=pattern("bridges.not_written")):
            store.do(lambda progress: progress.consent(1.0, 3))
    store.journal.file = file
    store.do(lambda progress: progress.consent(2.0, 3))
    store.close()
    assert [(event.what, event.at_s) for event in read_events(tmp_path / "P01.jsonl")] == [
        ("begin", 0.0),
        ("consent", 2.0),
    ]


def test_a_table_that_cannot_be_written_keeps_nobody_from_withdrawing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    heard: list[Event] = []
    store = SessionStore(read_protocol(EXAMPLE), tmp_path, lambda progress, event: heard.append(event))
    store.begin(1, 0.0, "x")
    monkeypatch.setattr(session_store, "write_table", full)
    store.do(lambda progress: progress.withdraw(1.0, "P01"))
    store.close()
    assert [event.what for event in heard] == ["begin", "withdraw"]
