"""`make help` lists every target that says what it is for, and `make pythons` takes each newer Python that it finds."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

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


def put(folder: Path, version: str, *, does_run: bool) -> None:
    """A Python that tells its name and version; one that does not run is as a shim with none behind it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (f"python{version}", "python"):
        (folder / name).write_text(
            f'#!/bin/sh\ncase "$1" in -c) echo "$0";; *) echo "Python {version}.0";; esac\n' * does_run
            or "#!/bin/sh\nexit 127\n"
        )
        (folder / name).chmod(0o755)


@pytest.mark.parametrize("place", ["path", "pyenv"])
def test_a_newer_python_is_taken_where_it_is_found_and_told_where_not(place: str, tmp_path: Path) -> None:
    for version in ("3.12", "3.13", "3.14"):
        put(tmp_path / "path", version, does_run=False)
    there = {"PATH": f"{tmp_path / 'path'}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    missing = [f"-- Python {version}: not found" for version in ("3.12", "3.13", "3.14")]
    none = make("-n", "pythons-themselves", **there)  # so make installs nothing, and the loop runs
    assert [line for line in none if line.startswith(("--", "pythons:"))] == [
        *missing, "pythons: skipped: no Python of 3.12 3.13 3.14 is found"
    ]  # fmt: skip
    put(tmp_path / {"path": "path", "pyenv": ".pyenv/versions/3.14.0/bin"}[place], "3.14", does_run=True)
    found = make("-n", "pythons-themselves", **there)
    assert [line for line in found if line.startswith(("--", "pythons:"))] == [*missing[:2], "-- Python 3.14.0"]
    assert any(".interop/python3.14/bin/python -m pytest" in line for line in found)
