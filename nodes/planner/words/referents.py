"""Which things of a scene are meant by words that do not tell: "that one", "the cup" among several. Pure functions.

A finger tells first, then what the robot holds or goes for, then what was named. Else nobody can tell, and one has to
ask. The planner and the VLM both use this, so that they leave the same thing alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from nodes.msgs import Reference, Scene, SeenObject
from nodes.planner.orders import Order, Unnamed
from nodes.planner.words.lexicon import lexicon_file


@dataclass(frozen=True, slots=True)
class Referents:
    """All that can be meant: of one name where it is clear, () where nothing fits; and what told."""

    things: tuple[SeenObject, ...] = ()
    by: Literal["pointing", "action", "words"] = "words"

    @property
    def is_clear(self) -> bool:
        """Whether all of them have the same name, so that a question could not tell them apart."""
        return len({(one.label, one.colour) for one in self.things}) == 1


def referents(what: Unnamed, order: Order | None, scene: Scene, target: SeenObject | None = None) -> Referents:
    """What is meant, while `order` is carried out and the robot holds, or goes for, `target`."""
    things = [one for one in scene.things if not one.is_place and what.label in ("", one.label)]
    held = held_by_robot(scene)
    in_hand = [one for one in things if one.id in held]
    if target is not None and what.label in ("", target.label):
        under_way = [target]
    else:
        under_way = in_hand if target is None else []
    if what.how == "told" and what.named is not None:
        return Referents(tuple(one for one in things if fits(one, what.named, scene)))
    if what.how == "held" and in_hand:
        return Referents(tuple(in_hand), "action")
    pointed_at = {one.points_at for one in scene.people if one.points_at}
    pointed = [one for one in things if one.id in pointed_at]
    is_open = [one for one in things if order is not None and is_still_meant(one, order, scene)] or things
    if len(pointed) > 1 and what.how != "other":  # by two people
        return Referents(tuple(pointed))
    if what.how == "described" and not pointed:
        return Referents(tuple(is_open))
    if what.how == "other":
        apart = {one.id for one in (*pointed, *under_way)}
        return Referents(tuple(one for one in is_open if one.id not in apart))
    if pointed:
        return Referents(tuple(pointed), "pointing")
    if under_way:
        return Referents(tuple(under_way), "action")
    named = [one for one in is_open if what.named is not None and fits(one, what.named, scene)]
    return Referents(tuple(named or is_open))


def named_under_way(
    told_of: Sequence[Reference], order: Order | None, scene: Scene, target: SeenObject | None = None
) -> tuple[SeenObject, ...]:
    """What is worked on, or still to be, of what something was said; "it" is what the robot holds or goes for."""
    if order is None:
        return ()
    things = [one for one in scene.things if is_still_meant(one, order, scene)]
    held = held_by_robot(scene)
    target = target or next((one for one in scene.things if one.id in held), None)
    if target is not None and all(one.id != target.id for one in things):
        things.append(target)
    named = [one for one in told_of if one.label or one.colour]
    found = [one for one in things if any(fits(one, what, scene) for what in named)]
    if len(named) < len(told_of) and target is not None:
        found.append(target)
    return tuple(dict.fromkeys(found))


def as_references(things: Sequence[SeenObject], scene: Scene) -> tuple[Reference, ...]:
    """These things alone: by their looks, or by their ids where others look so too."""
    ids = {one.id for one in things}
    others = {(one.label, one.colour) for one in scene.things if one.id not in ids}
    found = [
        Reference(id=one.id if (one.label, one.colour) in others else "", label=one.label, colour=one.colour)
        for one in things
    ]
    return tuple(dict.fromkeys(found))


def is_still_meant(thing: SeenObject, order: Order, scene: Scene) -> bool:
    """Whether the order is about this thing, and has not been done to it yet."""
    is_left = any(fits(thing, one, scene) for one in order.excluding)
    is_done = order.skill == "place" and stands(thing, order.place, scene)
    return not is_left and not is_done and any(fits(thing, one, scene) for one in order.things)


def fits(thing: SeenObject, reference: Reference, scene: Scene) -> bool:
    """Whether a thing that is seen may be what the reference means."""
    if thing.is_place or (reference.id and thing.id != reference.id):
        return False
    if reference.source and not stands(thing, reference.source, scene) and thing.id not in held_by_robot(scene):
        return False
    is_kind = reference.label in ("", "*", thing.label) or thing.label in lexicon_file().groups.get(reference.label, ())
    return is_kind and reference.colour in ("", thing.colour)


def held_by_robot(scene: Scene) -> set[str]:
    """Ids of what is in the robot's hand."""
    return {one.subject for one in scene.relations if one.relation == "held by" and one.object == "robot"}


_SAME_STATE = {"washed": "clean", "unwashed": "dirty", "shut": "closed", "half-full": "half full"}
_UNLESS = {"clean": "dirty", "empty": "full", "closed": "open"}


def marks_of(state: str) -> frozenset[str]:
    """The marks of a thing by which it is seen whether it is so."""
    state = _SAME_STATE.get(state.lower(), state.lower())
    mark = _UNLESS.get(state, state)
    return frozenset({mark, "half full"} if mark == "full" else {mark})


def is_so(thing: SeenObject, state: str) -> bool:
    """Whether it is dirty, clean, full, empty, open or closed, as far as that is seen: without a mark it is clean."""
    is_unless = _SAME_STATE.get(state.lower(), state.lower()) in _UNLESS
    return bool(marks_of(state) & set(thing.state)) != is_unless


def standing(things: Sequence[SeenObject], scene: Scene) -> list[SeenObject]:
    """Those that stand there; what lies in something only where nothing else is."""
    inside = {one.subject for one in scene.relations if one.relation == "in"}
    return [one for one in things if one.id not in inside] or list(things)


def place_of(ident: str, scene: Scene) -> str:
    """The label of what the thing stands on or in; "" where it does not."""
    at = next((one.object for one in scene.relations if one.subject == ident and one.relation in ("on", "in")), "")
    return next((one.label for one in scene.things if one.is_place and one.id == at), at)


def relation_to(place: str, scene: Scene) -> str:
    """ "in" a place with a rim, "on" any other."""
    return "in" if any(one.label == place and one.height_m > 0.0 for one in scene.things) else "on"


def stands(thing: SeenObject, place: str, scene: Scene) -> bool:
    """Whether it is in or on the place of that label."""
    places = {one.id for one in scene.things if one.is_place and one.label == place}
    return any(one.subject == thing.id and one.object in places for one in scene.relations)
