"""How chunks are played: the figures that `python -m bench.chunks` prints, and the parts of the player."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.chunks import LATENCIES_MS, Noise, figures, relative_speed_mps
from nodes.msgs import Action, ActionChunk, JointCommand, RobotState
from nodes.policy.onnx.chunks import LEAD, Playback
from nodes.policy.onnx.policy import OnnxPolicy
from runtime import Node, Publisher, Simulation, every
from tests.support.models.model_files import linear_model, write_model
from tests.support.standing import HOME, standing

MS = 1_000_000


def chunk(lifts: list[float], action_id: str = "") -> ActionChunk:
    rows = np.tile(np.array(lifts)[:, None], 8)
    return ActionChunk(
        position=rows,
        base_v_mps=np.zeros(len(lifts)),
        base_w_radps=np.zeros(len(lifts)),
        step_s=0.05,
        action_id=action_id,
    )


def lift(playback: Playback, now_ms: int) -> float:
    command = playback.command(now_ms * MS)
    assert command is not None
    return command.position[0]


def ramp(start: float = 0.0) -> list[float]:
    return [start + 0.005 * step for step in range(32)]


@pytest.mark.parametrize("latency_ms", LATENCIES_MS)
def test_a_perfect_planner_is_played_without_ripple_jerk_or_error(latency_ms: int) -> None:
    found = figures("playback", latency_ms, "none", seconds=20.0)
    assert found.ripple < 0.01
    assert found.error_mm < 0.1
    assert found.jerk_mps3 < 0.1


@pytest.mark.parametrize("noise", ["chunks", "numbers"])
@pytest.mark.parametrize("latency_ms", [0, 50, 100])
def test_with_noise_of_a_centimetre_no_command_goes_backward(latency_ms: int, noise: Noise) -> None:
    found = figures("playback", latency_ms, noise)
    assert found.backward == 0.0
    assert found.ripple <= 0.10


@pytest.mark.parametrize("noise", ["chunks", "numbers"])
def test_at_300_ms_hardly_a_command_goes_backward(noise: Noise) -> None:
    found = figures("playback", 300, noise)
    assert found.backward <= 0.02
    assert found.ripple <= 0.20


def test_the_figures_see_what_a_plain_player_does() -> None:
    assert figures("newest", 0, "none").ripple == pytest.approx(0.41, abs=0.02)
    assert figures("newest", 100, "chunks").backward > 0.2
    assert relative_speed_mps("newest", 0) < 0.01


@pytest.mark.parametrize("latency_ms", LATENCIES_MS)
def test_chunks_relative_to_now_do_not_creep(latency_ms: int) -> None:
    assert relative_speed_mps("playback", latency_ms) == pytest.approx(0.1, abs=0.005)


def test_a_world_that_changed_is_acted_on_before_older_chunks_have_run_out() -> None:
    reaction_ms = figures("playback", 0, "none", seconds=6.0).reaction_ms
    assert reaction_ms is not None
    assert reaction_ms <= 350


def test_a_chunk_is_played_at_its_age_and_between_its_steps() -> None:
    playback = Playback().with_chunk(chunk(ramp()), seen_ns=0, came_ns=120 * MS)
    assert lift(playback, 120) == pytest.approx(0.012)
    assert lift(playback, 130) == pytest.approx(0.013)
    assert lift(playback, 1599) == pytest.approx(0.155), "its last step holds for as long as any"
    assert playback.command(1600 * MS) is None


def test_what_comes_does_not_move_the_command_at_that_moment() -> None:
    playback = Playback().with_chunk(chunk(ramp()), seen_ns=0, came_ns=0)
    newer = playback.with_chunk(chunk(ramp(0.05)), seen_ns=300 * MS, came_ns=600 * MS)
    assert lift(newer, 600) == pytest.approx(lift(playback, 600), abs=1e-5)
    assert lift(newer, 900) > lift(playback, 900) + 0.005


def test_what_was_planned_for_another_action_goes_at_once() -> None:
    playback = Playback().with_chunk(chunk(ramp(), "a1"), seen_ns=0, came_ns=0)
    playback = playback.with_chunk(chunk(ramp(0.5), "a2"), seen_ns=400 * MS, came_ns=400 * MS)
    assert lift(playback, 400) == pytest.approx(0.5)


def test_a_stop_leaves_nothing() -> None:
    playback = Playback().with_chunk(chunk(ramp()), seen_ns=0, came_ns=0).with_sent(HOME, 0).flushed()
    assert playback.command(0) is None
    assert playback.anchor((0.0,) * 8, 0) == (0.0,) * 8


def test_the_anchor_is_the_command_of_then_and_never_far_from_the_joints() -> None:
    playback = Playback().with_sent((0.3,) * 8, 0).with_sent((0.9,) * 8, 100 * MS)
    assert playback.anchor((0.25,) * 8, 50 * MS) == (0.3,) * 8
    assert playback.anchor((0.0,) * 8, 200 * MS) == pytest.approx([min(0.9, lead) for lead in LEAD])


@given(st.lists(st.tuples(st.integers(1, 400), st.integers(0, 400), st.floats(-1.0, 1.0)), min_size=1, max_size=12))
def test_a_command_is_never_beyond_what_some_chunk_says(chunks: list[tuple[int, int, float]]) -> None:
    playback, now_ms = Playback(), 0
    for after_ms, latency_ms, level in chunks:
        now_ms += after_ms
        came = chunk([level] * 20)
        playback = playback.with_chunk(came, seen_ns=(now_ms - latency_ms) * MS, came_ns=now_ms * MS)
        command = playback.command(now_ms * MS)
        levels = [level for _, _, level in chunks]
        assert command is not None
        assert min(levels) - 1e-9 <= command.position[0] <= max(levels) + 1e-9


class Still(Node):
    """Is felt where it stands."""

    state = Publisher(RobotState, "robot/state")

    @every(hz=50)
    def feel(self) -> None:
        self.state.publish(standing(self.clock.now_ns()))


def commanded(model: bytes, folder: Path) -> list[JointCommand]:
    sim = Simulation(Still(), OnnxPolicy(write_model(folder, model)))
    commands: list[JointCommand] = sim.record(OnnxPolicy.command)
    sim.publish("robot/state", standing(0))
    sim.publish("action", Action(id="a1", skill="nod"))
    sim.run(seconds=1.5)
    return commands


def test_a_model_is_told_what_is_planned_and_goes_on_from_there(tmp_path: Path) -> None:
    weights = np.zeros((20, 10), np.float32)
    weights[10, 0] = 1.0  # the lift of the second planned step
    raised = np.zeros((8, 10), np.float32)
    by = {"previous": weights, "joints": raised}
    model = linear_model({"joints": (1, 8), "previous": (1, 2, 10), "frozen": (1, 1)}, by, bias=0.01)
    commands = commanded(model, tmp_path)
    assert commands[0].position[0] == pytest.approx(0.31), "where nothing is planned, it is told where it stands"
    assert commands[-1].position[0] > 0.33


def test_a_model_s_metadata_makes_its_positions_relative_to_now(tmp_path: Path) -> None:
    model = onnx.load_from_string(linear_model({"joints": (1, 8)}, bias=0.02))
    entry = model.metadata_props.add()
    entry.key, entry.value = "positions", "relative"
    commands = commanded(model.SerializeToString(), tmp_path)
    assert commands[0].position == pytest.approx([at + 0.02 for at in HOME])
    ways = [at - home for at, home in zip(commands[-1].position, HOME, strict=True)]
    assert ways[0] > 0.05, "it goes on from its last command"
    assert all(way <= lead + 0.021 for way, lead in zip(ways, LEAD, strict=True)), "and does not wind up"
