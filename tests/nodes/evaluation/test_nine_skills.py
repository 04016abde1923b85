"""The suite of the nine skills is a folder of scenarios: a wrong deed is told from a failure by a field."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.evaluation.arms import ARMS, ROUTED, ROUTER, changes_of
from nodes.evaluation.figures import figures_of
from nodes.evaluation.scenario_files import HELD_OUT, VERDICT, changes_for_file, files_in, report_verdict, skills_of
from nodes.evaluation.table import table
from nodes.evaluation.trials import EvaluationRun, result_of
from nodes.mcap.file import BagWriter
from nodes.sim.messages import ScenarioVerdict
from nodes.sim.world.scenario import NINE_SKILLS
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
    named = skills_of(files_in([NINE_SKILLS]))
    skill, every = figures_of([result], named=named)
    assert (skill.task, every.task) == (named["silence"], "all")
    assert every.wrong_deeds is not None
    assert (every.success.successes, every.wrong_deeds.successes) == (int(verdict.is_right), wrong_deeds)
    assert "wrong deeds" in table([skill, every])


def test_a_run_that_nobody_judged_has_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.mcap"
    BagWriter(path, {}).close()
    assert report_verdict(path, tmp_path) is None
    assert json.loads(capsys.readouterr().out) == {"is_success": None, "reason": "nobody judged it"}


def test_the_held_out_wordings_go_to_the_person_of_a_scenario() -> None:
    files = files_in([NINE_SKILLS], ["silence"])
    assert f"person.words={HELD_OUT}" in changes_for_file(load(find("kitchen")), files["silence"], (), str(HELD_OUT))


def test_the_kitchen_runs_under_every_arm_of_the_interruption_experiment() -> None:
    path = find("kitchen")
    for arm in ARMS:
        launch = load(path, overrides=(*ROUTED, *changes_of(arm)), added=(ROUTER,))
        check(launch)
        nodes = launch.graph.nodes
        assert [nodes[name].remap.get("heard") for name in ("planner", "vlm", "reflex", "arm")] == [
            "heard/planner", "heard/vlm", "heard/reflex", None,
        ], arm  # fmt: skip
