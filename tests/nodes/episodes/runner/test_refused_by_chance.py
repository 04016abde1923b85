"""A server that answers a part of the calls with 429, whatever the rate is: no episode is lost, and no halt. The loop's
time is virtual: it jumps to the next thing that is due.
"""

from __future__ import annotations

import asyncio
import json
import random
import selectors
from collections.abc import Callable
from pathlib import Path

import pytest

from nodes.episodes.dialogue.planning import plan_episode, tasks_of
from nodes.episodes.results.store import Store
from nodes.episodes.runner.runner import Judges, Settings, play_and_judge
from nodes.episodes.scenarios.library import starter
from nodes.models.http_client import HttpAnswer
from nodes.models.servers import Servers

ACT = json.dumps({"action_type": "speak", "argument": "Hello there", "to": []})
ANSWER = json.dumps({"choices": [{"message": {"content": ACT}, "finish_reason": "stop"}]}).encode()
REFUSED, ANSWER_S = 0.3, 1.0


class JumpingLoop(asyncio.SelectorEventLoop):
    """Where others wait, its time goes on at once."""

    def __init__(self) -> None:
        loop = self
        self.now_s = 0.0

        class Selector(selectors.SelectSelector):
            def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
                loop.now_s += timeout or 0.0
                return super().select(0)

        super().__init__(Selector())

    def time(self) -> float:
        return self.now_s


class RefusingHttp:
    """Stands in for the connections: three of ten calls are refused at once, the others answered after a second."""

    asked = refused = 0
    chance = random.Random(3)

    async def post(
        self, url: str, where: str, headers: dict[str, str], data: bytes, take: Callable[[bytes], None]
    ) -> HttpAnswer:
        type(self).asked += 1
        if self.chance.random() < REFUSED:
            type(self).refused += 1
            await asyncio.sleep(0.05)
            return HttpAnswer(429, {}, b'{"error": {"message": "slow down"}}')
        await asyncio.sleep(ANSWER_S)
        take(ANSWER)
        return HttpAnswer(200, {"content-type": "application/json"}, ANSWER)

    async def close(self) -> None:
        pass


def test_45_episodes_come_through_a_server_that_refuses_three_calls_of_ten(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("nodes.models.servers.HttpClient", RefusingHttp)
    library = starter()
    plans = [plan_episode(library, task, ["m@http://server/v1"]) for task in tasks_of(library)[:45]]

    async def play(store: Store) -> tuple[bool, float]:
        settings = Settings(Servers(), Judges(), jobs=16)
        store.add(plans)
        all_done = await play_and_judge(plans, store, settings)
        return all_done, asyncio.get_running_loop().time()

    with Store.create(tmp_path / "run.sqlite", {}) as store, asyncio.Runner(loop_factory=JumpingLoop) as runner:
        all_done, took_s = runner.run(play(store))
        assert all_done, store.not_done()
        assert store.not_done()[0] == 0
        assert [turn.fault for plan in plans for turn in store.turns(plan.id) if turn.fault] == []
    assert RefusingHttp.refused > 200
    assert RefusingHttp.asked - RefusingHttp.refused >= 45 * 20
    assert took_s < 600.0, "900 answers: 1.5 a second at least; it was hours"
