"""asyncio in nodes takes virtual time, and the world outside is waited for while time stands still."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import openai
import pytest

from runtime import Message, Node, Publisher, Simulation, Subscription, every, on
from runtime.coordination.fence import Fence
from runtime.virtual.pytest_plugin import Simulate

pytestmark = pytest.mark.processes


class Word(Message):
    text: str


class Speaker(Node):
    """Publishes a word with the virtual time, in milliseconds."""

    word = Publisher(Word, "word")

    def say(self, text: object) -> None:
        self.word.publish(Word(text=f"{self.clock.now_ns() // 1_000_000} {text}"))


def said(simulation: Simulation, seconds: float = 5) -> list[str]:
    words = simulation.record_topic("word", Word)
    simulation.run(seconds)
    return [word.text for word in words]


class Toolbox(Speaker):
    @every(hz=0.01)
    async def use(self) -> None:
        queue: asyncio.Queue[int] = asyncio.Queue(1)
        event, lock = asyncio.Event(), asyncio.Lock()

        async def fill() -> None:
            for number in range(3):
                await asyncio.sleep(0.1)
                await queue.put(number)
            event.set()

        async def empty() -> list[int]:
            return [await queue.get() for _ in range(3)]

        filling = asyncio.create_task(fill())
        self.say(await empty())
        await event.wait()
        await filling
        self.say(await asyncio.gather(asyncio.sleep(0.2, "a"), asyncio.sleep(0.1, "b")))
        try:
            await asyncio.wait_for(asyncio.sleep(60), 1)
        except TimeoutError:
            self.say("timeout")
        async with lock, asyncio.timeout(10):
            await asyncio.sleep(0.5)
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0.25))
            group.create_task(asyncio.sleep(0.75))
        self.say(asyncio.get_running_loop().time())


def test_queues_events_locks_groups_and_timeouts_take_virtual_time(simulate: Simulate) -> None:
    assert said(simulate(Toolbox())) == ["300 [0, 1, 2]", "500 ['a', 'b']", "1500 timeout", "2750 2.75"]


class Asker(Speaker):
    """Asks the world, whose answer really takes a while."""

    def __init__(self, name: str, really_s: float, latency_s: float, fails: bool = False) -> None:
        self.answer, self.really_s, self.latency_s, self.fails = name, really_s, latency_s, fails

    @every(hz=0.01)
    async def ask(self) -> None:
        try:
            self.say(await self.clock.external(self.world(), self.latency_s))
        except ConnectionError:
            self.say(f"{self.answer} failed")

    async def world(self) -> str:
        await asyncio.sleep(self.really_s)
        if self.fails:
            raise ConnectionError("gone")
        return self.answer


class A(Asker):
    word = Publisher(Word, "word")


class B(Asker):
    word = Publisher(Word, "word")


def test_answers_come_by_their_latency_and_then_by_their_call_never_by_the_worlds_own_haste(simulate: Simulate) -> None:
    assert said(simulate(A("a", 0.05, 0.3), B("b", 0.0, 0.3))) == ["300 a", "300 b"]
    assert said(simulate(A("a", 0.05, 0.3), B("b", 0.0, 0.2))) == ["200 b", "300 a"]


def test_a_failure_of_one_call_leaves_the_other_alone(simulate: Simulate) -> None:
    assert said(simulate(A("a", 0.0, 0.3, fails=True), B("b", 0.0, 0.4))) == ["300 a failed", "400 b"]


class Guarding(Node):
    fence = Publisher(Fence, "fence")

    @every(hz=4)
    def tick(self) -> None:
        if self.clock.now_ns() == 250_000_000:
            self.fence.publish(Fence(epochs={"planner": 1}))


class Planner(Asker):
    seat = "planner"
    word = Publisher(Word, "word")

    async def world(self) -> str:
        return "answer"


def test_an_answer_that_a_fence_cancels_on_its_way_is_never_said(simulate: Simulate) -> None:
    assert said(simulate(Planner("p", 0, 0.2), Guarding())) == ["200 answer"]
    assert said(simulate(Planner("p", 0, 0.3), Guarding())) == []


class Timed(Asker):
    @every(hz=0.01)
    async def ask(self) -> None:
        try:
            self.say(await asyncio.wait_for(self.clock.external(self.world(), self.latency_s), 1.0))
        except TimeoutError:
            self.say("too late")


def test_a_timeout_counts_the_declared_latency_and_not_the_worlds_time(simulate: Simulate) -> None:
    assert said(simulate(Timed("x", 0.05, 0.9))) == ["900 x"]
    assert said(simulate(Timed("x", 0.0, 1.1))) == ["1000 too late"]


@pytest.fixture
def url() -> Iterator[str]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the library's name
            self.send_response(200)
            body = b'{"object": "list", "data": [{"id": "42", "object": "model", "created": 1, "owned_by": "me"}]}'
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


class Browser(Speaker):
    def __init__(self, url: str) -> None:
        self.url = url

    @every(hz=1)
    async def fetch(self) -> None:
        self.say(await self.clock.external(self.get(), 0.25))

    async def get(self) -> str:
        async with openai.AsyncOpenAI(base_url=self.url, api_key="none", timeout=60.0, max_retries=0) as client:
            return (await client.models.list()).data[0].id


def test_an_http_client_gets_its_answers_and_does_not_time_out(simulate: Simulate, url: str) -> None:
    found = said(simulate(Browser(url)), seconds=20)
    assert found == [f"{second * 1000 + 250} 42" for second in range(20)]


class Chain(Node):
    """Passes a word on at once; ten in a row take no time."""

    word_in = Subscription(Word, "in")
    word_out = Publisher(Word, "out")

    @on(word_in)
    def pass_on(self, word: Word) -> None:
        self.word_out.publish(word)


def test_time_passes_only_when_no_message_is_in_flight(simulate: Simulate) -> None:
    from runtime.launch.graph import NodeSpec

    nodes = [
        NodeSpec(f"chain{number}", Chain, remap={"in": f"hop{number}", "out": f"hop{number + 1}"})
        for number in range(10)
    ]
    simulation = simulate(*nodes)
    times: list[int] = []
    simulation.observe(lambda _: times.append(simulation.clock.now_ns()))
    simulation.run(0.5)
    simulation.publish("hop0", Word(text="x"))
    simulation.run(0.5)
    assert times == [500_000_000] * 11
