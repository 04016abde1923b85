"""`polyrhythm foxglove`: a running graph, live in Foxglove."""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from nodes.msgs import TERMINAL, EStop, Image, Utterance
from runtime.clock import SystemClock
from runtime.command_line.arguments import check_new, command, count, port_number, seconds
from runtime.command_line.attach import StopSignal, add_run_argument, attach, hear, send, user_name
from runtime.errors import CodecError, UserError, writing
from runtime.hosts.address import LOOPBACK
from runtime.supervision.registry import FoundRun

PORT = 8765
IMAGE = f"{Image.__module__}:{Image.__qualname__}"


@command("foxglove", lambda: _parser())
def main(asked: argparse.Namespace) -> int:
    """0 at Ctrl-C or the end of the run; 2 where it was asked wrongly."""
    from bridges.foxglove.live import LiveView

    if asked.address not in LOOPBACK and not asked.anywhere:
        raise UserError(
            f"--address {asked.address}: whoever reaches it sees the robot's cameras, unencrypted; say --anywhere if "
            "that is meant, or use an SSH tunnel"
        )
    if asked.recording is not None:
        return _tell_how_to_open(asked.recording, asked.layout)
    run = attach(asked.run)
    services: dict[str, Callable[[], str]] = {}
    if asked.stop:
        services = {"stop": lambda: _say_stop(run), "estop": lambda: _press(run)}
        for service, topic in (("stop", "heard"), ("estop", "estop")):
            if topic not in run.info.topics:
                raise UserError(
                    f"{run.title} has no topic {topic!r}, so {service} would stop nothing; leave --stop out"
                )
    token = secrets.token_urlsafe(16) if services else ""
    if asked.layout is not None:
        images = {topic for topic, info in run.info.topics.items() if info.type == IMAGE and info.publishers}
        _write_layout(asked.layout, images)
    facts = {**run.info.shared, "parameters": run.info.parameters}
    view = LiveView(
        run.title, run.info.topics, facts, address=asked.address, port=asked.port, now_ns=SystemClock().now_ns(),
        tell=lambda sentence: print(f"! {sentence}", file=sys.stderr), token=token, services=services,
    )  # fmt: skip
    print(f"open in Foxglove: ws://{asked.address}:{view.port}", flush=True)
    if services:
        print(f'services {" and ".join(services)}, request: {{"token": "{token}"}}', flush=True)
    unreadable: set[str] = set()
    shown = 0
    with StopSignal() as stop_signal:
        try:
            for arrival in hear(run, run.info.topics, stop_signal, asked.for_s):
                if arrival is None:
                    continue
                try:
                    view.show(arrival.topic, arrival.frames)
                except CodecError as problem:
                    if arrival.topic not in unreadable:
                        unreadable.add(arrival.topic)
                        print(f"! {arrival.topic}: {problem}; not shown", file=sys.stderr)
                shown += 1
                if shown == asked.count:
                    break
        finally:
            view.close()
    return 0


def _tell_how_to_open(recording: Path, path: Path | None) -> int:
    """A recording needs no server; its layout is one for its own cameras. Raises RecordingError where it is none."""
    from nodes.mcap.file import BagReader

    cameras = {message.topic for message in BagReader(recording) if message.type_name == IMAGE}
    if path is not None:
        _write_layout(path, cameras)
    print(f"open in Foxglove, File > Open local file: {recording.resolve()}")
    return 0


def _write_layout(path: Path, cameras: Iterable[str]) -> None:
    from bridges.foxglove.layout import layout

    check_new(path, "--layout")
    with writing(f"--layout {path}", "choose another place"):
        path.write_text(layout(sorted(cameras)), encoding="utf-8")
    print(f"layout for the viewer, Layout > Import from file: {path}")


def _say_stop(run: FoundRun) -> str:
    """As a person does who says it: the robot brakes and stands until a person's plain "go on"."""
    send(run, "heard", Utterance(speaker=user_name(), text="Stop!"))
    return 'said "Stop!"; it goes on when a person says "go on"'


def _press(run: FoundRun) -> str:
    send(run, "estop", EStop(source=TERMINAL, is_pressed=True, why=f"pressed in Foxglove by {user_name()}"))
    return "pressed; re-arm with: polyrhythm guard rearm --run NAME"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm foxglove",
        description="Show a running graph live in Foxglove: cameras, the robot with each of its links, what it sees, "
        "where it goes and what its guard keeps to, words, interrupts, parameters, and every other message as a "
        "recording has it. Looking on is all it does, unless --stop adds a stop and the emergency stop. "
        "A recording needs no server: Foxglove opens RUN.mcap itself, and shows the same.",
        epilog="example: polyrhythm foxglove --stop",
    )
    parser.add_argument(
        "recording", nargs="?", type=Path, metavar="RUN.mcap",
        help="tell how to open this recording, and with --layout write a layout for its cameras",
    )  # fmt: skip
    add_run_argument(parser)
    parser.add_argument("--address", default=LOOPBACK[0], help="where to listen (default: %(default)s)")
    parser.add_argument("--anywhere", action="store_true", help="allow an --address that other machines reach")
    parser.add_argument("--port", type=port_number, default=PORT, help="default: %(default)s; 0 is any free one")
    parser.add_argument("--stop", action="store_true", help="offer stop and estop as services, with a token")
    parser.add_argument("--layout", type=Path, metavar="FILE.json", help="also write a layout for this run's topics")
    parser.add_argument("--for", dest="for_s", type=seconds, metavar="S", help="end after that many seconds")
    parser.add_argument("--count", type=count, metavar="N", help="end after that many messages of the run")
    return parser
