"""`Partner`: a partner in mind. It hears what the robot hears, and predicts which things somebody will want left alone.

Each thing has odds that taking it away meets an objection. Words change them by Bayes' rule (thesis, chapter 3). The
planner asks first where the probability is worth a question.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from nodes.msgs import Reference, Scene, SkillCatalogue, Utterance
from nodes.planner.orders import Order, OrderVocabulary, Surroundings, covers
from nodes.planner.words.parser import parser_of
from nodes.planner.words.understanding import Conversation, understand_in
from runtime import Message, Node, Publisher, QoS, Subscription, on

PRIOR = 0.15
"""How probable an objection to a thing is of which nobody has spoken."""

RATIOS = {"objects": 200.0, "owns": 8.0, "uses": 3.0, "mentions": 1.5, "orders": 0.02}
"""How many times likelier such words are from somebody who will object: assumed, not measured."""

MOST_HEARD = 50


class Objection(Message):
    """How probable it is that somebody objects when this thing is taken away."""

    thing: Reference
    probability: float


class Objections(Message, kind="state"):
    """The predictions for all things that were seen or named, the likeliest first (topic `partner/objections`)."""

    of: tuple[Objection, ...]


class PartnerMind:
    """The odds of each thing, by label and colour; no bus."""

    def __init__(self) -> None:
        self.odds: dict[tuple[str, str], float] = {}

    def hear(self, text: str, world: OrderVocabulary) -> None:
        """Take in words: what is forbidden, owned, used, named or ordered."""
        intent, talk = understand_in(text, world, Conversation(), parser_of(world))
        ordered = [one for order in intent.orders for one in order.things if one.colour]
        self._weigh(ordered, "orders", world)
        self._weigh(intent.protected, "objects", world)
        if ordered or intent.protected:
            return
        words = set(re.findall(r"\w+", text.lower()))
        why = "owns" if words & {"my", "mine"} else "uses" if "i" in words else "mentions"
        named = [Reference(label=noun.kind or "*", colour=noun.colour) for noun in talk.mentioned if noun.colour]
        self._weigh(dict.fromkeys(named), why, world)

    def predict(self, scene: Scene) -> tuple[Objection, ...]:
        """Of each thing that is seen or was named, the likeliest first."""
        seen = {(thing.label, thing.colour) for thing in scene.things if not thing.is_place}
        odds = {**dict.fromkeys(seen, PRIOR / (1.0 - PRIOR)), **self.odds}
        found = [
            Objection(thing=Reference(label=label, colour=colour), probability=round(each / (1.0 + each), 4))
            for (label, colour), each in odds.items()
        ]
        return tuple(sorted(found, key=lambda one: (-one.probability, one.thing.colour, one.thing.label)))

    def _weigh(self, things: Iterable[Reference], why: str, world: OrderVocabulary) -> None:
        for thing in things:
            for label in sorted(world.kinds) if thing.label == "*" else (thing.label,):
                key = (label, thing.colour)
                self.odds[key] = self.odds.get(key, PRIOR / (1.0 - PRIOR)) * RATIOS[why]


def doubt_about(
    order: Order, objections: Sequence[Objection], ask_from: float, settled: Collection[tuple[str, str]]
) -> Reference | None:
    """What to ask about before it is moved: the likeliest objection to what the order covers, if it is that likely."""
    for one in objections:
        thing = one.thing
        is_covered = any(covers(each, thing) for each in order.things)
        is_settled = (thing.label, thing.colour) in settled or any(covers(each, thing) for each in order.excluding)
        if one.probability >= ask_from and is_covered and not is_settled:
            return thing
    return None


class Partner(Node):
    """Publishes its predictions when they change; add it to a graph: `--add partner=nodes.planner.partner:Partner`."""

    provenance = "script:partner-1"

    heard = Subscription(Utterance, "heard", qos=QoS(required=False))
    scene = Subscription(Scene, "scene", qos=QoS(required=False))
    skills = Subscription(SkillCatalogue, "skills", qos=QoS(required=False))

    objections = Publisher(Objections, "partner/objections")

    def __init__(self) -> None:
        self.mind = PartnerMind()
        self.unheard: list[str] = []  # until it is known what there is
        self.told: tuple[Objection, ...] = ()

    @on(heard)
    def listen(self, utterance: Utterance) -> None:
        """Words wait for the first scene, which says what they can be about."""
        self.unheard = [*self.unheard, utterance.text][-MOST_HEARD:]
        self._think()

    @on(scene)
    def see(self, _: Scene) -> None:
        """A first scene, or another thing."""
        self._think()

    def _think(self) -> None:
        """Take in what waits; tell what has changed."""
        scene, skills = self.scene.latest(), self.skills.latest()
        if scene is None or skills is None:
            return
        world = Surroundings(scene, skills.skills).world
        while self.unheard:
            self.mind.hear(self.unheard.pop(0), world)
        predicted = self.mind.predict(scene)
        if predicted != self.told:
            self.told = predicted
            self.objections.publish(Objections(of=predicted))
