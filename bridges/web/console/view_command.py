"""`polyrhythm view`: a running graph on a web page, for whoever wants to look on."""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
import webbrowser
from typing import Any

import msgspec

from bridges.robot_ports import OPTIONAL
from bridges.web.console.node import Console
from bridges.web.console.page_handler import RATE_OVER_NS
from bridges.web.http.auth import LOOPBACK
from bridges.web.http.listener import missing_libraries
from nodes.msgs import JOINTS, Image
from nodes.msgs.episode import Turn
from nodes.robot.protocol import RobotLimits
from nodes.robot.robot_from_launch import DEFAULT, load_limits
from runtime.clock import to_s
from runtime.command_line.arguments import command, port_number, seconds
from runtime.command_line.attach import Arrival, Sender, StopSignal, add_run_argument, attach, hear
from runtime.command_line.plain_messages import find_type, in_one_line, to_plain
from runtime.errors import CodecError, UserError
from runtime.execution.executor import Executor, Transport
from runtime.launch.graph import Graph, NodeSpec
from runtime.message import Envelope, Message, Stamped
from runtime.node import on, ports_of
from runtime.ports import Subscription
from runtime.serialization.codec import decode
from runtime.supervision.registry import FoundRun, RunInfo

IMAGE = "/image"
IMAGE_TYPE = f"{Image.__module__}:{Image.__qualname__}"
MOST_LETTERS = 300
MOST_TOPICS = 60
ITS_OWN = ("health/", "calls/")
"""What nodes tell of themselves; polyrhythm top has it."""


class Viewer(Console):
    """The console's page outside of the graph: who opens it looks on, and may stop the robot, as everywhere.

    It shows what the graph has: its cameras, of a robot that is no Stretch the joints, what is said; and where there
    is no robot each topic with its newest message.
    """

    page_roles = ("viewer",)
    turns = Subscription(Turn, "episode/turn", qos=OPTIONAL)

    def __init__(self, run: RunInfo, address: str, port: int) -> None:
        limits, joints = _limits_of(run), tuple(run.shared.get("joints", ()))
        super().__init__(address=address, port=port, robot=DEFAULT if limits is None else run.shared["robot"])
        if limits is None and joints not in ((), JOINTS):
            self._is_stretch = False
            self._setting |= {"joints": [{"name": name} for name in joints], "head_camera": None, "poses": []}
        self.topics = None if self.robot.topic in run.topics else TopicsSeen()
        self.places = _places(run)
        self._setting["shown"] = {
            "run": run.name,
            "cameras": {place.removesuffix(IMAGE): topic.removesuffix(IMAGE) for topic, place in self.places.items()},
            "robot": self.topics is None,
            "stop": self.interrupt.topic in run.topics,
            "words": any(port.topic in run.topics for port in (self.heard, self.said, self.turns)),
        }
        self._has_limits = limits is not None or joints in ((), JOINTS)

    def wants(self, run: RunInfo) -> dict[str, type[Message]]:
        """The topics of the run that the page shows."""
        ports = [getattr(Viewer, attribute) for attribute in ports_of(Viewer, Subscription)]
        found: dict[str, type[Message]] = dict.fromkeys(self.places, Image)
        for port in ports:
            message = find_type(run.topics[port.topic].type) if port.topic in run.topics else None
            if message is not None and message is port.message:
                found[port.topic] = message
        if not self._has_limits:
            found.pop(self.candidate_command.topic, None)  # nobody knows how far a joint goes
        return found

    @on(turns)
    def note_turn(self, turn: Stamped[Turn]) -> None:
        """What somebody does in an episode is told like what people say."""
        act = turn.message
        if act.kind != "none":
            words = act.argument if act.kind == "speak" else f"[{act.kind}] {act.argument}".rstrip()
            self._feed.tell("heard", act.speaker, words, turn.envelope.published_ns)
            self._poke()

    def beside(self, now_ns: int) -> dict[str, Any]:
        """Each topic with its rate and newest message, where there is no robot to show."""
        return {} if self.topics is None else {"topics": self.topics.document(now_ns)}


class TopicsSeen:
    """The newest message of each topic, in one line. The feeder notes, the page's thread reads."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[int, str]] = {}
        self._rates: dict[str, tuple[int, int, float]] = {}  # topic -> received, when, Hz

    def note(self, arrival: Arrival, message: type[Message] | None) -> None:
        """Raises CodecError where it is no message."""
        _, content = to_plain(arrival.frames, message)
        number, _ = self._newest.get(arrival.topic, (0, ""))
        self._newest[arrival.topic] = (number + 1, in_one_line(content)[:MOST_LETTERS])

    def document(self, now_ns: int) -> list[dict[str, Any]]:
        """By name."""
        found = []
        for topic, (number, text) in sorted(self._newest.copy().items())[:MOST_TOPICS]:
            before, at_ns, hz = self._rates.get(topic, (number, now_ns, 0.0))
            if now_ns - at_ns >= RATE_OVER_NS:
                before, at_ns, hz = number, now_ns, (number - before) / to_s(now_ns - at_ns)
            self._rates[topic] = (before, at_ns, hz)
            found.append({"topic": topic, "hz": round(hz, 1), "text": text})
        return found


@command("view", lambda: _parser())
def main(asked: argparse.Namespace) -> int:
    """0 at Ctrl-C or the end of the run; 2 where it was asked wrongly."""
    for problem in missing_libraries():
        raise UserError(problem)
    run = attach(asked.run)
    node = Viewer(run.info, asked.address, asked.port)
    with StopSignal() as stop_signal:
        asyncio.run(_serve(run, node, stop_signal, asked))
    return 0


def _limits_of(run: RunInfo) -> RobotLimits | None:
    """Of the run's robot; None where it names none, or they are not found from here, and its joints have no ranges."""
    try:
        return load_limits(run.shared["robot"]) if "robot" in run.shared else None
    except UserError:
        return None


def _places(run: RunInfo) -> dict[str, str]:
    """Which camera of the run is shown at which of the page's places; its own ones first."""
    places = [port.topic for port in (Viewer.head_image, Viewer.wrist_image, Viewer.room_image)]
    images = sorted(topic for topic, info in run.topics.items() if info.type == IMAGE_TYPE and info.publishers)
    others = [topic for topic in images if topic not in places]
    free = [place for place in places if place not in images]
    for topic in others[len(free) :]:
        print(
            f"! {topic}: not shown, the page has {len(places)} places; polyrhythm foxglove shows all", file=sys.stderr
        )
    return {**{place: place for place in places if place in images}, **dict(zip(others, free, strict=False))}


def _open(url: str) -> None:
    """Raises nothing: the address stands above."""
    try:
        is_open = webbrowser.open(url)
    except (OSError, webbrowser.Error):
        is_open = False
    if not is_open:
        print("no browser could be opened here; open that address in one", file=sys.stderr, flush=True)


async def _serve(run: FoundRun, node: Viewer, stop_signal: StopSignal, asked: argparse.Namespace) -> None:
    stops = Stops(run)
    graph = Graph([NodeSpec("viewer", Viewer, instance=node)])
    executor = Executor(
        graph.nodes.values(), graph.types, transport=stops, seed=0, run_info={},
    )  # fmt: skip
    await executor.prepare()
    url = node.url("viewer")
    print(f"watch: {url}", flush=True)
    if asked.open:  # beside the page: a browser may wait for it, or until somebody closes it
        threading.Thread(target=_open, args=(url,), name="browser", daemon=True).start()
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    shown = node.wants(run.info)
    listed = {topic: find_type(info.type) for topic, info in run.info.topics.items() if not topic.startswith(ITS_OWN)}

    def take(arrival: Arrival) -> None:
        topic = arrival.topic
        try:
            if node.topics is not None and topic in listed:
                node.topics.note(arrival, listed[topic])
            if topic in shown:
                stamped = decode(arrival.frames, shown[topic])
                place = node.places.get(topic, topic)
                executor.deliver(Stamped(stamped.message, msgspec.structs.replace(stamped.envelope, topic=place)))
        except CodecError as problem:
            executor.lost(topic, "garbled", 1, str(problem))

    def feed() -> None:
        try:
            for arrival in hear(run, {*shown, *(listed if node.topics else ())}, stop_signal, asked.for_s):
                if arrival is not None:
                    take(arrival)
        finally:
            loop.call_soon_threadsafe(stop.set)

    feeder = threading.Thread(target=feed, name="feed")
    feeder.start()
    try:
        await executor.run(stop)
    finally:
        stop_signal.is_set = True
        await asyncio.to_thread(feeder.join)
        stops.close()


class Stops(Transport):
    """Hands a stop that somebody presses on the page to the run; the page says nothing else into it."""

    def __init__(self, run: FoundRun) -> None:
        topic = Viewer.interrupt.topic
        self._sender = Sender(run, topic, provenance="person") if topic in run.info.topics else None
        if self._sender is None:
            print(f"! {run.title} has no topic {topic!r}: STOP on the page stops nothing", file=sys.stderr)

    def publish(self, envelope: Envelope, message: Message) -> None:
        """What the page's node publishes; all but a stop stays here."""
        if self._sender is not None and envelope.topic == Viewer.interrupt.topic:
            self._sender.publish(message)

    def close(self) -> None:
        """Send what is under way."""
        if self._sender is not None:
            self._sender.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm view",
        description="Show any running graph on a web page: cameras, robot, plan, words, interrupts and the guard, or "
        "its topics where it has no robot. Who has its address looks on and may press STOP; to speak and to drive, "
        "run wizard.",
        epilog="example: polyrhythm view --open",
    )
    add_run_argument(parser)
    parser.add_argument("--open", action="store_true", help="also open it in the browser")
    parser.add_argument(
        "--address", choices=LOOPBACK, default=LOOPBACK[0], help="where to listen (default: %(default)s)"
    )
    parser.add_argument("--port", type=port_number, default=0, help="default: any free one")
    parser.add_argument("--for", dest="for_s", type=seconds, metavar="S", help="end after that many seconds")
    return parser
