"""Pages of several people in one browser, for tests: each a person of their own, of a desk's or a phone's size."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.pages import browsing
from tests.support.pages.browsing import MARKS, a_browser, text

__all__ = ["DESK", "HELD_MS", "MARKS", "PHONE", "a_browser", "come", "kept", "text", "wait"]
HELD_MS = 400
"""Longer than a key has to be held that does something once."""
DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


def wait(page: Any, fact: Callable[[], bool], what: str, within_s: float = 60.0) -> None:
    """As the console's tests wait, with the patience that several processes and pages need on a busy machine."""
    browsing.wait(page, fact, what, within_s)


def come(chromium: Any, address: str, problems: list[str], size: dict[str, int] | None = None) -> Any:
    """A page that has been let in and shares no storage with others; what its scripts complain of is kept."""
    page = chromium.new_context(viewport=size or DESK).new_page()
    page.set_default_timeout(60_000)
    page.on("pageerror", lambda problem: problems.append(str(problem)))
    page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    page.goto(address)
    page.wait_for_selector("body:not([data-role=''])")
    return page


def kept(picture: bytes, path: Path) -> None:
    """A screenshot as a small file."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.open(io.BytesIO(picture)).convert("RGB").save(path, quality=70, method=6)
