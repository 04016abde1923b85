"""`SavedState`: what a guard must still know after a restart; `StateFile`: in one small file that is replaced whole."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import msgspec

from nodes.robot.robot_from_launch import CLAIM, latched_name
from runtime.coordination.lease import Lease
from runtime.message import Epochs
from runtime.run_facts import RunFacts
from runtime.supervision.registry import account_folder, device_folder, file_name, make_folder, share, state_folder

FILE_NAME = "guard.json"
BLOCK_BYTES = 32_768
"""More than all that may be latched, each character of it told by six bytes."""


class SavedState(msgspec.Struct, frozen=True):
    """Epochs, leases, what is latched: why, or "" where it is not, and the people whose stops stand; and the run in
    which a guard was armed last.
    """

    epochs: Epochs = {}
    leases: dict[str, Lease] = {}
    stop: str = ""
    estop: str = ""
    armed_in: str = ""
    stoppers: tuple[str, ...] = ()


def place_of(where: str, robot: str, run_info: RunFacts) -> Path | None:
    """The file's path; None in virtual time and in tests. Raises TransportError where a real robot's has no place.

    "run" keeps it for as long as the run, so that every run starts afresh, as suits a simulator. "machine" keeps it
    from run to run, for the robot, as a real one needs: its emergency stop outlives everything but its re-arming. A
    run with a real robot keeps it for that one, whatever was said and whatever stands in the environment.
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
    """Where a real robot has no file here yet, put the newest of other places here. Raises OSError.

    An administrator has made the shared folder since, say. What was latched stays, and is in one place again.
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
    """What the file says; None where there is none. Raises OSError, and ValueError where it is not readable as such."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(data, type=SavedState)
    except msgspec.MsgspecError as problem:
        raise ValueError(f"{path} is damaged: {problem}") from problem


def _encoded(state: SavedState) -> bytes:
    """As whole blocks: the file has room for what is latched later, though the disk be full by then."""
    data = msgspec.json.encode(state)
    return data.ljust(-(-len(data) // BLOCK_BYTES) * BLOCK_BYTES)


class Disk:
    """What a keeper asks of the disk; each call may raise OSError."""

    def write(self, path: Path, data: bytes) -> None:
        """The whole of a file, which is made where it is not there."""
        path.write_bytes(data)
        share(path)

    def overwrite(self, path: Path, data: bytes) -> None:
        """The same in the room that the file has on the disk already; it must be there."""
        with path.open("r+b", buffering=0) as file:
            file.write(data)
            file.truncate()

    def sync(self, path: Path) -> None:
        """Wait until a file, or what stands in a folder, is on the disk itself."""
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)

    def replace(self, draft: Path, path: Path) -> None:
        """Put the draft in the file's place, all of it or nothing."""
        draft.replace(path)


class StateFile:
    """Keeps the newest ledger in a file: at once against the death of any process, soon after against a power cut.

    `note` is called on the guard's thread, which must not wait for a disk; `sync` on one that may.
    """

    def __init__(self, path: Path, known: SavedState | None = None, disk: Disk | None = None) -> None:
        self.path = path
        self._disk = disk or Disk()
        self._newest: SavedState | None = known or SavedState()
        self._synced = known
        self._swap = threading.Lock()  # held while a draft takes the file's place, and never while anything is synced

    def note(self, ledger: SavedState) -> None:
        """Replace the file where something has changed; it may not yet be on the disk itself. Raises OSError.

        A disk that is full has no room for a draft; then the file itself is written over, which its block has room for.
        """
        if ledger == self._newest:
            return
        make_folder(self.path.parent)
        draft = self.path.with_name(self.path.name + ".new")
        data = _encoded(ledger)
        try:
            self._disk.write(draft, data)
        except OSError as problem:
            with self._swap:
                try:
                    self._disk.overwrite(self.path, data)
                except OSError:
                    raise problem from None
                self._newest = ledger
            return
        with self._swap:
            self._disk.replace(draft, self.path)
            self._newest = ledger

    def reserve(self) -> None:
        """Make the file where there is none, while there is room for it. Raises OSError."""
        if not self.path.exists():
            newest, self._newest = self._newest, None
            try:
                self.note(newest or SavedState())
            except OSError:
                self._newest = newest
                raise

    def sync(self) -> None:
        """Bring the newest ledger to the disk itself. Raises OSError."""
        draft = self.path.with_name(self.path.name + ".sync")
        while (ledger := self._newest) is not self._synced and ledger is not None and ledger != SavedState():
            self._disk.write(draft, _encoded(ledger))
            self._disk.sync(draft)
            with self._swap:
                is_newest = ledger is self._newest
                if is_newest:  # what was noted meanwhile is not to be put back
                    self._disk.replace(draft, self.path)
            if is_newest:
                self._disk.sync(self.path.parent)
                self._synced = ledger
