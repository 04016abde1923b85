"""The guard searched whole: every state that events lead to in any order, breadth first, over the real class.

Two guards whose signature is one count as one state: mode, parts, and each time as its order to now. Speeds and places
are those of the first way that led there. What must hold is asked of a witness, who knows what happened and believes
nothing that the guard says of itself. Each of its promises is broken once by a planted fault, which the search finds.
"""

from __future__ import annotations

import copy
import re
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from nodes.guard import command_sources, commanded_body, state_machine, stop_latch
from nodes.guard.immediate_faults import Monitors
from nodes.guard.modes import OUTPUT, STOPPED, TRANSITIONS
from nodes.guard.retreat import WAY
from nodes.guard.soft_hold import HOLDS
from nodes.guard.state_machine import GuardMachine
from nodes.msgs import GuardMode, Interrupt, JointCommand, RobotStatus
from nodes.msgs.interrupt import Cause
from nodes.stretch.limits import STOW, STRETCH_3
from runtime.clock import to_ns
from runtime.message import Envelope, Stamped
from tests.support.guard.guard_driven import MS
from tests.support.sentences import sentence
from tests.support.standing import moving

PAGE = Path(__file__).parents[3] / "docs" / "guard.md"
ZEROS = (0.0,) * len(STOW)
EXACT = 1e-9
OWN_FAULT = sentence("guard.own_fault", mode="|", event="").partition("|")[0]
SHARED = GuardMachine(STRETCH_3)


class World:
    """A guard, the robot that does as it says, and what a witness knows of both."""

    def __init__(self) -> None:
        self.machine = GuardMachine(STRETCH_3, SHARED.settings, SHARED.body.space)
        self.now_ns, self.seq = to_ns(10.0), 0
        self.pose = (0.0, 0.0, 0.0)
        self.out: JointCommand | None = None
        self.contact: tuple[str, ...] = ()
        self.status = RobotStatus(read_ns=0, mode="ready")
        self.stops: frozenset[str] = frozenset()  # of persons, that stand
        self.may_go_back = False  # somebody was touched and said go on since
        self.sent_ns = -1  # when the newest command was sent that may be followed
        self.was_touched = False
        self.seen_ns = self.now_ns  # when the robot was measured last
        self.is_armed = False  # by somebody, and not lost since
        self.must_stop: Literal["", "stop", "estop"] = ""  # until somebody lifts it
        self.held_until_ns = 0
        self.tick(sees=True)

    def copied(self) -> World:
        shared = (self.machine.limits, self.machine.settings, self.machine.body.space, self.machine.monitors.limits)
        return copy.deepcopy(self, {id(one): one for one in shared})

    def tick(self, *, sees: bool = True, dt_s: float = 0.02) -> None:
        """One period: the robot is read, the guard looks and tells it what to do; its promises are checked."""
        self.now_ns += to_ns(dt_s)
        before, machine = self.out, self.machine
        if sees:
            v_mps = before.base_v_mps if before is not None else 0.0
            self.pose = (self.pose[0] + v_mps * dt_s, 0.0, 0.0)
            position = before.position if before is not None else STOW
            state = moving(self.now_ns, position, ZEROS, v_mps, 0.0, self.pose)
            machine.update_state(msgspec.structs.replace(state, contact=self.contact))  # type: ignore[type-var]
            machine.update_status(self.status)
            self.seen_ns = self.now_ns
        if machine.check_monitors(self.now_ns) or machine.check_conduct(self.now_ns):
            self.sent_ns, self.was_touched = -1, self.was_touched or bool(self.contact)
            self.must_stop = self.must_stop or "stop"
        self.out = machine.tick(self.now_ns)
        self.witness(before)

    def witness(self, before: JointCommand | None) -> None:
        """No motion without a fresh command or a way back that is owed; none unarmed, blind or under a stop."""
        machine, out = self.machine, self.out
        assert OWN_FAULT not in machine.reason, "an event came that its mode does not know"
        assert machine.mode in STOPPED or not self.must_stop, "left a stop that nobody has lifted"
        was_mps = abs(before.base_v_mps) if before is not None else 0.0
        is_silent = self.now_ns - self.seen_ns > to_ns(1.0)
        if out is None:
            assert was_mps <= EXACT or is_silent or self.status.is_runstopped, "let go of a robot that moves"
            self.is_armed = self.is_armed and not (is_silent or self.status.is_runstopped)
            return
        assert self.is_armed, "told to the robot without having been armed"
        assert not self.status.is_runstopped or self.now_ns != self.seen_ns, "told to a robot whose runstop is pressed"
        assert not is_silent, "told to a robot of which nothing is known"
        is_faster = abs(out.base_v_mps) > was_mps + EXACT
        if not is_faster:
            return
        assert not self.must_stop, "moved in a stop"
        assert self.now_ns >= self.held_until_ns, "moved while it is held"
        assert self.now_ns - self.seen_ns <= to_ns(0.2), "moved without a measured posture"
        if machine.mode == "retreating":
            assert self.may_go_back, "went back though nobody was touched, or nobody has said go on"
        else:
            assert 0 <= self.now_ns - self.sent_ns <= to_ns(0.15), "moved without a fresh command"

    def arm(self) -> None:
        self.is_armed = self.machine.arm(self.now_ns) or self.is_armed

    def home(self) -> None:
        self.is_armed = self.is_armed and self.machine.begin_service(self.now_ns) is not None

    def rearm(self) -> None:
        if self.machine.rearm("Ana", self.now_ns):
            self.must_stop = "stop"

    def said(self, depth: str, by: str, cause: Cause = "person", *, is_operator: bool = False, **more: bool) -> None:
        was, person = self.machine.mode, by if cause == "person" else ""
        about = {"id": f"{by}-{depth}", "depth": depth, "text": depth, "by": by, "cause": cause, "person": person}
        told = Interrupt(hold_s=1.0, **about, **more)  # type: ignore[arg-type]  # of the acts below
        self.machine.interrupt(told, self.now_ns, self.now_ns, is_operator=is_operator)
        if depth in ("stop", "replan"):
            self.sent_ns = -1
        if depth == "stop":
            self.stops |= {by}
            self.must_stop = self.must_stop or "stop"
            self.was_touched = self.was_touched or bool(more.get("is_pain"))
        if depth == "hold" and (was in ("moving", "retreating") or self.now_ns < self.held_until_ns):
            self.held_until_ns = self.now_ns + to_ns(1.0)
        if depth == "resume":
            self.stops -= {by} if was == "stopped" and cause == "person" else set()
            if was in STOPPED and self.machine.mode not in STOPPED:
                assert cause == "person", "a machine lifted a stop"
                assert self.must_stop == "stop", "words lifted an emergency stop"
                assert is_operator or not self.stops, "lifted what another person stopped"
                self.stops, self.must_stop = frozenset(), ""
                self.may_go_back, self.was_touched = self.was_touched or self.may_go_back, False

    def command(self, *, seq: int | None = None, source: str = "policy") -> None:
        self.seq = self.seq + 1 if seq is None else seq
        wanted = Stamped(
            JointCommand(position=STOW, base_v_mps=0.3), Envelope("command", source, self.seq, self.now_ns)
        )
        if not self.machine.accept_command(wanted, self.now_ns):
            self.sent_ns = self.now_ns

    def estop(self) -> None:
        self.machine.estop("button", self.now_ns)
        assert self.machine.mode == "estopped"
        self.sent_ns, self.must_stop = -1, "estop"

    def pass_s(self, seconds: float, *, sees: bool = True) -> None:
        for _ in range(round(seconds / 0.02)):
            self.tick(sees=sees)

    def drive_blind(self) -> None:
        """Fresh commands, and for 0.3 s nobody sees the robot."""
        for _ in range(15):
            self.command()
            self.tick(sees=False)

    def touch(self, *parts: str) -> None:
        self.contact = parts

    def show(self, **fields: object) -> None:
        self.status = msgspec.structs.replace(self.status, **fields)  # type: ignore[type-var]


Act = Callable[[World], object]
FEW: dict[str, Act] = {
    "tick": lambda world: None,
    "arm": lambda world: world.arm(),
    "command": lambda world: world.command(),
    "Ana stops": lambda world: world.said("stop", "Ana"),
    "Ana is hurt": lambda world: world.said("stop", "Ana", is_pain=True),
    "Ana goes on": lambda world: world.said("resume", "Ana"),
    "a machine goes on": lambda world: world.said("resume", "ladder", "ladder"),
    "hold": lambda world: world.said("hold", "Ana"),
    "estop": lambda world: world.estop(),
    "rearm": lambda world: world.rearm(),
    "home": lambda world: world.home(),
    "driven blind": lambda world: world.drive_blind(),
    "a second": lambda world: world.pass_s(1.0),
}
MORE: dict[str, Act] = {
    "Bob stops": lambda world: world.said("stop", "Bob"),
    "Bob goes on": lambda world: world.said("resume", "Bob"),
    "an operator goes on": lambda world: world.said("resume", "op", is_operator=True),
    "replan": lambda world: world.said("replan", "Ana"),
    "another source": lambda world: world.command(seq=7, source="other"),
    "hand over": lambda world: world.machine.transfer_control("other", world.now_ns),
    "contact": lambda world: world.touch("base"),
    "no contact": lambda world: world.touch(),
    "runstop": lambda world: world.show(is_runstopped=True, mode="runstopped"),
    "released": lambda world: world.show(is_runstopped=False, mode="ready"),
    "silence": lambda world: world.pass_s(1.2, sees=False),
    "frozen": lambda world: world.tick(dt_s=1.5),
}


def searched(acts: dict[str, Act]) -> tuple[int, int]:
    """How many states these lead to, and the steps between them."""
    first = World()
    seen, steps = {signature(first)}, 0
    waiting: deque[tuple[World, tuple[str, ...]]] = deque([(first, ())])
    while waiting:
        world, way = waiting.popleft()
        for name, act in acts.items():
            then, path = world.copied(), (*way, name)
            try:
                then.now_ns += MS
                act(then)
                then.tick()
            except AssertionError as problem:
                raise AssertionError(f"{problem} after: {', '.join(path)}") from problem
            steps += 1
            key = signature(then)
            if key not in seen:
                seen.add(key)
                waiting.append((then, path))
    return len(seen), steps


def signature(world: World) -> tuple[object, ...]:
    return (
        *world.machine.signature(world.now_ns), world.contact, world.status.mode, world.stops, world.may_go_back,
        world.was_touched, world.is_armed, world.must_stop, world.now_ns < world.held_until_ns,
    )  # fmt: skip


def told_on_the_page() -> list[tuple[int, int]]:
    found = re.findall(r"([\d,]+)\s+states and ([\d,]+) steps", PAGE.read_text())
    return [(int(states.replace(",", "")), int(steps.replace(",", ""))) for states, steps in found]


REFUSAL = stop_latch.Latch.refusal


def as_if_stopped(self: stop_latch.Latch, interrupt: Interrupt, _: GuardMode, *times_ns: int, **more: bool) -> object:
    """A latch that takes an emergency stop for any other."""
    return REFUSAL(self, interrupt, "stopped", *times_ns, **more)


def always(value: object) -> Callable[..., object]:
    return lambda *_, **__: value


TABLES: dict[str, tuple[dict[Any, Any], dict[Any, Any], dict[str, Act]]] = {
    "an event came that its mode does not know": (TRANSITIONS, {("moving", "hold"): None}, {}),
    "left a stop that nobody has lifted": (TRANSITIONS, {("estopped", "rearm"): "holding"}, {}),
    "let go of a robot that moves": (OUTPUT, {"stopped": "nothing"}, {}),
    "moved while it is held": (HOLDS, {("none", "asked while moving"): "none"}, {}),
    "went back though nobody was touched, or nobody has said go on": (WAY, {("nothing", "go on"): "going"}, {}),
    "lifted what another person stopped": (
        stop_latch.LIFTED_BY, {"persons": {"person"}}, {name: MORE[name] for name in ("Bob stops", "Bob goes on")},
    ),
}  # fmt: skip
"""What breaks each promise: a table, what is wrong in it (None: it is missing), and acts beside `FEW` that show it."""

LINES: dict[str, list[tuple[object, str, object]]] = {
    "told to the robot without having been armed": [
        (commanded_body.CommandedBody, "serve", always(value=False)),
        (state_machine, "OUTPUT", {**OUTPUT, "disarmed": "braking"}),
    ],
    "told to a robot whose runstop is pressed": [(commanded_body.CommandedBody, "lose", always(value=False))],
    "moved without a fresh command": [(command_sources.CommandSources, "staleness", always(""))],
    "moved without a measured posture": [(Monitors, "is_stale", always(value=False))],
    "a machine lifted a stop": [(stop_latch, "key_of", always("person"))],
    "words lifted an emergency stop": [
        (stop_latch.Latch, "refusal", as_if_stopped),
        (stop_latch, "LIFTED_BY", {**stop_latch.LIFTED_BY, "emergency": {"person"}}),
        (state_machine, "TRANSITIONS", {**TRANSITIONS, ("estopped", "resume"): "holding",
                                        ("estopped", "release"): "disarmed"}),
    ],
    "moved in a stop": [
        (state_machine, "OUTPUT", {**OUTPUT, "stopped": "command"}), (state_machine, "CLOSED", ("disarmed",)),
        (state_machine, "TRANSITIONS", {**TRANSITIONS, ("stopped", "command"): "stopped"}),
    ],
}  # fmt: skip
"""The same by lines of code; where two are named, one alone is not enough."""


@pytest.mark.parametrize("promise", TABLES)
def test_a_wrong_line_in_a_table_is_found(promise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, wrong, more = TABLES[promise]
    for key, value in wrong.items():
        monkeypatch.delitem(table, key) if value is None else monkeypatch.setitem(table, key, value)
    with pytest.raises(AssertionError, match=promise):
        searched({**FEW, **more})


def test_a_guard_that_keeps_control_of_a_robot_that_is_silent_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commanded_body.CommandedBody, "lose", always(value=False))
    with pytest.raises(AssertionError, match="told to a robot of which nothing is known"):
        searched({**FEW, "silence": MORE["silence"]})


@pytest.mark.parametrize("promise", LINES)
def test_a_wrong_line_of_code_is_found(promise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name, wrong in LINES[promise]:
        monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(AssertionError, match=promise):
        searched({**FEW, "runstop": MORE["runstop"]})


def test_no_way_of_one_person_one_policy_and_the_buttons_leads_to_motion_that_nobody_may_ask_for() -> None:
    assert searched(FEW) == told_on_the_page()[0]


@pytest.mark.long
def test_nor_does_one_of_two_people_two_sources_touches_runstops_and_silence() -> None:
    assert searched({**FEW, **MORE}) == told_on_the_page()[1]
