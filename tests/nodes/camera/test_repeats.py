"""A picture that comes again: no fault of a still scene, and one where camera or arm have moved meanwhile."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from nodes.camera.repeats import PictureWatch
from nodes.msgs import JOINTS, Image, RobotState
from nodes.robot.protocol import Body
from nodes.stretch.body import BODY
from nodes.stretch.limits import STOW
from runtime.clock import to_ns
from tests.support.standing import standing

TEXTURED = np.random.default_rng(1).integers(0, 255, (120, 160, 3), np.uint8)
IN_VIEW = (0.6, 0.3, 0.0, 0.0, 0.0, 0.0, -1.57, -0.6)
"""The head looks along the arm."""


def stuck_after_s(
    moves: dict[str, float], *, body: Body | None = BODY, picture: np.ndarray = TEXTURED, changes: bool = False,
    late_s: float = 0.0, posture: tuple[float, ...] = IN_VIEW, seconds: float = 3.0,
) -> float | None:  # fmt: skip
    """When a camera of 10 Hz is found to be stuck; the fields of the state grow at these rates, joints by name."""
    watch = PictureWatch(body)
    for tick in range(round(seconds * 50)):
        now_s = 1.0 + tick * 0.02
        position = tuple(
            place + moves.get(name, 0.0) * (now_s - 1.0) for name, place in zip(JOINTS, posture, strict=True)
        )
        fields = {name: rate * (now_s - 1.0) for name, rate in moves.items() if name not in JOINTS}
        state: RobotState = msgspec.structs.replace(standing(to_ns(now_s), position), **fields)  # type: ignore[type-var]
        watch.note(state)
        watch.note(state)
        if tick % 5 == 4:
            shown = picture.copy()
            shown[0, 0, 0] = tick if changes else 0
            image = Image(camera="head", captured_ns=to_ns(now_s - late_s), rgb=shown, focal_px=150.0)
            if watch.see(image):
                return now_s - 1.0
    return None


MOVES: list[dict[str, float]] = [
    {"base_x_m": 0.05}, {"base_y_m": -0.1}, {"base_heading_rad": 0.1}, {"head_pan": 0.1}, {"head_tilt": -0.1},
    {"lift": 0.1}, {"arm": 0.1},
]  # fmt: skip


@pytest.mark.parametrize("moves", MOVES)
def test_one_picture_is_found_within_a_second_where_head_base_or_the_arm_in_view_moves(moves: dict[str, float]) -> None:
    found_s = stuck_after_s(moves)
    assert found_s is not None
    assert found_s <= 1.0
    assert stuck_after_s(moves, changes=True) is None


def shown_in_turn(number: int, moves_m: float, *, seen: str = "") -> list[bool]:
    """What is found of a camera of 10 Hz that shows so many pictures in turn, while the base goes on, or to and fro."""
    watch, pictures = PictureWatch(BODY), [TEXTURED + one for one in range(number)]
    found = []
    for tick in range(30):
        now_ns = to_ns(1.0 + tick * 0.1)
        place = tick % number if seen == "to and fro" else tick
        watch.note(standing(now_ns, pose=(moves_m * place, 0.0, 0.0)))
        found.append(watch.see(Image(camera="head", captured_ns=now_ns, rgb=pictures[tick % number])))
    return found


@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_ring_of_buffers_that_is_stuck_is_found_within_a_second_and_stays_so(number: int) -> None:
    found = shown_in_turn(number, 0.05)
    assert True in found[:11]
    assert all(found[found.index(True) :])


def test_pictures_in_turn_are_no_fault_where_nothing_moves_or_the_robot_goes_to_and_fro_between_them() -> None:
    assert not any(shown_in_turn(3, 0.0))
    assert not any(shown_in_turn(3, 0.05, seen="to and fro"))


def test_a_still_scene_is_no_fault_however_long_it_is_the_same() -> None:
    assert stuck_after_s({}, seconds=30.0) is None
    assert stuck_after_s({"base_x_m": 0.0005}, seconds=30.0) is None


@pytest.mark.parametrize("moves", [{"lift": 0.1}, {"gripper": 0.05}, {"wrist_yaw": 0.5}])
def test_an_arm_that_the_camera_does_not_see_changes_no_picture(moves: dict[str, float]) -> None:
    assert stuck_after_s(moves, posture=(*STOW[:6], 1.57, 0.0)) is None


def test_a_picture_of_one_colour_says_nothing() -> None:
    assert stuck_after_s({"base_x_m": 0.1}, picture=np.zeros((8, 8, 3), np.uint8)) is None


def test_of_a_robot_without_a_body_the_base_is_known() -> None:
    assert stuck_after_s({"base_heading_rad": 0.1}, body=None) is not None
    assert stuck_after_s({"base_x_m": -0.05}, body=None) is not None
    assert stuck_after_s({"head_pan": 1.0}, body=None) is None


def test_a_picture_is_compared_with_the_state_of_its_own_moment() -> None:
    """Pictures from before the robot set off come while it moves: they are the same, and rightly."""
    watch = PictureWatch(BODY)
    for tick in range(100):
        now_s = 1.0 + tick * 0.02
        watch.note(standing(to_ns(now_s), pose=(0.3 * max(0.0, now_s - 2.0), 0.0, 0.0)))
        if tick % 5 == 0 and tick >= 25:
            image = Image(camera="head", captured_ns=to_ns(now_s - 0.5), rgb=TEXTURED)
            assert not watch.see(image) or now_s > 2.5


def test_it_is_over_with_the_next_new_picture() -> None:
    watch, shown = PictureWatch(BODY), TEXTURED
    found = []
    for tick in range(30):
        now_ns = to_ns(1.0 + tick * 0.1)
        watch.note(standing(now_ns, pose=(0.05 * min(tick, 10), 0.0, 0.0)))
        shown = shown + 1 if tick == 20 else shown
        found.append(watch.see(Image(camera="head", captured_ns=now_ns, rgb=shown)))
    assert found == [False] * 4 + [True] * 16 + [False] * 10
