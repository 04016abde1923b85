"""What a run is made of: machine, versions of packages, and the commit that its launch file is at."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def versions() -> dict[str, str]:
    """The packages that results depend on, as far as they are installed."""
    names = ("polyrhythm", "pyzmq", "msgspec", "numpy", "mujoco", "opencv-python-headless", "onnxruntime")
    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine() -> str:
    """The machine in words."""
    return f"{platform.node()}: {platform.platform()}, {os.cpu_count()} cores"


def git_state(folder: Path) -> str:
    """The commit that a folder is at, with a mark where the tree differs; "" outside a checkout."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=2, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
