"""The registry: a folder for each run of this user on this machine, by which tools find what runs and how to reach it.

A run's folder holds its sockets, `run.json` (what runs, made once), `processes.json` (how its processes fare) and
`lock`. The supervisor holds the lock for as long as it lives, however it dies. A folder without a holder is removed by
whoever comes by next.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pwd
import re
import shutil
import socket
import stat
import struct
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import msgspec

from runtime.clock import NS_PER_S, wall_time_ns
from runtime.errors import PolyrhythmError, TransportError, UserError
from runtime.launch.process_plan import NodeInfo, ProcessPlan, TopicInfo
from runtime.launch.tables.seats_table import SeatTable
from runtime.operating_system.machine import full_temporary_folder, home, login, temporary_folder
from runtime.operating_system.whole_file import is_only_writer, write_whole
from runtime.serialization.msgspec_cache import from_json
from runtime.transport.shared_memory import sweep
from runtime.transport.zeromq import endpoints

LONGEST_SOCKET_PATH = 107 if sys.platform == "linux" else 103
"""Longest socket path that the kernel accepts, bytes."""

SHARED = Path("/var/lib/polyrhythm")
"""Where the administrator has made it, robots' latches are kept here for every account that may write."""

_LONGEST_NAME = 24
_UNFINISHED_S = 60.0  # a folder that is still without a name after that was left behind
_PREFIX = ".new-"


class ProcessState(msgspec.Struct, frozen=True):
    """The state of one process of a run."""

    pid: int
    state: str  # as the supervisor puts it: "started", "running", "failed: WHY"...
    restarts: int = 0


class RunInfo(msgspec.Struct, frozen=True):
    """What `run.json` tells tools; its other keys are for the run's own processes."""

    name: str
    supervisor_pid: int
    started_ns: int  # wall clock
    launch_file: str
    nodes: dict[str, NodeInfo]
    topics: dict[str, TopicInfo]
    processes: dict[str, ProcessPlan]
    seats: dict[str, SeatTable] = {}
    parameters: dict[str, dict[str, Any]] = {}
    shared: dict[str, Any] = {}  # what its nodes know of the values that `[run]` shares out
    login: str = ""  # from which it was started, as `machine.login` tells


class FoundRun(msgspec.Struct, frozen=True):
    """A running run, and its folder."""

    folder: Path
    info: RunInfo

    @property
    def title(self) -> str:
        """Its name for people: "hello (pid 4711)"."""
        return f"{self.info.name} (pid {self.info.supervisor_pid})"

    def states(self) -> dict[str, ProcessState]:
        """The states of its processes; empty before the first has started and after the run has ended."""
        try:
            return from_json((self.folder / "processes.json").read_bytes(), dict[str, ProcessState])
        except (OSError, msgspec.MsgspecError):
            return {}

    @property
    def is_alive(self) -> bool:
        """Whether its supervisor still holds the lock."""
        return _is_held(self.folder)


class Registration:
    """A run's own entry, from its start to its end. Raises TransportError where no folder can be made."""

    def __init__(self, name: str, document: Mapping[str, Any], processes: Iterable[str]) -> None:
        root = _usable_root()
        sweep()
        self._states: dict[str, ProcessState] = {}
        draft = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
        self.lock: IO[bytes] = (draft / "lock").open("wb")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            header = {
                "name": name, "supervisor_pid": os.getpid(), "started_ns": wall_time_ns(), "login": login()
            }  # fmt: skip
            write_whole(draft / "run.json", json.dumps({**document, **header}).encode())
            self.folder = _give_name(draft, root, name)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            self.lock.close()
            raise
        try:
            _check_lengths(self.folder, processes)
        except TransportError:
            self.close()
            raise

    def note(self, process: str, pid: int, state: str, restarts: int) -> None:
        """Record the state of a process; a full disk does not stop a run."""
        self._states[process] = ProcessState(pid, state, restarts)
        try:
            write_whole(self.folder / "processes.json", msgspec.json.encode(self._states))
        except OSError:
            pass

    def close(self) -> None:
        """Remove the entry, and the shared memory of processes that were killed."""
        shutil.rmtree(self.folder, ignore_errors=True)
        sweep()
        self.lock.close()


class Claims:
    """Names and devices that a run holds exclusively until its last process has ended.

    A name is a lock in `state_folder()`. A device, such as a real robot, is a lock in `device_folder()`. On Linux both
    are abstract socket addresses as well, which stay when the file is deleted; a device has one for all accounts and
    homes.
    """

    def __init__(self, names: Iterable[str], run: str, devices: Iterable[str] = ()) -> None:
        """Raises UserError where another run holds one of them, TransportError where none can be held."""
        self._held: list[IO[bytes] | socket.socket] = []
        own = sorted(set(devices))
        try:
            for name in own:
                self._hold_address(name, name)
            for name in own:
                self._hold_file(device_folder(), name, run)
            for name in sorted(set(names).difference(own)):
                self._hold_file(state_folder(), name, run)
                place = f"{state_folder().resolve()}/{name}"
                self._hold_address(name, sha256(place.encode()).hexdigest())
        except PolyrhythmError:
            self.close()
            raise

    @property
    def numbers(self) -> tuple[int, ...]:
        """File descriptors for the run's processes, which hold the claims too, in case the supervisor is killed."""
        return tuple(one.fileno() for one in self._held)

    def _hold_address(self, name: str, known_as: str) -> None:
        if sys.platform != "linux":
            return
        address = f"\0polyrhythm/{known_as}".encode()[:LONGEST_SOCKET_PATH]
        held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._held.append(held)
        try:
            held.bind(address)
        except OSError as problem:
            if problem.errno != errno.EADDRINUSE:
                raise TransportError(f"{name}: cannot be kept from other runs ({problem.strerror})") from None
            raise UserError(_in_use(name, _owner(address))) from None
        held.listen(1)

    def _hold_file(self, state: Path, name: str, run: str) -> None:
        folder = state / "claims"
        path = folder / file_name(name)
        try:
            make_folder(folder)
            file = path.open("a+b", buffering=0)
            self._held.append(file)
            is_ours = is_only_writer(file)
        except OSError as problem:
            raise TransportError(
                f"{folder}: cannot be written ({problem.strerror}), so nothing keeps others off"
            ) from None
        if not is_ours:
            file.seek(0)
            raise UserError(_in_use(name, file.read(200).decode(errors="replace") or "another run")) from None
        try:
            share(path)
            file.truncate(0)
            file.write(f"{run} (pid {os.getpid()})".encode())
        except OSError:
            pass  # a full disk, or another account's file: the lock holds all the same

    def close(self) -> None:
        """Release all; while processes of the run live, they still hold them."""
        for one in self._held:
            one.close()
        self._held.clear()


def _in_use(name: str, holder: str) -> str:
    return f"{name} is in use: {holder} has it, and two runs would fight over it; end that one first"


def _owner(address: bytes) -> str:
    """Whose process listens there, as the kernel knows it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as there:
        there.setblocking(False)
        try:
            there.connect(address)
            pid, uid, _ = struct.unpack("3i", there.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        except OSError:
            return "another run"
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()[-100:]
    except OSError:
        command = "a run that has ended but for some of its processes"
    return f"pid {pid} of {account(uid)} ({command})"


def account(uid: int) -> str:
    """The name of a user of this machine."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def state_folder() -> Path:
    """Where this user's programs keep what outlives a run and a boot."""
    return Path(os.environ.get("XDG_STATE_HOME") or home() / ".local" / "state") / "polyrhythm"


def device_folder() -> Path:
    """Where the latch of a real robot is kept, whatever the environment says: `SHARED`, or this account's home.

    Raises TransportError for an account without a home where `SHARED` does not exist.
    """
    folder = SHARED if SHARED.is_dir() else account_folder()
    if folder is None:
        raise TransportError(
            f"user {os.getuid()} has no home on this machine, so what is latched on a robot has no place; make {SHARED}"
        )
    return folder


def account_folder() -> Path | None:
    """`state_folder()` without regard to the environment; None for an account without a home."""
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir) / ".local" / "state" / "polyrhythm"
    except KeyError:
        return None


def make_folder(folder: Path) -> None:
    """Make a folder of `state_folder()` for this account alone, or of `SHARED` for those who may write there."""
    for one in reversed([folder, *folder.parents]):
        if not one.is_dir():
            one.mkdir(parents=True, exist_ok=True, mode=0o700)
            share(one)


def share(path: Path) -> None:
    """Let those who may write into `SHARED` write this file too, where it lies there. Raises OSError."""
    if SHARED in path.parents and path.stat().st_uid == os.getuid():
        allowed = SHARED.stat().st_mode & 0o777
        path.chmod(stat.S_IMODE(SHARED.stat().st_mode) if path.is_dir() else allowed & 0o666)


def file_name(name: str) -> str:
    """The name in a form that a file can have."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)


def find_runs() -> list[FoundRun]:
    """The running runs of this user, oldest first; removes what dead ones left."""
    return sorted(
        (FoundRun(folder, info) for folder, info in _live() if info is not None), key=lambda run: run.info.started_ns
    )


def unreadable_runs() -> list[Path]:
    """The folders of running runs of this user that cannot be read, such as those of another release."""
    return [folder for folder, info in _live() if info is None]


def _live() -> Iterator[tuple[Path, RunInfo | None]]:
    for root in _searched():
        if not _is_ours(root):
            continue
        for folder in sorted(root.iterdir()):
            if folder.name.startswith(_PREFIX):
                _remove_unfinished(folder)
            elif not _is_held(folder):
                shutil.rmtree(folder, ignore_errors=True)
            else:
                try:
                    yield folder, from_json((folder / "run.json").read_bytes(), RunInfo)
                except (OSError, msgspec.MsgspecError):
                    if _is_held(folder):  # else it has ended this moment
                        yield folder, None


def check_root() -> Path:
    """Where a run started now would have its folder. Raises TransportError where there is no such place."""
    root = _usable_root()
    _check_lengths(root / f"{'n' * _LONGEST_NAME}-{'0' * 7}", ["supervisor-view"])
    return root


def left_behind() -> list[Path]:
    """The folders of runs whose supervisor is gone; removes nothing."""
    folders = [folder for root in _searched() if _is_ours(root) for folder in sorted(root.iterdir())]
    return [folder for folder in folders if not folder.name.startswith(_PREFIX) and not _is_held(folder)]


def _searched() -> list[Path]:
    """Where runs may be: a tool may have been started with another environment than the run, and on a full disk."""
    place = full_temporary_folder()
    return list(dict.fromkeys((*_roots(), *([_below(place)] if place is not None else ()))))


def _below(place: Path) -> Path:
    return place.absolute() / f"polyrhythm-{os.getuid()}"


def _roots() -> list[Path]:
    """Where a run started now may have its folder."""
    roots = []
    session = os.environ.get("XDG_RUNTIME_DIR")
    if session and Path(session).is_dir():
        roots.append(Path(session) / "polyrhythm")
    place = temporary_folder()
    return roots if place is None else [*roots, _below(place)]


def _usable_root() -> Path:
    for root in _roots():
        try:
            root.mkdir(mode=0o700, exist_ok=True)
        except OSError:
            continue
        if _is_ours(root) and os.access(root, os.W_OK):
            return root
    tried = ", ".join(str(root) for root in _roots())
    raise TransportError(
        f"no folder for this run's sockets: {tried or 'TMPDIR/polyrhythm-UID'} must be a folder that belongs to this "
        "user alone (mode 0700); remove what is there, or set TMPDIR to another folder"
    )


def _is_ours(root: Path) -> bool:
    """Whether it is a folder of this user into which nobody else can put anything."""
    try:
        status = root.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077


def _give_name(draft: Path, root: Path, name: str) -> Path:
    short = re.sub(r"[^a-z0-9_]", "_", name.lower())[:_LONGEST_NAME] or "run"
    number = 1
    while True:
        folder = root / (f"{short}-{os.getpid()}" + (f"-{number}" if number > 1 else ""))
        try:
            draft.rename(folder)
            return folder
        except OSError:
            if not folder.exists():
                raise
            number += 1


def _check_lengths(folder: Path, processes: Iterable[str]) -> None:
    paths = [path for process in processes for path in endpoints(folder, process)]
    longest = max(paths, key=lambda path: len(os.fsencode(path)), default=folder)
    length = len(os.fsencode(longest))
    if length > LONGEST_SOCKET_PATH:
        raise TransportError(
            f"the socket {longest} would have a path of {length} bytes and the system takes {LONGEST_SOCKET_PATH}; "
            "set XDG_RUNTIME_DIR or TMPDIR to a folder with a shorter name"
        )


def _is_held(folder: Path) -> bool:
    try:
        with (folder / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # held; or it cannot be told, and then nothing may be removed
    return False


def _remove_unfinished(folder: Path) -> None:
    try:
        age_s = (wall_time_ns() - folder.stat().st_mtime_ns) / NS_PER_S
    except OSError:
        return
    if age_s > _UNFINISHED_S:
        shutil.rmtree(folder, ignore_errors=True)
