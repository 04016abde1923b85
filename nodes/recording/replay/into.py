"""A recording played into its own graph: some nodes say what they said then, the others live."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from nodes.recording.bag.recording import Recording
from nodes.recording.replay.gaps import Types, find_gaps
from nodes.recording.replay.played import Played
from nodes.recording.replay.recorded_launch import LaunchSource
from nodes.recording.replay.spoken import NAME as SPEAKER
from nodes.recording.replay.spoken import SpokenLines
from nodes.recording.replay.tape import Tape, dues_of
from runtime.clock import to_s
from runtime.errors import UserError, choices
from runtime.execution.log_filter import log_to
from runtime.execution.timers import TimerState
from runtime.launch.file import Launch, check, resolve
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.seats_table import as_data
from runtime.message import Stamped
from runtime.node import MessageHandler, Timer, handlers_of, ports_of
from runtime.ports import Publisher, Subscription
from runtime.supervision.supervisor import Supervisor
from runtime.supervision.view import View, ViewLog
from runtime.virtual.scheduler import TIMER
from runtime.virtual.simulation import Simulation

STAND_IN = "nodes.recording.replay.played:played"
RECORDER = "nodes.recording.recorder:Recorder"
_LAST_S = 0.5
"""In real time the run goes on so long after the recording's end, for the last answers."""


@dataclass(frozen=True)
class Mixture:
    """A launch in which some nodes are played."""

    launch: Launch
    played: tuple[str, ...]
    seed: int
    run_info: dict[str, Any]
    length_s: float
    follows: dict[str, tuple[str, ...]]  # by who is played: the topics whose messages made it speak
    timers: dict[str, tuple[TimerState, ...]]  # likewise: its timers that were not in step with one


def mix(
    recording: Recording,
    tables: dict[str, Any],
    *,
    played: Collection[str],
    speed: float,
    out: Path,
    longest_gap_s: float,
    tell: Callable[[str], None],
    source: LaunchSource,
    says: Sequence[str] = (),
) -> Mixture:
    """The recorded launch with stand-ins for the nodes to be played. Raises UserError for a node that there is not.

    `says` are lines of `SpokenLines`: words of somebody who said nothing then.

    A time at which no node said anything for longer than `longest_gap_s` is passed over, and told.
    """
    tables = copy.deepcopy(tables)
    tables.pop("budgets", None)  # of paths through nodes that take no time now
    nodes = tables.get("nodes", {})
    follows: dict[str, tuple[str, ...]] = {}
    timers: dict[str, tuple[TimerState, ...]] = {}
    originals = resolve(tables, path=recording.path).graph.nodes
    for name in played:
        if name not in nodes:
            raise UserError(f"--in-place-of {name}: the recorded run has no such node; known: {choices(nodes)}")
        follows[name], timers[name] = _rhythm(originals[name])
        nodes[name] = {
            **{key: nodes[name][key] for key in ("use", "remap", "process", "restart") if key in nodes[name]},
            "stand_in": STAND_IN,
            "params": {"recording": str(recording.path.resolve()), "speed": speed},
        }
    if says:
        table = {"use": f"{SpokenLines.__module__}:{SpokenLines.__name__}"}
        nodes[SPEAKER] = {**table, "params": {"lines": list(says), "speed": speed}}
    specs = resolve(tables, path=recording.path).graph.nodes
    gaps = find_gaps(recording, {name: _said_by(specs[name]) for name in played}, longest_gap_s, tell)
    for name, steps in gaps.steps.items():
        if steps:
            nodes[name]["params"]["steps"] = steps
    _record_into(nodes, [name for name, spec in specs.items() if spec.cls.subscribes_all], out / "run.mcap")
    launch = resolve(tables, path=recording.path, text=source.text)
    check(launch)
    seed = recording.noted("seed")
    seed = seed if isinstance(seed, int) else 0
    run_info = {
        "launch_file": str(recording.path),
        "launch_text": source.text,
        "overrides": list(source.overrides),
        "added": list(source.added),
        "without": list(source.without),
        "seed": seed,
        "folder": str(out),
        "replayed": list(played),
        "seats": as_data(launch.seats),
        **launch.shared_facts,
        **launch.graph.facts,
    }
    return Mixture(launch, tuple(played), seed, run_info, max(0.001, to_s(gaps.end_ns)), follows, timers)


def _rhythm(spec: NodeSpec) -> tuple[tuple[str, ...], tuple[TimerState, ...]]:
    """The topics whose messages made the original speak, by handlers or timers in step with them; its other timers."""
    handlers, ports = handlers_of(spec.cls), ports_of(spec.cls, Subscription)
    timers = [one for one in handlers if isinstance(one, Timer) and one.name not in spec.after]
    heard = [ports[one.port].topic for one in handlers if isinstance(one, MessageHandler)]
    topics = [*spec.after.values(), *(spec.remap.get(topic, topic) for topic in heard)]
    return tuple(dict.fromkeys(topics)), tuple(TimerState(one, spec.hz.get(one.name, one.hz)) for one in timers)


def _said_by(spec: NodeSpec) -> Types:
    """What a node publishes: the type of each topic."""
    ports = ports_of(spec.cls, Publisher).values()
    return {spec.remap.get(port.topic, port.topic): port.message for port in ports}


def _record_into(nodes: dict[str, Any], recorders: list[str], path: Path) -> None:
    """One recorder of the whole replay, that of the run or its like: not one of trials, of a ring, or in parts."""
    own = next((name for name in recorders if nodes[name].get("use") == RECORDER), None)
    name = own or next(iter(recorders), "recorder" if "recorder" not in nodes else "recorder_of_replay")
    params = dict(nodes[own].get("params", {})) if own else {}
    kept = {key: value for key, value in params.items() if key in ("jpeg_quality", "depth", "exclude", "reserve_mb")}
    table = {key: value for key, value in nodes.get(name, {}).items() if key in ("process", "restart", "latency")}
    nodes[name] = {**table, "use": RECORDER, "params": {**kept, "path": str(path)}}
    for other in recorders:
        if other != name:
            del nodes[other]


def run_virtual(mixture: Mixture, recording: Recording, view: View) -> dict[str, int]:
    """Run it in virtual time, every recorded message at its very time; how many each played node has said."""
    instances: dict[str, Played] = {}
    simulation = Simulation(
        *mixture.launch.graph.nodes.values(),
        seed=mixture.seed, health_hz=1.0, links=mixture.launch.links, seats=mixture.launch.seats,
    )  # fmt: skip
    simulation.run_info.update(mixture.run_info)
    simulation.observe(view.message)
    log_to(ViewLog(view, simulation.clock))
    for name in mixture.played:
        node = simulation.bound_nodes[name].node
        assert isinstance(node, Played)
        node.is_driven = True
        instances[name] = node
    conductor = _Conductor(simulation, recording, instances, mixture)
    simulation.observe(conductor.hear)
    order = [name for name, bound in simulation.bound_nodes.items() if not type(bound.node).subscribes_all]
    first_alive = next((place for place, name in enumerate(order) if name not in instances), len(order))
    try:
        conductor.begin(name for name in order[:first_alive] if name in instances)
        simulation.run(until=lambda: True)  # the nodes start, and those alive set their timers
        conductor.begin(name for name in order[first_alive:] if name in instances)
        simulation.run(mixture.length_s)
    finally:
        simulation.close()
    return {name: node.said for name, node in instances.items()}


class _Conductor:
    """Plays several nodes on one virtual clock: each message at its time, those of one instant in recorded order.

    Every node is woken as it was then, at each tick of its timers and each message that it had a handler for, whether
    it has something to say or not: so, at an instant at which it and nodes that are alive have their say, they go on in
    the order that they had. What it said behind another node's word of that instant was no timer's: it waits for that.
    What neither brings, as an answer that took its time, is the last of its instant.
    """

    def __init__(
        self,
        simulation: Simulation,
        recording: Recording,
        nodes: dict[str, Played],
        mixture: Mixture,
    ) -> None:
        types = {name: {topic: port.message for topic, port in node.ports.items()} for name, node in nodes.items()}
        self._scheduler = simulation.scheduler
        self._nodes = nodes
        self._follows = {name: topics for name, topics in mixture.follows.items() if topics}
        self._timers = mixture.timers
        steps = {name: node.steps for name, node in nodes.items()}
        self._tape = Tape(recording, types, steps)
        self._dues = dues_of(recording, types, steps)
        self._heard: dict[tuple[str, str], int] = {}  # by source and topic, the number of the last message

    def begin(self, names: Iterable[str]) -> None:
        """Wake these nodes from now on."""
        for name in names:
            for timer in self._timers[name]:
                timer.start(0)
                self._set(name, timer)
            self._arm(name)

    def _set(self, name: str, timer: TimerState) -> None:
        self._scheduler.at(timer.due_ns, partial(self._tick, name, timer), priority=TIMER)

    def _tick(self, name: str, timer: TimerState) -> None:
        now_ns = self._scheduler.now_ns
        timer.take(now_ns)
        if dues := self._dues[name]:
            behind = dues[0].behind if dues[0].at_ns <= now_ns else None
            if behind is None or self._heard.get((behind.source, behind.topic), -1) >= behind.seq:
                self._wake(name, now_ns)
            self._set(name, timer)

    def _arm(self, name: str) -> None:
        dues = self._dues[name]
        if dues:
            has_rhythm = bool(self._follows.get(name) or self._timers[name])
            priority = TIMER + 1 if has_rhythm else TIMER
            self._scheduler.at(dues[0].at_ns, partial(self._wake, name, dues[0].at_ns), priority=priority)

    def hear(self, stamped: Stamped[Any]) -> None:
        """A message is delivered now: who is in step with its topic has its say, where that is due."""
        now_ns, about = self._scheduler.now_ns, stamped.envelope
        self._heard[about.source, about.topic] = about.seq
        for name, topics in self._follows.items():
            if about.topic in topics and self._dues[name] and self._dues[name][0].at_ns <= now_ns:
                self._wake(name, self._dues[name][0].at_ns)

    def _wake(self, name: str, due_ns: int) -> None:
        """Play up to this node's messages, if another one's turn has not brought them already."""
        dues, tape = self._dues[name], self._tape
        is_said = False
        while dues and dues[0].at_ns <= due_ns and tape.next is not None and tape.next.due_ns <= due_ns:
            source = tape.next.stamped.envelope.source
            if is_said and source != name:
                break  # what it said later at this instant has a turn of its own
            is_said = is_said or source == name
            self._nodes[source].say(tape.take())
            if self._dues[source]:
                self._dues[source].popleft()
        if dues and not is_said and dues[0].at_ns <= due_ns:
            dues.popleft()  # it could not be read
        self._arm(name)


def run_real(mixture: Mixture, view: View, *, speed: float) -> tuple[bool, str] | None:
    """Run it as processes; the outcome that a node gave, if one did."""

    async def run() -> tuple[bool, str] | None:
        folder = Path(str(mixture.run_info["folder"]))
        supervisor = Supervisor(
            mixture.launch, folder=folder, seed=mixture.seed, run_info=mixture.run_info, view=view
        )  # fmt: skip
        return await supervisor.run(mixture.length_s / speed + _LAST_S)

    return asyncio.run(run())
