"""`polyrhythm say`: speak to the robot of a running graph, and read its answer.

A stop goes at once to every run of this account, each by a thread of its own. All other words go to one run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TextIO

import msgspec

from nodes.interrupts.intent import is_stop
from nodes.msgs import GuardState, Utterance
from nodes.msgs.signature import token_of, words
from runtime.clock import SystemClock
from runtime.command_line.arguments import command, seconds
from runtime.command_line.attach import (
    Arrival,
    Sender,
    StopSignal,
    add_run_argument,
    at_once,
    attach,
    hear,
    unreached,
    user_name,
)
from runtime.errors import PolyrhythmError, UserError
from runtime.serialization.codec import decode
from runtime.supervision.registry import FoundRun, find_runs
from runtime.supervision.view import plain

LONGEST = 2000
"""Characters that a person says in one go."""
QUIET_S = 1.5
"""The robot has finished its answer when it has been silent for so long."""
TURN_S = 0.02
"""How long one look for an answer takes."""
LISTENS = "heard"


class RunAnswer(msgspec.Struct, frozen=True):
    """What one run heard, and what it said to that; `problem` where it heard nothing."""

    run: str
    pid: int
    heard_by: list[str] = []
    answers: list[dict[str, str]] = []
    problem: str = ""


@command("say", lambda: _parser())
def main(asked: argparse.Namespace) -> int:
    """0 where somebody heard it; 1 where nobody did, or no graph runs; 2 where it was asked wrongly."""
    if asked.words:
        text = " ".join(asked.words)
        with StopSignal() as stop_signal:
            code = _told(text, asked, _spoken(text, asked, stop_signal))
        return max(code, _tell_unreached(text, asked))
    if asked.json:
        raise UserError("--json needs the words; without words each line that is typed is said")
    return _lines(asked)


def _hearing(text: str, asked: argparse.Namespace) -> list[FoundRun]:
    """The runs that hear these words: of a stop all that listen, of other words the one that is meant."""
    check_words(text)
    runs = find_runs()
    if asked.run is None and is_stop(text) and (listening := [run for run in runs if LISTENS in run.info.topics]):
        return listening
    if not runs and (unread := unreached()):
        raise PolyrhythmError("; ".join(unread))
    run = attach(asked.run, "laptop", acts=not is_stop(text))
    if LISTENS not in run.info.topics:
        raise UserError(f"{run.title} has no topic {LISTENS!r}: nobody in it listens to people")
    return [run]


def _spoken(text: str, asked: argparse.Namespace, stop_signal: StopSignal) -> list[RunAnswer]:
    """Say it to all that are meant, and print what each answers."""
    runs = _hearing(text, asked)
    if len(runs) == 1:
        return [_one(runs[0], text, asked, stop_signal)]
    told = at_once(runs, lambda run: _one(run, text, asked, stop_signal, title=f"{run.title}: "))
    return [
        RunAnswer(run.info.name, run.info.supervisor_pid, problem=str(one)) if isinstance(one, PolyrhythmError) else one
        for run, one in zip(runs, told, strict=True)
    ]


def _one(run: FoundRun, text: str, asked: argparse.Namespace, stop_signal: StopSignal, *, title: str = "") -> RunAnswer:
    """Say it to one run, once its answer will be heard; a stop does not wait for that."""
    answers = _answers(run, stop_signal, asked.wait, said_ns=SystemClock().now_ns(), at_once=is_stop(text))
    next(answers)
    speaker = Speaker(run, asked.by)
    try:
        heard_by = speaker.say(text)
    finally:
        speaker.close()
    if not asked.json:
        _tell(f"(said to {run.title} as {asked.by})", file=sys.stderr)
    said = []
    for who, line in answers:
        said.append({"who": who, "text": line})
        if not asked.json:
            _tell(f"{title}{who}: {line}")
    return RunAnswer(run.info.name, run.info.supervisor_pid, heard_by, said)


def _tell(line: str, file: TextIO | None = None) -> None:
    """In one piece: several runs may answer at the same time."""
    out = file or sys.stdout
    out.write(plain(line) + "\n")
    out.flush()


def _told(text: str, asked: argparse.Namespace, spoken: list[RunAnswer]) -> int:
    """What is left to tell of words that were said once; 1 where a run that listens did not hear them."""
    unheard = [one for one in spoken if one.problem]
    if asked.json:
        first = {name: value for name, value in msgspec.to_builtins(spoken[0]).items() if name != "problem"}
        several = {"runs": msgspec.to_builtins(spoken)}
        whole = {"said": text, "by": asked.by, **(first if len(spoken) == 1 else several)}
        print(json.dumps(whole, ensure_ascii=False))
    elif not any(one.answers for one in spoken):
        print(f"(no answer within {asked.wait:g} s)", file=sys.stderr)
    for one in unheard:
        print(f"polyrhythm say: {one.run} (pid {one.pid}): {one.problem}", file=sys.stderr)
    return 1 if unheard else 0


def _tell_unreached(text: str, asked: argparse.Namespace) -> int:
    """Of a stop for all runs: tell which it cannot have reached; 1 where there is one."""
    unread = unreached() if asked.run is None and is_stop(text) else []
    for sentence in unread:
        print(f"polyrhythm say: {sentence}", file=sys.stderr)
    return int(bool(unread))


def _lines(asked: argparse.Namespace) -> int:
    """Each line of the input is said; the answers come between. Which run is meant is asked anew for each."""
    if len(find_runs()) < 2 or asked.run is not None:
        title = _hearing("hello", asked)[0].title  # where nobody listens it is told before a line is typed
        if sys.stdin.isatty():
            print(f"you speak to {title} as {asked.by}; an empty line or Ctrl-D ends it", file=sys.stderr)
    code = 0
    for line in sys.stdin:
        if not line.strip():
            break
        with StopSignal() as stop_signal:
            try:
                for one in _spoken(line.strip(), asked, stop_signal):
                    if one.problem:
                        print(f"polyrhythm say: {one.run} (pid {one.pid}): {one.problem}", file=sys.stderr)
                        code = 1
                code = max(code, _tell_unreached(line.strip(), asked))
            except UserError as problem:  # the next line may be a stop
                print(f"polyrhythm say: {problem}", file=sys.stderr)
                code = 2
            if stop_signal.is_set:
                break
    return code


def check_words(text: str) -> None:
    """Raises UserError of words that cannot be said."""
    if not text.strip() or not text.isprintable() or len(text) > LONGEST:
        raise UserError(f"expected words in one line of at most {LONGEST} characters; these are {text[:40]!r}")


class Speaker:
    """A person's words into the run."""

    def __init__(self, run: FoundRun, by: str) -> None:
        self._run, self._by = run, by
        self._sender = Sender(run, "heard", provenance="person")

    def say(self, text: str) -> list[str]:
        """The processes that heard it. Raises UserError of words that cannot be said, PolyrhythmError of no hearer."""
        check_words(text)
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


def _answers(
    run: FoundRun, stop_signal: StopSignal, wait_s: float, *, said_ns: int, at_once: bool
) -> Iterator[tuple[str, str]]:
    """First an empty pair, once it listens; then who says what, and the guard where its mode changes.

    Also the stop that something said since `said_ns` has caused, where it came before any other state. With `at_once`
    the empty pair comes after one look.
    """
    clock = SystemClock()
    topics = [topic for topic in ("said", "guard/state") if topic in run.info.topics]
    heard = hear(run, topics, stop_signal, turn_s=TURN_S)
    try:
        first = _first_state(heard, turns=1 if at_once else 50 if "guard/state" in topics else 10)
        mode = first.mode if first is not None else ""
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
                if state.mode != mode and (mode or state.stop_heard_ns >= said_ns):
                    yield "guard", state.sentence
                mode = state.mode
            if now_s >= until_s:
                return
    finally:
        heard.close()


def _first_state(heard: Iterator[Arrival | None], turns: int) -> GuardState | None:
    """The guard's state, which it tells ten times a second; None where none came. From then on all is heard."""
    for _ in range(turns):
        arrival = next(heard, None)
        if arrival is not None and arrival.topic == "guard/state":
            return decode(arrival.frames, GuardState).message
    return None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm say",
        description="Speak to the robot of a running graph, as a person beside it, and read its answer. Without words, "
        "every line that is typed is said. A stop goes at once to every run of this account; all other words need "
        "--run where several go on, or where the run was started from another login.",
        epilog='example: polyrhythm say "Stop!"',
    )
    parser.add_argument("words", nargs="*", help="what is said")
    parser.add_argument("--by", default=user_name(), metavar="NAME", help="who says it (default: %(default)s)")
    parser.add_argument("--wait", type=seconds, default=5.0, metavar="S",
                        help="how long to listen for an answer (default: %(default)g s)")  # fmt: skip
    add_run_argument(parser)
    parser.add_argument("--json", action="store_true", help="print what was said and answered as JSON")
    return parser
