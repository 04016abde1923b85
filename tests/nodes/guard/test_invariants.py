"""Random stories told to the guard: whatever comes in whatever order, its promises hold after every step.

`GUARD_STEPS` sets how many steps are taken (default: enough for every commit; `make faults` takes 200,000).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import inf, nan
from typing import get_args

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nodes.msgs import JointCommand
from nodes.stretch.limits import STRETCH_3
from runtime.errors import CodecError
from runtime.message import Stamped
from runtime.serialization.codec import decode, encode
from tests.support.guard.guard_story import MS, PEOPLE, STEPS, GuardStory, Shows, accelerations, command, wheels
from tests.support.standing import HOME

STEPS_PER_STORY = 60
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # a story is readable as it is; shrinking it takes minutes

SOURCES = st.sampled_from(["policy", "other", "teleop"])
SPEEDS = st.sampled_from([-0.3, 0.0, 0.3]) | st.floats(-0.5, 0.5)
POSITIONS = st.sampled_from(
    [HOME, (1.0, 0.5, 3.0, 0.4, 2.0, 0.12, 1.0, 0.2), (-9.0, 9.0, -9.0, 9.0, -9.0, 9.0, -9.0, 9.0)]
)
BAD = st.sampled_from([nan, inf, -inf, 1e308, -1e308, 101.0])


class Stories(RuleBasedStateMachine):
    """Send, tick, lose, stop, resume, e-stop, runstop, re-arm, restart, jump and garble, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.story = GuardStory(is_boxed=True)
        self.story.shows, self.story.watches = "follows", True
        self.lost: set[str] = set()
        self.story.tick(20, sees=True)
        self.story.arm()

    @rule(source=SOURCES, delay_ms=st.integers(0, 60), position=POSITIONS, v=SPEEDS, w=SPEEDS)
    def send(self, source: str, delay_ms: int, position: tuple[float, ...], v: float, w: float) -> None:
        seq = self.story.sources[source] = self.story.sources.get(source, 0) + 1
        if source not in self.lost:
            self.story.accept_command(command(source, seq, self.story.now_ns - delay_ms * MS, position, v, w))

    @rule(ticks=st.integers(1, 12), v=SPEEDS, position=POSITIONS, source=SOURCES)
    def drive(self, ticks: int, v: float, position: tuple[float, ...], source: str) -> None:
        """A policy at its work, so that stories reach full speed."""
        for _ in range(ticks):
            self.send(source, 1, position, v, 0.0)
            self.story.tick(20, sees=True)

    @rule(source=SOURCES)
    def lose(self, source: str) -> None:
        """Its commands do not arrive, until it is lost again."""
        self.lost ^= {source}

    @rule(source=SOURCES, age_ms=st.integers(-1000, 3000), step=st.integers(-5, 5), v=SPEEDS)
    def send_at_a_strange_time(self, source: str, age_ms: int, step: int, v: float) -> None:
        seq = self.story.sources.get(source, 0) + step
        self.story.accept_command(command(source, seq, self.story.now_ns - age_ms * MS, v=v))

    @rule(place=st.integers(0, 9), bad=BAD, size=st.sampled_from([8, 8, 8, 0, 7, 9]))
    def send_nonsense(self, place: int, bad: float, size: int) -> None:
        values = [*HOME, 0.0, 0.0]
        values[place] = bad
        seq = self.story.sources["policy"] = self.story.sources.get("policy", 0) + 1
        position = tuple((*values[:8], 0.0)[:size])
        refusal = self.story.accept_command(
            command("policy", seq, self.story.now_ns, position, values[8], values[9])
        )  # fmt: skip
        assert refusal or (place < 8 and abs(bad) < inf and size == 8)

    @rule(number=st.integers(0, 7), is_backwards=st.booleans())
    def repeat(self, number: int, is_backwards: bool) -> None:
        """Frames that arrived come once more, in order or not."""
        history = self.story.history[-number:] if number else []
        for stamped in reversed(history) if is_backwards else list(history):
            assert self.story.accept_command(stamped), "a frame was accepted twice"

    @rule(places=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 255)), min_size=1, max_size=4), v=SPEEDS)
    def garble(self, places: list[tuple[int, int]], v: float) -> None:
        """Bits flip on the way."""
        seq = self.story.sources["policy"] = self.story.sources.get("policy", 0) + 1
        stamped = command("policy", seq, self.story.now_ns, v=v)
        frames = [bytearray(bytes(frame)) for frame in encode(stamped.envelope, stamped.message)]
        for place, mask in places:
            frame = frames[1 + place % (len(frames) - 1)] if len(frames) > 1 else frames[0]
            frame[place % len(frame)] ^= mask
        try:
            arrived: Stamped[JointCommand] = decode([bytes(frame) for frame in frames], JointCommand)
        except CodecError:
            return
        self.story.accept_command(arrived)

    @rule(milliseconds=st.integers(0, 45), sees=st.booleans())
    def tick(self, milliseconds: int, sees: bool) -> None:
        self.story.tick(milliseconds, sees=sees)

    @rule(milliseconds=st.integers(46, 999) | st.integers(1001, 5000), sees=st.booleans())
    def oversleep(self, milliseconds: int, sees: bool) -> None:
        self.story.tick(milliseconds, sees=sees)

    @rule(ticks=st.integers(1, 60))
    def wait(self, ticks: int) -> None:
        for _ in range(ticks):
            self.story.tick(20, sees=True)

    @rule(shows=st.sampled_from(["follows", "follows", *get_args(Shows)]))
    def measure(self, shows: Shows) -> None:
        """The robot is blocked, pushed, or its sensors say what is not so."""
        self.story.shows = shows

    @rule(by=st.sampled_from(["contact", "effort", "following", "reflex", *PEOPLE, ""]), early_ms=st.integers(0, 50))
    def stop(self, by: str, early_ms: int) -> None:
        self.story.interrupt("stop", by, self.story.now_ns - early_ms * MS)

    @rule(by=st.sampled_from(["planner", "vlm", "policy", "guard", "reflex", "contact", "", *PEOPLE]),
          early_ms=st.integers(-5, 50))  # fmt: skip
    def resume(self, by: str, early_ms: int) -> None:
        self.story.interrupt("resume", by, self.story.now_ns - early_ms * MS)

    @rule(by=st.sampled_from(PEOPLE), early_ms=st.integers(-20, 20_000))
    def remember(self, by: str, early_ms: int) -> None:
        """Words arrive that somebody said a while ago, or that a wrong clock has stamped."""
        self.story.interrupt("resume", by, self.story.now_ns - early_ms * MS)

    @rule(is_on=st.booleans())
    def press_runstop(self, is_on: bool) -> None:
        self.story.is_runstopped = is_on

    @rule(source=SOURCES)
    def restart_source(self, source: str) -> None:
        """Its process ends, and the next one counts from 1."""
        self.story.sources[source] = 0

    @rule(depth=st.sampled_from(["amend", "replan"]), by=st.sampled_from(["planner", "Ana"]))
    def talk(self, depth: str, by: str) -> None:
        self.story.interrupt(depth, by, self.story.now_ns)

    @rule()
    def press_estop(self) -> None:
        self.story.estop()

    @rule()
    def rearm(self) -> None:
        self.story.rearm()

    @rule()
    def arm(self) -> None:
        self.story.arm()

    @rule(is_armed_again=st.booleans())
    def restart(self, is_armed_again: bool) -> None:
        """What was sent to the guard before must not move the one after it."""
        old = self.story.history
        self.story.restart()
        self.story.tick(20, sees=True)
        if is_armed_again:
            self.story.arm()
        for stamped in old:
            assert self.story.accept_command(stamped), "a command from an earlier session was accepted"
        self.story.tick(20, sees=True)

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


ANYWHERE = st.tuples(*(st.sampled_from([joint.lowest, joint.highest]) for joint in STRETCH_3.joints))


class Journeys(RuleBasedStateMachine):
    """Long ways to anywhere at any speed, with words, touches and moments without sight between them."""

    def __init__(self) -> None:
        super().__init__()
        self.story = GuardStory(is_boxed=True)
        self.story.shows, self.story.watches = "follows", True
        self.seq = 0
        self.story.tick(20, sees=True)
        self.story.arm()

    @rule(position=ANYWHERE, v=SPEEDS, w=SPEEDS | st.sampled_from([-9.0, 9.0]), ticks=st.integers(5, 150),
          blind=st.integers(0, 12))  # fmt: skip
    def go(self, position: tuple[float, ...], v: float, w: float, ticks: int, blind: int) -> None:
        """With so many ticks out of 13 between two looks at the robot."""
        if self.story.machine.mode == "stopped":
            self.story.interrupt("resume", "Ana", self.story.now_ns)
        for tick in range(ticks):
            self.seq += 1
            self.story.accept_command(command("policy", self.seq, self.story.now_ns - MS, position, v, w))
            self.story.tick(20, sees=tick % 13 >= blind)

    @rule(by=st.sampled_from(["Ana", "contact", "effort"]), ticks=st.integers(0, 80))
    def stop(self, by: str, ticks: int) -> None:
        self.story.tick(20, sees=True)
        self.story.interrupt("stop", by, self.story.now_ns)
        for _ in range(ticks + 1):
            self.story.tick(20, sees=True)

    @rule(ticks=st.integers(0, 12))
    def wait(self, ticks: int) -> None:
        for _ in range(ticks):
            self.story.tick(20, sees=True)

    @invariant()
    def holds(self) -> None:
        self.story.check()


TestJourneys = Journeys.TestCase
TestJourneys.settings = settings(
    max_examples=max(1, STEPS // 300),
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=PHASES,
)


# --- metamorphic: the same story with something left out, or under other clocks

DRIVEN = st.lists(
    st.tuples(
        st.sampled_from(["send", "send", "send", "tick", "tick", "tick", "stop", "resume", "replan", "late"]),
        st.integers(0, 45),
        st.booleans(),
    ),
    max_size=60,
)
FAR = (1.0, 0.5, 3.0, 0.4, 2.0, 0.12, 1.0, 0.2)


def tell(
    events: Sequence[tuple[str, int, bool]], *, without_lost: bool, speeds: Sequence[float] = (0.3,)
) -> tuple[int, tuple[float, ...], list[JointCommand | None]]:
    """Ticks with a command behind them, path of each joint and wheel, all outputs; with lost commands or without."""
    story = GuardStory()
    story.tick(20, sees=True)
    story.arm()
    moving, paths, outs = 0, [0.0] * 10, []
    for number, (what, milliseconds, is_lost) in enumerate(events):
        if what == "send" and not (is_lost and without_lost):
            v = speeds[number % len(speeds)]
            story.accept_command(command("policy", number, story.now_ns - milliseconds * MS // 10, FAR, v))
        elif what == "late" and not (is_lost and without_lost):
            story.accept_command(command("policy", number, story.now_ns - 200 * MS, FAR, 0.3))
        elif what in ("stop", "resume", "replan"):
            story.interrupt(what, "Ana", story.now_ns)
        dt_ms = milliseconds if what == "tick" else 1
        before = story.out.position if story.out is not None else HOME
        out = story.tick(dt_ms, sees=True)
        outs.append(out)
        assert out is not None
        moving += story.machine.mode == "moving"
        for place, (old, new) in enumerate(zip(before, out.position, strict=True)):
            paths[place] += abs(new - old)
        for place, speed in enumerate(wheels(out)):
            paths[8 + place] += abs(speed) * dt_ms * 1e-3
    return moving, tuple(paths), outs


@given(DRIVEN)
@settings(deadline=None)
def test_deleting_commands_never_lengthens_motion(events: list[tuple[str, int, bool]]) -> None:
    whole, whole_paths, _ = tell(events, without_lost=False)
    less, less_paths, _ = tell(events, without_lost=True)
    assert less <= whole
    for short, long in zip(less_paths, whole_paths, strict=True):
        assert short <= long + 1e-6


@given(DRIVEN, st.lists(st.sampled_from([-0.3, 0.0, 0.3]), min_size=1, max_size=5))
@settings(deadline=None)
def test_deleting_any_commands_never_lengthens_the_time_in_command(
    events: list[tuple[str, int, bool]], speeds: list[float]
) -> None:
    assert tell(events, without_lost=True, speeds=speeds)[0] <= tell(events, without_lost=False, speeds=speeds)[0]


@given(DRIVEN)
@settings(deadline=None)
def test_silence_after_any_story_ends_within_the_braking_envelope(events: list[tuple[str, int, bool]]) -> None:
    _, before, outs = tell(events, without_lost=False)
    silent = [("tick", 20, False)] * 100
    _, after, silent_outs = tell([*events, *silent], without_lost=False)
    del outs
    fastest = (0.13, 0.30, 2.0, 2.0, 2.0, 0.12, 3.0, 3.0, 0.3, 0.3)
    for start, end, v, a in zip(before, after, fastest, accelerations(), strict=True):
        assert end - start <= v * (0.150 + 0.020) + v * v / (2 * a) + 1e-6
    assert silent_outs[-1] == silent_outs[-2]


def test_no_clock_but_the_one_passed_in_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [("send", 5, False), ("tick", 20, False)] * 20 + [("stop", 0, False), ("tick", 20, False)] * 5
    plain = tell(events, without_lost=False)
    for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"):
        monkeypatch.setattr(time, name, lambda: pytest.fail("the guard read a clock of its own"))
    wild = tell(events, without_lost=False)
    monkeypatch.undo()
    assert wild == plain


@given(st.integers(1, 10**18))
def test_only_differences_of_time_matter(shift_ns: int) -> None:
    outs = []
    for start_ns in (10_000_000_000, 10_000_000_000 + shift_ns):
        story = GuardStory(start_ns)
        story.tick(20, sees=True)
        story.arm()
        told = []
        for number in range(12):
            story.accept_command(command("policy", number, story.now_ns - MS, FAR, 0.3))
            told.append(story.tick(20, sees=True))
        outs.append(told + [story.tick(20, sees=True) for _ in range(12)])
    assert outs[0] == outs[1]
