"""A world that does not answer is named: virtual time stands still, and a person is told for whom."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from runtime import Node, Simulation, every


class Patient(Node):
    """Asks for something that comes once `is_there`."""

    def __init__(self, is_there: Callable[[], bool]) -> None:
        self.is_there = is_there
        self.has_answer = False

    @every(hz=1)
    async def ask(self) -> None:
        await self.clock.external(self.wait(), 0.1)
        self.has_answer = True

    async def wait(self) -> None:
        while not self.is_there():
            await asyncio.sleep(0.005)


def test_who_waits_for_the_world_is_told_while_it_waits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("runtime.virtual.scheduler.TOLD_EVERY_S", 0.02)
    sentence = "patient.ask has waited 0.04 s for the world outside; virtual time stands still until it answers"
    node = Patient(lambda: sentence in caplog.text)
    simulation = Simulation(node)
    simulation.run(0.5)
    simulation.close()
    assert node.has_answer
