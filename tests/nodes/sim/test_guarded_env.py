"""A graph steps in somebody else's loop behind its guard, and a wrong command moves nothing."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from nodes.msgs import JointCommand
from nodes.sim.guarded_env import GuardedEnv
from runtime.errors import UserError
from tests.support.sentences import pattern

ALONE = (
    "planner", "vlm", "policy", "reflex", "interrupt_records", "ladder", "shadow_compare", "collaborator", "recorder",
    "head_camera", "wrist_camera", "room_camera",
)  # fmt: skip
SEEN = tuple(name for name in ALONE if name not in ("planner", "vlm", "policy", "reflex", "head_camera"))


@pytest.fixture(scope="module")
def alone() -> GuardedEnv:
    return GuardedEnv(without=ALONE)


def test_the_guard_limits_what_the_loop_commands(alone: GuardedEnv) -> None:
    first = alone.reset(3)
    assert first.truth is not None
    assert first.guard is not None
    assert first.guard.mode == "armed"
    up = JointCommand(position=(1.0, *first.state.position[1:]))
    lift_mps = [alone.step(up).state.velocity[0] for _ in range(20)]
    fastest = alone.limits.joints[0].speed
    assert 0.02 < max(lift_mps) <= 1.2 * fastest
    last = alone.step(up)
    assert last.let_through is not None
    assert last.let_through.position[0] < 1.0
    alone.close()


def test_where_nothing_is_commanded_the_robot_comes_to_rest(alone: GuardedEnv) -> None:
    first = alone.reset(3)
    for _ in range(10):
        alone.step(JointCommand(position=(1.0, *first.state.position[1:])))
    for _ in range(20):
        last = alone.step()
    assert abs(last.state.velocity[0]) < 0.005
    alone.close()


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (JointCommand(position=(math.nan, *[0.0] * 7)), pattern("sim.not_finite", what="lift is nan")),
        (JointCommand(position=(0.3,) * 8, base_v_mps=math.inf), pattern("sim.not_finite", what="base_v_mps is inf")),
        (JointCommand(position=(0.3,) * 16), pattern("sim.wrong_joints", number=16)),
    ],
)
def test_a_command_that_is_none_is_a_sentence_and_no_time_passes(
    alone: GuardedEnv, command: JointCommand, told: str
) -> None:
    before = alone.reset(3)
    with pytest.raises(UserError, match=told):
        alone.step(command)
    after = alone.step()
    assert after.state.position == pytest.approx(before.state.position, abs=1e-6)
    alone.close()


def test_one_seed_is_one_run(alone: GuardedEnv) -> None:
    def played(seed: int) -> tuple[float, ...]:
        first = alone.reset(seed)
        up = JointCommand(position=(0.8, *first.state.position[1:]))
        assert first.truth is not None
        return (*[alone.step(up).state.position[0] for _ in range(8)], first.truth.objects[0].x_m)

    assert played(5) == played(5) != played(6)
    alone.close()


def test_the_seat_of_the_graph_tells_what_it_would_do_and_a_word_stops_what_the_loop_does() -> None:
    env = GuardedEnv(without=SEEN, say="Put the blue cup in the bin.")
    now = env.reset(1)
    assert set(env.cameras) == {"head/image"}
    said: list[str] = []
    while not (now.guard and now.guard.mode == "moving"):
        now = env.step(now.asked)
        said += now.said
        assert now.time_s < 30, said
    env.say("Stop!")
    modes = {now.guard.mode for _ in range(20) if (now := env.step(now.asked)).guard}
    assert "stopped" in modes, modes
    for _ in range(20):
        now = env.step(JointCommand(position=(1.0, *now.state.position[1:])))
    assert max(map(abs, now.state.velocity)) < 0.01
    env.close()


def test_a_file_without_a_guard_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "graph.toml"
    file.write_text('[nodes.talker]\nuse = "nodes.hello:Talker"\n')
    with pytest.raises(UserError, match=pattern("sim.no_guard")):
        GuardedEnv(file)


def test_who_only_looks_on_commands_nothing() -> None:
    env = GuardedEnv(without=ALONE, seat="")
    now = env.reset()
    with pytest.raises(UserError, match=pattern("sim.only_looks_on")):
        env.step(JointCommand(position=now.state.position))
    env.close()
