"""`polyrhythm bag recover`: what can be read of a damaged recording, written into a sound one."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from nodes.recording.bag.recording import Recording, copy_head
from runtime.command_line.arguments import check_new, unique_path
from runtime.errors import RecordingError


@dataclass(frozen=True)
class Recovered:
    """How a recovery went."""

    recording: str
    written: str
    messages: int
    was_closed: bool
    damage: list[str]

    @property
    def is_lossy(self) -> bool:
        return bool(self.damage)


def recover(path: Path, out: Path) -> Recovered:
    """Write every readable message of a recording, all its parts, into one file. Raises RecordingError.

    Any MCAP file is taken, and the folder of a ROS 2 bag, which becomes one with its metadata.yaml.
    """
    if path.is_dir() and (files := bag_files(path)):
        return _recover_bag(path, files, out)
    source = Recording(path, takes_any=True)
    writer = copy_head(source, out, {"recovered_from": path.name})
    for message in source.gone_through("recovering"):
        writer.copy(message)
    damage = source.damage
    if not writer.messages and damage:
        writer.abandon()
        out.unlink()
        raise RecordingError(f"{'; '.join(damage)}; no message in it can be read, so nothing is written")
    writer.close({**source.end, "recovered": "lossy" if damage else "all"})
    return Recovered(str(path), str(out), writer.messages, source.is_complete, damage)


def bag_files(folder: Path) -> list[Path]:
    """The storage files of a ROS 2 bag in the order of their numbers; none where runs of ours stand in it."""
    found = [path for path in folder.iterdir() if path.suffix in (".mcap", ".db3") and path.name != "run.mcap"]
    return sorted(found, key=lambda path: (int(re.findall(r"\d+", f"0{path.stem}")[-1]), path.name))


def _recover_bag(folder: Path, files: list[Path], out: Path) -> Recovered:
    """Each file for itself, then all of them as one bag."""
    from nodes.recording.bag.export.ros2 import join_bag

    check_new(out)
    damage: list[str] = []
    with TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as between:
        sound: list[Path] = []
        for file in files:
            copy = Path(between) / file.name
            try:
                if file.suffix == ".mcap":
                    damage += recover(file, copy).damage
                else:
                    damage += _copy_rows(file, copy)
                sound.append(copy)
            except RecordingError as problem:
                damage.append(str(problem))
        messages, unread = join_bag(sound, out)
    damage += [text.replace(f"{between}/", f"{folder}/") for text in unread]
    if not messages:
        raise RecordingError(f"{folder}: no message in it can be read{''.join(f'; {text}' for text in damage)}")
    was_closed = (folder / "metadata.yaml").is_file() and not damage
    return Recovered(str(folder), str(out), messages, was_closed, damage)


def _copy_rows(file: Path, copy: Path) -> list[str]:
    """Every row of a database that can be read, with what its recorder had not yet merged into it; what cannot be."""
    raw = copy.with_name(f"damaged-{copy.name}")
    for suffix in ("", "-wal", "-journal"):
        if (part := file.with_name(file.name + suffix)).is_file():
            shutil.copy(part, raw.with_name(raw.name + suffix))
    damage = []
    with closing(sqlite3.connect(raw)) as source, closing(sqlite3.connect(copy)) as sound:
        try:
            tables = dict(source.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall())
        except sqlite3.DatabaseError as problem:
            raise RecordingError(f"{file}: cannot be read as a database of a ROS 2 bag ({problem})") from problem
        for name, sql in tables.items():
            sound.execute(sql)
            try:
                for row in source.execute(f'SELECT * FROM "{name}"'):
                    sound.execute(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(row))})', row)
            except sqlite3.DatabaseError as problem:
                damage.append(f"{file}: its table {name} is damaged ({problem}); everything before that is read")
        sound.commit()
    return damage


def main(argv: list[str]) -> int:
    """`polyrhythm bag recover`: 0 where all of the file could be read, 1 where something is lost (it says what)."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm bag recover",
        description="Write what can be read of a recording that was cut off or damaged into a sound one.",
        epilog="example: polyrhythm bag recover run.mcap --out sound.mcap; exit code 1: recovered, but not all of it",
    )
    parser.add_argument("recording", type=Path, metavar="RUN.mcap", help="any MCAP file, or the folder of a ROS 2 bag")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: RUN-recovered.mcap beside it")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    asked = parser.parse_args(argv)
    name = f"{asked.recording.stem}-recovered{'' if asked.recording.is_dir() else '.mcap'}"
    out = asked.out or unique_path(asked.recording.with_name(name))
    found = recover(asked.recording, out)
    if asked.json:
        print(json.dumps({**asdict(found), "is_lossy": found.is_lossy}))
    else:
        print(f"{found.messages} messages of {found.recording} are in {found.written}")
        for text in found.damage:
            print(f"! {text}")
        print("something is lost: see above" if found.is_lossy else "nothing is lost")
    return 1 if found.is_lossy else 0
