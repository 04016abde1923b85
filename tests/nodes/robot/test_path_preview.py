"""Where the page says that the robot is about to go."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nodes.msgs import ActionChunk, JointCommand, RobotState
from nodes.policy.stretch_hand import STRETCH_HAND
from nodes.robot.path_preview import path
from nodes.stretch.limits import STOW

STATE = RobotState(
    read_ns=0, position=STOW, velocity=(0.0,) * 8, effort=(0.0,) * 8, base_x_m=1.0, base_y_m=2.0,
    base_heading_rad=math.pi / 2, base_v_mps=0.0, base_w_radps=0.0,
)  # fmt: skip


def test_a_command_is_thought_on_along_the_heading() -> None:
    drawn = path(STATE, JointCommand(position=STOW, base_v_mps=0.2), None, STRETCH_HAND.point)
    assert drawn["of"] == "command"
    assert drawn["base"][-1] == pytest.approx([1.0, 2.3], abs=1e-3)
    assert len(drawn["hand"]) == 13
    aside = path(STATE, JointCommand(position=STOW, base_vy_mps=0.2), None, STRETCH_HAND.point)
    assert aside["base"][-1] == pytest.approx([0.7, 2.0], abs=1e-3), "to the left of a heading along y is along -x"


def test_a_chunk_is_drawn_to_its_last_step() -> None:
    steps = 40
    chunk = ActionChunk(
        position=np.tile(np.array(STOW), (steps, 1)),
        base_v_mps=np.full(steps, 0.1),
        base_w_radps=np.zeros(steps),
        step_s=0.05,
    )
    drawn = path(STATE, None, chunk, STRETCH_HAND.point)
    assert drawn["of"] == "chunk"
    assert drawn["base"][-1] == pytest.approx([1.0, 2.2], abs=1e-3)
    assert len(drawn["base"]) <= 16


def test_without_a_command_nothing_is_foretold() -> None:
    assert path(STATE, None, None, STRETCH_HAND.point)["base"] == []
