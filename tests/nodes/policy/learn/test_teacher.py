"""The teacher without memory, and that what it taught has no place short of the bin where the pupil stands still."""

from __future__ import annotations

import msgspec
import pytest

from examples.train_policy.clone import main as clone
from examples.train_policy.teacher import taught
from nodes.msgs import Action, RobotState, SeenObject, aimed_at
from nodes.policy.learn.rows import HISTORY
from nodes.policy.onnx.inputs import feel
from nodes.policy.onnx.policy import shipped
from nodes.policy.onnx.session import PolicySession
from nodes.policy.sight import spot_of
from nodes.policy.stretch_motion import OPEN_M, travel_lift_m
from nodes.sim.world.table_scene import BIN_XY_M, BIN_Z_M
from nodes.stretch.kinematics import (
    DOWN_RAD,
    GRIPPER,
    LIFT,
    WRIST_OUT_M,
    solve,
)
from nodes.stretch.limits import STOW
from tests.support.sentences import sentence
from tests.support.standing import standing

CUP = SeenObject(
    label="cup", colour="red", x_m=0.0, y_m=-0.5, z_m=0.55, width_m=0.07, height_m=0.1, u_px=0.0, v_px=0.0
)  # fmt: skip
BIN = SeenObject(
    label="bin", colour="teal", x_m=BIN_XY_M[0], y_m=BIN_XY_M[1], z_m=BIN_Z_M[1] / 2, width_m=0.26,
    height_m=BIN_Z_M[1], u_px=0.0, v_px=0.0,
)  # fmt: skip
PICK = Action(id="a", skill="pick", arguments=aimed_at(CUP))
PLACE = Action(id="a", skill="place", arguments=aimed_at(BIN, "place"))
TRAVEL_M = travel_lift_m(0.68, None)
_reach = solve((CUP.x_m, CUP.y_m, spot_of(CUP).grasp_z_m), 0.0, 0.0, 0.0)
assert _reach is not None
GRASP_M = _reach.lift_m


def above(lift_m: float, opening_m: float = OPEN_M, off_m: float = 0.0) -> RobotState:
    """The hand straight down at the cup, so much off along the arm."""
    return standing(0, (lift_m, -CUP.y_m - WRIST_OUT_M + off_m, 0.0, DOWN_RAD, 0.0, opening_m, -1.5, -0.8))


def test_where_its_recipe_cannot_write_it_teaches_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert clone(["--out", "missing/mine.onnx"]) == 2
    assert sentence("policy.no_folder") in capsys.readouterr().err


def test_a_hand_that_is_low_may_be_further_off_than_one_that_is_about_to_go_down() -> None:
    assert taught(PICK, above(TRAVEL_M, off_m=0.005)).goal[LIFT] == pytest.approx(GRASP_M)
    assert taught(PICK, above(TRAVEL_M, off_m=0.02)).goal[LIFT] == pytest.approx(TRAVEL_M)
    assert taught(PICK, above(GRASP_M + 0.05, off_m=0.02)).goal[LIFT] == pytest.approx(GRASP_M)
    assert taught(PICK, above(GRASP_M + 0.05, off_m=0.04)).goal[LIFT] == pytest.approx(TRAVEL_M)


def test_fingers_close_at_the_thing_and_not_on_the_way_and_once_they_close_they_go_on() -> None:
    assert taught(PICK, above(GRASP_M + 0.02)).goal[GRIPPER] == OPEN_M
    assert taught(PICK, above(GRASP_M + 0.005)).goal[GRIPPER] == 0.0
    assert taught(PICK, above(GRASP_M + 0.02, opening_m=0.08)).goal[GRIPPER] == 0.0


def test_a_folded_hand_goes_up_before_it_opens() -> None:
    lesson = taught(PICK, standing(0, STOW))
    assert lesson.goal[LIFT] == pytest.approx(TRAVEL_M)
    assert lesson.goal[GRIPPER] == 0.0
    assert taught(PICK, standing(0, (TRAVEL_M, *STOW[1:]))).goal[GRIPPER] == OPEN_M


def test_a_pick_is_done_when_what_is_held_has_come_up() -> None:
    for lift_m, is_done in ((GRASP_M, False), (GRASP_M + 0.08, True)):
        held = msgspec.structs.replace(above(lift_m, opening_m=0.068), is_grasping=True)  # type: ignore[type-var]
        assert taught(PICK, held).is_done is is_done


def short_of_bin(away_m: float) -> RobotState:
    """A cup is held over the bin's depth, so far short of its middle; the base stands."""
    lift_m = TRAVEL_M + 0.04
    arm_m = -BIN.y_m - WRIST_OUT_M
    posture = (lift_m, arm_m, 0.0, DOWN_RAD, 0.0, 0.068, -1.57, -1.0)
    state = standing(0, posture, pose=(BIN.x_m - away_m, 0.0, 0.0))
    return msgspec.structs.replace(state, is_grasping=True)  # type: ignore[type-var]


@pytest.mark.parametrize("away_m", [-0.06, -0.037, -0.025, 0.0, 0.02, 0.025, 0.031, 0.037, 0.05, 0.08])
def test_short_of_the_bin_teacher_and_pupil_let_go_or_drive_on_and_never_stand(away_m: float) -> None:
    cpu = ("CPUExecutionProvider",)
    pupil = PolicySession(shipped()["clear-table"].read_bytes(), name="it", width_px=160, height_px=120, providers=cpu)
    state = short_of_bin(away_m)
    lesson = taught(PLACE, state)
    assert lesson.goal[GRIPPER] == OPEN_M or lesson.base_v_mps * away_m > 0.0
    for elapsed_s in (1.0, 5.0, 20.0):
        chunk = pupil.run({}, feel(state, PLACE, history=HISTORY, elapsed_s=elapsed_s)).chunk
        goes = chunk[0, 8] * away_m > 0.0 and abs(chunk[0, 8]) > 0.005
        assert chunk[0, GRIPPER] > OPEN_M / 2 or goes, "the false fixed point"
