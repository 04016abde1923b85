"""`SavedState`: what a guard must know after a restart. `StateFile` keeps it in one small file, replaced as a whole."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import msgspec

from nodes.guard.stop_latch import CROWD
from nodes.robot.robot_from_launch import CLAIM, latched_name
from runtime.coordination.lease import Lease
from runtime.message import Epochs
from runtime.run_facts import RunFacts
from runtime.supervision.registry import account_folder, device_folder, file_name, make_folder, share, state_folder

FILE_NAME = "guard.json"
BLOCK_BYTES = 32_768
"""Size to which the file is padded: more than all that can be latched, with six bytes for each character."""


class SavedState(msgspec.Struct, frozen=True):
    """Epochs, leases, latched stops with whose they are, and the run in which a guard was armed last.

    `stop` and `estop` are the reasons, "" where nothing is latched.
    """

    epochs: Epochs = {}
    leases: dict[str, Lease] = {}
    stop: str = ""
    estop: str = ""
    armed_in: str = ""
    locks: dict[str, str] = {}  # the names of those whose stops stand, by what tells people apart


def place_of(where: str, robot: str, run_info: RunFacts) -> Path | None:
    """The path of the file; None in virtual time and in tests.

    "run" keeps it as long as the run, as suits a simulator: every run starts afresh. "machine" keeps it from run to run
    for this robot, as a real one needs: only re-arming ends its emergency stop. A run with a real robot always keeps it
    for that robot, whatever `where` and the environment say. Raises TransportError where a real robot's file has no
    place.
    """
    registry = run_info.registry
    if not registry:
        return None
    if run_info.devices:
        return _below(device_folder(), run_info.devices[0].removeprefix(CLAIM))
    return Path(registry) / FILE_NAME if where == "run" else _below(state_folder(), latched_name(robot))


def _below(state: Path, robot: str) -> Path:
    return state / "robots" / file_name(robot) / FILE_NAME


def carry_over(path: Path) -> None:
    """Where a real robot has no file here yet, move the newest one from the other places here. Raises OSError.

    That happens once an administrator has made the shared folder: what was latched stays, and is in one place again.
    """
    here = path.parents[2]
    if here != device_folder() or path.exists():
        return
    places = {account_folder(), state_folder()} - {here, None}
    others = [found for place in places if place and (found := place / path.relative_to(here)).is_file()]
    if others:
        found = max(others, key=lambda other: other.stat().st_mtime_ns)
        make_folder(path.parent)
        path.write_bytes(found.read_bytes())
        found.unlink()


def read(path: Path) -> SavedState | None:
    """The saved state; None where there is no file. Raises OSError, and ValueError where the file is damaged."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        state = msgspec.json.decode(data, type=SavedState)
        if b'"locks"' in data or not (state.stop or state.estop):
            return state
        # Of an older version: nobody knows any more whose stop it is, so that only an operator lifts it.
        return msgspec.structs.replace(state, locks={CROWD: CROWD})
    except msgspec.MsgspecError as problem:
        raise ValueError(f"{path} is damaged: {problem}") from problem


def _encoded(state: SavedState) -> bytes:
    """The state as whole blocks, so that the file has room for a later latch even on a full disk."""
    data = msgspec.json.encode(state)
    return data.ljust(-(-len(data) // BLOCK_BYTES) * BLOCK_BYTES)


class Disk:
    """The operations that `StateFile` needs of a disk; each may raise OSError."""

    def write(self, path: Path, data: bytes) -> None:
        """Write a whole file, and create it where it is missing."""
        path.write_bytes(data)
        share(path)

    def overwrite(self, path: Path, data: bytes) -> None:
        """Write over an existing file within the room that it has on the disk already."""
        with path.open("r+b", buffering=0) as file:
            file.write(data)
            file.truncate()

    def sync(self, path: Path) -> None:
        """Wait until a file, or a folder's list of files, is on the disk itself."""
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)

    def replace(self, draft: Path, path: Path) -> None:
        """Put the draft in the place of the file, atomically."""
        draft.replace(path)


class StateFile:
    """Keeps the newest state in a file: at once against the death of any process, soon after against a power cut.

    `note` runs on the guard's thread, which must not wait for a disk; `sync` runs on a thread that may.
    """

    def __init__(self, path: Path, known: SavedState | None = None, disk: Disk | None = None) -> None:
        self.path = path
        self._disk = disk or Disk()
        self._newest: SavedState | None = known or SavedState()
        self._synced = known
        self._swap = threading.Lock()  # held while a draft takes the file's place, and never while anything is synced

    def note(self, state: SavedState) -> None:
        """Replace the file where the state has changed; it may not be on the disk itself yet. Raises OSError.

        A full disk has no room for a draft. Then the file itself is written over, within its padded size.
        """
        if state == self._newest:
            return
        make_folder(self.path.parent)
        draft = self.path.with_name(self.path.name + ".new")
        data = _encoded(state)
        try:
            self._disk.write(draft, data)
        except OSError as problem:
            with self._swap:
                try:
                    self._disk.overwrite(self.path, data)
                except OSError:
                    raise problem from None
                self._newest = state
            return
        with self._swap:
            self._disk.replace(draft, self.path)
            self._newest = state

    def reserve(self) -> None:
        """Create the file where there is none, while the disk has room for it. Raises OSError."""
        if not self.path.exists():
            newest, self._newest = self._newest, None
            try:
                self.note(newest or SavedState())
            except OSError:
                self._newest = newest
                raise

    def sync(self) -> None:
        """Bring the newest state to the disk itself. Raises OSError."""
        draft = self.path.with_name(self.path.name + ".sync")
        while (newest := self._newest) is not self._synced and newest is not None and newest != SavedState():
            self._disk.write(draft, _encoded(newest))
            self._disk.sync(draft)
            with self._swap:
                is_newest = newest is self._newest
                if is_newest:  # a newer state must not be replaced by this one
                    self._disk.replace(draft, self.path)
            if is_newest:
                self._disk.sync(self.path.parent)
                self._synced = newest
