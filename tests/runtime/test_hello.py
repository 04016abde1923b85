"""The tutorial's own test: two nodes in virtual time."""

from nodes.hello import Listener, Talker
from runtime import Simulation


def test_talker_counts_twice_a_second() -> None:
    sim = Simulation(Talker(start=40))
    beats = sim.record(Talker.beat)  # list[Beat], known to the type checker
    sim.run(seconds=1.0)
    assert [beat.count for beat in beats] == [41, 42]


def test_listener_hears_every_beat() -> None:
    listener = Listener()
    sim = Simulation(Talker(), listener)
    sim.run(seconds=10.0)
    assert listener.beat.delivered == 20
    assert not listener.beat.dropped
