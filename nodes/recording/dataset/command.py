"""`polyrhythm dataset COMMAND`: LeRobot datasets: doctor, drop."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import msgspec

from nodes.recording.draft import drafted
from runtime.command_line.arguments import answered, check_new
from runtime.errors import RecordingError, UserError, choices


def main(argv: list[str]) -> int:
    """`polyrhythm dataset`: 0 all is well, 1 what was found or failed, 2 asked wrongly."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm dataset",
        description="Examine a LeRobot dataset (v2.0, v2.1 or v3.0, anybody's), or leave episodes of it out. "
        "`polyrhythm bag export --to lerobot` makes one of recordings, `polyrhythm bag import` recordings of one. "
        "Needs the extra nodes[export].",
        epilog="example: polyrhythm dataset doctor cups-lerobot",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    doctor = commands.add_parser(
        "doctor",
        help="what would train a policy on something that never happened",
        description="Tell of repeated and dropped frames, rates, gaps, jumps, clamps, constant columns, statistics and "
        "tasks. 0: fit to train on; 1: a problem was found.",
        epilog="example: polyrhythm dataset doctor cups-lerobot --json",
    )
    doctor.add_argument("folder", type=Path, metavar="DIR")
    doctor.add_argument("--json", action="store_true", help="print it as JSON")
    doctor.set_defaults(run=_doctor)
    drop = commands.add_parser(
        "drop",
        help="leave episodes out",
        description="Leave episodes out, and number the others anew. Videos are shared with the old dataset where the "
        "disk can do that, and never changed.",
        epilog="example: polyrhythm dataset drop cups-lerobot 3 7 --out cups-good",
    )
    drop.add_argument("folder", type=Path, metavar="DIR")
    drop.add_argument("episodes", type=int, nargs="+", metavar="N", help="by their numbers, from 0")
    drop.add_argument("--out", type=Path, metavar="DIR", help="a new dataset; default: in its own place")
    drop.set_defaults(run=_drop)
    asked = parser.parse_args(argv)
    run: Callable[[argparse.Namespace], int] = asked.run
    return answered(f"polyrhythm dataset {argv[0]}", lambda: run(asked))


def _doctor(asked: argparse.Namespace) -> int:
    from nodes.recording.dataset.doctor import examine

    findings = examine(asked.folder)
    problems = sum(one.is_problem for one in findings)
    if asked.json:
        document = {"folder": str(asked.folder), "is_fit": not problems, "findings": findings}
        print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
        return int(bool(problems))
    for one in findings:
        print(f"{'!' if one.is_problem else '-'} {one.kind}: {one.told}")
    print(f"{asked.folder}: {f'{problems} problems' if problems else 'no problem'}, {len(findings) - problems} notes")
    return int(bool(problems))


def _drop(asked: argparse.Namespace) -> int:
    from nodes.recording.dataset.folder import DatasetFolder
    from nodes.recording.dataset.writer import DatasetWriter

    folder = DatasetFolder(asked.folder)
    if asked.out is None:
        folder.check_whole()
    known = {one.index for one in folder.episodes}
    if unknown := set(asked.episodes) - known:
        raise UserError(f"{asked.folder}: has no episode {choices(map(str, unknown))}; it has {len(known)}, from 0")
    kept = [one for one in folder.episodes if one.index not in asked.episodes]
    if not kept:
        raise UserError(f"{asked.folder}: nothing is left of it without these episodes")
    version = folder.info.codebase_version
    if version not in ("v3.0", "v2.1"):
        raise RecordingError(f"{asked.folder}: is of {version}; episodes can be left out of v2.1 and v3.0")
    if asked.out is not None:
        check_new(asked.out)
    out = asked.out or asked.folder.resolve()
    with drafted(out, replaces=asked.out is None) as draft:
        writer = DatasetWriter(draft, "v3.0" if folder.is_new else "v2.1", folder.info.fps)
        for episode in kept:
            writer.keep(folder, episode)
        frames = writer.finish(folder.info.robot_type or "other")
    print(f"{frames} frames in {len(writer)} episode(s) in {out}")
    return 0
