"""The real page in a real browser against the real simulator: speak, stop, drive, sit in, lose the link."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.axe import findings
from tests.browsing import MARKS, a_browser, page_of, take_driving, text, wait, x_of
from tests.console_run import ROOT, ConsoleRun

pytestmark = MARKS


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleRun]:
    with ConsoleRun(ROOT / "launch" / "wizard.toml", tmp_path_factory.mktemp("wizard")) as started:
        yield started


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with a_browser() as opened:
        yield opened


def test_drive_to_a_mark_give_back_and_stop(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
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


def test_a_reload_keeps_the_seat_and_the_story(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
        take_driving(page)
        page.reload()
        wait(page, lambda: text(page, ".holder[data-seat=policy]") == "you", "the seat is still theirs")
        assert "holds policy" in text(page, "#story")
        page.keyboard.press("p")
        wait(page, lambda: text(page, ".holder[data-seat=policy]") == "policy", "and can be given back")


def test_a_script_as_an_utterance_is_text(run: ConsoleRun, chromium: Any) -> None:
    words = "<script>document.title='taken'</script><img src=x onerror=document.title='taken'>"
    with page_of(chromium, run) as page:
        page.check("input[name=voice][value=robot]", force=True)
        page.fill("#words", words)
        page.press("#words", "Enter")
        wait(page, lambda: words in text(page, "#story"), "what was said is shown as it was said")
        assert page.locator("#story script, #story img").count() == 0
        assert page.title() == "Polyrhythm console"


def test_two_operators_share_no_seat(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as one, page_of(chromium, run) as other:
        one.keyboard.press("p")
        wait(one, lambda: text(one, ".holder[data-seat=policy]") == "you", "one has it")
        wait(other, lambda: text(other, ".holder[data-seat=policy]") == "operator", "the other sees who")
        other.keyboard.press("p")  # a forced take-over, in one action
        wait(other, lambda: text(other, ".holder[data-seat=policy]") == "you", "the other has it")
        wait(one, lambda: text(one, ".holder[data-seat=policy]") == "operator", "one has it no more")
        other.keyboard.press("p")
        wait(other, lambda: text(other, ".holder[data-seat=policy]") == "policy", "given back")


def test_an_order_that_is_typed_makes_the_robot_move_and_the_button_stops_it(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
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


def test_a_participant_sees_the_dialogue_and_nothing_else(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run, "participant") as page:
        assert page.is_visible("#story")
        assert page.is_visible("#stop")
        for selector in ("#see", "#know", "#seats", "#canned", "#figures"):
            assert not page.is_visible(selector)


@pytest.mark.parametrize("role", ["operator", "viewer", "participant"])
def test_nothing_on_the_page_keeps_people_out(run: ConsoleRun, chromium: Any, role: str) -> None:
    with page_of(chromium, run, role) as page:
        if role == "operator":
            for tab in ("vlm", "planner", "policy"):
                page.click(f"#tab-{tab}")
                assert findings(page) == []
        assert findings(page) == []
