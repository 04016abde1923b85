"""People play episodes in a real browser: by clicks against the offline agent, and two of them by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages.axe import findings
from tests.support.pages.page_run import ROOT, PageRun
from tests.support.pages.paging import MARKS, PHONE, a_browser, come, text, wait

HOSTILE = "<script>document.title='taken'</script><img src=x onerror=document.title='taken'>"
THREE = """
[nodes.moderator]
use    = "nodes.episodes.runner.live_moderator:LiveModerator"
params = {{ task = "{task}", answer_s = 600.0, max_turns = 6 }}

[nodes.first]
use    = "bridges.web.episode.node:PersonAtPage"
remap  = {{ "episode/seat" = "episode/seat0" }}

[nodes.second]
use    = "bridges.web.episode.node:PersonAtPage"
remap  = {{ "episode/seat" = "episode/seat1" }}

[nodes.third]
use    = "nodes.episodes.agents.agent:Agent"
remap  = {{ "episode/seat" = "episode/seat2" }}

[nodes.judge]
use    = "nodes.episodes.runner.judge:Judge"
params = {{ task = "{task}", max_turns = 6 }}
"""

pytestmark = MARKS
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with a_browser() as opened:
        yield opened


def my_turn(page: Any) -> None:
    wait(page, lambda: text(page, "#turn").startswith("Your turn"), "it is this person's turn", PATIENCE_S)


@pytest.mark.long
def test_a_whole_episode_is_played_by_clicks_and_ends_with_scores(chromium: Any, tmp_path: Path) -> None:
    problems: list[str] = []
    launch = ROOT / "launch" / "sotopia-chat.toml"
    with PageRun("run", launch, "--set", "buyer.port=0", "--out", tmp_path / "out") as run:
        page = come(chromium, run.addresses["buyer", "participant"], problems)
        my_turn(page)
        assert "You want the cello" in text(page, "#goal")
        assert "tax inspector" in text(page, "#people")
        assert "Mr Finch" not in text(page, "body")  # the other's secret
        for words in ("Good morning! Could you let it go for 1100?", "It has a crack. 1200?"):
            page.fill("#words", words)
            page.click("#send")
            wait(page, lambda said=words: said in text(page, "#story"), "it was said")  # type: ignore[misc]
            my_turn(page)
        page.check("input[value='non-verbal communication']", force=True)
        page.fill("#words", "runs a finger along the crack")
        page.click("#send")
        wait(page, lambda: page.locator("#story .tag", has_text="gesture").count() == 1, "a gesture is one")
        my_turn(page)
        page.fill("#words", "1450, and I take it as it is.")
        page.reload()
        my_turn(page)
        assert page.input_value("#words") == "1450, and I take it as it is."  # not even half a sentence is lost
        assert page.locator("#story li").count() == 7
        page.click("#send")
        my_turn(page)
        assert findings(page) == []
        page.check("input[value=leave]", force=True)
        page.click("#send")
        page.click("#send")  # it asks once
        wait(page, lambda: "GOAL" in text(page, "#end"), "the scores are there", PATIENCE_S)
        assert "left: Lucia Petrov" in text(page, "#turn")
        assert page.locator("#end tbody tr").count() == 2
        assert findings(page) == []
        assert run.wait() == 0
        page.wait_for_timeout(700)  # the page notices that the run is gone
        assert page.is_visible("#end")
        assert page.is_hidden("#cover")
        page.set_viewport_size(PHONE)
    assert [one for one in problems if "ERR_CONNECTION_REFUSED" not in one] == []


@pytest.mark.long  # a second browser; a whole episode is played in the other test
def test_two_people_and_an_agent_talk_by_keyboard_and_a_whisper_stays_one(chromium: Any, tmp_path: Path) -> None:
    problems: list[str] = []
    launch = tmp_path / "three.toml"
    launch.write_text(THREE.format(task="three-stalls"))
    with PageRun("run", launch, "--out", tmp_path / "out", pages=2) as run:
        first = come(chromium, run.addresses["first", "participant"], problems)
        second = come(chromium, run.addresses["second", "participant"], problems, PHONE)
        my_turn(first)
        wait(second, lambda: text(second, "#turn").startswith("Waiting"), "the other one waits")
        wait(second, lambda: text(second, "#you").startswith("You are "), "and knows their own part already")
        assert text(second, "#goal") not in ("", text(first, "#goal"))
        first.focus("#words")
        first.keyboard.type(HOSTILE)
        first.keyboard.press("Enter")
        my_turn(second)
        wait(second, lambda: HOSTILE in text(second, "#story"), "it is shown as it was typed")
        for page in (first, second):
            assert page.locator("#story script, #story img").count() == 0
            assert page.title() != "taken"
        assert findings(second) == []
        second.select_option("#to", "Lucia Petrov")  # the agent: the other person does not hear it
        second.focus("#words")
        second.keyboard.type("Between us: I would share the square.")
        second.keyboard.press("Enter")
        my_turn(first)
        assert "Between us" not in text(first, "#story")
        wait(second, lambda: "only to Lucia Petrov" in text(second, "#story"), "the whisper is marked")
        wait(first, lambda: "Lucia Petrov" in text(first, "#story"), "the agent has spoken")
        first.focus("#words")
        first.keyboard.press("Alt+4")
        first.keyboard.press("Enter")
        wait(second, lambda: "Pieter van Os did nothing" in text(second, "#story"), "silence is an act, too")
        my_turn(second)
        second.check("input[value=action]", force=True)
        second.fill("#words", "draws a line in the sand")
        second.click("#send")
        for page in (first, second):
            wait(page, lambda one=page: "GOAL" in text(one, "#end"), "the scores are there", PATIENCE_S)  # type: ignore[misc]
            assert page.locator("#end tbody tr").count() == 3
        assert run.wait() == 0
    assert [one for one in problems if "ERR_CONNECTION_REFUSED" not in one] == []
