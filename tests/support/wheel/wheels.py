"""The wheel of this tree, and environments that hold nothing but a wheel and what its metadata asks for."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.metadata import Distribution, PackageNotFoundError, PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[3]


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this tree into a folder."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (file,) = folder.glob("polyrhythm-*.whl")
    return file


def install(wheel: Path, folder: Path, only: Sequence[str] = ()) -> Path:
    """A new environment with the wheel and its dependencies, without extras; its Python.

    `only` are packages of it that are there; the others and all entry points are not. The dependencies are linked from
    the environment of the tests: no index is asked, and what is not in the wheel's metadata is not there.
    """
    venv.create(folder, with_pip=False)
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    zipfile.ZipFile(wheel).extractall(site)
    (info,) = site.glob("polyrhythm-*.dist-info")
    if only:
        (info / "entry_points.txt").unlink()
        for package in {"runtime", "nodes", "bridges", "polyrhythm"} - {*only}:
            shutil.rmtree(site / package)
    for needed in _closure(_needed(PathDistribution(info))).values():
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


def extras(wheel: Path) -> dict[str, set[str]]:
    """The distributions that each extra of a wheel brings."""
    (metadata,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".dist-info/METADATA"))
    text = zipfile.ZipFile(wheel).read(metadata).decode()
    named: dict[str, set[str]] = {}
    for line in re.findall(r"^Requires-Dist: (.+)$", text, re.MULTILINE):
        if match := re.search(r"extra == '([^']+)'", line):
            named.setdefault(match[1], set()).add(canonicalize_name(Requirement(line).name))
    return {extra: names | set(_closure(names)) for extra, names in named.items()}
