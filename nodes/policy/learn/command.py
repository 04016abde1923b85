"""`polyrhythm learn`: a learned policy learns on, from recordings of its seat."""

from __future__ import annotations

import argparse
from pathlib import Path

from nodes.policy.learn.recordings import SKILLS, rows_of
from nodes.policy.learn.rows import RATE_HZ, Rows
from nodes.policy.onnx.policy import place_of
from runtime.command_line.arguments import check_new, command, count
from runtime.errors import UserError
from runtime.extras import install
from runtime.operating_system.whole_file import write_whole


@command("learn", lambda: _parser())
def main(arguments: argparse.Namespace) -> int:
    """Read the recordings, learn, and write the file."""
    for file in (arguments.out, arguments.rows):
        expect_writable(file)
    check_new(arguments.out)
    model = Path(place_of(arguments.model))
    if not model.is_file():
        raise UserError(f"model {arguments.model!r} does not exist; shipped is clear-table")
    known = [Rows.read(arguments.rows)] if arguments.rows is not None and arguments.rows.exists() else []
    has_taught = False
    for recording in arguments.recordings:
        rows, taken = rows_of(recording, arguments.pupil)
        new = rows.besides(known)
        again = len(rows.felt) - len(new.felt)
        told = f"; {again} are known already" if again else ""
        print(f"{recording}: {len(rows.felt)} rows, {taken} of them by who took the seat{told}")
        has_taught = has_taught or len(rows.felt) > 0
        known += [new] if len(new.felt) else []
    if not has_taught:
        raise UserError(
            "nobody taught in these recordings: run with --add teacher=nodes.policy.expert:ExpertPolicy, "
            "or take the policy's seat in mid-run"
        )
    all_of_it = Rows.joined(known)
    from nodes.policy.learn.network import as_onnx, learn, restored

    pupil, loss = learn(all_of_it, epochs=arguments.epochs, before=restored(model.read_bytes()))
    count = len(all_of_it.felt)
    notes = {
        "step_s": f"{1 / RATE_HZ:g}",
        "skills": ",".join(SKILLS),
        "training": f"from {arguments.model}, {count} rows at {RATE_HZ} Hz",
    }
    write_whole(arguments.out, as_onnx(pupil, notes))
    if arguments.rows is not None:
        all_of_it.write(arguments.rows)
    print(f"{arguments.out}: learned from {count} rows, loss {loss:.3f}")
    return 0


def expect_writable(file: Path | None) -> None:
    """Raise UserError for a place where no file can be written: said before hours of learning, and not after."""
    if file is not None and (file.is_dir() or not file.parent.is_dir()):
        why = (
            "is a folder; expected a file" if file.is_dir() else f"cannot be written: there is no folder {file.parent}"
        )
        raise UserError(f"{file} {why}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm learn",
        description="A state policy learns from recordings in which the scripted policy or a person taught it: from "
        f"beside its seat, or in it. Needs torch: {install('nodes[train]')}.",
        epilog="example: polyrhythm learn runs/*/run.mcap --model clear-table --rows rows.npz --out mine.onnx",
    )
    parser.add_argument("recordings", nargs="+", type=Path, metavar="recording", help="a .mcap file of a run")
    parser.add_argument("--model", default="clear-table", help="what goes on to learn; default: %(default)s")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.onnx", help="the file to write")
    parser.add_argument(
        "--rows", type=Path, metavar="FILE.npz", help="what it was taught before: learned again, and added to"
    )
    parser.add_argument(
        "--pupil",
        default="",
        metavar="NODE",
        help="who learns, and is not its own teacher; default: who held the policy's seat first",
    )
    parser.add_argument("--epochs", type=count, default=6, help="times through all rows; default: %(default)s")
    return parser
