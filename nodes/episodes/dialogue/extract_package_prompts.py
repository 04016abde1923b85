"""Prints what the installed sotopia package tells its models, as JSON, with places to fill in.

Run by an interpreter that has that package (`package_prompts.py` starts it), so it imports nothing of ours. Every text
comes out of the package's own functions, called with placeholders; none of it is written here.
"""

import asyncio
import contextlib
import json
import os
import sys
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("SOTOPIA_STORAGE_BACKEND", "local")

MODES = {"AGENTS": {}, "MINDREADERS": {"omniscient": True}, "NAMES": {"lite": True}}
KINDS = ("none", "speak", "non-verbal communication", "action", "leave")
AGE = 900_000  # the package wants a number where the others have a placeholder


def place(name: str, seat: int | None = None) -> str:
    """A placeholder; the package writes some fields in lower case, and then its name is."""
    return f"⟦{name}⟧" if seat is None else f"⟦{name}_{seat}⟧"


def first_texts(parallel: Any, database: Any) -> dict[str, list[str]]:
    """What the two seats are told first, and what the judge is, by mode and relationship."""
    parallel._map_gender_to_adj = lambda gender: gender  # its own words for genders stand in `genders`
    texts = {}
    for relationship in database.RelationshipType:
        for mode, told in MODES.items():
            scene = SimpleNamespace(  # plain values: a profile of 0.1.4 wants its store
                scenario=place("SCENARIO"), agent_goals=[place("GOAL", 0), place("GOAL", 1)], relationship=relationship
            )
            agents = {place("NAME", seat): SimpleNamespace(profile=person(seat)) for seat in (0, 1)}
            world = parallel.ParallelSotopiaEnv(env_profile=scene, action_order="round-robin")
            seen = world.reset(agents=agents, **told)
            whole = [*(seen[name].to_natural_language() for name in agents), world.background.to_natural_language()]
            for seat in (0, 1):
                whole = [text.replace(str(AGE + seat), place("AGE", seat)) for text in whole]
            texts[f"{mode} {relationship.value}"] = whole
    return texts


FIELDS = {  # the package's, and their placeholders
    "first_name": "FIRST_NAME", "last_name": "LAST_NAME", "gender": "GENDER", "gender_pronoun": "PRONOUNS",
    "occupation": "OCCUPATION", "public_info": "PUBLIC_INFO", "personality_and_values": "PERSONALITY",
    "secret": "SECRET",
}  # fmt: skip


def person(seat: int) -> Any:
    """A character made of placeholders."""
    return SimpleNamespace(age=AGE + seat, **{field: place(name, seat) for field, name in FIELDS.items()})


async def asked(generate: Any, call: Any) -> dict[str, Any]:
    """The request that a call of the package would send to a model."""
    sent: list[dict[str, Any]] = []

    async def instead(**request: Any) -> Any:
        sent.append(request)
        raise RuntimeError("not sent")

    generate.acompletion = instead
    await call()
    return sent[0]


async def extracted() -> dict[str, Any]:
    """All of it."""
    from importlib.metadata import version

    from sotopia import database  # type: ignore[import-not-found]  # only in its own environment
    from sotopia.envs import evaluators, parallel  # type: ignore[import-not-found]
    from sotopia.generation_utils import generate  # type: ignore[import-not-found]
    from sotopia.messages import AgentAction, Observation, SimpleMessage  # type: ignore[import-not-found]

    genders = {gender: parallel._map_gender_to_adj(gender) for gender in ("", "Man", "Woman", "Nonbinary")}
    told = place("HISTORY"), 900_000, list(KINDS), place("AGENT"), place("GOAL")
    model = "custom/structured/x@http://127.0.0.1:9"
    act = await asked(generate, lambda: generate.agenerate_action(model, *told))
    is_newer = hasattr(evaluators, "EvaluationForAgents")  # than 0.1.4
    form = evaluators.EvaluationForAgents if is_newer else evaluators.EvaluationForTwoAgents
    dimensions = database.SotopiaDimensions if is_newer else evaluators.SotopiaDimensions
    judge = evaluators.EpisodeLLMEvaluator("gpt-4o", form[dimensions])
    speakers = [(name, AgentAction(action_type="speak", argument="x")) for name in ("a", "b")]
    evaluation = await asked(generate, lambda: judge.__acall__(1, speakers, place("HISTORY")))
    later = Observation(last_turn=place("ACTS"), turn_number=900_001, available_actions=["none"])
    return {
        "version": version("sotopia"),
        "genders": genders,
        "first": first_texts(parallel, database),
        "act": text_of(act).replace("900000", place("TURN")),
        "act_schema": schema_of(act),
        "acts": {
            kind: AgentAction(action_type=kind, argument=place("ARGUMENT")).to_natural_language() for kind in KINDS
        },
        "turn": later.to_natural_language().replace("900000", place("BEFORE")),
        "judge": text_of(evaluation),
        "judge_schema": schema_of(evaluation),
        "judge_turn": SimpleMessage(message="Turn #" + place("TURN")).to_natural_language(),
    }


def text_of(request: dict[str, Any]) -> str:
    """The one message of a request."""
    (message,) = request["messages"]
    return str(message["content"])


def schema_of(request: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema that a request asks for, as the package's client writes it; {} where it asks for none."""
    from litellm.llms.base_llm.base_utils import (  # type: ignore[import-not-found]
        type_to_response_format_param,
    )

    form = type_to_response_format_param(request.get("response_format")) or {}
    return dict(form.get("json_schema", {}).get("schema", {}))


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # the package prints where it is and what went wrong
        found = asyncio.run(extracted())
    json.dump(found, sys.stdout)
