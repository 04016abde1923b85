"""The real page in a real browser against the real simulator: speak, stop, drive, sit in, lose the link."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from tests.support.pages.axe import findings
from tests.support.pages.browsing import (
    HOLD_MS,
    MARKS,
    a_browser,
    give_back,
    go_on,
    page_of,
    press_until,
    take_driving,
    text,
    wait,
    x_of,
)
from tests.support.pages.console_run import ROOT, ConsoleRun

pytestmark = MARKS


BESIDE = """
[nodes.battery]
use = "tests.support.pages.web_nodes:Battery"
process = "beside"

[nodes.planned]
use = "tests.support.pages.web_nodes:Planned"
process = "beside"
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleRun]:
    """The shipped graph, with a battery and, on demand, a policy that plans ahead."""
    folder = tmp_path_factory.mktemp("wizard")
    launch = folder / "beside.toml"
    shipped = (ROOT / "launch" / "wizard.toml").read_text()
    driver = 'use     = "nodes.sim.driver:SimDriver"\n'
    assert driver in shipped
    # The simulated robot's own word on its state has no battery: another's is heard instead.
    shipped = shipped.replace(driver, 'use     = "tests.support.pages.web_nodes:DriverWithoutBattery"\n')
    # It looks straight ahead, where it drives to.
    launch.write_text("".join(line for line in shipped.splitlines(True) if "head_pan_rad" not in line) + BESIDE)
    with ConsoleRun(launch, folder / "out", "head_camera.process=eyes") as started:  # one that freezes by itself
        yield started


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with a_browser() as opened:
        yield opened


def hold(page: Any, key: str) -> None:
    """What takes a seat is no single press."""
    page.keyboard.press(key, delay=HOLD_MS)


def press(page: Any, selector: str) -> None:
    """Click it, wherever it stands."""
    page.evaluate("(selector) => document.querySelector(selector).click()", selector)


def order(page: Any, words: str) -> None:
    """Say something as the robot's collaborator."""
    page.check("input[name=voice][value=collaborator]", force=True)
    page.fill("#words", words)
    page.press("#words", "Enter")
    page.check("input[name=voice][value=robot]", force=True)
    page.evaluate("() => document.activeElement.blur()")


MODES = ("armed", "moving", "holding", "stopped")
REASON = "the arm touches something at its wrist: look, then press Resume twice; the camera's picture is late as well"
CUT = """(reason) => {
  document.querySelector('#guard-reason').textContent = reason;
  const pill = document.querySelector('#guard').getBoundingClientRect();
  return ['#guard', '#guard-mode', '#guard-reason'].filter((name) => {
    const one = document.querySelector(name), box = one.getBoundingClientRect();
    const isScrolled = one.clientHeight > 0 && one.scrollHeight > one.clientHeight + 1;
    return isScrolled || box.left < -1 || box.right > innerWidth + 1 || box.bottom > pill.bottom + 1 || box.top < -1;
  });
}"""
SMALL = """() => [...document.querySelectorAll('button, select, input:not([type=radio])')]
  .filter((one) => one.offsetParent)
  .map((one) => [one.outerHTML.slice(0, 80), one.getBoundingClientRect()])
  .filter(([, box]) => box.width < 24 || box.height < 24)
  .map(([what, box]) => `${what} ${box.width}x${box.height}`)"""


@pytest.mark.long
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
        give_back(page)


@pytest.mark.long
def test_who_would_drive_without_the_seat_is_told_how_to_get_it(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
        wait(page, lambda: text(page, ".holder[data-seat=policy]") == "model", "the model drives")
        for way in ("a key", "a button", "a slider"):
            page.evaluate("() => { document.querySelector('#notice').textContent = ''; }")
            if way == "a key":
                page.keyboard.press("w")
            elif way == "a button":
                page.click("#joints [data-hold='+lift']", force=True)  # it looks locked
            else:
                page.click("input[data-joint=lift]", force=True)
            wait(page, lambda: text(page, "#notice") == "take over driving first: hold P", f"{way} tells it")
    with page_of(chromium, run, "viewer") as page:
        page.keyboard.press("w")
        wait(page, lambda: text(page, "#link") != "–", "a viewer sees the run")
        assert text(page, "#notice") == ""


@pytest.mark.long
def test_who_drives_is_told_why_the_robot_does_not_nod(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
        take_driving(page)
        hold(page, "n")
        wait(page, lambda: "no gesture before driving is given back" in text(page, "#notice"), "it is told")
        assert text(page, ".holder[data-seat=vlm]") == "model"
        give_back(page)


@pytest.mark.long
def test_a_layout_is_kept_by_name_and_a_part_that_is_away_stays_away(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
        page.click("#layout")
        page.locator("#parts label", has_text="Gestures").locator("input").uncheck()
        page.fill("#keep-layout [name=name]", "Calm")
        page.press("#keep-layout [name=name]", "Enter")
        page.click("#layouts-close")
        page.reload()
        wait(page, lambda: text(page, "#guard-mode") != "connecting", "the page is back")
        assert not page.is_visible("#gestures")
        page.click("#layout")
        assert page.locator("#named button").first.text_content() == "Calm"


@pytest.mark.long
def test_a_single_key_is_chosen_kept_with_the_layout_and_told_on_the_buttons(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
        page.click("#layout")
        assert not page.evaluate("() => document.activeElement.matches('.stop')"), "Enter stops nothing by surprise"
        page.click("#chosen-keys summary")
        page.press("#chosen-keys [data-of=m]", "w")
        assert text(page, "#chosen-keys [role=status]") == "W already is: Ahead."
        page.press("#chosen-keys [data-of=m]", ";")
        assert text(page, "#chosen-keys [role=status]") == ";: Mark."
        page.reload()
        wait(page, lambda: text(page, "#guard-mode") != "connecting", "the page is back")
        assert text(page, "#mark kbd") == ";"
        before = page.locator("#story .mark").count()
        page.keyboard.press("m")
        page.keyboard.press(";")
        wait(page, lambda: page.locator("#story .mark").count() > before, "the new key marks")
        assert page.locator("#story .mark").count() == before + 1
        page.click("#layout")
        page.click("#chosen-keys summary")
        page.press("#chosen-keys [data-of=m]", "Delete")
        assert text(page, "#mark kbd") == "M"
        page.click("#layouts .stop")
        wait(page, lambda: text(page, "#guard-mode") == "stopped", "a dialog that covers the header has its own stop")
        page.click("#layouts-close")
        go_on(page)


@pytest.mark.long
def test_a_reload_keeps_the_seat_and_the_story(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
        take_driving(page)
        page.reload()
        wait(page, lambda: text(page, ".holder[data-seat=policy]") == "you", "the seat is still theirs")
        assert "takes over driving" in text(page, "#events")
        give_back(page)


@pytest.mark.long
def test_a_person_is_invited_by_name_the_token_leaves_the_address_bar_and_is_taken_back(
    run: ConsoleRun, chromium: Any
) -> None:
    with page_of(chromium, run) as page:
        assert "#" not in page.url
        page.click("#people")
        page.fill("#invite [name=name]", "Zoë 🦊")
        page.click("#invite button")
        wait(page, lambda: page.is_visible("#invited svg"), "there is an address, and its QR code")
        assert findings(page) == []
        with page_of(chromium, run) as guest:
            guest.goto("about:blank")
            guest.goto(page.input_value("#invited input"))
            wait(guest, lambda: "Zoë 🦊" in text(guest, "#here"), "who was invited is here by that name")
            guest.press("body", "m")
            wait(page, lambda: "Zoë 🦊: mark" in text(page, "#story"), "and it stands in what they do")
            page.click("#invites button")
            wait(guest, lambda: "Not let in" in text(guest, "#cover-text"), "until it is taken back")


HOSTILE = [
    "<script>document.title='taken'</script><img src=x onerror=document.title='taken'>",
    "red\u001b[31m bell\u0007 null\u0000 right\u202eleft",
]


@pytest.mark.parametrize("words", HOSTILE, ids=["a script", "control characters"])
def test_what_is_hostile_in_an_utterance_is_text(run: ConsoleRun, chromium: Any, words: str) -> None:
    with page_of(chromium, run) as page:
        page.check("input[name=voice][value=robot]", force=True)
        page.fill("#words", words)
        page.press("#words", "Enter")
        wait(page, lambda: words in text(page, "#story"), "what was said is shown as it was said")
        assert page.locator("#story script, #story img").count() == 0
        assert page.title() == "Polyrhythm console"


@pytest.mark.long
def test_the_battery_of_a_robot_that_has_one_is_shown(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run, "viewer") as page:
        wait(page, lambda: page.is_visible("#battery"), "there is a battery")
        assert text(page, "#battery") == "12.6 V"


def ahead_m(page: Any) -> list[float]:
    """How far ahead of the base each point of the predicted path on the map is."""
    line = page.locator("#map polyline.path")
    points = [point.split(",") for point in (line.get_attribute("points") or "").split()] if line.count() else []
    return [float(points[0][1]) - float(point[1]) for point in points]  # up on the map is ahead


WATCH_STROKES = """() => {
  const pens = CanvasRenderingContext2D.prototype, { moveTo, lineTo, stroke } = pens;
  let line = []; window.lines = {};
  pens.moveTo = function (x, y) { line = [[x, y]]; return moveTo.call(this, x, y); };
  pens.lineTo = function (x, y) { line.push([x, y]); return lineTo.call(this, x, y); };
  pens.stroke = function (...given) {
    const place = this.getTransform();
    const points = line.map(([x, y]) => [place.a * x + place.e, place.d * y + place.f]);
    if (this.canvas.closest("[data-camera=head]")) window.lines[this.strokeStyle] = points;
    return stroke.apply(this, given);
  };
}"""
"""What is drawn on the head camera's canvas from now on: the newest line of each colour, in its pixels."""

COLOURED = """(colour) => {
  const canvas = document.querySelector("[data-camera=head] canvas"), points = window.lines[colour] ?? [];
  const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const wanted = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  let count = 0;
  for (let part = 1; part < points.length; part += 1) {
    const [[x0, y0], [x1, y1]] = [points[part - 1], points[part]], steps = Math.ceil(Math.hypot(x1 - x0, y1 - y0));
    for (let step = 0; step < steps; step += 1) {
      const x = Math.floor(x0 + (x1 - x0) * step / steps), y = Math.floor(y0 + (y1 - y0) * step / steps);
      if (x < 0 || y < 0 || x >= width || y >= height) continue;
      const at = 4 * (y * width + x);
      count += wanted.every((value, channel) => Math.abs(data[at + channel] - value) < 60);
    }
  }
  return count;
}"""
"""How many pixels along that line have its colour."""

BASE_COLOUR = "#6cd0ff"


def in_view(page: Any) -> int:
    """How much of the way ahead of the base is seen over the head camera's picture, in pixels."""
    return int(page.evaluate(COLOURED, BASE_COLOUR))


@pytest.mark.long
def test_the_path_of_the_current_chunk_is_drawn(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
        wait(page, lambda: "x " in text(page, "#odometry"), "the robot is seen")
        page.evaluate(WATCH_STROKES)
        page.fill("#note", "plan")
        page.press("#note", "Enter")
        wait(page, lambda: max(ahead_m(page), default=0.0) > 0.4, "the way on the map")
        assert ahead_m(page) == sorted(ahead_m(page))
        wait(page, lambda: in_view(page) > 10, "and over the camera's image")
        page.fill("#note", "no more")
        page.press("#note", "Enter")
        wait(page, lambda: max(ahead_m(page), default=0.0) < 0.05, "an old chunk says nothing about where it goes")
        wait(page, lambda: in_view(page) < 5, "nor over the image")


@pytest.mark.long
def test_two_operators_share_no_seat(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as one, page_of(chromium, run) as other:
        take_driving(one)
        wait(other, lambda: text(other, ".holder[data-seat=policy]") == "operator", "the other sees who")
        asked = "asks for this seat"
        press_until(other, lambda: asked in text(one, "#panel-policy"), "one is asked")
        one.click("#panel-policy .wish button:has-text('Refuse')")
        wait(other, lambda: "keeps the seat policy" in text(other, "#notice"), "one keeps it")
        wait(one, lambda: asked not in text(one, "#panel-policy"), "the wish is gone")
        press_until(other, lambda: asked in text(one, "#panel-policy"), "one is asked again")
        one.click("#panel-policy .wish button:has-text('Grant')")
        wait(other, lambda: text(other, ".holder[data-seat=policy]") == "you", "it is passed on")
        one.click("[data-force=policy]")
        wait(one, lambda: text(one, ".holder[data-seat=policy]") == "you", "and taken back")
        wait(one, lambda: "by force" in text(one, "#events"), "which everybody sees")
        other.click("[data-force=policy]")
        wait(other, lambda: text(other, ".holder[data-seat=policy]") == "you", "the other has it")
        wait(one, lambda: text(one, ".holder[data-seat=policy]") == "operator", "one has it no more")
        give_back(other)


def lift_goals(frame: str | bytes) -> list[float]:
    """Where the page asks the lift to go."""
    goals = json.loads(frame).get("goals", {})
    return [float(goals["lift"])] if "lift" in goals else []


def lift_of(page: Any) -> float:
    return float(text(page, ".joint:has([data-joint=lift]) .value"))


@pytest.mark.long
def test_the_hand_goes_up_while_its_arrow_is_pressed_and_the_base_to_a_click_on_the_map(
    run: ConsoleRun, chromium: Any
) -> None:
    with page_of(chromium, run) as page:
        wait(page, lambda: "x " in text(page, "#odometry"), "the robot is seen")
        go_on(page)
        take_driving(page)
        before = lift_of(page)
        page.hover("[data-hold='hand+up']")
        page.mouse.down()
        wait(page, lambda: lift_of(page) > before + 0.05, "the hand goes up")
        page.mouse.up()
        page.keyboard.press("h")  # the same by keys
        page.keyboard.down("f")
        wait(page, lambda: lift_of(page) < before + 0.03, "and down")
        page.keyboard.up("f")
        page.keyboard.press("h")
        x_m = x_of(page)
        box = page.locator("#map").bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.3)
        page.keyboard.down("g")
        wait(page, lambda: x_of(page) > x_m + 0.1, "it drives to the spot")
        page.keyboard.up("g")
        wait(page, lambda: "0.00 m/s" in text(page, "#odometry"), "and stands when the key is let go")
        give_back(page)


@pytest.mark.long
def test_a_posture_a_step_and_a_kept_motion_move_the_robot_through_the_same_seat(
    run: ConsoleRun, chromium: Any
) -> None:
    def press_until(selector: str, fact: Callable[[], bool], what: str) -> None:
        page.hover(selector)
        page.mouse.down()
        wait(page, fact, what)
        page.mouse.up()

    with page_of(chromium, run, viewport={"width": 1440, "height": 900}) as page:
        wait(page, lambda: "x " in text(page, "#odometry"), "the robot is seen")
        go_on(page)
        take_driving(page)
        low = lift_of(page)
        page.click("[data-shows=places]")
        page.click("#record")
        page.click("[data-shows=poses]")
        press_until("[data-hold='pose High']", lambda: lift_of(page) > low + 0.06, "the lift goes up")
        page.click("[data-shows=places]")
        page.click("#record")
        kept = lift_of(page)
        page.check("input[name=way][value=step]")
        page.click("[data-hold='hand-up']")
        wait(page, lambda: lift_of(page) < kept + 0.02, "a step is a step")
        page.check("input[name=way][value=hold]")
        press_until("#motions [data-hold]", lambda: lift_of(page) < low + 0.04, "the motion begins where it began")
        press_until("#motions [data-hold]", lambda: lift_of(page) > kept - 0.03, "and goes up again")
        page.reload()
        wait(page, lambda: page.locator("#motions [data-hold]").count() == 1, "it is kept")
        give_back(page)


@pytest.mark.long
def test_a_still_is_a_file_with_a_mark_and_homing_asks_whether_that_is_sure(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
        wait(page, lambda: "Hz" in text(page, "[data-camera=head] .rate"), "pictures come")
        with page.expect_download() as kept:
            page.click("[data-still=head]")
        assert kept.value.suggested_filename.startswith("head-")
        wait(page, lambda: f"still: {kept.value.suggested_filename}" in text(page, "#story"), "it is marked")
        page.click("[data-shows=poses]")
        page.click("[data-service=home]")
        assert text(page, "[data-service=home]") == "Sure? home"
        assert "asks the robot to home" not in text(page, "#events")
        page.click("[data-service=home]")
        wait(page, lambda: "asks the robot to home" in text(page, "#events"), "the robot is asked")


@pytest.mark.long
def test_an_arrow_on_a_slider_moves_its_joint_by_a_hundredth_of_its_range(run: ConsoleRun, chromium: Any) -> None:
    goals: list[float] = []
    with page_of(chromium, run) as page:
        page.on("websocket", lambda socket: socket.on("framesent", lambda frame: goals.extend(lift_goals(frame))))
        page.reload()
        wait(page, lambda: "x " in text(page, "#odometry"), "the robot is seen")
        go_on(page)
        take_driving(page)
        slider = page.locator("input[data-joint=lift]")
        lowest, highest = (float(slider.get_attribute(end)) for end in ("min", "max"))
        for key, hundredths in (("ArrowRight", 1), ("ArrowDown", -1), ("PageUp", 10)):
            goals.clear()
            before = float(slider.evaluate("slider => { slider.focus(); return slider.value; }"))
            page.keyboard.press(key)
            wait(page, lambda: bool(goals), f"{key} is a goal")
            moved = 100 * (goals[0] - before) / (highest - lowest)
            # The lift may still sink between the two looks.
            assert abs(moved - hundredths) < 0.9 + 0.1 * abs(hundredths)
        give_back(page)


@pytest.mark.long
def test_keys_with_which_a_browser_begins_a_search_leave_the_focus_on_the_page(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run, "viewer") as page:
        page.evaluate("() => addEventListener('keydown', (event) => { window.kept = event.defaultPrevented; })")
        for key, is_kept in (("'", True), ("/", True), ("x", False)):
            page.keyboard.press(key)
            assert page.evaluate("() => window.kept") is is_kept


@pytest.mark.long
def test_a_draft_of_the_planner_waits_for_a_yes_and_may_be_edited(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
        go_on(page)
        page.click("#tab-planner")
        page.click("button.seat[data-seat=planner]")
        wait(page, lambda: text(page, ".holder[data-seat=planner]") == "you", "the planner's seat is taken")
        page.dispatch_event("[data-seat=planner] input[value=approve]", "click")
        page.fill("[data-seat=planner] [name=wait]", "60")
        page.press("[data-seat=planner] [name=wait]", "Tab")
        order(page, "Please clear the table: put the bowls in the bin")
        wait(page, lambda: page.is_visible("[data-seat=planner] .draft"), "the model's draft waits")
        wait(page, lambda: "bowl" in page.input_value("[data-seat=planner] .draft [name=text]"), "with its subtask")
        assert "bowl" not in text(page, "#subtask")
        page.fill("[data-seat=planner] .draft [name=text]", "Put every bowl in the bin, gently")
        page.fill("[data-seat=planner] .draft [name=sentence]", "I will be gentle.")
        order(page, "Please clear the table: put the cups in the bin")
        wait(
            page,
            lambda: page.is_visible("[data-seat=planner] .draft-next"),
            "the model's next draft stands beside what is typed",
        )
        assert page.input_value("[data-seat=planner] .draft [name=text]") == "Put every bowl in the bin, gently"
        page.press("[data-seat=planner] .draft [name=sentence]", "Enter")
        wait(page, lambda: text(page, "#subtask") == "Put every bowl in the bin, gently", "it goes out as edited")
        wait(page, lambda: "I will be gentle." in text(page, "#story"), "and is said")
        page.click("button.seat[data-seat=planner]")
        wait(page, lambda: text(page, ".holder[data-seat=planner]") == "model", "the model plans again")
        page.click("#stop")


@pytest.mark.long
def test_a_nod_moves_the_head_gives_the_seat_back_and_the_robot_s_work_goes_on(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
        go_on(page)
        order(page, "Please clear the table: put the cups in the bin")
        wait(page, lambda: "cup" in text(page, "#action"), "the robot works")
        hold(page, "n")
        wait(page, lambda: text(page, "#action") == "nod", "the robot is told to nod")
        wait(page, lambda: "nod" in text(page, "#feedback"), "and does")
        wait(page, lambda: text(page, ".holder[data-seat=vlm]") == "model", "the VLM has its seat again")
        wait(page, lambda: "cup" in text(page, "#action"), "and the work goes on")
        page.click("#stop")


@pytest.mark.long
def test_what_is_typed_with_no_field_in_focus_takes_no_seat_and_stops_nothing(run: ConsoleRun, chromium: Any) -> None:
    sent: list[str] = []
    with page_of(chromium, run) as page:
        go_on(page)
        page.evaluate("() => document.activeElement.blur()")
        page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(str(frame))))
        page.reload()
        wait(page, lambda: text(page, ".holder[data-seat=policy]") == "model", "the model drives")
        page.keyboard.type("pickupthebluecup", delay=30)
        page.wait_for_timeout(800)  # longer than a key has to be held
        assert not [one for one in sent if '"take"' in one or '"stop"' in one or '"act"' in one or '"give"' in one]
        page.click("#single-keys")
        page.reload()
        wait(page, lambda: text(page, ".holder[data-seat=policy]") == "model", "the switch is remembered")
        assert page.get_attribute("#single-keys", "aria-checked") == "false"
        hold(page, "p")
        page.keyboard.press("1")
        assert not [one for one in sent if '"take"' in one or '"say"' in one]
        page.keyboard.press("Space")
        wait(page, lambda: any("space bar" in one for one in sent), "the space bar stops all the same")
        page.click("#single-keys")


def test_after_a_sentence_and_in_a_list_the_space_bar_stops_and_escape_twice_does_everywhere(
    run: ConsoleRun, chromium: Any
) -> None:
    with page_of(chromium, run) as page:
        go_on(page)
        page.fill("#words", "Hello.")
        page.focus("#words")
        page.keyboard.press("End")
        page.keyboard.press("Space")  # a word goes on
        assert page.input_value("#words") == "Hello. "
        page.keyboard.press("Enter")
        page.keyboard.press("Space")
        wait(page, lambda: text(page, "#guard-mode") == "stopped", "an empty field stops")
        assert page.input_value("#words") == ""
        go_on(page)
        page.click("#tab-planner")
        page.focus("#plan [name=verb]")
        page.keyboard.press("Space")
        wait(page, lambda: text(page, "#guard-mode") == "stopped", "a list stops")
        go_on(page)
        page.fill("#words", "half a sent")
        page.focus("#words")
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        wait(page, lambda: text(page, "#guard-mode") == "stopped", "Escape twice stops")
        assert page.input_value("#words") == "half a sent"


@pytest.mark.long
def test_a_wizard_speaks_as_the_robot_unless_they_choose_otherwise(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
        page.fill("#words", "I am on my way.")
        page.press("#words", "Enter")
        wait(page, lambda: "robot: I am on my way." in text(page, "#story"), "it is said")
        assert "operator: I am on my way." not in text(page, "#story")


@pytest.mark.long
def test_three_letters_and_enter_say_a_sentence_and_the_wizard_is_measured(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page, page_of(chromium, run, "participant") as person:
        person.fill("#words", "What are you doing?")
        person.press("#words", "Enter")
        wait(page, lambda: text(page, "#answer").startswith("waits"), "it is seen that somebody waits")
        page.fill("#find", "sor")
        page.press("#find", "Enter")
        wait(person, lambda: "robot: I am sorry, I did not" in text(person, "#story"), "it is said")
        wait(page, lambda: " s, ~" in text(page, "#answer"), "and how long they waited is told")
        assert "I am sorry, I did not" in text(page, "#recent")
        page.fill("#find", "mom")
        page.press("#find", "Shift+Enter")
        assert page.input_value("#words") == "One moment, please."


@pytest.mark.parametrize(
    ("width", "height"),
    [pytest.param(1440, 900, marks=pytest.mark.long), pytest.param(1024, 768, marks=pytest.mark.long), (390, 844)],
)
@pytest.mark.long
def test_the_guard_s_word_is_whole_and_what_is_pressed_is_large_enough(
    run: ConsoleRun, chromium: Any, width: int, height: int
) -> None:
    with page_of(chromium, run, viewport={"width": width, "height": height}) as page:
        wait(page, lambda: text(page, "#guard-mode") in MODES, "the guard is heard")
        assert page.evaluate(SMALL) == []
        assert page.evaluate(CUT, REASON) == []


COVERED = """() => [...document.querySelectorAll('.pad [data-hold]')].filter((one) => {
  const box = one.getBoundingClientRect();
  const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  return top !== one && !one.contains(top);
}).map((one) => one.dataset.hold)"""
IN_SIGHT = """() => {
  const box = document.querySelector('[data-camera=head] canvas').getBoundingClientRect();
  return Math.min(box.bottom, innerHeight) - Math.max(box.top, 0) > box.height / 2;
}"""


@pytest.mark.long
def test_on_a_phone_one_drives_in_sight_of_the_picture_wherever_the_page_is_scrolled(
    run: ConsoleRun, chromium: Any
) -> None:
    with page_of(chromium, run, viewport={"width": 390, "height": 844}, has_touch=True) as page:
        wait(page, lambda: "x " in text(page, "#odometry"), "the robot is seen")
        take_driving(page)
        for down in (0, 300, 5000):
            page.evaluate("(down) => scrollTo(0, down)", down)
            wait(page, lambda: page.evaluate(COVERED) == [], f"no pad is covered {down} px down")
            assert page.evaluate(IN_SIGHT), f"the picture is seen {down} px down"
        give_back(page)


SIDEWAYS = [(844, 390), (640, 400)]
"""A phone on its side, and a window of 1280 x 800 at 200 %."""


@pytest.mark.long
@pytest.mark.parametrize(("width", "height"), SIDEWAYS)
def test_on_a_phone_on_its_side_and_at_200_percent_one_drives_by_the_pads_and_nothing_lies_over_anything(
    run: ConsoleRun, chromium: Any, width: int, height: int
) -> None:
    with page_of(chromium, run, viewport={"width": width, "height": height}, has_touch=True) as page:
        wait(page, lambda: "x " in text(page, "#odometry"), "the robot is seen")
        press(page, "button.seat[data-seat=policy]")
        wait(page, lambda: text(page, ".holder[data-seat=policy]") == "you", "the seat is taken")
        go_on(page)
        picture, stop, seats = (page.locator(one).bounding_box() for one in ("figure.large", "#stop", "#seats"))
        assert picture["y"] + picture["height"] <= height, "the whole picture is in sight"
        assert picture["x"] + picture["width"] <= min(stop["x"], seats["x"]), "and all else is beside it"
        assert page.evaluate(COVERED) == []
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        start, ahead = x_of(page), page.locator(".pad [data-hold=ahead]").bounding_box()
        page.mouse.move(ahead["x"] + ahead["width"] / 2, ahead["y"] + ahead["height"] / 2)
        page.mouse.down()
        wait(page, lambda: x_of(page) > start + 0.1, "it drives while the pad is held")
        page.mouse.up()
        wait(page, lambda: "0.00 m/s" in text(page, "#odometry"), "and stands when it is let go")
        press(page, "button.seat[data-seat=policy]")
        wait(page, lambda: text(page, ".holder[data-seat=policy]") == "model", "given back")


def look_at_the_table(page: Any) -> None:
    """Turn the head to where the shipped table stands, as its driver, until the page shows what lies there."""
    page.click("[data-shows=poses]")
    page.hover("[data-hold='pose Right']")
    page.mouse.down()
    wait(page, lambda: page.locator("#things button").count() > 0, "things are seen")
    page.mouse.up()
    page.click("[data-shows=joints]")


FRAMED = """(one) => {
  const { outlineStyle, outlineWidth } = getComputedStyle(one);
  return outlineStyle === 'solid' && parseFloat(outlineWidth) >= 3;
}"""
CHOSEN = ("#tab-policy", "input[name=speed]:checked + span", "#things button[aria-pressed=true]", "[data-hold=ahead]")


@pytest.mark.long
def test_in_colours_of_the_system_what_is_chosen_or_held_has_a_frame_and_what_is_not_has_none(
    run: ConsoleRun, chromium: Any
) -> None:
    with page_of(chromium, run, forced_colors="active") as page:
        take_driving(page)
        go_on(page)
        look_at_the_table(page)
        page.locator("#things button").first.click()
        page.keyboard.down("w")
        for selector in CHOSEN:
            wait(page, lambda one=selector: page.locator(one).first.evaluate(FRAMED), selector)  # type: ignore[misc]
        page.keyboard.up("w")
        wait(page, lambda: not page.locator("[data-hold=ahead]").first.evaluate(FRAMED), "let go, it has none")
        assert not page.locator("#tab-vlm").evaluate(FRAMED)
        assert findings(page) == []
        give_back(page)


@pytest.mark.long
def test_a_control_at_the_end_of_its_range_says_so_itself(run: ConsoleRun, chromium: Any) -> None:
    def is_at_its_end(control: str) -> bool:
        return "limit" in str(page.get_attribute(f"#joints [data-hold='{control}']", "class"))

    with page_of(chromium, run) as page:
        take_driving(page)
        go_on(page)
        page.keyboard.down("q")
        wait(page, lambda: is_at_its_end("-arm"), "the arm is in")
        page.keyboard.up("q")
        assert not is_at_its_end("+arm")
        assert page.get_attribute("#joints [data-hold='-arm']", "title") == "the end of its range"
        page.keyboard.down("e")
        wait(page, lambda: not is_at_its_end("-arm"), "and comes out")
        page.keyboard.up("e")
        give_back(page)


@pytest.mark.long
def test_what_the_guard_does_stands_apart_from_what_people_and_the_robot_say(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
        page.fill("#words", "Hello.")
        page.press("#words", "Enter")
        wait(page, lambda: "Hello." in text(page, "#story"), "it is said")
        wait(page, lambda: page.locator("#events .guard").count() > 0, "the guard's word is told")
        assert page.locator("#story .guard").count() == 0


def test_a_picture_that_stands_still_is_covered_and_nobody_drives_by_it_though_the_other_camera_goes_on(
    run: ConsoleRun, chromium: Any
) -> None:
    with page_of(chromium, run) as page:
        go_on(page)
        take_driving(page)
        wait(page, lambda: text(page, "#image-age").endswith("ms"), "the head camera is seen")
        wait(page, lambda: not page.is_visible("[data-camera=head] .frozen"), "and moves")
        eyes = run.pid("eyes")
        os.kill(eyes, signal.SIGSTOP)
        try:
            wait(page, lambda: "stands still" in text(page, "[data-camera=head] .frozen"), "the picture is covered")
            wait(page, lambda: not page.is_visible("[data-camera=wrist] .frozen"), "the other camera goes on")
            assert page.is_visible("[data-camera=head] .frozen")
            there = x_of(page)
            page.keyboard.down("w")
            wait(page, lambda: "not driving by it" in text(page, "#why-still"), "driving by it is refused")
            page.keyboard.up("w")
            assert abs(x_of(page) - there) < 0.02
        finally:
            with suppress(ProcessLookupError):  # the supervisor ends a process that is frozen, and starts it again
                os.kill(eyes, signal.SIGCONT)
        wait(page, lambda: not page.is_visible("[data-camera=head] .frozen"), "it is uncovered when it moves again")
        give_back(page)


@pytest.mark.long
def test_depth_comes_when_it_is_asked_for(run: ConsoleRun, chromium: Any) -> None:
    seen: list[bytes] = []
    with page_of(chromium, run) as page:
        page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: seen.append(frame)))
        page.reload()
        wait(page, lambda: "x " in text(page, "#odometry"), "the page is let in again")
        assert not any(b'"head depth"' in frame[:200] for frame in seen if isinstance(frame, bytes))
        page.click("[data-depth=head]")
        wait(page, lambda: any(b'"head depth"' in frame[:200] for frame in seen if isinstance(frame, bytes)), "depth")
        wait(  # more than are ever under way at once: each is answered under the name that it came by
            page,
            lambda: sum(b'"head depth"' in frame[:200] for frame in seen if isinstance(frame, bytes)) > 20,
            "depth goes on coming",
        )


@pytest.mark.long
def test_by_keyboard_alone_a_person_gets_to_the_seats_and_takes_one(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
        seat = page.locator("#tab-policy")
        for _ in range(40):  # each thing on the map is a stop of its own
            page.keyboard.press("Tab")
            if seat.evaluate("element => element === document.activeElement"):
                break
        page.keyboard.press("ArrowRight")
        assert page.is_visible("#panel-vlm")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        wait(page, lambda: text(page, ".holder[data-seat=vlm]") == "you", "the seat is taken")
        page.keyboard.press("Enter")
        wait(page, lambda: text(page, ".holder[data-seat=vlm]") == "model", "and given back")
        page.keyboard.press("Space")  # stops, also on a button
        wait(page, lambda: text(page, "#guard-mode") == "stopped", "the space bar stops everywhere")


def test_an_order_that_is_typed_makes_the_robot_move_and_the_button_stops_it(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
        go_on(page)
        order(page, "Please clear the table: put the cups in the bin")
        wait(page, lambda: text(page, "#guard-mode") == "moving", "the robot moves")
        wait(page, lambda: "cup" in text(page, "#action"), "it goes for a cup", 60.0)
        page.click("#tab-vlm")
        page.click("button.seat[data-seat=vlm]")
        wait(page, lambda: text(page, ".holder[data-seat=vlm]") == "you", "the VLM's seat is taken")
        page.click("#things button")
        page.click("[data-act=look]")
        wait(page, lambda: text(page, "#action").startswith("look at the"), "the person's action is the robot's")
        page.click("button.seat[data-seat=vlm]")
        wait(page, lambda: text(page, ".holder[data-seat=vlm]") == "model", "the VLM has its seat again")
        page.click("#stop")
        wait(page, lambda: text(page, "#guard-mode") == "stopped", "the button stops")


@pytest.mark.long
def test_a_participant_sees_the_dialogue_and_nothing_else(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run, "participant") as page:
        assert page.is_visible("#story")
        assert page.is_visible("#stop")
        for selector in ("#see", "#know", "#seats", "#canned", "#figures"):
            assert not page.is_visible(selector)
        page.click("#stop")
        wait(page, lambda: text(page, "#notice") == "The robot is told to stop.", "and is told what their stop does")


@pytest.mark.parametrize(
    "role", ["operator", *(pytest.param(role, marks=pytest.mark.long) for role in ("viewer", "participant"))]
)
def test_nothing_on_the_page_keeps_people_out_and_the_picture_stays_where_it_is(
    run: ConsoleRun, chromium: Any, role: str
) -> None:
    with page_of(chromium, run, role) as page:
        # A dozen lines of the story are like all of them; hundreds take minutes on a busy machine.
        page.evaluate("() => [...document.querySelectorAll('#story p')].slice(12).forEach((line) => line.remove())")
        assert findings(page) == []
        picture = page.locator("figure.large").bounding_box()
        for tab in ("vlm", "planner") if role == "operator" else ():
            page.click(f"#tab-{tab}")
            assert page.locator("figure.large").bounding_box() == picture
            wait(page, lambda: page.locator("button.main:visible").count() == 1, "one act leads")
            assert findings(page, within="#seats") == []


WATCH_CHANGES = """() => {
  window.changes = 0;
  new MutationObserver((list) => { window.changes += list.length; })
    .observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  window.since = performance.now();
}"""
MOST_CHANGES_PER_S = 20.0
KEEP = "(selector) => { window.kept = document.querySelector(selector); window.kept.focus(); }"
IS_KEPT = "() => window.kept.isConnected && document.activeElement === window.kept"
LISTS = ("#sentences button", "#recent button", "#things button", "#joints button", "#tab-policy", "button.seat")


def tells(page: Any, words: str) -> bool:
    return words in text(page, "#story")


def grows(states: list[str], to: int) -> bool:
    return len(states) > to


@pytest.mark.long
def test_a_page_on_which_nothing_happens_changes_little_and_focus_survives_all_that_comes(
    run: ConsoleRun, chromium: Any
) -> None:
    states: list[str] = []
    with page_of(chromium, run) as page, page_of(chromium, run) as other:
        page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: states.append(str(frame)[:12])))
        page.reload()
        take_driving(page)
        go_on(page)
        look_at_the_table(page)
        give_back(page)
        page.click("#stop")
        wait(page, lambda: text(page, "#guard-mode") == "stopped", "the robot stands")
        wait(page, lambda: text(page, "#notice") == "", "and all of it has been told")
        page.evaluate(WATCH_CHANGES)
        wait(page, lambda: page.evaluate("() => performance.now() - window.since") > 3000, "three seconds are over")
        changes, ms = page.evaluate("() => [window.changes, performance.now() - window.since]")
        assert changes / ms * 1000.0 <= MOST_CHANGES_PER_S
        page.locator("#sentences button", has_text="I am done.").dblclick()  # the same one, both times
        wait(page, lambda: page.locator("#recent button").count() == 1, "it stands among the recent ones")
        for number, selector in enumerate(LISTS):
            page.evaluate(KEEP, selector)
            order(other, f"This is sentence number {number}.")
            wait(page, partial(tells, page, f"number {number}."), "it is in the story")
            wait(page, partial(grows, states, len(states) + 5), "and more comes")
            assert page.evaluate(IS_KEPT), selector
        said = page.locator("#story .said").all_text_contents()
        done = {one.split(": ", 1)[1].removesuffix("by a person") for one in said if "done." in one}
        assert done == {"I am done."}
        page.evaluate(KEEP, "#sentences button")
        before = page.locator("#story .said").count()
        for _ in range(2):
            page.keyboard.press("Enter")
        wait(page, lambda: page.locator("#story .said").count() > before + 1, "Enter twice says it twice")
        assert page.evaluate(IS_KEPT)
        go_on(page)


def test_what_the_guard_refuses_is_told_with_its_reason(run: ConsoleRun, chromium: Any) -> None:
    with page_of(chromium, run) as page:
        page.click("#stop")
        wait(page, lambda: text(page, "#guard-mode") == "stopped", "the robot is stopped")
        wait(page, lambda: page.get_attribute("#stop", "data-told") == "told", "and the guard has said so")
        page.click("[data-shows=poses]")
        for _ in range(2):  # it asks whether that is sure
            page.click("[data-service=stow]")
        wait(page, lambda: "Stow was refused: the guard is stopped" in text(page, "#notice"), "and why is told")
        go_on(page)
