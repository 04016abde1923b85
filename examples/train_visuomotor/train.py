"""`python -m examples.train_visuomotor.train STEP --folder FOLDER`: the policy's training, step by step.

The steps, in this order; each reads and writes the folder, and can be given again with other seeds:

    draw      pictures of lessons without physics, in which the teacher moves the robot
    eyes      the eyes learn from all pictures
    hand      the hand learns from lessons without pictures; from the second round on it moves itself (DAgger)
    practise  the whole pupil acts at tables with physics and the guard; pictures and labels go into the folder
    write     the ONNX file

Tables are laid by seeds from 10,000 on; small ones are for measuring. Needs torch and onnx: pip install
'./nodes[train]'.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from runtime.extras import install

try:
    import torch
except ModuleNotFoundError:
    sys.exit(f"examples.train_visuomotor.train: torch is not installed: {install('nodes[train]')}")

from examples.train_visuomotor.learning import acts, flat, learn_eyes, learn_hand
from examples.train_visuomotor.lessons import imagine
from examples.train_visuomotor.network import Pupil, as_onnx
from examples.train_visuomotor.pictures import Painter, Scenes, paint, together
from examples.train_visuomotor.practice import practise

DRAWN, IMAGINED, PRACTISED = 10_000, 20_000, 30_000
"""First seeds of the tables of each step."""
LESSON_S = 60.0
PUPILS = 0.8


def main(argv: list[str]) -> int:
    asked = _parser().parse_args(argv)
    torch.set_num_threads(1)  # sums in one order
    asked.folder.mkdir(parents=True, exist_ok=True)
    match asked.step:
        case "draw":
            _draw(asked)
        case "eyes":
            pupil = _pupil(asked.folder)
            scenes = together([Scenes.load(str(file)) for file in sorted(asked.folder.glob("scenes-*.npz"))])
            print(f"{len(scenes.about)} pictures of each camera", flush=True)
            learn_eyes(pupil, scenes, asked.steps, seed=asked.seed, rate=asked.rate, tell=_tell)
            _save(pupil, asked.folder, "eyes")
        case "hand":
            _hand(asked)
        case "practise":
            _practise(asked)
        case "write":
            notes = {"skills": "pick,place,look"}
            asked.out.write_bytes(as_onnx(_pupil(asked.folder), notes))
    return 0


def _tell(line: str) -> None:
    print(line, flush=True)


def _pupil(folder: Path) -> Pupil:
    """The pupil so far. Eyes and hand are files of their own: one may learn while the other does."""
    torch.manual_seed(0)
    pupil = Pupil()
    for file in (folder / "eyes.pt", folder / "hand.pt"):
        if file.exists():
            pupil.load_state_dict(torch.load(file, weights_only=True), strict=False)
    return pupil


def _save(pupil: Pupil, folder: Path, part: str) -> None:
    weights = {
        name: value for name, value in pupil.state_dict().items() if name.startswith("hand.") == (part == "hand")
    }
    torch.save(weights, folder / f"{part}.pt")


def _draw(asked: argparse.Namespace) -> None:
    painter, first = Painter(), DRAWN + asked.seed
    parts = [paint(imagine(seed, LESSON_S), seed, 10, painter) for seed in range(first, first + asked.lessons)]
    scenes = together(parts)
    scenes.save(str(asked.folder / f"scenes-{first}.npz"))
    print(f"{len(scenes.about)} pictures of each camera, tables {first} to {first + asked.lessons - 1}")


def _hand(asked: argparse.Namespace) -> None:
    pupil = _pupil(asked.folder)
    files = sorted(asked.folder.glob("rows-*.npz"))
    for number in range(asked.rounds):
        kept = [dict(np.load(file)) for file in files]
        is_first = not kept
        first = IMAGINED + 100 * len(files)
        act = None if is_first else acts(pupil)
        lessons = asked.lessons * (2 if is_first else 1)
        new = [imagine(seed, LESSON_S, act, 0.0 if is_first else PUPILS) for seed in range(first, first + lessons)]
        files.append(_keep(asked.folder / f"rows-{first}.npz", flat(new)))
        kept.append(dict(np.load(files[-1])))
        loss = _learn(pupil, kept, asked.steps * (2 if is_first else 1), asked.rate, number)
        _save(pupil, asked.folder, "hand")
        told = _outcomes(outcome for rows in new for outcome in rows.outcomes)
        print(f"{sum(len(part['run']) for part in kept)} rows, loss {loss:.3f}; before: {told}", flush=True)


def _learn(pupil: Pupil, kept: list[dict[str, np.ndarray]], steps: int, rate: float, seed: int) -> float:
    runs, before = [], 0
    for part in kept:
        runs.append(part["run"] + before)
        before = int(runs[-1][-1]) + 1
    given = np.concatenate([part["given"] for part in kept])
    return learn_hand(pupil, given, np.concatenate(runs), steps, seed=seed, rate=rate)


def _keep(file: Path, rows: tuple[np.ndarray, np.ndarray]) -> Path:
    np.savez(file, given=rows[0], run=rows[1])
    return file


def _practise(asked: argparse.Namespace) -> None:
    pupil, first = _pupil(asked.folder), PRACTISED + asked.seed
    rows, scenes, outcomes, off = [], [], [], []
    for seed in range(first, first + asked.lessons):
        some, seen, lesson = practise(seed, LESSON_S, pupil, PUPILS)
        rows.append(some)
        outcomes += some.outcomes
        off += lesson.errors
        if len(seen.about):
            scenes.append(seen)
    _keep(asked.folder / f"rows-{first}.npz", flat(rows))
    together(scenes).save(str(asked.folder / f"scenes-{first}.npz"))
    away = np.abs(np.array(off))
    where = np.percentile(away[:, :2], (50, 90), axis=0).T * 1e3
    print(
        f"practice {first}: {_outcomes(outcomes)}; ahead, left off by (50, 90 %, mm) {where.round(1).tolist()}",
        flush=True,
    )


def _outcomes(found: Iterable[tuple[str, str, str]]) -> str:
    """How often each skill ended how, of the teacher and of the pupil."""
    counts = Counter(found)
    return "; ".join(f"{who} {skill}: {count} {end}" for (skill, who, end), count in counts.most_common())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.train_visuomotor.train", description=__doc__)
    parser.add_argument("step", choices=("draw", "eyes", "hand", "practise", "write"))
    parser.add_argument("--folder", type=Path, required=True, help="what is learned from, and the pupil so far")
    parser.add_argument("--seed", type=int, default=0, help="added to the step's first seed; default: %(default)s")
    parser.add_argument("--lessons", type=int, default=12, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=4, help="of the hand; default: %(default)s")
    parser.add_argument("--steps", type=int, default=1500, help="of learning; default: %(default)s")
    parser.add_argument("--rate", type=float, default=1.5e-3, help="of learning; default: %(default)s")
    parser.add_argument("--out", type=Path, default=Path("visuomotor.onnx"), help="default: %(default)s")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
