"""What a test asks of a `Simulation`: each wrong request is a sentence, as on the command line.

Each function returns, or raises UserError that says what was given, what was expected and what to write.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from runtime.coordination.fence import FENCE_TOPIC
from runtime.coordination.lease import LEASE_TOPIC
from runtime.errors import UserError
from runtime.launch.given import expect, is_by_name, is_of, shown
from runtime.launch.graph import Graph
from runtime.launch.one_file import check_seconds, check_seed
from runtime.launch.tables.budgets_table import Budgets
from runtime.launch.tables.links_table import LinkModel
from runtime.launch.tables.seats_table import SeatTable
from runtime.message import Message
from runtime.ports import Publisher, Subscription, check_topic
from runtime.qos import is_number
from runtime.serialization.toml_errors import guess
from runtime.virtual.trace import MessageTrace


def check_port(port: object, graph: Graph) -> None:
    """Of `record`: a port, as `Talker.beat`, and not a topic's name."""
    if isinstance(port, Publisher | Subscription):
        return
    topic = graph.topics.get(port) if isinstance(port, str) else None
    if topic is not None:
        end = (topic.publishers + topic.subscribers)[0]
        declared = f"{graph.nodes[end.node].cls.__name__}.{end.port.attribute}"
        raise UserError(f"record({port!r}): expected a port and not its topic's name; write record({declared})")
    known = f"; {guess(port, graph.topics)}" if isinstance(port, str) else ""
    raise UserError(f"record({shown(port)}): expected a port of a node, as in record(Talker.beat){known}")


def check_name(topic: object, do: str) -> str:
    """A topic's name."""
    if isinstance(topic, Publisher | Subscription):
        raise UserError(
            f"{do}({topic!r}, ...): expected a topic's name and not its port; write {do}({topic.topic!r}, ...)"
        )
    if not isinstance(topic, str):
        raise UserError(f"{do}({shown(topic)}): expected a topic's name, like 'beat'")
    return check_topic(topic)


def check_topic_of(topic: object, do: str, graph: Graph, told: Collection[str] = ()) -> str:
    """The name of a topic that the graph has, or on which something was published (`told`)."""
    name = check_name(topic, do)
    if name not in told and not _may_carry(graph, name):
        raise UserError(f"{do}({name!r}, ...): no node of this graph has this topic; {guess(name, graph.topics)}")
    return name


def _may_carry(graph: Graph, topic: str) -> bool:
    return topic in graph.types or graph.is_recorded or topic in (FENCE_TOPIC, LEASE_TOPIC)


def check_type(message: object, do: str, declared: type[Message] | None = None) -> None:
    """A class of messages, which is that of the topic where one is declared, or above it."""
    if not (isinstance(message, type) and issubclass(message, Message)):
        raise UserError(f"{do}(..., {shown(message)}): expected a class of messages, like Beat")
    if declared is not None and not issubclass(declared, message):
        raise UserError(f"{do}(..., {message.__name__}): the topic's type is {declared.__name__}")


def check_start(seed: object, health_hz: object, links: object, seats: object, budgets: object, trace: object) -> None:
    """Of `Simulation` itself."""
    check_seed("Simulation", seed)
    call = "Simulation(..., {}".format
    expect(call("health_hz"), health_hz, lambda hz: is_number(hz) and 0 <= hz < math.inf, "Hz, 0 for none")
    expect(call("links"), links, lambda value: is_of(value, LinkModel), "a list of LinkModel, () for none")
    in_python = "; in Python give them to graph: Simulation(graph(A(), B(), seats={'planner': ['a', 'b']}))"
    tables = "the seats of a launch file by name" + in_python
    expect(
        call("seats"),
        seats,
        lambda value: value is None or is_by_name(value, lambda one: isinstance(one, SeatTable)),
        tables,
    )
    expect(call("budgets"), budgets, (Budgets, type(None)), "the Budgets of a launch file, or None")
    expect(call("trace"), trace, (MessageTrace, type(None)), "a MessageTrace(), or None")


def check_message(topic: object, message: object, graph: Graph) -> None:
    """Of `publish`: a message of the type of a topic that the graph has, or that nobody in it hears."""
    name = check_name(topic, "publish")
    declared = graph.types.get(name)
    if not isinstance(message, Message):
        named = declared.__name__ if declared is not None else "Beat"
        raise UserError(
            f"publish({name!r}, {shown(message)}): expected a message, as in publish({name!r}, {named}(...))"
        )
    if declared is not None and type(message) is not declared:
        raise UserError(
            f"publish({name!r}, ...): the topic's type is {declared.__name__}, not {type(message).__name__}"
        )
    check_topic_of(name, "publish", graph)


def check_span(seconds: object, until: object) -> None:
    """Of `run`: a length of time, and a function that says when to end."""
    check_seconds(seconds)
    if until is not None and not callable(until):
        how = f"for {until} s write run(seconds={until})" if is_number(until) else "as in run(until=lambda: beats)"
        raise UserError(f"run(until={shown(until)}): expected a function that returns whether to end; {how}")


def check_function(observer: object) -> None:
    """Of `observe`: a function that takes a message with its envelope."""
    if not callable(observer):
        raise UserError(f"observe({shown(observer)}): expected a function that takes a Stamped message")
