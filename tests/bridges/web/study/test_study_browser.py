"""A study in a real browser: a whole session, and one that goes on after everything was killed in its middle."""

from __future__ import annotations

import csv
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from bridges.web.study.journal import read_events
from bridges.web.study.protocol import read_protocol
from bridges.web.study.steps import steps_of
from nodes.mcap.file import BagReader
from tests.support.pages.axe import findings
from tests.support.pages.console_run import without_report
from tests.support.pages.page_run import ROOT, PageRun
from tests.support.pages.paging import HELD_MS, MARKS, PHONE, a_browser, come, text, wait

pytestmark = MARKS
PATIENCE_S = 60.0
HOSTILE = "<script>document.title='taken'</script>"
LIGHT = """
[nodes.study]
use    = "bridges.web.study.node:Study"
params = {{ folder = "{folder}", protocol = "{protocol}" }}

[nodes.trial_recorder]
use    = "nodes.recording.trial_recorder:TrialRecorder"
params = {{ folder = "{folder}" }}
"""
PROTOCOL = """
title = "<script>document.title='taken'</script>"
[consent]
text = "A short study."
statements = ["I agree."]
[[task]]
id = "talk"
title = "Talking"
text = "Say hello."
[[condition]]
id = "only"
title = "The only one"
[questionnaires]
after_trial = ["closing"]
[[questionnaire]]
id = "closing"
title = "To close"
[[questionnaire.item]]
id = "liking"
text = "I liked it."
[[questionnaire.item]]
id = "words"
text = "Anything else?"
kind = "text"
"""

BRANCHED = """
title = "Cups"
[consent]
text = "A short study."
statements = ["I agree."]
[[task]]
id = "one"
title = "One"
text = "Look at it."
media = ["cup.png", "film.webm"]
[[task]]
id = "two"
title = "Two"
text = "Go on."
[[condition]]
id = "slow"
title = "It is slow"
[[condition]]
id = "fast"
title = "It is fast"
[design]
trials = "drawn"
tasks = "random"
seed = 5
[questionnaires]
before = ["first", "more"]
[[questionnaire]]
id = "first"
title = "First"
[[questionnaire.item]]
id = "met"
text = "Have you met a robot?"
kind = "choice"
choices = ["yes", "no"]
[[questionnaire.item]]
id = "which"
text = "Which one?"
kind = "text"
when = { met = "yes" }
[[questionnaire]]
id = "more"
title = "More"
when = { "first/met" = "yes" }
[[questionnaire.item]]
id = "often"
text = "How often?"
"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with a_browser() as opened:
        yield opened


def shows(page: Any, selector: str, words: str) -> None:
    wait(page, lambda: words in text(page, selector), f"{selector} says {words!r}", PATIENCE_S)


def is_recorded(path: Path) -> bool:
    """Whether a recording holds something that was said."""
    return path.exists() and any(message.topic == "heard" for message in BagReader(path))


def agree(page: Any) -> None:
    for box in page.locator(".tick input").all():
        box.check()
    page.click("text=I agree >> nth=-1")


def fill(page: Any, title: str) -> None:
    """Answer every question of the questionnaire on screen, and go on."""
    shows(page, "#participant h2", title)
    for item in page.locator(".item").all():
        if item.locator("input[type=radio]").count():
            item.locator("input[type=radio]").nth(1).check(force=True)
        elif item.locator("textarea").count():
            item.locator("textarea").fill("It was fine.")
        else:
            item.locator("input").fill("30")
            item.locator("input").blur()
    assert findings(page) == []
    page.click("text=Continue")
    wait(page, lambda: title not in text(page, "#participant h2"), "the next step comes", PATIENCE_S)


@pytest.mark.long  # a whole session over WebSockets is in the tutorial of a study; this one is in a browser
def test_a_whole_session_with_the_robot_leaves_files_and_a_recording_of_each_trial(
    chromium: Any, tmp_path: Path
) -> None:
    problems: list[str] = []
    folder = tmp_path / "study"
    sets = [f"study.folder={folder}", f"trial_recorder.folder={folder}", "study.port=0", "console.port=0"]
    options = [part for one in sets for part in ("--set", one)]
    launch = without_report(ROOT / "launch" / "study.toml", tmp_path / "out")
    with PageRun("run", launch, *options, "--out", tmp_path / "out", pages=4) as run:
        wait_for = "the whole graph runs"
        guide = come(chromium, run.addresses["study", "experimenter"], problems)
        person = come(chromium, run.addresses["study", "participant"], problems, PHONE)
        shows(person, "#participant", "Welcome")
        guide.fill("#number", "7")
        guide.keyboard.press("Enter")
        shows(guide, "#current", "P07: Before we begin")
        shows(person, "#participant", "I take part of my own free will")
        assert findings(person) == []
        person.click("text=I agree >> nth=-1")  # without a tick
        shows(person, "#notice", "tick every statement")
        agree(person)
        fill(person, "About you")
        for trial in (1, 2):
            shows(guide, "#current", f"Trial {trial}")
            shows(person, "#participant", "The experimenter will start")
            if trial == 2:  # with a wizard, whom the condition puts on the seats
                wizard = come(chromium, run.addresses["console", "operator"], problems)
            wait(guide, lambda: "recorder ready" in text(guide, "#where"), wait_for, PATIENCE_S)
            guide.click("h1")
            guide.keyboard.press("t", delay=HELD_MS)
            shows(guide, "#controls", "End trial")
            shows(guide, "#seats", f"Seat planner: {'planner' if trial == 1 else 'human_planner'} ✓")
            if trial == 2:
                for seat in ("planner", "vlm"):
                    shows(wizard, f".holder[data-seat={seat}]", "you")
                shows(guide, "#lines", "planner to human_planner, instead of planner")
            words = "Please put the cups in the bin."
            person.wait_for_selector("#words")
            person.fill("#words", words)
            person.keyboard.press("Enter")
            shows(person, "#talk", words)
            shows(guide, "#lines", words)
            guide.keyboard.press("2", delay=HELD_MS)
            shows(guide, "#lines", "robot error")
            guide.keyboard.press("n")
            guide.keyboard.type("They smiled.")
            guide.keyboard.press("Enter")
            shows(guide, "#lines", "They smiled.")
            if trial == 1:
                wait(guide, lambda: guide.is_visible("#camera canvas"), "the camera is seen", PATIENCE_S)
                frame, shown = (guide.locator(one).bounding_box() for one in ("#camera", "#camera canvas"))
                assert shown["height"] <= frame["height"] + 1.0, "and nothing of its picture is cut off"
                wait(guide, lambda: "robot moving" in text(guide, "#where"), "the robot moves", PATIENCE_S)
                wait(guide, lambda: " of 4:00" in text(guide, "#clock"), "the time is shown")
                assert findings(guide) == []
                assert findings(person) == []
                guide.set_viewport_size(PHONE)
                assert findings(guide) == []
                guide.set_viewport_size({"width": 1280, "height": 800})
            wait(guide, lambda: not text(guide, "#clock").startswith("0:00"), "it has run for a second")
            guide.keyboard.press("t", delay=HELD_MS)
            shows(guide, "#current", "Press STOP before anybody goes near it")
            if trial == 2:
                for seat in ("planner", "vlm"):
                    shows(wizard, f".holder[data-seat={seat}]", "model")
                    shows(guide, "#lines", f"{seat} is {seat}'s again")
            fill(person, "How demanding")
        fill(person, "How did it go for the robot?")
        fill(person, "How did it go for you?")
        fill(person, "To close")
        shows(person, "#participant", "Thank you for your time!")
        shows(guide, "#current", "P07: the session is over")
        shows(guide, "#answers", "GOAL")
    assert problems == []
    rows = list(csv.DictReader((folder / "P07.csv").open()))
    assert [row["value"] for row in rows if row["item"] == "words"] == ["It was fine."]
    assert len([row for row in rows if row["questionnaire"] == "nasa-tlx"]) == 12
    recordings = sorted(folder.glob("*.mcap"))
    assert [path.name for path in recordings] == ["P07-trial-1-1.mcap", "P07-trial-2-1.mcap"]
    for path in recordings:
        bag = BagReader(path)
        topics = [message.topic for message in bag]
        assert {"heard", "mark", "study/note", "head/image", "robot/state"} <= set(topics)
        assert topics.count("study/trial") == 2
        assert "study/setting" in topics
        assert bag.is_complete
        assert bag.metadata["trial"]["condition"] in ("wizard", "autonomous")
    [session] = (tmp_path / "out").glob("run.mcap")
    answers = [message.document for message in BagReader(session) if message.topic == "study/answer"]
    assert len({(one["step"], one["item"]) for one in answers}) == len(rows)


def test_after_everything_is_killed_in_the_middle_nothing_is_lost_and_the_session_goes_on(
    chromium: Any, tmp_path: Path
) -> None:
    problems: list[str] = []
    folder, launch, protocol = tmp_path / "study", tmp_path / "light.toml", tmp_path / "protocol.toml"
    protocol.write_text(PROTOCOL)
    launch.write_text(LIGHT.format(folder=folder, protocol=protocol))
    with PageRun("run", launch, "--out", tmp_path / "one", pages=2) as run:
        guide = come(chromium, run.addresses["study", "experimenter"], problems)
        person = come(chromium, run.addresses["study", "participant"], problems)
        shows(guide, "#title", HOSTILE)
        assert guide.title() != "taken"
        guide.fill("#number", "1")
        guide.keyboard.press("Enter")
        person.wait_for_selector(".tick input")
        agree(person)
        shows(guide, "#current", "Trial 1")
        shows(guide, "#where", "recorder ready")
        guide.click("#controls .main")
        shows(guide, "#where", "recording to P01-trial-1-1.mcap")
        person.wait_for_selector("#words")
        person.fill("#words", HOSTILE)
        person.keyboard.press("Enter")
        shows(person, "#talk", HOSTILE)
        shows(guide, "#lines", HOSTILE)
        wait(guide, lambda: is_recorded(folder / "P01-trial-1-1.mcap"), "the recorder has written it", PATIENCE_S)
        run.kill()
    assert [event.what for event in read_events(folder / "P01.jsonl")] == ["begin", "consent", "trial", "said"]
    with PageRun("run", launch, "--out", tmp_path / "two", pages=2) as run:
        guide = come(chromium, run.addresses["study", "experimenter"], problems)
        person = come(chromium, run.addresses["study", "participant"], problems)
        shows(guide, "#controls", "Start again")
        shows(guide, "#lines", HOSTILE)
        shows(guide, "#where", "recorder ready")
        guide.click("#controls .main")
        person.wait_for_selector("#words")
        shows(guide, "#controls", "End trial")
        guide.click("#controls .main")
        shows(person, "#participant h2", "To close")
        person.locator("input[value='6']").check(force=True)
        shows(guide, "#answers", "6")
        person.locator("textarea").fill("half a sen")
        shows(guide, "#answers", "half a sen")
        run.kill()
    with PageRun("run", launch, "--out", tmp_path / "three", pages=2) as run:
        person = come(chromium, run.addresses["study", "participant"], problems)
        wait(person, lambda: person.locator("textarea").count() == 1, "the questionnaire is back", PATIENCE_S)
        assert person.input_value("textarea") == "half a sen"
        assert person.locator("input[value='6']").is_checked()
        person.reload()
        wait(person, lambda: person.locator("textarea").count() == 1, "and after a reload, too", PATIENCE_S)
        assert person.input_value("textarea") == "half a sen"
        person.click("text=Continue")
        shows(person, "#participant h2", "Thank you")
    rows = list(csv.DictReader((folder / "P01.csv").open()))
    assert [(row["item"], row["value"]) for row in rows] == [("liking", "6"), ("words", "half a sen")]
    recorded = sorted(path.name for path in folder.glob("*.mcap"))
    assert recorded == ["P01-trial-1-1.mcap", "P01-trial-1-2.mcap"]
    assert is_recorded(folder / recorded[0])
    assert [one for one in problems if "ERR_CONNECTION" not in one] == []


def test_a_participant_may_stop_at_any_time_and_cannot_do_what_the_experimenter_does(
    chromium: Any, tmp_path: Path
) -> None:
    folder, launch, protocol = tmp_path / "study", tmp_path / "light.toml", tmp_path / "protocol.toml"
    protocol.write_text(PROTOCOL)
    launch.write_text(LIGHT.format(folder=folder, protocol=protocol))
    problems: list[str] = []
    with PageRun("run", launch, "--out", tmp_path / "one", pages=2) as run:
        person = come(chromium, run.addresses["study", "participant"], problems)
        guide = come(chromium, run.addresses["study", "experimenter"], problems)
        old = run.addresses["study", "participant"]
        wait(guide, lambda: address(guide) == old, "the participant's address is told", PATIENCE_S)
        for selector in ("#begin", "#marks", "#note", "#lines", "#resume"):
            assert not person.is_visible(selector)
        guide.fill("#number", "3")
        guide.keyboard.press("Enter")
        person.wait_for_selector(".tick input")
        person.click("#withdraw")
        person.click("#withdraw")
        shows(person, "#participant", "You have stopped")
        shows(guide, "#current", "P03 has stopped")
        assert findings(person) == []
        wait(
            guide,
            lambda: address(guide) not in ("", old),
            "the next one's address is there",
            PATIENCE_S,
        )
        late = chromium.new_context().new_page()
        late.goto(old)
        shows(late, "#cover", "somebody whose part is over")
        other = come(chromium, address(guide), problems)
        guide.fill("#number", "4")
        guide.keyboard.press("Enter")
        other.wait_for_selector(".tick input")
        shows(person, "#cover", "somebody whose part is over")
    assert problems == []
    assert [event.what for event in read_events(folder / "P03.jsonl")] == ["begin", "withdraw"]


def begin(guide: Any, person: Any, number: int) -> None:
    wait(guide, lambda: guide.is_visible("#number"), "the next one can begin", PATIENCE_S)
    guide.fill("#number", str(number))
    guide.keyboard.press("Enter")
    person.wait_for_selector(".tick input")
    agree(person)


def shows_its_media(person: Any) -> None:
    """A picture has been loaded, and a film is served as one."""
    wait(person, lambda: person.locator("img.media").evaluate("one => one.naturalWidth") == 40, "the picture shows")
    film = person.locator("video.media").get_attribute("src")
    assert person.evaluate("async url => (await fetch(url)).headers.get('content-type')", film) == "video/webm"
    assert findings(person) == []


def address(guide: Any) -> str:
    """What the experimenter may hand out now."""
    return str(guide.input_value("#address input"))


def next_address(guide: Any, last: str) -> str:
    wait(
        guide,
        lambda: address(guide) not in ("", last),
        "the next one's address is there",
        PATIENCE_S,
    )
    return address(guide)


def start_trial(guide: Any, person: Any, number: int, attempt: int = 1) -> None:
    shows(guide, "#where", "recorder ready")
    guide.click("#controls .main")
    shows(guide, "#where", f"recording to P{number:02}-trial-1-{attempt}.mcap")
    person.wait_for_selector("#words")


@pytest.mark.long
def test_of_two_participants_one_withdraws_in_a_trial_and_the_other_goes_on_through_a_console_that_is_killed(
    chromium: Any, tmp_path: Path
) -> None:
    folder, launch, path = tmp_path / "study", tmp_path / "light.toml", tmp_path / "protocol.toml"
    path.write_text(PROTOCOL)
    launch.write_text(LIGHT.format(folder=folder, protocol=path))
    problems: list[str] = []
    with PageRun("run", launch, "--out", tmp_path / "one", pages=2) as run:
        guide = come(chromium, run.addresses["study", "experimenter"], problems)
        first = run.addresses["study", "participant"]
        one = come(chromium, first, problems)
        begin(guide, one, 1)
        start_trial(guide, one, 1)
        for _ in range(2):  # it asks whether that is sure
            one.click("#withdraw")
        shows(one, "#participant", "You have stopped")
        shows(guide, "#current", "P01 has stopped")
        other = come(chromium, next_address(guide, first), problems, PHONE)
        begin(guide, other, 2)
        start_trial(guide, other, 2)
        console = max(int(pid) for line in run.lines for pid in re.findall(r"study \[pid (\d+)\] running", line))
        os.kill(console, signal.SIGKILL)
        shows(guide, "#cover", "Trying again")
        shows(guide, "#cover", "")
        shows(guide, "#controls", "Start again")
        start_trial(guide, other, 2, attempt=2)  # the participant's page has come back by itself
        other.fill("#words", "Hello again.")
        other.keyboard.press("Enter")
        shows(guide, "#lines", "Hello again.")
        guide.click("#controls .main")
        fill(other, "To close")
        shows(other, "#participant h2", "Thank you")
    assert [one for one in problems if "ERR_CONNECTION" not in one] == []
    assert [event.what for event in read_events(folder / "P01.jsonl")][-1] == "withdraw"
    answered, rows = (list(csv.DictReader((folder / f"P0{number}.csv").open())) for number in (1, 2))
    assert answered == []
    assert [(row["item"], row["value"]) for row in rows] == [("liking", "2"), ("words", "It was fine.")]


@pytest.mark.long
def test_answers_branch_conditions_are_drawn_and_pictures_and_films_are_shown(chromium: Any, tmp_path: Path) -> None:
    folder, launch, path = tmp_path / "study", tmp_path / "light.toml", tmp_path / "protocol.toml"
    path.write_text(BRANCHED)
    Image.new("RGB", (40, 30), "red").save(tmp_path / "cup.png")
    (tmp_path / "film.webm").write_bytes(b"no film, but served as one")
    protocol = read_protocol(path)
    planned = {number: [step for step in steps_of(protocol, number) if step.kind == "trial"] for number in (1, 2)}
    launch.write_text(LIGHT.format(folder=folder, protocol=path))
    problems: list[str] = []
    with PageRun("run", launch, "--out", tmp_path / "one", pages=2) as run:
        guide = come(chromium, run.addresses["study", "experimenter"], problems)
        address = run.addresses["study", "participant"]
        for number, met in ((1, "yes"), (2, "no")):
            person = come(chromium, address, problems)
            begin(guide, person, number)
            shows(person, "#participant h2", "First")
            assert not person.is_visible("textarea"), "only who has met a robot is asked which one"
            person.locator(f"input[value={met}]").check(force=True)
            if met == "yes":
                person.fill("textarea", "A red one.")
                person.click("text=Continue")
                shows(person, "#participant h2", "More")
                person.locator("input[type=radio]").nth(1).check(force=True)
            person.click("text=Continue")
            for place, step in enumerate(planned[number], 1):
                assert step.task is not None
                assert step.condition is not None
                shows(person, "#participant h2", step.task.title)
                shows(guide, "#current", step.condition.title)
                if step.task.id == "one":
                    shows_its_media(person)
                shows(guide, "#where", "recorder ready")
                guide.click("#controls .main")
                shows(guide, "#where", f"recording to P0{number}-trial-{place}-1.mcap")
                guide.click("#controls .main")
            shows(person, "#participant h2", "Thank you")
            address = next_address(guide, address)
    assert problems == []
    for number, trials in planned.items():
        events = [one for one in read_events(folder / f"P0{number}.jsonl") if one.what == "trial"]
        begun = [one.step for one in events if one.how == "started"]
        assert begun == [step.ident for step in trials]
    assert {step.condition.id for steps in planned.values() for step in steps if step.condition} == {"slow", "fast"}
    with (folder / "P02.csv").open() as file:
        assert [row["item"] for row in csv.DictReader(file)] == ["met"], "who has met none is asked no more of it"
