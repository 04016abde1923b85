"""The real page in a real browser against the real simulator: speak, stop, drive, sit in, lose the link."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runtime.bag import BagReader
from runtime.clock import SystemClock
from tests.console_run import ROOT, ConsoleRun
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
HELD_WITHIN_MS = 300.0

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # playwright's own pipes
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleRun]:
    with ConsoleRun(ROOT / "launch" / "wizard.toml", tmp_path_factory.mktemp("wizard")) as started:
        yield started


@contextmanager
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        try:
            yield opened
        finally:
            opened.close()


def visit(page: Any, address: str) -> None:
    """Opens the console and waits until it is let in; the page's own policy forbids a test to poll by `eval`."""
    page.goto(address)
    page.wait_for_selector("body:not([data-role=''])")


@contextmanager
def page_of(run: ConsoleRun, role: str = "operator") -> Iterator[Any]:
    """A page that is let in, and in which no script fails."""
    problems: list[str] = []
    with browser() as opened:
        page = opened.new_page(viewport={"width": 1280, "height": 800})
        page.on("pageerror", lambda problem: problems.append(str(problem)))
        page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
        visit(page, run.page(role))
        yield page
    assert problems == []


def wait(page: Any, fact: Callable[[], bool], what: str, within_s: float = 20.0) -> None:
    """As `eventually`, with the browser's own events handled meanwhile."""

    def looked() -> bool:
        page.wait_for_timeout(20)
        return fact()

    eventually(looked, what, within_s)


def text(page: Any, selector: str) -> str:
    return str(page.text_content(selector))


def x_of(page: Any) -> float:
    """How far ahead the base is, as the page says."""
    found = re.search(r"x (-?[\d.]+) m", text(page, "#odometry"))
    return float(found[1]) if found else 0.0


def take_driving(page: Any) -> None:
    page.keyboard.press("p")
    wait(page, lambda: text(page, ".holder[data-seat=policy]") == "you", "the seat is taken")


def test_drive_to_a_mark_give_back_and_stop(run: ConsoleRun) -> None:
    with page_of(run) as page:
        wait(page, lambda: "x " in text(page, "#odometry"), "the robot is seen")
        start = x_of(page)
        take_driving(page)
        page.keyboard.down("w")
        wait(page, lambda: x_of(page) > start + 0.15, "the robot drives ahead")
        page.keyboard.up("w")
        wait(page, lambda: "0.00 m/s" in text(page, "#odometry"), "it stands when the key is let go")
        there = x_of(page)
        assert 0.15 < there - start < 0.45
        page.keyboard.down("s")
        wait(page, lambda: x_of(page) < start + 0.05, "and back again")
        page.keyboard.up("s")
        page.keyboard.press("m")
        wait(page, lambda: "mark" in text(page, "#story"), "the mark is in the story")
        page.keyboard.press("Space")
        wait(page, lambda: text(page, "#guard-mode") == "stopped", "the space bar stops")
        page.click("#resume")
        wait(page, lambda: text(page, "#guard-mode") == "holding", "and is resumed")
        page.keyboard.press("p")
        wait(page, lambda: text(page, ".holder[data-seat=policy]") == "policy", "the model has the seat again")


def test_a_reload_keeps_the_seat_and_the_story(run: ConsoleRun) -> None:
    with page_of(run) as page:
        take_driving(page)
        page.reload()
        wait(page, lambda: text(page, ".holder[data-seat=policy]") == "you", "the seat is still theirs")
        assert "holds policy" in text(page, "#story")
        page.keyboard.press("p")
        wait(page, lambda: text(page, ".holder[data-seat=policy]") == "policy", "and can be given back")


def test_a_script_as_an_utterance_is_text(run: ConsoleRun) -> None:
    words = "<script>document.title='taken'</script><img src=x onerror=document.title='taken'>"
    with page_of(run) as page:
        page.check("input[name=voice][value=robot]", force=True)
        page.fill("#words", words)
        page.press("#words", "Enter")
        wait(page, lambda: words in text(page, "#story"), "what was said is shown as it was said")
        assert page.locator("#story script, #story img").count() == 0
        assert page.title() == "Polyrhythm console"


def test_two_operators_share_no_seat(run: ConsoleRun) -> None:
    with browser() as opened:
        one, other = opened.new_page(), opened.new_page()
        for page in (one, other):
            visit(page, run.page())
        one.keyboard.press("p")
        wait(one, lambda: text(one, ".holder[data-seat=policy]") == "you", "one has it")
        wait(other, lambda: text(other, ".holder[data-seat=policy]") == "operator", "the other sees who")
        other.keyboard.press("p")  # a forced take-over, in one action
        wait(other, lambda: text(other, ".holder[data-seat=policy]") == "you", "the other has it")
        wait(one, lambda: text(one, ".holder[data-seat=policy]") == "operator", "one has it no more")
        other.keyboard.press("p")
        wait(other, lambda: text(other, ".holder[data-seat=policy]") == "policy", "given back")


def test_an_order_that_is_typed_makes_the_robot_move_and_the_button_stops_it(run: ConsoleRun) -> None:
    with page_of(run) as page:
        page.fill("#words", "Please clear the table: put the cups in the bin")
        page.press("#words", "Enter")
        wait(page, lambda: text(page, "#guard-mode") == "moving", "the robot moves")
        wait(page, lambda: "cup" in text(page, "#action"), "it goes for a cup", 60.0)
        if folder := os.environ.get("POLYRHYTHM_SCREENSHOTS"):
            page.screenshot(path=str(Path(folder) / "console.png"))
        page.click("#tab-vlm")
        page.click("button.seat[data-seat=vlm]")
        wait(page, lambda: text(page, ".holder[data-seat=vlm]") == "you", "the VLM's seat is taken")
        page.click("#things button")
        page.click("[data-act=look]")
        wait(page, lambda: text(page, "#action").startswith("look at the"), "the person's action is the robot's")
        page.click("button.seat[data-seat=vlm]")
        wait(page, lambda: text(page, ".holder[data-seat=vlm]") == "vlm", "the VLM has its seat again")
        page.click("#stop")
        wait(page, lambda: text(page, "#guard-mode") == "stopped", "the button stops")


def test_a_participant_sees_the_dialogue_and_nothing_else(run: ConsoleRun) -> None:
    with page_of(run, "participant") as page:
        assert page.is_visible("#story")
        assert page.is_visible("#stop")
        for selector in ("#see", "#know", "#seats", "#canned", "#figures"):
            assert not page.is_visible(selector)


def test_a_browser_that_dies_with_a_key_held_leaves_the_robot_held_within_300_ms(tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    clock = SystemClock()
    with ConsoleRun(ROOT / "launch" / "wizard.toml", tmp_path / "run") as run:
        with sync_playwright() as playwright:
            opened = playwright.chromium.launch_persistent_context(
                str(tmp_path / "profile"), executable_path=CHROMIUM, args=OPTIONS
            )
            page = opened.new_page()
            page.goto(run.page())
            wait(page, lambda: "x " in text(page, "#odometry"), "the robot is seen")
            take_driving(page)
            page.keyboard.down("w")
            wait(page, lambda: x_of(page) > 0.05, "it drives")
            killed_ns = clock.now_ns()
            for pid in _processes_of(str(tmp_path / "profile")):
                os.kill(pid, signal.SIGKILL)
        eventually(lambda: any("is lost" in line for line in run.lines), "the seat goes home", 30.0)
    states = [
        (one.envelope.published_ns, one.document)
        for one in BagReader(run.folder / "run.mcap")
        if one.topic == "robot/command"
    ]  # what the guard lets through to the driver
    before = [document["base_v_mps"] for at_ns, document in states if at_ns <= killed_ns]
    assert before[-1] > 0.05
    braking = next(
        at_ns
        for (at_ns, document), (_, last) in zip(states[1:], states, strict=False)
        if at_ns > killed_ns and document["base_v_mps"] < last["base_v_mps"] - 1e-6
    )
    held_ms = (braking - killed_ns) * 1e-6
    print(f"held {held_ms:.0f} ms after the browser was killed")
    assert held_ms <= HELD_WITHIN_MS


def _processes_of(profile: str) -> list[int]:
    """The processes of the browser with that profile: ours alone."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command = (folder / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue  # it has ended meanwhile
            if f"--user-data-dir={profile}" in command:
                found.append(int(folder.name))
    return found
