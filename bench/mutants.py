"""`python -m bench.mutants`: change the guard's code in every way that mutmut knows and count what the tests notice.

Works in a copy of the tree. Decorated handlers, which mutmut leaves alone, are proven by the fault matrix instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GOAL = 0.95
STEPS = "600"  # of the random stories, for each mutant
TREE = ("runtime", "nodes", "bridges", "launch", "tests", "pyproject.toml", "README.md")


def main() -> int:
    """0 where enough are killed, 1 where not; prints the survivors."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for name in TREE:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, Path(folder) / name, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy(source, folder)
        command = [sys.executable, "-c", "from mutmut.__main__ import cli; cli()"]
        environment = {**os.environ, "GUARD_STEPS": STEPS}
        subprocess.run([*command, "run"], cwd=folder, env=environment, check=False, stdout=subprocess.DEVNULL)
        listed = subprocess.run(
            [*command, "results", "--all", "true"], cwd=folder, capture_output=True, text=True, check=False
        )
    lines = [line.strip() for line in listed.stdout.splitlines() if ": " in line]
    results = Counter(line.rpartition(": ")[2] for line in lines)
    for line in lines:
        if not line.endswith((": killed", ": timeout")):
            print(line)
    total, killed = sum(results.values()), results["killed"] + results["timeout"]
    share = killed / total if total else 0.0
    print(f"{killed} of {total} mutants killed: {share:.1%}; goal {GOAL:.0%}")
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
