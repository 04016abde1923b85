"""What a node knows of its run is typed and frozen, in both clocks, and empty outside of one."""

from __future__ import annotations

import pytest

from runtime import Node, Simulation, every, run
from runtime.run_facts import RunFacts


class Curious(Node):
    def __init__(self) -> None:
        self.problems_met: list[str] = []

    def on_start(self) -> None:
        try:
            self.run_info.seed = 8  # type: ignore[misc]  # the mistake
        except AttributeError as problem:
            self.problems_met.append(str(problem))
        try:
            self.run_info.known["seed"] = 8  # type: ignore[index]  # the mistake
        except TypeError as problem:
            self.problems_met.append(str(problem))

    @every(hz=10)
    def tick(self) -> None:
        self.finish(ok=True, reason=f"seed {self.run_info.seed}")


def test_nobody_changes_it_for_the_others() -> None:
    node = Curious()
    assert run(node, seed=7, seconds=10) == (True, "seed 7")
    simulated = Curious()
    simulation = Simulation(simulated, seed=7)
    simulation.run(1.0)
    simulation.close()
    assert simulation.outcome == (True, "seed 7")
    assert len(node.problems_met) == len(simulated.problems_met) == 2


def test_outside_of_a_run_it_is_empty() -> None:
    assert Node().run_info == RunFacts()
    assert Node().run_info.folder == ""


def test_what_is_noted_later_stands_beside_what_was_known() -> None:
    before = RunFacts.of({"seed": 7, "machine": "a machine"})
    after = before.noting(outcome={"ok": True})
    assert (after.seed, dict(after.known)) == (7, {"seed": 7, "machine": "a machine", "outcome": {"ok": True}})
    assert "outcome" not in before.known
    assert after.spent is before.spent
    with pytest.raises(AttributeError):
        before.seed = 8  # type: ignore[misc]  # the mistake
