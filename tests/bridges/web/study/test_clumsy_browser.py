"""Clumsy people at a study's pages, in a browser: double clicks, back and reload, a full disk, signs of any kind."""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridges.web.study.export import gather
from bridges.web.study.journal import read_events
from tests.bridges.web.study.test_study_browser import LIGHT, shows
from tests.support.pages.axe import findings
from tests.support.pages.page_run import PageRun
from tests.support.pages.paging import HELD_MS, MARKS, PHONE, a_browser, come, text, wait

pytestmark = MARKS
NAME = "רובין \N{ROBOT FACE}"
TURNED = "\N{RIGHT-TO-LEFT OVERRIDE}Ada"
WORDS = "\N{WAVING HAND SIGN}\N{EMOJI MODIFIER FITZPATRICK TYPE-5} مرحبا, 'quoted', \"twice\", and\na line. "
PROTOCOL = f"""
title = "Reden"
language = "de"
[consent]
text = "Eine kurze Studie."
statements = ["Ich mache mit."]
[names]
robot = "{NAME}"
[[task]]
id = "talk"
title = "Reden"
text = "Sag hallo."
[[condition]]
id = "only"
title = "{NAME}"
[questionnaires]
before = ["first", "second"]
after_trial = ["closing"]
[[questionnaire]]
id = "first"
title = "Zuerst"
[[questionnaire.item]]
id = "words"
text = "Wie heißen Sie?"
kind = "text"
required = false
[[questionnaire]]
id = "second"
title = "Dann"
[[questionnaire.item]]
id = "words"
text = "Und sonst?"
kind = "text"
required = false
[[questionnaire]]
id = "closing"
title = "Zum Schluss"
[[questionnaire.item]]
id = "words"
text = "Noch etwas?"
kind = "text"
"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with a_browser() as opened:
        yield opened


class Study:
    """A run of the protocol, with both pages open."""

    def __init__(self, chromium: Any, folder: Path) -> None:
        self.folder, launch, protocol = folder / "study", folder / "light.toml", folder / "protocol.toml"
        protocol.write_text(PROTOCOL, encoding="utf-8")
        launch.write_text(LIGHT.format(folder=self.folder, protocol=protocol))
        self.problems: list[str] = []
        self._chromium = chromium
        self.run = PageRun("run", launch, "--out", folder / "out", pages=2)
        self.guide = self.page("experimenter")
        self.person = self.page("participant", PHONE)

    def page(self, role: str, size: dict[str, int] | None = None) -> Any:
        return come(self._chromium, self.run.addresses["study", role], self.problems, size)

    def begins(self) -> None:
        self.guide.fill("#number", "1")
        self.guide.keyboard.press("Enter")
        shows(self.person, "#participant", "Ich mache mit.")
        agree_in_german(self.person)

    def to_the_trial(self) -> None:
        """Past what is asked before it."""
        for title in ("Zuerst", "Dann"):
            shows(self.person, "#participant h2", title)
            self.person.click("text=Weiter")
        shows(self.guide, "#current", "Trial 1")
        shows(self.guide, "#where", "recorder ready")

    def limit_files(self, size: int) -> None:
        """To all processes of the run the disk is full where a file would be larger; -1: as it was."""
        for pid in {int(one) for line in self.run.lines for one in re.findall(r"\[pid (\d+)\] started", line)}:
            hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard if size < 0 else size, hard))

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *_: object) -> None:
        self.run.__exit__(None, None, None)


def agree_in_german(page: Any) -> None:
    for box in page.locator(".tick input").all():
        box.check()
    page.click("text=Ich stimme zu >> nth=-1")


@pytest.mark.long
def test_a_double_click_and_a_key_pressed_twice_are_one_press(chromium: Any, tmp_path: Path) -> None:
    with Study(chromium, tmp_path) as study:
        guide, person = study.guide, study.person
        study.begins()
        shows(person, "#participant h2", "Zuerst")
        person.dblclick("text=Weiter")  # the next one asks for nothing, either
        shows(person, "#participant h2", "Dann")
        person.dblclick("#withdraw")
        shows(person, "#notice", "Drücken Sie noch einmal")
        assert text(person, "#participant h2") == "Dann"
        person.click("text=Weiter")
        shows(guide, "#where", "recorder ready")
        guide.dblclick("#controls .main")
        shows(guide, "#controls", "End trial")
        guide.focus("#controls .main")
        guide.keyboard.press("Space")  # stops the robot, wherever the focus is, and ends no trial
        wait(guide, lambda: bool(guide.get_attribute("#stop", "data-told")), "the stop is sent")
        guide.dblclick("text=Pause")
        shows(guide, "#controls", "Go on")
        guide.click("text=Go on")
        shows(guide, "#controls", "Pause")
        guide.focus("text=Abort")
        for _ in range(2):
            guide.keyboard.press("Enter")
        shows(guide, "#controls", "Abort: sure?")
        guide.wait_for_timeout(600)
        guide.dblclick("text=Abort")
        shows(guide, "#controls", "Start again")
        guide.click("#controls .main")
        shows(guide, "#controls", "End trial")
        guide.dblclick("text=Abort")
        shows(guide, "#controls", "Abort: sure?")
        guide.click("text=Abort: sure?")
        shows(guide, "#controls", "Start again")
        guide.click("h1")
        guide.keyboard.press("t")  # too short: somebody types
        guide.keyboard.press("t", delay=HELD_MS)
        guide.keyboard.press("t", delay=HELD_MS)
        shows(guide, "#controls", "End trial")
        shows(guide, "#notice", "only just begun")
        wait(guide, lambda: text(guide, "#clock") not in ("0:00", "–", "no limit"), "a second is over")
        guide.keyboard.press("t", delay=HELD_MS)
        shows(person, "#participant h2", "Zum Schluss")
    assert study.problems == []
    trials = [one.how for one in read_events(study.folder / "P01.jsonl") if one.what == "trial"]
    assert trials == ["started", "aborted", "started", "aborted", "started", "completed"]


@pytest.mark.long
def test_who_once_pressed_stop_taking_part_and_thought_better_of_it_is_asked_anew(
    chromium: Any, tmp_path: Path
) -> None:
    with Study(chromium, tmp_path) as study:
        person = study.person
        person.clock.install()
        study.begins()
        person.click("#withdraw")
        assert text(person, "#withdraw") == "Ja, ich möchte aufhören"
        person.clock.fast_forward(9000)
        assert text(person, "#withdraw") == "Ich möchte aufhören"
        person.click("#withdraw")
        assert text(person, "#withdraw") == "Ja, ich möchte aufhören"
        person.click("#withdraw")
        shows(person, "#participant", "Sie haben aufgehört")


@pytest.mark.long
def test_back_forward_and_reload_lose_neither_the_step_nor_what_was_typed(chromium: Any, tmp_path: Path) -> None:
    with Study(chromium, tmp_path) as study:
        person = study.person
        study.begins()
        shows(person, "#participant h2", "Zuerst")
        person.fill("textarea", WORDS)
        person.goto("about:blank")
        person.go_back()
        wait(person, lambda: person.locator("textarea").count() == 1, "the page is back")
        assert person.input_value("textarea") == WORDS
        person.fill("textarea", WORDS * 2)
        person.reload()  # at once
        wait(person, lambda: person.locator("textarea").count() == 1, "it comes again")
        assert person.input_value("textarea") == WORDS * 2
        assert "#" not in person.url
        person.go_back()  # past the page, to where it came from
        person.go_forward()
        wait(person, lambda: person.locator("textarea").count() == 1, "it comes again")
        assert person.input_value("textarea") == WORDS * 2
        study.to_the_trial()
        study.guide.click("#controls .main")
        person.wait_for_selector("#words")
        person.reload()
        person.wait_for_selector("#words")
        person.fill("#words", WORDS)
        person.keyboard.press("Enter")
        shows(person, ".story", "quoted")
        study.guide.reload()
        shows(study.guide, "#lines", "quoted")
        study.guide.click("#controls .main")
        shows(person, "#participant h2", "Zum Schluss")
    assert study.problems == []


@pytest.mark.long
def test_names_from_right_to_left_and_answers_of_10_kb_are_shown_and_kept(chromium: Any, tmp_path: Path) -> None:
    long = (WORDS * 200)[:10_000]
    with Study(chromium, tmp_path) as study:
        guide, person = study.guide, study.person
        study.begins()
        shows(person, "#participant h2", "Zuerst")
        person.fill("textarea", TURNED)
        person.evaluate(
            "() => { document.querySelector('textarea').value += String.fromCharCode(0xd83d); }"
        )  # half of one
        person.click("text=Weiter")
        shows(person, "#participant h2", "Dann")
        person.fill("textarea", long)
        shows(guide, "#answers", "quoted")
        person.evaluate("() => document.querySelector('textarea').focus()")
        person.keyboard.insert_text("x" * 8_000)
        shows(person, "#notice", "Mehr lässt sich hier nicht schreiben.")
        person.fill("textarea", long)
        person.click("text=Weiter")
        shows(guide, "#current", NAME)
        for page in (guide, person):
            assert findings(page) == []
            assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"
        shows(guide, "#where", "recorder ready")
        guide.fill("#note-text", TURNED)
        guide.keyboard.press("Enter")
        shows(guide, "#lines", TURNED)
        turned = guide.locator("#lines p").last
        assert turned.evaluate("one => getComputedStyle(one).unicodeBidi") in ("isolate", "plaintext")
        guide.click("#controls .main")
        person.wait_for_selector("#words")
        guide.click("#controls .main")
        shows(person, "#participant h2", "Zum Schluss")
        person.fill("textarea", "\N{SMILING FACE WITH OPEN MOUTH}")
        person.click("text=Weiter")
        shows(person, "#participant h2", "Danke")
    assert study.problems == []
    kept = [one["value"] for one in gather(study.folder, []).rows["answers"]]
    assert kept == [f"{TURNED}\N{REPLACEMENT CHARACTER}", long, "\N{SMILING FACE WITH OPEN MOUTH}"]


def forget_notice(page: Any) -> None:
    """So that the next notice is known from one with the same words."""
    page.evaluate("document.querySelector('#notice').textContent = ''")


def test_a_disk_that_is_full_in_a_trial_is_told_in_words_and_nothing_is_lost(chromium: Any, tmp_path: Path) -> None:
    with Study(chromium, tmp_path) as study:
        guide, person = study.guide, study.person
        study.begins()
        study.to_the_trial()
        guide.click("#controls .main")
        person.wait_for_selector("#words")
        study.limit_files(1)
        person.fill("#words", "Hallo.")
        person.keyboard.press("Enter")
        shows(guide, "#notice", "what collaborator said: it could not be written")
        guide.fill("#note-text", "Ist die Platte voll?")
        guide.keyboard.press("Enter")
        shows(guide, "#notice", "nothing was changed")
        wait(guide, lambda: guide.locator("#controls .main").count() == 1, "the trial can be ended")
        forget_notice(guide)
        guide.click("#controls .main")
        shows(guide, "#notice", "nothing was changed")
        shows(guide, "#controls", "End trial")
        study.limit_files(-1)
        shows(person, ".story", "Hallo.")
        guide.click("#controls .main")
        shows(person, "#participant h2", "Zum Schluss")
        study.limit_files(1)
        person.fill("textarea", "Das war alles.")
        shows(person, "#notice", "Das konnte nicht gespeichert werden.")
        person.click("text=Weiter")
        shows(person, "#notice", "noch nicht beantwortet")  # refused, before there is room again
        assert person.input_value("textarea") == "Das war alles."
        study.limit_files(-1)
        person.click("text=Weiter")
        shows(person, "#participant h2", "Danke")
    assert study.problems == []
    events = read_events(study.folder / "P01.jsonl")
    assert [one.how for one in events if one.what == "trial"] == ["started", "completed"]
    assert [one.text for one in events if one.what == "said"] == ["Hallo."]
    assert [one.value for one in events if one.what == "answer"] == ["Das war alles."]


@pytest.mark.long
def test_keys_of_the_experimenter_s_page_are_chosen_kept_and_switched_off(chromium: Any, tmp_path: Path) -> None:
    with Study(chromium, tmp_path) as study:
        guide = study.guide
        study.begins()
        study.to_the_trial()
        guide.click("#chosen-keys summary")
        guide.click("#chosen-keys input[data-of=t]")
        guide.keyboard.press("k", delay=HELD_MS)
        shows(guide, "#chosen-keys [role=status]", "K: Start or end the trial.")
        assert findings(guide) == []
        guide.reload()
        shows(guide, "#controls .main kbd", "K")
        guide.click("h1")
        guide.keyboard.press("t", delay=HELD_MS)
        guide.click("#single-keys")
        guide.click("h1")
        guide.keyboard.press("k", delay=HELD_MS)
        guide.keyboard.press("m")
        guide.click("#single-keys")
        guide.click("h1")
        assert "Start trial" in text(guide, "#controls")
        guide.keyboard.press("k", delay=HELD_MS)
        shows(guide, "#controls", "End trial")
    assert study.problems == []
    whats = [one.what for one in read_events(study.folder / "P01.jsonl")]
    assert (whats.count("trial"), whats.count("mark")) == (1, 0)
