"""`python -m bench.faults`: run the fault matrix, write the measured table; 0 only where every figure is within bounds.

`make faults` takes 5 trials of each fault, with `FULL=1` 100. Only a run of the whole matrix with at least 5 trials
writes the table in docs/reliability.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from bench.faults import table
from bench.faults.matrix import MATRIX
from bench.faults.run import Rigs, measure
from bench.faults.table import Row

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "reliability.md"
FEWEST_TRIALS = 5


def main() -> int:
    """The exit code."""
    asked = _parser().parse_args()
    faults = [fault for fault in MATRIX if asked.only in fault.name and (fault.is_quick or not asked.quick)]
    if not faults:
        print(f"--only {asked.only!r}: no fault has that in its name; --list shows them all", file=sys.stderr)
        return 2
    if asked.list:
        print("\n".join(fault.name for fault in faults))
        return 0
    start, load, rows = time.monotonic(), os.getloadavg()[0], list[Row]()
    is_seen = sys.stderr.isatty()
    with Rigs() as rigs:
        for number, fault in enumerate(faults, 1):
            head = f"[{number}/{len(faults)}, {time.monotonic() - start:.0f} s] {fault.name}"

            def told(trial: int, head: str = head) -> None:
                if is_seen or trial == 1:
                    of = f": trial {trial} of {asked.trials}" if is_seen else ""
                    print(f"{head}{of}", end="\r" if is_seen else "\n", file=sys.stderr, flush=True)

            found = measure(fault, asked.trials, rigs, told)
            rows += found
            for row in found:
                if not asked.json:
                    print(row.as_markdown(), flush=True)
                if row.problem:
                    print(row.problem, file=sys.stderr, flush=True)
    failed, took_s = [row for row in rows if not row.is_passed], time.monotonic() - start
    if asked.json:
        print(json.dumps([row.as_data() for row in rows]))
    summary = f"{len(rows) - len(failed)} of {len(rows)} figures within their bounds, {took_s:.0f} s"
    if len(faults) < len(MATRIX) or asked.trials < FEWEST_TRIALS:
        print(f"{summary}; no table written: that takes all faults and {FEWEST_TRIALS} trials", file=sys.stderr)
    else:
        table.write(PAGE, table.as_markdown(rows, took_s=took_s, load=(load, os.getloadavg()[0])))
        print(f"{summary}; table written into {PAGE.name}", file=sys.stderr)
    return 1 if failed or not rows else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.faults", epilog="example: python -m bench.faults --only policy --json")
    parser.add_argument("--trials", type=int, default=5, help="of each fault; default: %(default)s")
    parser.add_argument("--only", default="", metavar="TEXT", help="faults whose name holds the text; writes no table")
    parser.add_argument("--quick", action="store_true", help="the subset of make test; writes no table")
    parser.add_argument("--list", action="store_true", help="name the faults and do nothing")
    parser.add_argument("--json", action="store_true", help="print every value as JSON instead of the table's lines")
    return parser


if __name__ == "__main__":
    sys.exit(main())
