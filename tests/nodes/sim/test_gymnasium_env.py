"""The simulated robot is a Gymnasium environment, as Gymnasium's own checker sees it."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="needs the extra gym")

from gymnasium.utils.env_checker import check_env

from polyrhythm.gym import TableEnv
from runtime.errors import ParameterError


@pytest.mark.filterwarnings("ignore::UserWarning")  # Gymnasium's advice on unbounded boxes
def test_gymnasiums_checker_finds_nothing() -> None:
    env = TableEnv(steps=20, camera="head", width=32, height=24, render_mode="rgb_array")
    check_env(env, skip_render_check=True)
    picture = env.render()
    assert picture is not None
    assert picture.shape == (24, 32, 3)
    env.close()


def test_one_seed_lays_one_table_and_an_arm_that_is_sent_moves() -> None:
    env = TableEnv(steps=10)
    first, _ = env.reset(seed=3)
    same, _ = env.reset(seed=3)
    other, _ = env.reset(seed=4)
    assert np.array_equal(first["things"], same["things"])
    assert not np.array_equal(first["things"], other["things"])
    up = np.zeros(10, np.float32)
    up[0] = 1.0
    ends = [env.step(up)[2:4] for _ in range(10)]
    observation, *_ = env.step(up)
    assert observation["state"][0] > other["state"][0] + 0.02
    assert ends[-1] == (False, True)
    env.close()


def test_a_camera_that_is_not_there_is_refused() -> None:
    with pytest.raises(ParameterError):
        TableEnv(camera="left")
