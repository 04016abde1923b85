"""`ResultsFolder`: the results of an evaluation, each kept as soon as it is there."""

from __future__ import annotations

import errno
import gzip
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec

from nodes.evaluation.trials import Card, Result
from runtime.errors import PolyrhythmError, UserError, writing
from runtime.operating_system.whole_file import is_only_writer, write_whole

RESULTS = "results.jsonl"


class ResultsFolder:
    """The results of an evaluation: a card in the first line, then one result a line; it can be gone on with."""

    def __init__(self, path: Path, card: Card) -> None:
        """Raises UserError where another evaluation's results stand there, or where this one runs already."""
        self.path = path
        self.card = card
        self.results: list[Result] = []
        self._where = file = path / RESULTS
        self._lock = threading.Lock()
        with writing(file):
            path.mkdir(parents=True, exist_ok=True)
            self._file = file.open("ab", buffering=0)
        try:
            self._begin(file, card)
        except BaseException:
            self.close()
            raise

    def _begin(self, file: Path, card: Card) -> None:
        try:
            if not is_only_writer(self._file):
                raise UserError(f"{file}: is being written by an evaluation that runs; wait for it, or stop it")
            is_new = file.stat().st_size == 0
            if not is_new:
                self._read(file, card)
        except OSError as problem:
            raise UserError(f"{file}: cannot be read and written ({problem.strerror})") from problem
        if is_new:
            self._write(msgspec.json.encode(card))

    def _read(self, file: Path, card: Card) -> None:
        data = file.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        known, self.results = _decoded(file, whole)
        if known != card:
            raise UserError(
                f"{file}: holds results of another evaluation{_difference(known, card)}; choose another --out"
            )
        if len(whole) < len(data):  # killed while it wrote
            os.truncate(file, len(whole))

    def add(self, result: Result) -> None:
        """Keep one (any thread)."""
        with self._lock:
            self.results.append(result)
            self._write(msgspec.json.encode(result))

    def _write(self, line: bytes) -> None:
        line += b"\n"
        try:
            if self._file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as problem:
            raise PolyrhythmError(
                f"{self._where}: cannot be written ({problem.strerror}); what stands there is kept, and once there is "
                "room the same command with the same --out goes on"
            ) from problem

    def close(self) -> None:
        self._file.close()


def write_raw(file: Path, card: Card, results: Sequence[Result]) -> None:
    """The same as one compressed file, without what is of the machine: equal runs give equal bytes. Raises OSError."""
    kept = sorted(results, key=lambda one: (one.trial.seed, one.trial.task, one.trial.variant))
    lines = [card, *(msgspec.structs.replace(one, took_s=0.0, recording="", words=()) for one in kept)]
    write_whole(file, gzip.compress(b"".join(msgspec.json.encode(line) + b"\n" for line in lines), 9, mtime=0))


def read_results(where: Path) -> tuple[Card, list[Result]]:
    """What stands in a folder, also while more is being added, or in a compressed file. Raises UserError."""
    file = where if where.is_file() else where / RESULTS
    try:
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    except (OSError, EOFError) as problem:
        raise UserError(f"{file}: cannot be read ({problem}); expected results of an evaluation") from problem
    card, results = _decoded(file, data[: data.rfind(b"\n") + 1])
    if card is None:
        raise UserError(f"{file}: is empty; expected results")
    return card, results


def _decoded(file: Path, whole: bytes) -> tuple[Card | None, list[Result]]:
    card: Card | None = None
    results: list[Result] = []
    number = 1
    try:
        for number, line in enumerate(whole.splitlines(), 1):
            if number == 1:
                card = msgspec.json.decode(line, type=Card)
            else:
                results.append(msgspec.json.decode(line, type=Result))
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        advice = "take that line out to run it again, or" if number > 1 else "it is no file of results;"
        raise UserError(f"{file}: line {number} is damaged ({problem}); {advice} choose another --out") from problem
    return card, results


def _difference(known: Card | None, card: Card) -> str:
    names = [name for name in card.__struct_fields__ if getattr(known, name, None) != getattr(card, name)]
    return f" (other {', '.join(names)})" if names else ""
