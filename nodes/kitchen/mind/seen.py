"""`Seen`: what can be asked of the newest scene: which things there are, where each is, and who holds it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nodes.kitchen.mind.household import FRUIT
from nodes.msgs import Reference, SeenObject
from nodes.planner.orders import Surroundings


@dataclass(frozen=True, slots=True)
class Seen:
    """Things are named by their ids, places by their labels; "" for none."""

    world: Surroundings

    def things(self) -> list[SeenObject]:
        """All that is no place."""
        return [one for one in self.world.scene.things if not one.is_place]

    def thing(self, thing: str) -> SeenObject | None:
        """The thing of that id."""
        return next((one for one in self.things() if one.id == thing), None)

    def name(self, thing: str) -> str:
        """What it is called."""
        found = self.thing(thing)
        return found.name if found is not None else "thing"

    def fitting(self, reference: Reference) -> list[SeenObject]:
        """All that a reference may mean."""
        label = reference.label
        return [
            one
            for one in self.things()
            if (label in ("", "*", one.label) or (label == "fruit" and one.label in FRUIT))
            and reference.colour in ("", one.colour)
            and (not reference.source or self.place_of(one.id) == reference.source)
        ]

    def place_of(self, thing: str) -> str:
        """What it stands on or in."""
        return next(
            (one.object for one in self.world.scene.relations if one.subject == thing and one.relation in ("on", "in")),
            "",
        )

    def is_held(self, thing: str) -> bool:
        """Whether the robot holds it."""
        return any(one.subject == thing and one.object == "robot" for one in self.world.scene.relations)

    def is_held_by_person(self, thing: str) -> bool:
        """Whether somebody else does."""
        return any(
            one.subject == thing and one.relation == "held by" and one.object != "robot"
            for one in self.world.scene.relations
        )

    def held_by_people(self) -> list[SeenObject]:
        """What people hold."""
        held = [self.thing(one.holds) for one in self.world.scene.people if one.holds]
        return [one for one in held if one is not None]

    def relation(self, place: str) -> str:
        """ "in" a place with a rim, "on" any other."""
        return "in" if any(one.label == place and one.height_m > 0.0 for one in self.world.scene.things) else "on"

    def place_in(self, plain: str) -> str:
        """The first place that a sentence names."""
        text = re.sub(r"\bcounter\b", "countertop", plain.replace("counter top", "countertop"))
        return next((one for one in self.world.world.places if re.search(rf"\b{one}\b", text)), "")

    def is_named(self, thing: str, plain: str) -> bool:
        """Whether a sentence says its colour."""
        found = self.thing(thing)
        return found is not None and bool(found.colour) and found.colour in plain.split()


def is_empty(thing: SeenObject) -> bool:
    """Whether nothing would be poured away with it."""
    return not {"full", "half full"} & set(thing.state)


def is_dirty(thing: SeenObject) -> bool:
    """Whether it was seen to need washing."""
    return "dirty" in thing.state
