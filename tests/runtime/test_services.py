"""Services and goals in virtual time: typed answers, deadlines, several clients, cancels by client and by interrupt."""

from __future__ import annotations

import asyncio
import re
import sys
import types
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runtime import (
    CallError,
    GoalClient,
    GoalHandle,
    GoalServer,
    Message,
    Node,
    ServiceClient,
    ServiceServer,
    Simulation,
    every,
    serve,
)
from runtime import run as run_in_real_time
from runtime.context import current_call
from runtime.errors import GraphError, PolyrhythmError, UserError
from runtime.launch.graph import Graph, NodeSpec
from runtime.launch.process_plan import load_type, type_name
from runtime.services import GoalRequest, GoalUpdate, ServiceAnswer, ServiceRequest
from tests.support.sentences import pattern, sentence
from tests.support.served_nodes import (
    Adder,
    AddTwo,
    Asker,
    BlockingAdder,
    Commander,
    Counted,
    Counter,
    CountTo,
    Done,
    Story,
    Sum,
    Told,
)


def told(*nodes: Node | NodeSpec, seconds: float = 5.0) -> list[str]:
    """What the clients of these nodes tell of their calls."""
    simulation = Simulation(*nodes)
    found = simulation.record_topic("told", Told)
    try:
        simulation.run(seconds)
    finally:
        simulation.close()
    return [f"{one.by} {one.what}" for one in found]


@pytest.mark.parametrize("adder", [Adder(), BlockingAdder()])
def test_two_clients_at_once_each_get_their_own_answers(adder: Node) -> None:
    one, other = NodeSpec("one", Asker, {"numbers": [1, 2]}), NodeSpec("other", Asker, {"numbers": [5, 6]})
    assert told(adder, one, other) == ["one 1: 11", "other 5: 15", "one 2: 12", "other 6: 16"]


def test_a_refusal_is_an_answer_with_its_reason() -> None:
    assert told(Adder(), Asker((-1, 2))) == ["asker -1: refused", "asker 2: 12"]


class Curious(Node):
    add = ServiceClient(AddTwo, Sum, "add", deadline_s=1.0)

    def __init__(self, number: int) -> None:
        self.number = number
        self.problem: CallError | None = None
        self.age_ns = 0

    @every(hz=0.01)
    async def ask(self) -> None:
        try:
            await self.add.call(AddTwo(a=self.number, b=0))
        except CallError as problem:
            self.problem = problem


def run(*nodes: Node, seconds: float = 5.0) -> None:
    simulation = Simulation(*nodes)
    try:
        simulation.run(seconds)
    finally:
        simulation.close()


def test_a_deadline_that_passes_is_told_and_the_late_answer_is_ignored() -> None:
    client = Curious(3)
    run(Adder("sleeps"), client, seconds=2.0)
    assert client.problem is not None
    assert client.problem.code == "deadline"
    assert str(client.problem) == "service 'add' of curious got no answer: nothing within 1 s"
    assert client.add.late == 0
    run(Adder("sleeps"), client := Curious(3), seconds=4.0)
    assert client.add.late == 1


def test_a_request_whose_deadline_has_passed_is_not_served_any_more() -> None:
    adder = Adder("sleeps")
    one, other = NodeSpec("one", Asker, {"numbers": [4]}), NodeSpec("other", Asker, {"numbers": [1]})
    assert told(adder, one, other, seconds=9.0) == ["one 4: deadline", "other 1: deadline"]
    assert adder.served == [4]


def test_a_refusal_says_who_asked_what_and_why() -> None:
    client = Curious(-1)
    run(Adder(), client)
    assert str(client.problem) == "service 'add' of curious was refused: no number below 0"


def test_a_server_that_answers_with_another_type_fails_and_its_client_hears_it() -> None:
    client = Curious(1)
    with pytest.raises(TypeError, match=pattern("runtime.serves_another_type", type="AddTwo")):
        run(Adder("lies"), client)


class Enormous(Node):
    """Answers with what no message can carry."""

    add = ServiceServer(AddTwo, Sum, "add")

    @serve(add)
    def answer(self, request: AddTwo) -> Sum:
        return Sum(total=1 << 70)


def test_a_client_hears_of_an_answer_that_cannot_be_sent_and_does_not_wait_for_it() -> None:
    simulation = Simulation(Enormous(), Curious(1))
    answers = simulation.record_topic("add/answer", ServiceAnswer.of(Sum))
    with pytest.raises(PolyrhythmError, match="does not fit"):
        simulation.run(seconds=3.0)
    simulation.close()
    assert [one.code for one in answers] == ["failed"]


class Aging(Node):
    """Answers with what an image of time 1 s says."""

    add = ServiceServer(AddTwo, Sum, "add")

    @serve(add)
    def answer(self, request: AddTwo) -> Sum:
        call = current_call.get()
        assert call is not None
        call.origins = {"utterance": 5}
        return Sum(total=0)


class Watching(Curious):
    @every(hz=0.01)
    async def ask(self) -> None:
        await self.add.call(AddTwo(a=1, b=0))
        call = current_call.get()
        assert call is not None
        self.age_ns = call.origins["utterance"]


def test_what_a_client_does_with_an_answer_is_as_old_as_the_answer() -> None:
    client = Watching(1)
    run(Aging(), client)
    assert client.age_ns == 5


def test_a_goal_gives_feedback_and_a_result() -> None:
    assert told(Counter(), Commander(), Story(number=3)) == [
        "commander so far 1", "commander so far 2", "commander so far 3", "commander done 3",
    ]  # fmt: skip


def test_a_goal_is_refused() -> None:
    assert told(Counter(), Commander(), Story(number=-5)) == ["commander refused"]


def test_a_client_cancels_its_goal() -> None:
    counter = Counter()
    assert told(counter, Commander(), Story("cancel"))[-2:] == ["commander so far 5", "commander cancelled"]
    assert counter.ended == ["cancelled"]


def test_an_interrupt_that_fences_the_clients_seat_ends_its_goal_and_the_next_one_is_served() -> None:
    counter, story = Counter(), Story("interrupt")
    simulation = Simulation(counter, Commander(), story)
    updates = simulation.record_topic("count/answer", Message)
    simulation.run(1.2)
    assert counter.ended == ["cancelled"]
    assert [(one.code, one.problem) for one in _typed(updates)][-1] == ("cancelled", "by an interrupt")
    story.number = 2
    simulation.run(3.0)
    simulation.close()
    assert counter.ended == ["cancelled", "reached"]


def _typed(messages: list[Message]) -> list[Any]:
    return list(messages)


def test_a_goal_whose_client_is_gone_is_ended_by_the_fence_all_the_same() -> None:
    """The client's own cancel is not waited for: here it never comes."""
    counter = Counter()
    story = Story("wait")
    simulation = Simulation(counter, Commander(), story)
    simulation.run(0.55)
    simulation.bound_nodes["commander"].fence = type(simulation.bound_nodes["commander"].fence)()  # hears of no fence
    story.fence.publish(_fence())
    simulation.run(0.01)
    simulation.close()
    assert counter.ended == ["cancelled"]


def _fence() -> Any:
    from runtime.coordination.fence import Fence

    return Fence(epochs={"policy": 1}, interrupt_id="i", depth="stop")


def test_a_goal_without_a_word_for_too_long_is_given_up() -> None:
    class Mute(Node):
        count = GoalServer(CountTo, Counted, Done, "count")
        ended = False

        @serve(count)
        async def go(self, run: GoalHandle[CountTo, Counted]) -> Done:
            try:
                await self.clock.sleep(100)
            finally:
                self.ended = True
            return Done(number=0)

    mute = Mute()
    assert told(mute, Commander(), Story(), seconds=2.0) == ["commander deadline"]
    assert mute.ended, "the server is told to give the goal up"


def test_a_goal_ends_a_moment_after_its_deadline_where_its_client_is_gone() -> None:
    counter = Counter()
    simulation = Simulation(counter)
    answers = simulation.record_topic("count/answer", Message)
    start = GoalRequest.of(CountTo)(id="gone/1", do="start", until_ns=1_000_000_000, goal=CountTo(number=100))
    simulation.publish("count/request", start)
    simulation.run(1.05)
    assert counter.ended == []
    simulation.run(0.1)
    simulation.publish("count/request", msgspec.structs.replace(start, id="gone/2", until_ns=9_000_000_000))
    simulation.run(0.5)
    simulation.close()
    ended = [(one.code, one.problem) for one in _typed(answers) if one.code not in ("accepted", "running")]
    assert ended[0] == ("cancelled", "at its deadline")
    assert counter.ended[0] == "cancelled"
    assert _typed(answers)[-1].id == "gone/2", "the next one is served"


def test_a_second_goal_waits_for_the_first_and_may_be_cancelled_before_its_turn() -> None:
    counter = Counter()
    one, other = NodeSpec("one", Commander), NodeSpec("other", Commander, {}, {"stop": "no_stop"})
    simulation = Simulation(counter, one, other)
    found = simulation.record_topic("told", Told)
    simulation.publish("go", _go(4))
    simulation.run(0.1)
    simulation.publish("stop", Told(by="", what=""))
    simulation.run(3.0)
    simulation.close()
    ends = [f"{one.by} {one.what}" for one in found if "so far" not in one.what]
    assert ends == ["one cancelled", "other done 4"]


def _go(number: int) -> Any:
    from tests.support.served_nodes import Go

    return Go(number=number)


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (ServiceRequest.of(AddTwo), "AddTwo_Request"),
        (ServiceAnswer.of(Sum), "Sum_Answer"),
        (GoalRequest.of(CountTo), "CountTo_Goal"),
        (GoalUpdate.of(Counted, Done), "Done_Update"),
    ],
)
def test_any_process_finds_the_messages_of_a_call_by_their_name(made: type[Message], name: str) -> None:
    assert made.__name__ == name
    assert load_type(type_name(made)) is made


def test_the_graph_shows_a_service_as_its_two_topics_and_each_end_of_a_goal_once() -> None:
    graph = Graph([NodeSpec("adder", Adder), NodeSpec("asker", Asker)])
    graph.check()
    assert graph.draw().splitlines()[:4] == [
        "add/answer  [Sum_Answer, event]",
        "    adder -> asker",
        "add/request  [AddTwo_Request, event]",
        "    asker -> adder",
    ]
    goal = Graph([NodeSpec("counter", Counter), NodeSpec("commander", Commander)])
    assert "count/request  [CountTo_Goal, event]\n    commander -> counter\n" in goal.draw()
    assert goal.draw_mermaid().count("commander -- count/request --> counter") == 1


def test_a_service_without_a_server_and_one_with_two_are_told_before_the_start() -> None:
    with pytest.raises(
        GraphError,
        match=f"service {pattern('runtime.nobody_publishes', name='add', node='asker')}; "
        f"{pattern('runtime.add_a_server')}",
    ):
        Graph([NodeSpec("asker", Asker)]).check()
    with pytest.raises(GraphError, match=r"service 'add': one, two all serve it; one service has one server: remap"):
        Graph([NodeSpec("one", Adder), NodeSpec("two", Adder)]).check()


class Unserved(Node):
    add = ServiceServer(AddTwo, Sum, "add")


def test_a_server_that_no_method_serves_is_told() -> None:
    with pytest.raises(GraphError, match=pattern("runtime.nothing_serves", node="Unserved", name="add", service="add")):
        Graph([NodeSpec("unserved", Unserved)]).check()


class TakesNothing(Node):
    add = ServiceServer(AddTwo, Sum, "add")

    @serve(add)  # type: ignore[arg-type]  # mypy says so, too
    def answer(self) -> Sum:
        return Sum(total=0)


class TakesAnother(Node):
    add = ServiceServer(AddTwo, Sum, "add")

    @serve(add)  # type: ignore[arg-type]  # mypy says so, too
    def answer(self, request: Sum) -> Sum:
        return request


class TakesTheGoal(Node):
    count = GoalServer(CountTo, Counted, Done, "count")

    @serve(count)  # type: ignore[arg-type]  # mypy says so, too
    async def go(self, goal: CountTo) -> Done:
        return Done(number=goal.number)


class MadeTooLate(Node):
    def __init__(self) -> None:
        self.add = ServiceClient(AddTwo, Sum, "add")


@pytest.mark.parametrize(
    ("cls", "told"),
    [
        (
            TakesNothing,
            sentence(
                "runtime.serving_takes",
                taken="(self)",
                service="add",
                what="request",
                remedy="answer(self, request: AddTwo)`",
            ),
        ),
        (
            TakesAnother,
            sentence(
                "runtime.serving_annotates",
                name="request",
                type="Sum",
                service="add",
                what="request",
                remedy="answer(",
            ),
        ),
        (
            TakesTheGoal,
            sentence(
                "runtime.serving_annotates",
                name="goal",
                type="CountTo",
                service="count",
                what="goal",
                remedy="go(self, goal: GoalHandle[CountTo, Counted])`",
            ),
        ),
        (
            MadeTooLate,
            sentence("runtime.nobody_connects", name="add", value="ServiceClient('add')", type="ServiceClient"),
        ),
    ],
)
def test_a_server_or_client_that_cannot_work_is_told_before_the_start(cls: type[Node], told: str) -> None:
    with pytest.raises(GraphError, match=re.escape(told)):
        Graph([NodeSpec("it", cls)]).check()


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), "5", True])
def test_a_time_that_is_none_is_refused_where_it_stands_and_at_the_call(seconds: Any) -> None:
    told = rf"ServiceClient\('add'\): deadline_s is {seconds!r}; {pattern('runtime.positive_seconds')}"
    with pytest.raises(UserError, match=told):
        ServiceClient(AddTwo, Sum, "add", deadline_s=seconds)
    with pytest.raises(UserError, match=told):
        asyncio.run(Curious(1).add.call(AddTwo(a=1, b=2), deadline_s=seconds))
    with pytest.raises(UserError, match=r"GoalClient\('count'\): silence_s is"):
        GoalClient(CountTo, Counted, Done, "count", silence_s=seconds)


def test_a_call_with_another_message_and_one_on_the_class_are_refused() -> None:
    with pytest.raises(TypeError, match=r"ServiceClient\('add'\) of curious takes AddTwo, not Sum"):
        asyncio.run(Curious(1).add.call(Sum(total=1)))  # type: ignore[arg-type]  # mypy says so, too
    with pytest.raises(UserError, match=r"ServiceClient 'add' is a declaration; make it on the class of a node"):
        asyncio.run(Curious.add.call(AddTwo(a=1, b=2)))


class Plainly(Node):
    """Asks in handlers that cannot wait."""

    add = ServiceClient(AddTwo, Sum, "add")
    count = GoalClient(CountTo, Counted, Done, "count")

    def __init__(self, way: str) -> None:
        self.way = way

    def asked(self) -> Any:
        return self.add.call(AddTwo(a=1, b=2))

    def on_start(self) -> None:
        if self.way == "on_start":
            self.asked()

    @every(hz=1)
    def tick(self) -> None:
        if self.way == "plain":
            print(self.add.call(AddTwo(a=1, b=2)).total)  # type: ignore[attr-defined]  # mypy says so, too
        elif self.way == "unused":
            self.asked()
        elif self.way == "asyncio.run":
            asyncio.run(self.asked())
        elif self.way == "goal":
            self.count.call(CountTo(number=1))  # type: ignore[unused-coroutine]  # mypy says so, too

    @every(hz=1, blocking=True)
    def work(self) -> None:
        if self.way == "blocking":
            asyncio.run(self.asked())


@pytest.mark.parametrize("way", ["on_start", "plain", "unused", "asyncio.run", "goal", "blocking"])
def test_a_handler_that_cannot_wait_for_an_answer_is_told_what_to_write(way: str) -> None:
    name = {"on_start": "on_start", "blocking": "work"}.get(way, "tick")
    does, attribute = ("sets the goal 'count'", "count") if way == "goal" else ("calls the service 'add'", "add")
    handler = rf"Plainly\.{name} \(test_services\.py:\d+\)"
    told = pattern("runtime.cannot_wait", handler=handler, does=does, name=attribute)
    with pytest.raises(UserError, match=rf"^{told}"):
        run(Plainly(way), Adder())


def test_in_real_time_that_is_a_sentence_in_the_log_and_at_the_end_and_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handler = r"Plainly\.tick \(test_services\.py:\d+\)"
    why = pattern("runtime.cannot_wait", handler=handler, does="calls the service 'add'", name="add")
    told = pattern("runtime.handlers_failed", node="plainly", times=1, place=f"tick: {why}")
    with pytest.raises(PolyrhythmError, match=told):
        run_in_real_time(Plainly("plain"), Adder(), Counter(), seconds=0.02)
    [line] = [one for one in caplog.records if "handler tick failed" in one.getMessage()]
    assert "failed: Plainly.tick (" in line.getMessage()
    assert line.exc_info is None


class Indirect(Node):
    """Asks by ways that do wait in the end."""

    add = ServiceClient(AddTwo, Sum, "add")
    count = GoalClient(CountTo, Counted, Done, "count")

    def __init__(self) -> None:
        self.sums: list[int] = []

    def asked(self, number: int) -> Any:
        return self.add.call(AddTwo(a=number, b=number))

    @every(hz=0.01)
    async def tick(self) -> None:
        both = await asyncio.gather(*map(self.asked, (1, 2)))
        task = asyncio.create_task(self.add.call(AddTwo(a=3, b=3)))
        self.sums = [one.total for one in (*both, await task)]
        with pytest.raises(UserError, match=pattern("runtime.feedback_not_awaited", name="show")):
            await self.count.call(CountTo(number=1), feedback=self.show)  # type: ignore[arg-type]  # mypy says so

    async def show(self, counted: Counted) -> None: ...


def test_a_call_that_a_helper_makes_for_an_async_handler_is_right() -> None:
    client = Indirect()
    run(client, Adder(), Counter())
    assert client.sums == [2, 4, 6]


class Forgetful(Node):
    add = ServiceServer(AddTwo, Sum, "add")

    @serve(add)
    def answer(self, request: AddTwo) -> Sum:
        return None  # type: ignore[return-value]  # mypy says so, too


def test_a_server_that_answers_nothing_is_told_to_return_it() -> None:
    told = pattern("runtime.serves_another_type", type="NoneType") + pattern("runtime.end_with_a_return")
    with pytest.raises(TypeError, match=rf"Forgetful\.{told}"):
        run(Forgetful(), Curious(1))


def test_what_cannot_serve_is_refused_where_it_stands() -> None:
    with pytest.raises(UserError, match=pattern("runtime.goal_is_async")):

        class Plain(Node):
            count = GoalServer(CountTo, Counted, Done, "count")

            @serve(count)  # type: ignore[arg-type]  # mypy says so, too
            def go(self, run: GoalHandle[CountTo, Counted]) -> Done:
                return Done(number=0)

    with pytest.raises(UserError, match=pattern("runtime.serve_takes_a_server", value=r"ServiceClient\('add'\)")):
        serve(ServiceClient(AddTwo, Sum, "add"))  # type: ignore[call-overload]  # mypy says so, too
    with pytest.raises(GraphError, match=r"topic 'Add Two/request' is no topic name"):
        ServiceServer(AddTwo, Sum, "Add Two")
    with pytest.raises(UserError, match=r"ServiceServer\(dict, \.\.\.\): dict is no message; expected a subclass"):
        ServiceServer(dict, Sum, "add")  # type: ignore[type-var]


def test_the_nodes_of_the_page_run_as_they_stand_there(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "services-and-goals.md"
    room = types.ModuleType("services_of_the_page")
    monkeypatch.setitem(sys.modules, room.__name__, room)  # messages look their types up in their module
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, str(page), "exec"), vars(room))
    names = vars(room)
    simulation = Simulation(*(names[name]() for name in ("Adder", "Asker", "Base", "Planner")))
    caplog.set_level("INFO")
    simulation.publish("target", names["DriveTo"](x_m=0.2))
    simulation.run(1.0)
    simulation.close()
    said = [record.message for record in caplog.records]
    assert said == ["0.1 m to go", "1 + 2 = 3", "0.0 m to go", "arrived at 0.2 m"]


def test_a_method_that_serves_is_called_by_a_test_as_it_is() -> None:
    assert BlockingAdder().answer(AddTwo(a=1, b=2)) == Sum(total=3)
