"""What `check` promises of a path is kept: of random graphs in virtual time no measured age exceeds its promise."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest

from runtime.launch.checks.path_check import accounts
from runtime.message import UNKNOWN_NS, Stamped
from runtime.virtual.simulation import Simulation
from tests.runtime.launch.random_graphs import RandomGraph

MOST_LOOSE = 1.5
MOST_UNBOUNDED = 0.1


def worst_age_ns(random_graph: RandomGraph, seed: int, periods: int = 25) -> int:
    """The oldest of the path's origin that was measured behind a message of its last topic; `periods` of the slowest
    node last a run.
    """
    simulation = Simulation(
        random_graph.graph(seed), seed=seed, links=random_graph.links, budgets=random_graph.budgets, watched=False
    )
    budget = random_graph.budgets.paths["path"]
    ages = [0]

    def measure(stamped: Stamped[Any]) -> None:
        born_ns = stamped.envelope.origins.get(budget.origin)
        if stamped.envelope.topic == budget.topics[-1] and born_ns is not None and born_ns != UNKNOWN_NS:
            ages.append(stamped.envelope.published_ns - born_ns)

    simulation.observe(measure)
    simulation.run(periods * max(random_graph.periods_s))
    simulation.close()
    return max(ages)


def check_promises(numbers: range, seeds: int, periods: int) -> None:
    ratios, unbounded, plain = [], [], 0
    for number in numbers:
        random_graph = RandomGraph(number)
        (account,) = accounts(random_graph.budgets, random_graph.graph(0), {}, random_graph.links)
        plain += not random_graph.has_queue
        if not account.is_bounded:
            unbounded += [] if random_graph.has_queue else [number]
            continue
        promised_ns = account.total_s * 1e9
        worst_ns = max(worst_age_ns(random_graph, seed, periods) for seed in range(seeds))
        assert worst_ns <= promised_ns + 0.5, f"graph {number}: {worst_ns} > {promised_ns}: {account.lines()}"
        if worst_ns:
            ratios.append(promised_ns / worst_ns)
    assert len(ratios) > len(numbers) // 2
    assert median(ratios) <= MOST_LOOSE, median(ratios)
    assert len(unbounded) <= MOST_UNBOUNDED * plain, unbounded


def test_no_age_exceeds_its_promise_in_50_random_graphs() -> None:
    check_promises(range(50), seeds=4, periods=12)


@pytest.mark.long
def test_no_age_exceeds_its_promise_in_1000_random_graphs() -> None:
    check_promises(range(1000, 2000), seeds=20, periods=25)
