"""Stepping through a virtual run: `--pause-on TOPIC` stops where a message is published and opens a prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.clock import NS_PER_S
from runtime.errors import UserError, choices
from runtime.message import Stamped
from runtime.virtual.simulation import Simulation

HELP = "Enter or continue: to the next pause; step [N]: N messages on; topics; latest TOPIC; quit"

Ask = Callable[[str], str | None]
"""Asks for a line; None at the end of the input, or where nobody can answer."""


class Stepper:
    """Runs a simulation from pause to pause."""

    def __init__(
        self, simulation: Simulation, pause_on: Sequence[str], *, ask: Ask, tell: Callable[[str], None]
    ) -> None:
        for topic in pause_on:
            if topic not in simulation.graph.types:
                raise UserError(f"--pause-on {topic}: no such topic; known: {choices(simulation.graph.types)}")
        self._simulation = simulation
        self._topics = frozenset(pause_on)
        self._ask, self._tell = ask, tell
        self._steps = 0  # messages left until the next pause, 0: none counted
        self._pending: list[Stamped[Any]] = []
        self._quit = False
        simulation.observe(self._see)

    def run(self, seconds: float | None) -> None:
        """Run to the end, or until the person at the prompt quits; where nobody answers, to the first pause."""
        simulation = self._simulation
        end_ns = None if seconds is None else simulation.scheduler.now_ns + round(seconds * NS_PER_S)
        while not self._quit:
            left_s = None if end_ns is None else (end_ns - simulation.scheduler.now_ns) / NS_PER_S
            simulation.run(left_s, until=lambda: bool(self._pending))
            if not self._pending:
                return
            for stamped in self._pending:
                self._tell(line_of(stamped))
            self._pending.clear()
            self._prompt()

    def _see(self, stamped: Stamped[Any]) -> None:
        is_due = False
        if self._steps:
            self._steps -= 1
            is_due = not self._steps
        if is_due or stamped.envelope.topic in self._topics:
            self._pending.append(stamped)

    def _prompt(self) -> None:
        while True:
            asked = self._ask(f"{self._simulation.clock.now_ns() / NS_PER_S:.6f} s> ")
            if asked is None:
                self._tell(self._state())
                self._quit = True
                return
            word, _, rest = asked.strip().partition(" ")
            if word in ("", "c", "continue"):
                return
            if word in ("s", "step") and (not rest.strip() or rest.strip().isdecimal()):
                self._steps = max(1, int(rest or 1))
                return
            if word in ("q", "quit"):
                self._quit = True
                return
            if word in ("t", "topics"):
                self._tell(self._state())
            elif word in ("l", "latest"):
                self._tell(self._latest(rest.strip()))
            else:
                self._tell(HELP)

    def _latest(self, topic: str) -> str:
        try:
            stamped = self._simulation.latest_stamped(topic)
        except UserError as problem:
            return str(problem)
        if stamped is None:
            return f"nothing on {topic!r} yet; topics with messages: {choices(self._simulation.topics_seen)}"
        return line_of(stamped)

    def _state(self) -> str:
        now_ns = self._simulation.clock.now_ns()
        lines = [f"at {now_ns / NS_PER_S:.6f} s"]
        width = max((len(topic) for topic in self._simulation.topics_seen), default=0)
        for topic in sorted(self._simulation.topics_seen):
            stamped = self._simulation.latest_stamped(topic)
            if stamped is not None:
                lines.append(f"  {topic:{width}} {stamped.age_s(now_ns):8.3f} s old  {_short(stamped.message)}")
        return "\n".join(lines)


def line_of(stamped: Stamped[Any]) -> str:
    """A message on one line: when, where, from whom, what."""
    envelope = stamped.envelope
    when_s = envelope.published_ns / NS_PER_S
    return f"{when_s:12.6f} s  {envelope.topic} from {envelope.source} #{envelope.seq}: {_short(stamped.message, 500)}"


def _short(message: Any, most: int = 100) -> str:
    parts = []
    for name in message.__struct_fields__:
        value = getattr(message, name)
        shape = getattr(value, "shape", None)
        if shape is None:
            parts.append(f"{name}={value!r}")
        else:
            parts.append(f"{name}=array{tuple(shape)}")
    text = f"{type(message).__name__}({', '.join(parts)})"
    return text if len(text) <= most else text[: most - 3] + "..."
