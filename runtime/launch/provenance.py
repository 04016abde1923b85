"""What a run is made of: machine, versions of packages, and the commit that its launch file is at."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

_INSTALLED = ".dist-info"


def versions() -> dict[str, str]:
    """The packages that results depend on, as far as they are installed.

    By the names of their folders: importlib.metadata alone takes a tenth of the start of a small graph.
    """
    names = ("polyrhythm", "pyzmq", "msgspec", "numpy", "mujoco", "opencv-python-headless", "onnxruntime")
    there: dict[str, str] = {}
    for folder in sys.path:
        try:
            entries = os.listdir(folder or ".")
        except OSError:
            continue  # a zip file, or nothing
        for entry in entries:
            if entry.endswith(_INSTALLED):
                name, _, number = entry.removesuffix(_INSTALLED).partition("-")
                there.setdefault(name.lower().replace("_", "-"), number)
    return {"python": platform.python_version(), **{name: there[name] for name in names if name in there}}


def machine() -> str:
    """The machine in words."""
    return f"{platform.node()}: {platform.platform()}, {os.cpu_count()} cores"


def blas_kernel() -> str:
    """The processor for which numpy multiplies matrices, such as "Haswell"; "" without numpy, or where nobody knows.

    Each rounds in its own way, and `OPENBLAS_CORETYPE` in the environment chooses another one.
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or numpy.__file__ is None:
        return ""
    import ctypes  # not at the top: a graph without numpy starts sooner

    folder = Path(numpy.__file__).parent
    for file in (*folder.parent.glob("numpy.libs/*openblas*"), *folder.glob(".dylibs/*openblas*")):
        library = ctypes.CDLL(str(file))
        for symbol in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename"):
            if (ask := getattr(library, symbol, None)) is not None:
                ask.restype = ctypes.c_char_p
                return str(ask().decode())
    return ""


def git_state(folder: Path) -> str:
    """The commit that a folder is at, with a mark where the tree differs; "" outside a checkout."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=2, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
