"""Who sits where: one person per seat, a reload keeps it, a lost link does not keep it for ever."""

from __future__ import annotations

from bridges.web.console.occupancy import Occupancy
from runtime.clock import to_ns
from tests.support.sentences import sentence


def test_a_seat_has_one_person_and_force_is_needed_to_displace_them() -> None:
    occupancy = Occupancy()
    assert occupancy.take("policy", "s1", "Ada", force=False) == ""
    assert occupancy.take("policy", "s2", "Bo", force=False) == sentence(
        "bridges.seat_is_taken", who="Ada", seat="policy"
    )
    assert occupancy.take("policy", "s2", "Bo", force=True) == ""
    assert not occupancy.holds("policy", "s1")
    assert not occupancy.give("policy", "s1")
    assert occupancy.occupants["policy"].name == "Bo"


def test_a_reload_keeps_the_seat() -> None:
    occupancy = Occupancy()
    occupancy.take("vlm", "s1", "Ada", force=False)
    occupancy.left("s1", to_ns(1.0))
    occupancy.joined("s1")
    assert occupancy.expire(to_ns(60.0)) == []
    assert occupancy.holds("vlm", "s1")


def test_a_person_who_does_not_come_back_loses_the_seat() -> None:
    occupancy = Occupancy()
    occupancy.take("policy", "s1", "Ada", force=False)
    occupancy.left("s1", to_ns(1.0))
    assert occupancy.expire(to_ns(5.9)) == []
    assert [seat for seat, _ in occupancy.expire(to_ns(6.1))] == ["policy"]
    assert occupancy.occupants == {}


def test_the_seat_of_a_person_who_is_gone_is_free_at_once() -> None:
    occupancy = Occupancy()
    occupancy.take("policy", "s1", "Ada", force=False)
    occupancy.left("s1", to_ns(1.0))
    assert occupancy.take("policy", "s2", "Bo", force=False) == ""
