"""`RunFile`: the SQLite file (WAL) of a run: made, opened, locked, with its version and what it was asked for.

One process writes (a lock beside the file says who), any number read.
"""

from __future__ import annotations

import os
import sqlite3
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Self

import msgspec

from runtime.errors import PolyrhythmError, UserError, writing
from runtime.operating_system.whole_file import is_only_writer

VERSION = 2

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS episodes (
  id TEXT PRIMARY KEY, number INTEGER NOT NULL, task TEXT NOT NULL, scenario TEXT NOT NULL, seed INTEGER NOT NULL,
  mode TEXT NOT NULL, transparency TEXT NOT NULL, turn_order TEXT NOT NULL, agents TEXT NOT NULL, names TEXT NOT NULL,
  state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '', seconds REAL NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0, recording TEXT NOT NULL DEFAULT '', codename TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS by_number ON episodes (number);
CREATE TABLE IF NOT EXISTS plans (episode TEXT PRIMARY KEY, plan BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS turns (
  episode TEXT NOT NULL, idx INTEGER NOT NULL, number INTEGER NOT NULL, speaker TEXT NOT NULL, kind TEXT NOT NULL,
  argument TEXT NOT NULL, recipients TEXT NOT NULL, at_s REAL NOT NULL, lasts_s REAL NOT NULL, note TEXT NOT NULL,
  fault TEXT NOT NULL, timing TEXT NOT NULL, because INTEGER NOT NULL, PRIMARY KEY (episode, idx)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS prompts (
  episode TEXT NOT NULL, seat INTEGER NOT NULL, ask INTEGER NOT NULL, turn INTEGER NOT NULL, held TEXT NOT NULL,
  sha TEXT NOT NULL, PRIMARY KEY (episode, seat, ask)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS calls (
  episode TEXT NOT NULL, seat INTEGER NOT NULL, number INTEGER NOT NULL, what TEXT NOT NULL, model TEXT NOT NULL,
  sha TEXT NOT NULL, prompt BLOB NOT NULL, answer TEXT NOT NULL, prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL, ending TEXT NOT NULL, PRIMARY KEY (episode, seat, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS latencies (
  episode TEXT NOT NULL, seat INTEGER NOT NULL, number INTEGER NOT NULL, took_s REAL NOT NULL,
  PRIMARY KEY (episode, seat, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS left_out (
  model TEXT NOT NULL, what TEXT NOT NULL, PRIMARY KEY (model, what)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS steps (
  episode TEXT NOT NULL, idx INTEGER NOT NULL, step TEXT NOT NULL, PRIMARY KEY (episode, idx)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS evaluations (
  episode TEXT NOT NULL, judge TEXT NOT NULL, name TEXT NOT NULL, dimension TEXT NOT NULL, score REAL,
  reasoning TEXT NOT NULL, PRIMARY KEY (episode, judge, name, dimension)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS judgements (
  episode TEXT NOT NULL, judge TEXT NOT NULL, state TEXT NOT NULL, why TEXT NOT NULL,
  PRIMARY KEY (episode, judge)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS turn_scores (
  episode TEXT NOT NULL, turn INTEGER NOT NULL, judge TEXT NOT NULL, dimension TEXT NOT NULL, score REAL NOT NULL,
  PRIMARY KEY (episode, turn, judge, dimension)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS checks (episode TEXT PRIMARY KEY, checks TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ratings (
  episode TEXT NOT NULL, rater TEXT NOT NULL, name TEXT NOT NULL, dimension TEXT NOT NULL, score REAL NOT NULL,
  PRIMARY KEY (episode, rater, name, dimension)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rationales (
  episode TEXT NOT NULL, rater TEXT NOT NULL, name TEXT NOT NULL, dimension TEXT NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (episode, rater, name, dimension)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS preferences (
  first TEXT NOT NULL, second TEXT NOT NULL, rater TEXT NOT NULL, choice TEXT NOT NULL, why TEXT NOT NULL,
  PRIMARY KEY (first, second, rater)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS qualifications (
  rater TEXT PRIMARY KEY, passed INTEGER NOT NULL, attempts INTEGER NOT NULL) WITHOUT ROWID;
"""


class StoreError(PolyrhythmError):
    """A run's file cannot be used; the text says which and why."""


class NoRunError(StoreError, UserError):
    """The file that was named is no run's."""


class RunFile:
    """An open file of a run. Open with `create`, `open` (to write) or `read`."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: IO[str] | None) -> None:
        self.path = path
        self.db = connection
        self._lock = lock

    @classmethod
    def create(cls, path: Path, spec: dict[str, Any]) -> Self:
        """A new run. Raises UserError where the file exists already."""
        check_is_new(path)
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        store = cls._opened(path)
        with store.db:
            store.db.executescript(_TABLES)
            store._set("version", VERSION)
            store._set("spec", spec)
        return store

    @classmethod
    def open(cls, path: Path) -> Self:
        """An existing run, to go on writing. Raises StoreError where another process writes it."""
        _check_is_file(path)
        store = cls._opened(path)
        store._check_version()
        with store.db:
            store.db.executescript(_TABLES)  # those that are newer than the file
        return store

    @classmethod
    def read(cls, path: Path) -> Self:
        """An existing run, to read only, also while another process writes it."""
        _check_is_file(path)
        try:
            store = cls(path, _connect(f"file:{path.resolve()}?mode=ro"), None)
            try:
                store.db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except sqlite3.OperationalError:  # a write-ahead log wants a folder that may be written
                wal = path.with_name(path.name + "-wal")
                if wal.is_file() and wal.stat().st_size:
                    raise
                store.close()
                store = cls(path, _connect(f"file:{path.resolve()}?mode=ro&immutable=1"), None)
            store._check_version()
        except sqlite3.OperationalError as problem:
            raise StoreError(
                f"{path}: cannot be read: {problem}; copy it, with the -wal file beside it, "
                "to a folder that may be written"
            ) from problem
        except sqlite3.DatabaseError as problem:
            raise NoRunError(f"{path}: is no run: {problem}") from problem
        return store

    @classmethod
    def _opened(cls, path: Path) -> Self:
        if kind := network_file_system(path):
            raise UserError(
                f"{path}: is on a network file system ({kind}), where SQLite loses data; name a file on a local disk, "
                "and copy it when the run is over (many machines: --shard, then merge)"
            )
        lock = _take_lock(path)
        try:
            connection = _connect(f"file:{path.resolve()}")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
        except sqlite3.Error as problem:
            lock.close()
            raise NoRunError(f"{path}: is no run: {problem}") from problem
        return cls(path, connection, lock)

    def close(self) -> None:
        """Close the file and let others write it."""
        self.db.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def spec(self) -> dict[str, Any]:
        """What the run was asked for."""
        found: dict[str, Any] = self._get("spec")
        return found

    @property
    def card(self) -> dict[str, Any]:
        """The simulation card of the run; {} before there is one."""
        found: dict[str, Any] = self._get("card") or {}
        return found | ({"left out": list(left_out)} if found and (left_out := self.left_out()) else {})

    def left_out(self) -> tuple[str, ...]:
        """What models were asked without although it was wanted, in sentences: their servers refuse it."""
        try:
            rows = self.db.execute("SELECT model, what FROM left_out ORDER BY model, what").fetchall()
        except sqlite3.OperationalError:  # an older file
            rows = []
        long = self.db.execute("SELECT model, count(*) FROM calls WHERE ending = 'full' GROUP BY model").fetchall()
        return (
            *(f"{model} was asked without {what}, which its server refuses" for model, what in rows),
            *(
                f"{model}: {count} questions were longer than it reads; the oldest turns were left out"
                for model, count in long
            ),
        )

    def set_card(self, card: dict[str, Any]) -> None:
        """Keep the simulation card."""
        with self.db:
            self._set("card", card)

    def _check_version(self) -> None:
        try:
            version = self._get("version")
        except sqlite3.Error as problem:
            raise NoRunError(f"{self.path}: is no run: {problem}") from problem
        if version != VERSION:
            raise StoreError(
                f"{self.path}: was written as version {version}; this program reads {VERSION}; "
                "read it with the version of polyrhythm that wrote it"
            )

    def _set(self, key: str, value: object) -> None:
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?,?)", (key, to_json(value)))

    def _get(self, key: str) -> Any:
        row = self.db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else msgspec.json.decode(row[0])


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, timeout=10.0, cached_statements=64)


NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "beegfs", "gpfs", "ceph", "9p", "afs", "fuse.sshfs")
"""File systems that more than one machine writes, by their names in /proc/mounts."""


def network_file_system(path: Path, mounts: Path = Path("/proc/mounts")) -> str:
    """The kind of network file system that a file is on or would be; "" on a local one, or where nobody can tell."""
    try:
        rows = [line.split() for line in mounts.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return ""
    whole = path.resolve()
    holding = [row for row in rows if len(row) > 2 and whole.is_relative_to(row[1].replace("\\040", " "))]
    nearest = max(holding, key=lambda row: len(row[1]), default=None)  # of two at one place the later one counts
    kind = next((row[2] for row in reversed(holding) if nearest and row[1] == nearest[1]), "")
    return kind if kind in NETWORK or kind.startswith("fuse.gluster") else ""


def check_is_new(path: Path) -> None:
    """Raises UserError where the file exists already: no run is written over another."""
    if path.exists():
        raise UserError(f"{path}: exists already; resume it, or name another file with --out")


def _check_is_file(path: Path) -> None:
    if not path.is_file():
        raise UserError(f"{path}: there is no such run; polyrhythm episodes run makes one")


def _take_lock(path: Path) -> IO[str]:
    """Held as long as the file is open."""
    with writing(path, "expected a folder that may be written"):
        lock = open(path.with_name(path.name + ".lock"), "a+")  # noqa: SIM115  # kept open on purpose
        is_ours = is_only_writer(lock)
    if not is_ours:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise StoreError(f"{path}: process {holder} is writing this run; wait for it, or stop it first")
    lock.truncate(0)
    try:
        lock.write(os.readlink("/proc/self"))  # our process id, which a moderator in virtual time may not ask for
    except OSError:
        lock.write("(unknown)")
    lock.flush()
    return lock


def database_error(problem: BaseException) -> str:
    """What the database said, where it is the cause of this error or of one in this group; "" where it is not."""
    if isinstance(problem, sqlite3.Error):
        return "the disk is full" if "is full" in str(problem) else str(problem)
    inside = problem.exceptions if isinstance(problem, BaseExceptionGroup) else ()
    return next((said for one in inside if (said := database_error(one))), "")


def to_json(value: object) -> str:
    """A value as JSON; text, numbers and lists of them are so in TOML as well."""
    return msgspec.json.encode(value).decode()


@lru_cache(maxsize=4096)  # of a hundred thousand rows most lists are the same
def json_list(text: str) -> tuple[str, ...]:
    """A list of texts as the log keeps it."""
    return msgspec.json.decode(text, type=tuple[str, ...])
