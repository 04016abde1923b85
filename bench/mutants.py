"""`python -m bench.mutants`: change what decides who may move the robot in every way that mutmut knows; count what the
tests notice, and write the figure into docs/reliability.md.

Works in a copy of the tree. `--minutes` ends it after that time: mutants are tried in a seeded random order, so those
tried until then are a fair sample, and the figure says so. Decorated methods, the handlers of nodes, are left alone by
mutmut; the fault matrix proves those.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import marked

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- mutants: begin, written by make mutants -->", "<!-- mutants: end -->"
GOAL = 0.95
STEPS = "600"  # of the random stories, for each mutant
BATCH = 60
KILLED = ("killed", "timeout", "segfault", "suspicious")
TREE = ("runtime", "nodes", "bridges", "bench", "launch", "tests", "docs", "pyproject.toml", "README.md")
MUTMUT = (sys.executable, "-c", "from mutmut.__main__ import cli; cli()")


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of the mutants of one module."""

    module: str
    tried: int
    killed: int
    all: int
    timeouts: int = 0  # of those killed: a mutant that does not end, or on a busy machine one that had too little time


def main(argv: Sequence[str] | None = None) -> int:
    """0 where enough are killed, 1 where not or where mutmut failed; prints the survivors."""
    asked = _parser().parse_args(argv)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        _copy_tree(Path(folder))
        results = dict.fromkeys(_names(Path(folder), asked.only, asked.processes), "")
        order = sorted(results)
        random.Random(asked.seed).shuffle(order)
        for place in range(0, len(order), BATCH):
            if place and asked.minutes and time.monotonic() - start > asked.minutes * 60:
                break
            batch = order[place : place + BATCH]
            results.update(_try(Path(folder), batch, asked.processes))
            tried = [found for found in results.values() if found]
            share = sum(found in KILLED for found in tried) / len(tried)
            took_s = time.monotonic() - start
            print(f"{len(tried)} of {len(order)} tried, {share:.1%} killed, {took_s / 60:.0f} min", flush=True)
        survivors = sorted(name for name, found in results.items() if found and found not in KILLED)
        print("\n".join(f"{results[name]}: {name}" for name in survivors))
        print(_differences(Path(folder), survivors))
    tallies = tally(results)
    text = as_markdown(tallies, took_s=time.monotonic() - start, seed=asked.seed)
    print(text)
    if asked.only:
        print("a part of the modules is not the figure of the docs: nothing written")
    else:
        marked.write(PAGE, BEGIN, END, text)
    return 0 if share_of(tallies) >= GOAL else 1


def tally(results: Mapping[str, str]) -> list[Tally]:
    """By module; names are mutmut's, `package.module.function__mutmut_number`."""
    everything, tried, killed, timeouts = (Counter[str]() for _ in range(4))
    for name, found in results.items():
        module = name.rpartition("__mutmut_")[0].rpartition(".")[0]
        everything[module] += 1
        tried[module] += bool(found)
        killed[module] += found in KILLED
        timeouts[module] += found == "timeout"
    return [
        Tally(module, tried[module], killed[module], everything[module], timeouts[module])
        for module in sorted(everything)
    ]


def share_of(tallies: Sequence[Tally]) -> float:
    """Killed of those tried."""
    tried = sum(one.tried for one in tallies)
    return sum(one.killed for one in tallies) / tried if tried else 0.0


def as_markdown(tallies: Sequence[Tally], *, took_s: float, seed: int) -> str:
    """The figure with what it was measured on."""
    tried, killed, everything, timeouts = (
        sum(getattr(one, name) for one in tallies) for name in ("tried", "killed", "all", "timeouts")
    )
    which = "all" if tried == everything else f"a random sample (seed {seed}) of {tried}"
    return "\n".join(
        [
            f"{killed} of {tried} mutants killed, **{share_of(tallies):.1%}** (goal: {GOAL:.0%}); "
            f"{timeouts} of them because they did not end. Tried were {which} of {everything}, "
            f"in {took_s / 60:.0f} minutes.",
            "",
            "| module | mutants | tried | killed | share |",
            "|---|---|---|---|---|",
            *(
                f"| `{one.module}` | {one.all} | {one.tried} | {one.killed} | "
                f"{f'{one.killed / one.tried:.1%}' if one.tried else ''} |"
                for one in tallies
            ),
        ]
    )


def _copy_tree(folder: Path) -> None:
    for name in TREE:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy(source, folder)


def _mutmut(folder: Path, *arguments: str) -> str:
    """What it prints. Raises SystemExit where it fails, with its last words."""
    environment = {**os.environ, "GUARD_STEPS": STEPS, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [*MUTMUT, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"mutmut {arguments[0]} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def _names(folder: Path, only: str, processes: int) -> list[str]:
    """Of all mutants. A first small run makes them all and learns which test runs which function."""
    _mutmut(folder, "run", "--max-children", str(processes), "nodes.guard.motion_profile.*")
    return [name for name in _results(folder) if only in name]


def _try(folder: Path, names: Sequence[str], processes: int) -> dict[str, str]:
    _mutmut(folder, "run", "--max-children", str(processes), *names)
    found = _results(folder)
    return {name: found[name] for name in names}


def _results(folder: Path) -> dict[str, str]:
    lines = (line.strip().rpartition(": ") for line in _mutmut(folder, "results", "--all", "true").splitlines())
    return {name: found for name, colon, found in lines if colon and "__mutmut_" in name}


def _differences(folder: Path, names: Sequence[str]) -> str:
    """What was changed in each of these."""
    code = "import sys; from mutmut.__main__ import show; [show.callback(name) for name in sys.argv[1:]]"
    done = subprocess.run([sys.executable, "-c", code, *names], cwd=folder, capture_output=True, text=True, check=False)
    lines = (line for line in done.stdout.splitlines() if line.startswith(("#", "+", "-")))
    return "\n".join(line for line in lines if not line.startswith(("+++", "---")))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.mutants", epilog="example: python -m bench.mutants --minutes 40")
    parser.add_argument("--minutes", type=float, default=0.0, help="end after so long, with a sample; 0: try all")
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants whose name holds the text; writes nothing")
    parser.add_argument("--seed", type=int, default=0, help="of the order in which they are tried")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="default: one per core")
    return parser


if __name__ == "__main__":
    sys.exit(main())
