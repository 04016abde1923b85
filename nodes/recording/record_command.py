"""`polyrhythm record`: record a graph that runs already, from now on."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from nodes.recording.recorder import DEPTHS, Recorder
from runtime.clock import SystemClock, wall_time_text
from runtime.command_line.arguments import command, new_path, seconds
from runtime.command_line.attach import Arrival, StopSignal, add_run_argument, attach, hear, topic_of
from runtime.command_line.plain_messages import find_type
from runtime.errors import CodecError, PolyrhythmError, UserError, writing
from runtime.message import Message, Stamped
from runtime.run_facts import RunFacts
from runtime.serialization.codec import decode
from runtime.supervision.registry import FoundRun

FLUSH_S = 0.5
_NOT_OF_THE_RUN = ("processes", "nodes", "topics", "name", "supervisor_pid", "started_ns")
"""Of `run.json`: what is for tools, and no part of what a recording says of its run."""


@command("record", lambda: _parser())
def main(asked: argparse.Namespace) -> int:
    """0; 1 where nothing could be recorded or the disk filled up; 2 where it was asked wrongly."""
    run = attach(asked.run)
    types = _types(run, asked.topic, asked.exclude)
    out = new_path(asked.out, Path("runs") / f"record-{wall_time_text()}-{run.info.name}.mcap")
    with StopSignal() as stop_signal:  # until the file is closed, however often Ctrl-C is pressed
        recorder = _recorder(run, out, asked)
        print(f"recording {run.title} into {out}; Ctrl-C ends it", file=sys.stderr)
        number = _hear_out(run, types, recorder, stop_signal, asked.for_s)
        missed = sum(recorder.missed.number.values())
        is_whole = recorder.is_recording
        recorder.on_stop()
    lost = f", {missed} missed (polyrhythm bag info names them)" if missed else ""
    print(f"{number} messages in {out}{lost}")
    return 0 if is_whole and number else 1


def _hear_out(
    run: FoundRun,
    types: dict[str, type[Message]],
    recorder: Recorder,
    stop_signal: StopSignal,
    for_s: float | None,
) -> int:
    clock = SystemClock()
    flush_s = clock.now_s() + FLUSH_S
    number = 0
    for arrival in hear(run, types, stop_signal, for_s):
        if arrival is not None and (stamped := _decoded(arrival, types, recorder)) is not None:
            recorder.on_any(stamped)
            number += 1
        if clock.now_s() >= flush_s:
            recorder.flush()
            flush_s = clock.now_s() + FLUSH_S
        if not recorder.is_recording:
            break  # the disk is full, and the recorder has said so
    return number


def _decoded(arrival: Arrival, types: dict[str, type[Message]], recorder: Recorder) -> Stamped[Any] | None:
    try:
        return decode(arrival.frames, types[arrival.topic])
    except CodecError:
        recorder.missed.lost(arrival.topic)
        return None


def _recorder(run: FoundRun, out: Path, asked: argparse.Namespace) -> Recorder:
    """A recorder like that of a launch file, fed by hand. Raises UserError where nothing can be written there."""
    try:
        about: dict[str, Any] = msgspec.json.decode((run.folder / "run.json").read_bytes())
    except OSError as problem:
        raise PolyrhythmError(f"{run.title} has ended meanwhile") from problem
    recorder = Recorder(path=str(out), jpeg_quality=asked.jpeg_quality, depth=asked.depth)
    facts = {key: value for key, value in about.items() if key not in _NOT_OF_THE_RUN}
    recorder.run_info = RunFacts.of({**facts, "attached": True})
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        recorder.on_start()
    return recorder


def _types(run: FoundRun, wanted: list[str], unwanted: list[str]) -> dict[str, type[Message]]:
    """The topics to record, with their types. Raises UserError for topics that there are not."""
    for topic in (*wanted, *unwanted):
        topic_of(run, topic)
    found: dict[str, type[Message]] = {}
    for topic, info in run.info.topics.items():
        if topic in unwanted or (wanted and topic not in wanted):
            continue
        message = find_type(info.type)
        if message is None:
            print(f"! {topic}: its type {info.type} cannot be imported here; left out", file=sys.stderr)
        else:
            found[topic] = message
    if not found:
        raise UserError("no topic is left to record")
    return found


def _quality(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text}: expected 0 (lossless) to 100")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm record",
        description="Record a graph that runs already, from now on; the graph notices nothing. A recorder of "
        "the graph's own (run --record) also keeps what each handler read, by which nodes can be replayed.",
        epilog="example: polyrhythm record --topic heard --topic said --topic head/image --for 60 --out talk.mcap",
    )
    parser.add_argument("--out", type=Path, metavar="FILE.mcap", help="default: runs/record-...")
    parser.add_argument("--topic", action="append", default=[], metavar="TOPIC", help="only this one; several")
    parser.add_argument("--exclude", action="append", default=[], metavar="TOPIC", help="all but this one; several")
    parser.add_argument("--for", type=seconds, dest="for_s", metavar="S", help="end after that many seconds")
    parser.add_argument("--jpeg-quality", type=_quality, default=0, metavar="N",
                        help="1 to 100: images as JPEG; default: 0, lossless")  # fmt: skip
    parser.add_argument("--depth", choices=DEPTHS, default="exact", help="how depth images are kept")
    add_run_argument(parser)
    return parser
