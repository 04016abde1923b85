"""How long a robot moves on after a word, seen from outside: any stack, nothing of it changed.

    python -m bench.said_to_still --watch "polyrhythm echo robot/state --json" --field message.position \\
        --say "polyrhythm say" --word "Stop!" --again "polyrhythm guard resume" --times 10
    python -m bench.said_to_still --watch "my-arm --echo" --say-signal PID --times 1

`--watch` prints where the joints are, a line for each moment: numbers, or JSON with `--field`. Each line counts when it
arrives here. The word is a line for the input of `--say`, or Ctrl-C for a process (`--say-signal`). It is said at a
random moment while the robot moves; t = 0 is when it has been handed over. The robot is still from the last line on
which a joint is `--still` or more from where it is afterwards, for `--for` seconds. The time between two lines
bounds the error. What does not come to rest within `--within` is counted as such, and has no time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from bench.result import percentile
from runtime.command_line.arguments import count, seconds
from runtime.errors import PolyrhythmError, UserError

Sample = tuple[float, tuple[float, ...]]
"""When it arrived, s, and where the joints are, m or rad."""
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
KEPT = 100_000
MOVES_WITHIN_S = 120.0
"""So long it is waited for a robot that moves."""


def numbers_of(line: str, field: str) -> tuple[float, ...] | None:
    """The joints of a line; None where it has none."""
    if not field:
        found = tuple(float(number) for number in NUMBER.findall(line))
        return found or None
    try:
        value: Any = json.loads(line)
        for name in field.split("."):
            value = value[name]
        return tuple(float(number) for number in value)
    except (ValueError, KeyError, TypeError):
        return None


def still_after_s(samples: Sequence[Sample], said_s: float, *, still: float, for_s: float) -> float | None:
    """From the word to the first sample after which no joint goes further than `still` for so long; None: not yet."""
    after = [sample for sample in samples if sample[0] >= said_s]
    begin = 0
    for place in range(1, len(after)):
        if _apart(after[begin][1], after[place][1]) >= still:
            begin = place
        elif after[place][0] - after[begin][0] >= for_s:
            return after[begin][0] - said_s
    return None


def is_moving(samples: Sequence[Sample], now_s: float, *, still: float, for_s: float) -> bool:
    """Whether a joint has gone further than that in the time before now."""
    recent = [where for at_s, where in samples if at_s >= now_s - for_s]
    return len(recent) > 1 and _apart(recent[0], recent[-1]) >= still


def _apart(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    return max((abs(a - b) for a, b in zip(one, other, strict=False)), default=0.0)


class Watched:
    """What a command prints, in a thread that ends with it."""

    def __init__(self, command: str, field: str) -> None:
        self.samples: deque[Sample] = deque(maxlen=KEPT)
        self.process = subprocess.Popen(shlex.split(command), stdout=subprocess.PIPE, text=True, bufsize=1)
        self._field = field
        self._thread = threading.Thread(target=self._read, name="watch")
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            at_s = time.monotonic()
            if (where := numbers_of(line, self._field)) is not None:
                self.samples.append((at_s, where))

    def so_far(self) -> list[Sample]:
        """Oldest first."""
        return list(self.samples)

    def close(self) -> None:
        """End the command."""
        self.process.terminate()
        self._thread.join(10.0)
        self.process.wait(10.0)
        if self.process.stdout is not None:
            self.process.stdout.close()


def measure(asked: argparse.Namespace, watched: Watched, voice: subprocess.Popen[str] | None) -> list[float | None]:
    """Say it so often, each time while the robot moves; the times in s. Raises PolyrhythmError where it never moves."""
    dice, found = random.Random(asked.seed), list[float | None]()
    for number in range(asked.times):
        _wait_until_it_moves(asked, watched)
        time.sleep(dice.uniform(0.0, asked.up_to))
        _say(asked, voice, asked.word)
        said_s = time.monotonic()
        took_s = None
        while took_s is None and time.monotonic() - said_s < asked.within:
            time.sleep(0.05)
            took_s = still_after_s(watched.so_far(), said_s, still=asked.still, for_s=asked.for_s)
        found.append(took_s)
        told = "it did not come to rest" if took_s is None else f"{took_s:.3f} s"
        print(f"[{number + 1} of {asked.times}] {told}", file=sys.stderr, flush=True)
        if asked.again and number + 1 < asked.times:
            subprocess.run(shlex.split(asked.again), check=False, stdout=subprocess.DEVNULL, timeout=asked.within)
    return found


def _wait_until_it_moves(asked: argparse.Namespace, watched: Watched) -> None:
    until_s = time.monotonic() + MOVES_WITHIN_S
    while not is_moving(watched.so_far(), time.monotonic(), still=asked.still, for_s=asked.for_s):
        if time.monotonic() > until_s or watched.process.poll() is not None:
            raise PolyrhythmError(
                f"the robot does not move: {len(watched.samples)} lines with numbers came within {MOVES_WITHIN_S:g} s"
            )
        time.sleep(0.05)


def _say(asked: argparse.Namespace, voice: subprocess.Popen[str] | None, word: str) -> None:
    if voice is None:
        os.kill(asked.say_signal, signal.SIGINT)
        return
    assert voice.stdin is not None
    voice.stdin.write(word + "\n")
    voice.stdin.flush()


def gap_s(samples: Sequence[Sample]) -> float:
    """The largest time but for one in a hundred between two lines."""
    times = [at_s for at_s, _ in samples]
    return percentile([later - before for before, later in pairwise(times)] or [0.0], 99)


def main(argv: Sequence[str] | None = None) -> int:
    """0; 1 where the robot never moved or did not come to rest."""
    asked = _parser().parse_args(argv)
    if (asked.say is None) == (asked.say_signal is None):
        raise UserError("give --say COMMAND or --say-signal PID")
    watched = Watched(asked.watch, asked.field)
    voice = None
    try:
        if asked.say is not None:
            voice = subprocess.Popen(
                shlex.split(asked.say), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
            )
        found = measure(asked, watched, voice)
    except PolyrhythmError as problem:
        print(problem, file=sys.stderr)
        return 1
    finally:
        if voice is not None:
            voice.terminate()
            voice.wait(10.0)
            with suppress(BrokenPipeError):  # what was not read any more
                assert voice.stdin is not None
                voice.stdin.close()
        watched.close()
    times = [took_s for took_s in found if took_s is not None]
    told = {
        "times": len(found), "without": len(found) - len(times),
        "p50_s": percentile(times, 50) if times else None, "max_s": max(times, default=None),
        "line_gap_p99_s": gap_s(watched.so_far()), "all_s": found,
    }  # fmt: skip
    print(json.dumps(told))
    return 1 if told["without"] else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.said_to_still", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--watch", required=True, metavar="COMMAND")
    parser.add_argument("--field", default="", help="of each line's JSON, with dots")
    parser.add_argument("--say", metavar="COMMAND", help="reads lines: the words")
    parser.add_argument("--say-signal", type=int, metavar="PID", help="say it with Ctrl-C")
    parser.add_argument("--word", default="Stop!")
    parser.add_argument("--again", default="", metavar="COMMAND", help="run after each, so that the robot moves again")
    parser.add_argument("--times", type=count, default=10)
    parser.add_argument("--still", type=float, default=0.005, help="m or rad; default: %(default)s")
    parser.add_argument("--for", type=seconds, dest="for_s", default=1.0, help="s; default: %(default)s")
    parser.add_argument("--within", type=seconds, default=20.0, help="s; default: %(default)s")
    parser.add_argument("--up-to", type=float, default=2.0, help="s from moving to the word; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0)
    return parser


if __name__ == "__main__":
    sys.exit(main())
