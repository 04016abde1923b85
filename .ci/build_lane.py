"""A hook of the build: compiles runtime/transport/_lane.c where a C compiler is. Without one the wheel is pure Python.

`CC` and `CFLAGS` are obeyed. An editable installation gets the library beside its source.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARY = "runtime/transport/_lane.abi3.so"


class LaneBuild(BuildHookInterface[Any]):
    """Adds the library to a wheel, which is then for this kind of machine, and for CPython 3.11 and later."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or sys.platform != "linux" or sys.implementation.name != "cpython":
            return
        self.folder = tempfile.TemporaryDirectory()
        made = Path(self.folder.name) / "_lane.abi3.so"
        problem = _compile(Path(self.root) / "runtime" / "transport" / "_lane.c", made)
        if problem:
            print(f"without a C compiler that works, messages take the way in Python: {problem}", file=sys.stderr)
            return
        if version == "editable":
            target = Path(self.root) / LIBRARY
            beside = target.with_suffix(".new")
            beside.write_bytes(made.read_bytes())
            beside.replace(target)  # whoever has the old one loaded keeps it
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        build_data["force_include"][str(made)] = LIBRARY


def _compile(source: Path, made: Path) -> str:
    """Why it cannot be compiled here; "" where it was."""
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    options = [
        "-O2",
        "-shared",
        "-fPIC",
        *shlex.split(os.environ.get("CFLAGS", "")),
        f"-I{sysconfig.get_path('include')}",
    ]
    try:
        done = subprocess.run(
            [*shlex.split(compiler), *options, str(source), "-o", str(made)], capture_output=True, text=True
        )
    except OSError as problem:
        return str(problem)
    return (done.stderr.strip()[-400:] or f"{compiler} ended with code {done.returncode}") if done.returncode else ""
