"""The person of the soak: the demo's collaborator, who does not end the run and has the robot stop now and then."""

from __future__ import annotations

from itertools import cycle

from nodes.sim.people.person import ScenarioPerson
from runtime import every

WORDS = cycle(
    ("Stop!", "Please put the cups in the bin", "What do you see?", "Ouch!", "Please put the cups in the bin")
)


class EndlessPerson(ScenarioPerson):
    """Says something every 20 s, for ever; what they stop they let go on again."""

    role = "ears"

    def finish(self, *, ok: bool, reason: str) -> None:
        """Stay."""

    @every(hz=0.05)
    def chat(self) -> None:
        self.say(next(WORDS))
