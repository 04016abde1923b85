"""Nodes that speak in processes of their own; named in launch files as "tests.nodes.voice.speaking_nodes:Class"."""

from __future__ import annotations

from nodes.msgs import Interrupt, Saying, Utterance
from runtime import Node, Publisher, Subscription, every, on
from runtime.qos import RELIABLE, URGENT

SHORT = "Well."
LONG = " ".join(["I put the blue cup in the bin now, and then I take the red one, and after that all the others."] * 5)


class Chatterbox(Node):
    """Says something short, then something long that it stops itself once it has begun; tells how far that got."""

    said = Publisher(Utterance, "said", qos=RELIABLE)
    interrupt = Publisher(Interrupt, "interrupt", qos=URGENT)
    saying = Subscription(Saying, "saying")

    def __init__(self) -> None:
        self.has_spoken = False
        self.told: list[str] = []

    @every(hz=1)
    def begin(self) -> None:
        if not self.has_spoken:
            self.has_spoken = True
            for text in (SHORT, LONG):
                self.said.publish(Utterance(speaker="robot", text=text))

    @on(saying)
    def follow(self, saying: Saying) -> None:
        self.told.append(saying.phase)
        if saying.text == LONG and saying.phase == "begun":
            self.interrupt.publish(Interrupt(id="i-1", depth="stop", text="Stop!", by="ann"))
        elif saying.text == LONG:
            is_true = LONG.startswith(saying.spoken) and saying.spoken != LONG and saying.why == "stop"
            self.finish(ok=is_true, reason=f"told: {', '.join(self.told)}")
