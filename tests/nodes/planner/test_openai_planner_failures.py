"""The planner on a model behind HTTP without good answers: it says so, gives up with the reason, spends no more."""

from __future__ import annotations

import json
import logging
from contextlib import ExitStack

import pytest

from nodes.msgs import Scene
from nodes.planner.model_prompt import words
from nodes.policy.skill_catalogue import SPECS, catalogue_of
from tests.nodes.planner.openai_planner_table import KEY, REQUEST, Table, do, picture, put, scene, set_environment
from tests.support.sentences import sentence
from tests.support.servers.fake_openai_server import (
    Behaviour,
    FakeOpenAI,
    answers,
    half_a_stream,
    raw,
    silence,
    status,
    trickle,
)

pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch)


BAD: dict[str, Behaviour] = {
    "500": status(500),
    "429": status(429),
    "timeout": silence,
    "trickle": trickle,
    "half a stream": half_a_stream,
    "nonsense": raw(b"<html>", "text/html"),
}
UNUSABLE: dict[str, Behaviour] = {
    "prose": answers("I would rather talk about cups."),
    "an answer that was cut off": answers('{"do": "wo', finish="length"),
    "nothing at all": answers(""),
    "unknown deed": answers(do("run_shell")),
    "unknown place": answers(put(place="oven")),
    "unknown skill": answers(put(skill="juggle")),
    "an id that is gone": answers(put(things=[{"label": "cup", "id": "cup-99"}])),
    "a label of 10 kB": answers(put(things=[{"label": "c" * 10_000}])),
    "a wish without a text": answers(put(text="")),
}


CASES = [(name, False) for name in BAD] + [(name, True) for name in ("trickle", "half a stream", "nonsense")]


@pytest.mark.parametrize(("name", "stream"), CASES)
def test_a_planner_without_answers_says_so_and_ends_the_run_as_failed(name: str, stream: bool) -> None:
    with FakeOpenAI(BAD[name]) as server, Table(server, stream=stream, deadline_s=0.4, give_up_after=2) as table:
        table.hear(REQUEST)
        table.sim.run(seconds=30.0)
        assert table.sim.outcome is not None
        ok, reason = table.sim.outcome
        assert not ok
        assert reason.startswith(sentence("planner.gave_up"))
        assert [subtask.state for subtask in table.subtasks] == ["wait"]
        assert len(table.said) == 2
        assert len(server.requests) <= 4


def test_an_unreachable_server_ends_the_run_with_the_reason() -> None:
    with FakeOpenAI(silence) as server:
        pass
    with Table(server, give_up_after=3) as table:
        table.hear(REQUEST)
        table.sim.run(seconds=60.0)
        assert table.sim.outcome is not None
        assert "cannot be reached" in table.sim.outcome[1]


def test_the_robot_may_finish_its_subtask_before_the_run_ends() -> None:
    with FakeOpenAI(answers(put()), status(500)) as server, Table(server, give_up_after=1) as table:
        table.hear(REQUEST)
        table.sim.run(seconds=2.0)
        table.hear("And hurry")
        for _ in range(10):
            table.sim.publish("description", scene("working"))
            table.sim.run(seconds=2.0)
        assert table.reason() == ""
        table.sim.publish("description", scene("finished"))
        table.sim.run(seconds=6.0)
        assert table.reason().startswith("the planner gave up")
        assert list(dict.fromkeys(subtask.state for subtask in table.subtasks)) == ["work", "wait"]


def test_one_failure_is_forgotten_after_an_answer() -> None:
    bad, good = answers("hm"), answers(do("wait"))
    with FakeOpenAI(bad, good, bad, good) as server, Table(server, give_up_after=2) as table:
        table.hear(REQUEST)
        table.sim.run(seconds=10.0)
        table.hear("What now?")
        table.sim.run(seconds=10.0)
        assert len(server.requests) == 4
        assert table.sim.outcome is None


def test_the_budget_of_calls_is_a_hard_stop() -> None:
    with FakeOpenAI(answers(do("wait"))) as server, Table(server, max_calls=3) as table:
        for number in range(10):
            table.hear(f"What about {number}?")
            table.sim.run(seconds=2.0)
        table.sim.run(seconds=10.0)
        assert len(server.requests) == 3
        assert table.sim.outcome is not None
        assert "the budget of 3 calls is spent" in table.sim.outcome[1]


def test_the_key_is_in_no_log_and_no_message(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    caplog.set_level(logging.INFO, "node")
    with FakeOpenAI(status(401, f"Incorrect API key provided: {KEY}")) as server, ExitStack() as stack:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)  # the key is this server's
        table = stack.enter_context(Table(server))
        table.hear(REQUEST)
        table.sim.run(seconds=30.0)
        told = caplog.text + str(table.sim.outcome) + str(table.said)
        assert "refused the key" in told
        assert KEY not in told
        assert KEY in server.requests[0].headers["authorization"]  # it was sent where it belongs, and nowhere else
        assert KEY not in json.dumps(server.requests[0].body)


@pytest.mark.parametrize("name", list(UNUSABLE))
def test_an_answer_that_cannot_be_used_is_asked_again_twice_with_the_reason_and_never_ends_the_run(name: str) -> None:
    with FakeOpenAI(UNUSABLE[name]) as server, Table(server) as table:
        table.sim.publish("skills", catalogue_of(SPECS.values()))
        table.sim.publish("scene", Scene(places=("bin", "table")))
        table.hear(REQUEST)
        table.sim.run(seconds=30.0)
        assert table.sim.outcome is None
        assert table.subtasks == []
        assert [one.text for one in table.said] == [words().say.unusable]
        assert len(server.requests) == 3
        assert "Your last answer could not be used" not in server.requests[0].user_text
        assert "Your last answer could not be used: " in server.requests[2].user_text


def test_the_second_answer_may_be_better() -> None:
    with FakeOpenAI(answers(put(place="oven")), answers(put())) as server, Table(server) as table:
        table.sim.publish("scene", Scene(places=("bin", "table")))
        table.hear(REQUEST)
        table.sim.run(seconds=5.0)
        assert table.subtasks[0].place == "bin"
        assert "'oven'; known: bin, table" in server.requests[1].user_text


@pytest.mark.parametrize("code", [400, 500])
def test_a_server_that_takes_no_images_is_asked_without_them_from_then_on_and_that_is_said_once(code: int) -> None:
    refusal = status(
        code, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"
    )
    with FakeOpenAI(refusal, answers(put())) as server, Table(server) as table:
        table.sim.publish("head/image", picture())
        table.sim.publish("scene", Scene(places=("bin",)))
        table.hear(REQUEST)
        table.sim.run(seconds=3.0)
        table.hear("And hurry")
        table.sim.publish("head/image", picture())
        table.sim.run(seconds=5.0)
        assert table.sim.outcome is None
        has_image = [bool(request.image_urls) for request in server.requests]
        assert has_image == sorted(has_image, reverse=True)
        assert not has_image[-1]
        assert [one.text for one in table.said].count(words().say.blind) == 1
        assert table.subtasks[0].place == "bin"


def test_a_planner_that_is_told_so_sends_no_image_at_all() -> None:
    with FakeOpenAI(answers(do("wait"))) as server, Table(server, sees=False) as table:
        table.sim.publish("head/image", picture())
        table.hear(REQUEST)
        table.sim.run(seconds=3.0)
        assert server.requests[0].image_urls == []


def test_the_servers_own_sentence_is_told() -> None:
    with FakeOpenAI(status(500, "the slot is unavailable")) as server, Table(server, give_up_after=1) as table:
        table.hear(REQUEST)
        table.sim.run(seconds=10.0)
        assert table.sim.outcome is not None
        assert "failed (500); it says: the slot is unavailable" in table.sim.outcome[1]
