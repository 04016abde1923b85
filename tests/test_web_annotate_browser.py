"""Annotators in a real browser: scrub, rate by keyboard, save, and what is there after a kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridges.web.annotate.ratings import ratings_file, read_ratings
from tests.axe import findings
from tests.page_run import ROOT, PageRun
from tests.paging import MARKS, PHONE, a_browser, come, text, wait

pytestmark = MARKS


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with a_browser() as opened:
        yield opened


def recorded(path: Path, *arguments: str) -> Path:
    """A run in virtual time; whether its task was done in that time is not the point here."""
    command = [sys.executable, "-m", "runtime", "run", *arguments, "--virtual", "--record", str(path)]
    subprocess.run([*command, "--out", str(path.parent / "out")], cwd=ROOT, capture_output=True, timeout=300)
    assert path.is_file()
    return path


def picture(page: Any, name: str) -> None:
    """Where somebody wants to look at it."""
    if folder := os.environ.get("POLYRHYTHM_SCREENSHOTS"):
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def test_two_annotators_rate_an_episode_and_a_kill_loses_nothing(chromium: Any, tmp_path: Path) -> None:
    problems: list[str] = []
    path = recorded(tmp_path / "episode.mcap", "sotopia")
    names = ("--annotator", "ada", "--annotator", "ben")
    with PageRun("annotate", path, *names, "--port", "0", pages=3) as run:
        ada = come(chromium, run.addresses["annotate", "ada"], problems)
        ben = come(chromium, run.addresses["annotate", "ben"], problems, PHONE)
        wait(ada, lambda: ada.locator(".dimension").count() == 7, "the seven dimensions are there")
        assert ada.locator(".line").count() == 15
        assert ada.is_hidden("#picture")
        ada.keyboard.press("]")
        wait(ada, lambda: "0:02" in text(ada, "#time"), "the next line is gone to")
        assert text(ada, ".line[aria-current=true]").startswith("0:02Lucia Petrov: ")
        for page, score in ((ada, 8), (ben, 7)):
            wait(page, lambda one=page: one.locator(".dimension").count() == 7, "ready")  # type: ignore[misc]
            page.locator(".dimension").nth(0).locator("input").nth(score).focus()
            page.keyboard.press("Space")
            page.locator(".dimension").nth(0).locator("textarea").fill("<b>Keeps to her price</b>, politely.")
            page.locator(".dimension").nth(0).locator("textarea").blur()
            wait(page, lambda one=page: "1 of 14 rated, 1 with a reason" in text(one, "#progress"), "it is counted")  # type: ignore[misc]
        assert findings(ada) == []
        assert findings(ben) == []
        picture(ada, "annotate-episode")
        picture(ben, "annotate-phone")
        ada.check("input[value='Lucia Petrov']", force=True)
        wait(ada, lambda: "You want the cello" in text(ada, "#part"), "whom they rate is told")
        file = ratings_file(path)
        wait(ada, lambda: len(read_ratings(file)) == 2, "both are on the disk")
        viewer = come(chromium, run.addresses["annotate", "viewer"], problems)
        wait(viewer, lambda: "BEL" in text(viewer, "#agreement"), "the viewer sees how far they agree")
        assert viewer.locator(".dimension").count() == 0
        assert findings(viewer) == []
        run.kill()
    with PageRun("annotate", path, *names, "--port", "0", pages=3) as run:
        ada = come(chromium, run.addresses["annotate", "ada"], problems)
        wait(ada, lambda: "1 of 14 rated" in text(ada, "#progress"), "it is all still there")
        assert ada.locator(".dimension input:checked").first.get_attribute("value") == "8"
        assert ada.input_value(".dimension textarea >> nth=0") == "<b>Keeps to her price</b>, politely."
    command = [sys.executable, "-m", "runtime", "annotate", str(path), "--agreement", "--json"]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60)
    [found] = json.loads(told.stdout)
    assert (found["dimension"], found["raters"], found["items"]) == ("BEL", 2, 1)
    assert [one for one in problems if "ERR_CONNECTION" not in one] == []


def test_the_robots_recording_is_scrubbed_with_its_pictures(chromium: Any, tmp_path: Path) -> None:
    problems: list[str] = []
    path = recorded(tmp_path / "robot.mcap", "laptop", "--for", "15")
    with PageRun("annotate", path, "--port", "0", pages=2) as run:
        page = come(chromium, run.addresses["annotate", "annotator"], problems)
        wait(page, lambda: page.is_visible("#picture"), "the camera's picture is there")
        assert text(page, "#agents") == "Samrobot"
        page.locator("#timeline").click(position={"x": 260, "y": 20})
        wait(page, lambda: page.locator(".line.later").count() > 0, "a moment in the middle is gone to")
        page.keyboard.press("Home")
        before = text(page, "#time")
        page.keyboard.press("ArrowRight")
        assert text(page, "#time") != before
        page.keyboard.press("Space")
        wait(page, lambda: "Pause" in text(page, "#play"), "it plays")
        page.keyboard.press("Space")
        assert findings(page) == []
        page.wait_for_timeout(300)
        picture(page, "annotate")
    assert problems == []
