"""The sotopia package's own loop, as the reference: run by `.interop/bin/python` (make interop), prints JSON.

usage: python bench/sotopia_package.py [URL]   - 20-turn round-robin episodes of two agents, no judge: CPU per episode
with the model stubbed in process (its HTTP client replaced by a constant answer), and with a URL also CPU per episode
and episodes/s with its own client against the chat-completions server there, ten episodes at a time.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from types import SimpleNamespace
from typing import Any

os.environ["SOTOPIA_STORAGE_BACKEND"] = "local"
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # its client asks the network for prices otherwise
ROUNDS, EPISODES = 3, 10
HTTP_ROUNDS, AT_A_TIME = 2, 10
ACT = '{"action_type": "speak", "argument": "Shall we say half past three, at the usual place?"}'


def main() -> None:
    """The best of some rounds; the first one warms up."""
    from sotopia.agents import LLMAgent  # type: ignore[import-not-found]  # only in its own environment
    from sotopia.database import AgentProfile, EnvironmentProfile  # type: ignore[import-not-found]
    from sotopia.envs import ParallelSotopiaEnv  # type: ignore[import-not-found]
    from sotopia.envs.evaluators import RuleBasedTerminatedEvaluator  # type: ignore[import-not-found]
    from sotopia.generation_utils import generate  # type: ignore[import-not-found]
    from sotopia.server import arun_one_episode  # type: ignore[import-not-found]

    logging.disable(logging.CRITICAL)
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:9/v1"  # that one is never asked
    os.environ.setdefault("CUSTOM_API_KEY", "none")
    model = f"custom/bench@{url}"

    async def episode() -> None:
        profile = EnvironmentProfile(
            pk="e",
            codename="e",
            scenario="A flat is being cleared. " * 10,
            agent_goals=["Sell it. " * 20, "Buy it. " * 20],
        )
        env = ParallelSotopiaEnv(
            env_profile=profile,
            action_order="round-robin",
            model_name=model,
            evaluators=[RuleBasedTerminatedEvaluator(max_turn_number=20)],
            terminal_evaluators=[Silent()],
        )
        agents = [
            LLMAgent(agent_profile=AgentProfile(pk=name, first_name=name, last_name="X"), model_name=model)
            for name in ("Ana", "Ben")
        ]
        await arun_one_episode(env=env, agent_list=agents, push_to_db=False)
        said = sum(len(agent.inbox) > 0 for agent in agents)
        assert said == len(agents), "an agent was never asked"

    constant = SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=ACT))])

    async def stub(**_: Any) -> Any:
        return constant

    async def many() -> None:
        for _ in range(EPISODES):
            await episode()

    async def over_http() -> dict[str, float]:
        """All rounds on the one loop."""
        best_cpu, best_rate = float("inf"), 0.0
        for _ in range(HTTP_ROUNDS):
            began_s, wall_s = time.process_time(), time.monotonic()
            for _ in range(EPISODES // AT_A_TIME):
                await asyncio.gather(*(episode() for _ in range(AT_A_TIME)))
            best_cpu = min(best_cpu, (time.process_time() - began_s) / EPISODES)
            best_rate = max(best_rate, EPISODES / (time.monotonic() - wall_s))
        return {"over_http_s": best_cpu, "over_http_per_s": best_rate}

    loop = asyncio.new_event_loop()  # the package's client belongs to the loop that it was first used on
    found = loop.run_until_complete(over_http()) if len(sys.argv) > 1 else {}
    generate.acompletion = stub
    best = float("inf")
    for _ in range(ROUNDS):
        began_s = time.process_time()
        loop.run_until_complete(many())
        best = min(best, (time.process_time() - began_s) / EPISODES)
    print(json.dumps({"in_process_s": best, **found}), flush=True)
    os._exit(0)  # what the package's client has left on the loop never ends by itself


class Silent:
    """A terminal evaluator that says nothing: the package insists on one."""

    prompt = ""

    def __call__(self, turn_number: int, messages: list[Any], **_: Any) -> list[Any]:
        return []

    async def __acall__(self, turn_number: int, messages: list[Any], **_: Any) -> list[Any]:
        return []


if __name__ == "__main__":
    main()
