"""Eyes in the kitchen: what is seen in images, which id it keeps, and what a hand and a head say."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodes.msgs import Scene, SeenObject
from nodes.sim.world.world_file import load_world
from nodes.stretch.body import BODY
from nodes.vlm.room.crops import OTHER, Classification, CropReader, Cut, Sizes
from nodes.vlm.room.sight import Sight
from tests.nodes.kitchen.kitchen_view import FACE_M, DrawnKitchen

pytest.importorskip("onnxruntime")
ROOT = Path(__file__).resolve().parents[4]


def sight() -> Sight:
    return Sight(load_world(), CropReader())


def looked(eyes: Sight, kitchen: DrawnKitchen, times: int = 4) -> Scene:
    """The scene after some pictures of the table, 0.2 s apart."""
    for _ in range(times):
        kitchen.pass_s(0.2)
        eyes.see(*kitchen.see(), BODY)
    return eyes.scene(kitchen.now_ns)


def named(scene: Scene, label: str, colour: str = "") -> SeenObject:
    found = [one for one in scene.things if (one.label, one.colour) == (label, colour)]
    assert len(found) == 1, [(one.label, one.colour) for one in scene.things if not one.is_place]
    return found[0]


def test_it_sees_image_files_alone_in_a_process_without_a_simulator() -> None:
    program = """
import json, sys
sys.modules["mujoco"] = None  # any import of it fails
import cv2, numpy as np
from pathlib import Path
from nodes.vlm.room.crops import CropReader
from nodes.vlm.room.sight import Sight
from nodes.msgs import Image, RobotState
from nodes.sim.world.world_file import load_world
from nodes.stretch.body import BODY
from runtime.serialization.msgspec_cache import from_json
folder = Path(sys.argv[1])
rgb = cv2.imread(str(folder / "pointing.png"))[..., ::-1]
depth_m = cv2.imread(str(folder / "pointing-depth.png"), cv2.IMREAD_UNCHANGED).astype(np.float32) / 10_000
beside = json.loads((folder / "pointing.json").read_text())
state = RobotState(**{**beside["state"], "position": tuple(beside["state"]["position"]),
                      "velocity": tuple(beside["state"]["velocity"]), "effort": tuple(beside["state"]["effort"])})
eyes = Sight(load_world(), CropReader())
for number in range(3):
    eyes.see(Image(camera="head", captured_ns=number * 200_000_000, rgb=np.ascontiguousarray(rgb), depth_m=depth_m,
                   focal_px=beside["focal_px"]), state, BODY)
scene = eyes.scene(600_000_000)
print(sorted(f"{one.colour} {one.label}".strip() for one in scene.things if not one.is_place))
print(next(f"{one.colour} {one.label}" for one in scene.things if one.id == scene.people[0].points_at))
"""
    pictures = Path(__file__).with_name("pictures")
    told = subprocess.run(
        [sys.executable, "-c", program, str(pictures)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    things, pointed = told.stdout.splitlines()
    assert things == str(
        ["blue mug", "brown cookie jar", "glass", "green bottle", "red apple", "red mug", "white bowl"]
    )
    assert pointed == "blue mug"


@pytest.mark.parametrize("colour", ["red", "blue"])
def test_a_finger_says_which_of_two_mugs(colour: str) -> None:
    kitchen = DrawnKitchen("which-mug", seed=3)
    kitchen.point_at(f"{colour}_mug")
    scene = looked(sight(), kitchen)
    assert scene.people[0].hand == "point"
    assert scene.people[0].points_at == named(scene, "mug", colour).id


def test_a_level_palm_is_open_and_one_that_moves_is_not() -> None:
    kitchen, eyes = DrawnKitchen(seed=2), sight()
    kitchen.move("hand", (0.1, -0.62, 0.66), gesture="open")
    assert looked(eyes, kitchen).people[0].hand == "open"
    kitchen.move("hand", (0.2, -0.70, 0.66), gesture="open")
    assert looked(eyes, kitchen, times=1).people[0].hand == ""


@pytest.mark.parametrize(("part", "gesture"), [("pitch", "nod"), ("yaw", "shake"), ("", "")])
def test_a_head_that_swings_nods_or_shakes(part: str, gesture: str) -> None:
    kitchen, eyes = DrawnKitchen(), sight()
    for step in range(9):
        turned = 0.3 * math.sin(2 * math.pi * step * 0.2 / 0.7)
        pitch, yaw = (turned if part == name else 0.0 for name in ("pitch", "yaw"))
        kitchen.move("face", FACE_M, yaw_rad=math.pi / 2 + yaw, pitch_rad=pitch)
        kitchen.pass_s(0.2)
        eyes.see(*kitchen.see(FACE_M), BODY)
    assert eyes.scene(kitchen.now_ns).people[0].gesture == gesture


def test_what_is_half_full_dirty_or_open_shows() -> None:
    kitchen = DrawnKitchen(seed=2)
    scene = looked(sight(), kitchen)
    assert "half full" in named(scene, "glass").state
    assert "dirty" in named(scene, "apple", "red").state
    assert "open" not in named(scene, "cookie jar", "brown").state
    table = next(one for one in scene.things if one.id == "table")
    assert table.state == ("dirty",)


def test_a_hand_that_is_out_of_view_for_a_moment_is_still_believed() -> None:
    kitchen, eyes = DrawnKitchen(seed=2), sight()
    kitchen.move("hand", (0.1, -0.62, 0.66), gesture="open")
    looked(eyes, kitchen)
    for _ in range(6):
        kitchen.pass_s(0.2)
        eyes.see(*kitchen.see((0.0, 1.8, 0.55)), BODY)
    assert eyes.scene(kitchen.now_ns).people[0].hand_m is not None
    kitchen.move("hand", (1.75, -1.25, 0.9))
    assert all(one.hand_m is None for one in looked(eyes, kitchen, times=5).people)


class Knowing(CropReader):
    """Tells groups by their size alone: for what needs no network."""

    def __init__(self) -> None:
        pass

    def read(self, cuts: Sequence[tuple[Cut, Sizes]]) -> list[Classification]:
        return [Classification("mug" if size[3] < 1.1 else OTHER, 0.9, "red", "", "", False, False) for _, size in cuts]


class Wavering(Knowing):
    """Sure of a mug at first, and then of nothing."""

    reads = 0

    def read(self, cuts: Sequence[tuple[Cut, Sizes]]) -> list[Classification]:
        self.reads += 1
        share = 0.9 if self.reads < 4 else 0.0
        return [Classification("mug", 0.9, "red", "", "", False, False, {"mug": share}) for _ in cuts]


@pytest.mark.parametrize(("doubts", "label"), [(4, "mug"), (14, "thing")])
def test_what_was_believed_is_not_gone_because_its_kind_is_in_doubt(doubts: int, label: str) -> None:
    kitchen, eyes = DrawnKitchen("which-mug", seed=3), Sight(load_world(), Wavering())
    before = [one.id for one in looked(eyes, kitchen, times=3).things if not one.is_place]
    after = [one for one in looked(eyes, kitchen, times=doubts).things if not one.is_place]
    assert ([one.id for one in after], {one.label for one in after}) == (before, {label})


def test_what_is_not_in_view_is_still_believed_and_keeps_its_id() -> None:
    kitchen, eyes = DrawnKitchen(), Sight(load_world(), Knowing())
    before = {one.id for one in looked(eyes, kitchen).things}
    for _ in range(6):
        kitchen.pass_s(0.2)
        eyes.see(*kitchen.see((0.0, 1.8, 0.55)), BODY)
    assert before <= {one.id for one in eyes.scene(kitchen.now_ns).things}
    assert before <= {one.id for one in looked(eyes, kitchen).things}


def test_what_was_taken_away_is_no_longer_believed() -> None:
    kitchen, eyes = DrawnKitchen("which-mug", seed=3), Sight(load_world(), Knowing())
    assert len([one for one in looked(eyes, kitchen).things if not one.is_place]) == 2
    body = kitchen.robot.model.joint("red_mug_free").qposadr[0]
    kitchen.robot.data.qpos[body : body + 3] = (1.9, 1.9, 0.1)
    assert len([one for one in looked(eyes, kitchen, times=6).things if not one.is_place]) == 1


def test_a_picture_without_depth_changes_nothing() -> None:
    kitchen, eyes = DrawnKitchen(), Sight(load_world(), Knowing())
    image, state = kitchen.see()
    flat = type(image)(camera="head", captured_ns=1, rgb=image.rgb, focal_px=image.focal_px)
    eyes.see(flat, state, BODY)
    assert not [one for one in eyes.scene(1).things if not one.is_place]


def test_a_flat_thing_that_was_taken_away_is_no_longer_believed() -> None:
    kitchen, eyes = DrawnKitchen("wipe-together", seed=3), sight()
    assert any(one.label == "plate" for one in looked(eyes, kitchen).things)
    name = next(one.name for one in kitchen.robot.truth().objects if one.label == "plate")
    body = kitchen.robot.model.joint(f"{name}_free").qposadr[0]
    kitchen.robot.data.qpos[body : body + 3] = (1.9, 1.9, 0.1)
    assert not any(one.label == "plate" for one in looked(eyes, kitchen, times=6).things)
