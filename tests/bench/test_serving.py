"""The bench of `polyrhythm serve`: its policy, and what it counts of robots and episodes."""

from __future__ import annotations

import pytest

from bench.serving import Figures, ask, policy, table
from nodes.policy.onnx.session import PolicySession
from nodes.policy.remote.served import ServedModels
from runtime.hosts.service import QuestionServer


@pytest.mark.processes
def test_robots_and_episodes_are_counted_apart() -> None:
    model = PolicySession(
        policy(160, 120, steps=4), name="it", width_px=160, height_px=120, providers=("CPUExecutionProvider",)
    )
    assert model.is_batched, model.why_single
    server = QuestionServer("tcp://127.0.0.1:*", [ServedModels({"model": model}, 4)])
    try:
        robots, episodes = ask(server.address, robots=1, episodes=2, seconds=2.0)
    finally:
        server.close()
    assert len(robots.taken_ms) + robots.late <= 22, "20 a second, after the first"
    assert len(episodes.taken_ms) > 0
    assert server.questions.counts["taken"] >= len(robots.taken_ms) + len(episodes.taken_ms)


def test_the_table_has_a_row_for_each_batch() -> None:
    rows = [Figures(size, 2.0, 2.0 * size, 100.0, 5.0, 9.0, 6.0, 11.0, 0.015, 3.0) for size in (1, 8)]
    lines = table(rows).splitlines()
    assert lines[2:] == [
        "| 1 | 2.0 | 2.0 | 3.0 | 100 | 5, 9 | 6, 11 | 1.5 % |",
        "| 8 | 2.0 | 16.0 | 3.0 | 100 | 5, 9 | 6, 11 | 1.5 % |",
    ]
