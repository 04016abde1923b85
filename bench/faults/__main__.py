"""`python -m bench.faults`: run the fault matrix, write the measured table; 0 only where every figure is within bounds.

`make faults` takes 5 trials of each fault, with `FULL=1` 40, with the rights of this account; then those whose figures
hang on priorities once more, as an account that may have none (`--ordinary`). Each trial is noted in a file as soon as
it is made, so that `--resume` goes on after Ctrl-C, with the same code only. Only all of a table's faults with at least
5 trials each write it, into docs/results.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from bench.code_commit import commit_of
from bench.faults import table
from bench.faults.lanes import left_s, run_all
from bench.faults.matrix import MATRIX, Fault
from bench.faults.outcome import ROOT, Outcome, Outcomes, fingerprint
from runtime.operating_system.real_time import may_have_fifo

FILES = (ROOT / "runs" / "faults.jsonl", ROOT / "runs" / "faults-ordinary.jsonl")
FEWEST_TRIALS = 5
RESULTS = ROOT / "docs" / "results"
MEMLOCK_BYTES = 8 << 20
_PR_CAPBSET_DROP, _CAP_IPC_LOCK, _CAP_SYS_NICE = 24, 14, 23


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code; 130 where it was interrupted."""
    asked = _parser().parse_args(argv)
    whole = [fault for fault in MATRIX if fault.is_by_rights or not asked.ordinary]
    faults = [fault for fault in whole if asked.only in fault.name and (fault.is_quick or not asked.quick)]
    if not faults:
        print(f"--only {asked.only!r}: no fault has that in its name; --list shows them all", file=sys.stderr)
        return 2
    if asked.trials < 1 or asked.lanes < 1:
        print(f"--trials {asked.trials} --lanes {asked.lanes}: expected at least 1 of each", file=sys.stderr)
        return 2
    if asked.list:
        print("\n".join(fault.name for fault in faults))
        return 0
    if asked.ordinary:
        drop_rights()
    is_part = len(faults) < len(whole) or asked.trials < FEWEST_TRIALS
    # A part leaves the file of a whole alone, unless it is to go on with it.
    outcomes = Outcomes(
        None if is_part and not asked.resume else asked.file or FILES[asked.ordinary],
        fingerprint(),
        goes_on=asked.resume,
    )
    progress = Progress(faults, outcomes, asked.trials, asked.lanes)
    try:
        run_all(faults, outcomes, asked.trials, asked.lanes, progress.told)
    except KeyboardInterrupt:
        print(f"\ninterrupted after {len(outcomes.all())} trials; --resume goes on", file=sys.stderr)
        return 130
    return _finish(faults, outcomes, asked, is_part=is_part)


def _finish(faults: Sequence[Fault], outcomes: Outcomes, asked: argparse.Namespace, *, is_part: bool) -> int:
    rows = [row for fault in faults for row in table.rows_of(fault, outcomes.of(fault.name))]
    for row in rows:
        if not asked.json:
            print(row.as_markdown())
        if row.problem:
            print(row.problem, file=sys.stderr)
    if asked.json:
        print(json.dumps([row.as_data() for row in rows]))
    if asked.profile:
        print(profile(faults, outcomes), file=sys.stderr)
    made = [one for fault in faults for one in outcomes.of(fault.name)]
    took_s = sum(one.took_s for one in made)
    failed = [row for row in rows if not row.is_passed]
    summary = f"{len(rows) - len(failed)} of {len(rows)} figures within their bounds, {took_s:.0f} s of trials"
    if is_part:
        print(f"{summary}; no table written: that takes all faults of it and {FEWEST_TRIALS} trials", file=sys.stderr)
    else:
        load = (min(one.load for one in made), max(one.load for one in made))
        text = table.as_markdown(rows, took_s=took_s, load=load, lanes=asked.lanes, commit=commit_of())
        page = RESULTS / f"faults{'-ordinary' if asked.ordinary else ''}.md"
        page.write_text(f"# {table.TITLES[asked.ordinary]}\n\n{text}\n")
        print(f"{summary}; table written into {page.relative_to(ROOT)}", file=sys.stderr)
    return 1 if failed or not rows else 0


def drop_rights() -> None:
    """Go on as an account without real-time rights: they cannot be had again, nor by anything started from here.

    Root loses CAP_SYS_NICE and CAP_IPC_LOCK at the next program that is started, which is this one again.
    """
    resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (MEMLOCK_BYTES, MEMLOCK_BYTES))
    if not may_have_fifo(1):
        library = ctypes.CDLL(None, use_errno=True)
        dropped = [library.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) for number in (_CAP_SYS_NICE, _CAP_IPC_LOCK)]
        if any(dropped):
            raise SystemExit(f"--ordinary: the rights cannot be dropped ({os.strerror(ctypes.get_errno())})")
        os.execv(sys.executable, [sys.executable, "-m", "bench.faults", *sys.argv[1:]])


class Progress:
    """A line for each trial where somebody watches, one for each fault where not."""

    def __init__(self, faults: Sequence[Fault], outcomes: Outcomes, trials: int, lanes: int) -> None:
        self._faults, self._outcomes, self._trials, self._lanes = faults, outcomes, trials, lanes
        self._wanted = {fault.name: min(trials, fault.most_trials) for fault in faults}
        self._is_seen = sys.stderr.isatty()

    def told(self, outcome: Outcome) -> None:
        """One more trial was made; several lanes may tell it."""
        done = len(self._outcomes.of(outcome.fault))
        is_last = done >= self._wanted[outcome.fault] or bool(outcome.problem)
        if not self._is_seen and not is_last:
            return
        all_done = sum(min(wanted, len(self._outcomes.of(name))) for name, wanted in self._wanted.items())
        rest_s = left_s(self._faults, self._outcomes, self._trials, self._lanes)
        head = f"{all_done} of {sum(self._wanted.values())} trials, {rest_s / 60:.0f} min left"
        end = "\r" if self._is_seen and not is_last else "\n"
        print(
            f"\033[K[{head}] {outcome.fault}: {done}" if self._is_seen else f"[{head}] {outcome.fault}: {done}",
            end=end,
            file=sys.stderr,
            flush=True,
        )


def profile(faults: Sequence[Fault], outcomes: Outcomes) -> str:
    """Where a trial's time goes, slowest fault first."""
    lines = [f"{'s a trial':>9}  {'graph':>6}  {'moving':>6}  {'fault':>6}"]
    found = []
    for fault in faults:
        of = outcomes.of(fault.name)
        if of:
            took_s, rig_s, moving_s = (
                fmean(getattr(one, name) for one in of) for name in ("took_s", "rig_s", "moving_s")
            )
            found.append((took_s, rig_s, moving_s, fault.name))
    for took_s, rig_s, moving_s, name in sorted(found, reverse=True):
        lines.append(f"{took_s:9.2f}  {rig_s:6.2f}  {moving_s:6.2f}  {took_s - rig_s - moving_s:6.2f}  {name}")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench.faults", epilog="example: python -m bench.faults --trials 100 --lanes 2 --resume"
    )
    parser.add_argument("--trials", type=int, default=5, help="of each fault; default: %(default)s")
    parser.add_argument("--resume", action="store_true", help="count the trials that the file holds of this very code")
    parser.add_argument("--lanes", type=int, default=1, help="graphs side by side; busy faults stay alone; default: 1")
    parser.add_argument("--file", type=Path, help="where trials are noted; default: runs/faults.jsonl")
    parser.add_argument(
        "--ordinary",
        action="store_true",
        help="faults whose figures hang on priorities, without real-time rights as most accounts",
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="faults whose name holds the text; writes no table")
    parser.add_argument("--quick", action="store_true", help="the subset of make test; writes no table")
    parser.add_argument("--list", action="store_true", help="name the faults and do nothing")
    parser.add_argument("--profile", action="store_true", help="tell where the time of each fault's trials went")
    parser.add_argument("--json", action="store_true", help="print every value as JSON instead of the table's lines")
    return parser


if __name__ == "__main__":
    sys.exit(main())
