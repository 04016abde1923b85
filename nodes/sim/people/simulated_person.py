"""`SimulatedPerson`: what all simulated people do: speak, know what happened when, and forgive.

Each plays a script: the person of a scenario, and that of an experiment.
"""

from __future__ import annotations

import math

from nodes.msgs import GuardState, Utterance
from nodes.sim.messages import BodyPart, Truth
from runtime import RELIABLE, Node, Publisher, QoS, Subscription, UserError, to_s

GO_ON = "All right, go on"
TOUCHES = ("contact", "effort")
"""A stop by what the robot itself met, which a person in the room sees as well as it does."""
FORGIVE_AFTER_S, FORGIVE_AGAIN_S = 3.0, 5.0


class SimulatedPerson(Node):
    """Sees the simulator's truth, as a person in the room would; gives up `patience_s` after the order."""

    role = "ears"  # it plays a person
    forgives_all = False  # also what others have stopped
    again_s = FORGIVE_AGAIN_S

    said = Subscription(Utterance, "said")
    truth = Subscription(Truth, "sim/truth")
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))

    heard = Publisher(Utterance, "heard", qos=RELIABLE)
    body = Publisher(BodyPart, "sim/body")

    def __init__(self, speaker: str, patience_s: float) -> None:
        if not 0.0 < patience_s < math.inf:
            raise UserError(f"person: patience_s is {patience_s}; expected a positive number of seconds")
        self.speaker, self.patience_s = speaker, patience_s
        self.began_ns: dict[str, int] = {}  # what has happened, and when

    def say(self, text: str, who: str = "") -> None:
        """Say it at once."""
        self.heard.publish(Utterance(speaker=who or self.speaker, text=text))

    def mark(self, what: str) -> None:
        """It has happened now, where it has not before."""
        self.began_ns.setdefault(what, self.clock.now_ns())

    def since(self, what: str, never: float = -1.0) -> float:
        """Seconds since something happened, or `never`."""
        return to_s(self.clock.now_ns() - self.began_ns[what]) if what in self.began_ns else never

    def forgive(self, *, is_clear: bool = True) -> None:
        """What they, their foot or hand have stopped may go on after a moment, once they are out of its way."""
        guard = self.guard.latest()
        is_theirs = guard is not None and (self.forgives_all or guard.stopped_by in (self.speaker, *TOUCHES))
        if guard is None or not guard.is_stopped or not is_theirs:
            self.began_ns.pop("stopped", None)
            return
        self.mark("stopped")
        is_calm = min(self.since("stopped"), self.since("hurt", never=math.inf)) > FORGIVE_AFTER_S
        if is_clear and is_calm and self.since("forgave", never=math.inf) > self.again_s:
            self.began_ns["forgave"] = self.clock.now_ns()
            self.say(GO_ON)
