"""What a stopped base does by itself, a touch that stays on the way back, and targets beyond a joint's range."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import pytest

from nodes.guard.lasting_faults import ASIDE_M, ASIDE_RAD
from nodes.guard.state_machine import GuardMachine
from nodes.stretch.limits import STOW, STRETCH_3
from runtime.message import Envelope, Stamped
from runtime.msgs import Interrupt, JointCommand, RobotState
from tests.support.guard.guard_driven import MS
from tests.support.sentences import sentence

ZEROS = (0.0,) * len(STOW)
Shown = Callable[[RobotState], RobotState]


class Base:
    """A base that does what it is commanded, or moves as a test wants, and is measured as a test wants."""

    def __init__(self) -> None:
        self.machine = GuardMachine(STRETCH_3)
        self.now_ns, self.seq = 10_000 * MS, 0
        self.x_m = self.y_m = self.heading_rad = self.v_mps = self.w_radps = 0.0
        self.moves: tuple[float, float] | None = None
        self.shows: Shown = lambda state: state
        self.effort, self.contact = list(ZEROS), tuple[str, ...]()
        self.faults: list[str] = []
        self.pressed_s: float | None = None
        self.step()
        assert self.machine.arm(self.now_ns)

    def step(self, v_mps: float | None = None, w_radps: float = 0.0) -> None:
        self.now_ns += 20 * MS
        v, w = (self.v_mps, self.w_radps) if self.moves is None else self.moves
        self.x_m += v * math.cos(self.heading_rad) * 0.02
        self.y_m += v * math.sin(self.heading_rad) * 0.02
        self.heading_rad += w * 0.02
        state = RobotState(
            read_ns=self.now_ns, position=STOW, velocity=ZEROS, effort=tuple(self.effort), base_x_m=self.x_m,
            base_y_m=self.y_m, base_heading_rad=self.heading_rad, base_v_mps=v, base_w_radps=w, contact=self.contact,
        )  # fmt: skip
        self.machine.update_state(self.shows(state))
        if fault := self.machine.check_monitors(self.now_ns) or self.machine.check_conduct(self.now_ns):
            self.faults.append(fault)
        if v_mps is not None:
            self.ask(JointCommand(position=STOW, base_v_mps=v_mps, base_w_radps=w_radps))
        out = self.machine.tick(self.now_ns)
        if out is not None:
            self.v_mps, self.w_radps = out.base_v_mps, out.base_w_radps

    def ask(self, wanted: JointCommand) -> str:
        self.seq += 1
        envelope = Envelope(topic="command", source="policy", seq=self.seq, published_ns=self.now_ns)
        return self.machine.accept_command(Stamped(wanted, envelope), self.now_ns)

    @property
    def mode(self) -> str:
        return self.machine.mode

    def run(self, seconds: float, v_mps: float | None = None, w_radps: float = 0.0) -> None:
        for _ in range(round(seconds * 50)):
            self.step(v_mps, w_radps)

    def say(self, depth: str, **more: bool) -> None:
        said = Interrupt(id=depth, depth=depth, text=depth, by="Ana", cause="person", person="Ana", **more)  # type: ignore[arg-type]
        self.machine.interrupt(said, self.now_ns, self.now_ns)

    def stand(self) -> None:
        self.run(1.0, 0.3)
        self.say("stop")
        self.run(2.0)
        assert self.machine.mode == "stopped"
        assert not self.machine.needs_runstop(self.now_ns)


@pytest.mark.parametrize(
    ("v_mps", "w_radps"), [(0.02, 0.0), (0.05, 0.0), (0.099, 0.0), (-0.09, 0.0), (0.2, 0.0), (0.0, 0.05), (0.0, -0.29)]
)
def test_a_stopped_base_that_moves_by_itself_presses_the_runstop_within_3_cm_or_3_degrees(
    v_mps: float, w_radps: float
) -> None:
    base = Base()
    base.stand()
    x_m, heading_rad = base.x_m, base.heading_rad
    base.moves = v_mps, w_radps
    while not base.machine.needs_runstop(base.now_ns):
        base.step()
    assert abs(base.x_m - x_m) <= ASIDE_M + abs(v_mps) * 0.05
    assert abs(base.heading_rad - heading_rad) <= ASIDE_RAD + abs(w_radps) * 0.05
    assert base.machine.runstop_reason in (sentence("guard.base_moves_in_a_stop"), sentence("guard.moves_beyond_long"))


def test_a_base_that_never_comes_to_rest_and_one_whose_odometry_is_dead_press_it_too() -> None:
    base = Base()
    base.run(1.0, 0.3)
    base.say("stop")
    base.moves = 0.05, 0.0
    base.run(3.5)
    assert base.machine.needs_runstop(base.now_ns)
    base = Base()
    base.stand()
    base.moves, x_m = (0.05, 0.0), base.x_m
    base.shows = lambda state: msgspec.structs.replace(state, base_x_m=x_m)  # type: ignore[type-var]  # a Struct
    base.run(1.0)
    assert base.machine.needs_runstop(base.now_ns)


def test_a_base_that_stands_still_in_a_stop_is_left_alone() -> None:
    base = Base()
    base.stand()
    base.shows = lambda state: msgspec.structs.replace(  # type: ignore[type-var]  # a Struct
        state, base_x_m=state.base_x_m + 0.002 * math.sin(base.seq), base_v_mps=0.004
    )
    base.run(60.0)
    assert not base.machine.needs_runstop(base.now_ns)


@pytest.mark.parametrize("touch", ["contact", "effort"])
def test_the_way_back_feels_a_touch_that_stays(touch: str) -> None:
    base = Base()
    base.run(2.0, 0.3)
    base.contact, base.effort = (("base",), base.effort) if touch == "contact" else ((), [100.0, *ZEROS[1:]])
    base.run(1.5)
    assert base.faults == [touch]
    base.say("resume")
    x_m = base.x_m
    assert base.mode == "retreating"
    base.run(4.0)
    assert base.faults == [touch, touch]
    assert base.mode == "stopped"
    assert abs(base.x_m - x_m) <= 0.08


def test_a_target_in_other_units_is_refused_and_counted_and_one_a_little_beyond_is_followed_and_counted() -> None:
    base, lift = Base(), STRETCH_3.joints[0]
    for position, is_refused in ((43.8, True), (-30.0, True), (lift.highest + 0.02, False), (lift.highest, False)):
        base.run(0.1)
        refusal = base.ask(JointCommand(position=(position, *STOW[1:])))
        assert bool(refusal) is is_refused, position
    report = base.machine.report()
    assert (report.mistaken, report.clamped) == ({"policy": 2}, {"policy": 1})
    assert report.beyond_ranges == (
        sentence("guard.beyond_ranges", source="policy", count=1, became="followed to its end"),
        sentence("guard.beyond_ranges", source="policy", count=2, became=sentence("guard.refused_as_mistake")),
    )
