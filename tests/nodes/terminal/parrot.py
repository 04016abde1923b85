"""A robot of the test's graph that answers what it hears."""

from __future__ import annotations

from nodes.msgs import Utterance
from runtime import Node, Publisher, QoS, Subscription, on
from runtime.qos import RELIABLE


class Parrot(Node):
    heard = Subscription(Utterance, "heard", qos=QoS(required=False))
    said = Publisher(Utterance, "said", qos=RELIABLE)

    @on(heard)
    def answer(self, utterance: Utterance) -> None:
        self.said.publish(Utterance(speaker="robot", text=f"{utterance.speaker} says: {utterance.text}"))
