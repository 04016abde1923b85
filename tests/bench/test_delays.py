"""Chunks under delay: what the executors do with answers that come late, and that the episodes are what they say."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from bench.delays import ANSWERS, draw, grouped, lines, main, play
from bench.executors import EXECUTORS, Executor, Rows
from bench.libero_scene import INSTALL, Seen, play_libero


def counting(steps: int = 6, first: float = 0.0) -> Rows:
    """An answer whose lift is 0.1 more at each step."""
    rows = np.zeros((steps, 10))
    rows[:, 0] = first + 0.1 * np.arange(steps)
    return rows


def lifts(executor: Executor, steps: range) -> list[float | None]:
    played = [executor.row(step) for step in steps]
    return [None if row is None else round(float(row[0]), 6) for row in played]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("stop-and-go", [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, None]),
        ("newest chunk", [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, None]),
        ("age-aligned", [0.2, 0.3, 0.4, 0.5, None, None, None]),
        ("ensemble", [0.2, 0.3, 0.4, 0.5, None, None, None]),
        ("prefix freeze", [0.2, 0.3, 0.4, 0.5, None, None, None]),
    ],
)
def test_an_answer_two_steps_late_is_played_from_its_beginning_or_from_now(
    name: str, expected: list[float | None]
) -> None:
    executor = EXECUTORS[name]()
    executor.take(counting(), seen=0, step=2)
    assert lifts(executor, range(2, 9)) == expected


def test_stop_and_go_asks_when_it_stands_and_the_others_while_they_move() -> None:
    executors = {name: make() for name, make in EXECUTORS.items()}
    for executor in executors.values():
        executor.take(counting(), seen=0, step=0)
        executor.row(0)
    assert [name for name, one in executors.items() if not one.wants(1)] == ["stop-and-go"]


@pytest.mark.parametrize(("name", "jumps_m"), [("age-aligned", 1.0), ("ensemble", 0.5), ("prefix freeze", 0.0)])
def test_where_two_answers_disagree_only_the_project_s_player_does_not_jump(name: str, jumps_m: float) -> None:
    executor, level = EXECUTORS[name](), np.zeros((24, 10))
    executor.take(level, seen=0, step=0)
    executor.row(4)
    executor.take(level + 1.0, seen=4, step=5)
    row = executor.row(5)
    assert row is not None
    assert row[0] == pytest.approx(jumps_m, abs=0.01)


def test_without_delay_the_shipped_policy_clears_the_thing_away_and_the_same_seed_gives_the_same() -> None:
    first = play("shipped", "age-aligned", 0, seed=101)
    assert first.is_success
    assert first == play("shipped", "age-aligned", 0, seed=101)


def test_later_than_its_twenty_steps_an_answer_that_is_aligned_moves_nothing() -> None:
    late = play("shipped", "age-aligned", 20, seed=101)
    assert not late.is_success
    assert late.held_still == 1.0


def test_one_command_prints_the_table_and_draws_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "delays.png"
    assert main(["--seeds", "1", "--delay", "0", "--answers", "shipped", "--plot", str(picture)]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split(" | ")[:3] for row in rows[2:]] == [["| shipped", name, "0"] for name in EXECUTORS]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_group_in_which_nothing_succeeded_has_no_time() -> None:
    late = play("shipped", "age-aligned", 20, seed=101)
    assert list(grouped([late])) == [(ANSWERS[0], "age-aligned", 20)]
    assert " 0 of 1 " in list(lines([late]))[-1]
    assert "| - |" in list(lines([late]))[-1]


def test_what_never_succeeds_is_drawn_without_a_time(tmp_path: Path) -> None:
    draw([play("shipped", "age-aligned", 20, seed=101)], tmp_path / "late.png")
    assert (tmp_path / "late.png").exists()


def test_the_policy_of_the_libero_scene_takes_the_thing_to_the_basket_as_its_own_model_has_it() -> None:
    seen = Seen(np.array((-0.15, 0.0, 0.25)), 0.08, np.array((-0.12, -0.24, 0.04)), np.array((0.01, 0.25, 0.0)))
    was_held = False
    for _ in range(200):
        seen = seen.after(seen.row())
        was_held |= seen.is_held
    assert was_held
    assert not seen.is_held
    assert np.linalg.norm((seen.thing - seen.basket)[:2]) < 0.03


@pytest.mark.skipif(find_spec("libero") is not None, reason="LIBERO is installed")
def test_without_libero_its_scene_is_refused_with_what_to_install(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--scene", "libero"])
    assert INSTALL in capsys.readouterr().err


@pytest.mark.skipif(find_spec("libero") is None, reason=f"LIBERO is not installed: {INSTALL}")
@pytest.mark.filterwarnings("default")  # robosuite's own
@pytest.mark.parametrize("executor", EXECUTORS)
def test_without_delay_libero_itself_says_that_the_task_is_done_and_the_same_seed_gives_the_same(executor: str) -> None:
    first = play_libero(executor, 0, seed=0)
    assert first.is_success
    play_libero(executor, 5, seed=1)
    assert first == play_libero(executor, 0, seed=0)
