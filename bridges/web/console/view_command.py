"""`polyrhythm view`: a running graph on a web page, for whoever wants to look on."""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
import webbrowser

import msgspec

from bridges.web.console.node import Console
from bridges.web.http.auth import LOOPBACK
from bridges.web.http.listener import missing_libraries
from runtime.command_line.arguments import answered, seconds
from runtime.command_line.attach import Interruption, Sender, add_run_argument, attach, hear
from runtime.command_line.plain_messages import find_type
from runtime.errors import CodecError, PolyrhythmError, UserError, choices
from runtime.execution.executor import Executor, Transport
from runtime.launch.graph import Graph, NodeSpec
from runtime.message import Envelope, Message
from runtime.msgs import JOINTS
from runtime.node import ports_of
from runtime.ports import Subscription
from runtime.serialization.codec import decode
from runtime.supervision.registry import FoundRun


class Viewer(Console):
    """The console's page outside of the graph: who opens it looks on, and may stop the robot, as everywhere."""

    page_roles = ("viewer",)


class JointNames(msgspec.Struct, frozen=True):
    """Of `run.json`, what a run's robot is; no joints where its launch file names no robot."""

    joints: tuple[str, ...] = JOINTS


def main(argv: list[str]) -> int:
    """0 at Ctrl-C or the end of the run; 2 where it was asked wrongly."""
    asked = _parser().parse_args(argv)
    return answered("polyrhythm view", lambda: _view(asked))


def _view(asked: argparse.Namespace) -> int:
    for problem in missing_libraries():
        raise UserError(problem)
    run = attach(asked.run, "laptop")
    types = _types(run)
    node = Viewer(address=asked.address, port=asked.port)
    with Interruption() as interruption:
        asyncio.run(_serve(run, node, types, interruption, asked))
    return 0


def _types(run: FoundRun) -> dict[str, type[Message]]:
    """The topics of the run that the page shows. Raises UserError where it can show nothing, or not this robot."""
    try:
        joints = msgspec.json.decode((run.folder / "run.json").read_bytes(), type=JointNames).joints
    except OSError as problem:
        raise PolyrhythmError(f"{run.title} has ended meanwhile") from problem
    if joints != JOINTS:
        raise UserError(
            f"{run.title}: the page draws a robot with the joints {', '.join(JOINTS)}, and this one has "
            f"{', '.join(joints)}; polyrhythm foxglove shows any robot"
        )
    ports = [getattr(Viewer, attribute) for attribute in ports_of(Viewer, Subscription)]
    found: dict[str, type[Message]] = {}
    for port in ports:
        message = find_type(run.info.topics[port.topic].type) if port.topic in run.info.topics else None
        if message is not None and message is port.message:
            found[port.topic] = message
    if not found:
        raise UserError(
            f"{run.title} has nothing that the page shows, which wants a robot, cameras or words; polyrhythm top and "
            f"polyrhythm foxglove show any graph; its topics: {choices(run.info.topics)}"
        )
    return found


async def _serve(
    run: FoundRun, node: Viewer, types: dict[str, type[Message]], interruption: Interruption, asked: argparse.Namespace
) -> None:
    stops = Stops(run)
    graph = Graph([NodeSpec("viewer", Viewer, instance=node)])
    executor = Executor(
        graph.nodes.values(), graph.types, transport=stops, seed=0, run_info={},
    )  # fmt: skip
    executor.prepare()
    url = node.url("viewer")
    print(f"watch: {url}", flush=True)
    if asked.open and not webbrowser.open(url):
        print("no browser could be opened here; open that address in one", file=sys.stderr)
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def feed() -> None:
        try:
            for arrival in hear(run, types, interruption, asked.for_s):
                if arrival is None:
                    continue
                try:
                    executor.deliver(decode(arrival.frames, types[arrival.topic]))
                except CodecError as problem:
                    executor.lost(arrival.topic, f"garbled: {problem}", 1)
        finally:
            loop.call_soon_threadsafe(stop.set)

    feeder = threading.Thread(target=feed, name="feed")
    feeder.start()
    try:
        await executor.run(stop)
    finally:
        interruption.is_set = True
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
        description="Show a running graph on a web page: cameras, robot, plan, words, interrupts and the guard. Who "
        "has its address looks on and may press STOP; to speak and to drive, run wizard.",
        epilog="example: polyrhythm view --open",
    )
    add_run_argument(parser)
    parser.add_argument("--open", action="store_true", help="also open it in the browser")
    parser.add_argument(
        "--address", choices=LOOPBACK, default=LOOPBACK[0], help="where to listen (default: %(default)s)"
    )
    parser.add_argument("--port", type=int, default=0, help="default: any free one")
    parser.add_argument("--for", dest="for_s", type=seconds, metavar="S", help="end after that many seconds")
    return parser
