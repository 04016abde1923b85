"""A model of episodes for `FakeOpenAI`: it plays, judges on whatever scale it is asked for, and rates turns."""

from __future__ import annotations

import json
from typing import Any

from tests.support.servers.fake_openai_server import Request

ACT = json.dumps({"action_type": "speak", "argument": "Let us see what we can do.", "to": []})


def schema_of(request: Request) -> dict[str, Any]:
    """The JSON schema of the answer that is wanted; {} where none is named."""
    wanted = request.body.get("response_format") or {}
    found: dict[str, Any] = (wanted.get("json_schema") or {}).get("schema") or {}
    return found


def scales_of(request: Request) -> dict[str, list[str]]:
    """Whom a judge is asked about, and on which dimensions; {} where it is no judge's question."""
    asked = schema_of(request).get("properties", {}).get("evaluations", {}).get("properties", {})
    return {name: list(person["properties"]) for name, person in asked.items()}


def judged(request: Request, score: int = 0) -> str:
    """The same score on every dimension that is asked for."""
    return json.dumps(
        {
            "evaluations": {
                name: {dimension: {"reasoning": "so", "score": score} for dimension in dimensions}
                for name, dimensions in scales_of(request).items()
            }
        }
    )


def plays_and_judges(request: Request) -> str:
    """An act where a player is asked, zeros where a judge is."""
    return judged(request) if scales_of(request) else ACT
