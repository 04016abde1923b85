"""The origin of a run's results: machine, package versions, and the commit of its launch file."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

_INSTALLED = ".dist-info"


def versions() -> dict[str, str]:
    """The versions of the installed packages that results depend on.

    They are read from folder names: importlib.metadata alone takes a tenth of the start of a small graph.
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
    """The machine in words, as `platform.platform()` has them, which starts a program to ask for the processor."""
    uname = os.uname()
    system = f"{uname.sysname}-{uname.release}-{uname.machine}-with-{''.join(platform.libc_ver())}"
    return f"{uname.nodename}: {system}, {os.cpu_count()} cores"


def blas_kernel() -> str:
    """The processor for which numpy multiplies matrices, such as "Haswell"; "" where that is not known.

    Each rounds in its own way; `OPENBLAS_CORETYPE` in the environment selects another one.
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
    """The commit of a folder, with a mark where its files differ; "" outside a checkout."""
    return git_asked(folder)()


def git_asked(folder: Path) -> Callable[[], str]:
    """Ask for the same and go on; what is given back waits for the answer, 2 s at most."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty"]
    try:
        asked = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return str

    @cache
    def answer() -> str:
        with asked:
            try:
                told, _ = asked.communicate(timeout=2)
            except subprocess.TimeoutExpired:
                asked.kill()
                return ""
        return told.strip() if asked.returncode == 0 else ""

    return answer
