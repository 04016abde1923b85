"""Who sits where: one person per seat, a reload keeps it, a lost link does not keep it for ever."""

from __future__ import annotations

from bridges.web.console.occupancy import Seating
from runtime.clock import to_ns


def test_a_seat_has_one_person_and_force_is_needed_to_displace_them() -> None:
    seating = Seating()
    assert seating.take("policy", "s1", "Ada", force=False) == ""
    assert (
        seating.take("policy", "s2", "Bo", force=False)
        == "Ada sits on the seat policy; ask for it, or take it by force"
    )
    assert seating.take("policy", "s2", "Bo", force=True) == ""
    assert not seating.holds("policy", "s1")
    assert not seating.give("policy", "s1")
    assert seating.sitters["policy"].name == "Bo"


def test_a_reload_keeps_the_seat() -> None:
    seating = Seating()
    seating.take("vlm", "s1", "Ada", force=False)
    seating.left("s1", to_ns(1.0))
    seating.came("s1")
    assert seating.expire(to_ns(60.0)) == []
    assert seating.holds("vlm", "s1")


def test_a_person_who_does_not_come_back_loses_the_seat() -> None:
    seating = Seating()
    seating.take("policy", "s1", "Ada", force=False)
    seating.left("s1", to_ns(1.0))
    assert seating.expire(to_ns(5.9)) == []
    assert [seat for seat, _ in seating.expire(to_ns(6.1))] == ["policy"]
    assert seating.sitters == {}


def test_the_seat_of_a_person_who_is_gone_is_free_at_once() -> None:
    seating = Seating()
    seating.take("policy", "s1", "Ada", force=False)
    seating.left("s1", to_ns(1.0))
    assert seating.take("policy", "s2", "Bo", force=False) == ""
