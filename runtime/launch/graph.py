"""Nodes and topics as data: which ports meet on which topic, whether they fit, and the graph as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec

from runtime.abilities import HasDevices, KeepsGraph, NamesSeats, NeedsListeners, TakesLong, WantsParameters, role_of
from runtime.alignment import Alignment, alignments_of
from runtime.context import AgeRules
from runtime.coordination.fence import FENCE_TOPIC, Fence
from runtime.coordination.health import Health
from runtime.errors import GraphError, MissingVariable, ParameterError, UserError, choices
from runtime.journal.calls import Calls, calls_topic
from runtime.launch.checks.class_check import (
    handler_problems,
    idle_parameters,
    init_problem,
    instance_problems,
    message_problem,
    narrow_comparisons,
    parameters_of,
    service_problems,
)
from runtime.launch.checks.ownership import ownership
from runtime.launch.given import Fits, expect, is_by_name, is_names
from runtime.launch.tables.handler_latency import Latency
from runtime.message import Message
from runtime.node import Handler, Node, Timer, handlers_of, ports_of, rate_problem
from runtime.ports import Publisher, Subscription, check_topic
from runtime.refusals import CodedProblem, code_of, of_kind, refusing
from runtime.run_facts import RunFacts
from runtime.serialization.toml_errors import expected, guess, key_for

Restart = Literal["always", "on-failure", "never"]


class NodeSpec(msgspec.Struct, frozen=True):
    """One node of a graph: its class and everything that a launch file may say about it."""

    name: str
    cls: type[Node]
    params: Mapping[str, Any] = msgspec.field(default_factory=dict)
    remap: Mapping[str, str] = msgspec.field(default_factory=dict)
    hz: Mapping[str, float] = msgspec.field(default_factory=dict)  # handler -> rate
    after: Mapping[str, str] = msgspec.field(default_factory=dict)  # timer -> topic with whose messages it is in step
    latency: Mapping[str, Latency] = msgspec.field(default_factory=dict)  # handler -> duration in virtual time
    process: str = ""
    host: str = ""  # the machine it runs on, where the launch names several
    restart: Restart = "on-failure"
    unset: tuple[str, ...] = ()  # environment variables that parameters are taken from, and that are not set here
    hidden: Mapping[str, str] = msgspec.field(default_factory=dict)  # parameters taken from there, as they are written
    instance: Node | None = None  # made by the caller; then `params` are not used

    def __post_init__(self) -> None:
        for argument, (fits, takes) in _SPEC.items():
            expect(f"NodeSpec(..., {argument}", getattr(self, argument), fits, takes)

    def build(self) -> Node:
        """Make the node. Raises ParameterError where the parameters do not fit the class's `__init__`."""
        if self.instance is not None:
            return self.instance
        values = convert_params(self.cls, self.params)
        try:
            return self.cls(**values)
        except UserError:
            raise
        except (Exception, SystemExit) as problem:
            raise init_problem(self.cls, problem) from problem

    def topic_of(self, port: Publisher[Any] | Subscription[Any]) -> str:
        """The topic of a declared port after this node's remapping."""
        return self.remap.get(port.topic, port.topic)


def _by_handler(kind: type[Any] | tuple[type[Any], ...]) -> Callable[[Any], bool]:
    return lambda value: is_by_name(value, lambda one: isinstance(one, kind))


_SPEC: dict[str, tuple[Fits, str]] = {
    "name": (str, "the node's name, as in NodeSpec('camera', Camera)"),
    "cls": (
        lambda cls: isinstance(cls, type) and issubclass(cls, Node),
        "a class of nodes, as in NodeSpec('c', Camera)",
    ),
    "params": (is_by_name, "parameters by name, as in {'fps': 30}"),
    "remap": (_by_handler(str), "topics by the names that the class declares, as in {'image': 'left/image'}"),
    "hz": (_by_handler((int, float)), "rates in Hz by timer, as in {'look': 5.0}"),
    "after": (_by_handler(str), "topics by timer, as in {'look': 'image'}"),
    "latency": (_by_handler(Latency), "latencies by handler, as in {'look': Latency.parse('20ms', 'camera.look')}"),
    "process": (str, "the name of a process"),
    "host": (str, "the name of a host"),
    "restart": (lambda value: value in get_args(Restart), choices(get_args(Restart))),
    "unset": (is_names, "names of environment variables"),
    "hidden": (_by_handler(str), "parameters by name, as they are written"),
    "instance": (lambda value: value is None or isinstance(value, Node), "a node, as in instance=Camera()"),
}
"""What `NodeSpec` takes, by argument."""


class End(msgspec.Struct, frozen=True):
    """One end of a topic: a port of a node."""

    node: str
    port: Publisher[Any] | Subscription[Any]


class Topic(msgspec.Struct):
    """The publishers and subscribers of one topic."""

    name: str
    publishers: list[End] = msgspec.field(default_factory=list)
    subscribers: list[End] = msgspec.field(default_factory=list)


CANDIDATES = "by seat the nodes that may hold it, as in {'planner': ['rules', 'model']}"


class Graph:
    """The nodes of one run and the topics between them, before anything starts.

    Build one to check or run a graph from Python: `Graph([NodeSpec("talker", Talker)])`. `problems()` says in sentences
    what does not fit; `run` and `Simulation` take it.
    """

    def __init__(
        self,
        nodes: Iterable[NodeSpec | Node],
        candidates: Mapping[str, tuple[str, ...]] | None = None,
        *,
        one_user: bool = False,
    ) -> None:
        """`candidates` are, by seat, the nodes of which one at a time holds it; they may publish the same state.

        `one_user`: this machine has no other, so that what comes by its loopback is theirs.
        """
        if candidates is not None:
            expect("Graph(..., candidates", candidates, lambda value: is_by_name(value, is_names), CANDIDATES)
        self.one_user = one_user
        self.nodes = {spec.name: spec for spec in specs_of(nodes)}
        self._seats = dict(candidates or {})
        self._candidates = [frozenset(names) for names in self._seats.values()]
        self.gateways: dict[str, type[Message]] = {}
        """The topics of gateways between hosts, which no node publishes."""
        self.topics: dict[str, Topic] = {}
        for spec in self.nodes.values():
            for publisher in ports_of(spec.cls, Publisher).values():
                self._topic(spec.topic_of(publisher)).publishers.append(End(spec.name, publisher))
            for subscription in ports_of(spec.cls, Subscription).values():
                self._topic(spec.topic_of(subscription)).subscribers.append(End(spec.name, subscription))

    def _topic(self, name: str) -> Topic:
        return self.topics.setdefault(name, Topic(name))

    @property
    def candidates(self) -> dict[str, tuple[str, ...]]:
        """By seat, the nodes of which one at a time holds it; the holder at the start is the first."""
        return dict(self._seats)

    @property
    def types(self) -> dict[str, type[Message]]:
        """The message type of each topic, including health topics and those on which only tools publish."""
        types: dict[str, type[Message]] = {
            name: (topic.publishers + topic.subscribers)[0].port.message for name, topic in self.topics.items()
        }
        types.update({health_topic(name): Health for name in self.nodes})
        types.update(self.gateways)
        if self.is_recorded:
            types.update({calls_topic(name): Calls for name, spec in self.nodes.items() if not spec.cls.subscribes_all})
        return types

    @property
    def is_recorded(self) -> bool:
        """Whether the graph has a recorder, so that each node reports what its calls read."""
        return any(spec.cls.subscribes_all for spec in self.nodes.values())

    @property
    def authority(self) -> str:
        """The one node that issues fences; "" where there is none."""
        topic = self.topics.get(FENCE_TOPIC)
        publishers = {end.node for end in topic.publishers} if topic is not None else set()
        return next(iter(publishers)) if len(publishers) == 1 else ""

    @property
    def keeper(self) -> type[KeepsGraph] | None:
        """The class of that node, where it knows of the nodes around it."""
        spec = self.nodes.get(self.authority)
        return spec.cls if spec is not None and issubclass(spec.cls, KeepsGraph) else None

    @property
    def exclusive(self) -> dict[str, str]:
        """The topics on which one node alone may publish, with that node."""
        return {
            topic.name: end.node for topic in self.topics.values() for end in topic.publishers if end.port.qos.exclusive
        }

    @property
    def roles(self) -> dict[str, list[str]]:
        """The nodes of each role, as plain data for `run_info`; one on a seat has none."""
        found: dict[str, list[str]] = {}
        for name, spec in sorted(self.nodes.items()):
            if role := role_of(spec.cls):
                found.setdefault(role, []).append(name)
        return found

    @property
    def facts(self) -> dict[str, Any]:
        """What its nodes are told of the graph, as plain data; `run_info` of every run begins with it."""
        return {
            "roles": self.roles,
            "ages": self.ages.as_data(),
            "one_user": self.one_user,
            "node_seats": list(self.seats),
            "parameters": {name: {**spec.params, **spec.hidden} for name, spec in self.nodes.items()},  # are recorded
            "aligned": {name: one.as_data() for name, one in self.alignments.items()},
        }

    @property
    def alignments(self) -> dict[str, Alignment]:
        """The handlers that read several inputs of one moment, as "node.handler"."""
        return {
            f"{spec.name}.{name}": one for spec in self.nodes.values() for name, one in alignments_of(spec.cls).items()
        }

    @property
    def seats(self) -> tuple[str, ...]:
        """The seats that its nodes hold."""
        return tuple(sorted({spec.cls.seat for spec in self.nodes.values()} - {""}))

    @property
    def ages(self) -> AgeRules:
        """Which origins come from states, and on which topics a subscriber limits the age of one."""
        types = self.types
        limited: dict[str, set[str]] = {}
        for topic in self.topics.values():
            for end in topic.subscribers if types[topic.name].message_kind == "state" else ():
                limited.setdefault(topic.name, set()).update(age_limits(self.nodes[end.node]))
        return AgeRules(
            sampled_origins(types.values()), {name: tuple(sorted(found)) for name, found in limited.items() if found}
        )

    def problems(self, host: str = "") -> list[tuple[str, str]]:
        """Everything that does not fit, as (node, sentence); empty where the graph, or this host's part, can start."""
        found: list[tuple[str, str]] = []
        heard = frozenset(name for name, topic in self.topics.items() if topic.subscribers)
        for name, spec in self.nodes.items():
            if host and spec.host != host:
                continue  # what its parameters should be is known there
            found.extend(
                (name, problem) for problem in _node_problems(spec, self._seats, heard, one_user=self.one_user)
            )
            stops = self._unheard_stops(spec) + self._unsafe_states(spec)
            found.extend((name, problem) for problem in of_kind("P034", stops))
            if not found:
                found.extend((name, problem) for problem in of_kind("P013", self._late(spec)))
        for topic in self.topics.values():
            found.extend(_topic_problems(topic, self.topics, self._candidates))
        return found

    def _late(self, spec: NodeSpec) -> list[str]:
        """What it says of the ages that the readers of its topics accept."""
        oldest_s: dict[str, float] = {}
        for port in ports_of(spec.cls, Publisher).values():
            for end in self.topics[spec.topic_of(port)].subscribers:
                for origin, limit_s in age_limits(self.nodes[end.node]).items():
                    oldest_s[origin] = min(limit_s, oldest_s.get(origin, limit_s))
        node = spec.build() if oldest_s else None
        return node.age_problems(oldest_s) if isinstance(node, TakesLong) else []

    def _unheard_stops(self, spec: NodeSpec) -> list[str]:
        """What it says by another name than that by which others of this graph hear of a stop."""
        heard_by = {
            port.topic: other.name
            for other in reversed(self.nodes.values())  # the first of them is named
            for port in ports_of(other.cls, Subscription).values()
            if port.topic in other.cls.fixed and other.name != spec.name
        }
        return [
            f"remap of {port.topic!r}: {heard_by[port.topic]} hears of a stop by it; leave it out"
            for port in ports_of(spec.cls, Publisher).values()
            if port.topic in heard_by and spec.topic_of(port) != port.topic
        ]

    def _unsafe_states(self, spec: NodeSpec) -> list[str]:
        """What keeps others, who stop by a state of this node, from relying on it."""
        heard_by = {
            port.topic: other.name
            for other in reversed(self.nodes.values())
            for port in ports_of(other.cls, Subscription).values()
            if port.topic in other.cls.fixed and port.message.message_kind == "state"
        }
        problems = []
        for port in ports_of(spec.cls, Publisher).values():
            if port.topic in heard_by:
                why = f"topic {port.topic!r}: {heard_by[port.topic]} stops by it, and {spec.cls.__name__}"
                if not port.qos.exclusive:
                    problems.append(f"{why} lets any tool publish it; write qos=ALONE into its Publisher")
                if not issubclass(spec.cls, HasDevices):
                    problems.append(
                        f"{why} does not say which real things it moves; write a method devices(self) that returns "
                        '("robot NAME",), or () where all of it is simulated'
                    )
        return problems

    def unfenced(self) -> list[tuple[str, str]]:
        """Where an interrupt would cancel nothing, since nobody issues fences."""
        said = [topic for topic in self.topics.values() if topic.publishers]
        interrupts = [topic for topic in said if topic.publishers[0].port.message.message_wants_fences]
        if not self.seats or not interrupts or any(topic.publishers[0].port.message is Fence for topic in said):
            return []
        seated = next(name for name, spec in self.nodes.items() if spec.cls.seat)
        who = interrupts[0].publishers[0].node
        why = (
            f"seat {self.nodes[seated].cls.seat!r}: {who} raises interrupts, and nobody issues the fences by which "
            "they cancel anything; give a robot a guard, and any other graph a coordinator: a table "
            '[nodes.coordinator] with use = "nodes.interrupts.coordinator:Coordinator", or Coordinator() in Python'
        )
        return [(seated, CodedProblem(why, "P034"))]

    def process_problems(self) -> list[tuple[str, str]]:
        """As `problems`, for what the launch of a whole graph needs: who issues fences, and nodes in one process.

        Some subscriptions accept messages of their own process only.
        """
        problems = self.unfenced()
        for topic in self.topics.values():
            for here in (self.nodes[end.node] for end in topic.subscribers if end.port.qos.in_process):
                for there in (self.nodes[end.node] for end in topic.publishers):
                    if (there.process or there.name, there.host) != (here.process or here.name, here.host):
                        why = (
                            f"topic {topic.name!r}: {here.name} takes it from a node of its own process only, and "
                            f'{there.name} is in another; write process = "robot" into both their tables'
                        )
                        problems.append((here.name, CodedProblem(why, "P045")))
        return problems

    def notes(self) -> list[tuple[str, str]]:
        """What the author of a node should know and no run is refused for: name of the node and sentence."""
        known = [spec for spec in self.nodes.values() if not spec.unset]  # of others nothing can be built here
        nodes = [(spec.name, spec.build()) for spec in known]
        own = [(name, note) for name, node in nodes for note in ownership(node)[1] + narrow_comparisons(type(node))]
        own += [
            (name, note) for name, node in nodes if isinstance(node, WantsParameters) for note in node.parameter_notes()
        ]
        return own

    def is_obeyed(self, guard: str) -> bool:
        """Whether a node takes this one's orders within their process, as a driver does its guard's."""
        heard = (
            end for topic in self.topics.values() for end in topic.subscribers if guard in _names(topic.publishers)
        )
        return any(end.port.qos.in_process for end in heard)

    def check(self) -> None:
        """Raise GraphError with the first of the problems."""
        for _, problem in self.problems():
            raise GraphError(problem, code=code_of(problem))

    def draw(self) -> str:
        """The graph as text: each topic with its type, its publishers and its subscribers."""
        lines = []
        for topic in sorted(self.topics.values(), key=lambda topic: topic.name):
            ends = topic.publishers + topic.subscribers
            message = ends[0].port.message
            senders, receivers = (
                ", ".join(_names(ends)) or "(nobody)" for ends in (topic.publishers, topic.subscribers)
            )
            lines.append(f"{topic.name}  [{message.__name__}, {message.message_kind}]\n    {senders} -> {receivers}")
        lines += [f"{name}: {alignment.words()}" for name, alignment in self.alignments.items()]
        return "\n".join(lines)

    def draw_mermaid(self) -> str:
        """The graph as a Mermaid flowchart."""
        lines = ["flowchart LR"]
        for topic in sorted(self.topics.values(), key=lambda topic: topic.name):
            for sender in _names(topic.publishers):
                lines.extend(
                    f"    {sender} -- {topic.name} --> {receiver}"
                    for receiver in _names(topic.subscribers)
                    if receiver != sender
                )
        return "\n".join(lines)


def _names(ends: Iterable[End]) -> list[str]:
    """The nodes of these ends, each once: a goal's server hears its requests by two ports."""
    return list(dict.fromkeys(end.node for end in ends))


def specs_of(nodes: Iterable[object]) -> list[NodeSpec]:
    """The nodes of a run made in Python, as specs. Raises GraphError where two have one name."""
    specs: list[NodeSpec] = []
    if not isinstance(nodes, Iterable) or isinstance(nodes, str):
        given = nodes.name if isinstance(nodes, Node) else repr(nodes)[:40]
        raise GraphError(f"Graph({given}): expected a list of nodes, such as Graph([Camera(), Policy()])")
    for node in nodes:
        if isinstance(node, Graph):
            specs.extend(node.nodes.values())
        elif isinstance(node, Node):
            specs.append(NodeSpec(node.name, type(node), instance=node))
        elif isinstance(node, NodeSpec):
            specs.append(node)
        else:
            given = node.__name__ if isinstance(node, type) else type(node).__name__
            raise GraphError(f"{given} is no node; expected nodes one by one, such as Simulation(Camera(), Policy())")
    names = [spec.name for spec in specs]
    for name in names:
        if names.count(name) > 1:
            raise GraphError(f"two nodes are called {name!r}; give each a NodeSpec with a name of its own")
    return specs


def sampled_origins(types: Iterable[type[Message]]) -> frozenset[str]:
    """The origins that states among these types renew."""
    return frozenset(one.message_origin for one in types if one.message_origin and one.message_kind == "state")


def age_limits(spec: NodeSpec) -> dict[str, float]:
    """Oldest age in s of each origin that the node accepts: its parameters max_ORIGIN_age_s."""
    found = {}
    for name, parameter in parameters_of(spec.cls).items():
        value = spec.params.get(name, parameter.default)
        if name.startswith("max_") and name.endswith("_age_s") and isinstance(value, int | float):
            found[name[len("max_") : -len("_age_s")]] = float(value)
    return found


def health_topic(node: str) -> str:
    """The topic of a node's health."""
    return f"health/{node}"


_OLD_PARAMETERS = {"host": "address", "cert_file": "certificate", "key_file": "key"}
"""Names of parameters before version 0.2; reported for one version, then dropped."""
_OLD_MEMBERS = {
    "check_parameters": "problems(self), asked of the built node",
    "check_seats": "seat_problems(self, seats), asked of the built node",
    "is_ears": 'role = "ears"; write that into the class',
    "lifts_stops": 'role, believes = "lifter", "ears"; write that into the class',
    "robot_facts": "run_facts(cls, key, robot); call it that",
    "robot_parameter": "asked of a `ForRobot` alone; make that a base of the class",
}
"""What classes of nodes said before version 0.2 and nobody asks for any more, and what they say now."""


def _key_of_node(name: str) -> str:
    """Where a name is no parameter but a key of the node's table, as `hz` or the word of another system for it."""
    key = "hz" if name == "hz" else key_for(name)
    return f"; did you mean {key}, which stands beside `use` in its table?" if key else ""


def convert_params(cls: type[Node], params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters as the types that `__init__` declares. Raises ParameterError where one is unknown or missing."""
    known = parameters_of(cls)
    for name in params:
        if name not in known:
            if _OLD_PARAMETERS.get(name) in known:
                raise ParameterError(
                    f"parameter {name!r} of {cls.__name__} is now {_OLD_PARAMETERS[name]!r}", code="P011"
                )
            raise ParameterError(
                f"unknown parameter {name!r} of {cls.__name__}; {guess(name, known)}{_key_of_node(name)}", code="P011"
            )
    values: dict[str, Any] = {}
    for name, parameter in known.items():
        if name not in params:
            if parameter.default is parameter.empty:
                raise ParameterError(f"parameter {name!r} of {cls.__name__} is missing; it has no default", code="P012")
            continue
        if isinstance(parameter.annotation, str):
            raise ParameterError(
                f"parameter {name!r} of {cls.__name__}: its type {parameter.annotation!r} is not known in "
                f"{cls.__module__} when it runs; import it at the top, and not for type checkers alone",
                code="P012",
            )
        try:
            values[name] = msgspec.convert(params[name], parameter.annotation)
        except msgspec.ValidationError as problem:
            told = expected(problem, parameter.annotation, name)
            raise ParameterError(
                f"parameter {name!r} of {cls.__name__} is {params[name]!r}{told}", code="P012"
            ) from problem
        if _has_nan(values[name]):  # every comparison with it is false, so that no node's own checks would find it
            raise ParameterError(
                f"parameter {name!r} of {cls.__name__} is {params[name]!r}; expected a number", code="P012"
            )
    return values


def _has_nan(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(_has_nan(part) for part in value.values())
    if isinstance(value, list | tuple):
        return any(_has_nan(part) for part in value)
    return isinstance(value, float) and value != value


def _followed(spec: NodeSpec, handlers: Sequence[Handler], timers: Sequence[str]) -> list[str]:
    """What is wrong with the topics that timers are to be in step with."""
    handled = {handler.port for handler in handlers if not isinstance(handler, Timer)}
    read = [spec.topic_of(port) for name, port in ports_of(spec.cls, Subscription).items() if name not in handled]
    problems = []
    for name, topic in spec.after.items():
        if name not in timers:
            problems.append(f"after names {name!r}, which is no timer of {spec.cls.__name__}; known: {choices(timers)}")
        elif any(one.name == name and isinstance(one, Timer) and one.overrun == "error" for one in handlers):
            problems.append(
                f'after names {name!r}, whose overrun is "error"; in step with a topic it misses none: leave out one'
            )
        elif topic not in read:
            problems.append(
                f"after is {topic!r}, but {spec.cls.__name__} reads {choices(read)}; a topic with a handler calls that"
            )
        elif list(spec.after.values()).count(topic) > 1:
            problems.append(f"after is {topic!r} for two timers; let one of them call the other")
    return problems


def unset_variables(spec: NodeSpec) -> list[MissingVariable]:
    """The environment variables that its parameters are taken from, and that are not set here, in sentences."""
    return [
        MissingVariable(f"a parameter is taken from the environment variable {name!r}, which is not set")
        for name in spec.unset
    ]


def _node_problems(
    spec: NodeSpec, seats: Mapping[str, tuple[str, ...]], heard: frozenset[str], *, one_user: bool
) -> list[str]:
    if spec.unset:
        return list(unset_variables(spec))
    try:
        with refusing("P020"):
            handlers = handlers_of(spec.cls)
        with refusing("P013"):
            node = spec.build()  # an `__init__` is cheap, and knows best which values it refuses
    except UserError as problem:
        return [CodedProblem(str(problem), problem.code)]
    problems = service_problems(spec.cls)
    problems += handler_problems(spec.cls, tuple(handlers))  # type: ignore[arg-type]  # a class is hashable
    problems += instance_problems(node, is_new=spec.instance is None)
    problems = of_kind("P020", problems) + of_kind("P021", ownership(node)[0])
    messages = dict.fromkeys(port.message for port in ports_of(spec.cls, Publisher).values())
    wrong = [message_problem(message) for message in messages]  # type: ignore[arg-type]  # classes are hashable
    problems += of_kind("P022", filter(None, wrong))
    problems += of_kind("P011", idle_parameters(spec.cls, spec.params))
    problems += [
        f"{spec.cls.__name__}.{old} is now {new}"
        for old, new in _OLD_MEMBERS.items()
        if hasattr(spec.cls, old) and (old != "robot_parameter" or not hasattr(spec.cls, "run_facts"))
    ]
    problems = of_kind("P020", problems) + of_kind("P023", _name_problems(spec, handlers))
    problems += [
        CodedProblem(
            f"{key} of {name!r}: {spec.cls.__name__} has it as it is, because a stop depends on it; leave it out",
            "P034",
        )
        for key, names in (("remap", spec.remap), ("hz", spec.hz), ("after", spec.after))
        for name in names
        if name in spec.cls.fixed
    ]
    for topic in spec.remap.values():
        try:
            check_topic(topic)
        except GraphError as problem:
            problems.append(CodedProblem(f"remap: {problem}", "P023"))
    if not problems:
        is_whole = spec.instance is None or bool(seats)  # a node that was made for a test may stand alone
        if spec.instance is None:
            node.run_info = RunFacts(one_user=one_user)
        problems = (
            of_kind("P013", node.problems())
            or of_kind("P040", node.seat_problems(seats) if isinstance(node, NamesSeats) and is_whole else ())
            or of_kind("P032", node.listener_problems(heard) if isinstance(node, NeedsListeners) else ())
        )
    return problems


def _name_problems(spec: NodeSpec, handlers: Sequence[Handler]) -> list[str]:
    """Rates, latencies and topics that are given by names which the node does not have."""
    problems: list[str] = []
    timers = [handler.name for handler in handlers if isinstance(handler, Timer)]
    for name, hz in spec.hz.items():
        if name not in timers:
            problems.append(f"hz names {name!r}, which is no timer of {spec.cls.__name__}; known: {choices(timers)}")
        elif refusal := rate_problem(hz):
            problems.append(f"hz of {name!r} is {hz!r}; {refusal}")
    problems += _followed(spec, handlers, timers)
    for name in spec.latency:
        if name not in {handler.name for handler in handlers}:
            known = choices(handler.name for handler in handlers)
            problems.append(f"latency names {name!r}, which is no handler of {spec.cls.__name__}; known: {known}")
    declared = ports_of(spec.cls, Publisher) | ports_of(spec.cls, Subscription)
    topics = {port.topic for port in declared.values()}
    for topic in spec.remap:
        if topic not in topics:
            problems.append(f"remap names {topic!r}, no topic of {spec.cls.__name__}; known: {choices(topics)}")
    return problems


def _issuer_problems(topic: Topic) -> list[tuple[str, str]]:
    """Who issues fences beside the one who does; a robot's guard issues leases, too, and is the one."""
    first, *others = sorted(topic.publishers, key=lambda end: not end.port.qos.exclusive)
    return [
        (
            end.node,
            CodedProblem(
                f"topic {topic.name!r}: {first.node} and {end.node} both issue fences; one node of a graph does, and "
                "with a robot it is the guard: leave out the other",
                "P034",
            ),
        )
        for end in others
        if end.node != first.node
    ]


def _exclusive_problems(topic: Topic) -> list[tuple[str, str]]:
    """Who else publishes what one node alone may publish."""
    if topic.name == FENCE_TOPIC and topic.publishers:
        return _issuer_problems(topic)
    owners = [end.node for end in topic.publishers if end.port.qos.exclusive]
    return [
        (
            end.node,
            CodedProblem(
                f"topic {topic.name!r}: {end.node} publishes it, but only {owners[0]} may; remap the one of {end.node}",
                "P033",
            ),
        )
        for end in topic.publishers
        if owners and end.node != owners[0]
    ]


def _topic_problems(
    topic: Topic, topics: Mapping[str, Topic], candidates: list[frozenset[str]]
) -> list[tuple[str, str]]:
    problems: list[tuple[str, str]] = []
    ends = topic.publishers + topic.subscribers
    first = ends[0]
    for end in ends[1:]:
        mine, theirs = end.port.message, first.port.message
        if mine is not theirs:
            own, other = mine.__name__, theirs.__name__
            if own == other:  # two classes of one name
                own, other = (f"{one.__module__}.{one.__qualname__}" for one in (mine, theirs))
            problems.append(
                (
                    end.node,
                    CodedProblem(
                        f"topic {topic.name!r}: {end.node} uses {own}, "
                        f"but {first.node} uses {other}; one topic has one type",
                        "P030",
                    ),
                )
            )
    for end in ends:
        problems.extend(
            (end.node, CodedProblem(f"topic {topic.name!r}: {end.node}: {problem}", "P031"))
            for problem in end.port.qos.problems(end.port.message.message_kind)
        )
    for subscriber in topic.subscribers:
        for publisher in topic.publishers:
            problems.extend(
                (
                    subscriber.node,
                    CodedProblem(
                        f"topic {topic.name!r}: {subscriber.node} {sentence.format(publisher=publisher.node)}", "P031"
                    ),
                )
                for sentence in subscriber.port.qos.mismatches(publisher.port.qos)
            )
    problems.extend(_exclusive_problems(topic))
    publishers = {end.node for end in topic.publishers}
    is_shared = any(publishers <= names for names in candidates)
    if first.port.message.message_kind == "state" and len(topic.publishers) > 1 and not is_shared:
        names = ", ".join(end.node for end in topic.publishers)
        problems.append(
            (
                topic.publishers[1].node,
                CodedProblem(
                    f"topic {topic.name!r}: {names} all publish it, but a state has one publisher; remap all but one",
                    "P033",
                ),
            )
        )
    is_answer = getattr(first.port.message, "is_answer", False)
    service = topic.name.rpartition("/")[0]
    if is_answer and len(topic.publishers) > 1:
        names = ", ".join(end.node for end in topic.publishers)
        sentence = f"service {service!r}: {names} all serve it; one service has one server: remap the topics of others"
        problems.append((topic.publishers[1].node, CodedProblem(sentence, "P033")))
    if is_answer and not topic.publishers:
        return problems + [
            (
                end.node,
                CodedProblem(
                    f"service {service!r}: nobody publishes it for {end.node}; add a node that serves it", "P032"
                ),
            )
            for end in topic.subscribers
        ]
    if not topic.publishers:
        published = choices(name for name, other in topics.items() if other.publishers)
        problems.extend(
            (
                end.node,
                CodedProblem(
                    f"topic {topic.name!r}: nobody publishes it for {end.node}; published topics: {published}", "P032"
                ),
            )
            for end in topic.subscribers
            if end.port.qos.required
        )
    return problems
