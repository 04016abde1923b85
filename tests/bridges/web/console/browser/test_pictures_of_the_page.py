"""The pictures of docs/wizard.md, from a real run.

POLYRHYTHM_SCREENSHOTS=docs pytest tests/bridges/web/console/browser/test_pictures_of_the_page.py
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages.browsing import MARKS, a_browser, page_of, take_driving, text, wait
from tests.support.pages.console_run import ROOT, ConsoleRun
from tests.support.pages.paging import kept
from tests.support.servers.fake_speech_server import FakeSpeech, says

FOLDER = os.environ.get("POLYRHYTHM_SCREENSHOTS", "")
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}

pytestmark = [*MARKS, pytest.mark.skipif(not FOLDER, reason="POLYRHYTHM_SCREENSHOTS names no folder")]


RECOGNISER = """
[nodes.words]
use    = "nodes.voice.recogniser:Recogniser"
params = {{ base_url = "{url}", model = "whisper-test" }}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleRun]:
    folder = tmp_path_factory.mktemp("pictures")
    launch = folder / "wizard.toml"
    with FakeSpeech(says("")) as server:  # so that the pages show their button to talk
        launch.write_text((ROOT / "launch" / "wizard.toml").read_text() + RECOGNISER.format(url=server.url))
        with ConsoleRun(launch, folder / "out") as started:
            yield started


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with a_browser("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream") as opened:
        yield opened


def keep(page: Any, name: str) -> None:
    page.wait_for_timeout(800)
    kept(page.screenshot(), Path(FOLDER) / f"wizard{name}.webp")


def sit(page: Any, seat: str) -> None:
    page.click(f"#tab-{seat}")
    page.click(f"button.seat[data-seat={seat}]")
    wait(page, lambda: text(page, f".holder[data-seat={seat}]") == "you", "the seat is taken")


def say(page: Any, words: str) -> None:
    page.check("input[name=voice][value=collaborator]", force=True)
    page.fill("#words", words)
    page.press("#words", "Enter")


def test_every_view_of_the_operator(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
        wait(page, lambda: "x " in text(page, "#odometry"), "the robot is seen")
        say(page, "Please clear the table: put the cups in the bin")
        wait(page, lambda: "cup" in text(page, "#action"), "it goes for a cup", 60.0)
        page.wait_for_timeout(1500)
        keep(page, "")
        sit(page, "vlm")
        page.locator("#things button").nth(1).click()
        page.click("[data-depth=head]")
        keep(page, "-act")
        page.click("[data-depth=head]")
        page.click("button.seat[data-seat=vlm]")
        sit(page, "planner")
        page.dispatch_event("[data-seat=planner] input[value=approve]", "click")
        page.fill("[data-seat=planner] [name=wait]", "30")
        page.press("[data-seat=planner] [name=wait]", "Tab")
        say(page, "No, not the green one")
        wait(page, lambda: page.is_visible("[data-seat=planner] .draft"), "a draft waits")
        keep(page, "-plan")
        page.click("button.seat[data-seat=planner]")
        page.click("#tab-policy")
        take_driving(page)
        page.keyboard.down("w")
        keep(page, "-drive")
        page.keyboard.up("w")
        page.keyboard.press("p", delay=700)
        wait(page, lambda: text(page, ".holder[data-seat=policy]") == "model", "given back")


@pytest.mark.parametrize(
    ("role", "name", "more"),
    [("operator", "-phone", PHONE), ("participant", "-participant", PHONE), ("viewer", "-viewer", {})],
)
def test_the_views_of_the_others(run: ConsoleRun, chromium: Any, role: str, name: str, more: dict[str, Any]) -> None:
    with page_of(chromium, run, role, **more) as page:
        page.wait_for_timeout(1500)
        keep(page, name)
