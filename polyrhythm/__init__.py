"""The names of `runtime`, for code in which that word is taken; `polyrhythm.msgs` has its messages."""

from pathlib import Path as _Path

import runtime as _runtime
from runtime import *  # noqa: F403  # exactly its __all__

_found = getattr(_runtime, "__file__", None) or "an unknown place"
if _Path(_found).parents[1:2] != _Path(__file__).parents[1:2]:
    raise ImportError(
        f"`runtime` is {_found}, which hides Polyrhythm's package of that name; rename that file or folder"
    )
