"""Random stories about seats: taken, given, renewed, lost, forged, repeated, over restarts; leases keep their promises.

`GUARD_STEPS` sets how many steps are taken, as for the stories about commands.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nodes.msgs import EStop, Interrupt, SeatRequest
from nodes.msgs.interrupt import PREEMPTS
from tests.runtime.coordination.lease_story import HOLDERS, PEOPLE, SHADOWS, LeaseStory, changed

SEATS = PREEMPTS["stop"]

STEPS = int(os.environ.get("GUARD_STEPS", "3000"))
STEPS_PER_STORY = 50
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)

SEAT: Any = st.sampled_from(SEATS)
SOURCE = st.sampled_from([*PEOPLE, "first", "ladder"])
HOLDER = st.sampled_from(["", *PEOPLE, *HOLDERS.values(), "second", "replayed", "fallback", "stranger"])
AGE_MS = st.sampled_from([0, 0, 0, 0, 10, 300, 700, 1900, 2100, 60_000, -10, -3000])


class Stories(RuleBasedStateMachine):
    """Take, give, renew, wait, forge, repeat, restart, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="leases-"))
        self.story = LeaseStory(self.folder)
        self.story.wait(1)

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @rule(person=st.sampled_from(PEOPLE), seat=SEAT)
    def sit_down(self, person: str, seat: str) -> None:
        self.story.ask(self.story.request("take", seat, person), person)

    @rule(person=st.sampled_from(PEOPLE), seat=SEAT, times=st.integers(1, 12), gap=st.integers(1, 40))
    def stay(self, person: str, seat: str, times: int, gap: int) -> None:
        """Renew like a tool, in time or not."""
        for _ in range(times):
            self.story.ask(self.story.request("renew", seat, person), person)
            self.story.command(person)
            self.story.wait(gap)

    @rule(do=st.sampled_from(["take", "give", "renew"]), seat=SEAT, holder=HOLDER, source=SOURCE, age_ms=AGE_MS,
          is_forged=st.booleans())  # fmt: skip
    def ask(self, do: str, seat: str, holder: str, source: str, age_ms: int, is_forged: bool) -> None:
        self.story.ask(self.story.request(do, seat, holder, age_ms=age_ms, is_forged=is_forged), source)

    @rule(number=st.integers(0, 30), source=st.none() | SOURCE)
    def repeat(self, number: int, source: str | None) -> None:
        """Somebody has recorded a request and sends it again."""
        if self.story.sent:
            sender, asked = self.story.sent[-1 - number % len(self.story.sent)]
            self.story.ask(asked, source or sender)

    @rule(number=st.integers(0, 30), seat=SEAT, holder=HOLDER, source=SOURCE,
          field=st.sampled_from(["do", "seat", "holder", "by", "stamp_ns", "kind"]))  # fmt: skip
    def tamper(self, number: int, seat: str, holder: str, source: str, field: str) -> None:
        """Somebody changes a request that they have seen."""
        if self.story.sent:
            _, asked = self.story.sent[-1 - number % len(self.story.sent)]
            fields: dict[str, object] = {
                "do": "renew" if asked.do != "renew" else "take", "seat": seat, "holder": holder, "by": "Eve",
                "stamp_ns": self.story.clock.ns, "kind": "script",
            }  # fmt: skip
            self.story.ask(changed(asked, **{field: fields[field]}), source)

    @rule(seat=SEAT, holder=HOLDER | st.sampled_from(["second", "replayed"]))
    def step_down_the_ladder(self, seat: str, holder: str) -> None:
        """Needs no proof, and goes where the launch file says or nowhere."""
        asked = SeatRequest(seat=seat, do="take", holder=holder, kind="script", by="ladder")
        before = self.story.number[seat]
        self.story.ask(asked, "ladder")
        if holder not in SHADOWS[seat][:1]:
            assert self.story.number[seat] == before

    @rule(source=st.sampled_from(["first", "second", "replayed", "stranger", *PEOPLE]), ticks=st.integers(1, 5))
    def drive(self, source: str, ticks: int) -> None:
        for _ in range(ticks):
            self.story.command(source)
            self.story.wait(1)

    @rule(ticks=st.integers(1, 60))
    def wait(self, ticks: int) -> None:
        self.story.wait(ticks)

    @rule(number=st.integers(0, 5), is_backwards=st.booleans())
    def deliver(self, number: int, is_backwards: bool) -> None:
        self.story.deliver(number, is_backwards=is_backwards)

    @rule()
    def restart(self) -> None:
        self.story.restart()
        self.story.wait(1)

    @rule(depth=st.sampled_from(["stop", "resume", "replan", "amend"]))
    def interrupt(self, depth: Any) -> None:
        """Whatever is said, leases stay as they are."""
        before = dict(self.story.number)
        self.story.guard.interrupted(Interrupt(id="i", depth=depth, text="x", by="Ann"))
        assert self.story.number == before

    @rule()
    def press(self) -> None:
        before = dict(self.story.number)
        self.story.guard.emergency(EStop(source="button", is_pressed=True))
        assert self.story.number == before

    @invariant()
    def holds(self) -> None:
        self.story.check()


TestStories = Stories.TestCase
TestStories.settings = settings(
    max_examples=max(1, STEPS // STEPS_PER_STORY),
    stateful_step_count=STEPS_PER_STORY,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=PHASES,
)


def test_a_story_in_full_so_that_the_rules_are_known_to_bite(tmp_path: Path) -> None:
    """Taken, kept by renewing, lost by a repeated renewal that counts no more, and taken by nobody with a bad proof."""
    story = LeaseStory(tmp_path)
    story.wait(2)
    story.ask(story.request("take", "policy", "me-1"), "me-1")
    assert story.holder["policy"] == "me-1"
    renewal = story.request("renew", "policy", "me-1")
    story.ask(renewal, "me-1")
    story.wait(1)
    story.command("me-1")
    story.wait(1)
    assert story.guard.machine.mode == "moving"
    for _ in range(20):
        story.wait(2)
        story.ask(renewal, "me-1")
    assert (story.holder["policy"], story.number["policy"]) == ("first", 2)
    story.ask(story.request("take", "policy", "me-2", is_forged=True), "me-2")
    assert story.holder["policy"] == "first"
    story.restart()
    story.deliver(2, is_backwards=True)
    story.check()
    assert not story.line.is_shadow(story.arrived(renewal, "first").envelope)
