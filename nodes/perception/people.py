"""`PersonTrack`: what somebody before the camera does, from their hand and face in the newest images."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

from nodes.msgs import SeenObject, SeenPerson
from nodes.perception.gestures import GESTURE_S, LOOK_AT_M, POINT_AT_M, POINTS_DOWN, PointM, nearest_to_line, swings
from nodes.perception.hands import Face, HandPose
from runtime.clock import to_ns, to_s

PERSON = "person"
STILL_M = 0.03
HAND_LASTS_S, FACE_LASTS_S = 0.7, 2.0
ASIDE_S = 2.5
"""So long a hand is believed to be where it was while the head looks elsewhere."""


class PersonTrack:
    """One person: the hand that reaches out, and the face."""

    def __init__(self) -> None:
        self.hand: HandPose | None = None
        self.hand_ns = 0
        self.moved_m = 1.0  # of the palm, since the image before
        self.face: Face | None = None
        self.face_ns = 0
        self.head: deque[tuple[int, float, float]] = deque()

    def follow(
        self, hands: Sequence[HandPose], faces: Sequence[Face], now_ns: int, is_in_view: Callable[[PointM], bool]
    ) -> None:
        """Take in what one image shows; `is_in_view` says whether it shows that place."""
        if hands:
            hand = min(hands, key=lambda one: one.palm_m[1])
            before = self.hand.palm_m if self.hand is not None else (9.0, 9.0, 9.0)
            self.moved_m = math.dist(before, hand.palm_m)
            self.hand, self.hand_ns = hand, now_ns
        elif self.hand is not None:
            lasts_s = HAND_LASTS_S if is_in_view(self.hand.palm_m) else ASIDE_S
            self.hand = self.hand if to_s(now_ns - self.hand_ns) <= lasts_s else None
        if faces:
            self.face, self.face_ns = faces[0], now_ns
            if (line := faces[0].line) is not None:
                pitch, yaw = -math.asin(line[2]), math.atan2(line[1], line[0])
                self.head.append((now_ns, pitch, yaw))
        while self.head and self.head[0][0] < now_ns - to_ns(GESTURE_S):
            self.head.popleft()

    @property
    def face_m(self) -> PointM | None:
        """Where a head was seen last, or where one must be above a hand."""
        if self.face is not None:
            return self.face.middle_m
        if self.hand is not None:
            (x, y, _), (a, b, _) = self.hand.palm_m, self.hand.line
            return x - 0.6 * a, y - 0.6 * b, 1.5
        return None

    def tell(
        self, things: Sequence[SeenObject], held: str, now_ns: int, is_high: Callable[[HandPose], bool]
    ) -> tuple[SeenPerson, ...]:
        """The person, if there is one, who holds the thing of that id; a palm that `is_high` waits for something."""
        hand, where = self.hand, self.face_m
        if where is None:
            return ()
        shape: Literal["", "open", "point"] = ""
        pointed = ""
        if hand is not None and self.moved_m < STILL_M:
            if hand.line[2] < -POINTS_DOWN:
                shape = "point"
                pointed = nearest_to_line(hand.palm_m, hand.line, things, POINT_AT_M)
            elif not held and is_high(hand):
                shape = "open"
        looked = ""
        if self.face is not None and self.face.line is not None and to_s(now_ns - self.face_ns) < FACE_LASTS_S:
            looked = nearest_to_line(self.face.middle_m, self.face.line, things, LOOK_AT_M)
        nods, shakes = (swings([one[axis] for one in self.head]) for axis in (1, 2))
        return (
            SeenPerson(
                id=PERSON, x_m=where[0], y_m=where[1], holds=held, points_at=pointed, looks_at=looked,
                hand_m=hand.palm_m if hand is not None else None, hand=shape,
                gesture="nod" if nods >= 3 and nods > shakes else "shake" if shakes >= 3 else "",
            ),
        )  # fmt: skip
