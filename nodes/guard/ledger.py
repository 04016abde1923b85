"""`Ledger`: what a guard must still know after a restart, in one small file that is replaced whole."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from runtime.lease import Lease
from runtime.message import Epochs

FILE_NAME = "guard.json"


class Ledger(msgspec.Struct, frozen=True):
    """Epochs, leases, and what is latched: why, or "" where it is not."""

    epochs: Epochs = (0, 0, 0)
    leases: dict[str, Lease] = {}
    stop: str = ""
    estop: str = ""


def place_of(where: str, run_info: Mapping[str, Any]) -> Path | None:
    """The file's path; None in virtual time and in tests.

    "run" keeps it for as long as the run, so that every run starts afresh, as suits a simulator. "machine" keeps it
    from run to run, per launch file, as a real robot needs: its emergency stop outlives everything but its re-arming.
    """
    registry, launch_file = run_info.get("registry"), run_info.get("launch_file")
    if not registry or not launch_file:
        return None
    if where == "run":
        return Path(registry) / FILE_NAME
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "polyrhythm" / Path(launch_file).stem / FILE_NAME


def read(path: Path) -> Ledger | None:
    """What the file says; None where there is none. Raises OSError, and ValueError where it is not readable as such."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(data, type=Ledger)
    except msgspec.MsgspecError as problem:
        raise ValueError(f"{path} is damaged: {problem}") from problem


def write(path: Path, ledger: Ledger) -> None:
    """Replace the file. It outlives the death of any process; after a power cut a guard starts disarmed anyway."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(path.name + ".new")
    draft.write_bytes(msgspec.json.encode(ledger))
    draft.replace(path)
