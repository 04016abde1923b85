"""Chromium on the console's page for tests: one browser per module, and waits that evaluate nothing in the page."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from runtime.clock import SystemClock, to_ns
from tests.support.pages.console_run import ConsoleRun
from tests.support.running import eventually

ASKS_AGAIN_S = 5.0
HOLD_MS = 700
"""Longer than a key has to be held that takes a seat."""
CHROMIUM = shutil.which("chromium")
WITHOUT = [
    "WebUIOmniboxPopup",  # every window would load the lists of its address bar: two more pages for each of ours
    "WebUIOmniboxAimPopup",
    "SpareRendererForSitePerProcess",  # and start a process for a page that never comes
    "AvoidUnnecessaryBeforeUnloadCheckSync",  # from here on as Playwright has it, whose list is replaced by this one
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
]
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--disable-features={','.join(WITHOUT)}",
]
MARKS = [
    pytest.mark.processes,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # playwright's own pipes
]
"""For `pytestmark` of a module that opens a browser."""


@contextmanager
def a_browser(*more: str) -> Iterator[Any]:
    """To start one takes longer than most tests: share it. `more`: options of Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=[*OPTIONS, *more])
        try:
            yield opened
        finally:
            opened.close()


def visit(page: Any, address: str) -> None:
    """Opens the console and waits until it is let in; the page's own policy forbids a test to poll by `eval`."""
    page.goto(address)
    page.wait_for_selector("body:not([data-role=''])")


@contextmanager
def page_of(chromium: Any, run: ConsoleRun, role: str = "operator", **more: Any) -> Iterator[Any]:
    """A page that is let in, and in which no script fails; what it keeps is gone with it."""
    problems: list[str] = []
    context = chromium.new_context(**{"viewport": {"width": 1280, "height": 800}, **more})
    try:
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda problem: problems.append(str(problem)))
        page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
        visit(page, run.page(role))
        yield page
    finally:
        context.close()
    assert problems == []


def wait(page: Any, fact: Callable[[], bool], what: str, within_s: float = 60.0) -> None:
    """As `eventually`, with the browser's own events handled meanwhile."""

    def looked() -> bool:
        page.wait_for_timeout(20)
        return fact()

    eventually(looked, what, within_s)


def text(page: Any, selector: str) -> str:
    """What stands there."""
    return str(page.text_content(selector))


def x_of(page: Any) -> float:
    """How far ahead the base is, as the page says; m."""
    found = re.search(r"x (-?[\d.]+) m", text(page, "#odometry"))
    return float(found[1]) if found else 0.0


def take_driving(page: Any) -> None:
    """Sit down on the policy's seat, also where another page was; again where the guard's answer came too late."""
    press_until(page, lambda: holder(page) == "you", "the seat is taken")


def give_back(page: Any) -> None:
    """Leave the policy's seat to the model; again where the guard's answer came too late."""
    press_until(page, lambda: holder(page) == "model", "the model has the seat again")


def holder(page: Any) -> str:
    """Who has the policy's seat, as the page says."""
    return text(page, ".holder[data-seat=policy]")


def press_until(page: Any, fact: Callable[[], bool], what: str) -> None:
    """Hold the key of the seat until something is so, and again where a busy page did not count the first time."""
    clock = SystemClock()
    asked_ns = 0

    def is_so() -> bool:
        nonlocal asked_ns
        if fact():
            return True
        if clock.now_ns() - asked_ns > to_ns(ASKS_AGAIN_S):
            page.keyboard.press("p", delay=HOLD_MS)
            asked_ns = clock.now_ns()
        return False

    wait(page, is_so, what)


def resume(page: Any) -> None:
    """Say "go on" and leave the mouse where it is."""
    page.evaluate("() => document.querySelector('#resume').click()")


def go_on(page: Any) -> None:
    """Lift what stop there is: latched, of a person, or of one whose page was lost a moment ago."""

    def may_move() -> bool:
        mode = text(page, "#guard-mode")
        if mode == "stopped":
            resume(page)  # a latch takes two of these
            page.wait_for_timeout(300)
        return mode in ("holding", "moving", "armed")

    wait(page, may_move, "the robot may move")
