"""`polyrhythm pub`: a person publishes into a running graph."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import msgspec

from runtime.clock import SystemClock, to_ns
from runtime.command_line.arguments import count, positive
from runtime.command_line.attach import Sender, StopSignal, add_run_argument, attach, topic_of
from runtime.command_line.plain_messages import find_type
from runtime.errors import CodecError, UserError, choices
from runtime.message import Envelope, Message, fields_of
from runtime.serialization.arrays import declared_dtype
from runtime.serialization.codec import encode
from runtime.supervision.registry import FoundRun


def pub_main(argv: list[str]) -> int:
    """`polyrhythm pub`."""
    asked = _parser().parse_args(argv)
    run = attach(asked.run, acts=True)
    message = prepare(run, asked.topic, asked.message, force=asked.force)
    provenance = "person" if asked.force is None else f"person: {asked.force.strip()}"
    sender = Sender(run, asked.topic, provenance=provenance)
    if sender.unreached:
        print(f"polyrhythm: {', '.join(sender.unreached)} did not answer and will not hear it", file=sys.stderr)
    clock = SystemClock()
    try:
        with StopSignal() as stop_signal:
            start_ns = clock.now_ns()
            for number in range(asked.count):
                _wait(clock, start_ns + to_ns(number / asked.hz), stop_signal)
                if stop_signal.is_set:
                    break
                envelope = sender.publish(message)
                if asked.json:
                    fields = {"ident": envelope.ident, "published_ns": envelope.published_ns}
                    print(json.dumps({**fields, "processes": sender.hearers}), flush=True)
                else:
                    hearers = ", ".join(sender.hearers) or "nobody: no process subscribes to it"
                    print(f"published {envelope.ident} to {hearers}", flush=True)
    finally:
        sender.close()
    return 0


def prepare(run: FoundRun, topic: str, text: str, *, force: str | None) -> Message:
    """The message that this JSON means on that topic. Raises UserError where it may not be published."""
    info = topic_of(run, topic)
    if force is not None and not force.strip():
        raise UserError('--force needs a reason in words, like --force "calibrating the lift by hand"')
    if info.only:
        raise UserError(
            f"only {info.only} may publish {topic}: nobody moves the robot past it; "
            "to command it yourself: polyrhythm seat take policy"
        )
    if info.kind == "state" and info.publishers and force is None:
        raise UserError(
            f"{topic} is a state and {', '.join(info.publishers)} publishes it: two publishers would overwrite each "
            'other; where you mean that, say why: --force "REASON"'
        )
    message = find_type(info.type)
    if message is None:
        raise UserError(f"{info.type} cannot be imported here, so the message cannot be checked; set PYTHONPATH to it")
    return parse(message, text)


def parse(message: type[Message], text: str) -> Message:
    """A message of that type from JSON. Raises UserError with what is wrong, and the fields that there are."""
    fields = fields_of(message)
    known = choices(f"{field.name}{'' if field.required else '?'}" for field in fields)
    try:
        value = json.loads(text)
        made = msgspec.convert(value, message, dec_hook=_array)
        unknown = _unknown(value, made)
        if unknown:
            raise UserError(f"{message.__name__} has no field {', '.join(unknown)}; its fields (?: optional): {known}")
        encode(Envelope("check", "pub", 1, 0), made)
    except RecursionError as problem:
        raise UserError(f"no {message.__name__}: it is nested too deep") from problem
    except json.JSONDecodeError as problem:
        raise UserError(
            f"no {message.__name__}: {text[:40]!r} is no JSON ({problem}); expected its fields (?: optional), {known}, "
            "as in '{\"FIELD\": VALUE}', with single quotes around it for the shell"
        ) from problem
    except (ValueError, msgspec.MsgspecError, CodecError) as problem:
        raise UserError(f"no {message.__name__}: {problem}; its fields (?: optional): {known}") from problem
    return made


def _array(declared: Any, value: Any) -> Any:
    """A numpy array from nested lists."""
    import numpy as np

    try:
        return np.asarray(value, dtype=declared_dtype(declared))
    except (TypeError, ValueError, OverflowError) as problem:
        raise ValueError(f"not an array: {problem}") from problem


def _unknown(value: Any, made: Any, where: str = "") -> list[str]:
    """The names in the JSON that no field took."""
    if isinstance(value, dict) and isinstance(made, msgspec.Struct):
        names = set(made.__struct_fields__)
        found = [repr(where + key) for key in value if key not in names]
        for key in names & set(value):
            found += _unknown(value[key], getattr(made, key), f"{where}{key}.")
        return found
    if isinstance(value, list) and isinstance(made, list | tuple):
        return [name for part, one in zip(value, made, strict=False) for name in _unknown(part, one, where)]
    return []


def _wait(clock: SystemClock, until_ns: int, stop_signal: StopSignal) -> None:
    while not stop_signal.is_set and clock.now_ns() < until_ns:
        clock.block(min(0.1, max(0.0, (until_ns - clock.now_ns()) * 1e-9)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm pub",
        description="Publish a message into a running graph, checked against the topic's type. It says so: its "
        "provenance is a person.",
        epilog="""example: polyrhythm pub heard '{"speaker": "Ann", "text": "Stop!"}'""",
    )
    parser.add_argument("topic", help="like heard; polyrhythm topics lists them")
    parser.add_argument("message", metavar="JSON", help="the message's fields")
    add_run_argument(parser)
    parser.add_argument("--count", type=count, default=1, metavar="N", help="so many times; default: once")
    parser.add_argument(
        "--hz", type=positive, default=1.0, help="where there are several; default: %(default)s a second"
    )
    parser.add_argument(
        "--force", metavar="REASON", help="publish a state that has a publisher; the reason is kept in its provenance"
    )
    parser.add_argument("--json", action="store_true", help="print what was published as JSON")
    return parser
