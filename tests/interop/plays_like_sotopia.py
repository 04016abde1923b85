"""Plays tasks with the sotopia package itself, against a server that keeps what it is asked, and compares all prompts.

usage: python tests/interop/plays_like_sotopia.py OURS  (an interpreter that has polyrhythm; make interop does it)

Both sides ask the same server, which answers by a list, so that they meet the same acts. Every request's text and
schema, of players and of the judge, must be the same to the last character, in the same order.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("SOTOPIA_STORAGE_BACKEND", "local")
os.environ["OPENAI_API_KEY"] = "none"
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no look at the network

TASKS = (
    "nights-for-new-year",
    "quiet-hours",
    "mutual-friend-at-the-wedding",
    "lot-seventeen",
    "envelope-in-the-coat",
)
KINDS = ["none", "speak", "non-verbal communication", "action", "leave"]
ACTS = [
    ("speak", 'Hello, "you" & you.'),
    ("non-verbal communication", "smiles"),
    ("none", ""),
    ("speak", "Well,\n  then?"),
    ("action", "opens the window"),
]
ENDINGS = {"leave": [("leave", "")], "silence": [("none", "")] * 4, "talk": [("speak", "And so on.")] * 30}
VERSION = version("sotopia")
IS_NEWER = VERSION != "0.1.4"
"""0.1.4 keeps profiles and logs in Redis with two modules, or nowhere; its judge names people otherwise."""
DIMENSIONS = (
    "believability",
    "relationship",
    "knowledge",
    "secret",
    "social_rules",
    "financial_and_material_benefits",
    "goal",
)


class Asked:
    """A server that answers by a list and keeps every request."""

    def __init__(self, ending: str) -> None:
        self.requests: list[tuple[str, Any]] = []
        self.acts = iter([*ACTS, *ENDINGS[ending]])
        people = {
            f"agent_{seat}{'' if IS_NEWER else '_evaluation'}": {name: ["as it seems", 0] for name in DIMENSIONS}
            for seat in (1, 2)
        }
        self.judged = {"evaluations": people} if IS_NEWER else people
        asked = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                (message,) = body["messages"]
                form = body.get("response_format") or {}
                asked.requests.append((message["content"], form.get("json_schema", {}).get("schema")))
                is_judge = body["model"].endswith("judge")
                kind, argument = ("", "") if is_judge else next(asked.acts)
                answer = asked.judged if is_judge else {"action_type": kind, "argument": argument}
                data = json.dumps(
                    {
                        "id": "x", "object": "chat.completion", "created": 0, "model": body["model"],
                        "choices": [{"index": 0, "finish_reason": "stop",
                                     "message": {"role": "assistant", "content": json.dumps(answer)}}],
                        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
                    }
                ).encode()  # fmt: skip
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def ours(python: str, task: str, mode: str, ending: str, folder: Path) -> tuple[list[tuple[str, Any]], dict[str, Any]]:
    """What our run asks, and the episode's plan."""
    asked, run = Asked(ending), folder / f"{task}-{mode}-{ending}.sqlite"
    tool = [python, "-m", "runtime", "episodes"]
    arguments = ["run", "--task", task, "--like", f"sotopia-{VERSION}@{folder / 'like.json'}", "--mode", mode]
    arguments += ["--agents", f"player@{asked.url}", "--judges", f"judge@{asked.url}", "--jobs", "1", "--out", str(run)]
    subprocess.run([*tool, *arguments], check=True, stdout=subprocess.DEVNULL)
    out = subprocess.run([*tool, "export", str(run), "--format", "plain"], check=True, capture_output=True)
    asked.server.shutdown()
    return asked.requests, json.loads(out.stdout)["plan"]


async def theirs(
    plan: dict[str, Any], cast: list[dict[str, Any]], scene: dict[str, Any], mode: str, ending: str
) -> Any:
    """What the package asks for the same task."""
    from sotopia import database  # type: ignore[import-not-found]
    from sotopia.agents import LLMAgent  # type: ignore[import-not-found]  # only in its own environment
    from sotopia.envs import (  # type: ignore[import-not-found]
        ParallelSotopiaEnv,
        evaluators,
    )
    from sotopia.server import arun_one_episode  # type: ignore[import-not-found]

    character, scenario = (database.AgentProfile, database.EnvironmentProfile) if IS_NEWER else plain_profiles(database)
    form = evaluators.EvaluationForAgents if IS_NEWER else evaluators.EvaluationForTwoAgents
    dimensions = database.SotopiaDimensions if IS_NEWER else evaluators.SotopiaDimensions

    asked = Asked(ending)
    agents = [
        LLMAgent(
            agent_profile=character(
                pk=person["id"],
                first_name=person["first_name"],
                last_name=person.get("last_name", ""),
                age=person.get("age", 0),
                gender=person.get("gender", ""),
                occupation=person.get("occupation", ""),
                gender_pronoun=person.get("pronouns", ""),
                public_info=person.get("public_info", ""),
                personality_and_values=person.get("personality", ""),
                secret=person.get("secret", ""),
            ),
            model_name=f"custom/structured/player@{asked.url}",
        )
        for person in cast
    ]
    world = ParallelSotopiaEnv(
        env_profile=scenario(
            pk=plan["scenario"],
            codename=plan["scenario"],
            scenario=scene["context"],
            agent_goals=scene["goals"],
            relationship=database.RelationshipType(scene["relationship"]),
        ),
        action_order="round-robin",
        evaluators=[evaluators.RuleBasedTerminatedEvaluator(max_turn_number=20, max_stale_turn=2)],
        terminal_evaluators=[evaluators.EpisodeLLMEvaluator(f"custom/judge@{asked.url}", form[dimensions])],
    )
    world.available_action_types = KINDS  # the package's own order is that of a set, another in each process
    try:
        episode = await arun_one_episode(world, agents, omniscient=mode == "MINDREADERS")
        if hasattr(episode, "__aiter__"):
            async for _ in episode:
                pass
    except Exception as problem:  # the log at the end of an episode: all has been asked by then
        if IS_NEWER:
            raise
        print(f"  (0.1.4 cannot make its log without its store: {type(problem).__name__})")
    asked.server.shutdown()
    return asked.requests


def plain_profiles(database: Any) -> tuple[Any, Any]:
    """0.1.4's own profile classes without the store below them, and with the name that its loop reads."""

    class Character(database.BaseAgentProfile):  # type: ignore[misc]
        pk: str

    class Scenario(database.BaseEnvironmentProfile):  # type: ignore[misc]
        pk: str

    return Character, Scenario


def main(python: str) -> int:
    """0 where every request is the same."""
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        extract = Path(__file__).parents[2] / "nodes/episodes/dialogue/extract_package_prompts.py"
        done = subprocess.run([sys.executable, str(extract)], check=True, capture_output=True)
        (folder / "like.json").write_bytes(done.stdout)
        library = subprocess.run(
            [python, "-c", _LIBRARY, *TASKS], check=True, capture_output=True, text=True, cwd=os.getcwd()
        )
        told = json.loads(library.stdout)
        count = 0
        loop = asyncio.new_event_loop()  # not asyncio.run: it waits for background tasks that litellm never ends
        for number, task in enumerate(TASKS):
            for mode in ("AGENTS", "MINDREADERS"):
                ending = list(ENDINGS)[number % len(ENDINGS)]
                print(task, mode, ending, flush=True)
                mine, plan = ours(python, task, mode, ending, folder)
                cast, scene = told[task]
                other = loop.run_until_complete(theirs(plan, cast, scene, mode, ending))
                assert len(mine) == len(other), (task, mode, len(mine), len(other))
                for place, (one, two) in enumerate(zip(mine, other, strict=True)):
                    assert one == two, difference(task, place, one, two)
                count += len(mine)
    print(f"{count} requests of {2 * len(TASKS)} episodes are those of the sotopia package {VERSION}")
    return 0


def difference(task: str, place: int, one: tuple[str, Any], two: tuple[str, Any]) -> str:
    """Where two requests part."""
    if one[0] == two[0]:
        return f"{task}, request {place}: schemas {one[1]} and {two[1]}"
    at = next((i for i, pair in enumerate(zip(one[0], two[0], strict=False)) if pair[0] != pair[1]), -1)
    part = slice(max(0, at - 60), at + 60)
    return f"{task}, request {place}, at {at}: {one[0][part]!r} and {two[0][part]!r}"


_LIBRARY = """
import json, sys, msgspec
from nodes.episodes.dialogue.planning import tasks_of
from nodes.episodes.scenarios.library import starter
from nodes.episodes.scenarios.visibility import cast_of
library = starter()
told = {}
for task in tasks_of(library):
    if task.scenario in sys.argv[1:] and task.scenario not in told:
        cast = cast_of(library, task)
        people = [msgspec.to_builtins(person) for person in cast.people]
        scene = {"context": cast.scenario.context, "goals": cast.scenario.goals,
                 "relationship": cast.scenario.relationship.value}
        told[task.scenario] = [people, scene]
print(json.dumps(told))
"""

if __name__ == "__main__":
    code = main(sys.argv[1])
    sys.stdout.flush()
    os._exit(code)
