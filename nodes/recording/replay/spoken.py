"""`SpokenLines`: a person who was not there then says something in a replay: what would the robot have done?"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from nodes.msgs import Utterance
from runtime import RELIABLE, Node, Publisher, UserError, every, to_ns

NAME = "said_in_replay"
SAY_HZ = 100


@dataclass(frozen=True, order=True)
class SpokenLine:
    """Words, who says them, and the run time in s at which they end."""

    at_s: float
    who: str
    text: str

    @staticmethod
    def parse(line: str) -> SpokenLine:
        """Of "SECONDS | WHO | TEXT". Raises UserError."""
        at, *words = [part.strip() for part in line.split("|", 2)]
        try:
            spoken = SpokenLine(float(at), *words)
            if not (0 <= spoken.at_s < float("inf") and spoken.who and spoken.text):
                raise ValueError
        except (TypeError, ValueError) as problem:
            raise UserError(
                f"--say {line[:80]!r}: expected SECONDS | WHO | TEXT, such as 31.2 | Sam | Stop"
            ) from problem
        return spoken


class SpokenLines(Node):
    """Says each of the `lines` ("SECONDS | WHO | TEXT", seconds of the recorded run) once, at `speed`."""

    provenance = "script:said-in-replay"
    role = "ears"  # it plays a person

    heard = Publisher(Utterance, "heard", qos=RELIABLE)

    def __init__(self, lines: list[str], speed: float = 1.0) -> None:
        self.lines = deque(sorted(SpokenLine.parse(line) for line in lines))
        self.speed = speed
        self.start_ns = 0

    def on_start(self) -> None:
        self.start_ns = self.clock.now_ns()

    @every(hz=SAY_HZ)
    def say(self) -> None:
        """Say what is due."""
        while self.lines and self.clock.now_ns() - self.start_ns >= to_ns(self.lines[0].at_s / self.speed):
            line = self.lines.popleft()
            self.heard.publish(Utterance(speaker=line.who, text=line.text))
