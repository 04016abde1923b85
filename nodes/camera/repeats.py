"""`Repeats`, `PictureWatch`: whether a camera shows one picture again and again where it must show another.

A still scene of a simulator is the same in every picture, and no fault. A sensor has noise, so that a device never
repeats one. And whatever the camera is: where it has moved, or the robot's arm before it has, the picture must change.
"""

from __future__ import annotations

from collections import deque
from math import hypot

import numpy as np
from numpy.typing import NDArray

from nodes.msgs import Image, RobotState
from nodes.robot.products import angle_between, product
from nodes.robot.protocol import Body
from runtime.clock import to_s

REPEATS_S = 0.3
"""One picture for longer than this is no single frame that came twice, s."""
MOVED_M, TURNED_RAD = 0.03, 0.03
"""A camera that moved or turned further must see something else: 0.03 rad are 4 pixels of a picture 160 wide."""
MOVED_SHARE = 0.03
"""The same of a part of the arm within the picture, as a share of its width."""
IN_VIEW, NEAREST_M = 0.45, 0.1
"""A part this near to the picture's edge (share of its size), or to the camera, may be out of view."""
BUFFERS = 4
"""A driver whose ring of buffers is stuck shows its last pictures in turn: so many of them, as V4L2 has."""
SAMPLE = 8
"""Pictures that differ in every eighth pixel need not be compared as a whole."""
STATES = 150
"""So many states are kept, three seconds at 50 Hz: a picture comes later than the state of its moment."""


class Repeats:
    """Since when a camera has shown no picture but its last ones."""

    def __init__(self) -> None:
        self._pictures: dict[int, NDArray[np.uint8]] = {}
        self._since_ns = self._count = 0
        self.shown = 0
        """Which of its last pictures it shows, 0 to `BUFFERS` - 1."""

    def lasted_s(self, picture: NDArray[np.uint8], captured_ns: int) -> float:
        """For how long it has shown nothing new, s; 0 where this picture is new."""
        for number, known in self._pictures.items():
            is_alike = np.array_equal(picture[::SAMPLE, ::SAMPLE], known[::SAMPLE, ::SAMPLE])
            if is_alike and np.array_equal(picture, known):
                self.shown = number
                break
        else:
            self.shown, self._since_ns = self._count % BUFFERS, captured_ns
            self._pictures[self.shown] = picture.copy()  # a library may write into it again
            self._count += 1
        return to_s(captured_ns - self._since_ns)


class PictureWatch:
    """Compares what a robot's head camera shows with how the robot moves.

    `body` is None for a robot that has none: then only its base moves the camera.
    """

    def __init__(self, body: Body | None) -> None:
        self._body = body
        self._states: deque[RobotState] = deque(maxlen=STATES)
        self._repeats = Repeats()
        self._first: dict[int, RobotState | None] = {}  # as each picture was new
        self.has_stuck = False

    def note(self, state: RobotState) -> None:
        """Take in the newest state; the same one again counts once."""
        if not self._states or state.read_ns > self._states[-1].read_ns:
            self._states.append(state)

    def see(self, image: Image) -> bool:
        """Whether the camera shows its last pictures although the robot has moved, until it shows a new one."""
        lasted_s = self._repeats.lasted_s(image.rgb, image.captured_ns)
        then = next((state for state in reversed(self._states) if state.read_ns <= image.captured_ns), None)
        first = self._first.get(self._repeats.shown)
        if lasted_s <= 0.0 or first is None:
            self._first[self._repeats.shown], self.has_stuck = then, False
        elif then is not None and lasted_s > REPEATS_S and not self.has_stuck:
            # A picture of one colour says nothing: a covered lens, a test's blank.
            self.has_stuck = int(image.rgb.min()) != int(image.rgb.max()) and self._must_differ(first, then, image)
        return self.has_stuck

    def _must_differ(self, first: RobotState, then: RobotState, image: Image) -> bool:
        if self._body is None:
            away_m = hypot(then.base_x_m - first.base_x_m, then.base_y_m - first.base_y_m)
            return away_m > MOVED_M or abs(then.base_heading_rad - first.base_heading_rad) > TURNED_RAD
        (turned, place), (turned_then, place_then) = self._body.head_camera(first), self._body.head_camera(then)
        if hypot(*(place_then - place).tolist()) > MOVED_M or angle_between(turned, turned_then) > TURNED_RAD:
            return True
        before, after = self._parts(first, image), self._parts(then, image)
        return any(
            one is not None and other is not None and hypot(one[0] - other[0], one[1] - other[1]) > MOVED_SHARE
            for one, other in zip(before, after, strict=False)
        )

    def _parts(self, state: RobotState, image: Image) -> list[tuple[float, float] | None]:
        """Where the ends of the arm's parts are in the picture, as shares of its width from its middle; None: not in
        view, or not known."""
        assert self._body is not None
        height, width = image.rgb.shape[:2]
        turned, place = self._body.head_camera(state)
        found: list[tuple[float, float] | None] = []
        for part in self._body.own_parts(state):
            for end in (part.start, part.end):
                right, down, ahead_m = product(turned.T, np.array(end) - place).tolist()
                is_ahead = image.focal_px > 0.0 and ahead_m > NEAREST_M
                at = (image.focal_px * right / ahead_m, image.focal_px * down / ahead_m) if is_ahead else None
                is_seen = at is not None and abs(at[0]) < IN_VIEW * width and abs(at[1]) < IN_VIEW * height
                found.append((at[0] / width, at[1] / width) if at is not None and is_seen else None)
        return found
