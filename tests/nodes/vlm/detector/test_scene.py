"""What boxes and a pose mean: who holds, points at and looks at what, and which thing is the same one as before."""

from __future__ import annotations

import pytest

from nodes.vlm.detector.scene import BoundingBox, Keypoint, Tracked, aimed_at, distinct, gaze, pointing, scene_of, track

SIZE_PX = (640, 480)
S_NS = 1_000_000_000


def box(
    label: str, left: float, top: float, width: float = 60.0, height: float = 60.0, score: float = 0.8
) -> BoundingBox:
    return BoundingBox(label, score, left, top, left + width, top + height)


def body(**joints: tuple[float, float]) -> tuple[Keypoint, ...]:
    """The named joints of a body in pixels; all others are not seen."""
    numbers = {"nose": 0, "left_eye": 1, "right_eye": 2, "shoulder": 5, "elbow": 7, "wrist": 9}
    found = [Keypoint(0.0, 0.0, 0.0)] * 17
    for name, (u_px, v_px) in joints.items():
        found[numbers[name]] = Keypoint(u_px, v_px, 0.9)
    return tuple(found)


def arm(elbow: tuple[float, float], wrist: tuple[float, float]) -> tuple[Keypoint, ...]:
    return body(shoulder=(100.0, 200.0), elbow=elbow, wrist=wrist)


@pytest.mark.parametrize(
    ("pose", "points"),
    [
        (arm((160.0, 205.0), (220.0, 210.0)), True),
        (arm((160.0, 160.0), (220.0, 120.0)), True),
        (arm((100.0, 260.0), (105.0, 320.0)), False),
        (arm((160.0, 205.0), (165.0, 140.0)), False),
        (body(shoulder=(100.0, 200.0), elbow=(160.0, 205.0)), False),
    ],
    ids=["held out", "up", "hanging", "bent", "no hand"],
)
def test_a_straight_arm_that_does_not_hang_points(pose: tuple[Keypoint, ...], points: bool) -> None:
    assert (pointing(pose) is not None) is points


@pytest.mark.parametrize(
    ("nose", "turned"), [((110.0, 60.0), 0), ((128.0, 60.0), 1), ((92.0, 60.0), -1)], ids=["ahead", "right", "left"]
)
def test_a_face_looks_to_the_side_that_its_nose_is_on(nose: tuple[float, float], turned: int) -> None:
    line = gaze(body(nose=nose, left_eye=(125.0, 50.0), right_eye=(95.0, 50.0)))
    assert (line is None) is (turned == 0)
    if line is not None:
        assert line[1][0] * turned > 0


def scene(*things: Tracked, pose: tuple[Keypoint, ...]) -> dict[str, str]:
    """What the one person in it holds, points at and looks at, by word."""
    person = Tracked("person-1", box("person", 40.0, 40.0, 120.0, 400.0), 0)
    found = scene_of((person, *things), pose, size_px=SIZE_PX, focal_px=0.0, into_odometry=lambda at: at)
    [seen] = found.people
    return {"holds": seen.holds, "points_at": seen.points_at, "looks_at": seen.looks_at, "hand": seen.hand}


CUP, BOWL = Tracked("cup-1", box("cup", 500.0, 180.0), 0), Tracked("bowl-2", box("bowl", 500.0, 380.0), 0)


def test_a_person_points_at_the_thing_nearest_to_the_line_of_the_arm() -> None:
    told = scene(CUP, BOWL, pose=arm((160.0, 205.0), (220.0, 210.0)))
    assert told == {"holds": "", "points_at": "cup-1", "looks_at": "", "hand": "point"}
    assert scene(CUP, BOWL, pose=arm((140.0, 240.0), (180.0, 280.0)))["points_at"] == ""
    assert scene(BOWL, pose=arm((160.0, 229.0), (220.0, 258.0)))["points_at"] == "bowl-2"


def test_what_lies_behind_the_hand_or_away_from_the_line_is_not_meant() -> None:
    line = ((300.0, 210.0), (1.0, 0.0))
    behind = Tracked("cup-3", box("cup", 100.0, 180.0), 0)
    assert aimed_at(line, [behind], 80.0) == ""
    assert aimed_at(line, [BOWL], 80.0) == ""
    assert aimed_at(None, [CUP], 80.0) == ""


def test_a_person_holds_what_their_wrist_is_in_and_does_not_point_at_that() -> None:
    held = Tracked("cup-3", box("cup", 200.0, 190.0), 0)
    told = scene(held, BOWL, pose=arm((160.0, 205.0), (220.0, 210.0)))
    assert (told["holds"], told["points_at"]) == ("cup-3", "")


def test_a_person_looks_at_the_thing_on_the_side_that_the_face_is_turned_to() -> None:
    right = body(nose=(128.0, 60.0), left_eye=(125.0, 50.0), right_eye=(95.0, 50.0))
    cup = Tracked("cup-1", box("cup", 500.0, 180.0), 0)
    assert scene(cup, pose=right)["looks_at"] == "cup-1"
    ahead = body(nose=(110.0, 60.0), left_eye=(125.0, 50.0), right_eye=(95.0, 50.0))
    assert scene(cup, pose=ahead)["looks_at"] == ""


def test_a_thing_keeps_its_number_while_it_is_seen_and_a_while_longer() -> None:
    known, number = track((), [box("cup", 100.0, 100.0), box("cup", 300.0, 100.0)], 0, 1)
    assert [one.id for one in known] == ["cup-1", "cup-2"]
    known, number = track(known, [box("cup", 305.0, 104.0)], S_NS // 2, number)
    assert [one.id for one in known] == ["cup-2", "cup-1"]
    known, number = track(known, [box("bowl", 305.0, 104.0)], 2 * S_NS, number)
    assert [one.id for one in known] == ["bowl-3"]


def test_of_two_boxes_of_one_thing_the_surer_one_counts() -> None:
    sure, unsure = box("cup", 100.0, 100.0, score=0.9), box("cup", 104.0, 102.0, score=0.4)
    beside, other = box("cup", 300.0, 100.0, score=0.5), box("bowl", 101.0, 101.0, score=0.6)
    assert distinct([unsure, sure, beside, other]) == [sure, other, beside]


def test_how_far_away_a_thing_is_follows_from_its_usual_size() -> None:
    cup = Tracked("cup-1", box("cup", 290.0, 210.0), 0)
    [thing] = scene_of((cup,), None, size_px=SIZE_PX, focal_px=600.0, into_odometry=lambda at: at).things
    assert (thing.x_m, thing.y_m, thing.z_m) == pytest.approx((0.0, 0.0, 600.0 * 0.1 / 60.0))
    assert (thing.width_m, thing.height_m) == pytest.approx((0.1, 0.1))
