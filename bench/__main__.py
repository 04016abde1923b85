"""`python -m bench`: measure everything, print the table with the goals beside the figures."""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from bench import report, stages
from bench.result import Result, table

SUBJECTS = (
    "startup",
    "latency",
    "throughput",
    "images",
    "urgent",
    "estop",
    "intent",
    "timers",
    "recording",
    "virtual",
    "hosts",
    "episodes",
    "stalled",
    "web",
    "scale",
)
QUICK = ("startup", "latency", "throughput", "images", "timers")
"""What `make bench` measures in about five minutes."""
BESIDE = {"hosts": "stalled"}
"""Begun meanwhile: a minute in which a process stands still, beside what waits for a link or counts its own CPU."""


def main() -> int:
    """0 where every goal is reached, 1 where one is missed."""
    parser = argparse.ArgumentParser(prog="bench", epilog="example: python -m bench latency --json")
    parser.add_argument("subjects", nargs="*", choices=[*SUBJECTS, []], default=[], help=", ".join(SUBJECTS))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help=f"{', '.join(QUICK)}, and less of them")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md and .png")
    arguments = parser.parse_args()
    if arguments.write and arguments.subjects:
        parser.error("--write is for the whole table; leave the subjects out")
    machine = report.machine()
    began_s = time.monotonic()
    asked = [name for name in SUBJECTS if name in (arguments.subjects or (QUICK if arguments.quick else SUBJECTS))]
    results, failed = _measure_all(asked, is_quick=arguments.quick)
    print(f"all took {time.monotonic() - began_s:.0f} s", file=sys.stderr)
    if arguments.json:
        print(json.dumps({"machine": machine, "results": [result.as_data() for result in results]}, indent=2))
    else:
        print(table(results))
    if arguments.write:
        report.write(results, machine, stages.table(), "quick" if arguments.quick else "full")
    missed = [result.name for result in results if not result.is_met]
    if missed:
        print(f"missed: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed or failed else 0


def _measure_all(subjects: Sequence[str], *, is_quick: bool) -> tuple[list[Result], list[str]]:
    """The results, and which subjects could not be measured."""
    results: list[Result] = []
    failed: list[str] = []
    with ThreadPoolExecutor(1) as aside:
        begun: dict[str, Future[list[Result]]] = {}
        for name in subjects:
            beside = BESIDE.get(name, "")
            if beside in subjects:
                begun[beside] = aside.submit(_measure_apart, beside, is_quick=is_quick)
            try:
                results += begun[name].result() if name in begun else _measure(name, is_quick=is_quick)
            except (
                RuntimeError,
                OSError,
                subprocess.SubprocessError,
            ) as problem:  # of one subject; the others are still worth their time
                failed.append(name)
                print(f"{name} could not be measured: {problem}", file=sys.stderr)
    return results, failed


def _measure_apart(name: str, *, is_quick: bool) -> list[Result]:
    """In a process of its own. Raises SubprocessError where that does not tell what it measured."""
    command = [sys.executable, "-m", "bench", name, "--json", *(["--quick"] if is_quick else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    try:
        return [Result.from_data(one) for one in json.loads(done.stdout)["results"]]
    except (ValueError, KeyError) as problem:
        raise subprocess.SubprocessError(f"it ended with {done.returncode} and no figures") from problem


def _measure(name: str, *, is_quick: bool) -> list[Result]:
    measure = importlib.import_module(f"bench.{name}").measure
    options = {"is_quick": True} if is_quick and "is_quick" in inspect.signature(measure).parameters else {}
    print(f"measuring {name} ...", file=sys.stderr, flush=True)
    began_s = time.monotonic()
    results: list[Result] = measure(**options)
    print(f"{name} took {time.monotonic() - began_s:.0f} s", file=sys.stderr, flush=True)
    return results


if __name__ == "__main__":
    sys.exit(main())
