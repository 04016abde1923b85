"""What the rooms draw with: `Figure`, `Axes`, a colour map's colours, and the font that comes along."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

# In a home that cannot be written it keeps its cache in /tmp, and says so on every import; the pictures are the same.
logging.getLogger("matplotlib").setLevel(logging.ERROR)

import matplotlib  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

__all__ = ["FONTS", "Axes", "Figure", "colour_map", "settings"]

FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
"""DejaVu Sans lies here."""
settings = matplotlib.rc_context


def colour_map(name: str) -> Callable[[int], tuple[float, float, float, float]]:
    """Red, green, blue and alpha for each number, of a map that matplotlib names."""
    return matplotlib.colormaps[name]
