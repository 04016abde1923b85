"""What a real OpenAI-compatible server once answered, answered again: the planner asks otherwise, or a person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodes.planner.model_prompt import words
from tests.nodes.planner.openai_planner_table import REQUEST, Table, picture, set_environment
from tests.support.sentences import sentence
from tests.support.servers.fake_openai_server import Behaviour, FakeOpenAI, raw, status

pytestmark = pytest.mark.processes

RECORDED: dict[str, Any] = {
    one["asked"]: one
    for one in json.loads(Path(__file__).with_name("recorded").joinpath("llama_cpp.json").read_text("utf-8"))["answers"]
}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch)


def recorded(asked: str) -> Behaviour:
    """What the server answered when it was asked so."""
    one = RECORDED[asked]
    if one["status"] == 200:
        return raw(json.dumps(one["body"]).encode())
    return status(one["status"], one["body"]["error"]["message"])


def test_an_answer_under_the_servers_own_grammar_is_read_and_its_done_of_nothing_is_asked_again_and_then_told() -> None:
    with FakeOpenAI(recorded("a schema as structured output")) as server, Table(server) as table:
        table.hear(REQUEST)
        table.sim.run(seconds=4.0)
        assert [one.text for one in table.said] == [table.planner.texts.say.unusable]
        assert len(server.requests) == 2


def test_a_refused_schema_becomes_a_tool_call_and_free_text_in_its_place_is_asked_again_and_then_said() -> None:
    refused, text = recorded("a schema that is none"), recorded("a tool call")
    with FakeOpenAI(refused, text) as server, Table(server) as table:
        table.hear(REQUEST)
        table.sim.run(seconds=20.0)
        assert ["tools" in request.body for request in server.requests] == [False, True, True, True]
        assert sentence("models.not_asked_for") in server.requests[-1].user_text
        assert [one.text for one in table.said] == [words().say.unusable]
        assert table.sim.outcome is None


def test_a_server_without_eyes_is_asked_without_the_image_and_that_is_said() -> None:
    blind = recorded("an image")
    with FakeOpenAI(blind, blind, recorded("a schema as structured output")) as server, Table(server) as table:
        table.sim.publish("head/image", picture())
        table.sim.run(seconds=0.5)
        table.hear(REQUEST)
        table.sim.run(seconds=15.0)
        assert words().say.blind in [one.text for one in table.said]
        assert not server.requests[-1].image_urls
        assert table.sim.outcome is None
