"""The planner on a model behind HTTP, interrupted: requests in flight are closed, and asked anew with the news."""

from __future__ import annotations

import asyncio
import time

import pytest

from nodes.guard.arbitration import Arbitration
from nodes.msgs import Interrupt, Subtask, Utterance
from nodes.planner.openai_api import OpenAIPlanner
from runtime.message import Envelope, Message, Stamped
from tests.nodes.planner.openai_planner_table import REQUEST, Table, do, put, set_environment
from tests.support.sentences import sentence
from tests.support.servers.fake_openai_server import FakeOpenAI, answers, silence, status

pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch)


async def ended() -> None:
    """Wait until what the node has left to do is done, such as closing its connections."""
    if others := asyncio.all_tasks() - {asyncio.current_task()}:
        _, late = await asyncio.wait(others, timeout=60)
        assert not late


def test_a_correction_replaces_the_subtask() -> None:
    with FakeOpenAI(answers(put()), answers(put("blue"))) as server, Table(server) as table:
        table.hear(REQUEST)
        table.sim.run(seconds=2.0)
        table.hear("No, not the blue one")
        table.interrupt("amend", "No, not the blue one")
        table.sim.run(seconds=4.0)
        assert list(dict.fromkeys(tuple(one.colour for one in task.excluding) for task in table.subtasks)) == [
            (),
            ("blue",),
        ]
        assert table.subtasks[-1].id == "openaiplanner-2"


def test_an_answer_that_knows_nothing_of_an_objection_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    planner = OpenAIPlanner(model="fake")
    planned: list[Message] = []
    planner.subtask.sink = lambda _, subtask, __: planned.append(subtask)
    given = iter((put(), put("blue")))

    async def ask(**_: object) -> str:
        answer = next(given)
        if not planner.objections:
            planner.listen(Utterance(speaker="Ana", text="No, not the blue one"))  # while the model thinks
        return answer

    monkeypatch.setattr(planner.request, "ask", ask)
    planner.listen(Utterance(speaker="Ana", text=REQUEST))

    async def tick() -> None:
        await planner.tick()

    asyncio.run(tick())
    plans = [one for one in planned if isinstance(one, Subtask)]
    assert {tuple(one.colour for one in task.excluding) for task in plans} == {("blue",)}


def test_a_planner_that_has_no_answer_to_an_objection_does_not_say_its_subtask_again() -> None:
    with FakeOpenAI(answers(put()), status(500)) as server, Table(server, give_up_after=99) as table:
        table.hear(REQUEST)
        table.sim.run(seconds=9.0)
        table.hear("No, not the blue one")
        before = len(table.subtasks)
        table.sim.run(seconds=9.0)
        assert before > 2
        assert len(table.subtasks) == before


def test_an_interrupt_is_answered_at_once() -> None:
    with FakeOpenAI(answers(put())) as server, Table(server) as table:
        table.sim.run(seconds=0.3)
        table.hear(REQUEST)
        table.interrupt("replan", REQUEST)
        table.sim.run(seconds=0.6)
        assert len(table.subtasks) == 1


def test_a_stop_voids_the_answer_under_way_and_asks_again_with_the_news() -> None:
    with FakeOpenAI(answers(put(say="old")), answers(do("keep", say="Sorry!"))) as server, Table(server) as table:
        table.hear(REQUEST)
        table.sim.run(seconds=0.2)
        table.hear("Ouch! That's my toe!")
        table.interrupt("stop", "Ouch! That's my toe!")
        table.sim.run(seconds=3.0)
        assert [utterance.text for utterance in table.said] == ["Sorry!"]
        assert table.subtasks == []
        assert "interrupt: stop" in server.requests[1].user_text


def test_an_interrupt_closes_the_connection_of_the_request_in_flight() -> None:
    """In real time, as the executor would call the handlers."""

    async def story(server: FakeOpenAI) -> float:
        planner = OpenAIPlanner(model="fake", base_url=server.url, deadline_s=20.0)
        planner.on_start()
        planner.listen(Utterance(speaker="Ana", text=REQUEST))
        thinking = asyncio.ensure_future(planner.tick())
        assert await asyncio.to_thread(server.wait_for, 1)
        began = time.monotonic()
        interrupt = Interrupt(id="i", depth="stop", text="Ouch!", by="Ana")
        planner.interrupted(interrupt)
        thinking.cancel()  # as the runtime does when the fence arrives
        await asyncio.wait_for(planner.fenced(Arbitration().fence(interrupt)), 15)
        assert await asyncio.to_thread(server.requests[0].hung_up.wait, 15)
        took_s = time.monotonic() - began
        assert thinking.cancelled()
        assert sentence("planner.answer_cancelled") in server.requests[1].user_text
        assert server.requests[1:]
        assert planner.request.failures == 0
        planner.on_stop()
        await ended()
        return took_s

    with FakeOpenAI(silence, answers(do("keep", say="Sorry"))) as server:
        assert asyncio.run(story(server)) < 15.0  # of the 20 s that it might have waited


def test_stopping_the_node_in_mid_request_is_not_swallowed() -> None:
    async def story(server: FakeOpenAI) -> None:
        planner = OpenAIPlanner(model="fake", base_url=server.url, deadline_s=20.0)
        planner.on_start()
        planner.heard.push(Stamped(Utterance(speaker="Ana", text=REQUEST), Envelope("heard", "test", 1, 1)))
        planner.listen(Utterance(speaker="Ana", text=REQUEST))
        thinking = asyncio.ensure_future(planner.tick())
        assert await asyncio.to_thread(server.wait_for, 1)
        thinking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await thinking
        assert await asyncio.to_thread(server.requests[0].hung_up.wait, 15)
        planner.on_stop()
        await ended()

    with FakeOpenAI(silence) as server:
        asyncio.run(story(server))
