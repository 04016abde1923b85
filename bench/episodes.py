"""Text episodes of 20 turns: CPU with a model in process and over HTTP, 1,000 at a time, and the import.

Reference: the sotopia package 0.1.5 in the same run, against the same server, where `make interop` has made its
environment (or SOTOPIA_PYTHON names one). Without it: in process nothing is compared; over HTTP the openai SDK alone,
asked as often by the same process in the same run.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Coroutine
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.chat_server import ACT
from bench.result import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nodes.episodes.agents.agent_spec import AgentSpec
    from nodes.episodes.agents.seat_caller import Ask
    from nodes.episodes.dialogue.plan import EpisodePlan
    from nodes.models.servers import Servers

NAME = "sotopia 0.1.5, in this run"
TURNS = 20
CONCURRENT = 1000
PACKAGE_S = 300.0
"""So long the package may take; without its figures the run goes on."""


def measure() -> list[Result]:
    """All four subjects."""
    with _server() as url:
        package = _package(url)
        over_http = _over_http(url, package)
    results = []
    if package:
        in_process, package_s = _in_process_s(), package["in_process_s"]
        results += [Result("episode, model in process, CPU", "ms", in_process * 1e3, package_s * 1e3, NAME, 0.5)]
    results += _concurrent(_in_process_s(waits=True))
    results += over_http
    results.append(Result("import of the episode path", "ms", _import_ms(), 300.0, "the goal itself", 1.0))
    return results


def _package(url: str) -> dict[str, float]:
    """The package's CPU per episode, in process and over HTTP, and episodes/s; {} where it is missing or too slow."""
    python = Path(os.environ.get("SOTOPIA_PYTHON", ".interop/bin/python"))
    if not python.exists():
        return {}
    command = [str(python), "bench/sotopia_package.py", url]
    try:
        output = subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL, timeout=PACKAGE_S)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as problem:
        print(f"the sotopia package was not measured: {problem}", file=sys.stderr)
        return {}
    found: dict[str, float] = json.loads(output.splitlines()[-1])
    return found


def _plan() -> EpisodePlan:
    from nodes.episodes.dialogue.planning import plan_of_task

    return plan_of_task("cello-with-a-crack", order="round-robin", mode="AGENTS", max_turns=TURNS)


async def _episode(plan: EpisodePlan, spec: AgentSpec, servers: Servers, ask: Ask | None) -> None:
    from nodes.episodes.agents.model_brain import ModelBrain
    from nodes.episodes.agents.seat_caller import NoStore, SeatCaller
    from nodes.episodes.runner.runner import conduct_episode

    brains = [ModelBrain(SeatCaller(spec, servers, NoStore(), seat, ask)) for seat in range(2)]
    conduct = await conduct_episode(plan, brains, [])
    assert len(conduct.turns) == TURNS


def _cpu_s(work: Coroutine[Any, Any, None]) -> float:
    from runtime.virtual.simulation import few_collections

    began_s = time.process_time()
    with few_collections():
        asyncio.run(work)
    return time.process_time() - began_s


def _model() -> tuple[EpisodePlan, AgentSpec, Servers]:
    from nodes.episodes.agents.agent_spec import AgentSpec
    from nodes.models.servers import Servers

    return _plan(), AgentSpec.parse("bench@http://127.0.0.1:1/v1"), Servers()


def _in_process_s(rounds: int = 7, episodes: int = 50, *, waits: bool = False) -> float:
    """CPU per episode, the best of some rounds, the first one warms up; with `waits` the model answers a bit later."""
    from nodes.models.chat_format import ModelAnswer

    plan, spec, servers = _model()

    async def ask(prompt: str, schema: dict[str, object]) -> ModelAnswer:
        if waits:
            await asyncio.sleep(0)
        return ModelAnswer(ACT, 0, 0)

    async def many() -> None:
        for _ in range(episodes):
            await _episode(plan, spec, servers, ask)

    return min(_cpu_s(many()) for _ in range(rounds)) / episodes


def _concurrent(alone_s: float) -> list[Result]:
    """All episodes are under way before the first goes on; peak memory over what the process had before."""
    from nodes.models.chat_format import ModelAnswer

    plan, spec, servers = _model()

    async def many() -> None:
        first = 0
        all_here = asyncio.Event()

        async def ask(prompt: str, schema: dict[str, object]) -> ModelAnswer:
            nonlocal first
            first += 1
            if first == CONCURRENT:
                all_here.set()
            await all_here.wait()
            await asyncio.sleep(0)
            return ModelAnswer(ACT, 0, 0)

        await asyncio.gather(*(_episode(plan, spec, servers, ask) for _ in range(CONCURRENT)))

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu_s = min(_cpu_s(many()) for _ in range(3)) / CONCURRENT
    memory_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 / CONCURRENT
    return [
        Result(
            f"one of {CONCURRENT} at a time, CPU",
            "ms",
            cpu_s * 1e3,
            alone_s * 1e3,
            "one at a time, with a model that waits as well",
            1.2,
        ),
        Result(f"one of {CONCURRENT} at a time, memory", "MB", memory_mb, 1.0, "the goal itself", 1.0),
    ]


@contextmanager
def _server() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-m", "bench.chat_server"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    finally:
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _over_http(url: str, package: dict[str, float], episodes: int = 40, at_a_time: int = 10) -> list[Result]:
    from nodes.episodes.agents.agent_spec import AgentSpec
    from nodes.models.servers import Servers

    ours: list[float] = []
    sdk: list[float] = []
    ours_wall: list[float] = []
    sdk_wall: list[float] = []
    plan, spec = _plan(), AgentSpec.parse(f"bench@{url}")

    async def many() -> None:
        servers = Servers()
        for _ in range(episodes // at_a_time):
            await asyncio.gather(*(_episode(plan, spec, servers, None) for _ in range(at_a_time)))
        await servers.close()

    for _ in range(3):
        pairs = [(ours, ours_wall, many())]
        pairs += [] if package else [(sdk, sdk_wall, _sdk(url, episodes, at_a_time))]
        for cpu, wall, work in pairs:
            began_s = time.monotonic()
            cpu.append(_cpu_s(work) / episodes)
            wall.append(episodes / (time.monotonic() - began_s))
    if package:
        name, cpu_s, per_s = NAME, package["over_http_s"], package["over_http_per_s"]
    else:
        name, cpu_s, per_s = "the openai SDK alone, 20 calls", min(sdk), max(sdk_wall)
    return [
        Result("episode over HTTP, CPU", "ms", min(ours) * 1e3, cpu_s * 1e3, name, 1 / 3),
        Result("episodes over HTTP", "1/s", max(ours_wall), per_s, name, 3.0, more_is_better=True),
    ]


async def _sdk(url: str, episodes: int, at_a_time: int) -> None:
    import openai

    client = openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0)
    text = "x" * 3000  # about as long as a prompt

    async def one() -> None:
        for _ in range(TURNS):
            await client.chat.completions.create(model="bench", messages=[{"role": "user", "content": text}])

    for _ in range(episodes // at_a_time):
        await asyncio.gather(*(one() for _ in range(at_a_time)))
    await client.close()


def _import_ms(rounds: int = 5) -> float:
    code = "import time; t = time.perf_counter(); import nodes.episodes.runner.runner; print(time.perf_counter() - t)"
    times = [float(subprocess.check_output([sys.executable, "-c", code], text=True)) for _ in range(rounds)]
    return min(times) * 1e3
