"""A call to the outside that is given up: the request is really closed, and virtual time has not moved by it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import openai
import pytest

from runtime import Message, Node, Publisher, Simulation, every
from runtime.clock import to_ns
from tests.support.servers.fake_openai_server import FakeOpenAI, silence

pytestmark = pytest.mark.processes

PATIENCE_S = 30.0


class Word(Message):
    text: str


class Asker(Node):
    """Asks a model once a second, and says what became of it."""

    word = Publisher(Word, "word")

    def __init__(self, url: str, gives_up: Callable[[], object] | None = None) -> None:
        self.url = url
        self.gives_up = gives_up  # returns when it is time to

    @every(hz=1)
    async def ask(self) -> None:
        call = self.request() if self.gives_up is None else self.request_in_vain(self.gives_up)
        try:
            text = await self.clock.external(call, 0.25)
        except TimeoutError:
            text = "gave up"
        self.word.publish(Word(text=text))

    async def request_in_vain(self, gives_up: Callable[[], object]) -> str:
        request = asyncio.ensure_future(self.request())
        await asyncio.to_thread(gives_up)
        request.cancel()
        await asyncio.wait({request})
        raise TimeoutError

    async def request(self) -> str:
        async with openai.AsyncOpenAI(base_url=self.url, api_key="k", timeout=PATIENCE_S, max_retries=0) as client:
            content = [{"type": "text", "text": "what?"}]
            done = await client.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": content}],  # type: ignore[list-item,misc]  # a plain dictionary
            )
        return done.choices[0].message.content or ""


def words(simulation: Simulation) -> list[tuple[float, str]]:
    found: list[tuple[float, str]] = []
    simulation.observe(lambda stamped: found.append((stamped.envelope.published_ns / 1e9, stamped.message.text)))
    return found


def test_a_call_that_its_node_gives_up_is_closed_and_the_failure_comes_at_its_virtual_time() -> None:
    with FakeOpenAI(silence) as server:
        simulation = Simulation(Asker(server.url, gives_up=lambda: server.wait_for(1, PATIENCE_S)))
        found = words(simulation)
        simulation.run(0.5)
        assert found == [(0.25, "gave up")]
        assert server.requests[0].hung_up.wait(PATIENCE_S)
        simulation.close()


async def _cancelled_while_the_world_answers(server: FakeOpenAI, run: Callable[[], Awaitable[None]]) -> None:
    running = asyncio.ensure_future(run())
    assert await asyncio.to_thread(server.wait_for, 1, PATIENCE_S)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize("askers", [1, 2])
def test_a_run_that_is_cancelled_closes_its_requests_and_time_stands_where_they_were_made(askers: int) -> None:
    with FakeOpenAI(silence) as server:
        nodes = [type(f"Asker{number}", (Asker,), {})(server.url) for number in range(askers)]
        simulation = Simulation(*nodes)
        found = words(simulation)
        asyncio.run(_cancelled_while_the_world_answers(server, simulation.run_async))
        assert server.requests[0].hung_up.wait(PATIENCE_S)
        assert simulation.clock.now_ns() == to_ns(0.0)
        assert found == []
        simulation.close()
