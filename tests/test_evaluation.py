"""What many runs allow to say: rates with their intervals, pairs on the same seeds; and the command that runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nodes.evaluation.command import main
from nodes.evaluation.figures import compare, figures_of, rate_of
from nodes.evaluation.table import sentences, table
from nodes.evaluation.trials import Result, Trial, Variant, result_of, trials_of

ROOT = Path(__file__).resolve().parent.parent
LAUNCH = """
[nodes.lot]
use = "tests.evaluated_nodes:Lot"
"""


def result(variant: str, seed: int, ok: bool | None, duration_s: float = 10.0, **more: Any) -> Result:
    reason = "done" if ok else "dropped the cup"
    return Result(trial=Trial(variant, "", seed), is_success=ok, reason=reason, duration_s=duration_s, **more)


@pytest.mark.parametrize(
    ("successes", "runs", "low", "high"),
    [  # Wilson score intervals, as in Brown, Cai and DasGupta (2001), computed by hand
        (8, 10, 0.4902, 0.9433),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (1, 2, 0.0945, 0.9055),
    ],
)
def test_a_rate_has_wilsons_interval(successes: int, runs: int, low: float, high: float) -> None:
    rate = rate_of(successes, runs)
    assert (round(rate.low, 4), round(rate.high, 4)) == (low, high)


def test_nothing_is_known_of_no_runs() -> None:
    assert (rate_of(0, 0).low, rate_of(0, 0).high) == (0.0, 1.0)


def test_every_seed_is_tried_with_every_variant_before_the_next() -> None:
    trials = trials_of([Variant("a"), Variant("b")], ["cup", "bowl"], range(2))
    assert [(trial.seed, trial.task, trial.variant) for trial in trials[:5]] == [
        (0, "cup", "a"), (0, "cup", "b"), (0, "bowl", "a"), (0, "bowl", "b"), (1, "cup", "a"),
    ]  # fmt: skip
    assert len({trial.name for trial in trials}) == 8


def test_a_run_that_nobody_judged_is_no_success_and_is_counted() -> None:
    (figures,) = figures_of([result("a", 0, True), result("a", 1, False), result("a", 2, None)])
    assert (figures.success.successes, figures.success.runs, figures.unjudged, figures.broken) == (1, 3, 1, 0)
    assert figures.reasons == {"dropped the cup": 2}


def test_times_are_of_successes_and_stops_of_all_runs() -> None:
    (figures,) = figures_of(
        [
            result("a", 0, True, 10.0, stops_to_held_ms=(4.0, 6.0), image_age_p99_ms=90.0),
            result("a", 1, True, 14.0, image_age_p99_ms=120.0),
            result("a", 2, False, 300.0, stops_to_held_ms=(20.0,)),
        ]
    )
    assert (figures.duration_s, figures.slowest_s) == (12.0, 14.0)
    assert (figures.stops, figures.stop_to_held_p50_ms, figures.stop_to_held_max_ms) == (3, 6.0, 20.0)
    assert figures.image_age_p99_ms == 120.0


def test_variants_are_compared_on_the_seeds_that_both_have() -> None:
    these = [result("old", seed, seed % 2 == 0, 10.0) for seed in range(12)]
    those = [result("new", seed, True, 8.0) for seed in range(10)]
    (comparison,) = compare([*these, *those])
    assert (comparison.variant, comparison.beside, comparison.pairs) == ("new", "old", 10)
    assert (comparison.only_this, comparison.only_that) == (5, 0)
    assert comparison.success_difference == 0.5
    assert comparison.success_p == 2 / 2**5  # of five coins that all fall on one side
    assert comparison.duration_difference_s == -2.0
    assert "new beside old, 10 pairs of runs: success +50 points" in sentences([comparison])[0]


def test_the_table_names_why_runs_failed_and_tasks_only_where_there_are_some() -> None:
    text = table(figures_of([result("a", 0, True), result("a", 1, False)]))
    assert "1 x dropped the cup" in text
    assert "50%" in text
    assert "task" not in text


def test_a_summary_becomes_a_result() -> None:
    summary = {
        "is_success": True, "reason": "done", "duration_s": 61.2, "image_age_ms": {"p99": 110.0},
        "interrupts": [{"is_cause": True, "held_ms": 3.0}, {"is_cause": False, "held_ms": 9.0}, {"is_cause": True}],
    }  # fmt: skip
    found = result_of(Trial("a", "", 0), summary, took_s=1.234)
    assert (found.duration_s, found.stops_to_held_ms, found.image_age_p99_ms) == (61.2, (3.0,), 110.0)


@pytest.fixture
def launch(tmp_path: Path) -> Path:
    path = tmp_path / "lot.toml"
    path.write_text(LAUNCH)
    return path


def evaluate(launch: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-c",
        "import sys; from nodes.evaluation.command import main; sys.exit(main(sys.argv[1:]))",
    ]
    return subprocess.run(
        [*command, str(launch), "--out", str(out), *more], cwd=ROOT, capture_output=True, text=True, timeout=240
    )


def successes(told: str) -> dict[str, list[int]]:
    """Seeds that succeeded, by variant."""
    found: dict[str, list[int]] = {}
    for one in json.loads(told)["results"]:
        found.setdefault(one["trial"]["variant"], []).extend([one["trial"]["seed"]] * one["is_success"])
    return found


@pytest.mark.processes
def test_variants_run_on_the_same_seeds_and_an_evaluation_that_was_stopped_goes_on(
    tmp_path: Path, launch: Path
) -> None:
    asked = ["--seeds", "3", "--variant", "sure", "--variant", "poor", "--set", "lot.luck=0.0", "--json"]
    out = tmp_path / "out"
    done = evaluate(launch, out, *asked)
    assert done.returncode == 0, done.stderr
    assert successes(done.stdout) == {"sure": [0, 1, 2], "poor": []}
    assert "[6 of 6] " in done.stderr
    assert (out / "evaluation.png").stat().st_size > 1000
    assert {path.parent.name for path in out.glob("*/run.mcap")} == {f"poor-seed{seed}" for seed in range(3)}

    file = out / "results.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:5]) + lines[5][:20])  # killed while it wrote the fifth
    again = evaluate(launch, out, *asked)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count(" of 6") == 2
    assert successes(again.stdout) == successes(done.stdout)

    other = evaluate(launch, out, "--seeds", "3")
    assert other.returncode == 2
    assert "holds results of another evaluation (other variants); choose another --out" in other.stderr


@pytest.mark.processes
def test_a_share_that_is_missed_is_an_exit_code(tmp_path: Path, launch: Path) -> None:
    poor = ["--seeds", "1", "--set", "lot.luck=0", "--set", "lot.lasts_s=0.1"]
    done = evaluate(launch, tmp_path / "out", *poor, "--at-least", "0.5")
    assert done.returncode == 1
    assert "1 x unlucky at 0" in done.stdout


@pytest.mark.processes
def test_runs_that_break_are_told_apart_from_runs_that_fail(tmp_path: Path, launch: Path) -> None:
    done = evaluate(launch, tmp_path / "out", "--seeds", "1", "--variant", "good", "--variant", "stuck",
                    "--set", "lot.breaks=true")  # fmt: skip
    assert done.returncode == 1
    assert "1 x broken: " in done.stdout
    assert "the gearbox is stuck" in done.stdout
    alone = evaluate(launch, tmp_path / "alone", "--seeds", "1", "--set", "lot.breaks=true")
    assert alone.returncode == 1
    assert "no run came to an end" in alone.stderr


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--seeds", "0"], "names no seed"),
        (["--seeds", "many"], "expected a number of seeds"),
        (["--seeds", "5:2"], "names no seed"),
        (["--seeds", "1000000"], "at most 100000"),
        (["--variant", "a", "--variant", "a"], "'a' is named twice"),
        (["--variant", "../a"], "expected a name that a folder may have"),
        (["--set", "lot.nope=1"], "nope"),
        (["--variant", "b", "--variant", "a", "--set", "lott.luck=1"], "variant 'a'"),
        (["--task", "no-such-task"], "no-such-task"),
    ],
)
def test_what_is_asked_wrongly_is_said_before_anything_runs(
    more: Sequence[str], words: str, launch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(launch), "--out", str(tmp_path / "out"), *more]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1
    assert not (tmp_path / "out").exists()
