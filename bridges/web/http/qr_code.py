"""An address as a QR code, so that a phone opens it: the only file that knows `segno`."""

from __future__ import annotations

import io

QUIET = 2
"""Light modules around it, at a terminal and on a page."""


def path_of(text: str) -> dict[str, str | int] | None:
    """Its dark modules as the path of an SVG, and how many it is wide; None where segno is not installed."""
    try:
        import segno
    except ImportError:
        return None
    rows = segno.make(text, micro=False).matrix
    dark = "".join(
        f"M{x + QUIET} {y + QUIET}h1v1h-1z" for y, row in enumerate(rows) for x, is_dark in enumerate(row) if is_dark
    )
    return {"path": dark, "width": len(rows) + 2 * QUIET}


def for_terminal(text: str) -> str:
    """Two modules to a character; "" where segno is not installed."""
    try:
        import segno
    except ImportError:
        return ""
    out = io.StringIO()
    segno.make(text, micro=False).terminal(out, border=QUIET, compact=True)
    return out.getvalue()
