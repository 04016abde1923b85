"""What asking models may cost: at the limit no request leaves, over restarts too, and the seat's ladder takes over."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from nodes.guard.node import Guard
from nodes.models.answers import BudgetError, ChatSettings, ModelError
from nodes.models.budget import Budget, budget_of, estimated_tokens
from nodes.models.chat_format import Question
from nodes.models.chat_request import ChatClient
from nodes.msgs import GuardState, OutOfBudget, SceneDescription, Subtask, Utterance
from nodes.planner.openai_api import OpenAIPlanner
from nodes.seats.ladder import Ladder
from runtime import Node, Publisher, Simulation, every
from runtime.coordination.health import Health
from runtime.coordination.lease import Lease
from runtime.errors import UserError
from runtime.launch.graph import Graph, NodeSpec
from runtime.launch.tables.budgets_table import Budgets, ModelBudget, RunBudget, parse_budgets
from runtime.launch.tables.seats_table import Rung, SeatTable
from runtime.run_facts import RunFacts
from tests.support.robots.still_robot import StillRobot
from tests.support.sentences import sentence
from tests.support.servers.fake_openai_server import FakeOpenAI, answers, half_a_stream, raw, status

pytestmark = pytest.mark.processes

WAIT = json.dumps({"do": "wait", "say": ""})
QUESTION = Question(system="Be brief.", text="What now?", schema={"type": "object"})
PROMPT = QUESTION.prompt_tokens


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_MODEL", raising=False)


def ask(server: FakeOpenAI, budget: Budget, number: int, *, stream: bool = False) -> str:
    """Ask so often, or until the client refuses; why it did."""

    async def talk() -> str:
        settings = ChatSettings(server.url, "fake", "sk", deadline_s=30.0, stream=stream)
        client = ChatClient(settings, jitter=lambda: 0.0, budget=budget)
        try:
            for _ in range(number):
                await client.ask(QUESTION)
        except ModelError as problem:
            return f"{type(problem).__name__}: {problem}"
        finally:
            await client.close()
        return ""

    return asyncio.run(talk())


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_the_call_after_the_last_one_never_reaches_the_server(stream: bool) -> None:
    with FakeOpenAI(answers("{}")) as server:
        budget = Budget(max_calls=3)
        refused = ask(server, budget, 10, stream=stream)
        assert refused.startswith("BudgetError: 127.0.0.1")
        assert refused.endswith(sentence("models.spent", number=3))
        for _ in range(3):
            assert "BudgetError" in ask(server, budget, 1)
        assert len(server.requests) == 3


def test_tokens_are_a_hard_stop_and_the_last_answer_may_only_be_as_long_as_what_is_left() -> None:
    with FakeOpenAI(answers("{}")) as server:
        budget = Budget(max_tokens=50)  # the server says that each call costs 11 + 7
        assert "the budget of 50 tokens is spent (54 used)" in ask(server, budget, 10)
        asked = [request.body["max_completion_tokens"] for request in server.requests]
        assert asked == [50 - PROMPT, 50 - 18 - PROMPT, 50 - 36 - PROMPT]
        before = len(server.requests)
        assert "tokens is spent" in ask(server, budget, 1)
        assert len(server.requests) == before


def test_money_is_a_hard_stop_at_the_prices_given() -> None:
    with FakeOpenAI(answers("{}")) as server:
        budget = Budget(max_money=0.001, prompt_price=10.0, completion_price=20.0)  # 0.00025 a call
        assert "the budget of 0.001 is spent" in ask(server, budget, 10)
        assert len(server.requests) == 4
        assert budget.money == pytest.approx(4 * 0.00025)
        assert [request.body["max_completion_tokens"] for request in server.requests][-1] < 12


def test_a_prompt_that_alone_is_beyond_what_is_left_is_not_sent() -> None:
    with FakeOpenAI(answers("{}")) as server:
        assert "tokens is spent (0 used)" in ask(server, Budget(max_tokens=PROMPT), 1)
        assert server.requests == []


def test_retries_and_refused_formats_count_as_the_calls_that_they_are() -> None:
    with FakeOpenAI(status(500), answers("{}")) as server:
        budget = Budget(max_calls=1)
        assert "BudgetError" in ask(server, budget, 1), "the retry was not allowed"
        assert len(server.requests) == 1
    with FakeOpenAI(status(400), status(400), answers("{}")) as server:
        budget = Budget(max_calls=2)
        assert "BudgetError" in ask(server, budget, 1)
        assert len(server.requests) == 2
        assert budget.tokens == 0, "what the server refuses costs nothing"


def test_what_the_server_does_not_tell_is_estimated_and_told_as_such() -> None:
    body = {"choices": [{"index": 0, "message": {"content": "{}"}, "finish_reason": "stop"}]}
    with FakeOpenAI(raw(json.dumps(body).encode())) as server:
        budget = Budget()
        assert ask(server, budget, 2) == ""
        assert budget.prompt_tokens == 2 * PROMPT
        assert budget.estimated_tokens == budget.tokens > 0
    with FakeOpenAI(half_a_stream) as server:
        budget = Budget()
        assert "hung up" in ask(server, budget, 1, stream=True)
        assert budget.calls == 2
        assert budget.estimated_tokens >= 2 * PROMPT, "a stream that breaks off is not free"
    with FakeOpenAI(answers("{}")) as server:
        url_of_nobody = server.url
    nobody, budget = FakeOpenAI(answers("{}")), Budget()
    nobody.url = url_of_nobody
    assert "cannot be reached" in ask(nobody, budget, 1)
    assert budget.tokens == 0, "who was not reached charges nothing"


def test_a_streaming_server_is_asked_what_it_costs_unless_it_does_not_know_that() -> None:
    with FakeOpenAI(answers("{}")) as server:
        assert ask(server, Budget(), 1, stream=True) == ""
        assert server.requests[0].body["stream_options"] == {"include_usage": True}
    with FakeOpenAI(status(400, "unknown field stream_options"), answers("{}")) as server:
        assert ask(server, Budget(), 1, stream=True) == ""
        assert "stream_options" not in server.requests[1].body
        assert server.requests[1].body["response_format"]["type"] == "json_schema"


def test_a_node_that_is_restarted_does_not_begin_at_nothing(tmp_path: Path) -> None:
    limits = Budgets(models={"planner": ModelBudget(calls=4, tokens=100)})
    info = RunFacts.of({"registry": str(tmp_path), "budgets": limits.as_data()})
    with FakeOpenAI(answers("{}")) as server:
        for _ in range(5):
            ask(server, budget_of("planner", info, 200), 2)  # a process that dies after two questions
        assert len(server.requests) == 4
    again = budget_of("planner", info, 200)
    assert (again.calls, again.tokens) == (4, 72)
    assert budget_of("vlm", info, 200).calls == 0


def test_a_call_that_cannot_be_noted_is_not_made(tmp_path: Path) -> None:
    info = RunFacts.of({"registry": str(tmp_path / "gone")})
    with FakeOpenAI(answers("{}")) as server:
        assert sentence("models.not_noted") in ask(server, budget_of("planner", info, 200), 1)
        assert server.requests == []


def test_without_a_budget_of_its_own_a_node_keeps_to_its_most_calls() -> None:
    assert budget_of("planner", RunFacts(), 200).max_calls == 200
    limits = Budgets(models={"planner": ModelBudget(money=1.0, input_price=2.0, output_price=3.0)})
    budget = budget_of("planner", RunFacts.of({"budgets": limits.as_data()}), 200)
    assert (budget.max_calls, budget.max_money, budget.prompt_price, budget.completion_price) == (200, 1.0, 2.0, 3.0)
    assert estimated_tokens(400, 2) == 100 + 2 * 1100


# --- in the graph


class Eyes(Node):
    """Always something new to think about."""

    description = Publisher(SceneDescription, "description")
    heard = Publisher(Utterance, "heard")

    def __init__(self) -> None:
        self.count = 0

    @every(hz=1)
    def look(self) -> None:
        self.count += 1
        self.heard.publish(Utterance(speaker="Ana", text=f"What about {self.count}?"))
        self.description.publish(SceneDescription(text=f"{self.count}", subtask_id="", progress="idle"))


class Fallback(Node):
    """Plans without asking anybody."""

    seat = "planner"
    subtask = Publisher(Subtask, "subtask")

    @every(hz=1)
    def tick(self) -> None:
        self.subtask.publish(Subtask(id="f", text="my own plan", state="wait"))


class Room:
    """A planner with a budget, a ladder, and what came of them."""

    def __init__(self, server: FakeOpenAI, calls: int, *rungs: Rung) -> None:
        planner = OpenAIPlanner(base_url=server.url, model="fake", latency_s=0.2, deadline_s=30.0)
        self.sim = Simulation(
            NodeSpec("planner", OpenAIPlanner, instance=planner),
            NodeSpec("fallback", Fallback),
            NodeSpec("guard", Guard, instance=Guard(arm="auto")),
            Eyes(),
            StillRobot(),
            Ladder(),
            health_hz=1.0,
            seats={"planner": SeatTable(holder="planner", shadows=("fallback",), ladder=rungs)},
            budgets=Budgets(models={"planner": ModelBudget(calls=calls, money=5.0, input_price=1.0, output_price=2.0)}),
        )
        self.said: list[Utterance] = self.sim.record_topic("said", Utterance)
        self.states: list[GuardState] = self.sim.record_topic("guard/state", GuardState)
        self.leases: list[Lease] = self.sim.record_topic("lease", Lease)
        self.spent: list[OutOfBudget] = self.sim.record_topic("seat/out_of_budget", OutOfBudget)
        self.health: list[Health] = self.sim.record_topic("health/planner", Health)

    @property
    def texts(self) -> list[str]:
        return [utterance.text for utterance in self.said]

    def __enter__(self) -> Room:
        return self

    def __exit__(self, *_: object) -> None:
        self.sim.close()


def test_when_the_budget_is_spent_the_planner_says_so_and_its_ladder_takes_over() -> None:
    rungs = (Rung(silent_s=3.0, text="I wait for you."), Rung(silent_s=5.0, do="hold", text="I hold."))
    with FakeOpenAI(answers(WAIT)) as server, Room(server, 3, *rungs) as room:
        room.sim.run(seconds=30.0)
        assert len(server.requests) == 3
        assert room.sim.outcome is None, "the run goes on"
        assert room.texts == [
            "I have used up what I may spend on thinking. I finish what I am doing.",
            "I wait for you.",
            "I hold.",
        ]
        assert {message.why for message in room.spent} == {"the budget of 3 calls is spent"}
        assert room.states[-1].mode == "stopped"
        assert "the budget of 3 calls is spent" in room.states[-1].reason
        spending = room.health[-1].spending
        assert spending is not None
        assert (spending.calls, spending.max_calls, spending.spent) == (3, 3, "the budget of 3 calls is spent")
        assert spending.money == pytest.approx(3 * (11 + 2 * 7) * 1e-6)


def test_when_the_budget_is_spent_a_candidate_that_costs_nothing_takes_the_seat() -> None:
    with (
        FakeOpenAI(answers(WAIT)) as server,
        Room(server, 2, Rung(silent_s=3.0, do="hand_over", to="fallback", text="I go on with my own plan.")) as room,
    ):
        room.sim.run(seconds=20.0)
        assert len(server.requests) == 2
        assert [(x.holder, x.number) for x in room.leases if not x.is_repetition] == [("fallback", 1)]
        assert "I go on with my own plan." in room.texts
        assert room.states[-1].mode != "stopped"


def test_without_a_ladder_a_planner_that_may_ask_no_more_winds_up_and_ends_the_run() -> None:
    with FakeOpenAI(answers(WAIT)) as server, Room(server, 2) as room:
        room.sim.run(seconds=30.0)
        assert room.sim.outcome is not None
        assert "the budget of 2 calls is spent" in room.sim.outcome[1]


def test_a_budget_error_is_a_model_error_so_that_nobody_retries_it() -> None:
    assert issubclass(BudgetError, ModelError)
    assert not BudgetError("x").may_retry


def test_the_fake_server_s_counts_are_those_of_the_budget(tmp_path: Path) -> None:
    with FakeOpenAI(answers("{}")) as server:
        budget: Any = budget_of("planner", RunFacts.of({"registry": str(tmp_path)}), 50)
        ask(server, budget, 5)
        assert budget.calls == len(server.requests) == 5
        assert (budget.prompt_tokens, budget.completion_tokens) == (55, 35)


# --- the whole run


def two(tmp_path: Path, run: RunBudget, *, is_virtual: bool) -> tuple[Budget, Budget]:
    """The budgets of a planner and of a VLM in one run."""
    prices = ModelBudget(calls=1000, input_price=1.0, output_price=2.0)
    info = RunFacts.of({"budgets": Budgets(models={"planner": prices, "vlm": prices}, run=run).as_data()})
    if not is_virtual:
        info = info.noting(registry=str(tmp_path))  # as the supervisor gives it
    return budget_of("planner", info, 0), budget_of("vlm", info, 0)


@pytest.mark.parametrize("is_virtual", [False, True])
def test_what_all_nodes_ask_together_ends_at_the_runs_budget(tmp_path: Path, is_virtual: bool) -> None:
    planner, vlm = two(tmp_path, RunBudget(calls=3), is_virtual=is_virtual)
    planner.take_call("model")
    vlm.take_call("model")
    assert (planner.refusal(), vlm.refusal()) == ("", "")
    vlm.take_call("model")
    assert planner.refusal() == vlm.refusal() == "the run's budget of 3 calls is spent"


@pytest.mark.parametrize("is_virtual", [False, True])
def test_tokens_and_money_of_all_nodes_count_and_shorten_the_next_answer(tmp_path: Path, is_virtual: bool) -> None:
    planner, vlm = two(tmp_path, RunBudget(tokens=1000), is_virtual=is_virtual)
    planner.count_tokens(300, 200)
    vlm.count_tokens(100, 50)
    assert vlm.longest_answer(800, 150) == 200
    assert vlm.refusal(349) == ""
    assert vlm.refusal(350) == "the run's budget of 1000 tokens is spent (650 used)"
    planner, vlm = two(tmp_path / "other" if is_virtual else tmp_path, RunBudget(money=0.002), is_virtual=is_virtual)
    if is_virtual:
        planner.count_tokens(300, 200)
        vlm.count_tokens(100, 50)
    assert vlm.longest_answer(800, 100) == 500  # 0.0009 spent, 0.0001 for the prompt, 0.001 left at 2 per million
    assert planner.refusal(1100) == "the run's budget of 0.002 is spent (0.0009 used)"


def test_a_restarted_node_finds_what_the_run_has_spent(tmp_path: Path) -> None:
    planner, vlm = two(tmp_path, RunBudget(calls=2), is_virtual=False)
    planner.take_call("model")
    vlm.take_call("model")
    again, _ = two(tmp_path, RunBudget(calls=2), is_virtual=False)
    assert again.refusal() == "the run's budget of 2 calls is spent"


def test_what_the_others_have_spent_is_read_or_nothing_is_asked(tmp_path: Path) -> None:
    planner, _ = two(tmp_path, RunBudget(calls=5), is_virtual=False)
    (tmp_path / "spent-vlm.json").write_text("{")
    with FakeOpenAI(answers(WAIT)) as server:
        assert "the call cannot be noted (what others have spent is damaged" in ask(server, planner, 1)
        assert server.requests == []


def test_without_a_budget_of_the_run_nobody_looks_at_the_others(tmp_path: Path) -> None:
    planner, vlm = two(tmp_path, RunBudget(), is_virtual=False)
    vlm.take_call("model")
    (tmp_path / "spent-vlm.json").write_text("{")
    assert planner.refusal() == ""
    assert planner.longest_answer(100, 10) == 100


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"call": 3}, sentence("models.unknown_key", key="call", meant="calls")),
        ({}, sentence("models.limits_nothing")),
        ({"calls": -1}, sentence("models.no_limit_or_more", name="calls", value=-1)),
        ({"money": 1.0}, sentence("models.money_has_no_price")),
    ],
)
def test_a_runs_budget_that_is_a_mistake_is_said(table: dict[str, Any], why: str) -> None:
    with pytest.raises(UserError) as error:
        parse_budgets({"run": table}, Graph([]))
    assert str(error.value).startswith(why)
