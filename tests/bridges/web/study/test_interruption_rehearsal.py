"""The study of the interruption experiment in a browser: a rehearsal of one session, with the whole simulated robot."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from runtime.bag.file import BagReader
from tests.bridges.web.study.test_study_browser import PATIENCE_S, agree, fill, shows
from tests.support.pages.console_run import without_report
from tests.support.pages.page_run import ROOT, PageRun
from tests.support.pages.paging import MARKS, a_browser, come, wait

pytestmark = [*MARKS, pytest.mark.long]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with a_browser() as opened:
        yield opened


def test_a_rehearsal_in_the_browser_goes_through_both_conditions_and_they_differ(chromium: Any, tmp_path: Path) -> None:
    """The first participant's session as its page says, with a change of mind in each trial."""
    problems: list[str] = []
    folder = tmp_path / "study"
    sets = [f"study.folder={folder}", f"trial_recorder.folder={folder}", "study.port=0"]
    options = [part for one in sets for part in ("--set", one)]
    launch = without_report(ROOT / "docs" / "study-interruption-launch.toml", tmp_path / "out")
    with PageRun("run", launch, *options, "--out", tmp_path / "out", pages=2) as run:
        guide = come(chromium, run.addresses["study", "experimenter"], problems)
        person = come(chromium, run.addresses["study", "participant"], problems)
        guide.fill("#number", "1")
        guide.keyboard.press("Enter")
        person.wait_for_selector(".tick input")
        agree(person)
        fill(person, "About you")
        for trial in (1, 2):
            shows(guide, "#current", f"Trial {trial}")
            shows(guide, "#where", "recorder ready")
            guide.click("h1")
            guide.keyboard.press("t")
            shows(guide, "#controls", "End trial")
            assert "cancel" not in guide.content(), "what a condition does stands on no page"
            person.wait_for_selector("#words")
            for words, until in (("Please put the cups in the bin.", "robot moving"), ("No, not that one", "")):
                person.fill("#words", words)
                person.keyboard.press("Enter")
                shows(guide, "#lines", words)
                if until:
                    shows(guide, "#where", until)
                else:
                    guide.click("h1")
                    guide.keyboard.press("1")
                    shows(guide, "#lines", "change of mind")
            recording = folder / f"I01-trial-{trial}-1.mcap"
            wait(guide, partial(has_both, recording), "both sentences are recorded", PATIENCE_S)
            guide.keyboard.press("t")
            fill(person, "When you changed your mind")
            fill(person, "How demanding was it?")
        fill(person, "Both robots")
        shows(person, "#participant", "Thank you for your time!")
    assert problems == []
    held = {}
    for path in sorted(folder.glob("*.mcap")):
        bag = BagReader(path)
        interrupts = [message.document for message in bag if message.topic == "interrupt"]
        held[bag.metadata["trial"]["condition"]] = [one["depth"] for one in interrupts if one["id"].startswith("arm-")]
    assert held["two"] == ["replan"] * 2, "each sentence holds the robot, and its planner begins anew"
    assert held["one"] == [], "nobody holds it but its own policies"


def has_both(path: Path) -> bool:
    """Whether a recording holds two sentences."""
    return path.exists() and sum(message.topic == "heard" for message in BagReader(path)) >= 2
