"""`polyrhythm models try` against a server that is well, one that takes no images, and one that reads little."""

from __future__ import annotations

import asyncio
import json
import tomllib

import pytest

from nodes.planner.openai_api import OpenAIPlanner
from nodes.trial.command import NEEDED, main
from nodes.vlm.openai_api import OpenAIVLM
from runtime.launch.checks.class_check import parameters_of
from tests.nodes.models.server_table import SCORES, lines_of, on_the_page
from tests.support.sentences import sentence
from tests.support.servers.behaviours import MARK, SECTIONS, Row
from tests.support.servers.episode_model import ACT, judged, scales_of, schema_of
from tests.support.servers.fake_openai_server import (
    Behaviour,
    FakeOpenAI,
    Request,
    answers,
    says,
    silence,
    status,
    when,
)

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


SEES = {
    "objects": [{"label": "block", "colour": "red", "u": 160, "v": 120, "is_place": False}],
    "say": f"Red {MARK} on.",
}
REASONED = {name: {"reasoning": f"So {MARK} on.", "score": score} for name, score in SCORES.items()}
GOOD = {
    'action_type"': ACT,
    "Judge an episode": json.dumps({"evaluations": {"Ann": REASONED, "Ben": REASONED}}),
    "The image is": json.dumps(SEES),
    '"ann" said': json.dumps({"do": "wait", "say": f"I wait {MARK} on."}),
}
"""What is well, by what stands in the question."""
WITHIN_S = 2.5


def behaves(rows: list[Row]) -> Behaviour:
    """The row that the model's name has the number of."""
    made: dict[tuple[str, str], Behaviour] = {}

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        row, what = rows[int(request.body["model"])], next(key for key in GOOD if key in request.user_text)
        if row.judge and not what.startswith("Judge"):
            await answers(GOOD[what])(request, writer)
        else:
            await made.setdefault((request.body["model"], what), row.serve(GOOD[what]))(request, writer)

    return behave


IN_SHORT = "What is refused of a request"


@pytest.mark.parametrize(
    "title", [IN_SHORT, *(pytest.param(title, marks=pytest.mark.long) for title in SECTIONS if title != IN_SHORT)]
)
def test_a_trial_finds_of_each_behaviour_what_planner_player_and_judge_make_of_it(
    title: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The table of docs/models.md was measured at those seats."""
    rows, page = list(SECTIONS[title]), lines_of(on_the_page())
    with FakeOpenAI(behaves(rows)) as server:
        for number, row in enumerate(rows):
            cells = page[row.name].replace("\\|", "/").split(" | ")
            well = cells[1].startswith(("plans", "–")), cells[3] in ("plays", "–") or cells[3].startswith("plays (")
            is_well = all((*well, cells[4].startswith("scores")))
            code = main(["try", f"{number}@{server.url}", "--timeout", f"{WITHIN_S}"])
            told, error = capfd.readouterr()
            if row.name != "a long answer refused":  # a judge of seven dimensions asks for more than the trial's
                assert code == (0 if is_well else 1), (row.name, told)
            assert error == ""
            usable = {line[:12].strip(): "ok, " in line for line in told.splitlines()[:5]}
            assert code == (0 if all(usable[what] for what in NEEDED) else 1)
            assert ("[nodes.planner]" in told) is usable["plan"]


def test_a_server_that_answers_nothing_is_asked_no_third_question(capsys: pytest.CaptureFixture[str]) -> None:
    for behaviour, asked in ((status(401, "no"), 1), (silence, 2), (status(500, "the engine burns"), 2)):
        with FakeOpenAI(behaviour) as server:
            assert main(["try", f"m@{server.url}", "--timeout", "0.3"]) == 1
        told = capsys.readouterr().out
        assert told.count(sentence("trial.not_asked")) == 5 - asked
        assert "[nodes.planner]" not in told


def test_a_trial_of_a_server_that_falls_silent_ends_in_time(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeOpenAI(says(well), silence) as server:
        assert main(["try", f"m@{server.url}", "--timeout", "0.3"]) == 1
    assert sentence("trial.over", seconds="0.9") in capsys.readouterr().out


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("qwen", sentence("models.address_expected", value="")),
        ("qwen@h:1/v1", sentence("models.address_expected", value="h:1/v1")),
        ("qwen@http://h:1", sentence("models.a_path_expected")),
        ("qwen@http://h:1/v1/chat/completions", sentence("models.completions_left_out")),
        ("qwen@http://h:1/v1?api-version=2", sentence("models.only_azure_has_a_query")),
        ("@http://h:1/v1", "MODEL@URL"),
    ],
)
def test_a_wrong_address_is_told_and_nothing_is_asked(
    model: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["try", model]) == 2
    out, error = capsys.readouterr()
    assert (out, told in error) == ("", True), error


def test_a_key_with_a_lines_end_and_fields_that_no_launch_file_holds_are_told_before_anything_is_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeOpenAI(says(well)) as server:
        for more in ('{"a": [null]}', "[]", "{"):
            assert main(["try", f"m@{server.url}", "--extra-body", more]) == 2
        assert sentence("trial.cannot_hold") in capsys.readouterr().err
        monkeypatch.setenv("OPENAI_API_KEY", "sk-1\r")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert main(["try", f"m@{server.url}"]) == 2
        error = capsys.readouterr().err
        assert sentence("models.end_of_line") in error
        assert "sk-1" not in error
        assert server.requests == []


@pytest.mark.parametrize("cls", [OpenAIPlanner, OpenAIVLM])
def test_doctor_asks_the_servers_of_a_graph_where_it_is_told_to(cls: type[OpenAIPlanner] | type[OpenAIVLM]) -> None:
    with FakeOpenAI(says(lambda request: '{"ready": true}')) as server:
        node = cls(model="m", base_url=server.url)
        assert node.model_findings(is_timed=False) == []
        assert [level for level, _ in node.model_findings(is_timed=True)] == ["ok"]
        assert len(server.requests) == 1
    assert [level for level, _ in node.model_findings(is_timed=True)] == ["problem"]
