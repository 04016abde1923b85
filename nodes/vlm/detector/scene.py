"""What boxes and a pose in an image mean: things that keep their numbers, and what a person holds, points and looks at.

All of it happens in the image. A camera without depth does not tell how far away a thing is; here that follows from how
large such things usually are, which is good enough to name one and not to grasp it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nodes.msgs import Scene, SeenObject, SeenPerson
from nodes.vlm.detector.labels import HEIGHT_M, KINDS, PERSON, PLACES, USUAL_M

PointPx = tuple[float, float]
PointM = tuple[float, float, float]

LEAST_OVERLAP = 0.3
"""Of the same thing's boxes in two images, as a share of both together."""
KEPT_NS = 1_000_000_000
"""How long a thing that is not seen is still there."""
KEYPOINT_FROM = 0.3
"""How sure a joint must be."""
STRAIGHT_RAD = math.radians(40)
"""An arm that bends by less at the elbow may point."""
HANGING_RAD = math.radians(35)
"""An arm this near to straight down points at nothing."""
BESIDE = 0.12
"""How far beside the line of an arm or a face a thing may be, as a share of the image's width."""
TURNED = 0.35
"""A nose this far off the middle of the eyes, in distances between the eyes, is a face that is turned away."""
USUAL_FOCAL = 0.87
"""Of the image's width: a lens of 60 degrees, where nobody has measured it."""

NOSE, LEFT_EYE, RIGHT_EYE = 0, 1, 2
ARMS = ((5, 7, 9), (6, 8, 10))
"""Shoulder, elbow and wrist, left and right, in the order of COCO's seventeen joints."""
JOINTS_OF_A_BODY = 17


@dataclass(frozen=True, slots=True)
class BoundingBox:
    """One thing in an image, in its pixels."""

    label: str
    score: float  # 0 to 1
    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self) -> PointPx:
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    @property
    def area(self) -> float:
        return max(self.right - self.left, 0.0) * max(self.bottom - self.top, 0.0)

    def overlap(self, other: BoundingBox) -> float:
        """Share of both together that is in both, 0 to 1."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        both = max(width, 0.0) * max(height, 0.0)
        return both / max(self.area + other.area - both, 1e-9)

    def holds(self, point: PointPx) -> bool:
        """Whether a point is in it."""
        return self.left <= point[0] <= self.right and self.top <= point[1] <= self.bottom


@dataclass(frozen=True, slots=True)
class Keypoint:
    """One joint of a body, in the image's pixels."""

    u_px: float
    v_px: float
    score: float  # 0 to 1

    @property
    def at(self) -> PointPx:
        return self.u_px, self.v_px


@dataclass(frozen=True, slots=True)
class Tracked:
    """A thing that was seen lately."""

    id: str
    box: BoundingBox
    seen_ns: int


def distinct(boxes: Sequence[BoundingBox], least_overlap: float = 0.5) -> list[BoundingBox]:
    """The surest box of each thing, where a detector gives several."""
    kept: list[BoundingBox] = []
    for box in sorted(boxes, key=lambda one: -one.score):
        if all(box.label != other.label or box.overlap(other) < least_overlap for other in kept):
            kept.append(box)
    return kept


def track(
    known: Sequence[Tracked], boxes: Sequence[BoundingBox], now_ns: int, number: int
) -> tuple[tuple[Tracked, ...], int]:
    """What is there now, and the next new thing's number: a box of the same kind that overlaps is the same thing."""
    left = list(known)
    found: list[Tracked] = []
    for box in boxes:
        same = [one for one in left if one.box.label == box.label and one.box.overlap(box) >= LEAST_OVERLAP]
        best = max(same, key=lambda one: one.box.overlap(box), default=None)
        if best is not None:
            left.remove(best)
            found.append(replace(best, box=box, seen_ns=now_ns))
        else:
            found.append(Tracked(f"{box.label.replace(' ', '-')}-{number}", box, now_ns))
            number += 1
    return (*found, *(one for one in left if now_ns - one.seen_ns < KEPT_NS)), number


def pointing(pose: Sequence[Keypoint]) -> tuple[PointPx, PointPx] | None:
    """Wrist and direction, of length 1, of an arm that is held out straight; None where none is."""
    best: tuple[float, PointPx, PointPx] | None = None
    for shoulder, elbow, wrist in ((pose[one], pose[two], pose[three]) for one, two, three in ARMS):
        if min(shoulder.score, elbow.score, wrist.score) < KEYPOINT_FROM:
            continue
        upper, lower = _minus(elbow.at, shoulder.at), _minus(wrist.at, elbow.at)
        whole = _minus(wrist.at, shoulder.at)
        if _angle(upper, lower) > STRAIGHT_RAD or _angle(whole, (0.0, 1.0)) < HANGING_RAD:
            continue
        length = math.hypot(*whole)
        if best is None or length > best[0]:
            best = (length, wrist.at, (whole[0] / length, whole[1] / length))
    return None if best is None else best[1:]


def gaze(pose: Sequence[Keypoint]) -> tuple[PointPx, PointPx] | None:
    """Nose and direction, of length 1, of a face that is turned to a side; None where it is not, or is not seen."""
    nose, left, right = pose[NOSE], pose[LEFT_EYE], pose[RIGHT_EYE]
    if min(nose.score, left.score, right.score) < KEYPOINT_FROM:
        return None
    between = math.dist(left.at, right.at)
    away = _minus(nose.at, ((left.u_px + right.u_px) / 2, (left.v_px + right.v_px) / 2))
    if between < 1e-6 or abs(away[0]) < TURNED * between:
        return None
    length = math.hypot(*away)
    return nose.at, (away[0] / length, away[1] / length)


def aimed_at(line: tuple[PointPx, PointPx] | None, things: Sequence[Tracked], within_px: float) -> str:
    """The id of the thing that is nearest to a line from its start on, "" for none."""
    if line is None:
        return ""
    (u, v), (along_u, along_v) = line
    best, best_px = "", math.inf
    for one in things:
        off_u, off_v = _minus(one.box.middle, (u, v))
        along = off_u * along_u + off_v * along_v
        beside = abs(off_u * along_v - off_v * along_u)
        if along > 0.0 and not one.box.holds((u, v)) and beside < min(best_px, within_px):
            best, best_px = one.id, beside
    return best


def scene_of(
    tracked: Sequence[Tracked],
    pose: Sequence[Keypoint] | None,
    *,
    size_px: tuple[int, int],
    focal_px: float,
    into_odometry: Callable[[PointM], PointM],
) -> Scene:
    """The scene behind an image of width and height `size_px`; a pose is that of the largest person.

    `into_odometry` takes a point from the camera's frame (x right, y down, z ahead; m). Without a measured focal length
    (0) that of a usual webcam is taken.
    """
    focal_px = focal_px or USUAL_FOCAL * size_px[0]
    placed = {one.id: into_odometry(_in_camera(one.box, size_px, focal_px)) for one in tracked}
    things = [one for one in tracked if one.box.label != PERSON]
    people = sorted((one for one in tracked if one.box.label == PERSON), key=lambda one: -one.box.area)
    loose = [one for one in things if one.box.label not in PLACES]
    seen: list[SeenPerson] = []
    for number, one in enumerate(people):
        shown = pose if number == 0 else None
        arm, face = (None, None) if shown is None else (pointing(shown), gaze(shown))
        wrists = (
            [] if shown is None else [shown[arm_of[2]] for arm_of in ARMS if shown[arm_of[2]].score >= KEYPOINT_FROM]
        )
        held = next((thing.id for wrist in wrists for thing in loose if thing.box.holds(wrist.at)), "")
        others = [thing for thing in things if thing.id != held]
        x_m, y_m, _ = placed[one.id]
        seen.append(
            SeenPerson(
                id=one.id,
                x_m=x_m,
                y_m=y_m,
                holds=held,
                points_at=aimed_at(arm, others, BESIDE * size_px[0]),
                looks_at=aimed_at(face, others, BESIDE * size_px[0]),
                hand="point" if arm is not None else "",
            )
        )
    return Scene(
        things=tuple(_thing(one, placed[one.id], size_px, focal_px) for one in things),
        people=tuple(seen),
        kinds=KINDS,
        places=tuple(dict.fromkeys(one.box.label for one in things if one.box.label in PLACES)),
    )


def _thing(one: Tracked, at: PointM, size_px: tuple[int, int], focal_px: float) -> SeenObject:
    share = _ahead_m(one.box, focal_px) / focal_px
    u_px, v_px = one.box.middle
    return SeenObject(
        id=one.id,
        label=one.box.label,
        colour="",
        x_m=at[0],
        y_m=at[1],
        z_m=at[2],
        width_m=(one.box.right - one.box.left) * share,
        height_m=(one.box.bottom - one.box.top) * share,
        u_px=u_px,
        v_px=v_px,
        confidence=one.box.score,
        is_place=one.box.label in PLACES,
    )


def _ahead_m(box: BoundingBox, focal_px: float) -> float:
    larger_px = max(box.right - box.left, box.bottom - box.top, 1.0)
    return focal_px * HEIGHT_M.get(box.label, USUAL_M) / larger_px


def _in_camera(box: BoundingBox, size_px: tuple[int, int], focal_px: float) -> PointM:
    ahead_m = _ahead_m(box, focal_px)
    u_px, v_px = box.middle
    return (u_px - size_px[0] / 2) / focal_px * ahead_m, (v_px - size_px[1] / 2) / focal_px * ahead_m, ahead_m


def _minus(one: PointPx, other: PointPx) -> PointPx:
    return one[0] - other[0], one[1] - other[1]


def _angle(one: PointPx, other: PointPx) -> float:
    cosine = (one[0] * other[0] + one[1] * other[1]) / max(math.hypot(*one) * math.hypot(*other), 1e-9)
    return math.acos(max(-1.0, min(1.0, cosine)))
