"""The names of `runtime`, for code in which that word is taken; `polyrhythm.msgs` has its messages."""

from pathlib import Path as _Path
from typing import TYPE_CHECKING as _TYPE_CHECKING

import runtime as _runtime
from runtime import *  # noqa: F403  # exactly its __all__

_found = getattr(_runtime, "__file__", None) or "an unknown place"
if _Path(_found).parents[1:2] != _Path(__file__).parents[1:2]:
    raise ImportError(
        f"`runtime` is {_found}, which hides Polyrhythm's package of that name; rename that file or folder"
    )

if _TYPE_CHECKING:
    __version__: str


def __getattr__(name: str) -> str:
    """The version is looked up when it is asked for."""
    if name == "__version__":
        return _runtime.__version__
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
