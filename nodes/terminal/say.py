"""`polyrhythm say`: speak to the robot of a running graph, and read its answer."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

from runtime.clock import SystemClock
from runtime.command_line.arguments import answered, seconds
from runtime.command_line.attach import Arrival, Sender, StopSignal, add_run_argument, attach, hear, user_name
from runtime.errors import PolyrhythmError, UserError
from runtime.msgs import GuardState, Utterance
from runtime.msgs.signature import token_of, words
from runtime.serialization.codec import decode
from runtime.supervision.registry import FoundRun
from runtime.supervision.view import plain

LONGEST = 2000
"""Characters that a person says in one go."""
QUIET_S = 1.5
"""The robot has finished its answer when it has been silent for so long."""


def main(argv: list[str]) -> int:
    """0 where somebody heard it; 1 where nobody did, or no graph runs; 2 where it was asked wrongly."""
    asked = _parser().parse_args(argv)
    return answered("polyrhythm say", lambda: _say(asked))


def _say(asked: argparse.Namespace) -> int:
    run = attach(asked.run, "laptop")
    if "heard" not in run.info.topics:
        raise UserError(f"{run.title} has no topic 'heard': nobody in it listens to people")
    if asked.words:
        return _one(run, " ".join(asked.words), asked)
    if asked.json:
        raise UserError("--json needs the words; without words each line that is typed is said")
    return _lines(run, asked)


def _one(run: FoundRun, text: str, asked: argparse.Namespace) -> int:
    with StopSignal() as stop_signal:
        answers = _answers(run, stop_signal, asked.wait)
        next(answers)  # listening before the words leave
        sender = Speaker(run, asked.by)
        try:
            hearers = sender.say(text)
        finally:
            sender.close()
        said = []
        for who, line in answers:
            said.append({"who": who, "text": line})
            if not asked.json:
                print(plain(f"{who}: {line}"), flush=True)
    if asked.json:
        print(json.dumps({"said": text, "by": asked.by, "heard_by": hearers, "answers": said}, ensure_ascii=False))
    elif not said:
        print(f"(no answer within {asked.wait:g} s)", file=sys.stderr)
    return 0


def _lines(run: FoundRun, asked: argparse.Namespace) -> int:
    """Each line of the input is said; the answers come between."""
    speaker = Speaker(run, asked.by)
    if sys.stdin.isatty():
        print(f"you speak to {run.title}; an empty line or Ctrl-D ends it", file=sys.stderr)
    try:
        for line in sys.stdin:
            if not line.strip():
                break
            with StopSignal() as stop_signal:
                answers = _answers(run, stop_signal, asked.wait)
                next(answers)
                speaker.say(line.strip())
                for who, text in answers:
                    print(plain(f"{who}: {text}"), flush=True)
                if stop_signal.is_set:
                    break
    finally:
        speaker.close()
    return 0


class Speaker:
    """A person's words into the run."""

    def __init__(self, run: FoundRun, by: str) -> None:
        self._run, self._by = run, by
        self._sender = Sender(run, "heard", provenance="person")

    def say(self, text: str) -> list[str]:
        """The processes that heard it. Raises UserError of words that cannot be said, PolyrhythmError of no hearer."""
        if not text.strip() or not text.isprintable() or len(text) > LONGEST:
            raise UserError(f"expected words in one line of at most {LONGEST} characters; these are {text[:40]!r}")
        if not self._sender.hearers:
            raise PolyrhythmError("no process of this run listens to people now; polyrhythm nodes tells how they fare")
        self._sender.publish(words(self._token(), text, self._by, SystemClock().now_ns()))
        return self._sender.hearers

    def _token(self) -> str:
        """By which these words count as a person's; "" in a graph without a guard."""
        try:
            return token_of(self._run.folder)
        except PolyrhythmError:
            return ""

    def close(self) -> None:
        self._sender.close()


def _answers(run: FoundRun, stop_signal: StopSignal, wait_s: float) -> Iterator[tuple[str, str]]:
    """First an empty pair, once it listens; then who says what, and the guard where its mode changes."""
    clock = SystemClock()
    topics = [topic for topic in ("said", "guard/state") if topic in run.info.topics]
    heard = hear(run, topics, stop_signal)
    try:
        mode = _first_mode(heard, turns=10 if "guard/state" in topics else 2)
        yield "", ""
        until_s = clock.now_s() + wait_s
        for arrival in heard:
            now_s = clock.now_s()
            if arrival is not None and arrival.topic == "said":
                utterance = decode(arrival.frames, Utterance).message
                yield utterance.speaker, utterance.text
                until_s = min(until_s, now_s + QUIET_S)
            elif arrival is not None:
                state = decode(arrival.frames, GuardState).message
                if state.mode != mode:
                    mode = state.mode
                    yield "guard", state.sentence
            if now_s >= until_s:
                return
    finally:
        heard.close()


def _first_mode(heard: Iterator[Arrival | None], turns: int) -> str:
    """The guard's mode, which it tells ten times a second; "" where nothing came. From then on all is heard."""
    for _ in range(turns):
        arrival = next(heard, None)
        if arrival is not None and arrival.topic == "guard/state":
            return decode(arrival.frames, GuardState).message.mode
    return ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm say",
        description="Speak to the robot of a running graph, as a person beside it, and read its answer. Without words, "
        "every line that is typed is said.",
        epilog='example: polyrhythm say "Stop!"',
    )
    parser.add_argument("words", nargs="*", help="what is said")
    parser.add_argument("--by", default=user_name(), metavar="NAME", help="who says it (default: %(default)s)")
    parser.add_argument("--wait", type=seconds, default=5.0, metavar="S",
                        help="how long to listen for an answer (default: %(default)g s)")  # fmt: skip
    add_run_argument(parser)
    parser.add_argument("--json", action="store_true", help="print what was said and answered as JSON")
    return parser
