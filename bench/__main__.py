"""`python -m bench`: measure everything, print the table with the goals beside the figures."""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import subprocess
import sys
import time

from bench import report, stages
from bench.result import Result, table

SUBJECTS = (
    "startup",
    "latency",
    "throughput",
    "images",
    "urgent",
    "timers",
    "stalled",
    "recording",
    "virtual",
    "hosts",
    "episodes",
    "web",
)


def main() -> int:
    """0 where every goal is reached, 1 where one is missed."""
    parser = argparse.ArgumentParser(prog="bench", epilog="example: python -m bench latency --json")
    parser.add_argument("subjects", nargs="*", choices=[*SUBJECTS, []], default=[], help=", ".join(SUBJECTS))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and a shorter pause, where there are such")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md and .png; measures everything")
    arguments = parser.parse_args()
    if arguments.write and arguments.subjects:
        parser.error("--write is for the whole table; leave the subjects out")
    machine = report.machine()
    results: list[Result] = []
    failed: list[str] = []
    for name in arguments.subjects or SUBJECTS:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        began_s = time.monotonic()
        try:
            results.extend(_measure(name, is_quick=arguments.quick))
            print(f"{name} took {time.monotonic() - began_s:.0f} s", file=sys.stderr, flush=True)
        except (
            RuntimeError,
            OSError,
            subprocess.SubprocessError,
        ) as problem:  # of one subject; the others are still worth their time
            failed.append(name)
            print(f"{name} could not be measured: {problem}", file=sys.stderr)
    if arguments.json:
        print(json.dumps({"machine": machine, "results": [result.as_data() for result in results]}, indent=2))
    else:
        print(table(results))
    if arguments.write:
        report.write(results, machine, stages.table())
    missed = [result.name for result in results if not result.is_met]
    if missed:
        print(f"missed: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed or failed else 0


def _measure(name: str, *, is_quick: bool) -> list[Result]:
    measure = importlib.import_module(f"bench.{name}").measure
    options = {"is_quick": True} if is_quick and "is_quick" in inspect.signature(measure).parameters else {}
    results: list[Result] = measure(**options)
    return results


if __name__ == "__main__":
    sys.exit(main())
