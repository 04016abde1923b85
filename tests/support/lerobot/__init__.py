"""A stand-in with LeRobot 0.6's contract, and a plug-in that behaves as a bus does, installed as distributions.

`environment(folder)` makes a Python of its own that has both, without a network; `bus` is how a test acts on the arm.
Where LEROBOT_PYTHON names a Python with LeRobot itself and the plug-in, as `make interop` does, tests take that one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy

HERE = Path(__file__).parent
STAND_IN, PLUG_IN = "lerobot", "lerobot_robot_bus"


def wheel(name: str, version: str, folder: Path) -> Path:
    """One of the two as a wheel: a package, its metadata, and a record of both."""
    file = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    texts = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    for source in sorted((HERE / name).rglob("*.py.txt")):
        texts[str(source.relative_to(HERE / name)).removesuffix(".txt")] = source.read_text()
    texts[f"{info}/RECORD"] = "".join(f"{one},,\n" for one in [*texts, f"{info}/RECORD"])
    with zipfile.ZipFile(file, "w") as archive:
        for one, text in texts.items():
            archive.writestr(one, text)
    return file


def environment(folder: Path) -> str:
    """The Python of a fresh environment with the stand-in and the plug-in, or LeRobot's own."""
    if real := os.environ.get("LEROBOT_PYTHON"):
        return real
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in ("numpy", "numpy.libs"):  # LeRobot brings it
        if (found := Path(numpy.__file__).parents[1] / name).exists():
            (packages / name).symlink_to(found)
    for name, version in ((STAND_IN, "0.6.1"), (PLUG_IN, "1.0")):
        with zipfile.ZipFile(wheel(name, version, folder)) as archive:
            archive.extractall(packages)
    return str(folder / "bin" / "python")
