"""`SecondJudge`: hears what the reflex hears, with a small network; it adds stops and holds, and shortens holds."""

from __future__ import annotations

from typing import Literal

from nodes.interrupts.hold_seconds import HOLD_S
from nodes.interrupts.intent import understand
from nodes.interrupts.people import HearsPeople
from nodes.interrupts.phrase_matcher import clipped, load
from nodes.interrupts.stop_classifier import StopClassifier
from nodes.msgs import Interrupt, Utterance
from runtime import URGENT, Publisher, QoS, Subscription, on


class SecondJudge(HearsPeople):
    """May stop or hold for words that the reflex did not understand, and end a soft hold early. It lifts no stop.

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
        load()
        self.classifier = StopClassifier()

    @on(heard)
    def listen(self, utterance: Utterance) -> None:
        """Stop for words that are very likely a stop, and hold for those that may be one where the reflex does not."""
        certainty, meaning = self._certainty(utterance.text), understand(utterance.text)
        if certainty >= StopClassifier.stops_from(meaning):
            depth: Literal["stop", "hold"] = "stop"
        elif certainty >= StopClassifier.holds_from(meaning):
            depth = "hold"
        else:
            return
        self._publish(depth, clipped(utterance.text), utterance.speaker, person=self.judge(utterance).person)

    @on(interrupts)
    def review(self, interrupt: Interrupt) -> None:
        """End a soft hold early where the words are very likely harmless."""
        if interrupt.depth != "hold" or interrupt.takes_back:
            return
        if self._certainty(interrupt.text) < StopClassifier.harmless_below(understand(interrupt.text)):
            self._publish("hold", interrupt.text, self.name, takes_back=interrupt.id)

    def _certainty(self, text: str) -> float:
        return self.classifier.certainty(text) if self.classifier is not None else 0.5

    def _publish(
        self, depth: Literal["stop", "hold"], text: str, by: str, *, person: str = "", takes_back: str = ""
    ) -> None:
        self.count += 1
        self.interrupt.publish(
            Interrupt(
                id=f"{self.name}-{self.count}", depth=depth, text=text, by=by, cause="person" if person else "",
                person=person, takes_back=takes_back, hold_s=HOLD_S if depth == "hold" and not takes_back else 0.0,
            )
        )  # fmt: skip
