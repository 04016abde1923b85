"""`make help` lists every target that says what it is for."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def make(*arguments: str, **environment: str) -> list[str]:
    """The lines that `make` writes in the project's folder; it is told of no make above it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYENV"))}
    said = subprocess.run(
        ["make", *arguments], cwd=ROOT, env=clean | environment, capture_output=True, text=True, timeout=60, check=True
    )
    return said.stdout.splitlines()


def test_help_lists_every_target_that_says_what_it_is_for() -> None:
    told = dict(re.findall(r"^([^\s:#]+):.*?## (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert "first-hour" in told
    assert dict(line.split(maxsplit=1) for line in make("help")) == told
