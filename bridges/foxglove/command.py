"""`polyrhythm foxglove`: a running graph, live in Foxglove."""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

from runtime.clock import SystemClock
from runtime.command_line.arguments import answered, count, seconds
from runtime.command_line.attach import Interruption, Sender, add_run_argument, attach, hear, user_name
from runtime.errors import CodecError, UserError
from runtime.msgs import TERMINAL, EStop, Image
from runtime.supervision.registry import FoundRun

PORT = 8765
IMAGE = f"{Image.__module__}:{Image.__qualname__}"
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def main(argv: list[str]) -> int:
    """0 at Ctrl-C or the end of the run; 2 where it was asked wrongly."""
    asked = _parser().parse_args(argv)
    return answered("polyrhythm foxglove", lambda: _serve(asked))


def _serve(asked: argparse.Namespace) -> int:
    try:
        from bridges.foxglove.live import LiveView
    except ImportError as problem:
        raise UserError(f"{problem.name} is not installed: pip install 'polyrhythm[foxglove]'") from problem
    if asked.address not in LOOPBACK and not asked.anywhere:
        raise UserError(
            f"--address {asked.address}: whoever reaches it sees the robot's cameras, unencrypted; say --anywhere if "
            "that is meant, or use an SSH tunnel"
        )
    run = attach(asked.run)
    token = secrets.token_urlsafe(16) if asked.estop else ""
    services: dict[str, Callable[[], str]] = {"estop": lambda: _press(run)} if asked.estop else {}
    if asked.estop and "estop" not in run.info.topics:
        raise UserError(f"{run.title} has no topic 'estop', so there is nothing to press; leave --estop out")
    if asked.layout is not None:
        _write_layout(asked.layout, run)
    view = LiveView(
        run.title, dict(run.info.topics), address=asked.address, port=asked.port, now_ns=SystemClock().now_ns(),
        token=token, services=services,
    )  # fmt: skip
    print(f"open in Foxglove: ws://{asked.address}:{view.port}", flush=True)
    if asked.estop:
        print(f'service "estop", request: {{"token": "{token}"}}', flush=True)
    unreadable: set[str] = set()
    shown = 0
    with Interruption() as interruption:
        try:
            for arrival in hear(run, run.info.topics, interruption, asked.for_s):
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


def _write_layout(path: Path, run: FoundRun) -> None:
    from bridges.foxglove.layout import layout

    cameras = [topic for topic, info in run.info.topics.items() if info.type == IMAGE]
    path.write_text(layout(sorted(cameras)), encoding="utf-8")
    print(f"layout for the viewer, Layout > Import from file: {path}")


def _press(run: FoundRun) -> str:
    sender = Sender(run, "estop", provenance="person")
    try:
        sender.publish(EStop(source=TERMINAL, is_pressed=True, why=f"pressed in Foxglove by {user_name()}"))
    finally:
        sender.close()
    return "pressed; re-arm with: polyrhythm guard rearm --run NAME"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm foxglove",
        description="Show a running graph live in Foxglove: cameras, joints, transforms, words, interrupts, and every "
        "other message as a recording has it. Looking on is all it does, unless --estop adds the emergency stop. "
        "A recording needs no server: Foxglove opens RUN.mcap itself.",
        epilog="example: polyrhythm foxglove --estop",
    )
    add_run_argument(parser)
    parser.add_argument("--address", default=LOOPBACK[0], help="where to listen (default: %(default)s)")
    parser.add_argument("--anywhere", action="store_true", help="allow an --address that other machines reach")
    parser.add_argument("--port", type=int, default=PORT, help="default: %(default)s; 0 is any free one")
    parser.add_argument("--estop", action="store_true", help="offer the emergency stop as a service, with a token")
    parser.add_argument("--layout", type=Path, metavar="FILE.json", help="also write a layout for this run's topics")
    parser.add_argument("--for", dest="for_s", type=seconds, metavar="S", help="end after that many seconds")
    parser.add_argument("--count", type=count, metavar="N", help="end after that many messages of the run")
    return parser
