"""A graph in virtual time: exact, ordered, repeatable, and honest about handlers that take long."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from nodes.hello import Beat
from runtime import GraphError, Node, Publisher, Simulation, every
from runtime.clock import to_ns
from runtime.coordination.health import Health
from runtime.errors import PolyrhythmError, UserError
from runtime.launch.graph import Graph, NodeSpec
from runtime.launch.tables.handler_latency import Latency
from tests.runtime.virtual.virtual_nodes import Level, Number, Plain, Source, arrivals, simulated
from tests.support.sentences import pattern, sentence


class Dice(Node):
    number = Publisher(Number, "number")

    @every(hz=30)
    def roll(self) -> None:
        self.number.publish(Number(value=self.random.random()))


def stream(seed: int) -> list[tuple[float, float]]:
    latency = {"roll": Latency.parse({"p50": 0.02, "p99": 0.2}, "dice")}
    with simulated(NodeSpec("dice", Dice, latency=latency), NodeSpec("other", Dice), seed=seed) as simulation:
        found = arrivals(simulation, "number")
        simulation.run(3)
    return found


def test_one_seed_gives_one_stream_and_another_seed_another() -> None:
    assert stream(7) == stream(7)
    assert stream(7) != stream(8)


def test_nodes_of_one_seed_have_random_numbers_of_their_own() -> None:
    with simulated(NodeSpec("dice", Dice), NodeSpec("other", Dice)) as simulation:
        found = simulation.record(Dice.number)
        simulation.run(0.01)
        assert len({number.value for number in found}) == 2


class Patient(Node):
    number = Publisher(Number, "number")

    @every(hz=0.1)
    async def wait(self) -> None:
        try:
            async with asyncio.timeout(2):
                await asyncio.sleep(3600)
        except TimeoutError:
            self.number.publish(Number(value=asyncio.get_running_loop().time()))


def test_sleeps_and_timeouts_of_asyncio_take_virtual_time_only() -> None:
    with simulated(Patient()) as simulation:
        found = arrivals(simulation, "number")
        simulation.run(3600)
        assert found[:2] == [(2.0, 2.0), (12.0, 12.0)]
        assert len(found) == 360


class Caller(Node):
    number = Publisher(Number, "number")

    @every(hz=1)
    async def call(self) -> None:
        try:
            answer = await self.clock.external(self.ask(), 0.3)
        except ConnectionError:
            answer = -1.0
        self.number.publish(Number(value=answer))

    async def ask(self) -> float:
        """Talks to the world: a real loop, real sockets, real sleeps."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"what?\n")
        answer = await reader.readline()
        writer.close()
        await writer.wait_closed()
        return float(answer)

    def __init__(self, port: int) -> None:
        self.port = port


@pytest.fixture
def server_port() -> Iterator[int]:
    """A TCP server in a thread that answers 42 to each line."""
    import socketserver
    import threading

    class Answer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            self.wfile.write(b"42\n")

    with socketserver.TCPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_the_world_answers_while_virtual_time_stands_still(server_port: int) -> None:
    with simulated(Caller(server_port)) as simulation:
        found = arrivals(simulation, "number")
        simulation.run(2)
        assert found == [(0.3, 42.0), (1.3, 42.0)]


def test_the_worlds_failure_arrives_at_its_virtual_time_too() -> None:
    with simulated(Caller(1)) as simulation:
        found = arrivals(simulation, "number")
        simulation.run(1)
        assert found == [(0.3, -1.0)]


class Finisher(Node):
    @every(hz=1)
    def tick(self) -> None:
        if self.clock.now_ns() >= to_ns(3):
            self.finish(ok=False, reason="three seconds are enough")
            self.finish(ok=True, reason="the first word counts")


def test_a_node_can_finish_the_run() -> None:
    with simulated(Finisher(), Source()) as simulation:
        simulation.run(100)
        assert simulation.outcome == (False, "three seconds are enough")
        assert simulation.clock.now_ns() == to_ns(3)


def test_a_condition_can_end_a_run() -> None:
    source = Source()
    with simulated(source) as simulation:
        simulation.run(until=lambda: source.count == 5)
        assert simulation.clock.now_ns() == to_ns(0.4)


class Failing(Node):
    @every(hz=10)
    def tick(self) -> None:
        if self.clock.now_ns() >= to_ns(0.5):
            raise ValueError("no such cup")


class FailingLater(Node):
    @every(hz=1)
    async def think(self) -> None:
        await self.clock.sleep(0.5)
        raise ValueError("no such cup")


@pytest.mark.parametrize(
    ("node", "place"),
    [
        (Failing(), "in failing.tick at 0.500 s of virtual time"),
        (FailingLater(), "in failinglater.think at 0.500 s of virtual time"),
    ],
)
def test_an_exception_ends_the_run_and_names_node_handler_and_time(node: Node, place: str) -> None:
    with simulated(node) as simulation:
        with pytest.raises(ValueError, match="no such cup") as caught:
            simulation.run(2)
        assert caught.value.__notes__ == [place]


class Stubborn(Node):
    def __init__(self) -> None:
        self.said: list[str] = []

    def on_start(self) -> None:
        self.said.append("start")

    def on_stop(self) -> None:
        self.said.append("stop")

    @every(hz=1)
    async def wait(self) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            self.said.append("cancelled")


def test_close_cancels_what_waits_and_stops_the_nodes_once() -> None:
    node = Stubborn()
    simulation = Simulation(node)
    simulation.run(5)
    simulation.close()
    simulation.close()
    assert node.said == ["start", "cancelled", "stop"]


def test_a_simulation_that_never_ran_closes_silently() -> None:
    node = Stubborn()
    Simulation(node).close()
    assert node.said == []


class Threaded(Node):
    @every(hz=1)
    async def think(self) -> None:
        await asyncio.to_thread(print)


def test_a_thread_is_refused_in_virtual_time() -> None:
    refusal = pytest.raises(PolyrhythmError, match=pattern("runtime.mark_it_blocking"))
    with simulated(Threaded()) as simulation, refusal:
        simulation.run(1)


def test_a_message_from_outside_reaches_its_listeners() -> None:
    with simulated(Plain()) as simulation:
        numbers = simulation.record(Plain.number)
        simulation.publish("level", Level(value=9))
        simulation.run(0.1)
        assert numbers == [Number(value=9)]


class Early(Node):
    """Publishes before its first handler."""

    level = Publisher(Level, "level")

    def on_start(self) -> None:
        self.level.publish(Level(value=1))


def test_what_is_published_in_on_start_is_heard_by_nodes_that_start_later() -> None:
    listener = Plain()
    with simulated(Early(), listener) as simulation:
        simulation.run(0.1)
        assert listener.level.delivered == 1


def test_two_nodes_of_one_name_are_refused_in_words() -> None:
    with pytest.raises(GraphError) as caught:
        Simulation(Source(), Source())
    assert str(caught.value) == sentence("runtime.two_of_a_name", name="source")


@pytest.mark.parametrize("given", [[Source()], Source], ids=["a list of nodes", "a class"])
def test_what_is_no_node_is_refused_in_words(given: Any) -> None:
    with pytest.raises(GraphError, match=pattern("runtime.no_node")):
        Simulation(given)


def test_received_is_delivered_and_dropped_and_waiting_in_every_health_message() -> None:
    slow = NodeSpec("slow", Plain, latency={"take": Latency.parse([0.05, 0.5], "slow")})
    with simulated(Source(), slow, health_hz=5) as simulation:
        found = simulation.record_topic("health/slow", Health)
        simulation.run(20)
        assert len(found) == 99
        for health in found:
            for port in health.ports:
                assert port.received == port.delivered + sum(port.dropped.values()) + port.waiting


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Simulation(Dice(), seed="x"), sentence("runtime.seed_of_simulation", given="'x'")),  # type: ignore[arg-type]
        (lambda: Simulation(Dice(), seed=True), sentence("runtime.seed_of_simulation", given="True")),
        (lambda: Simulation(Dice(), seed=1.5), sentence("runtime.seed_of_simulation", given="1.5")),  # type: ignore[arg-type]
        (lambda: Simulation(Dice(), health_hz=-1), sentence("runtime.health_hz_of_simulation", given="-1")),
        (lambda: Graph(None), sentence("runtime.graph_of_a_list", given="None")),  # type: ignore[arg-type]
        (lambda: Graph("dice"), sentence("runtime.graph_of_a_list", given="'dice'")),  # type: ignore[arg-type]
        (lambda: Graph(Dice()), sentence("runtime.graph_of_a_list", given="dice")),  # type: ignore[arg-type]
    ],
)
def test_what_is_made_wrongly_is_a_sentence(made: Any, words: str) -> None:
    with pytest.raises(UserError) as refusal:
        made()
    assert str(refusal.value) == words


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda simulation: simulation.record("number"), sentence("runtime.record_port")),
        (lambda simulation: simulation.record("numbre"), sentence("runtime.record_nothing")),
        (lambda simulation: simulation.record_topic(Dice.number, Number), sentence("runtime.name_not_port")),
        (lambda simulation: simulation.record_topic("number", "Number"), sentence("runtime.class_of_messages")),
        (lambda simulation: simulation.publish("number", {}), sentence("runtime.publish_message")),
        (lambda simulation: simulation.publish("number", Beat(count=1)), sentence("runtime.publish_type")),
        (lambda simulation: simulation.publish("numbre", Number(value=1.0)), sentence("runtime.publish_nowhere")),
        (lambda simulation: simulation.latest(3), sentence("runtime.latest_name")),
        (lambda simulation: simulation.latest("numbre"), sentence("runtime.topic_of_nobody", do="latest")),
        (lambda simulation: simulation.latest_stamped("numbre"), sentence("runtime.topic_of_nobody", do="latest")),
        (
            lambda simulation: simulation.record_topic("numbre", Number),
            sentence("runtime.topic_of_nobody", do="record_topic"),
        ),
        (lambda simulation: simulation.record_topic("number", Beat), sentence("runtime.record_topic_type")),
        (lambda simulation: simulation.observe(None), sentence("runtime.observe_function")),
        (lambda simulation: simulation.run(until=5), sentence("runtime.until_seconds")),
        (lambda simulation: simulation.run("5"), sentence("runtime.run_seconds")),
        (lambda simulation: simulation.run(float("nan")), sentence("runtime.run_nan")),
        (lambda simulation: simulation.run(-1), sentence("runtime.run_negative")),
    ],
)
def test_what_a_simulation_is_asked_wrongly_is_a_sentence_with_what_to_write(asked: Any, words: str) -> None:
    with simulated(Dice()) as simulation:
        with pytest.raises(UserError) as refusal:
            asked(simulation)
        assert str(refusal.value) == words
        simulation.run(0.1)
        assert simulation.latest("number") is not None, "and it goes on"
