"""`played`: a stand-in for a node, which says again what that node said in a recording, at the same times.

In a launch file, `stand_in = "nodes.recording.replay.played:played"` with `params = { recording = "run.mcap" }`;
`polyrhythm replay --in-place-of` writes that.
Stamps move with the clock of the run that listens, so ages stay what they were.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from nodes.hosts.clock_offset import shifted
from nodes.recording.bag.recording import Recording
from nodes.recording.replay.tape import Tape
from runtime import Node, ParameterError, Publisher, Stamped, every
from runtime.abilities import believes, role_of
from runtime.context import HandlerContext, current_call
from runtime.node import ports_of

PLAY_HZ = 100


class Played(Node):
    """Publishes what the node of this name published in `recording`, `speed` times as fast.

    `steps` says where silences are passed over, as `polyrhythm replay` finds them (`nodes.recording.replay.gaps`).
    """

    def __init__(self, recording: str, speed: float = 1.0, steps: list[int] | None = None) -> None:
        if not 0 < speed < float("inf"):
            raise ParameterError(f"speed is {speed}; expected a positive number")
        self.recording = recording
        self.speed = speed
        self.steps = steps or []
        self.said = 0
        self.is_driven = False  # by who plays several nodes on one virtual clock
        self._tape: Tape | None = None
        self._start_ns: int | None = None

    @property
    def ports(self) -> dict[str, Publisher[Any]]:
        """What it publishes on, by topic."""
        bound = [getattr(self, attribute) for attribute in ports_of(type(self), Publisher)]
        return {port.topic: port for port in bound}

    def on_start(self) -> None:
        """Open the recording. Raises RecordingError where it is none."""
        if not self.is_driven:
            types = {topic: port.message for topic, port in self.ports.items()}
            self._tape = Tape(Recording(Path(self.recording)), {self.name: types}, {self.name: self.steps})

    @every(hz=PLAY_HZ)
    def play(self) -> None:
        """Say what is due."""
        tape = self._tape
        if tape is None:
            return
        now_ns = self.clock.now_ns()
        if self._start_ns is None:
            self._start_ns = now_ns
        while tape.next is not None and tape.next.due_ns <= (now_ns - self._start_ns) * self.speed:
            self.say(tape.take())

    def devices(self) -> tuple[str, ...]:
        """None: what is played moves nothing."""
        return ()

    def say(self, stamped: Stamped[Any]) -> None:
        """Publish a recorded message now, with the ages, the cause and the fences that it had."""
        now_ns = self.clock.now_ns()
        moved = shifted(stamped, now_ns - stamped.envelope.published_ns)
        about = moved.envelope
        outer = current_call.get()
        call = HandlerContext(now_ns, about.epochs)
        call.origins = about.origins
        call.cause = about.cause
        call.notes = outer.notes if outer is not None else None
        port = self.ports[about.topic]
        port.provenance = about.provenance
        token = current_call.set(call)
        try:
            port.publish(moved.message)
        finally:
            current_call.reset(token)
        self.said += 1


@cache
def played(original: type[Node]) -> type[Node]:
    """A node class with the publishers of the original, which are played from a recording."""
    ports = {
        f"{attribute}_port": Publisher(port.message, port.topic, qos=port.qos)  # apart from this class's own names
        for attribute, port in ports_of(original, Publisher).items()
    }
    roles = {"role": role_of(original), "believes": believes(original)}
    about = {"__doc__": Played.__doc__, "__module__": __name__, "seat": original.seat, **roles}
    return type(f"Played{original.__name__}", (Played,), {**ports, **about})
