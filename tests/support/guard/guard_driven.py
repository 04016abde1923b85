"""A guard that somebody drives tick by tick, with a robot that answers; for tests by values."""

from __future__ import annotations

from typing import get_args

from nodes.guard.state_machine import GuardMachine
from nodes.msgs import Interrupt, JointCommand
from nodes.msgs.interrupt import Cause
from nodes.stretch.limits import STRETCH_3
from runtime.message import Envelope, Stamped
from tests.support.standing import standing

MS = 1_000_000
TICK = 20 * MS
FAR = (1.0, 0.5, 3.0, 0.4, 2.0, 0.12, 1.0, 0.2)


def command(
    now_ns: int,
    *,
    seq: int = 1,
    position: tuple[float, ...] = FAR,
    v: float = 0.0,
    w: float = 0.0,
    source: str = "policy",
    image_ns: int | None = None,
) -> Stamped[JointCommand]:
    envelope = Envelope("command", source, seq, now_ns, origins={} if image_ns is None else {"image": image_ns})
    return Stamped(JointCommand(position=position, base_v_mps=v, base_w_radps=w), envelope)


CAUSES = {*get_args(Cause)} - {"", "person"}


def interrupt(depth: str, by: str = "Ana", ident: str = "i1") -> Interrupt:
    """By a person of this name, or by the cause that is called so."""
    cause, person = (by, "") if by in CAUSES else ("person", by)
    return Interrupt(id=ident, depth=depth, text="words", by=by, cause=cause, person=person)  # type: ignore[arg-type]


class Story:
    """A machine with a robot that answers, and a hand on the clock."""

    def __init__(self, *, is_armed: bool = True) -> None:
        self.machine = GuardMachine(STRETCH_3)
        self.now_ns = 1_000_000_000
        self.seq = 0
        self.machine.update_state(standing(self.now_ns))
        if is_armed:
            assert self.machine.arm(self.now_ns)
            self.now_ns += MS

    def tick(self, *, sees: bool = True) -> JointCommand | None:
        self.now_ns += TICK
        if sees:
            self.machine.update_state(standing(self.now_ns))
        return self.machine.tick(self.now_ns)

    def send(self, *, v: float = 0.0, w: float = 0.0, position: tuple[float, ...] = FAR) -> str:
        self.seq += 1
        return self.machine.accept_command(command(self.now_ns, seq=self.seq, v=v, w=w, position=position), self.now_ns)

    def drive(self, ticks: int, v: float = 0.3) -> JointCommand:
        out = None
        for _ in range(ticks):
            assert self.send(v=v) == ""
            out = self.tick()
        assert out is not None
        return out
