"""Claims about the client of models for one's own nodes: asked, cancelled, within a budget, replayed, no key told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.interrupts.coordinator import Coordinator
from nodes.interrupts.reflex import Reflex
from nodes.mcap.file import BagReader
from nodes.models.answers import BudgetError
from nodes.models.client import ModelClient
from nodes.msgs import Utterance
from nodes.recording.replay.command import main as replay_main
from runtime import Node, Publisher, Simulation, Spending, Subscription, every, on
from runtime.commands.run import main as run_main
from tests.support.servers.fake_openai_server import FakeOpenAI, answers

KEY = "sk-very-secret-indeed"


class Butler(Node):
    """Answers what it hears by a model."""

    seat = "planner"
    heard = Subscription(Utterance, "heard")
    said = Publisher(Utterance, "said")

    def __init__(self, base_url: str = "", max_calls: int = 200) -> None:
        self.model = ModelClient(model="small", base_url=base_url, max_calls=max_calls, latency_s=1.5)

    def problems(self) -> list[str]:
        return self.model.problems()

    def spending(self) -> Spending:
        return self.model.spending()

    @on(heard)
    async def listen(self, heard: Utterance) -> None:
        try:
            text = await self.model.ask(self, heard.text, system="You are a butler.")
        except BudgetError:
            text = "no more"
        self.said.publish(Utterance(speaker="robot", text=text))

    async def on_stop(self) -> None:
        await self.model.close()


class Guest(Node):
    role = "ears"
    heard = Publisher(Utterance, "heard")

    def __init__(self, texts: tuple[str, ...] = ("Tea, please", "Stop!")) -> None:
        self.texts = list(texts)

    @every(hz=1)
    def speak(self) -> None:
        if self.texts and (text := self.texts.pop(0)):
            self.heard.publish(Utterance(speaker="ann", text=text))


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def test_a_node_asks_a_model_and_hears_its_answer_after_the_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeOpenAI(answers("At once.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        simulation = Simulation(Butler(), Guest(("Tea, please",)))
        said = simulation.record(Butler.said)
        simulation.run(1.4)
        assert said == []
        simulation.run(0.2)
        simulation.close()
        assert [one.text for one in said] == ["At once."]
        assert KEY in server.requests[0].headers["authorization"]


def test_stop_cancels_the_question_and_nothing_of_its_answer_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeOpenAI(answers("first"), answers("second")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        simulation = Simulation(Butler(), Guest(), Reflex(), Coordinator())
        said = simulation.record(Butler.said)
        simulation.run(4.0)
        simulation.close()
        assert [one.text for one in said] == ["second"]


def test_a_budget_ends_the_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeOpenAI(answers("yes")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        butler = Butler(max_calls=1)
        simulation = Simulation(butler, Guest(("one", "", "two")))
        said = simulation.record(Butler.said)
        simulation.run(6.0)
        simulation.close()
        assert [one.text for one in said] == ["yes", "no more"]
        assert len(server.requests) == 1
        assert butler.spending().calls == 1


def test_a_recorded_conversation_replays_without_the_server_and_holds_no_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launch, recording = tmp_path / "butler.toml", tmp_path / "run.mcap"
    here = "tests.nodes.models.test_client"
    launch.write_text(f'[nodes.butler]\nuse = "{here}:Butler"\n[nodes.guest]\nuse = "{here}:Guest"\n')
    with FakeOpenAI(answers("first"), answers(f"your key is {KEY}")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert run_main([str(launch), "--virtual", "--for", "5", "--record", str(recording)]) == 0
        assert KEY in server.requests[0].headers["authorization"]
    calls = [message for message in BagReader(recording) if message.topic == "calls/butler"]
    assert any(b"your key is ***" in message.data for message in calls)
    assert all(KEY.encode() not in message.data for message in calls)
    capsys.readouterr()
    replay_main([str(recording), "--node", "butler", "--json"])
    (butler,) = json.loads(capsys.readouterr().out)["nodes"]
    assert butler["compared"] >= 1
