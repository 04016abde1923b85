"""`Sight`: what a robot believes of a kitchen from its head camera's images alone, as a `Scene` with stable ids.

It knows the map of the room and where its own joints are; it reads nothing of a simulator. Things keep their ids while
they are hidden, carried or moved by somebody who is watched; what is seen to be gone is no longer believed.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nodes.msgs import Image, RobotState, Scene, SeenObject
from nodes.perception.gestures import PointM
from nodes.perception.hands import HandPose
from nodes.perception.objects import place_is_empty
from nodes.perception.people import PERSON, PersonTrack
from nodes.perception.point_cloud import Shot
from nodes.robot.products import product
from nodes.robot.protocol import Body
from nodes.sim.world.world_file import WorldFile, relations_of, seen_place
from nodes.vlm.room.blobs import Blob, ImageGeometry, look, map_of
from nodes.vlm.room.crops import KNOWN_FROM, OTHER, Classification, CropReader, cut_out

SAME_M = 0.07
IN_HAND_M = 0.10
OVER_PALM_M = 0.13
BELIEVE, BELIEVE_OTHER = 2, 8
"""Sightings until a thing is believed to be there; of what has no name."""
MISSES = 3
GONE_M, GONE_SHARE = 0.06, 0.55
"""A thing is gone where the camera sees so far beyond its middle, or by this share of its height."""
DOUBTED = 0.15
"""What is less likely to be of the kind that it was is of none."""
VOTES, STATES = 12, 4
FULL_PX = 150
"""As many pixels as a vote of full weight has."""
OPEN_ABOVE_M = 0.08


@dataclass(slots=True)
class Track:
    """One thing that was seen, and what is believed of it."""

    x_m: float
    y_m: float
    bottom_m: float
    height_m: float
    width_m: float
    surface: str
    votes: deque[tuple[Mapping[str, float], str, float]] = field(default_factory=lambda: deque(maxlen=VOTES))
    states: deque[tuple[str, str, bool, bool]] = field(default_factory=lambda: deque(maxlen=STATES))
    sizes: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=VOTES))
    sightings: int = 0
    misses: int = 0
    id: str = ""
    holder: str = ""
    kind: str = OTHER
    colour: str = ""
    box: tuple[int, int, int, int] = (0, 0, 0, 0)
    seen_ns: int = -1  # when the image with this box was taken

    @property
    def middle_m(self) -> tuple[float, float, float]:
        """Where its middle is."""
        return self.x_m, self.y_m, self.bottom_m + self.height_m / 2

    @property
    def likely(self) -> dict[str, float]:
        """How likely it is of each kind, by all votes."""
        total = sum(weight for _, _, weight in self.votes) or 1.0
        kinds = {kind for share, _, _ in self.votes for kind in share}
        return {kind: sum(share.get(kind, 0.0) * w for share, _, w in self.votes) / total for kind in sorted(kinds)}

    @property
    def is_believed(self) -> bool:
        """Whether it was seen often enough, and not seen to be gone."""
        needed = BELIEVE if self.kind != OTHER or self.id else BELIEVE_OTHER
        return self.misses < MISSES and self.sightings >= needed


class Sight:
    """`kitchen` is the map, `reader` tells what a cut-out shows."""

    def __init__(self, kitchen: WorldFile, reader: CropReader) -> None:
        self._kitchen, self._reader = kitchen, reader
        self._room = map_of(kitchen)
        self._tracks: list[Track] = []
        self._numbered = 0
        self._stained: dict[str, bool] = {}
        self._person = PersonTrack()
        self._held: Track | None = None
        self.image_ns = 0  # when the newest image was taken

    def see(self, image: Image, state: RobotState, body: Body) -> None:
        """Take in one image with depth; `state` is the robot's at that time."""
        if image.depth_m is None:
            return
        self.image_ns = image.captured_ns
        rotation, camera = body.head_camera(state)
        shot = Shot(image.depth_m, image.focal_px, rotation, camera)
        seen = look(image.rgb, shot, self._room, body.own_parts(state))
        told = self._reader.read([cut_out(one, image.rgb, image.depth_m) for one in seen.blobs])
        self.grip(state, body)

        def is_in_view(at_m: tuple[float, float, float]) -> bool:
            x, y, depth = product(rotation.T, np.array(at_m) - camera).tolist()
            height, width = image.rgb.shape[:2]
            aside, down = (abs(one) * image.focal_px / max(depth, 1e-3) for one in (x, y))
            return bool(depth > 0.0 and aside < width / 2 and down < height / 2)

        def is_empty(one: Track) -> bool:
            margin_m = min(GONE_M, GONE_SHARE * one.height_m)  # what is flat hides little
            return place_is_empty(shot, one.middle_m, margin_m=margin_m)

        self._person.follow(seen.hands, seen.faces, image.captured_ns, is_in_view)
        self._match(seen, told, {id(one): is_empty(one) for one in self._tracks if one.holder != "robot"})
        self._stained |= seen.stains

    def scene(self, now_ns: int) -> Scene:
        """All that is believed to be there."""
        believed = [one for one in self._tracks if one.is_believed]
        for one in believed:
            if not one.id:
                self._numbered += 1
                word = one.kind.replace(" ", "-") if one.kind != OTHER else "thing"
                one.id = f"{word}-{self._numbered}"
        things = [_seen(one, is_shown=one.seen_ns == self.image_ns) for one in believed]
        places = [
            seen_place(name, place, is_dirty=self._stained.get(name, False))
            for name, place in self._kitchen.places.items()
        ]
        held = next((thing.id for thing, one in zip(things, believed, strict=True) if one.holder == PERSON), "")
        standing = [(thing, track.holder, track.surface) for thing, track in zip(things, believed, strict=True)]
        return Scene(
            things=(*things, *places), relations=relations_of(self._kitchen, standing),
            people=self._person.tell(things, held, now_ns, self._is_high), kinds=tuple(self._kitchen.kinds),
            places=tuple(self._kitchen.places),
        )  # fmt: skip

    def likely(self) -> dict[str, dict[str, float]]:
        """How likely each thing of the scene is of each kind, by id."""
        return {one.id: one.likely for one in self._tracks if one.id}

    @property
    def face_m(self) -> PointM | None:
        """Where a head was seen last, or where one must be above a hand."""
        return self._person.face_m

    # --- things

    def _match(self, seen: ImageGeometry, told: Sequence[Classification], empty: dict[int, bool]) -> None:
        left = [one for one in self._tracks if one.holder != "robot"]
        pairs = sorted(
            (math.dist((blob.x_m, blob.y_m), (track.x_m, track.y_m)), number, place)
            for number, blob in enumerate(seen.blobs)
            for place, track in enumerate(left)
        )
        of_blob: dict[int, Track] = {}
        taken: set[int] = set()
        for away, number, place in pairs:
            if away < SAME_M and number not in of_blob and place not in taken:
                of_blob[number] = left[place]
                taken.add(place)
        for number, one in enumerate(told):
            if number in of_blob or one.kind == OTHER:
                continue
            for place, track in enumerate(left):
                is_alike = (track.kind, track.colour) == (one.kind, one.colour) and bool(track.id)
                is_gone = track.misses > 0 or empty.get(id(track), False) or track.holder != ""
                if place not in taken and is_alike and is_gone:
                    of_blob[number] = track
                    taken.add(place)
                    break
        for number, (blob, one) in enumerate(zip(seen.blobs, told, strict=True)):
            found = of_blob.get(number)
            if found is None:
                if one.kind == OTHER and not blob.surface:
                    continue  # an arm, or what nobody knows in the air
                found = Track(blob.x_m, blob.y_m, blob.bottom_m, blob.top_m - blob.bottom_m, blob.width_m, blob.surface)
                self._tracks.append(found)
            self._take_in(found, blob, one)
        for place, track in enumerate(left):
            if place in taken:
                continue
            is_taken = track.holder == PERSON and bool(seen.hands)
            track.misses += is_taken or empty.get(id(track), False)
        self._tracks = [one for one in self._tracks if one.id or one.misses < MISSES]

    def _take_in(self, track: Track, blob: Blob, told: Classification) -> None:
        away = math.dist((blob.x_m, blob.y_m), (track.x_m, track.y_m))
        is_far = away > (SAME_M if blob.is_cut and track.sizes else 0.03)  # the middle of a part is not the thing's
        weight = min(len(blob.pixels) / FULL_PX, 1.0) * (0.3 if blob.is_cut else 1.0)
        share = 1.0 if is_far or not track.sightings else 0.0 if blob.is_cut else 0.4 * weight
        track.x_m += share * (blob.x_m - track.x_m)
        track.y_m += share * (blob.y_m - track.y_m)
        if is_far or share > 0:
            track.bottom_m, track.surface = blob.bottom_m, blob.surface
        if not blob.is_cut:
            track.sizes.append((blob.top_m - blob.bottom_m, blob.width_m))
            heights, widths = zip(*track.sizes, strict=True)
            track.height_m, track.width_m = float(np.median(heights)), float(np.median(widths))
        track.votes.append((told.likely or {told.kind: told.sure}, told.colour, weight))
        if weight > 0.5:
            track.states.append((told.fill, told.contents, told.is_dirty, told.is_open))
        likely = track.likely
        best = max(likely, key=lambda one: likely[one])
        if likely[best] >= KNOWN_FROM or likely.get(track.kind, 0.0) < DOUBTED:
            track.kind = best if likely[best] >= KNOWN_FROM else OTHER
        best = track.kind if track.kind != OTHER else best
        track.colour = _most((colour, w * share.get(best, 0.0)) for share, colour, w in track.votes)
        track.sightings += 1
        track.misses = 0
        track.box, track.seen_ns = blob.box, self.image_ns
        hand = self._person.hand
        is_over_palm = hand is not None and math.dist(hand.palm_m[:2], (blob.x_m, blob.y_m)) < OVER_PALM_M
        if is_over_palm and not blob.surface:
            track.holder = PERSON
        elif blob.surface or not is_over_palm:
            track.holder = ""

    def grip(self, state: RobotState, body: Body) -> None:
        """Take in what the gripper feels, between images as well."""
        x, y, z = body.hand_point(state)
        if state.is_grasping and self._held is None:
            near = [one for one in self._tracks if one.misses < MISSES or one.id]
            best = min(near, key=lambda one: math.dist(one.middle_m, (x, y, z)), default=None)
            if best is not None and math.dist(best.middle_m[:2], (x, y)) < IN_HAND_M:
                self._held = best
                best.holder, best.misses = "robot", 0
        elif not state.is_grasping and self._held is not None:
            held, self._held = self._held, None
            held.holder, held.surface = "", self._surface_below(held)
        if self._held is not None:
            self._held.x_m, self._held.y_m = x, y
            self._held.bottom_m = z - self._held.height_m / 2

    def _surface_below(self, track: Track) -> str:
        for one in self._room.surfaces:
            is_over = one.x_m[0] < track.x_m < one.x_m[1] and one.y_m[0] < track.y_m < one.y_m[1]
            if is_over and track.bottom_m < one.rim_z_m + (0.12 if one.is_box else 0.06):
                track.bottom_m = one.z_m
                return one.name
        return ""

    # --- people

    def _is_high(self, hand: HandPose) -> bool:
        x, y, z = hand.palm_m
        below = [one.z_m for one in self._room.surfaces if one.x_m[0] < x < one.x_m[1] and one.y_m[0] < y < one.y_m[1]]
        return bool(below) and z > max(below) + OPEN_ABOVE_M


def _seen(track: Track, *, is_shown: bool) -> SeenObject:
    states = list(track.states)
    words = []
    if states:
        words += ["dirty"] * (2 * sum(one[2] for one in states) > len(states))
        words += ["open"] * (2 * sum(one[3] for one in states) > len(states) and track.kind == "cookie jar")
        fill = Counter(one[0] for one in states).most_common(1)[0][0] if track.kind in ("mug", "glass") else ""
        if fill:
            inside = Counter(one[1] for one in states if one[0]).most_common(1)[0][0]
            words += [fill, inside]
    x, y, z = track.middle_m
    left, top, right, bottom = track.box if is_shown else (0, 0, 0, 0)
    return SeenObject(
        id=track.id, label=track.kind if track.kind != OTHER else "thing", colour=track.colour, x_m=x, y_m=y, z_m=z,
        width_m=track.width_m, height_m=track.height_m, u_px=(left + right) / 2, v_px=(top + bottom) / 2,
        confidence=min(1.0, track.sightings / VOTES), state=tuple(words),
    )  # fmt: skip


def _most(votes: Iterable[tuple[str, float]]) -> str:
    total: dict[str, float] = {}
    for word, weight in votes:
        total[word] = total.get(word, 0.0) + weight
    return max(total, key=lambda one: total[one], default="")
