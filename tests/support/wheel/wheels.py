"""The wheels of this tree, and environments that hold nothing but wheels and what their metadata asks for."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import Distribution, PackageNotFoundError, PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[3]


FOLDERS = {"polyrhythm": ".", "polyrhythm-nodes": "nodes", "polyrhythm-bridges": "bridges"}
"""Where each is built, by its name."""
BUILD = """
import os, sys
from hatchling.build import build_wheel

for folder in sys.argv[2:]:
    os.chdir(folder)
    build_wheel(sys.argv[1])
"""


def build_wheels(folder: Path) -> dict[str, Path]:
    """Build the wheels of this tree into a folder, as pip has them built; each by its name."""
    command = [sys.executable, "-c", BUILD, str(folder), *(str(ROOT / place) for place in FOLDERS.values())]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return {name: next(folder.glob(f"{name.replace('-', '_')}-*.whl")) for name in FOLDERS}


def install(wheels: Iterable[Path], folder: Path) -> Path:
    """A new environment with these wheels and their dependencies, without extras; its Python.

    The dependencies are linked from the environment of the tests: no index is asked, and what is not in the wheels'
    metadata is not there.
    """
    venv.create(folder, with_pip=False)
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    for wheel in wheels:
        zipfile.ZipFile(wheel).extractall(site)
    asked = {name for info in site.glob("polyrhythm*.dist-info") for name in _needed(PathDistribution(info))}
    for needed in _closure(asked - {*FOLDERS}).values():
        for name in {file.parts[0] for file in needed.files or () if file.parts[0] not in ("..", "__pycache__")}:
            source = Path(str(needed.locate_file(name)))
            if source.exists() and not (site / name).exists():
                (site / name).symlink_to(source)
    return folder / "bin" / "python"


def _closure(names: Iterable[str]) -> dict[str, Distribution]:
    """Those distributions and all that they need without extras, as far as they are installed, by name."""
    seen: dict[str, Distribution] = {}
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        with suppress(PackageNotFoundError):  # such as a robot's library
            seen[name] = distribution(name)
            waiting |= _needed(seen[name]) - set(seen)
    return seen


def _needed(by: Distribution) -> set[str]:
    """What a distribution needs without extras, by name."""
    requirements = [Requirement(text) for text in by.requires or ()]
    return {
        canonicalize_name(requirement.name)
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    }


def requirements(wheel: Path) -> list[str]:
    """What a wheel's metadata asks for, with its extras."""
    (metadata,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".dist-info/METADATA"))
    return re.findall(r"^Requires-Dist: (.+)$", zipfile.ZipFile(wheel).read(metadata).decode(), re.MULTILINE)


def extras(wheel: Path) -> dict[str, set[str]]:
    """The distributions that each extra of a wheel brings."""
    named: dict[str, set[str]] = {}
    for line in requirements(wheel):
        if match := re.search(r"extra == '([^']+)'", line):
            named.setdefault(match[1], set()).add(canonicalize_name(Requirement(line).name))
    return {extra: names | set(_closure(names)) for extra, names in named.items()}
