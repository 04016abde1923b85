"""The registry finds what is alive, forgets what is dead, and belongs to one user."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.errors import TransportError
from runtime.supervision.registry import (
    LONGEST_SOCKET_PATH,
    ProcessState,
    Registration,
    check_root,
    find_runs,
    left_behind,
)
from tests.support.sentences import pattern

DOCUMENT: dict[str, Any] = {"launch_file": "hello.toml", "nodes": {}, "topics": {}, "processes": {}}


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setenv("TMPDIR", folder)  # what is named first for a disk that is full: no run of others is found
        yield Path(folder)


def test_a_run_is_found_from_its_start_to_its_end(root: Path) -> None:
    first = Registration("hello", DOCUMENT, ["talker"])
    second = Registration("hello", DOCUMENT, ["talker"])
    assert [run.folder for run in find_runs()] == [first.folder, second.folder]
    assert first.folder.parent.stat().st_mode & 0o077 == 0
    first.close()
    assert [run.folder for run in find_runs()] == [second.folder]
    second.close()
    assert find_runs() == []
    assert list((root / "polyrhythm").iterdir()) == []


def test_what_a_dead_supervisor_left_is_ignored_and_removed(root: Path) -> None:
    run = Registration("hello", DOCUMENT, ["talker"])
    run.lock.close()  # as the kernel does at the supervisor's death
    assert left_behind() == [run.folder]
    assert find_runs() == []
    assert not run.folder.exists()


def test_how_the_processes_fare_is_read_as_it_was_noted(root: Path) -> None:
    run = Registration("hello", DOCUMENT, ["talker"])
    [found] = find_runs()
    assert found.states() == {}
    run.note("talker", 7, "running", 0)
    run.note("talker", 8, "restarted", 1)
    assert found.states() == {"talker": ProcessState(8, "restarted", 1)}
    run.close()
    assert found.states() == {}
    assert not found.is_alive


def test_a_socket_path_that_the_system_would_not_take_is_refused_in_words(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TransportError, match=pattern("runtime.set_another_folder", bytes=LONGEST_SOCKET_PATH)):
        Registration("hello", DOCUMENT, ["a" * 80])
    assert find_runs() == []
    deep = root / ("d" * 80)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    with pytest.raises(TransportError, match=pattern("runtime.shorter_folder")):
        check_root()


def test_a_folder_that_others_may_write_to_is_not_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    open_to_all = check_root()
    open_to_all.chmod(0o777)
    with pytest.raises(TransportError, match=pattern("runtime.folder_of_this_user")):
        Registration("hello", DOCUMENT, ["talker"])
    assert find_runs() == []
    open_to_all.rmdir()
    open_to_all.symlink_to(root)
    with pytest.raises(TransportError, match=pattern("runtime.folder_of_this_user")):
        check_root()
