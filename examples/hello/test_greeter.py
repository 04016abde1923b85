"""One second of virtual time, at once."""

from greeter import Talker

from runtime import Simulation


def test_the_talker_counts_twice_a_second() -> None:
    sim = Simulation(Talker(start=40))
    beats = sim.record(Talker.beat)
    sim.run(seconds=1.0)
    assert [beat.count for beat in beats] == [41, 42]
    sim.close()
