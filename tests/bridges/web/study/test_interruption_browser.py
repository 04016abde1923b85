"""The study of the interruption experiment in a browser, from consent to tables; a camera stands in for the robot."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridges.web.study.command import main
from bridges.web.study.protocol import read_protocol
from tests.support.pages.axe import findings
from tests.support.pages.page_run import ROOT, PageRun
from tests.support.pages.paging import MARKS, a_browser, come, text, wait

pytestmark = [*MARKS, pytest.mark.long]  # a whole session in a browser
PROTOCOL = ROOT / "docs" / "study-interruption.toml"
LAUNCH = """
[nodes.study]
use    = "bridges.web.study.node:Study"
params = {{ folder = "{folder}", protocol = "{protocol}" }}

[nodes.trial_recorder]
use    = "nodes.recording.trial_recorder:TrialRecorder"
params = {{ folder = "{folder}" }}

[nodes.room_camera]
use   = "tests.bridges.foxglove.painter:Painter"
remap = {{ "head/image" = "room/image" }}
"""
PIXEL = "() => [...document.querySelector('#picture').getContext('2d').getImageData(0, 0, 1, 1).data]"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with a_browser() as opened:
        yield opened


class Session:
    """Both pages. Whatever they show, they never show the condition."""

    def __init__(self, guide: Any, person: Any) -> None:
        self.guide, self.person = guide, person
        self.titles = [one.title for one in read_protocol(PROTOCOL).condition]

    def shows(self, page: Any, selector: str, words: str) -> None:
        wait(page, lambda: words in text(page, selector), f"{selector} says {words!r}")
        for one in (self.guide, self.person):
            assert not [title for title in self.titles if title in one.content()]

    def answers(self, title: str, place: int) -> None:
        """Every question of the questionnaire on screen: the choice at that place."""
        self.shows(self.person, "#participant h2", title)
        for item in self.person.locator(".item").all():
            if item.locator("input[type=radio]").count():
                item.locator("input[type=radio]").nth(place).check(force=True)
            elif item.locator("textarea").count():
                item.locator("textarea").fill("It waited for me.")
            else:
                item.locator("input").fill("30")
                item.locator("input").blur()
        assert findings(self.person) == []
        self.person.click("text=Continue")
        wait(self.person, lambda: title not in text(self.person, "#participant h2"), "the next step comes")

    def trial(self, number: int) -> None:
        """Words, a change of mind, and its two marks; the robot is seen while it runs."""
        self.shows(self.guide, "#current", f"Trial {number}, hidden by the protocol")
        wait(self.guide, lambda: "recorder ready" in text(self.guide, "#where"), "it will be recorded")
        assert not self.person.locator("#picture").count()
        self.guide.click("h1")
        self.guide.keyboard.press("t")
        self.shows(self.guide, "#controls", "End trial")
        wait(self.person, lambda: self.person.is_visible("#picture"), "the robot is seen")
        red, green, *_ = self.person.evaluate(PIXEL)
        assert red > 150 > 90 > green
        for words in ("Please put the cups in the bin.", "No, I want to keep that one."):
            self.person.fill("#words", words)
            self.person.keyboard.press("Enter")
            self.shows(self.person, "#talk", words)
            self.shows(self.guide, "#lines", words)
        for key, label in (("1", "change of mind"), ("2", "robot follows")):
            self.guide.keyboard.press(key)
            wait(self.guide, lambda label=label: text(self.guide, "#lines").count(label) == number, label)  # type: ignore[misc]  # mypy does not see the default
        self.guide.keyboard.press("t")
        self.answers("When you changed your mind", number)
        self.answers("How demanding was it?", number)


def test_the_whole_protocol_is_walked_blind_and_its_tables_hold_condition_measures_and_answers(
    chromium: Any, tmp_path: Path
) -> None:
    folder, launch, problems = tmp_path / "study", tmp_path / "study.toml", list[str]()
    launch.write_text(LAUNCH.format(folder=folder, protocol=PROTOCOL))
    with PageRun("run", launch, "--out", tmp_path / "out", pages=2) as run:
        guide, person = (
            come(chromium, run.addresses["study", role], problems) for role in ("experimenter", "participant")
        )
        session = Session(guide, person)
        guide.fill("#number", "1")
        guide.keyboard.press("Enter")
        session.shows(person, "#participant", "I take part of my own free will")
        for box in person.locator(".tick input").all():
            box.check()
        person.click("text=I agree >> nth=-1")
        session.answers("About you", 1)
        for number in (1, 2):
            session.trial(number)
        session.answers("Both robots", 0)
        session.shows(person, "#participant", "That was all.")
        assert text(guide, "#answers") == "None yet."
    assert problems == []
    assert main(["export", str(folder)]) == 0
    tables = {path.stem: list(csv.DictReader(path.open())) for path in (folder / "export").glob("*.csv")}
    planned = [
        (str(place), task.id, one.id) for place, (task, one) in enumerate(read_protocol(PROTOCOL).trials_of(1), 1)
    ]
    assert [(row["trial"], row["task"], row["condition"]) for row in tables["trials"]] == planned
    asked = [row for row in tables["answers"] if (row["questionnaire"], row["item"]) == ("in-time", "heard")]
    assert [(row["trial"], row["task"], row["condition"], row["value"]) for row in asked] == [
        (*planned[0], "2"), (*planned[1], "3"),
    ]  # fmt: skip
    assert len(tables["answers"]) == 2 + 2 * (4 + 6) + 2
    marks = [(row["condition"], row["item"]) for row in tables["events"] if row["what"] == "mark"]
    assert marks == [(one, label) for *_, one in planned for label in ("change of mind", "robot follows")]
    assert [row["condition"] for row in tables["utterances"]] == [one for *_, one in planned for _ in range(2)]
    assert len(list(folder.glob("*.mcap"))) == 2
