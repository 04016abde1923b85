"""Annotators in a real browser: scrub, rate by keyboard, save, and what is there after a kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridges.web.recordings.ratings import ratings_file, read_ratings
from nodes.msgs import Image
from nodes.msgs.episode import Observation
from tests.support.pages.axe import findings
from tests.support.pages.page_run import ROOT, PageRun
from tests.support.pages.paging import MARKS, PHONE, a_browser, come, text, wait
from tests.support.synthetic_run import START_NS, write_run

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


def goes_by_chosen_keys(page: Any) -> None:
    """The keys of the page are chosen, kept, and switched off."""
    page.click("#chosen-keys summary")
    page.focus("#chosen-keys input[data-of='[']")
    page.keyboard.press("b")
    assert text(page, "#chosen-keys [role=status]") == "B: The line before."
    page.reload()
    wait(page, lambda: page.locator(".line").count() > 10, "it is there again")
    there = text(page, "#time")
    page.keyboard.press("]")
    wait(page, lambda: text(page, "#time") != there, "the next line is gone to")
    page.keyboard.press("[")
    assert text(page, "#time") != there, "its work has moved"
    page.click("#single-keys")
    page.keyboard.press("b")
    assert text(page, "#time") != there, "switched off"
    page.click("#single-keys")
    page.click("#where")
    page.keyboard.press("b")
    wait(page, lambda: text(page, "#time") == there, "and back again")


@pytest.mark.long
def test_two_annotators_rate_an_episode_and_a_kill_loses_nothing(chromium: Any, tmp_path: Path) -> None:
    problems: list[str] = []
    path = recorded(tmp_path / "episode.mcap", "sotopia")
    names = ("--annotator", "ada", "--annotator", "ben")
    with PageRun("annotate", path, *names, "--port", "0", pages=3) as run:
        ada = come(chromium, run.addresses["annotate", "ada"], problems)
        ben = come(chromium, run.addresses["annotate", "ben"], problems, PHONE)
        wait(ada, lambda: ada.locator(".dimension").count() == 7, "the seven dimensions are there")
        assert ada.locator(".line").count() > 10
        assert ada.is_hidden("#pictures")
        ada.keyboard.press("]")
        wait(ada, lambda: "0:02" in text(ada, "#time"), "the next line is gone to")
        assert text(ada, ".line[aria-current=true]").startswith("0:02Lucia Petrov: ")
        goes_by_chosen_keys(ada)
        for page, score in ((ada, 8), (ben, 7)):
            wait(page, lambda one=page: one.locator(".dimension").count() == 7, "ready")  # type: ignore[misc]
            page.locator(".dimension").nth(0).locator("input").nth(score).focus()
            page.keyboard.press("Space")
            page.locator(".dimension").nth(0).locator("textarea").fill("<b>Keeps to her price</b>, politely.")
            page.locator(".dimension").nth(0).locator("textarea").blur()
            wait(page, lambda one=page: "1 of 14 rated, 1 with a reason" in text(one, "#progress"), "it is counted")  # type: ignore[misc]
        assert findings(ada) == []
        assert findings(ben) == []
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


BLACK, GREEN = [0, 0, 0, 0], [60, 160, 80, 255]


def of_the_room(at_s: float) -> Image:
    rgb = np.full((90, 160, 3), GREEN[:3], np.uint8)
    return Image(camera="room", captured_ns=START_NS + round(at_s * 1e9), rgb=rgb)


def large(page: Any) -> str:
    """The one camera whose picture is large: wider than all others together."""
    widths = {one.get_attribute("data-camera"): one.bounding_box()["width"] for one in page.locator(".camera").all()}
    widest = max(widths, key=lambda name: widths[name])
    assert widths[widest] > 2 * (sum(widths.values()) - widths[widest])
    assert page.get_attribute(".camera[aria-pressed=true]", "data-camera") == widest
    return str(widest)


def middle_of(page: Any, camera: str) -> list[int]:
    """The colour in the middle of that camera's picture, with its opacity; all 0 where nothing was drawn."""
    canvas = page.locator(f"[data-camera={camera}] canvas")
    look = "one => [...one.getContext('2d').getImageData(one.width / 2, one.height / 2, 1, 1).data]"
    return list(canvas.evaluate(look))


CONSOLE = """
[nodes.console]
use    = "bridges.web.console.node:Console"
params = {{ port = 0, recordings = "{folder}" }}
"""
HOSTILE = "<script>document.title='taken'</script><img src=x onerror=document.title='taken'>\u0007\u001b[31m"


@pytest.mark.long  # a second browser; two annotators rate in the other test
def test_beside_the_console_a_finished_trial_is_scrubbed_and_rated(chromium: Any, tmp_path: Path) -> None:
    problems: list[str] = []
    folder, launch = tmp_path / "runs", tmp_path / "console.toml"
    folder.mkdir()
    launch.write_text(CONSOLE.format(folder=folder))
    told = Observation(episode=HOSTILE, ask=0, turn=0, asks="nothing")
    seen = [(second / 2, "room/image", of_the_room(second / 2)) for second in range(40)]
    path = write_run(tmp_path, seconds=20.0, more=[(1.0, "episode/seat0", told), *seen])
    trial = path.rename(folder / "P01 <b>trial-1-1.mcap")
    os.utime(trial, (1e9, 1e9))
    with PageRun("run", launch, "--out", tmp_path / "out", pages=3) as run:
        console = come(chromium, run.addresses["console", "operator"], problems)
        with console.context.expect_page() as opened:
            console.click("#pages a:has-text('Recordings')")
        page = opened.value
        page.on("pageerror", lambda problem: problems.append(str(problem)))
        wait(page, lambda: "P01 <b>trial-1-1.mcap" in text(page, "#recordings"), "it is on the list")
        assert findings(page) == []
        page.click(".recording")
        wait(page, lambda: "which name or code" in text(page, "#notice"), "who rates is asked")
        page.fill("#rater", "ada")
        page.click(".recording")
        wait(page, lambda: page.locator(".camera").count() == 2, "both cameras are there")
        wait(page, lambda: middle_of(page, "head") != BLACK, "the head camera's picture is there")
        wait(page, lambda: middle_of(page, "room") == GREEN, "the room's picture is there")
        assert large(page) == "room"
        page.keyboard.press("c")
        assert large(page) == "head"
        page.click("[data-camera=room]")
        assert large(page) == "room"
        page.click("[data-camera=head]")
        assert HOSTILE in text(page, "#where")
        assert text(page, "#agents") == "collaboratorrobot"
        page.locator("#timeline").click(position={"x": 260, "y": 20})
        wait(page, lambda: page.locator(".line.later").count() > 0, "a moment in the middle is gone to")
        page.click("h1")
        page.keyboard.press("Home")
        before = text(page, "#time")
        page.keyboard.press("ArrowRight")
        assert text(page, "#time") != before
        page.keyboard.press("Space")
        wait(page, lambda: "Pause" in text(page, "#play"), "it plays")
        page.keyboard.press("Space")
        page.locator(".dimension").nth(0).locator("input").nth(8).check(force=True)
        page.locator(".dimension").nth(0).locator("textarea").fill("Kept its word.")
        page.locator(".dimension").nth(0).locator("textarea").blur()
        wait(page, lambda: "1 of 14 rated, 1 with a reason" in text(page, "#progress"), "it is counted")
        wait(page, lambda: "BEL" in text(page, "#agreement"), "how far they agree is there, too")
        assert findings(page) == []
        page.set_viewport_size(PHONE)
        assert findings(page) == []
        page.reload()
        wait(page, lambda: "rated by 1" in text(page, "#recordings"), "the list is there again")
        page.click(".recording")
        wait(page, lambda: page.is_visible("#pictures"), "the recording is there again")
        assert large(page) == "head"
        wait(page, lambda: middle_of(page, "room") == GREEN, "the small picture is there, too")
        page.click("#back")
        wait(page, lambda: "rated by 1" in text(page, "#recordings"), "back at the list")
        viewer = come(chromium, run.addresses["console", "viewer"].replace("/#", "/recordings#"), problems)
        wait(viewer, lambda: "BEL" in text(viewer, "#agreement"), "a viewer sees how far they agree")
        assert page.locator("#where script, #recordings b b").count() == 0
        assert "taken" not in (page.title(), viewer.title())
    assert [one.rationale for one in read_ratings(ratings_file(trial)).values()][-1:] == ["Kept its word."]
    assert [one for one in problems if "ERR_CONNECTION" not in one] == []
