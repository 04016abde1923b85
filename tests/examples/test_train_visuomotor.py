"""The lessons of the visuomotor policy: a teacher that remembers nothing, and what its pupil is and is not told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from examples.train_visuomotor.evaluate import main as evaluate
from examples.train_visuomotor.lessons import BIN, NAMES, imagine, lift_of, plane_of
from examples.train_visuomotor.teacher import NEAR_LOW_M, TRAVEL_M, Aim, wanted
from nodes.msgs import RobotState
from nodes.policy.stretch_motion import OPEN_M
from nodes.stretch.kinematics import (
    ARM,
    DOWN_RAD,
    GRIPPER,
    HEAD_PAN,
    LIFT,
    WRIST_OUT_M,
    head_camera_pose,
    wrist_camera_pose,
)
from nodes.stretch.limits import STOW
from runtime.cli import main as cli
from tests.support.sentences import sentence

CUP = NAMES.index("red cup")
ARM_M = 0.3
AIM = Aim("pick", 0.0, -WRIST_OUT_M - ARM_M, plane_of(CUP), lift_of(CUP))
"""A cup abeam, at the reach of `above`."""
V = 8


def above(lift_m: float, gripper_m: float = OPEN_M, *, is_grasping: bool = False, arm_m: float = ARM_M) -> RobotState:
    """A robot with its gripper down at that lift."""
    position = (lift_m, arm_m, 0.0, DOWN_RAD, 0.0, gripper_m, -1.5, -0.7)
    return RobotState(
        read_ns=0, position=position, velocity=(0.0,) * 8, effort=(0.0,) * 8, base_x_m=0.0, base_y_m=0.0,
        base_heading_rad=0.0, base_v_mps=0.0, base_w_radps=0.0, is_grasping=is_grasping,
    )  # fmt: skip


def test_the_teacher_goes_down_above_a_thing_and_closes_beside_it() -> None:
    row, done = wanted(AIM, above(TRAVEL_M))
    assert (row[LIFT], row[GRIPPER], row[V], done) == (AIM.lift_m, OPEN_M, 0.0, 0.0)
    row, _ = wanted(AIM, above(AIM.lift_m))
    assert row[GRIPPER] == 0.0
    row, done = wanted(AIM, above(AIM.lift_m, 0.06, is_grasping=True))
    assert (row[LIFT], row[GRIPPER], done) == (TRAVEL_M, 0.0, 0.0)
    assert wanted(AIM, above(AIM.lift_m + 0.08, 0.06, is_grasping=True))[1] == 1.0


def test_the_lower_the_gripper_the_further_off_it_may_be() -> None:
    off = replace(AIM, ahead_m=NEAR_LOW_M - 0.004)
    row, _ = wanted(off, above(TRAVEL_M))
    assert row[LIFT] == TRAVEL_M
    assert row[V] > 0.0
    row, _ = wanted(off, above(AIM.lift_m + 0.02))
    assert (row[LIFT], row[V]) == (AIM.lift_m, 0.0)
    row, _ = wanted(replace(AIM, ahead_m=0.1), above(AIM.lift_m + 0.02))
    assert (row[LIFT], row[V]) == (TRAVEL_M, 0.0), "the base does not drive with the gripper between things"


def test_after_a_grasp_of_nothing_it_opens_and_goes_up() -> None:
    row, done = wanted(AIM, above(AIM.lift_m, 0.01))
    assert (row[LIFT], row[GRIPPER], done) == (TRAVEL_M, OPEN_M, 0.0)


def test_it_lets_go_above_the_bin_only() -> None:
    bin_ = replace(AIM, skill="place")
    assert wanted(bin_, above(TRAVEL_M, 0.06, is_grasping=True))[0][GRIPPER] == OPEN_M
    for state in (above(TRAVEL_M - 0.1, 0.06, is_grasping=True), above(TRAVEL_M, 0.06, is_grasping=True, arm_m=0.2)):
        row, done = wanted(bin_, state)
        assert (row[LIFT], row[GRIPPER], done) == (TRAVEL_M, 0.0, 0.0)
    assert wanted(bin_, above(TRAVEL_M))[1] == 1.0


def test_a_folded_arm_stays_folded_until_the_lift_is_up() -> None:
    folded = replace(AIM, ahead_m=0.3)
    folded_robot: RobotState = structs.replace(above(0.3), position=STOW)  # type: ignore[type-var]  # a Struct
    row, _ = wanted(folded, folded_robot)
    assert (row[LIFT], row[ARM], row[2]) == (TRAVEL_M, 0.0, STOW[2])
    assert row[V] > 0.0


def test_a_look_moves_the_head_alone() -> None:
    state = above(0.5, 0.04)
    row, done = wanted(replace(AIM, skill="look", ahead_m=1.0), state)
    assert row[:HEAD_PAN] == state.position[:HEAD_PAN]
    assert (row[V], done) == (0.0, 0.0)


def test_by_its_own_words_the_teacher_clears_things_and_its_lessons_are_the_same_each_time() -> None:
    rows = imagine(10_001, 60.0)
    assert rows == imagine(10_001, 60.0)
    ends = [(skill, end) for skill, _, end in rows.outcomes]
    assert ("place", "success") in ends
    assert {end for _, end in ends} == {"success"}


def test_the_network_knows_where_the_cameras_are_and_what_is_for_a_look_alone() -> None:
    torch = pytest.importorskip("torch", reason="needs the extra train")
    from examples.train_visuomotor.network import INPUTS, Pupil, head_camera, wrist_camera

    dice = np.random.default_rng(1)
    for joints in dice.uniform(-0.6, 0.6, (5, 8)):
        felt = torch.tensor([[*joints, *(0.0,) * 10]]).float()
        for mine, known in ((head_camera, head_camera_pose), (wrist_camera, wrist_camera_pose)):
            place, axes = mine(felt)
            rotation, position = known(tuple(joints))
            assert np.allclose(place[0].numpy(), position, atol=1e-5)
            assert np.allclose(torch.stack(axes, 2)[0].numpy(), rotation, atol=1e-5)
    pupil = Pupil().eval()
    given = {name: torch.zeros(1, *shape) for name, shape in INPUTS.items()} | {"text": torch.ones(1, 48).long()}
    for skill in range(3):
        given["skill"] = torch.eye(7)[[skill]]
        one, other = (pupil(**given | {"target": torch.full((1, 3), value)})[0] for value in (0.0, 0.7))
        assert bool(torch.equal(one, other)) == (skill != 2)


def test_what_an_action_is_about_has_a_name() -> None:
    assert NAMES[BIN] == "bin"
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.long
def test_a_model_that_is_not_there_is_told_and_not_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate(["missing.onnx", "--seeds", "1"]) == 2
    assert sentence("policy.no_model") in capsys.readouterr().err


def test_each_step_of_the_training_goes_on_from_the_one_before(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra train")
    from examples.train_visuomotor.train import main

    folder, out = tmp_path / "lessons", tmp_path / "learned.onnx"
    few = ("--folder", str(folder), "--lessons", "1", "--rounds", "1", "--steps", "2", "--out", str(out))
    for step in ("draw", "hand", "eyes", "practise", "hand", "write"):
        assert main([step, *few]) == 0
    assert {file.name.partition("-")[0] for file in folder.glob("*.npz")} == {"scenes", "rows"}
    seat = ("policy.use=nodes.policy.onnx.policy:OnnxPolicy", f"policy.model={out}")
    size = ("policy.image_width_px=64", "policy.image_height_px=48")
    sets = [word for one in (*seat, *size) for word in ("--set", one)]
    assert cli(["check", "laptop", *sets]) == 0
