"""Who may speak, decided without a clock, a bus or a file: every lease and every refusal, word by word."""

from __future__ import annotations

from typing import Any

import pytest

from nodes.guard.arbitration import Arbitration, LadderStep, SeatConfig
from nodes.msgs import Interrupt, SeatRequest
from runtime.clock import to_ns
from runtime.coordination.fence import Fence
from runtime.coordination.lease import RENEWED_WITHIN_S, Lease
from tests.support.sentences import sentence

NOW_NS = to_ns(100.0)
LATE_NS = to_ns(RENEWED_WITHIN_S)
HOMES = {
    "policy": SeatConfig(
        holder="first",
        shadows=("second", "scripted"),
        kinds={"first": "replay", "scripted": "script"},
        ladder=(LadderStep(), LadderStep(to="scripted", silent_s=2.0)),
    ),
    "vlm": SeatConfig(holder="eyes"),
}


def asked(do: str, holder: str = "", **more: Any) -> SeatRequest:
    return SeatRequest(**{"seat": "policy", "do": do, "holder": holder, "by": "Ann", "stamp_ns": NOW_NS, **more})


def decide(
    authority: Arbitration,
    request: SeatRequest,
    source: str = "me-1",
    *,
    is_proven: bool = True,
    at_ns: int = NOW_NS,
) -> Lease | str:
    return authority.decide(request, source, at_ns, is_proven=is_proven)


@pytest.fixture
def authority() -> Arbitration:
    return Arbitration(HOMES)


def test_at_the_start_everybody_sits_at_home_under_a_lease_without_number() -> None:
    authority = Arbitration(HOMES)
    assert authority.leases == {
        "policy": Lease(seat="policy", holder="first", number=0, kind="replay"),
        "vlm": Lease(seat="vlm", holder="eyes", number=0, kind="model"),
    }
    assert (authority.epochs, authority.last) == ({}, Fence(epochs={}))
    assert Arbitration().leases == {}


def test_each_seat_is_fenced_by_what_its_table_says_and_another_seat_than_the_robots_by_a_new_plan_and_a_stop() -> None:
    homes = {
        "policy": SeatConfig(holder="first", preempted_by=()),
        "vlm": SeatConfig(holder="eyes", preempted_by=("stop", "amend", "hold")),
        "arm": SeatConfig(holder="left", preempted_by=("stop",)),
        "cart": SeatConfig(holder="wheels"),
    }
    assert Arbitration(homes, seats=("planner", "cart", "head")).preempts == {
        "amend": {"vlm"},
        "replan": {"planner", "cart", "head"},
        "stop": {"planner", "vlm", "arm", "cart", "head"},
        "resume": set(),
        "hold": {"vlm"},
    }


def test_a_person_takes_a_seat_and_the_lease_says_all_of_it(authority: Arbitration) -> None:
    lease = decide(authority, asked("take", kind="person"))
    assert lease == Lease(
        seat="policy", holder="me-1", number=1, kind="person", by="Ann", displaced="first", why="taken"
    )
    assert authority.leases["policy"] is lease


def test_a_candidate_is_what_the_launch_file_says_of_it_whatever_the_request_says(authority: Arbitration) -> None:
    assert decide(authority, asked("take", "scripted", kind="person")) == Lease(
        seat="policy", holder="scripted", number=1, kind="script", by="Ann", displaced="first", why="taken"
    )
    assert decide(authority, asked("take", "second", kind="person")) == Lease(
        seat="policy", holder="second", number=2, kind="model", by="Ann", displaced="scripted", why="taken"
    )


def test_giving_a_seat_back_puts_its_home_there_and_says_by_whom(authority: Arbitration) -> None:
    decide(authority, asked("take"))
    assert decide(authority, asked("give", by="Bo")) == Lease(
        seat="policy", holder="first", number=2, kind="replay", by="Bo", displaced="me-1", why="given back"
    )
    again = decide(authority, asked("give"))
    assert isinstance(again, Lease)
    assert (again.number, again.displaced) == (3, "")
    eyes = decide(authority, asked("give", seat="vlm"))
    assert isinstance(eyes, Lease)
    assert (eyes.holder, eyes.kind) == ("eyes", "model")


@pytest.mark.parametrize(
    ("request_", "is_proven", "words"),
    [
        (asked("take", seat="planner"), True, sentence("guard.no_such_seat", seat="planner")),
        (asked("take"), False, sentence("guard.not_proven", what="take policy", by="Ann")),
        (asked("give", by=""), False, sentence("guard.not_proven", what="give policy", by="me-1")),
        (asked("renew", "me-1"), False, sentence("guard.not_proven", what="renew policy", by="Ann")),
        (asked("renew", "me-1"), True, sentence("guard.holds_not_the_seat", who="me-1", seat="policy")),
        (
            asked("take", "stranger"),
            True,
            sentence("guard.no_candidate", who="stranger", seat="policy", candidates="first, second, scripted"),
        ),
        (asked("take", "first"), True, sentence("guard.holds_it_already", who="first", seat="policy")),
    ],
)
def test_what_is_refused_is_refused_in_words_and_changes_nothing(
    authority: Arbitration, request_: SeatRequest, is_proven: bool, words: str
) -> None:
    before = dict(authority.leases)
    assert decide(authority, request_, is_proven=is_proven) == words
    assert authority.leases == before


def test_only_a_renewal_by_the_holder_for_the_holder_counts(authority: Arbitration) -> None:
    decide(authority, asked("take"))
    assert decide(authority, asked("renew", "me-1")) == ""
    assert decide(authority, asked("renew", "me-1"), source="me-2") == sentence(
        "guard.holds_not_the_seat", who="me-2", seat="policy"
    )
    assert decide(authority, asked("renew", "me-2")) == sentence("guard.holds_not_the_seat", who="me-1", seat="policy")


def test_who_sits_at_home_may_say_that_it_is_still_there(authority: Arbitration) -> None:
    assert decide(authority, asked("renew", "first"), source="first") == ""


def test_a_person_who_is_silent_for_exactly_the_time_keeps_the_seat_and_then_loses_it(authority: Arbitration) -> None:
    decide(authority, asked("take"))
    assert authority.expired(NOW_NS + LATE_NS) == []
    assert authority.expired(NOW_NS + LATE_NS + 1) == [
        Lease(
            seat="policy", holder="first", number=2, kind="replay", by="guard", displaced="me-1",
            why=sentence("guard.link_to_holder_is_lost"),
        )
    ]  # fmt: skip
    assert authority.expired(NOW_NS + to_ns(1e6)) == [], "who sits at home renews nothing"


def test_a_renewal_is_worth_what_its_stamp_says_and_never_shortens_the_lease(authority: Arbitration) -> None:
    decide(authority, asked("take"))
    later_ns = NOW_NS + to_ns(0.5)
    held_up = asked("renew", "me-1", stamp_ns=NOW_NS + to_ns(0.2))
    assert authority.decide(held_up, "me-1", later_ns, is_proven=True) == ""
    assert authority.decide(asked("renew", "me-1", stamp_ns=1), "me-1", later_ns, is_proven=True) == ""
    assert authority.expired(NOW_NS + to_ns(0.2) + LATE_NS) == []
    assert len(authority.expired(NOW_NS + to_ns(0.2) + LATE_NS + 1)) == 1


def test_a_renewal_from_the_future_is_worth_no_more_than_now(authority: Arbitration) -> None:
    decide(authority, asked("take"))
    early = asked("renew", "me-1", stamp_ns=NOW_NS + to_ns(5.0))
    assert authority.decide(early, "me-1", NOW_NS + 1, is_proven=True) == ""
    assert len(authority.expired(NOW_NS + LATE_NS + 2)) == 1


def test_candidates_and_homes_renew_nothing(authority: Arbitration) -> None:
    decide(authority, asked("take", "second"))
    assert authority.expired(NOW_NS + to_ns(1e6)) == []


@pytest.mark.parametrize(
    ("request_", "is_allowed"),
    [
        (asked("take", "scripted", kind="script"), True),
        (asked("give", "scripted", kind="script"), False),
        (asked("take", "scripted", kind="person"), False),
        (asked("take", "", kind="script"), False),
        (asked("take", "second", kind="script"), False),
        (asked("take", "scripted", kind="script", seat="vlm"), False),
        (asked("take", "scripted", kind="script", seat="planner"), False),
    ],
)
def test_a_ladder_may_ask_for_its_own_rungs_and_for_nothing_else(
    authority: Arbitration, request_: SeatRequest, is_allowed: bool
) -> None:
    authority.hear("policy", "first", NOW_NS)
    assert authority.allows_ladder(request_, NOW_NS + to_ns(2.0)) is is_allowed
    assert authority.allows_ladder(request_, NOW_NS + to_ns(1.85)) is is_allowed, "it was told late"
    assert not authority.allows_ladder(request_, NOW_NS + to_ns(1.7)), "the guard has heard the holder itself"


def test_a_ladder_is_believed_about_no_silence_that_the_guard_has_not_seen(authority: Arbitration) -> None:
    step, late_ns = asked("take", "scripted", kind="script"), NOW_NS + to_ns(60.0)
    assert not authority.allows_ladder(step, late_ns), "a holder that has not begun is not silent"
    authority.hear("policy", "second", NOW_NS)
    assert not authority.allows_ladder(step, late_ns), "a shadow's words are not the holder's"
    authority.hear("policy", "first", NOW_NS)
    assert authority.allows_ladder(step, late_ns)
    authority.hear("policy", "first", late_ns)
    assert not authority.allows_ladder(step, late_ns + to_ns(1.0))
    authority.spend("policy", "second")
    assert not authority.allows_ladder(step, late_ns + to_ns(1.0)), "of a shadow"
    authority.spend("policy", "first")
    assert authority.allows_ladder(step, late_ns + to_ns(1.0)), "whose model may not be asked any more"


def test_a_person_on_a_seat_may_stay_silent_and_a_new_holder_has_its_time_to_begin(authority: Arbitration) -> None:
    step = asked("take", "scripted", kind="script")
    authority.hear("policy", "first", NOW_NS)
    decide(authority, asked("take", "me-1", kind="person"), source="me-1")
    authority.hear("policy", "me-1", NOW_NS)
    assert not authority.allows_ladder(step, NOW_NS + to_ns(60.0))
    decide(authority, asked("take", "second"), at_ns=NOW_NS + to_ns(60.0))
    assert not authority.allows_ladder(step, NOW_NS + to_ns(61.0))
    assert authority.allows_ladder(step, NOW_NS + to_ns(62.0))


def test_a_fence_tells_the_whole_interrupt(authority: Arbitration) -> None:
    stop = Interrupt(id="i-1", depth="stop", text="Ouch!", by="Ana")
    fence = Fence(
        epochs={"planner": 1, "vlm": 1, "policy": 1}, interrupt_id="i-1", depth="stop", text="Ouch!", by="Ana"
    )
    assert authority.fence(stop) == fence
    assert authority.last == fence
    assert authority.epochs == {"planner": 1, "vlm": 1, "policy": 1}
    amended = authority.fence(Interrupt(id="i-2", depth="amend", text="no cream", by="Bo"))
    assert amended == Fence(
        epochs={"planner": 1, "vlm": 2, "policy": 1}, interrupt_id="i-2", depth="amend", text="no cream", by="Bo"
    )


def test_what_is_restored_goes_on_and_never_back(authority: Arbitration) -> None:
    person = Lease(seat="policy", holder="me-7", number=4, kind="person")
    stranger = Lease(seat="planner", holder="x", number=9)
    authority.restore({"planner": 3, "policy": 2}, {"policy": person, "planner": stranger}, NOW_NS)
    assert authority.epochs == {"planner": 3, "policy": 2}
    assert authority.last == Fence(epochs={"planner": 3, "policy": 2})
    assert authority.leases["policy"] is person
    assert "planner" not in authority.leases
    authority.restore(
        {"planner": 1, "vlm": 5, "policy": 1}, {"policy": Lease(seat="policy", holder="old", number=3)}, NOW_NS
    )
    assert authority.epochs == {"planner": 3, "vlm": 5, "policy": 2}
    assert authority.leases["policy"] is person
    same = Lease(seat="policy", holder="me-8", number=4)
    authority.restore({}, {"policy": same}, NOW_NS)
    assert authority.leases["policy"] is same
    assert authority.expired(NOW_NS + LATE_NS) == []
    assert [lease.displaced for lease in authority.expired(NOW_NS + LATE_NS + 1)] == ["me-8"]


def test_a_person_who_was_never_heard_to_renew_loses_the_seat_at_once(authority: Arbitration) -> None:
    authority.leases["policy"] = Lease(seat="policy", holder="ghost", number=5, kind="person")
    assert authority.expired(LATE_NS) == []
    assert [lease.number for lease in authority.expired(LATE_NS + 1)] == [6]


@pytest.mark.parametrize(
    "before",
    [{"planner": 1, "vlm": 2, "policy": 3}, {"planner": 3, "vlm": 2, "policy": 1}, {"vlm": 3, "navigation": 1}],
)
def test_each_seats_epoch_is_restored_by_itself_and_never_goes_back(before: dict[str, int]) -> None:
    authority = Arbitration()
    authority.epochs = before
    authority.restore({}, {}, 0)
    assert authority.epochs == before
    authority.restore({"planner": 5, "vlm": 6, "policy": 7}, {}, 0)
    assert authority.epochs == authority.last.epochs == {**before, "planner": 5, "vlm": 6, "policy": 7}


def test_where_nothing_is_known_all_go_on_at_one_number(authority: Arbitration) -> None:
    authority.begin_at(7)
    assert authority.epochs == {"planner": 7, "policy": 7, "vlm": 7}
    assert authority.last == Fence(epochs=authority.epochs)
    assert authority.leases == {
        "policy": Lease(seat="policy", holder="first", number=7, kind="replay"),
        "vlm": Lease(seat="vlm", holder="eyes", number=7, kind="model"),
    }
