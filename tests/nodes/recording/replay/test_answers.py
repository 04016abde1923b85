"""Claims about answers of the world outside: recorded at one place, given back by a replay, without any key."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from nodes.mcap.file import BagReader
from nodes.msgs import Subtask, Utterance
from nodes.recording.replay.command import main as replay_main
from runtime import Node, Publisher, Simulation, Stamped, Subscription, UserError, every, on, run
from runtime.clock import SystemClock
from runtime.commands.run import main as run_main
from runtime.coordination.health import Health
from runtime.errors import RecordingError
from runtime.journal.answers import blotted, read, written, written_failure

KEY = "sk-very-secret-indeed"


@dataclasses.dataclass
class Plan:
    steps: tuple[str, ...]
    share: float


class Server:
    """Answers, or is gone."""

    is_there: ClassVar[bool] = True
    asked: ClassVar[list[str]] = []

    @classmethod
    async def ask(cls, text: str, key: str = KEY) -> Any:
        if not cls.is_there:
            raise ConnectionError("nobody is there")
        cls.asked.append(text)
        await asyncio.sleep(0)
        if "fail" in text:
            raise ValueError(f"the key {key} is refused")
        return {"plan": Plan((text, f"for {key}"), 0.5), "authorization": f"Bearer {key}", "n": len(cls.asked)}


class Planner(Node):
    """Asks for a plan of what it hears, while its other handler goes on counting."""

    seat = "planner"
    heard = Subscription(Utterance, "heard")
    subtask = Publisher(Subtask, "subtask")
    said = Publisher(Utterance, "said")

    def __init__(self) -> None:
        self.count = 0
        self.greeting = ""
        self.stopped: list[str] = []

    async def on_start(self) -> None:
        answer = await self.clock.external(Server.ask("hello"), 0.1)
        self.greeting = answer["plan"].steps[0]

    @on(heard)
    async def listen(self, heard: Stamped[Utterance]) -> None:
        self.count += 1
        begun = self.count
        try:
            answer = await self.clock.external(lambda: Server.ask(heard.message.text), latency_s=1.2)
            text = f"{answer['plan'].steps[0]} {answer['n']}"
        except ValueError:
            text = "I cannot"
        self.subtask.publish(Subtask(id=str(begun), text=f"{self.greeting} {text} {self.count}", state="work"))
        await self.clock.sleep(0.3)
        self.said.publish(Utterance(speaker="robot", text=f"{begun} of {self.count}"))

    @every(hz=3)
    def tick(self) -> None:
        self.count += 1
        self.said.publish(Utterance(speaker="robot", text=str(self.count)))

    async def on_stop(self) -> None:
        await self.clock.sleep(0.0)
        self.stopped.append(self.greeting)


class Person(Node):
    """Orders, interrupts, and orders what fails."""

    role = "ears"
    heard = Publisher(Utterance, "heard")

    def __init__(self) -> None:
        self.texts = ["Bring me tea", "Stop!", "", "fail", "", "", "Bring me milk"]

    @every(hz=1)
    def speak(self) -> None:
        if self.texts and (text := self.texts.pop(0)):
            self.heard.publish(Utterance(speaker="ann", text=text))


HERE = "tests.nodes.recording.replay.test_answers"
LAUNCH = f"""
[nodes.planner]
use = "{HERE}:Planner"
[nodes.person]
use = "{HERE}:Person"
[nodes.reflex]
use = "nodes.interrupts.reflex:Reflex"
[nodes.coordinator]
use = "nodes.interrupts.coordinator:Coordinator"
"""


@pytest.fixture(autouse=True)
def _server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PLANNER_API_KEY", KEY)
    Server.is_there, Server.asked[:] = True, []
    yield
    Server.is_there = True


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, Path]:
    launch, recording = tmp_path / "ask.toml", tmp_path / "run.mcap"
    launch.write_text(LAUNCH)
    assert run_main([str(launch), "--virtual", "--for", "9", "--record", str(recording), "--out", str(tmp_path)]) == 0
    return launch, recording


def test_a_planner_that_asks_a_model_replays_bit_for_bit_without_its_server(
    recorded: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert Server.asked == ["hello", "Bring me tea", "Stop!", "fail", "Bring me milk"]
    Server.is_there = False
    capsys.readouterr()
    assert replay_main([str(recorded[1]), "--node", "all", "--json"]) == 0
    told = {one["node"]: one for one in json.loads(capsys.readouterr().out)["nodes"]}
    assert told["planner"]["compared"] > 20


def test_a_virtual_run_plays_against_recorded_answers_and_asks_nobody(
    recorded: tuple[Path, Path], tmp_path: Path
) -> None:
    launch, recording = recorded
    Server.is_there = False
    again = tmp_path / "again.mcap"
    asked = [str(launch), "--virtual", "--for", "9", "--answers", str(recording), "--record", str(again)]
    assert run_main([*asked, "--out", str(tmp_path / "out")]) == 0
    subtasks = [
        [message.message(Subtask).text for message in BagReader(path) if message.topic == "subtask"]
        for path in (recording, again)
    ]
    assert subtasks[0] == subtasks[1]
    assert len(subtasks[0]) > 2


def test_no_key_and_no_header_is_in_a_recording(recorded: tuple[Path, Path]) -> None:
    reader = BagReader(recorded[1])
    messages = list(reader)
    assert any(b"the key *** is refused" in message.data for message in messages)
    assert any(b"for ***" in message.data for message in messages)
    assert all(KEY.encode() not in message.data for message in messages)


@pytest.mark.parametrize(
    "answer",
    [
        None, True, 3, 1 << 80, 0.1, -0.0, math.inf, "a\u2028\ud83d", b"\x00\xff", [1, [2.5]],
        (1, ("a", b"b")), {"a": (1,)},
        {1: "a", (2,): None}, {"$": "tuple"}, Plan(("a",), 0.25), Utterance(speaker="a", text="b"), np.float32(0.1),
    ],
)  # fmt: skip
def test_a_plain_answer_comes_back_as_it_was(answer: Any) -> None:
    again = read(written(answer))
    assert again == answer
    assert type(again) is type(answer)


def test_an_array_comes_back_with_shape_and_type() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    again = read(written([array]))[0]
    assert again.dtype == array.dtype
    assert np.array_equal(again, array)


def test_what_a_call_raised_is_raised_again() -> None:
    problem = ValueError("no", 3)
    problem.may_retry = True  # type: ignore[attr-defined]  # as errors of clients have
    with pytest.raises(ValueError, match="no") as again:
        read(written_failure(problem))
    assert again.value.args == ("no", 3)
    assert vars(again.value) == {"may_retry": True}


def test_a_recording_makes_the_program_load_nothing() -> None:
    with pytest.raises(RecordingError):
        read('{"$": "antigravity:fly", "v": {}}')
    with pytest.raises(RecordingError):
        read('{"$": "os:system", "v": {}}')


def test_an_async_on_start_comes_before_the_first_handler_and_an_async_on_stop_after_the_last() -> None:
    planner = Planner()
    simulation = Simulation(planner, Person())
    simulation.run(0.4)
    assert planner.greeting == "hello"
    simulation.close()
    assert planner.stopped == ["hello"]


def test_in_real_time_too_on_start_and_on_stop_may_be_async() -> None:
    planner = Planner()
    run(planner, Person(), seconds=0.2)
    assert planner.stopped == ["hello"]


async def _external(given: Any) -> None:
    await SystemClock().external(given, 0.1)


@pytest.mark.parametrize("given", ["an answer", None, lambda: 3, print])
def test_what_cannot_be_awaited_is_a_sentence(given: Any) -> None:
    with pytest.raises(UserError, match=r"clock\.external"):
        asyncio.run(_external(given))


def test_a_call_that_was_awaited_before_is_a_sentence() -> None:
    async def twice() -> None:
        call = Server.ask("tea")
        await SystemClock().external(call, 0.1)
        await SystemClock().external(call, 0.1)

    with pytest.raises(UserError, match="awaited before"):
        asyncio.run(twice())


@pytest.mark.parametrize("latency_s", [-1.0, math.nan, "1"])
def test_a_latency_that_is_none_is_a_sentence(latency_s: Any) -> None:
    async def ask() -> None:
        await SystemClock().external(Server.ask("tea"), latency_s)

    with pytest.raises(UserError, match="latency_s"):
        asyncio.run(ask())


@pytest.mark.parametrize(
    "text",
    [
        "GET https://lab.example/v1?key={key} failed: 500",
        "302 to https://lab.example/cb?x=1&access_token={key}#api_key={key}",
        "https://bucket.example/a?X-Amz-Credential={key}&X-Amz-Signature={key}",
        "https://ann:{key}@lab.example/v1 is gone",
        "Authorization: Bearer {key}",
        "proxy-authorization: Basic {key}",
        "X-Api-Key: {key} refused",
        "{{'x-api-key': '{key}', 'accept': '*/*'}}",
        '[["Authorization", "Bearer {key}"], ["x-api-key", "{key}"]]',
        "Set-Cookie: id={key}; Path=/; other={key}",
        "the server said: bearer {key} has expired",
    ],
)
def test_a_key_that_no_variable_names_is_blotted_out_where_addresses_and_headers_show_it(text: str) -> None:
    shown = text.format(key="file-k3y.of_Ann-77")
    for kept in (blotted(shown), written(shown), written({"text": [shown]}), written_failure(OSError(shown))):
        assert "k3y" not in kept
        assert "***" in kept
    json.loads(written({"text": [shown]}))


def test_what_a_node_tells_of_its_last_failure_shows_no_key() -> None:
    class Fails(Node):
        @every(hz=10)
        def tick(self) -> None:
            raise OSError("GET https://lab.example/v1?key=file-k3y.of_Ann-77 failed")

    simulation = Simulation(Fails(), health_hz=5, goes_on=True)
    simulation.run(1.0)
    health = simulation.latest("health/fails")
    simulation.close()
    assert isinstance(health, Health)
    assert health.last_error.endswith("GET https://lab.example/v1?key=*** failed")


@pytest.mark.parametrize(
    "text",
    [
        "the authorization failed",
        "who has the key? ann=3, of course",
        "at https://lab.example:8080/v1?page=2&seed=77",
        "http://127.0.0.1:8000/health: 503",
        "the bearer shouldered it",
        "a cookie is on the table, the key: under it",
        "mail ann@lab.example",
    ],
)
def test_words_that_are_no_key_stay(text: str) -> None:
    assert blotted(text) == text
    assert read(written(text)) == text
