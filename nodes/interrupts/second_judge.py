"""`SecondJudge`: hears what the reflex hears, with a small network; it adds stops and shortens soft holds."""

from __future__ import annotations

from nodes.interrupts.intent import understand
from nodes.interrupts.phrase_matcher import clipped
from nodes.interrupts.stop_classifier import StopClassifier
from runtime import URGENT, Node, Publisher, QoS, Subscription, on
from runtime.msgs import Interrupt, Utterance


class SecondJudge(Node):
    """May stop the robot for words that the reflex did not understand, and end a soft hold early. It lifts no stop.

    Give it a process of its own (`process = "judge"`): nothing waits for it.
    """

    heard = Subscription(Utterance, "heard", qos=QoS(required=False))
    interrupts = Subscription(Interrupt, "interrupt", qos=QoS(required=False))
    interrupt = Publisher(Interrupt, "interrupt", qos=URGENT)

    def __init__(self) -> None:
        self.count = 0
        self.classifier: StopClassifier | None = None

    def on_start(self) -> None:
        """Read the phrase tables and the network."""
        understand("stop")  # reads the tables
        self.classifier = StopClassifier()

    @on(heard)
    def listen(self, utterance: Utterance) -> None:
        """Stop for words that are very likely a stop."""
        if self._certainty(utterance.text) >= StopClassifier.stops_from(understand(utterance.text)):
            self._publish(Interrupt(id="", depth="stop", text=clipped(utterance.text), by=utterance.speaker))

    @on(interrupts)
    def review(self, interrupt: Interrupt) -> None:
        """End a soft hold early where the words are very likely harmless."""
        if interrupt.depth != "hold" or interrupt.takes_back:
            return
        if self._certainty(interrupt.text) < StopClassifier.HARMLESS_BELOW:
            self._publish(Interrupt(id="", depth="hold", text=interrupt.text, by=self.name, takes_back=interrupt.id))

    def _certainty(self, text: str) -> float:
        return self.classifier.certainty(text) if self.classifier is not None else 0.5

    def _publish(self, interrupt: Interrupt) -> None:
        self.count += 1
        self.interrupt.publish(
            Interrupt(
                id=f"{self.name}-{self.count}", depth=interrupt.depth, text=interrupt.text, by=interrupt.by,
                takes_back=interrupt.takes_back,
            )
        )  # fmt: skip
