"""MuJoCo, imported without the window library that its first line of Python asks for.

`mujoco` imports glfw, and that a parser of C, for windows that few processes open: half of the time that its import
takes. It is imported when one is opened.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

_WINDOWS = "glfw"


class _Later(ModuleType):
    """Stands for a module that is imported when something in it is asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


if _WINDOWS in sys.modules:
    import mujoco
else:
    sys.modules[_WINDOWS] = _Later(_WINDOWS)
    try:
        import mujoco
    finally:
        del sys.modules[_WINDOWS]

__all__ = ["mujoco"]
