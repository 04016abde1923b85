"""Attaching to a running graph: choose the run, listen to its topics, publish into it; the run is not affected.

`at_once` has a thread for each run that a stop goes to: none waits for another that is frozen.
"""

from __future__ import annotations

import argparse
import getpass
import itertools
import os
import signal
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, TypeVar

from runtime.clock import SystemClock, to_ns
from runtime.context import HandlerContext, NodeAges, captured_ns_of, inherit
from runtime.errors import PolyrhythmError, TransportError, UserError, choices
from runtime.launch.process_plan import TopicInfo
from runtime.message import Envelope, Message, Stamped
from runtime.operating_system.machine import login
from runtime.operating_system.terminal import signals_of_end
from runtime.serialization.codec import Frame, decode_envelope
from runtime.supervision.registry import FoundRun, find_runs, unreadable_runs
from runtime.transport.taps import Injector, Tap

T = TypeVar("T")
_TURN_S = 0.1  # how long an interruption may wait
_CONNECT_S = 3.0
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message that was received."""

    topic: str
    frames: Sequence[Frame]
    received_ns: int
    size_bytes: int  # on the wire: of what came in a bundle, its share; arrays in shared memory count in full

    @property
    def envelope(self) -> Envelope:
        """The envelope of the message. Raises CodecError."""
        return decode_envelope(self.frames[1])


class StopSignal:
    """A `with` block in which Ctrl-C, SIGTERM and a lost terminal set `is_set` rather than ending the program."""

    def __init__(self) -> None:
        self.is_set = False

    def __enter__(self) -> StopSignal:
        self._before = {number: signal.signal(number, self._note) for number in signals_of_end()}
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.is_set = True


def add_run_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option by which the user chooses among several runs."""
    parser.add_argument("--run", metavar="NAME|PID", help="which run, where several go on: its name or its pid")


def attach(wanted: str | None, example: str = "hello", *, acts: bool = False) -> FoundRun:
    """The run that is meant. Raises PolyrhythmError where none runs, UserError where the choice is not clear.

    `example` is a launch file to suggest to a user who has started none. `acts`: the run is not only looked at, so one
    that was started from another login, whose robot may stand elsewhere, has to be named.
    """
    run = choose(find_runs(), wanted, example)
    if acts and wanted is None and run.info.login != login():
        raise UserError(
            f"{run.title} was started from another login, so it has to be named: --run {run.info.supervisor_pid}"
        )
    return run


def unreached() -> list[str]:
    """A sentence for each run that goes on and hears no tool of this release."""
    return [
        f"the run in {folder} goes on and cannot be read, so nothing was said to it; it may be of another release: end "
        "it by Ctrl-C at its terminal, or stop its robot by hand"
        for folder in unreadable_runs()
    ]


def at_once(runs: Sequence[FoundRun], do: Callable[[FoundRun], T]) -> list[T | PolyrhythmError]:
    """Do it with all of these runs at the same time: what came of it, or the error, in their order."""

    def tried(run: FoundRun) -> T | PolyrhythmError:
        try:
            return do(run)
        except PolyrhythmError as problem:
            return problem

    with ThreadPoolExecutor(max(1, len(runs)), "run") as threads:
        return list(threads.map(tried, runs))


def choose(runs: Sequence[FoundRun], wanted: str | None, example: str = "hello") -> FoundRun:
    """The run that is meant, by its name or pid."""
    if not runs:
        raise PolyrhythmError(f"no graph runs; start one in another terminal, like: polyrhythm run {example}")
    titles = choices(run.title for run in runs)
    found = [run for run in runs if wanted is None or wanted in (run.info.name, str(run.info.supervisor_pid))]
    if not found:
        raise UserError(f"--run {wanted}: no such run; running: {titles}")
    if len(found) > 1:
        raise UserError(f"several graphs run: {titles}; choose one with --run NAME or --run PID")
    return found[0]


def topic_of(run: FoundRun, name: str) -> TopicInfo:
    """What is known of a topic. Raises UserError where the run has no topic of this name."""
    if name not in run.info.topics:
        raise UserError(f"{run.title} has no topic {name!r}; its topics: {choices(run.info.topics)}")
    return run.info.topics[name]


def hear(
    run: FoundRun,
    topics: Iterable[str],
    stop_signal: StopSignal,
    for_s: float | None = None,
    turn_s: float = _TURN_S,
) -> Generator[Arrival | None]:
    """Messages as they come, and None whenever none came for `turn_s`.

    Ends after `for_s` seconds, at an interruption, and at the end of the run.
    """
    clock = SystemClock()
    end_ns = None if for_s is None else clock.now_ns() + to_ns(for_s)
    kinds = {topic: topic_of(run, topic).kind for topic in topics}
    try:
        tap = Tap(run.folder, run.info.processes, kinds, f"tool-{os.getpid()}-{next(_numbers)}")
    except TransportError:
        if run.is_alive:
            raise
        return  # it ended, and its folder went, after it was found
    try:
        while not stop_signal.is_set and (end_ns is None or clock.now_ns() < end_ns):
            frames = tap.receive(turn_s)
            if frames is not None and len(frames) >= 2:
                yield Arrival(bytes(frames[0]).decode(errors="replace"), frames, clock.now_ns(), tap.size_bytes)
            elif run.is_alive:
                yield None
            else:
                return
    finally:
        tap.close()


class Sender:
    """Publishes messages on one topic of a run, as a person, under a name of its own.

    What the process of the node that issues fences hears, such as a stop and a request for a seat, waits for that
    process only: a frozen recorder or planner must not keep anybody from stopping a robot. `unreached` names the
    processes that did not answer. Anything else goes to all that hear the topic, or to nobody.
    """

    def __init__(self, run: FoundRun, topic: str, *, provenance: str, source: str = "") -> None:
        """Connect. Raises PolyrhythmError where a process that must hear the topic does not answer."""
        info = topic_of(run, topic)
        hearers = sorted(name for name, plan in run.info.processes.items() if topic in plan.hears)
        needed = _authority_process(run)
        if info.only:
            raise UserError(f"only {info.only} may publish {topic}; to take part, see polyrhythm guard and seat --help")
        self._topic = topic
        self._provenance = provenance
        self._source = source or f"pub-{os.getpid()}"
        self._clock = SystemClock()
        self._seq = 0
        self._injector = Injector(run.folder, info.kind, hearers, needed if needed in hearers else "")
        self.unreached = missing = self._injector.await_ready(_CONNECT_S)
        self.hearers = [name for name in hearers if name not in missing]
        if missing and (needed in missing or needed not in hearers):
            self._injector.close()
            raise PolyrhythmError(
                f"{', '.join(missing)} did not answer within {_CONNECT_S:g} s, so nothing was published; "
                "polyrhythm nodes tells how it fares"
            )

    def publish(self, message: Message, *, stems_from: Iterable[Stamped[Any]] = ()) -> Envelope:
        """Send one message, as old as what it stems from; returns its envelope."""
        self._seq += 1
        now_ns = self._clock.now_ns()
        ages = NodeAges()
        envelope = inherit(
            HandlerContext(now_ns, ages=ages).stating(stems_from),
            ages,
            topic=self._topic,
            source=self._source,
            seq=self._seq,
            now_ns=now_ns,
            origin=message.message_origin,
            own_ns=captured_ns_of(message, now_ns),
            provenance=self._provenance,
        )
        self._injector.publish(envelope, message)
        return envelope

    def close(self) -> None:
        """Send what is queued and disconnect."""
        self._injector.close()


def send(run: FoundRun, topic: str, *messages: Message) -> None:
    """Publish these on one topic of a run, as a person, and disconnect. Raises as `Sender` does."""
    sender = Sender(run, topic, provenance="person")
    try:
        for message in messages:
            sender.publish(message)
    finally:
        sender.close()


def user_name() -> str:
    """The name of the user; their number where this machine knows no name, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def _authority_process(run: FoundRun) -> str:
    """The process of the node that issues fences and leases; "" where there is none."""
    names = {plan.authority for plan in run.info.processes.values()}
    return next((run.info.nodes[name].process for name in sorted(names) if name in run.info.nodes), "")
