"""`Outcome`: what one trial of one fault gave; `Outcomes`: all of them, in a file that grows line by line.

A line belongs to the code that it was measured on, by a hash of the sources: figures of other code are never mixed in.
What was measured is in the file at once, so that a run which is ended at any moment is continued where it was.
"""

from __future__ import annotations

import hashlib
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = ("runtime", "nodes", "bridges", "bench/faults", "tests/support/servers/fake_openai_server.py")
SUFFIXES = frozenset({".py", ".toml"})


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """One trial: its figures, or why there are none."""

    code: str
    fault: str
    figures: dict[str, float] = {}
    late_ms: float = 0.0  # of a bare timer loop, at worst
    problem: str = ""
    skipped: str = ""
    took_s: float = 0.0
    rig_s: float = 0.0  # of that, for a graph that is whole
    moving_s: float = 0.0  # of that, for a robot at full speed
    load: float = 0.0  # average of the machine, at the end


def fingerprint(root: Path = ROOT, sources: Iterable[str] = SOURCES) -> str:
    """What tells this code from any other."""
    found = hashlib.sha256()
    for source in sources:
        start = root / source
        for path in [start] if start.is_file() else sorted(start.rglob("*")):
            if path.suffix in SUFFIXES:
                data = path.read_bytes()
                found.update(f"{path.relative_to(root)}:{len(data)}:".encode() + data)
    return found.hexdigest()[:16]


class Outcomes:
    """Those of one code, from a file and into it; several threads may add to it."""

    def __init__(self, path: Path | None, code: str, *, goes_on: bool = False) -> None:
        """`goes_on`: count what the file holds of this code; otherwise it is put aside, as `NAME.before`."""
        self.code = code
        self._of: dict[str, list[Outcome]] = defaultdict(list)
        self._lock = threading.Lock()
        self._path = path
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if goes_on:
            for outcome in read(path):
                if outcome.code == code:
                    self._of[outcome.fault].append(outcome)
            if path.exists() and not path.read_bytes().endswith(b"\n"):  # cut off: what comes is a line of its own
                with path.open("ab") as file:
                    file.write(b"\n")
        elif path.exists():
            path.replace(path.with_name(path.name + ".before"))

    def add(self, outcome: Outcome) -> None:
        """Keep it, on the disk first."""
        with self._lock:
            if self._path is not None:
                with self._path.open("ab") as file:
                    file.write(msgspec.json.encode(outcome) + b"\n")
            self._of[outcome.fault].append(outcome)

    def of(self, fault: str) -> Sequence[Outcome]:
        """All trials of that fault, in order."""
        with self._lock:
            return tuple(self._of[fault])

    def missing(self, fault: str, number: int) -> int:
        """How many of so many trials are still to be made; none where one has failed, or cannot be made here."""
        done = self.of(fault)
        return 0 if any(one.problem or one.skipped for one in done) else max(0, number - len(done))

    def all(self) -> Sequence[Outcome]:
        """Those of all faults."""
        with self._lock:
            return tuple(one for outcomes in self._of.values() for one in outcomes)


def read(path: Path) -> list[Outcome]:
    """The trials in a file; a line that was cut off is none."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        try:
            found.append(msgspec.json.decode(line, type=Outcome))
        except msgspec.MsgspecError:
            continue
    return found
