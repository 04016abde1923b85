"""The suite of the nine skills tells a wrong deed from a failure by a field of the verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.evaluation.arms import ARMS
from nodes.evaluation.nine_skills.command import VERDICT, figures_of_skills, report_verdict, with_arm
from nodes.evaluation.trials import EvaluationRun, result_of
from nodes.kitchen.messages import ScenarioVerdict
from nodes.kitchen.scenario import load_scenario
from runtime.bag.file import BagWriter
from runtime.launch.file import check, find, load
from runtime.message import Envelope, Stamped


@pytest.mark.parametrize(
    ("verdict", "wrong_deeds"),
    [
        (ScenarioVerdict(is_right=True, duration_s=31.5), 0),
        (ScenarioVerdict(is_right=False, missing=("white mug in sink",), duration_s=31.5), 0),
        (ScenarioVerdict(is_right=False, wrong_deed="person touched", duration_s=31.5), 1),
    ],
    ids=["right", "failed", "wrong deed"],
)
def test_a_wrong_deed_is_counted_by_its_field_and_the_time_is_measured(
    verdict: ScenarioVerdict, wrong_deeds: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.mcap"
    bag = BagWriter(path, {})
    bag.write(Stamped(verdict, Envelope(VERDICT, "person", 1, 31_500_000_000)))
    bag.close()
    assert report_verdict(path, tmp_path, outcome=(verdict.is_right, "in any words")) is verdict.is_right
    result = result_of(EvaluationRun("usual", "silence", 1), json.loads(capsys.readouterr().out), took_s=3.0)
    assert result.duration_s == 31.5
    figures = figures_of_skills([result], {"silence": load_scenario(Path("silence"))})["all"]
    assert isinstance(figures, dict)
    assert (figures["right"]["count"], figures["wrong_deeds"]["count"]) == (int(verdict.is_right), wrong_deeds)


def test_a_run_that_nobody_judged_has_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.mcap"
    BagWriter(path, {}).close()
    assert report_verdict(path, tmp_path) is None
    assert json.loads(capsys.readouterr().out) == {"is_success": None, "reason": "nobody judged it"}


def test_the_kitchen_runs_under_every_arm_of_the_interruption_experiment() -> None:
    path = find("kitchen")
    for arm in ARMS:
        variant = with_arm(arm, [])
        launch = load(path, overrides=variant.changes, added=variant.added)
        check(launch)
        nodes = launch.graph.nodes
        assert [nodes[name].remap.get("heard") for name in ("planner", "vlm", "reflex", "arm")] == [
            "heard/planner", "heard/vlm", "heard/reflex", None,
        ], arm  # fmt: skip
