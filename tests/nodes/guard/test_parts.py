"""Each part of the guard beside its mode: every state by every event, as its table says, and nothing else."""

from __future__ import annotations

from math import isnan
from typing import get_args

import msgspec
import pytest

from nodes.guard.command_sources import MOST_SOURCES, ORDERS, RESTARTED_NS, CommandSources
from nodes.guard.commanded_body import SERVICE_STARTS_NS, CommandedBody, Control, ControlEvent
from nodes.guard.immediate_faults import GuardSettings, Monitors
from nodes.guard.lasting_faults import RANGE_SHARE
from nodes.guard.retreat import TOUCHED, Due, DueEvent, TrailStep, WayBack
from nodes.guard.soft_hold import HOLDS, LONGEST_HOLD_NS, HoldEvent, HoldState, SoftHold
from nodes.guard.space import Space
from nodes.guard.stop_latch import CROWD, LIFTED_BY, MOST_STOPPERS, Key, Latch, Lock
from nodes.msgs import GuardMode, GuardState, Interrupt, JointCommand
from nodes.stretch.limits import STOW, STRETCH_3
from runtime.message import Envelope, Stamped
from tests.support.guard.guard_driven import MS
from tests.support.standing import moving, standing

ZEROS = (0.0,) * len(STOW)


def interrupt(depth: str = "stop", by: str = "Ana", **fields: object) -> Interrupt:
    about = {"id": "i", "depth": depth, "text": "", "by": by, "cause": "person", "person": by, **fields}
    return msgspec.convert(about, Interrupt)


def on_its_way(due: Due) -> WayBack:
    """One that has come some way, and owes this."""
    way = WayBack(STRETCH_3)
    way.note(moving(0, STOW, ZEROS, 0.3, 0.0), 0.5)
    if due == "nothing":
        return way
    way.touch()
    if due == "touched":
        return way
    assert way.begin(7, is_false_alarm=False)
    way.note(moving(0, STOW, ZEROS, -0.1, 0.0), 0.5)
    if "blocked" in due:
        way.block()
    if "again" in due or "and" in due:
        way.touch()
    return way


OWED: dict[Due, tuple[Due, ...]] = {  # after a touch, a go on, a false alarm, the end, and being blocked
    "nothing": ("touched", "nothing", "nothing", "nothing", "nothing"),
    "touched": ("touched", "going", "nothing", "touched", "touched"),
    "going": ("touched again", "going", "going", "nothing", "blocked"),
    "touched again": ("touched again", "going", "going", "touched", "touched again"),
    "blocked": ("blocked and touched", "nothing", "nothing", "blocked", "blocked"),
    "blocked and touched": (
        "blocked and touched", "nothing", "nothing", "blocked and touched", "blocked and touched",
    ),
}  # fmt: skip


@pytest.mark.parametrize("event", get_args(DueEvent))
@pytest.mark.parametrize("due", get_args(Due))
def test_what_is_owed_of_a_way_back_follows_from_what_was_and_what_happens(due: Due, event: DueEvent) -> None:
    way, wanted = on_its_way(due), OWED[due][get_args(DueEvent).index(event)]
    assert way.due == due
    match event:
        case "touch":
            way.touch()
        case "go on" | "false alarm":
            is_back = way.begin(9, is_false_alarm=event == "false alarm")
            assert is_back is (wanted == "going")
            assert way.begun_ns == (9 if is_back else 0 if due in ("nothing", "touched") else 7)
        case "end":
            way.forget()
        case "block":
            way.block()
    assert way.due == wanted
    assert way.is_touch is (way.due in TOUCHED) is ("touched" in way.due)
    assert way.is_blocked is ("blocked" in way.due)


@pytest.mark.parametrize(("seconds", "is_believed"), [(0.1, False), (5.0, True)])
def test_a_posture_that_it_cannot_have_reached_is_no_part_of_the_way(seconds: float, is_believed: bool) -> None:
    way, lift_m = WayBack(STRETCH_3), STOW[0] + 0.3
    way.note(moving(0, STOW, ZEROS, 0.3), 0.5)
    way.note(moving(0, (lift_m, *STOW[1:]), ZEROS, 0.3), seconds)
    way.note(standing(0, (lift_m if is_believed else STOW[0], *STOW[1:])), 0.02)
    way.touch()
    assert way.begin(7, is_false_alarm=False)
    step = way.step(0.02)
    assert step is not None
    assert step.position[0] == (lift_m if is_believed else STOW[0])


@pytest.mark.parametrize(("lift_m", "stays"), [(STOW[0] + 0.02, False), (STOW[0] + 0.05, True)])
def test_a_joint_that_is_not_where_its_way_ends_stays_where_it_is(lift_m: float, stays: bool) -> None:
    way, here = WayBack(STRETCH_3), (lift_m, *STOW[1:])
    way.note(moving(0, STOW, ZEROS, 0.3), 0.5)
    way.note(standing(0, here), 0.02)
    way.touch()
    assert way.begin(7, is_false_alarm=False)
    step = way.step(0.02)
    assert step is not None
    assert [isnan(there) for there in step.position] == [stays] + [False] * 7
    assert step.position[1:] == STOW[1:]
    assert step.base_v_mps < 0.0


def test_a_joint_that_is_off_by_just_the_margin_still_goes_along() -> None:
    way, arm = WayBack(STRETCH_3), STRETCH_3.joints[1]
    way.note(moving(0, STOW, ZEROS, 0.3), 0.5)
    margin_m = RANGE_SHARE * (arm.highest - arm.lowest)
    way.note(standing(0, (STOW[0], STOW[1] + margin_m, *STOW[2:])), 0.02)
    way.touch()
    assert way.begin(7, is_false_alarm=False)
    step = way.step(0.02)
    assert step is not None
    assert step.position == STOW


def body_in(control: Control) -> CommandedBody:
    settings = GuardSettings()
    body = CommandedBody(STRETCH_3, settings, Space(STRETCH_3), Monitors(STRETCH_3, settings))
    if control == "engaged":
        body.engage(STOW, 0)
    if control == "service":
        body.serve(0)
    return body


def test_a_way_back_that_is_not_free_is_braked_for_from_that_moment_on() -> None:
    body = body_in("engaged")
    body.space = Space(STRETCH_3, (), {"wall": (-2.0, 2.0, -2.0, 2.0, -1.0, 2.0)})
    assert not body.go_back(TrailStep(STOW, -0.1, 0.0, 0.02), 0.02, 7)
    assert body.held_ns == 7


CONTROLS: dict[Control, tuple[Control, ...]] = {  # after arming, losing it, serving, and the end of that
    "released": ("engaged", "released", "service", "released"),
    "engaged": ("engaged", "released", "service", "engaged"),
    "service": ("service", "service", "service", "released"),
}


@pytest.mark.parametrize("event", get_args(ControlEvent))
@pytest.mark.parametrize("control", get_args(Control))
def test_who_has_control_of_the_body_follows_from_what_happens_and_only_an_engaged_one_has_targets(
    control: Control, event: ControlEvent
) -> None:
    body = body_in(control)
    assert body.control == control
    match event:
        case "arm":
            body.engage(STOW, 0)
        case "lose":
            assert body.lose(0) is (control == "engaged")
        case "serve":
            assert body.serve(0) is (control == "engaged")
        case "over":
            body.end_service()
    assert body.control == CONTROLS[control][get_args(ControlEvent).index(event)]
    assert bool(body.motion().joints) is body.is_engaged is (body.control == "engaged")


def test_a_body_that_is_under_control_is_not_taken_anew() -> None:
    body = body_in("engaged")
    body.engage((0.9, *STOW[1:]), 5)
    assert tuple(joint.position for joint in body.motion().joints) == STOW


def test_homing_that_was_accepted_counts_for_half_a_second() -> None:
    body = body_in("service")
    assert body.is_in_service(SERVICE_STARTS_NS - 1)
    assert not body.is_in_service(SERVICE_STARTS_NS)
    assert body.control == "released"


@pytest.mark.parametrize("event", get_args(HoldEvent))
@pytest.mark.parametrize("state", get_args(HoldState))
def test_a_soft_hold_follows_its_table(state: HoldState, event: HoldEvent) -> None:
    hold = SoftHold()
    if state == "holding":
        assert hold.ask(interrupt("hold", id="h", hold_s=1.0), "moving", 0)
    asked: dict[HoldEvent, tuple[Interrupt, GuardMode]] = {
        "asked while moving": (interrupt("hold", id="n", hold_s=1.0), "retreating"),
        "asked": (interrupt("hold", id="n", hold_s=1.0), "holding"),
        "taken back": (interrupt("hold", takes_back="h"), "holding"),
    }
    now_ns = LONGEST_HOLD_NS if event == "over" else 1
    if event in asked:
        assert hold.ask(*asked[event], now_ns) is (event != "taken back" and HOLDS.get((state, event)) == "holding")
    assert hold.state(now_ns) == HOLDS.get((state, event), state)
    assert hold.is_on(now_ns) is (hold.state(now_ns) == "holding")


def test_a_soft_hold_is_taken_back_by_no_other_id_and_only_once() -> None:
    hold = SoftHold()
    hold.ask(interrupt("hold", id="h", hold_s=1.0), "moving", 0)
    hold.ask(interrupt("hold", takes_back="other"), "moving", 1)
    assert hold.is_on(1)
    hold.ask(interrupt("hold", takes_back="h"), "moving", 1)
    hold.ask(interrupt("hold", id="n", hold_s=1.0), "moving", 2)
    hold.ask(interrupt("hold", takes_back="h"), "moving", 2)
    assert hold.is_on(2)


def latched(lock: Lock) -> tuple[Latch, GuardMode]:
    latch, mode = Latch(), "holding" if lock == "none" else "estopped" if lock == "emergency" else "stopped"
    if lock == "persons":
        latch.stop(interrupt(by="Bob"), 1, "moving")
    if lock == "crowd":
        latch.restore({CROWD: CROWD})
    return latch, msgspec.convert(mode, GuardMode)


@pytest.mark.parametrize("key", [key for key in get_args(Key) if key != "machine"])
@pytest.mark.parametrize("lock", get_args(Lock))
def test_who_lifts_a_latch_is_who_its_table_names(lock: Lock, key: Key) -> None:
    latch, mode = latched(lock)
    assert latch.lock(mode) == lock
    refusal = latch.withdraw(interrupt("resume"), mode, is_operator=key == "operator")
    assert (refusal is None) is (key in LIFTED_BY[lock])


@pytest.mark.parametrize("cause", ["ladder", "contact", "guard", "runstop", "driver", "link"])
def test_no_table_lets_a_machine_lift_anything_and_words_lift_no_emergency_stop(cause: str) -> None:
    assert all("machine" not in keys for keys in LIFTED_BY.values())
    assert LIFTED_BY["emergency"] == LIFTED_BY["none"] == set()
    refusal = Latch().refusal(interrupt("resume", cause=cause), "stopped", 5, 5, is_runstopped=False)
    assert refusal is not None
    assert refusal.code == "not_a_person"


def test_each_withdraws_their_own_stop_and_the_last_one_lifts_it() -> None:
    latch = Latch()
    latch.stop(interrupt(by="Ana"), 1, "moving")
    assert latch.stop(interrupt(by="Bob"), 2, "stopped") == "Bob"
    assert latch.withdraw(interrupt("resume", by="Ana"), "stopped", is_operator=False) is not None
    assert latch.stoppers == {"Bob": "Bob"}
    assert latch.withdraw(interrupt("resume", by="Bob"), "stopped", is_operator=False) is None
    latch.open()
    assert (latch.cause, latch.by, latch.heard_ns, latch.stoppers) == ("", "", 0, {})


def test_after_sixteen_people_nobody_knows_whose_stops_these_are() -> None:
    latch = Latch()
    for number in range(MOST_STOPPERS + 1):
        latch.stop(interrupt(by=f"p{number}"), number, "moving")
    assert latch.lock("stopped") == "crowd"


@pytest.mark.parametrize(
    ("seq", "later_ns", "others", "order"),
    [
        (6, MS, 0, "next"), (5, MS, 0, "old"), (6, 0, 0, "old"), (1, RESTARTED_NS - 1, 0, "old"),
        (1, RESTARTED_NS, 0, "again"), (0, MS, 1, "first"), (0, MS, MOST_SOURCES, "one too many"),
    ],
)  # fmt: skip
def test_the_place_of_a_command_among_those_of_its_source_decides_as_its_table_says(
    seq: int, later_ns: int, others: int, order: str
) -> None:
    sources, at_ns = CommandSources(STRETCH_3, GuardSettings()), 10_000 * MS
    for number in range(max(others, 1)):
        sources.take(Stamped(JointCommand(position=STOW), Envelope("command", f"s{number}", 5, at_ns)))
    sources.newest = None
    now_ns, source = at_ns + later_ns, "new" if others else "s0"
    refused = sources.refusal(Stamped(JointCommand(position=STOW), Envelope("command", source, seq, now_ns)), now_ns)
    assert refused == (f"{source}: {ORDERS[order]}" if ORDERS[order] else "")  # type: ignore[index]  # of the table above
    assert sources.restarted == (source if order == "again" else "")


@pytest.mark.parametrize(("beyond_m", "count"), [(0.9e-6, {}), (1.5e-6, {"policy": 1})])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_target_that_is_beyond_the_end_by_more_than_rounding_is_counted(
    side: int, beyond_m: float, count: dict[str, int]
) -> None:
    sources, lift = CommandSources(STRETCH_3, GuardSettings()), STRETCH_3.joints[0]
    end_m = lift.highest + beyond_m if side > 0 else lift.lowest - beyond_m
    sources.take(Stamped(JointCommand(position=(end_m, *STOW[1:])), Envelope("command", "policy", 1, 0)))
    assert sources.clamped == count


def test_of_the_first_sources_that_ask_for_too_much_each_is_counted_on_and_no_other_begins() -> None:
    sources, beyond = CommandSources(STRETCH_3, GuardSettings()), (STRETCH_3.joints[0].highest + 0.01, *STOW[1:])
    for name in (*map(str, range(MOST_SOURCES)), "0", "one too many"):
        sources.take(Stamped(JointCommand(position=beyond), Envelope("command", name, 1, 0)))
    assert sources.clamped == {**dict.fromkeys(map(str, range(MOST_SOURCES)), 1), "0": 2}


@pytest.mark.parametrize(
    ("old", "mode", "is_stopped", "is_moving"),
    [
        ({"mode": "moving", "is_retreating": True}, "retreating", False, True),
        ({"mode": "stopped", "estop": "button"}, "estopped", True, False),
        ({"mode": "stopped"}, "stopped", True, False),
        ({"mode": "moving"}, "moving", False, True),
        ({"mode": "holding"}, "holding", False, False),
    ],
)
def test_an_older_recording_of_a_guard_is_read_with_the_modes_of_today(
    old: dict[str, object], mode: str, is_stopped: bool, is_moving: bool
) -> None:
    read = msgspec.msgpack.decode(msgspec.msgpack.encode({**old, "reason": "r"}), type=GuardState)
    assert (read.mode, read.is_stopped, read.is_moving) == (mode, is_stopped, is_moving)
