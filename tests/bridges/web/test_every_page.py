"""Every page at three widths, light and dark: axe finds nothing, nothing sticks out; and pictures for docs/pages.

make pictures
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages.axe import findings
from tests.support.pages.console_run import without_report
from tests.support.pages.page_run import ROOT, PageRun
from tests.support.pages.paging import MARKS, a_browser, come, kept, text, wait

pytestmark = [*MARKS, pytest.mark.long]
FOLDER = os.environ.get("POLYRHYTHM_SCREENSHOTS", "")
SIZES = ((1440, 900), (1024, 768), (390, 844))
SIDEWAYS = ((844, 390), (640, 400))
"""A phone on its side, and a window of 1280 x 800 at 200 %."""
ALL = ("minor", "moderate", "serious", "critical")
TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with a_browser() as opened:
        yield opened


def look(page: Any, name: str, sizes: tuple[tuple[int, int], ...] = SIZES) -> None:
    """At each width, light and dark: what axe finds, what is wider than the window, a picture for the folder."""
    found = []
    for width, height in sizes:
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(400)
            if FOLDER:
                kept(page.screenshot(), Path(FOLDER) / f"{name}-{width}{'-light' if scheme == 'light' else ''}.webp")
            found += [f"{name} at {width}, {scheme}: {one}" for one in findings(page, ALL)]
        if (more := page.evaluate(TOO_WIDE)) > 0:
            found.append(f"{name} at {width}: {more} px stick out")
    page.set_viewport_size({"width": SIZES[0][0], "height": SIZES[0][1]})
    assert found == []


def press(page: Any, selector: str) -> None:
    """Click it, wherever it stands."""
    page.evaluate("(selector) => document.querySelector(selector).click()", selector)


def shows(page: Any, selector: str, words: str) -> None:
    wait(page, lambda: words in text(page, selector), f"{selector} says {words!r}")


def seat(page: Any, name: str) -> None:
    press(page, f"#tab-{name}")
    press(page, f"button.seat[data-seat={name}]")
    shows(page, f".holder[data-seat={name}]", "you")


def open_keys(page: Any) -> None:
    """Where the single keys of a page are chosen."""
    press(page, "#chosen-keys summary")


def test_the_console_and_a_study_keep_nobody_out_at_any_width(chromium: Any, tmp_path: Path) -> None:
    problems: list[str] = []
    folder = tmp_path / "study"
    sets = [f"study.folder={folder}", f"trial_recorder.folder={folder}", "study.port=0", "console.port=0"]
    options = [part for one in sets for part in ("--set", one)]
    launch = without_report(ROOT / "launch" / "study.toml", tmp_path / "out")
    with PageRun("run", launch, *options, "--out", tmp_path / "out", pages=4) as run:
        wizard = come(chromium, run.addresses["console", "operator"], problems)
        wait(wizard, lambda: wizard.locator("#things button").count() >= 5, "the robot sees the table")
        look(wizard, "console-first")
        seat(wizard, "policy")
        wizard.locator("#things button").first.dispatch_event("click")
        shows(wizard, "#height", "Fingers")
        press(wizard, "#tab-policy")
        look(wizard, "console-drive")
        look(wizard, "console-drive", SIDEWAYS)
        press(wizard, "#stop")
        shows(wizard, "#guard-mode", "stopped")
        look(wizard, "console-stopped")
        press(wizard, "#resume")
        shows(wizard, "#guard-mode", "holding")
        press(wizard, "button.seat[data-seat=policy]")
        seat(wizard, "vlm")
        look(wizard, "console-act")
        press(wizard, "button.seat[data-seat=vlm]")
        seat(wizard, "planner")
        look(wizard, "console-plan")
        press(wizard, "button.seat[data-seat=planner]")
        press(wizard, "#people")
        wizard.fill("#invite [name=name]", "Zoë")
        press(wizard, "#invite button")
        wait(wizard, lambda: wizard.is_visible("#invited svg"), "an address is there")
        look(wizard, "console-people")
        press(wizard, "#who-close")
        press(wizard, "#layout")
        press(wizard, "#chosen-keys summary")
        look(wizard, "console-layout")
        press(wizard, "#layouts-close")
        viewer = come(chromium, run.addresses["console", "viewer"], problems)
        shows(viewer, "#odometry", "x ")
        look(viewer, "console-viewer")
        viewer.close()
        guide = come(chromium, run.addresses["study", "experimenter"], problems)
        person = come(chromium, run.addresses["study", "participant"], problems)
        shows(person, "#participant", "Welcome")
        look(person, "study-welcome")
        look(guide, "study-before")
        guide.fill("#number", "7")
        guide.keyboard.press("Enter")
        shows(person, "#participant", "I take part of my own free will")
        look(person, "study-consent")
        for box in person.locator(".tick input").all():
            box.check()
        person.click("text=I agree >> nth=-1")
        shows(person, "#participant h2", "About you")
        look(person, "study-questions")
        for _ in range(2):  # it asks whether that is sure
            guide.click("text=Skip this step")
        shows(guide, "#current", "Trial 1")
        guide.click("text=Start trial")
        wait(person, lambda: person.is_visible("#stop"), "the trial runs")
        person.fill("#words", "Please put the cups in the bin.")
        person.keyboard.press("Enter")
        shows(guide, "#lines", "cups in the bin")
        guide.click("#marks button >> nth=3")
        shows(guide, "#lines", "laughter")
        wait(person, lambda: person.locator(".story li").count() > 1, "the robot answers")
        look(person, "study-trial")
        look(guide, "study-experimenter")
        guide.click("text=End trial")
        shows(person, "#participant h2", "How demanding")
        look(person, "study-load")
        open_keys(guide)
        look(guide, "study-keys")
        beside = come(chromium, run.addresses["study", "experimenter"].replace("/study#", "/recordings#"), problems)
        wait(beside, lambda: beside.locator("body[data-role]:not([data-role=''])").count() == 1, "they are let in")
        look(beside, "recordings")
        beside.fill("#rater", "ada")
        wait(beside, lambda: beside.locator(".recording").count() > 0, "the trial is in the list")
        beside.locator(".recording").first.click()
        wait(beside, lambda: beside.locator(".dimension").count() == 7, "it is open")
        wait(beside, lambda: beside.locator(".line").count() > 0, "and what was said in it")
        look(beside, "recordings-rating")
        open_keys(beside)
        look(beside, "recordings-keys")
        old = run.addresses["study", "participant"]
        for _ in range(2):
            person.click("#withdraw")
        shows(person, "#participant", "You have stopped")
        look(person, "study-stopped")
        late = chromium.new_context().new_page()
        late.goto(old)
        shows(late, "#cover", "somebody whose part is over")
        look(late, "study-refused")
    assert problems == []


LIGHT = """
[nodes.console]
use    = "bridges.web.console.node:Console"
params = { port = 0 }
"""


def test_what_a_participant_sees_of_the_console_keeps_nobody_out_at_any_width(chromium: Any, tmp_path: Path) -> None:
    problems: list[str] = []
    launch = tmp_path / "light.toml"
    launch.write_text(LIGHT)
    with PageRun("run", launch, "--out", tmp_path / "out", pages=3) as run:
        page = come(chromium, run.addresses["console", "participant"], problems)
        page.fill("#words", "Hello there.")
        page.keyboard.press("Enter")
        shows(page, "#story", "Hello there.")
        look(page, "console-participant")
    assert problems == []


def test_the_chat_of_an_episode_keeps_nobody_out_at_any_width(chromium: Any, tmp_path: Path) -> None:
    problems: list[str] = []
    launch = ROOT / "launch" / "sotopia-chat.toml"
    with PageRun("run", launch, "--set", "buyer.port=0", "--out", tmp_path / "out") as run:
        page = come(chromium, run.addresses["buyer", "participant"], problems)
        shows(page, "#turn", "Your turn")
        look(page, "episode")
    assert problems == []
