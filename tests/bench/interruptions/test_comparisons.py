"""What the results of the experiment say: by arm, and A beside each baseline on the same pairs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.interruptions.command import main, reason_without
from bench.interruptions.comparisons import compare, figures_of, partner_table, table
from bench.interruptions.contract import name_of
from nodes.evaluation.trials import EvaluationRun, Result
from nodes.report.run import read_run
from runtime.errors import UserError
from tests.support.sentences import sentence

pytestmark = pytest.mark.long  # of a measurement, which no user's run depends on

ACT = sentence("bench.act_after_retraction")


def result(arm: str, task: str, seed: int, **measures: Any) -> Result:
    return Result(
        trial=EvaluationRun(f"{arm}-cloud", task, seed), is_success=True, reason="done",
        measures={"is_measured": True, **measures},
    )  # fmt: skip


def test_a_is_compared_on_the_pairs_of_scenario_and_seed_that_both_have() -> None:
    results = [result("A", "retraction-carry", seed, act_s=0.1, is_harm=False) for seed in range(8)]
    results += [result("B+", "retraction-carry", seed, act_s=0.9, is_harm=seed < 4) for seed in range(6)]
    found = {one.primary: one for one in compare(results)}
    act, harm = found[ACT], found["harm on retraction at carry"]
    assert (act.baseline, act.pairs) == ("B+", 6)
    assert act.difference == pytest.approx(-0.8)
    assert act.p == 2 / 2**6, "six coins that all fall on one side"
    assert harm.pairs == 6
    assert harm.difference == pytest.approx(-4 / 6)
    assert harm.low is not None
    assert harm.high is not None
    assert harm.low < -4 / 6 < harm.high


def test_p_is_corrected_for_all_that_were_compared() -> None:
    results = []
    for seed in range(6):
        results += [result("A", "stop-near", seed, rest_s=0.4), result("A", "nothing", seed, completion_s=50.0)]
        results += [result("B", "stop-near", seed, rest_s=3.0), result("B", "nothing", seed, completion_s=50.0)]
    found = {one.primary: one for one in compare(results)}
    assert found["rest after stop"].p == 2 / 2**6
    assert found["rest after stop"].corrected_p == 2 * 2 / 2**6
    assert found[sentence("bench.without_interruption")].corrected_p == 1.0


def test_regimes_are_compared_each_by_itself() -> None:
    results = [result("A", "stop-near", 0, rest_s=0.4), result("B", "stop-near", 0, rest_s=3.0)]
    slow = Result(trial=EvaluationRun("B-slow", "stop-near", 0), is_success=True, reason="", measures={"rest_s": 9.0})
    (only,) = compare([*results, slow])
    assert only.regime == "cloud"
    assert only.difference == pytest.approx(-2.6)


def test_what_did_not_happen_is_counted_and_not_averaged() -> None:
    results = [result("A", "stop-near", 0, rest_s=0.4), result("A", "stop-near", 1, rest_s=None)]
    (figures,) = figures_of(results)
    assert (figures.runs, figures.without, figures.p50) == (2, 1, 0.4)
    assert "| rest after stop | A-cloud | 2 | 1 | 0.400 |" in table([figures], [])


def test_a_run_without_measures_is_a_row_with_its_reason() -> None:
    never = Result(
        trial=EvaluationRun("A-cloud", "stop-carry", 0), is_success=False, reason="",
        measures={"is_measured": False, "why_not": "nobody spoke"},
    )  # fmt: skip
    assert reason_without(never) == "nobody spoke"
    broken = Result(trial=never.trial, is_success=None, reason="broken: no room", has_broken=True)
    assert reason_without(broken) == "broken: no room"
    assert reason_without(result("A", "stop-near", 0)) == ""


def test_an_unknown_scenario_is_told_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--scenario 'lunch': known: "):
        main(["--scenario", "lunch", "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def told(out: Path, capsys: Any, *more: str) -> str:
    asked = ["--scenario", "retraction-approach", "--seeds", "1", "--jobs", "1", "--json", "--out", str(out)]
    assert main([*asked, *more]) == 0
    text = capsys.readouterr().out
    assert isinstance(text, str)
    return text


@pytest.mark.processes
def test_a_acts_before_b_plus_and_what_was_killed_goes_on_byte_for_byte(tmp_path: Path, capsys: Any) -> None:
    """The subset for every change: one scenario, one seed; B+ needs a planner's latency longer than A."""
    out = tmp_path / "out"
    first = told(out, capsys, "--arm", "A", "--arm", "B+", "--for", "8")
    act_s = {one["trial"]["variant"]: one["measures"]["act_s"] for one in json.loads(first)["results"]}
    assert 0.0 < act_s["A-cloud"] < act_s["B+-cloud"]
    results = out / "results.jsonl"
    kept = results.read_bytes()
    results.write_bytes(kept[: kept.rindex(b"\n", 0, -1) + 20])  # as a kill leaves it: B+ is half a line
    assert told(out, capsys, "--arm", "A", "--arm", "B+", "--for", "8") == first, "run again byte for byte"


@pytest.mark.processes
def test_b_plus_keeps_what_it_holds_and_does_not_grasp_it_again(tmp_path: Path, capsys: Any) -> None:
    """Words come while the blue cup is carried: B+ holds, plans anew, and goes on to the bin with it."""
    asked = ["--arm", "B+", "--scenario", "addition-carry", "--seeds", "1", "--for", "25", "--keep", "all"]
    assert main([*asked, "--out", str(tmp_path)]) == 0
    run = read_run(tmp_path / "B+-cloud-addition-carry-seed0" / "run.mcap")
    zero_ns = run.interruptions.messages[0].envelope.published_ns
    assert run.interrupts.first_after(zero_ns, lambda one: one.depth == "replan") is not None
    later = [one.message for one in run.actions.messages if one.envelope.published_ns > zero_ns]
    assert later[0].skill == "place"
    assert not [one for one in later if one.skill == "pick" and name_of(one) == "blue_cup"]


@pytest.mark.long
@pytest.mark.processes
def test_without_latencies_a_and_b_plus_take_the_same_time(tmp_path: Path, capsys: Any) -> None:
    """O is A without latencies; B+ without them is within 5 % of it."""
    arms = ("--arm", "O", "--arm", "A", "--arm", "B+")
    rows = json.loads(told(tmp_path, capsys, *arms, "--regime", "none"))["results"]
    assert all(one["is_success"] for one in rows)
    took_s = {one["trial"]["variant"]: one["duration_s"] for one in rows}
    assert max(took_s.values()) < 1.05 * min(took_s.values())


@pytest.mark.long
@pytest.mark.processes
def test_the_subset_for_every_change(tmp_path: Path, capsys: Any) -> None:
    """72 runs, about four minutes on two cores: A and B+, twelve interruptions, three seeds."""
    arms = [word for name in ("A", "B+") for word in ("--arm", name)]
    kinds = [word for name in ("stop", "retraction", "revision", "addition") for word in ("--scenario", name)]
    assert main([*arms, *kinds, "--seeds", "3", "--json", "--out", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["results"]) == 72
    assert [one["trial"] for one in found["results"] if not one["measures"]["is_measured"]] == []
    told = {(one["variant"], one["primary"]): one for one in found["figures"]}
    for variant in ("A-cloud", "B+-cloud"):
        assert told[variant, "rest after stop"]["p90"] < 1.0
        assert told[variant, "rest after stop"]["without"] == 0
    assert told["A-cloud", ACT]["p50"] < told["B+-cloud", ACT]["p50"]


def test_a_partner_in_mind_is_compared_on_the_pairs_that_both_arms_have() -> None:
    rows = {"A": (True, 0.0, 30.0), "M": (False, 1.0, 31.0), "Q": (False, 2.0, 33.0)}
    results = [
        result(arm, "partner-near", seed, is_harm=harm and seed < 2, questions=asked, completion_s=done)
        for arm, (harm, asked, done) in rows.items()
        for seed in range(4)
    ]
    told = partner_table([*results, result("A", "stop-near", 0, is_harm=True)])
    assert "| A-cloud | 4 | 2 | 0.00 | 30.000 of 4 |" in told
    assert "| M less A (cloud) | 4 | -0.50 [-1.00, +0.00] | +1.00 [+1.00, +1.00] | +1.00 [+1.00, +1.00] |" in told
    assert "| M less Q (cloud) | 4 | +0.00 [+0.00, +0.00] | -1.00 [-1.00, -1.00] | -2.00 [-2.00, -2.00] |" in told
