"""Practice with a simulated robot is counted: what is done, how long it took, stops, and what fell."""

from __future__ import annotations

import pytest

from nodes.msgs import GuardState, TrainingScore
from nodes.sim.messages import ObjectTruth, Truth
from nodes.sim.people.training import Training, points
from runtime import LEASE_TOPIC, Lease, ParameterError, Simulation


def cup(name: str, *, z_m: float = 0.55, is_in_bin: bool = False) -> ObjectTruth:
    return ObjectTruth(name=name, label="cup", colour=name, x_m=0.0, y_m=0.0, z_m=z_m, is_in_bin=is_in_bin)


def test_the_clock_runs_from_the_take_over_to_the_last_cup() -> None:
    sim = Simulation(Training())
    scores = sim.record(Training.score)

    def passes(seconds: float, *cups: ObjectTruth) -> TrainingScore:
        for _ in range(round(seconds * 2)):
            sim.publish(
                "sim/truth",
                Truth(objects=cups, touched=(), is_moving=False, robot_x_m=0.0, robot_y_m=0.0, robot_heading_rad=0.0),
            )
            sim.run(seconds=0.5)
        return scores[-1]

    red, blue = cup("red"), cup("blue")
    assert passes(2.0, red, blue).elapsed_s == 0.0
    sim.publish(LEASE_TOPIC, Lease(seat="policy", holder="human_policy", number=2, kind="person"))
    sim.publish("guard/state", GuardState(mode="stopped", reason="contact"))
    now = passes(3.0, cup("red", is_in_bin=True), cup("blue", z_m=0.1))
    assert (now.done, now.of, now.stops, now.dropped, now.is_over) == (1, 2, 1, 1, False)
    assert now.points == 50 - 5 - 10
    last = passes(2.0, cup("red", is_in_bin=True), cup("blue", is_in_bin=True))
    assert (last.done, last.is_over, last.points) == (2, True, 95)
    assert passes(5.0, cup("red", is_in_bin=True), cup("blue", is_in_bin=True)).elapsed_s == last.elapsed_s
    sim.close()


def test_points_stay_between_nothing_and_a_hundred() -> None:
    assert points(5, 5, 0.9, 0, 0) == 100
    assert points(5, 5, 1.5, 0, 0) == 90
    assert points(1, 5, 9.0, 9, 9) == 0


def test_a_limit_is_a_time() -> None:
    with pytest.raises(ParameterError, match="limit_s is 0"):
        Training(limit_s=0.0)
