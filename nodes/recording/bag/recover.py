"""`polyrhythm bag recover`: what can be read of a damaged recording, written into a sound one."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from nodes.recording.bag.recording import Recording, copy_head
from runtime.command_line.arguments import unique_path


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
    """Write every readable message of a recording, all its parts, into one file. Raises RecordingError."""
    source = Recording(path)
    writer = copy_head(source, out, {"recovered_from": path.name})
    for message in source.gone_through("recovering"):
        writer.copy(message)
    damage = source.damage
    writer.close({**source.end, "recovered": "lossy" if damage else "all"})
    return Recovered(str(path), str(out), writer.messages, source.is_complete, damage)


def main(argv: list[str]) -> int:
    """`polyrhythm bag recover`: 0 where all of the file could be read, 1 where something is lost (it says what)."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm bag recover",
        description="Write what can be read of a recording that was cut off or damaged into a sound one.",
        epilog="example: polyrhythm bag recover run.mcap --out sound.mcap; exit code 1: recovered, but not all of it",
    )
    parser.add_argument("recording", type=Path, metavar="RUN.mcap")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: RUN-recovered.mcap beside it")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    asked = parser.parse_args(argv)
    out = asked.out or unique_path(asked.recording.with_name(f"{asked.recording.stem}-recovered.mcap"))
    found = recover(asked.recording, out)
    if asked.json:
        print(json.dumps({**asdict(found), "is_lossy": found.is_lossy}))
    else:
        print(f"{found.messages} messages of {found.recording} are in {found.written}")
        for text in found.damage:
            print(f"! {text}")
        print("something is lost: see above" if found.is_lossy else "nothing is lost")
    return 1 if found.is_lossy else 0
