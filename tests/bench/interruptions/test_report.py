"""What the results say beyond the primaries: falsifiers, secondary measures, and the page with its plots."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image

from bench.interruptions.command import main
from bench.interruptions.comparisons import compare
from bench.interruptions.findings import falsifiers, secondaries, secondary_table
from bench.interruptions.plots import harms, side_by_side
from bench.interruptions.report import LOOKS_S, harm_sheet, write_report
from nodes.evaluation.arms import SWEEPS, changes_of, swept_value
from nodes.evaluation.folder import ResultsFolder, read_results, write_raw
from nodes.evaluation.trials import Card, EvaluationRun, Result, TrialVariant
from nodes.report.contact_sheet import STRIP_PX
from nodes.sim.messages import Interruption
from runtime.errors import UserError
from tests.support.sentences import sentence
from tests.support.synthetic_run import write_run

pytestmark = pytest.mark.long  # of a measurement, which no user's run depends on

ACT = sentence("bench.act_after_retraction")

CARD = Card(launch="", variants=(), tasks=(), is_virtual=True, for_s=None, versions={}, git="")


def result(
    arm: str, task: str, seed: int, *, regime: str = "cloud", duration_s: float = 40.0, **measures: Any
) -> Result:
    return Result(
        trial=EvaluationRun(f"{arm}-{regime}", task, seed), is_success=True, reason="done", duration_s=duration_s,
        measures={"is_measured": True, **measures},
    )  # fmt: skip


def claimed(*, b_plus_s: float = 1.0, quiet: bool = True, wasted_m: float = 0.0) -> list[Result]:
    """Runs in which A acts after 0.1 s and B+ after so long."""
    found = []
    for seed in range(8):
        for arm, act_s in (("A", 0.1), ("B+", b_plus_s)):
            is_ours = arm == "A"
            found += [
                result(arm, "retraction-carry", seed, act_s=act_s + seed * 1e-3, is_harm=not is_ours),
                result(arm, "nothing", seed, completion_s=30.0),
                result(arm, "backchannel", seed, text="Mhm", is_false_reaction=is_ours and not quiet),
                result(arm, "burst", seed, wasted_m=wasted_m if is_ours else 0.01),
                result(arm, "stop-near", seed, duration_s=45.0, rest_s=0.4),
            ]
    return found


def happened(results: list[Result]) -> list[bool | None]:
    return [one.has_happened for one in falsifiers(results, compare(results))]


def test_nothing_falsifies_the_claim_where_it_is_true() -> None:
    assert happened(claimed()) == [False, False, False, False, False]


@pytest.mark.parametrize(("changed", "place"), [({"b_plus_s": 0.4}, 0), ({"quiet": False}, 3), ({"wasted_m": 0.02}, 4)])
def test_each_falsifier_is_found(changed: dict[str, Any], place: int) -> None:
    assert [place] == [number for number, one in enumerate(happened(claimed(**changed))) if one]


def test_what_no_run_can_tell_is_not_known() -> None:
    assert happened([result("A", "stop-near", 0, rest_s=0.4)]) == [None] * 5


def test_a_stop_costs_what_the_same_seed_took_longer_than_without_one() -> None:
    found = {one.name: one.by_variant for one in secondaries([
        result("A", "stop-near", 1, duration_s=45.0), result("A", "stop-near", 2, duration_s=99.0),
        result("A", "nothing", 1, duration_s=40.0),
    ])}  # fmt: skip
    assert found[sentence("bench.cost_of_a_stop")] == {"A-cloud": (5.0, 1)}


def test_what_was_not_measured_is_said_and_is_no_zero() -> None:
    runs = [
        result("A", "hand", 1, impulse_n_s=0.0), result("A", "hand", 2, impulse_n_s=3.0),
        result("A", "hand", 3, impulse_n_s=4.0), result("B+", "hand", 1, touched_s=0.0),
        result("A", "stop-near", 1, held_s=None),
    ]  # fmt: skip
    rows = {line.split("|")[1].strip(): line for line in secondary_table(secondaries(runs)).splitlines()}
    assert rows[sentence("bench.impulse", part="hand")].endswith("| 3.000 (3) | not measured |")
    assert rows["held after stop, s"].endswith("| - (0) | not measured |"), "it was looked for, and did not happen"
    assert sentence("bench.impulse", part="foot") not in rows, "no run of it"


def test_results_from_before_impulses_were_measured_are_still_told() -> None:
    published = Path(__file__).parents[3] / "docs" / "results" / "interruptions-before.jsonl.gz"
    _, results = read_results(published)
    assert len(results) == 840
    figures = {one.name: one.by_variant for one in secondaries(results)}
    assert figures["held after stop"]["A-cloud"] is not None
    wait = figures["a person's wait for the first sign of being heard"]
    assert set(wait.values()) == {None}, "it is measured since"


def test_a_swept_regime_differs_from_cloud_in_one_thing() -> None:
    cloud = set(changes_of("B+", "cloud"))
    assert set(changes_of("B+", "planner5s")) - cloud == {
        "planner.latency={listen={p50=5.0,p99=12.5},tick={p50=5.0,p99=12.5}}"
    }
    assert set(changes_of("B+", "vlm2.5hz")) - cloud == {"vlm.hz={tick=2.5}"}
    assert [swept_value(name) for name in SWEEPS["policy"]] == [("policy", hz) for hz in (5.0, 10.0, 20.0, 40.0)]
    for wrong in ("planner2hz", "vlm0hz", "vlm", "camera2hz"):
        with pytest.raises(UserError, match="known: cloud"):
            changes_of("A", wrong)


def test_several_folders_become_one_page_and_one_file_that_is_read_again(tmp_path: Path, capsys: Any) -> None:
    runs = [*claimed(), result("A", "retraction-near", 0, regime="planner2s", act_s=0.1)]
    broken = Result(
        trial=EvaluationRun("B+-cloud", "burst", 9), is_success=None, reason="broken: no room", has_broken=True
    )
    for name, some in (("one", runs[:40]), ("two", [*runs[40:], broken])):
        folder = ResultsFolder(tmp_path / name, CARD)
        for one in some:
            folder.add(one)
        folder.close()
    raw = tmp_path / "raw.jsonl.gz"
    assert main(["report", str(tmp_path / "one"), str(tmp_path / "two"), "--raw", str(raw)]) == 0
    told = capsys.readouterr().out
    assert f"| {ACT} | B+ (cloud) | 8 | -0.900 |" in told
    assert main(["report", str(raw), "--seeds", "4", "--out", str(tmp_path / "four")]) == 0
    assert f"| {ACT} | B+ (cloud) | 4 |" in capsys.readouterr().out
    page = (tmp_path / "one" / "report.html").read_text()
    assert re.findall('alt="([^"]+)"', page) == [
        sentence("bench.reaction_and_success", what="planner swept"),
        "reactions by arm", "harm by arm", "reactions by arm",
    ], "where nothing was measured nothing is drawn"  # fmt: skip
    assert page.count("<details>") == 2, "the regime of the sweep, and the harms"
    assert "<td>B+-cloud-retraction-carry-seed3</td>" in page, "each harm has a row"
    assert "B+-cloud-burst-seed9: broken: no room" in page
    assert sorted(str(one.trial) for one in read_results(raw)[1]) == sorted(str(one.trial) for one in [*runs, broken])
    before = raw.read_bytes()
    write_raw(raw, *read_results(raw))
    assert raw.read_bytes() == before


def test_an_arm_that_the_report_does_not_know_is_drawn_like_others(tmp_path: Path) -> None:
    path = write_report([result("mine", "retraction-carry", 0, act_s=0.3, is_harm=False)], tmp_path)
    assert path.read_text().count("data:image/png;base64,") == 2


def test_impulses_on_a_person_are_drawn_beside_the_harms_or_alone(tmp_path: Path) -> None:
    touched = [result("A", "hand", seed, impulse_n_s=10.0 * seed) for seed in range(3)]
    harmed = [result("A", "retraction-near", 0, is_harm=True)]
    both, alone, without = (harms(some, "cloud") for some in ([*touched, *harmed], touched, harmed))
    assert None not in (both, alone, without)
    assert len({both, alone, without}) == 3
    assert harms([result("A", "hand", 0, touched_s=0.0)], "cloud") is None, "it was not measured"


def test_a_harm_is_shown_as_the_head_camera_saw_it_around_the_words_and_beside_other_arms(tmp_path: Path) -> None:
    said = Interruption(
        scenario="retraction-near", kind="retraction", moment="near", text="Not the blue one", is_new_wording=False,
        thing="blue_cup", wants="cups but it", offset_s=1.0, phase="near",
    )  # fmt: skip
    recording = write_run(tmp_path, more=[(14.0, "interruption", said)])
    sheet = harm_sheet(recording)
    assert sheet is not None
    assert Image.open(BytesIO(sheet)).width == len(LOOKS_S) * (STRIP_PX[0] + 4), "a picture for each look"
    one, two = (Image.open(BytesIO(side_by_side(dict.fromkeys(arms, recording)))) for arms in (("A",), ("A", "B+")))
    assert two.height > one.height, "a row for each arm"


def test_a_harm_without_pictures_has_no_sheet(tmp_path: Path) -> None:
    assert harm_sheet(write_run(tmp_path)) is None, "nobody interrupted"


def test_runs_in_real_time_are_compared_with_the_same_runs_in_virtual_time(tmp_path: Path, capsys: Any) -> None:
    real_card = msgspec.structs.replace(CARD, is_virtual=False)
    for card, rest_s, act_s in ((CARD, 0.4, 0.1), (real_card, 0.42, 0.3)):
        folder = ResultsFolder(tmp_path / str(card.is_virtual), card)
        for seed in range(3):
            folder.add(result("A", "stop-near", seed, regime="none", rest_s=rest_s))
            folder.add(result("A", "retraction-near", seed, regime="none", act_s=act_s))
        folder.close()
    assert main(["report", str(tmp_path / "True"), str(tmp_path / "False")]) == 0
    told = capsys.readouterr().out
    assert "| rest after stop | A-none | 3 | 0.400 | 0.420 | no |" in told
    assert f"| {ACT} | A-none | 3 | 0.100 | 0.300 | **yes** |" in told
    assert "| rest after stop | A-none | 3 | 0 | 0.400 |" in told, "the tables are of virtual time"


def test_arms_stand_in_the_order_in_which_they_were_asked_for(tmp_path: Path, capsys: Any) -> None:
    card = msgspec.structs.replace(
        CARD, variants=(TrialVariant("A-cloud"), TrialVariant("B-cloud"), TrialVariant("B+-cloud"))
    )
    folder = ResultsFolder(tmp_path, card)
    for arm in ("B+", "B", "A"):  # as they came to their ends
        folder.add(result(arm, "stop-near", 0, rest_s=0.4))
    folder.close()
    assert main(["report", str(tmp_path)]) == 0
    head = sentence("bench.secondary_measures", variants="A-cloud | B-cloud | B+-cloud")
    assert head in capsys.readouterr().out
    assert main(["report", str(tmp_path)]) == 0
    assert (tmp_path / "report-2.html").exists(), "the first one is not written over"
    for option in ("--out", "--raw"):
        with pytest.raises(UserError, match="is there already"):
            main(["report", str(tmp_path), option, str(tmp_path)])


def test_a_folder_without_results_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"results\.jsonl: cannot be read"):
        main(["report", str(tmp_path)])
