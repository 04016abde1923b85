"""`python -m bench`: measure everything, print the table with the goals beside the figures."""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys

from bench.result import Result, table

SUBJECTS = ("startup", "latency", "throughput", "images", "timers", "recording", "virtual", "hosts", "episodes")


def main() -> int:
    """0 where every goal is reached, 1 where one is missed."""
    parser = argparse.ArgumentParser(prog="bench", epilog="example: python -m bench latency --json")
    parser.add_argument("subjects", nargs="*", choices=[*SUBJECTS, []], default=[], help=", ".join(SUBJECTS))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results: list[Result] = []
    for name in arguments.subjects or SUBJECTS:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        results.extend(importlib.import_module(f"bench.{name}").measure())
    if arguments.json:
        machine = {"python": platform.python_version(), "system": platform.platform()}
        print(json.dumps({"machine": machine, "results": [result.as_data() for result in results]}, indent=2))
    else:
        print(table(results))
    return 0 if all(result.is_met for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
