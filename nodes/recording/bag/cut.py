"""`polyrhythm bag cut`: a span of time, or some topics, of a recording as a recording of its own."""

from __future__ import annotations

import argparse
from fnmatch import fnmatchcase
from pathlib import Path

from nodes.mcap.parts import BEGIN
from nodes.recording.bag.info import OWN, inspect
from nodes.recording.bag.recording import JOURNAL_S, Recording, add_recording, copy_head, envelope_or_none, is_journal
from runtime.clock import to_ns
from runtime.command_line.arguments import unique_path
from runtime.errors import UserError

_LATEST_S = 1e9
"""Of run time: 30 years; a later end is the end of the recording."""


def cut(
    source: Recording, out: Path, *, from_s: float = 0.0, to_s: float = _LATEST_S, topics: list[str] | None = None
) -> int:
    """Copy the messages published from `from_s` up to `to_s` of run time on topics that match; how many there were.

    The journals of the calls of that time are kept, too, though they were recorded behind it.
    """
    start_ns = source.start_ns
    first_ns = start_ns + to_ns(from_s)
    last_ns = start_ns + to_ns(to_s)
    until = f"{to_s:g} s" if to_s < _LATEST_S else "the end"
    what = f"{from_s:g} s to {until}" + (f", topics {' '.join(topics)}" if topics else "")
    begins = {BEGIN: str(max(first_ns, source.begin_ns))} if first_ns > start_ns else {}
    writer = copy_head(source, out, {"cut": what, **begins})
    for message in source.gone_through("cutting"):
        envelope = envelope_or_none(message)
        if envelope is None or envelope.published_ns < first_ns:
            continue
        end_ns = last_ns + (to_ns(JOURNAL_S) if is_journal(message) else 0)  # what was done until then comes later
        if to_s < _LATEST_S and envelope.published_ns > end_ns:
            continue
        if topics and not any(fnmatchcase(message.topic, pattern) for pattern in topics):
            continue
        writer.copy(message)
    ended_ns = source.noted("ended_ns")
    is_ended = isinstance(ended_ns, int) and ended_ns <= last_ns
    writer.close(source.end if is_ended or to_s >= _LATEST_S else {**source.end, "ended_ns": str(last_ns)})
    return writer.messages


def main(argv: list[str]) -> int:
    """`polyrhythm bag cut`: 0, or 1 where nothing is left, or a chunk was left out."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm bag cut",
        description="Keep a span of run time, or some topics, of a recording.",
        epilog="example: polyrhythm bag cut run.mcap --from 10 --to 20 --topics 'robot/*' action --out part.mcap",
    )
    add_recording(parser)
    parser.add_argument("--from", dest="from_s", type=float, metavar="S", help="run time; default: 0")
    parser.add_argument("--to", dest="to_s", type=float, metavar="S", help="default: the end")
    parser.add_argument("--topics", nargs="+", metavar="TOPIC", help="names or patterns like 'health/*'; default: all")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: RUN-cut.mcap beside it")
    asked = parser.parse_args(argv)
    if asked.from_s is None and asked.to_s is None and not asked.topics:
        raise UserError("nothing says what to keep; give --from, --to or --topics")
    asked.from_s = 0.0 if asked.from_s is None else asked.from_s
    asked.to_s = _LATEST_S if asked.to_s is None else min(asked.to_s, _LATEST_S)
    if not -_LATEST_S < asked.from_s < asked.to_s:
        raise UserError(f"--from {asked.from_s:g} --to {asked.to_s:g}: expected a span of time that is not empty")
    out = asked.out or unique_path(asked.recording.with_name(f"{asked.recording.stem}-cut.mcap"))
    source = Recording(asked.recording, takes_any=True)
    messages = cut(source, out, from_s=asked.from_s, to_s=asked.to_s, topics=asked.topics)
    print(f"{messages} messages in {out}")
    for text in source.damage:
        print(f"! {text}")
    if not messages:
        whole = inspect(asked.recording)
        topics = ", ".join(topic.topic for topic in whole.topics if not topic.topic.startswith(OWN))
        print(
            f"! nothing is left: it holds {whole.from_s:.3f} to {whole.to_s:.3f} s of run time, on {topics or 'none'}"
        )
    return 0 if messages and not source.has_left_out else 1
