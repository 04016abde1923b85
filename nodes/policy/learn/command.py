"""`polyrhythm learn`: a state policy learns from recordings in which somebody taught it from its seat, or beside it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from nodes.policy.learn.recordings import SKILLS, rows_of
from nodes.policy.learn.rows import RATE_HZ, Rows
from nodes.policy.onnx.policy import place_of
from runtime.command_line.arguments import answered, count
from runtime.errors import UserError


def main(argv: Sequence[str]) -> int:
    """Read the recordings, learn, and write the file."""
    arguments = _parser().parse_args(argv)
    return answered("polyrhythm learn", lambda: _learn(arguments))


def _learn(arguments: argparse.Namespace) -> int:
    kept = [Rows.read(arguments.rows)] if arguments.rows is not None and arguments.rows.exists() else []
    new = []
    for recording in arguments.recordings:
        rows, taken = rows_of(recording, arguments.pupil)
        print(f"{recording}: {len(rows.felt)} rows, {taken} of them by who took the seat")
        new += [rows] if len(rows.felt) else []
    if not new:
        raise UserError(
            "nobody taught in these recordings: run with --add teacher=nodes.policy.expert:ExpertPolicy, "
            "or take the policy's seat in mid-run"
        )
    known = Rows.joined([*kept, *new])
    from nodes.policy.learn.network import as_onnx, learn, restored

    before = restored(Path(place_of(arguments.model)).read_bytes())
    pupil, loss = learn(known, epochs=arguments.epochs, before=before)
    notes = {"skills": ",".join(SKILLS), "training": f"from {arguments.model}, {len(known.felt)} rows at {RATE_HZ} Hz"}
    arguments.out.write_bytes(as_onnx(pupil, notes))
    if arguments.rows is not None:
        known.write(arguments.rows)
    print(f"{arguments.out}: learned from {len(known.felt)} rows, loss {loss:.3f}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm learn",
        description="A state policy learns from recordings in which the scripted policy or a person taught it: from "
        "beside its seat, or in it. Needs torch: pip install 'polyrhythm[train]'.",
        epilog="example: polyrhythm learn runs/*/run.mcap --model clear-table --rows rows.npz --out mine.onnx",
    )
    parser.add_argument("recordings", nargs="+", type=Path, metavar="recording", help="a .mcap file of a run")
    parser.add_argument("--model", default="clear-table", help="what goes on to learn; default: %(default)s")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.onnx", help="the file to write")
    parser.add_argument(
        "--rows", type=Path, metavar="FILE.npz", help="what it was taught before: learned again, and added to"
    )
    parser.add_argument("--pupil", default="", metavar="NODE", help="default: who held the policy's seat first")
    parser.add_argument("--epochs", type=count, default=6, help="times through all rows; default: %(default)s")
    return parser
