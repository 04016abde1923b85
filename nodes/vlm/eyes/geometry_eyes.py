"""`GeometryEyes`: what colour and depth show of a table and of a person at it, without a model; about 10 ms a look."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nodes.msgs import Image, RobotState, SeenObject
from nodes.robot.protocol import Body
from nodes.vlm.belief import TableBelief
from nodes.vlm.choice.next_action import LOOK_ROUND
from nodes.vlm.choice.things import is_on_floor
from nodes.vlm.eyes.poses import Images
from nodes.vlm.parts import EyesAsk, Moment, VLMEyes

SAME_SIZE = 0.7
"""What fell has this share of its size at least, as its larger side shows it, however it lies."""


class GeometryEyes(VLMEyes):
    """Look at each image of whose moment the robot's state is known."""

    def __init__(self, belief: TableBelief) -> None:
        self.belief = belief
        self.images = Images()

    def look(self, now: Moment) -> EyesAsk:
        from nodes.perception.colour_patches import colours_in_view

        newest, images = now.image, self.images
        if newest is not None and newest.message.depth_m is None and newest.message.captured_ns != images.looked_ns:
            images.looked_ns, self.seen = newest.message.captured_ns, newest
            self.belief.unplaced = tuple(f"something {colour}" for colour in colours_in_view(newest.message.rgb))
        elif (posed := images.posed(newest, now.states, now.body)) is not None:
            self.seen, state = posed
            image = self.seen.message
            self.belief.unplaced = ()
            if image.depth_m is not None:
                self.find_person(image, state, now)
                self.remember(self.shapes_in(image, state, now.body), image, state, now)
        return EyesAsk()

    def shapes_in(self, image: Image, state: RobotState, body: Body) -> tuple[SeenObject, ...]:
        """What geometry finds in an image with depth."""
        from nodes.perception.objects import find_objects, is_at_foot
        from nodes.perception.point_cloud import Shot

        belief = self.belief
        assert image.depth_m is not None
        shot, own = Shot(image.depth_m, image.focal_px, *body.head_camera(state)), body.own_parts(state)
        if belief.person is not None and belief.person.hand is not None:
            own = (*own, *belief.person.hand.room)  # nothing there stands on the table
        seen = find_objects(image.rgb, shot, own=own, table_z_m=belief.table_z_m, names=belief.shapes)
        thing = next((one for one in seen if not one.is_place and not is_on_floor(one)), None)
        if thing is not None:
            belief.table_z_m = thing.z_m - thing.height_m / 2
        boxes = [one for one in belief.objects if one.is_place and one.height_m > 0.0]
        return tuple(
            self._as_it_stood(one) if is_on_floor(one) else one
            for one in seen
            if not (is_on_floor(one) and any(is_at_foot(one, box) for box in boxes))
        )

    def _as_it_stood(self, thing: SeenObject) -> SeenObject:
        """What left its place is called as it was there: of what lies on the floor, proportions say little."""
        size_m = max(thing.width_m, thing.height_m)
        for was in self.belief.lost:
            was_m = max(was.width_m, was.height_m)
            if was.colour == thing.colour and min(size_m, was_m) > SAME_SIZE * max(size_m, was_m):
                renamed: SeenObject = msgspec.structs.replace(thing, label=was.label)  # type: ignore[type-var]  # a Struct
                return renamed
        return thing

    def remember(self, seen: Sequence[SeenObject], image: Image, state: RobotState, now: Moment) -> None:
        """Tell belief of what an image with depth shows."""
        from nodes.perception.objects import place_is_empty
        from nodes.perception.point_cloud import Shot

        assert image.depth_m is not None
        shot = Shot(image.depth_m, image.focal_px, *now.body.head_camera(state))

        def is_empty(thing: SeenObject) -> bool:
            place = (thing.x_m, thing.y_m, thing.z_m)
            return not thing.is_place and place_is_empty(shot, place)

        self.belief.remember(seen, is_empty)
        self.shown_ns = image.captured_ns
        if now.skills is not None and LOOK_ROUND not in now.skills:
            self.belief.has_looked = True  # its head does not turn

    def find_person(self, image: Image, state: RobotState, now: Moment) -> None:
        """What somebody does; a hand is awaited where what is held is to be given."""
        from nodes.perception.hands import find_faces, find_hand
        from nodes.perception.people import PersonTrack
        from nodes.perception.point_cloud import Shot

        belief, table_z_m = self.belief, self.belief.table_z_m
        assert image.depth_m is not None
        view = (image.rgb, Shot(image.depth_m, image.focal_px, *now.body.head_camera(state)))
        own = now.body.own_parts(state)
        found = find_hand(*view, table_z_m=table_z_m, own=own) if table_z_m is not None else None
        hand, held = found or (None, "")
        belief.person = belief.person or PersonTrack()
        belief.person.follow([] if hand is None else [hand], find_faces(*view), image.captured_ns, lambda _: True)
        is_awaited = now.is_giving and belief.holding is not None
        belief.see_palm(hand.palm_m if hand is not None else None, held, is_awaited=is_awaited)
