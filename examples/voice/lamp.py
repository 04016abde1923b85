"""A lamp that is talked to: words on `heard` switch it, words on `said` answer."""

from __future__ import annotations

import re

from nodes.msgs import Utterance
from runtime import Message, Node, Publisher, QoS, Subscription, every, on

ORDER = re.compile(r"\b(?:light|lamp)s?\b.*\b(?P<wanted>on|off)\b|\b(?P<first>on|off)\b.*\b(?:light|lamp)s?\b", re.I)
SCRIPT = {1: "Good morning", 2: "Lamp on, please", 5: "It is late. Switch the lamp off"}


class Light(Message, kind="state"):
    is_on: bool


class Lamp(Node):
    """Answers only what is about itself."""

    heard = Subscription(Utterance, "heard", qos=QoS(required=False))
    light = Publisher(Light, "light")
    said = Publisher(Utterance, "said")

    def __init__(self) -> None:
        self.is_on = False

    @on(heard)
    def listen(self, utterance: Utterance) -> None:
        order = ORDER.search(utterance.text)
        if order is None:
            return
        is_on = (order["wanted"] or order["first"]).lower() == "on"
        if is_on == self.is_on:
            self.said.publish(Utterance(speaker="lamp", text=f"I am {'on' if is_on else 'off'} already."))
            return
        self.is_on = is_on
        self.log.info("%s", "on" if is_on else "off")
        self.said.publish(Utterance(speaker="lamp", text="Here is light." if is_on else "Good night."))

    @every(hz=5)
    def shine(self) -> None:
        self.light.publish(Light(is_on=self.is_on))


class Person(Node):
    """Speaks by a script, where there is no microphone."""

    role = "ears"
    heard = Publisher(Utterance, "heard")

    def __init__(self) -> None:
        self.seconds = 0

    @every(hz=1)
    def speak(self) -> None:
        if text := SCRIPT.get(self.seconds):
            self.heard.publish(Utterance(speaker="ann", text=text))
        self.seconds += 1
