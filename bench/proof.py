"""`python -m bench.proof`: every proof of the project on one commit, one after the other, and one table of them.

The short ones come first, so that what is broken is seen early; one that fails hides none of the others. Each is noted
in runs/proof.jsonl as soon as it has ended, with its commit, time, load and exit code, and docs/results/proof.md is
written anew. What has ended on this very commit is not run again, unless it failed and `--again` asks for it: so the
command goes on after Ctrl-C. `make proof` takes an evening, `make proof FULL=1` a night and a day.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType

import msgspec

ROOT = Path(__file__).resolve().parents[1]
NOTES = ROOT / "runs" / "proof.jsonl"
PAGE = ROOT / "docs" / "results" / "proof.md"
WRITTEN = ("docs/results", "docs/performance.md", "docs/performance.png", "docs/reliability.md", "docs/certificate.md",
           "docs/decisions/held-out-sets.md")  # fmt: skip
"""What the proofs themselves write: it does not make the code another one."""
INTERRUPTED = 130
ENDS_WITHIN_S = 30.0
COMMIT_LETTERS = 12


class Proof(msgspec.Struct, frozen=True):
    """One of them: its two commands, how long each takes on two cores, and what the short one leaves out (`power`)."""

    name: str
    command: str
    minutes: float
    full: str = ""  # the same where there is none
    full_minutes: float = 0.0
    power: str = "whole"

    def of(self, *, is_full: bool) -> tuple[str, float, str]:
        """Command, minutes and power."""
        return (self.full, self.full_minutes, "whole") if is_full and self.full else (
            self.command, self.minutes, self.power)  # fmt: skip


class Result(msgspec.Struct, frozen=True):
    """What became of one."""

    name: str
    commit: str
    is_full: bool
    command: str
    power: str
    began: str
    took_s: float
    load: float  # average over a minute, when it began
    code: int


EVAL = ".venv/bin/polyrhythm eval"
PROOFS = (
    Proof("test", "make test", 14),
    Proof("eval understanding", f"{EVAL} understanding --set heldout", 1),
    Proof("eval reflex", f"{EVAL} reflex --set heldout", 1),
    Proof("bench", "make bench", 6, "make bench FULL=1", 60, "without peers and without the long rows"),
    Proof("faults", "make faults", 26, "make faults FULL=1", 200, "5 trials of each fault, with rights and without"),
    Proof("bare", "make bare", 18),
    Proof("first-hour", "make first-hour", 12),
    Proof("interop", "make interop", 25),
    Proof("long", "make long", 45),
    Proof("nine-skills", f"{EVAL} nine-skills --words heldout --seeds 5", 20),
    Proof(
        "nine-skills by images",
        f"{EVAL} nine-skills --words heldout --seeds 1 --set vlm.use=nodes.kitchen.vlm:KitchenVLM",
        10,
        f"{EVAL} nine-skills --words heldout --seeds 5 --set vlm.use=nodes.kitchen.vlm:KitchenVLM",
        40,
        "one seed of five",
    ),
    Proof("soak", ".venv/bin/python -m bench.soak --minutes 30", 31),
    Proof(
        "interruptions",
        f"{EVAL} interruptions --seeds 2",
        45,
        f"{EVAL} interruptions --seeds 20",
        450,
        "two seeds of twenty",
    ),
    Proof("mutants", "make mutants SAMPLE=100", 60, "make mutants RESUME=1", 900, "100 mutants of each target"),
)


def main(argv: Sequence[str] | None = None, proofs: Sequence[Proof] = PROOFS, root: Path = ROOT) -> int:
    """0 where all of them passed on this commit, 1 where one did not, 130 where it was interrupted."""
    asked = _parser().parse_args(argv)
    chosen = [one for one in proofs if asked.only in one.name]
    if not chosen:
        print(f"--only {asked.only!r}: no proof has that in its name; --list shows them all", file=sys.stderr)
        return 2
    if asked.list:
        for one in chosen:
            command, minutes, power = one.of(is_full=asked.full)
            print(f"{one.name:22} {minutes:4.0f} min  {power:40} {command}")
        return 0
    commit = commit_of(root)
    done = {} if commit.endswith("changes") else ended(root, commit, is_full=asked.full)
    left = [one for one in chosen if one.name not in done or (asked.again and done[one.name].code != 0)]
    minutes = sum(one.of(is_full=asked.full)[1] for one in left)
    print(f"{len(left)} of {len(chosen)} proofs on commit {commit}, about {minutes:.0f} minutes", flush=True)
    for number, one in enumerate(left, 1):
        command, minutes, power = one.of(is_full=asked.full)
        print(f"[{number} of {len(left)}] {one.name}, about {minutes:.0f} min: {command}", flush=True)
        load, began, start_s = os.getloadavg()[0], time.strftime("%Y-%m-%d %H:%M", time.gmtime()), time.monotonic()
        code = run(command, root, one.name)
        took_s = time.monotonic() - start_s
        if code == INTERRUPTED:
            print(f"interrupted in {one.name}; the same command goes on with it", file=sys.stderr)
            return INTERRUPTED
        done[one.name] = Result(one.name, commit, asked.full, command, power, began, took_s, round(load, 2), code)
        note(root, done[one.name])
        (root / PAGE.relative_to(ROOT)).write_text(page(proofs, done, commit, is_full=asked.full))
        print(f"    {'passed' if code == 0 else f'FAILED with code {code}'} after {took_s / 60:.1f} min", flush=True)
    failed = [one.name for one in chosen if done[one.name].code != 0]
    print(f"failed: {', '.join(failed)}" if failed else f"all {len(chosen)} passed on commit {commit}")
    return 1 if failed else 0


def run(command: str, root: Path, name: str) -> int:
    """The exit code of a command, whose words go into runs/proof-NAME.log; 130 where Ctrl-C or SIGTERM ended it."""
    log = root / "runs" / f"proof-{name.replace(' ', '-')}.log"
    log.parent.mkdir(exist_ok=True)
    is_asked_to_end = False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal is_asked_to_end
        is_asked_to_end = True

    before: list[tuple[int, Callable[[int, FrameType | None], object] | int | None]] = [
        (one, signal.signal(one, end)) for one in (signal.SIGINT, signal.SIGTERM)
    ]
    try:
        with log.open("w") as said:
            # In a group of its own: Ctrl-C comes here alone, and all that it started is told once.
            process = subprocess.Popen(
                shlex.split(command), cwd=root, stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
            while process.poll() is None and not is_asked_to_end:
                try:
                    process.wait(0.2)
                except subprocess.TimeoutExpired:
                    continue
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
                try:
                    process.wait(ENDS_WITHIN_S)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
    finally:
        for number, handler in before:
            signal.signal(number, handler)
    return INTERRUPTED if is_asked_to_end else process.returncode


def commit_of(root: Path) -> str:
    """The commit that is checked out, with a word where files beside those that proofs write differ from it."""
    git = ["git", "-C", str(root)]
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    left_out = [f":!{path}" for path in WRITTEN]
    changed = subprocess.run(
        [*git, "status", "--porcelain", "--untracked-files=no", "--", ".", *left_out],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return commit[:COMMIT_LETTERS] + (" with changes" if changed else "")


def ended(root: Path, commit: str, *, is_full: bool) -> dict[str, Result]:
    """The last result of each proof on this commit; a line that breaks off counts as none."""
    found: dict[str, Result] = {}
    path = root / NOTES.relative_to(ROOT)
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            one = msgspec.json.decode(line, type=Result)
        except msgspec.MsgspecError:
            continue
        if (one.commit, one.is_full) == (commit, is_full):
            found[one.name] = one
    return found


def note(root: Path, result: Result) -> None:
    """Add it to what is known."""
    path = root / NOTES.relative_to(ROOT)
    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as file:
        file.write(msgspec.json.encode(result) + b"\n")


def page(proofs: Sequence[Proof], done: Mapping[str, Result], commit: str, *, is_full: bool) -> str:
    """The table: one row for each proof, also for those that have not run."""
    rows = []
    for one in proofs:
        result = done.get(one.name)
        if result is None:
            rows.append(f"| {one.name} | `{one.of(is_full=is_full)[0]}` | | | | **not run** | |")
            continue
        outcome = "passed" if result.code == 0 else f"**failed, code {result.code}**"
        cells = (one.name, f"`{result.command}`", result.began, f"{result.took_s / 60:.1f}", str(result.load), outcome)
        rows.append(f"| {' | '.join(cells)} | {result.power} |")
    return "\n".join(
        [
            "# Every proof on one commit",
            "",
            f"Written by `make proof{' FULL=1' if is_full else ''}` on commit {commit}, "
            f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}. "
            "*Load* is the average of the minute before it began. What a proof measured stands on its own page.",
            "",
            "| proof | command | began (UTC) | min | load | outcome | how much of it |",
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench.proof",
        description="Run every proof on this commit, one after the other, and write docs/results/proof.md.",
        epilog="example: python -m bench.proof --only faults",
    )
    parser.add_argument("--full", action="store_true", help="the whole of each: a night and a day")
    parser.add_argument("--only", default="", metavar="TEXT", help="proofs whose name holds the text")
    parser.add_argument("--again", action="store_true", help="what failed on this commit, too")
    parser.add_argument("--list", action="store_true", help="name them with their commands and do nothing")
    return parser


if __name__ == "__main__":
    sys.exit(main())
