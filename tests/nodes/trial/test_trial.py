"""`polyrhythm models try` against a server that is well, one that takes no images, and one that reads little."""

from __future__ import annotations

import json
import tomllib

import pytest

from nodes.planner.openai_api import OpenAIPlanner
from nodes.trial.command import main
from nodes.vlm.openai_api import OpenAIVLM
from runtime.launch.class_check import parameters_of
from tests.support.servers.episode_model import ACT, judged, scales_of, schema_of
from tests.support.servers.fake_openai_server import Behaviour, FakeOpenAI, Request, says, status, when

pytestmark = pytest.mark.processes


def well(request: Request) -> str:
    """An answer in the form that is asked for."""
    fields = schema_of(request).get("properties", {})
    if scales_of(request):
        return judged(request)
    if "objects" in fields:
        return json.dumps({"objects": [{"label": "block", "colour": "red", "u": 160, "v": 120, "is_place": False}]})
    return ACT if "action_type" in fields else json.dumps({"do": "wait", "say": "I wait."})


def has_image(request: Request) -> bool:
    return bool(request.image_urls)


def is_long(request: Request) -> bool:
    return len(request.user_text) > 10_000


def tried(behaviour: Behaviour, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, bool], dict[str, object]]:
    """The exit code, what can be used, and the parameters for a launch file."""
    with FakeOpenAI(behaviour) as server:
        code = main(["try", f"qwen@{server.url}", "--json", "--extra-body", '{"top_k": 5}', "--timeout", "20"])
    found = json.loads(capsys.readouterr().out)
    params = tomllib.loads("\n".join(found["launch"]))["nodes"]["planner"]["params"]
    return code, {one["what"]: not one["problem"] for one in found["tried"]}, params


def test_a_trial_says_what_a_server_takes_and_gives_the_lines_of_a_launch_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, usable, params = tried(says(well), capsys)
    assert (code, set(usable.values()), len(usable)) == (0, {True}, 5)
    assert (params["model"], params["extra_body"]) == ("qwen", {"top_k": 5})
    assert "sees" not in params
    assert set(params) <= set(parameters_of(OpenAIPlanner))

    blind = when(has_image, status(500, "image input is not supported"), says(well))
    short = status(400, "This model's maximum context length is 4096 tokens", {"code": "context_length_exceeded"})
    code, usable, params = tried(when(is_long, short, blind), capsys)
    assert code == 0, "a planner may do without"
    assert {what for what, is_usable in usable.items() if not is_usable} == {"image", "long prompt"}
    assert params["sees"] is False

    code, usable, _ = tried(
        when(lambda request: bool(scales_of(request)), says(lambda request: "I like both."), says(well)), capsys
    )
    assert (code, usable["judgement"], usable["act"]) == (1, False, True)


def test_a_wrong_address_is_told_and_nothing_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    for model in ("qwen", "qwen@http://127.0.0.1:9", "@http://127.0.0.1:9/v1"):
        assert main(["try", model]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("cls", [OpenAIPlanner, OpenAIVLM])
def test_doctor_asks_the_servers_of_a_graph_where_it_is_told_to(cls: type[OpenAIPlanner] | type[OpenAIVLM]) -> None:
    with FakeOpenAI(says(lambda request: '{"ready": true}')) as server:
        node = cls(model="m", base_url=server.url)
        assert node.model_findings(is_timed=False) == []
        assert [level for level, _ in node.model_findings(is_timed=True)] == ["ok"]
        assert len(server.requests) == 1
    assert [level for level, _ in node.model_findings(is_timed=True)] == ["problem"]
