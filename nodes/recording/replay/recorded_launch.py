"""The launch of a recorded run with what was added and overridden, and what the world outside answered in it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodes.mcap.file import BagReader
from nodes.recording.bag.recording import Recording
from runtime.errors import RecordingError
from runtime.journal.answers import SLEPT, WOKEN
from runtime.journal.calls import Calls
from runtime.launch.file import Launch, add_node, in_order, override, resolve
from runtime.launch.left_out import leave_out
from runtime.launch.provenance import blas_kernel, git_state, machine, versions

LAUNCH_FILE_NAME = "launch.toml"


@dataclass(frozen=True)
class LaunchSource:
    """What the launch was made of; a recording of the replay holds it again, and can so be replayed itself."""

    text: str
    added: tuple[str, ...]
    overrides: tuple[str, ...]
    without: tuple[str, ...] = ()


def recorded_launch(recording: Recording, overrides: list[str]) -> Launch:
    """The launch of the recorded run, with what it was overridden with then and now. Raises PolyrhythmError."""
    tables = recorded_tables(recording, launch_source(recording, overrides))
    for table in _node_tables(tables):
        table.pop("latency", None)  # calls are run again at their recorded times
    return resolve(tables, path=recording.path)


def launch_source(recording: Recording, overrides: list[str]) -> LaunchSource:
    """The recorded run's launch file, with what was added and overridden then and now. Raises RecordingError."""
    text = next(
        (
            reader.attachments[LAUNCH_FILE_NAME]
            for reader in recording.readers
            if LAUNCH_FILE_NAME in reader.attachments
        ),
        None,
    )
    if text is None:
        raise RecordingError(f"{recording.path}: holds no launch file, so its nodes are not known")
    try:
        changes = (*_noted(recording, "overrides"), *in_order(overrides))
        return LaunchSource(text.decode(), _noted(recording, "added"), changes, _noted(recording, "without"))
    except UnicodeDecodeError as problem:
        raise RecordingError(f"{recording.path}: its launch file cannot be read ({problem})") from problem


def _noted(recording: Recording, key: str) -> tuple[str, ...]:
    noted = recording.noted(key)
    return tuple(text for text in noted if isinstance(text, str)) if isinstance(noted, list) else ()


def recorded_tables(recording: Recording, source: LaunchSource) -> dict[str, Any]:
    """The recorded launch as tables; latencies taken from a file are left out, for the file may be gone."""
    try:
        tables = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as problem:
        raise RecordingError(f"{recording.path}: its launch file cannot be read ({problem})") from problem
    for node in source.added:
        add_node(tables, node)
    for change in source.overrides:
        override(tables, change)
    leave_out(tables, source.without, recording.path)
    for table in _node_tables(tables):
        if "trace" in str(table.get("latency", "")):
            del table["latency"]
    return tables


def _node_tables(tables: dict[str, Any]) -> list[dict[str, Any]]:
    """Those that are tables; `resolve` says what is wrong with the others."""
    nodes = tables.get("nodes")
    return [table for table in nodes.values() if isinstance(table, dict)] if isinstance(nodes, dict) else []


def what_changed(recording: Recording) -> list[str]:
    """In what this process is not made as the recorded run was, in sentences: it may be why results differ."""
    found = []
    there = recording.about.get("machine", "")
    if there and there != machine():
        found.append(f"the run was made on {there}; this is {machine()}")
    kernel = recording.end.get("blas", "")
    if kernel and blas_kernel() not in (kernel, ""):
        found.append(
            f"the run multiplied matrices as for {kernel}; this process does so as for {blas_kernel()}: set "
            f"OPENBLAS_CORETYPE={kernel}"
        )
    then = recording.about.get("git", "")
    now = git_state(Path(recording.about.get("launch_file", "")).parent) if then else ""
    if now and (now != then or then.endswith("-dirty")):
        found.append(f"the run was made at {then} in git; this is {now}")
    noted = recording.noted("versions")
    before = noted if isinstance(noted, dict) else {}
    other = [
        f"{name} {before[name]} then, {number} now"
        for name, number in versions().items()
        if before.get(name, number) != number
    ]
    return found + ([f"other packages: {'; '.join(other)}"] if other else [])


def recorded_answers(path: Path) -> dict[str, list[str]]:
    """By node, what the world outside answered in a recorded run, in order. Raises RecordingError."""
    found: dict[str, list[tuple[int, int, str]]] = {}
    lives: dict[str, int] = {}
    for message in BagReader(path):
        if message.schema == "Calls":
            batch = message.message(Calls)
            lives[batch.node] = lives.get(batch.node, 0) + (message.envelope.seq == 1)
            waits = (wait for call in batch.calls for wait in call.waits)
            kept = [(lives[batch.node], order, text) for order, text in waits if text not in (SLEPT, WOKEN)]
            found.setdefault(batch.node, []).extend(kept)
    return {node: [text for _, _, text in sorted(answers)] for node, answers in found.items()}
