"""`python -m bench.faults`: run the fault matrix, write the measured table; 0 only where every figure is within bounds.

`make faults` takes 5 trials of each fault, with `FULL=1` 100.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from bench.faults import table
from bench.faults.matrix import MATRIX
from bench.faults.run import measure

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "reliability.md"


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="bench.faults", epilog="example: python -m bench.faults --only policy")
    parser.add_argument("--trials", type=int, default=5, help="of each fault; default: %(default)s")
    parser.add_argument("--only", default="", metavar="TEXT", help="faults whose name holds the text; writes no table")
    parser.add_argument("--quick", action="store_true", help="the subset of make test; writes no table")
    arguments = parser.parse_args()
    start, load = time.monotonic(), os.getloadavg()[0]
    rows = []
    for fault in MATRIX:
        if arguments.only not in fault.name or (arguments.quick and not fault.is_quick):
            continue
        for row in measure(fault, arguments.trials):
            rows.append(row)
            print(row.as_markdown(), flush=True)
            if row.problem:
                print(row.problem, file=sys.stderr, flush=True)
    if not arguments.only and not arguments.quick:
        loads = (load, os.getloadavg()[0])
        table.write(PAGE, table.as_markdown(rows, took_s=time.monotonic() - start, load=loads))
    failed = [row for row in rows if not row.is_passed]
    print(f"{len(rows) - len(failed)} of {len(rows)} figures within their bounds, {time.monotonic() - start:.0f} s")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
