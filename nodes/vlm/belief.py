"""`TableBelief`: of a table and a person at it, by looks without ids. `SceneBelief`: of eyes that keep ids."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from nodes.msgs import Action, Relation, RobotState, Scene, SeenObject, SeenPerson
from nodes.perception.shapes import ShapeNames
from nodes.vlm.choice.things import HAND, arm_side, is_in, is_on_floor, place_of, spot
from nodes.vlm.memory import SIGHTINGS_TO_BELIEVE, Known, believed, number_of, update, with_ids, without
from nodes.vlm.parts import Belief, PointM

if TYPE_CHECKING:
    from nodes.perception.people import PersonTrack

BESIDE_M = 0.2
STILL_M = 0.03
"""A hand that is as near as this to where the image before showed it waits for something."""


class TableBelief(Belief):
    """`kinds` and `places` are what its eyes can tell, where `shapes` does not say so."""

    def __init__(self, shapes: ShapeNames, kinds: tuple[str, ...] = (), places: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.shapes = shapes
        self.kinds, self.places = kinds or shapes.kinds, places or shapes.places
        self.known: tuple[Known, ...] = ()
        self.in_view: set[str] = set()  # what the newest image shows of that
        self.table_z_m: float | None = None
        self.stored: tuple[SeenObject, ...] = ()  # brought into a box, where the camera does not see them
        self.lost: tuple[SeenObject, ...] = ()  # left its place without the robot, since this work began
        self.began_at = self.taken_at = self.numbered = 1  # the next thing's number then, at the last pick, and now
        self.set_down: SeenObject | None = None  # what the robot let go of, and has not seen again yet
        self.person: PersonTrack | None = None  # from the first image with depth on
        self.seen_people: tuple[SeenPerson, ...] = ()  # as a model sees them
        self.theirs: SeenObject | None = None  # what lies in that person's hand
        self._base = (0.0, 0.0, 0.0)

    @property
    def objects(self) -> tuple[SeenObject, ...]:
        return believed(self.known)

    def stand(self, state: RobotState) -> None:
        self._base = (state.base_x_m, state.base_y_m, state.base_heading_rad)

    def new_work(self) -> None:
        super().new_work()
        self.lost, self.began_at = (), self.numbered

    # --- what an image shows

    def remember(self, seen: Sequence[SeenObject], is_empty: Callable[[SeenObject], bool]) -> None:
        """Take in what an image with depth shows, and forget what it shows to be gone."""
        before = {one.thing.id: one.thing for one in self.known if one.is_certain and not one.thing.is_place}
        sightings = {one.thing.id: one.sightings for one in self.known}
        self.known, self.numbered = with_ids(update(self.known, seen, is_empty), self.numbered)
        for ident in sorted(before.keys() - {one.thing.id for one in self.known}):
            self._lose(before[ident])
        self._find_again()
        self.in_view = {one.thing.id for one in self.known if one.sightings > sightings.get(one.thing.id, 0)}
        self.images += 1

    def _find_again(self) -> None:
        """What the robot set down keeps its id, by which people's words are remembered, wherever it is seen then."""
        down = self.set_down
        new = [one for one in self.known if down is not None and one.thing.name == down.name]
        new = [one for one in new if number_of(one.thing) >= self.taken_at and one.is_believed]
        if down is not None and len(new) == 1:
            self.set_down = None
            same = replace(new[0], thing=msgspec.structs.replace(new[0].thing, id=down.id))  # type: ignore[type-var]  # a Struct
            self.known = tuple(same if one is new[0] else one for one in self.known if one.thing.id != down.id)

    def see_palm(self, palm_m: PointM | None, held_colour: str, *, is_awaited: bool) -> None:
        """Somebody's palm, and the colour of what lies in it; one that two images show in one place, where a hand is
        awaited, waits for something.
        """
        self.theirs = self._in_their_hand(held_colour, palm_m) if held_colour and palm_m is not None else None
        before, self.palm_m = self.palm_m, palm_m if is_awaited else None
        is_still = before is not None and self.palm_m is not None and math.dist(before, self.palm_m) < STILL_M
        self.hand = hand_at(self.palm_m) if is_still and self.palm_m is not None else None

    def _in_their_hand(self, colour: str, palm_m: PointM) -> SeenObject | None:
        """What that is, by its colour: what the robot gave, or what left its place; None while the robot has it."""
        if self.holding is not None and self.holding.colour == colour:
            return None
        hidden = [one for one in self.objects if one.id not in self.in_view and not one.is_place]
        before = (*((self.theirs,) if self.theirs is not None else ()), *hidden, *self.lost, *self.moved)
        thing = next((one for one in reversed(before) if one.colour == colour), None) or SeenObject(
            id=f"held-{colour}", label="thing", colour=colour, x_m=0.0, y_m=0.0, z_m=0.0, width_m=0.0, height_m=0.0,
            u_px=0.0, v_px=0.0,
        )  # fmt: skip
        x, y, z = palm_m
        held: SeenObject = msgspec.structs.replace(thing, x_m=x, y_m=y, z_m=z + thing.height_m / 2)  # type: ignore[type-var]  # a Struct
        return held

    # --- what there is

    def things(self) -> tuple[SeenObject, ...]:
        """What the camera saw, what was put into boxes, and the table."""
        seen = self.objects
        boxes = [one for one in seen if one.is_place]
        in_boxes = {(one.label, one.colour) for one in seen if any(is_in(one, box) for box in boxes)}
        hidden = [one for one in self.stored if (one.label, one.colour) not in in_boxes]
        return (*seen, *hidden, *self._table())

    def _table(self) -> tuple[SeenObject, ...]:
        if self.table_z_m is None:
            return ()
        on_it = [one for one in self.objects if not one.is_place]
        x, y, _ = arm_side(self._base)
        if on_it:
            x, y = (sum(values) / len(on_it) for values in zip(*((one.x_m, one.y_m) for one in on_it), strict=True))
        return (spot(self.shapes.table, x, y, self.table_z_m, ident=self.shapes.table),)

    def scene(self, now_ns: int) -> Scene:
        theirs = self.theirs
        things = tuple(one for one in self.things() if theirs is None or one.id != theirs.id)
        held: tuple[SeenObject, ...] = () if self.holding is None else (self.holding,)
        loose = [one for one in things if not one.is_place]
        relations = [Relation(subject=one.id, relation="held by", object="robot") for one in held]
        for number, one in enumerate(loose):
            place = place_of(one, things)
            is_inside = place is not None and place.height_m > 0.0
            if place is None and is_on_floor(one):
                relations.append(Relation(subject=one.id, relation="on", object="floor"))
            elif place is not None:
                relations.append(Relation(subject=one.id, relation="in" if is_inside else "on", object=place.id))
            for other in loose[number + 1 :]:
                if not is_inside and math.hypot(one.x_m - other.x_m, one.y_m - other.y_m) < BESIDE_M:
                    relations.append(Relation(subject=one.id, relation="beside", object=other.id))
        people = self.seen_people
        if not people and self.person is not None:
            people = self.person.tell(loose, theirs.id if theirs is not None else "", now_ns, lambda _: True)
        if theirs is not None and people:
            held += (theirs,)
            relations.append(Relation(subject=theirs.id, relation="held by", object=people[0].id))
        return Scene(
            things=tuple(one if one.id in self.in_view else _out_of_view(one) for one in (*things, *held)),
            relations=tuple(relations),
            people=people,
            kinds=self.kinds,
            places=self.places,
            is_looked=self.has_looked,
        )

    def gone(self) -> tuple[SeenObject, ...]:
        """Nor seen under a new id, in the hand, or brought."""
        there = (*self.objects, *self.moved, *((self.holding,) if self.holding is not None else ()))
        again = Counter(one.name for one in there if number_of(one) >= self.began_at)
        boxes = [one for one in there if one.is_place and one.height_m > 0.0]
        gone = []
        for thing in self.lost:
            is_theirs = self.theirs is not None and self.theirs.id == thing.id
            if is_theirs or any(is_in(thing, box) for box in boxes):
                continue  # a box hides what lies in it
            again[thing.name] -= 1
            if again[thing.name] < 0:
                gone.append(thing)
        return tuple(gone)

    def _lose(self, thing: SeenObject) -> None:
        """It is not where it was; where it was an earlier one that was found again, that is not lost twice."""
        is_found = number_of(thing) >= self.began_at
        before = next((one for one in self.lost if is_found and one.name == thing.name), None)
        self.lost = (*(one for one in self.lost if one is not before), thing)

    # --- what the robot did

    def succeeded(self, action: Action) -> None:
        held, place = self.holding, action.target
        super().succeeded(action)
        if action.skill in ("pick", "place", "put_back"):
            is_hidden = action.skill != "pick" and place is not None and place.is_place and place.height_m > 0.0
            self.set_down = None if is_hidden else held
        if action.skill == "pick" and place is not None:
            self._find_again()  # the policy has put that back first
            self.set_down, self.taken_at = None, self.numbered
            self.known = without(self.known, place)
            self.stored = tuple(one for one in self.stored if one.id != place.id)
        elif action.skill == "hand_over" and held is not None:
            self.images = 0  # to be seen whether it stays there
        elif action.skill in ("place", "put_back") and held is not None and place is not None and place.is_place:
            there: SeenObject = msgspec.structs.replace(held, x_m=place.x_m, y_m=place.y_m)  # type: ignore[type-var]  # a Struct
            if place.height_m > 0.0:
                self.stored += (there,)
            else:
                self.known += (Known(there, SIGHTINGS_TO_BELIEVE, 0, ((held.label, held.colour),)),)

    def failed(self, action: Action, *, is_grasping: bool) -> None:
        if not is_grasping and self.holding is not None:
            self._lose(self.holding)
        super().failed(action, is_grasping=is_grasping)
        if action.target is None or action.skill not in ("pick", "place", "hand_over"):
            return
        self.known = without(self.known, action.target)  # not there, or not so: to be seen afresh before another try
        if action.skill == "pick" and not is_grasping:
            self._lose(action.target)


class SceneBelief(Belief):
    """Of eyes that tell a whole scene with ids of their own; where they only guess, nothing is handled by it."""

    def __init__(self, *, is_guess: bool = False) -> None:
        super().__init__()
        self.now = Scene()
        self._is_guess = is_guess

    def take(self, scene: Scene, *, is_grasping: bool) -> None:
        """What is there now."""
        self.now = scene
        self.images += 1
        ids = {one.subject for one in scene.relations if one.relation == "held by" and one.object == "robot"}
        held = next((one for one in scene.things if one.id in ids), None)
        if held is not None or not is_grasping:
            self.holding = held

    @property
    def relations(self) -> tuple[Relation, ...]:
        return self.now.relations

    def things(self) -> tuple[SeenObject, ...]:
        if self._is_guess:
            return ()
        shown = ((one.id, one.hand_m) for one in self.now.people if one.hand == "open")
        return (
            *self.now.things,
            *(hand_at(palm_m, f"{HAND}-{ident}") for ident, palm_m in shown if palm_m is not None),
        )

    def scene(self, now_ns: int) -> Scene:
        return self.now


def hand_at(palm_m: PointM, ident: str = HAND) -> SeenObject:
    """A palm as something to set a thing onto."""
    return spot(HAND, *palm_m, ident=ident)


def _out_of_view(thing: SeenObject) -> SeenObject:
    return msgspec.structs.replace(thing, u_px=0.0, v_px=0.0)  # type: ignore[type-var]  # a Struct
