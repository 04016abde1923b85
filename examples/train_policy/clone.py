"""`python -m examples.train_policy.clone --out FILE.onnx`: learn the scripted policy, first by watching, then by doing.

In each round the pupil is given its own lessons (DAgger): it moves, the teacher says what it would have done there.
The first rounds are imagined, the last ones have physics and the guard. `--whole N` plays N whole tables after each of
those, with the VLM's targets and a person who objects: how many are cleared is the figure to look at. Same seed, same
versions, same machine: the same file. Needs torch and onnx: pip install './nodes[train]'.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from pathlib import Path

from examples.train_policy.lessons import teach
from nodes.policy.learn.command import expect_writable
from nodes.policy.learn.rows import Rows
from runtime.command_line.arguments import answered

PUPILS = 0.8
FIRST_SEED, WHOLE_SEED = 10_000, 20_000
"""Tables of lessons are laid by seeds from here on; evaluations use small ones."""


def main(argv: list[str]) -> int:
    """Train and write the file."""
    arguments = _parser().parse_args(argv)
    return answered("examples.train_policy.clone", lambda: _train(arguments))


def _train(arguments: argparse.Namespace) -> int:
    for file in (arguments.out, arguments.rows):
        expect_writable(file)
    import torch

    from nodes.policy.learn.network import as_onnx, learn

    torch.set_num_threads(1)  # sums in one order

    seed = FIRST_SEED
    rows: list[Rows] = []
    pupil = None
    rounds = 1 + arguments.rounds + arguments.simulated
    for number in range(rounds):
        seeds = list(range(seed, seed + arguments.tables * (2 if number == 0 else 1)))
        seed = seeds[-1] + 1
        model = None if pupil is None else as_onnx(pupil, {})
        is_imagined = number <= arguments.rounds
        new = teach(seeds, arguments.lesson_s, model, PUPILS if pupil is not None else 0.0, is_imagined)
        rows.append(new)
        known = Rows.joined(rows)
        epochs = arguments.epochs * (3 if number == 0 else 1)
        pupil, loss = learn(known, epochs=epochs, before=pupil, seed=number)
        _tell(number, new, len(known.felt), loss)
        count = f"{len(known.felt)} rows at 20 Hz"
        notes = {
            "skills": "pick,place,look",
            "training": f"{number} rounds of its own, seeds {FIRST_SEED} to {seed - 1}, {count}",
        }
        arguments.out.write_bytes(as_onnx(pupil, notes))
        if arguments.rows is not None:
            known.write(arguments.rows)
        if not is_imagined and arguments.whole:
            _play_whole(arguments.out, range(WHOLE_SEED, WHOLE_SEED + arguments.whole))
    return 0


def _play_whole(model: Path, seeds: range) -> None:
    """Whole tables, as `polyrhythm eval` plays them."""
    changes = ["policy.use=nodes.policy.onnx.policy:OnnxPolicy", f"policy.model={model}"]
    sets = [part for change in changes for part in ("--set", change)]
    command = [
        sys.executable,
        "-m",
        "runtime",
        "eval",
        "laptop",
        "--jobs",
        "1",
        "--seeds",
        f"{seeds.start}:{seeds.stop}",
    ]
    subprocess.run([*command, *sets], check=False)


def _tell(number: int, new: Rows, rows: int, loss: float) -> None:
    """One line a round: how often the pupil, as it was before this round's learning, did what it was asked."""
    outcomes = new.outcomes
    told = []
    for skill, who in sorted({(skill, who) for skill, who, _ in outcomes}):
        ends = Counter(end for of, by, end in outcomes if (of, by) == (skill, who))
        wrong = "; ".join(f"{count} {end}" for end, count in ends.most_common() if end != "success")
        told.append(f"{who} {skill} {ends['success']}/{ends.total()}" + (f" ({wrong})" if wrong else ""))
    print(f"round {number}: {rows} rows, loss {loss:.3f}; {', '.join(told)}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.train_policy.clone", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=Path, metavar="FILE.npz", help="keep the lessons here, for `polyrhythm learn`")
    parser.add_argument("--rounds", type=int, default=6, help="of imagined lessons of its own; default: %(default)s")
    parser.add_argument("--simulated", type=int, default=0, help="rounds with physics, then; default: %(default)s")
    parser.add_argument("--tables", type=int, default=12, help="a round; default: %(default)s")
    parser.add_argument("--whole", type=int, default=0, help="tables after a round with physics; default: %(default)s")
    parser.add_argument("--lesson-s", type=float, default=80.0, help="a table; default: %(default)s")
    parser.add_argument("--epochs", type=int, default=6, help="a round, the first has 3 times; default: %(default)s")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
