"""Calls to the outside that never return, return too late, or not when they are told to: bounded, told, replayed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from nodes.mcap.file import BagReader
from nodes.msgs import Utterance
from nodes.recording.replay.command import main as replay_main
from runtime import Node, Publisher, Simulation, UserError, every, run
from runtime.clock import SystemClock
from runtime.commands.run import main as run_main
from runtime.errors import NoAnswerError
from runtime.external_call import ANSWER_TIMEOUT_S
from tests.support.sentences import sentence

TIMEOUT_S = 0.05


class World:
    """What became of the calls."""

    def __init__(self) -> None:
        self.closed = 0

    async def never(self) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            self.closed += 1
        return "never"

    async def stubborn(self) -> str:
        """Answers although it was cancelled."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.closed += 1
        return "too late"

    async def deaf(self) -> str:
        """Goes on whatever is asked of it, as long as anybody lets it."""
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60.0)


class Asker(Node):
    """Asks once a second for what never comes, and says so."""

    said = Publisher(Utterance, "said")

    def __init__(self) -> None:
        self.world = World()

    @every(hz=1)
    async def ask(self) -> None:
        try:
            text = await self.clock.external(self.world.never(), 0.2, timeout_s=TIMEOUT_S)
        except TimeoutError:
            text = "gave up"
        self.said.publish(Utterance(speaker="robot", text=text))


class Helpless(Asker):
    """Does not expect that."""

    @every(hz=1)
    async def ask(self) -> None:
        await self.clock.external(self.world.never(), 0.2, timeout_s=TIMEOUT_S)


def in_steps(simulation: Simulation) -> None:
    simulation.run(1.5)


def beside_others(simulation: Simulation) -> None:
    async def some() -> None:
        await asyncio.wait_for(simulation.run_async(), 60.0)

    simulation.observe(lambda stamped: simulation.bound_nodes["asker"].node.finish(ok=True, reason="heard"))
    asyncio.run(some())


@pytest.mark.parametrize("runs", [in_steps, beside_others])
def test_in_virtual_time_a_call_without_an_answer_fails_after_its_bound(runs: Callable[[Simulation], None]) -> None:
    asker = Asker()
    simulation = Simulation(asker)
    found: list[tuple[float, str]] = []
    simulation.observe(lambda stamped: found.append((stamped.envelope.published_ns / 1e9, stamped.message.text)))
    runs(simulation)
    simulation.close()
    assert found[0] == (TIMEOUT_S, "gave up")
    assert asker.world.closed >= 1


def test_in_real_time_too_it_is_cancelled_and_the_node_goes_on() -> None:
    asker = Asker()
    run(asker, seconds=0.5)
    assert asker.world.closed == 1


@pytest.mark.parametrize("clock", [(), ("--virtual",)])
def test_who_does_not_expect_it_has_failed_and_is_told_in_the_last_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], clock: tuple[str, ...]
) -> None:
    (tmp_path / "ask.toml").write_text(f'[nodes.asker]\nuse = "{__name__}:Helpless"\n')
    assert run_main([str(tmp_path / "ask.toml"), "--for", "0.5", *clock]) == 1
    last = capfd.readouterr().err.strip().splitlines()[-1]
    assert f"ask: {sentence('runtime.no_answer')}{TIMEOUT_S:g} s" in last


async def ask(call: Awaitable[str], timeout_s: float = TIMEOUT_S) -> str:
    return await SystemClock().external(call, timeout_s=timeout_s)


def test_a_call_that_answers_although_it_was_given_up_is_not_heard() -> None:
    world = World()
    with pytest.raises(NoAnswerError) as raised:
        asyncio.run(ask(world.stubborn()))
    assert (world.closed, raised.value.waited_s) == (1, TIMEOUT_S)


def test_an_answer_that_comes_after_its_handler_was_cancelled_is_not_heard() -> None:
    world = World()

    async def fenced() -> None:
        handler = asyncio.ensure_future(ask(world.stubborn(), ANSWER_TIMEOUT_S))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        handler.cancel()
        await asyncio.wait((handler,))
        assert handler.cancelled()

    asyncio.run(fenced())
    assert world.closed == 1


@pytest.mark.parametrize("timeout_s", [0, -1.0, float("inf"), "5", True])
def test_a_bound_that_is_none_is_a_sentence(timeout_s: float) -> None:
    with pytest.raises(UserError, match="timeout_s"):
        asyncio.run(ask(World().never(), timeout_s))


def test_what_was_given_up_replays_and_plays_against_a_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launch, recordings = tmp_path / "ask.toml", [tmp_path / "run.mcap", tmp_path / "again.mcap"]
    launch.write_text(f'[nodes.asker]\nuse = "{__name__}:Asker"\n')
    asked = [str(launch), "--virtual", "--for", "2.5"]
    assert run_main([*asked, "--record", str(recordings[0])]) == 0
    assert run_main([*asked, "--record", str(recordings[1]), "--answers", str(recordings[0])]) == 0
    said = [[one.envelope.published_ns for one in BagReader(path) if one.topic == "said"] for path in recordings]
    assert said[0] == said[1] == [round((second + TIMEOUT_S) * 1e9) for second in range(3)]
    capsys.readouterr()
    assert replay_main([str(recordings[0]), "--node", "asker", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"][0]["compared"] == 3


class Pesterer(Asker):
    """Its call swallows every cancel."""

    @every(hz=10)
    async def ask(self) -> None:
        with suppress(NoAnswerError):
            await self.clock.external(self.world.deaf, timeout_s=TIMEOUT_S)


def in_virtual_time(node: Node) -> None:
    simulation = Simulation(node)
    simulation.run(0.1)
    simulation.close()


def in_real_time(node: Node) -> None:
    run(node, seconds=0.1)


@pytest.mark.parametrize("runs", [in_virtual_time, in_real_time])
def test_a_call_that_swallows_every_cancel_is_told_at_the_end_and_left(
    runs: Callable[[Node], None], caplog: pytest.LogCaptureFixture
) -> None:
    runs(Pesterer())
    told = [record.getMessage() for record in caplog.records if record.name == "clock"]
    assert told == [sentence("runtime.goes_on_although", call="World.deaf")]
