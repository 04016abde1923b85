"""A real browser for tests of pages: Chromium through Playwright, and waiting without scripts in the page."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.running import eventually

CHROMIUM = shutil.which("chromium")
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium, and its end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        try:
            yield opened
        finally:
            opened.close()


def visit(opened: Any, address: str, problems: list[str], size: dict[str, int] | None = None) -> Any:
    """A page of its own person (no storage shared) that has been let in; what its scripts complain of is kept."""
    page = opened.new_context(viewport=size or DESK).new_page()
    page.on("pageerror", lambda problem: problems.append(str(problem)))
    page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    page.goto(address)
    page.wait_for_selector("body:not([data-role=''])")
    return page


def wait(page: Any, fact: Callable[[], bool], what: str, within_s: float = 60.0) -> None:
    """As `eventually`, with the browser's own events handled meanwhile."""

    def looked() -> bool:
        page.wait_for_timeout(20)
        return fact()

    eventually(looked, what, within_s)


def text(page: Any, selector: str) -> str:
    """What stands there."""
    return str(page.text_content(selector) or "")
