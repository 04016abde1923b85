"""Driving over a bad link: 200 ms of delay and 5 % of lost segments, through a relay of ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bench.relay import PERFECT, Relay, Shape, relayed
from runtime.clock import SystemClock
from tests.support.guard.motion_watch import MotionWatch
from tests.support.pages.browsing import MARKS, a_browser, go_on, take_driving, text, visit, wait, x_of
from tests.support.pages.console_run import ROOT, ConsoleRun

HELD_WITHIN_MS = 300.0
BAD = Shape(delay_s=0.1, loss=0.05, retransmit_s=0.4)  # of each direction: 200 ms there and back
FAR_WORSE = replace(BAD, loss=0.4)

pytestmark = MARKS


@pytest.fixture(scope="module")
def relay() -> Iterator[Relay]:
    with relayed(Relay()) as started:
        yield started


@pytest.fixture(scope="module")
def run(relay: Relay, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleRun]:
    reached_as = f'console.reached_as=["http://127.0.0.1:{relay.port}"]'
    with ConsoleRun(ROOT / "launch" / "wizard.toml", tmp_path_factory.mktemp("relay"), reached_as) as started:
        relay.target = ("127.0.0.1", started.port)
        yield started


@pytest.fixture(scope="module")
def page(run: ConsoleRun, relay: Relay) -> Iterator[Any]:
    """One page for all: to open it over a bad link takes its time."""
    with a_browser() as opened:
        page = opened.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(60_000)
        relay.shape = BAD
        visit(page, f"http://127.0.0.1:{relay.port}/#{run.tokens['operator']}")
        yield page


@pytest.fixture(scope="module")
def motion(run: ConsoleRun) -> Iterator[MotionWatch]:
    with MotionWatch(run.supervisor_pid) as watching:
        yield watching


def shown_ms(page: Any, selector: str) -> float:
    found = re.search(r"([\d.]+) ms", text(page, selector))
    return float(found[1]) if found else 0.0


@pytest.mark.long
def test_driving_over_a_bad_link_gets_there_and_the_page_says_how_bad_it_is(
    run: ConsoleRun, relay: Relay, page: Any, motion: MotionWatch
) -> None:
    wait(page, lambda: "x " in text(page, "#odometry"), "the robot is seen", 60.0)
    wait(page, lambda: shown_ms(page, "#link") >= 200.0, "the delay is in view", 60.0)
    take_driving(page)
    start = x_of(page)
    page.keyboard.down("w")
    wait(page, lambda: x_of(page) > start + 0.1, "it drives, if in pieces", 60.0)
    page.keyboard.up("w")
    wait(page, lambda: motion.speed_mps == 0.0, "it stands when the key is let go", 60.0)
    assert relay.lost > 0


@pytest.mark.long
def test_pictures_go_on_over_a_bad_link_and_their_quality_follows_it(relay: Relay, page: Any) -> None:
    frames: list[bytes] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(frame)))
    page.reload()

    def heads() -> list[bytes]:
        return [frame for frame in frames if isinstance(frame, bytes) and b'"camera":"head"' in frame[:200]]

    wait(page, lambda: len(heads()) >= 10, "pictures come", 60.0)
    relay.shape = FAR_WORSE  # nearly every picture waits for a lost piece
    here = len(heads())

    def least() -> int:
        found = (re.search(rb'"quality":(\d+)', frame[:300]) for frame in heads()[here:])
        return min((int(one[1]) for one in found if one), default=99)

    wait(page, lambda: least() <= 45, "they become smaller", 60.0)
    relay.shape = BAD


def test_a_link_that_falls_silent_leaves_the_robot_held_and_the_page_says_so(
    relay: Relay, page: Any, motion: MotionWatch
) -> None:
    relay.shape = PERFECT
    wait(page, lambda: text(page, ".holder[data-seat=policy]") in ("you", "model"), "the page is there", 60.0)
    go_on(page)
    if text(page, ".holder[data-seat=policy]") != "you":
        take_driving(page)
    clock = SystemClock()
    since_ns = clock.now_ns()
    page.keyboard.down("w")
    wait(page, lambda: motion.speed_mps > 0.06, "it drives", 60.0)
    at_ns = clock.now_ns()
    relay.is_frozen = True
    assert motion.held_ms(at_ns) <= HELD_WITHIN_MS + motion.late_ms(since_ns, at_ns)
    page.fill("#words", "Sent into silence.")
    page.press("#words", "Enter")
    wait(page, lambda: "Nothing comes over the link" in text(page, "#cover-text"), "the page says that nothing comes")
    relay.is_frozen = False
    page.keyboard.up("w")
    wait(page, lambda: text(page, "#cover-text") == "", "and is back by itself", 60.0)

    def ends() -> list[bool]:
        return ["Sent into silence." in text(page, "#story"), page.input_value("#words") == "Sent into silence."]

    wait(page, lambda: any(ends()), "what was sent was said, or stands in its field again")
    assert not all(ends())
