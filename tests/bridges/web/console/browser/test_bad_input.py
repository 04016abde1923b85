"""What nobody means at the operator's page, in a browser: a night away, a wrong clock, two at once, double clicks."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bridges.web.console.browser.test_stop import renderers
from tests.support.pages.browsing import MARKS, a_browser, give_back, go_on, page_of, take_driving, text, wait, x_of
from tests.support.pages.console_run import ROOT, ConsoleRun
from tests.support.running import eventually

pytestmark = MARKS
HOUR_BACK = """() => {
  const [now, wall] = [Date.now.bind(Date), performance.timeOrigin];
  Date.now = () => now() - 3600e3;
  Object.defineProperty(performance, 'timeOrigin', {get: () => wall - 3600e3});
}"""
DROPS_TAKES = """() => {
  const send = WebSocket.prototype.send;
  window.sent = [];
  window.drops = false;
  WebSocket.prototype.send = function (text) {
    if (window.drops && text.includes('"take"')) return;
    window.sent.push(text);
    send.call(this, text);
  };
}"""
SENT = "(kind) => window.sent.filter((one) => JSON.parse(one).t === kind).length"
TURNED = "\N{RIGHT-TO-LEFT OVERRIDE}מנחה \N{ROBOT FACE}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleRun]:
    with ConsoleRun(ROOT / "launch" / "wizard.toml", tmp_path_factory.mktemp("bad-input")) as started:
        yield started


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with a_browser() as opened:
        yield opened


def drives(page: Any, key: str = "w") -> None:
    """A key that is held moves the base, and stands when it is let go."""
    go_on(page)
    start = x_of(page)
    page.keyboard.down(key)
    wait(page, lambda: abs(x_of(page) - start) > 0.03, "it drives")
    page.keyboard.up(key)
    wait(page, lambda: "0.00 m/s" in text(page, "#odometry"), "it stands")


@pytest.mark.long
def test_by_a_machine_whose_clock_is_an_hour_wrong_somebody_drives_as_ever(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
        page.add_init_script(f"({HOUR_BACK})()")
        page.reload()
        wait(page, lambda: "x " in text(page, "#odometry"), "the robot is seen")
        take_driving(page)
        drives(page)
        drives(page, "s")
        age = text(page, "#image-age")
        assert age.endswith("ms"), age
        assert int(age.split()[0]) < 5000
        give_back(page)


@pytest.mark.long
def test_a_page_that_is_left_open_over_night_comes_back_by_itself_and_drives_by_nothing_held_in_the_evening(
    run: ConsoleRun, chromium: Any
) -> None:
    with page_of(chromium, run) as page:
        page.clock.install()
        page.reload()
        wait(page, lambda: "x " in text(page, "#odometry"), "the robot is seen")
        take_driving(page)
        go_on(page)
        start = x_of(page)
        page.keyboard.down("w")
        wait(page, lambda: x_of(page) > start + 0.03, "it drives")
        lines, pids = len(run.lines), renderers(page)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            eventually(lambda: any("is lost" in line for line in run.lines[lines:]), "the seat goes home", 60.0)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        page.clock.fast_forward("10:00:00")
        wait(page, lambda: text(page, ".holder[data-seat=policy]") == "model", "the page is back, and the seat away")
        wait(page, lambda: page.get_attribute("#cover", "data-off") == "true", "nothing covers it")
        wait(page, lambda: text(page, "#guard-mode") == "stopped", "the robot was stopped when nobody drove any more")
        page.keyboard.up("w")
        take_driving(page)
        drives(page, "s")
        give_back(page)


@pytest.mark.long
def test_two_wizards_who_press_at_once_share_nothing(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as one, page_of(chromium, run) as other:
        for page, name in ((one, "Ada"), (other, TURNED)):
            wait(page, lambda here=page: "x " in text(here, "#odometry"), "seen")  # type: ignore[misc]
            page.click("#people")
            page.fill("#call-me [name=name]", name)
            page.keyboard.press("Enter")
            page.click("#who-close")
        presses = "() => document.querySelector('button.seat[data-seat=policy]').click()"
        for page in (one, other):
            page.evaluate(presses)
        holders = [text(page, ".holder[data-seat=policy]") for page in (one, other)]

        def is_settled() -> bool:
            holders[:] = [text(page, ".holder[data-seat=policy]") for page in (one, other)]
            return holders.count("you") == 1 and "model" not in holders

        wait(one, is_settled, "one of the two sits")
        mine, others = (one, other) if holders[0] == "you" else (other, one)
        assert holders[1 if mine is one else 0] in ("Ada", TURNED), "and the other reads who"
        go_on(mine)
        start = x_of(mine)
        mine.keyboard.down("w")
        others.keyboard.down("s")
        wait(mine, lambda: x_of(mine) > start + 0.1, "the one drives ahead, whatever the other holds")
        shown = text(others, "#notice")
        mine.keyboard.up("w")
        others.keyboard.up("s")
        assert "drives; hold" in shown, "who does not sit is told how to ask"
        for page in (one, other):
            page.fill("#words", f"{text(page, '#people')} at once")
            page.press("#words", "Enter")
        for page in (one, other):
            page.evaluate("() => document.querySelector('#stop').dispatchEvent(new PointerEvent('pointerdown'))")
        wait(one, lambda: text(one, "#guard-mode") == "stopped", "either stops")
        for page in (one, other):
            page.evaluate("() => document.querySelector('#resume').click()")
        wait(one, lambda: text(one, "#guard-mode") != "stopped", "and either resumes")
        wait(one, lambda: text(one, "#story").count("at once") >= 2, "both were said")
        assert one.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        isolated = "() => getComputedStyle(document.querySelector('#story .who')).unicodeBidi"
        assert one.evaluate(isolated) == "isolate", "a name turns nothing around"
        mine.evaluate("() => document.activeElement.blur()")
        give_back(mine)


def test_a_double_click_or_a_key_that_is_held_does_not_re_arm_and_resume_at_once(
    run: ConsoleRun, chromium: Any
) -> None:
    with page_of(chromium, run) as page:
        for press in ("mouse", "keyboard"):
            go_on(page)
            page.click("#estop")
            wait(page, lambda: text(page, "#resume") == "Re-arm", "it is latched")
            if press == "mouse":
                page.dblclick("#resume")
            else:
                page.focus("#resume")
                for _ in range(30):  # as a key that is held repeats itself
                    page.keyboard.down("Enter")
                page.keyboard.up("Enter")
            wait(page, lambda: text(page, "#resume") == "Resume", "it is re-armed")
            page.wait_for_timeout(500)
            assert text(page, "#guard-mode") == "stopped", f"by {press}"
            page.click("#resume")
            wait(page, lambda: text(page, "#guard-mode") != "stopped", "a second press resumes")


@pytest.mark.long
def test_a_double_click_says_and_forgets_one_thing_and_no_act_waits_for_a_seat_that_does_not_come(
    run: ConsoleRun, chromium: Any
) -> None:
    poses = [{"name": name, "joints": {"lift": 0.5}} for name in ("one", "two", "three")]
    with page_of(chromium, run) as page:
        page.evaluate("(kept) => localStorage.setItem('library', kept)", json.dumps({"poses": poses}))
        page.reload()
        wait(page, lambda: "x " in text(page, "#odometry"), "the robot is seen")
        page.evaluate(DROPS_TAKES)
        page.dblclick("#sentences button >> nth=0")
        page.click("[data-shows=poses]")
        page.dblclick("#poses .away >> nth=0")
        assert page.locator("#poses .away").count() == 2
        page.click("#tab-vlm")
        page.evaluate("() => { window.drops = true; }")
        page.click("[data-act=hold]")
        wait(page, lambda: "did not come" in text(page, "#notice"), "the seat does not come")
        page.evaluate("() => { window.drops = false; }")
        page.click("button.seat[data-seat=vlm]")
        wait(page, lambda: text(page, ".holder[data-seat=vlm]") == "you", "it is taken later")
        page.wait_for_timeout(500)
        assert (page.evaluate(SENT, "say"), page.evaluate(SENT, "act")) == (1, 0)
        page.click("button.seat[data-seat=vlm]")
        wait(page, lambda: text(page, ".holder[data-seat=vlm]") == "model", "it is given back")
        go_on(page)
        page.click("#layout")
        page.click("#chosen-keys summary")
        page.focus("#chosen-keys input")
        page.keyboard.press("Space")
        wait(page, lambda: text(page, "#guard-mode") == "stopped", "a field that is only read stops, too")
        assert page.input_value("#chosen-keys input >> nth=0") == "W"


@pytest.mark.parametrize(
    "written",
    [
        "no JSON",
        "null",
        "[1, 2]",
        json.dumps({"layouts": {"mine": None, "x": {"away": 5, "wide": {}, "keys": "w"}}, "library": {"poses": 7}}),
        json.dumps({"library": {"poses": [{"name": "x"}], "motions": [{"name": "y", "samples": [1]}]}}),
    ],
)
@pytest.mark.long
def test_a_file_that_the_page_has_not_written_breaks_nothing(
    run: ConsoleRun, chromium: Any, written: str, tmp_path: Path
) -> None:
    file = tmp_path / "polyrhythm-operator.json"
    file.write_text(written)
    with page_of(chromium, run) as page:
        for _ in range(2):
            wait(page, lambda: "x " in text(page, "#odometry"), "the robot is seen")
            page.click("#layout")
            page.set_input_files("#read-file", file)
            wait(page, lambda: file.name in text(page, "#notice"), "what became of it is told")
            page.click("#layouts-close")
            page.reload()


def test_a_text_of_10_kb_is_cut_where_it_is_typed_and_without_a_link_it_stays(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
        wait(page, lambda: "x " in text(page, "#odometry"), "the robot is seen")
        page.focus("#words")
        page.keyboard.insert_text("\N{WAVING HAND SIGN}" * 5000)
        typed = page.input_value("#words")
        assert len(typed) <= 1000
        page.keyboard.press("Enter")
        wait(page, lambda: typed in text(page, "#story"), "it is said")
        assert page.input_value("#words") == ""
        page.evaluate("() => { WebSocket.prototype.send = function () { this.close(); }; }")  # the link goes
        wait(page, lambda: page.get_attribute("#cover", "data-off") == "false", "it is told")
        page.focus("#words")
        page.keyboard.insert_text("Still there?")
        page.keyboard.press("Enter")
        assert page.input_value("#words") == "Still there?"
