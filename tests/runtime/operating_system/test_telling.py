"""What a program tells people cannot fail, cannot wait, and what was not said is counted."""

from __future__ import annotations

import errno
import logging
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runtime.operating_system import telling
from tests.support.running import eventually
from tests.support.terminals import POLYRHYTHM

ROOT = Path(__file__).parents[3]
FULL = Path("/dev/full")


@contextmanager
def stdout_into_a_pipe(encoding: str = "utf-8", errors: str = "strict") -> Iterator[int]:
    """The end that reads of what standard output writes into; in the test itself, since pytest captures each phase."""
    reads, writes = os.pipe()
    with os.fdopen(writes, "w", encoding=encoding, errors=errors) as stream, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        yield reads
    os.close(reads)


@pytest.mark.parametrize("number", [errno.EIO, errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EBADF, errno.EFBIG])
@pytest.mark.parametrize("seed", range(5))
def test_every_write_may_fail_from_a_random_moment_on(monkeypatch: pytest.MonkeyPatch, number: int, seed: int) -> None:
    works, lines = random.Random(seed).randrange(20), 20
    written: list[bytes] = []

    def write(_: int, data: bytes) -> int:
        if len(written) >= works:
            raise OSError(number, os.strerror(number))
        written.append(bytes(data))
        return len(data)

    with stdout_into_a_pipe():
        monkeypatch.setattr(os, "write", write)
        telling.use("stdout")
        for line in range(lines):
            print("line", line)
        lost = telling.untold()
    assert b"".join(written).decode().splitlines() == [f"line {line}" for line in range(works)]
    assert lost[number] == lines - works


def test_a_letter_that_the_other_end_has_not_is_replaced() -> None:
    with stdout_into_a_pipe("ascii", "surrogateescape") as reads:
        telling.use("stdout")
        print("é \ud800 ok")
        assert os.read(reads, 100) == b"? ? ok\n"


def test_a_reader_that_does_not_read_keeps_nobody_waiting_and_is_told_what_it_missed() -> None:
    lines = 3 * telling.MOST_BYTES // 1000
    with stdout_into_a_pipe() as reads, telling.apart("stdout"):
        for _ in range(lines):
            print("." * 999)
        heard = b""
        while b"left out" not in heard:
            heard += os.read(reads, 1 << 16)
    assert heard.count(b".\n") < lines


def test_what_nobody_has_read_in_time_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "LAST_WORDS_S", 0.05)
    with stdout_into_a_pipe(), telling.apart("stdout"):
        for _ in range(200):
            print("." * 999)
        telling.finish()
        lost = telling.untold()
    assert 100 < lost[0] <= 200
    assert not telling.is_lost_to_somebody(lost)


@pytest.mark.parametrize("is_halted", [False, True])
def test_the_last_words_need_no_thread_and_wait_for_no_halted_reader(
    monkeypatch: pytest.MonkeyPatch, is_halted: bool
) -> None:
    monkeypatch.setattr(telling, "LAST_WORDS_S", 0.05)
    with stdout_into_a_pipe() as reads, telling.apart("stdout"):
        if is_halted:
            fill(sys.stdout.fileno())
        with monkeypatch.context() as ends:  # as from Python 3.12 on, when a program ends
            ends.setattr(threading.Thread, "start", raises_runtime_error)
            sys.stdout.write("half a line")
            telling.finish()
        assert telling.untold() == ({0: 1} if is_halted else {})
        assert os.read(reads, 1 << 20).endswith(b"." if is_halted else b"half a line")


def raises_runtime_error(thread: threading.Thread) -> None:
    raise RuntimeError("can't create new thread at interpreter shutdown")


def fill(descriptor: int) -> None:
    """Write until a reader has to read."""
    os.set_blocking(descriptor, False)
    try:
        while os.write(descriptor, b"." * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(descriptor, True)


def test_two_streams_of_one_file_keep_the_order_of_their_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    with stdout_into_a_pipe() as reads:
        with os.fdopen(os.dup(sys.stdout.fileno()), "w") as other:
            monkeypatch.setattr(sys, "stderr", other)
            with telling.apart("stdout", "stderr"):
                for line in range(50):
                    print(line, file=(sys.stdout, sys.stderr)[line % 2])
        assert os.read(reads, 1 << 16).split() == [str(line).encode() for line in range(50)]


def test_a_log_record_whose_arguments_cannot_be_shown_is_a_line_all_the_same() -> None:
    class Shy:
        def __str__(self) -> str:
            raise RuntimeError

    text = telling.text_of(logging.LogRecord("node.shy", logging.INFO, "", 0, "seen %s", (Shy(),), None))
    assert "seen %s" in text
    assert "Shy" in text


@pytest.mark.processes
@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("streams", [">/dev/full", "2>/dev/full", ">/dev/full 2>&1"])
def test_a_full_disk_ends_no_run_and_is_told_by_the_exit_code(streams: str, tmp_path: Path) -> None:
    recording = tmp_path / "run.mcap"
    line = f"{' '.join(POLYRHYTHM)} run hello --for 1 --record {recording} {streams}"
    ended = subprocess.run(["sh", "-c", line], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    if streams == ">/dev/full":
        assert os.strerror(errno.ENOSPC) in ended.stderr.splitlines()[-1]
    assert recording.stat().st_size > 1000


@pytest.mark.processes
@pytest.mark.parametrize("seed", range(3))
def test_a_run_whose_every_write_fails_from_a_random_moment_on_comes_to_its_end(seed: int, tmp_path: Path) -> None:
    """Its output is a file that may not grow beyond a limit, which its processes inherit: so no node's log, either."""
    file = tmp_path / "graph.toml"
    file.write_text(
        '[nodes.loud]\nuse = "tests.support.ending_nodes:Loud"\n'
        '[nodes.listener]\nuse = "tests.support.ending_nodes:Listener"\nparams = { last = 500 }\n'
    )
    blocks = random.Random(seed).randrange(8, 400)  # of half a kB
    line = f"ulimit -f {blocks}; exec {' '.join(POLYRHYTHM)} run {file} >{tmp_path}/said 2>&1"
    ended = subprocess.run(["sh", "-c", line], cwd=ROOT, timeout=60)
    assert ended.returncode == 1
    assert (tmp_path / "said").stat().st_size == blocks * 512


@pytest.mark.processes
def test_a_run_whose_reader_leaves_goes_on_to_its_end(tmp_path: Path) -> None:
    recording = tmp_path / "run.mcap"
    line = f"{' '.join(POLYRHYTHM)} run hello --for 2 --record {recording} 2>&1 | head -1; echo ended"
    ended = subprocess.run(["sh", "-c", line], cwd=ROOT, capture_output=True, text=True)
    assert ended.stdout.splitlines()[-1] == "ended"
    assert ended.stderr == ""
    eventually(lambda: recording.exists() and recording.stat().st_size > 1000, "it is recorded")
