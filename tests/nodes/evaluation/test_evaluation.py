"""What many runs allow to say: rates with their intervals, pairs on the same seeds; and the command that runs them."""

from __future__ import annotations

import base64
import fcntl
import json
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from matplotlib import pyplot

from nodes.evaluation.command import main
from nodes.evaluation.figures import compare, figures_of, rate_of
from nodes.evaluation.folder import ResultsFolder
from nodes.evaluation.grades import Grade, grader_of
from nodes.evaluation.log import LOG, EvaluationLog, logged_trials, write_log
from nodes.evaluation.running import Runs, digest_of
from nodes.evaluation.table import draw, sentences, shorten, table
from nodes.evaluation.trials import Card, EvaluationRun, Result, TrialVariant, result_of, trials_of
from runtime.errors import PolyrhythmError, UserError
from tests.support.running import eventually
from tests.support.sentences import pattern, sentence
from tests.support.servers.fake_openai_server import FakeOpenAI, answers, status
from tests.support.terminals import CTRL_C, Terminal

ROOT = Path(__file__).resolve().parents[3]
LAUNCH = """
[nodes.lot]
use = "tests.nodes.evaluation.evaluated_nodes:Lot"
"""


def result(variant: str, seed: int, ok: bool | None, duration_s: float = 10.0, **more: Any) -> Result:
    reason = "done" if ok else "dropped the cup"
    return Result(trial=EvaluationRun(variant, "", seed), is_success=ok, reason=reason, duration_s=duration_s, **more)


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
    trials = trials_of([TrialVariant("a"), TrialVariant("b")], ["cup", "bowl"], range(2))
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
    assert sentences([comparison])[0].startswith(
        sentence("evaluation.beside", variant="new", other="old", number=10, points="+50")
    )


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
    found = result_of(EvaluationRun("a", "", 0), summary, took_s=1.234)
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
@pytest.mark.long
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
    log = msgspec.json.decode((out / "evaluation.json").read_bytes(), type=EvaluationLog)
    assert (log.schema, log.version, log.status) == ("polyrhythm.evaluation", 1, "complete")
    assert [one.changes for one in log.variants] == [(), ("lot.luck=0.0",)]
    assert {(one.variant, one.outcome, one.reason) for one in log.trials} == {
        ("sure", "success", "lucky"), ("poor", "failure", "unlucky at 0"),
    }  # fmt: skip
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
    assert sentence("evaluation.other_results", why=" (other variants)") in other.stderr


@pytest.mark.processes
def test_the_same_evaluation_twice_at_once_is_refused(tmp_path: Path, launch: Path) -> None:
    asked = ["--seeds", "1", "--set", "lot.luck=0"]
    assert evaluate(launch, tmp_path, *asked).returncode == 0
    results = tmp_path / "results.jsonl"
    before = results.read_bytes()
    with results.open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        second = evaluate(launch, tmp_path, *asked)
    assert second.returncode == 2
    assert sentence("evaluation.is_being_written", file=results) in second.stderr
    assert results.read_bytes() == before


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
    assert sentence("evaluation.no_run_ended") in alone.stderr


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--seeds", "0"], "names no seed"),
        (["--seeds", "many"], sentence("evaluation.seeds_expected")),
        (["--seeds", "5:2"], "names no seed"),
        (["--seeds", "1000000"], "at most 100000"),
        (["--variant", "a", "--variant", "a"], "'a' is named twice"),
        (["--variant", "../a"], sentence("evaluation.name_expected", most=50)),
        (["--variant", "a\nb"], sentence("evaluation.name_expected", most=50)),
        (["--variant", "a" * 300], sentence("evaluation.name_expected", most=50)),
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


@pytest.mark.processes
def test_what_a_node_prints_is_no_part_of_how_its_run_went(tmp_path: Path, launch: Path) -> None:
    done = evaluate(launch, tmp_path / "out", "--seeds", "1", "--set", "lot.prints=true", "--json")
    assert done.returncode == 0, done.stderr
    assert successes(done.stdout) == {"as it is": [0]}


@pytest.mark.processes
def test_somebody_at_a_terminal_is_told_which_run_goes_on_while_it_does(tmp_path: Path, launch: Path) -> None:
    code = "import sys; from nodes.evaluation.command import main; sys.exit(main(sys.argv[1:]))"
    asked = ["--seeds", "1", "--set", "lot.lasts_s=1e6", "--real-time", "--out", str(tmp_path / "out")]
    terminal = Terminal([sys.executable, "-c", code, str(launch), *asked], ROOT)
    try:
        terminal.says(sentence("evaluation.still_running", name="as it is-seed0"))
        assert "[1 of 1" not in terminal.output, "before it has ended"
        terminal.type(CTRL_C)
        terminal.says(sentence("evaluation.goes_on_with"))
    finally:
        terminal.end()
    assert left_of(tmp_path / "out") == []


@pytest.mark.processes
def test_an_operator_grades_each_trial_and_the_grade_stands_apart_from_the_score(tmp_path: Path, launch: Path) -> None:
    code, out = "import sys; from nodes.evaluation.command import main; sys.exit(main(sys.argv[1:]))", tmp_path / "out"
    asked = ["--seeds", "1", "--set", "lot.luck=0.0", "--grade", "operator", "--out", str(out)]
    terminal = Terminal([sys.executable, "-c", code, str(launch), *asked], ROOT)
    try:
        terminal.says(sentence("evaluation.was_it_done", name="as it is-seed0"))
        terminal.type(b"maybe\np it <nearly> held\n")
        terminal.says("evaluation.html")
    finally:
        terminal.end()
    log = msgspec.json.decode((out / "evaluation.json").read_bytes(), type=EvaluationLog)
    grade = Grade("as it is-seed0", "operator", "partial", "it <nearly> held")
    assert [(one.outcome, one.grades) for one in log.trials] == [("failure", (grade,))]
    page = (out / "evaluation.html").read_text()
    assert "it &lt;nearly&gt; held" in page
    assert page.count("<article") == 1
    assert set(re.findall(r'(?:src|href)="([a-z]+):', page)) == {"data"}, "nothing is loaded"


@pytest.mark.long
@pytest.mark.processes
def test_a_model_grades_by_the_last_pictures_and_what_it_makes_no_sense_of_changes_no_score(
    tmp_path: Path, launch: Path
) -> None:
    launch.write_text(LAUNCH + '\n[nodes.eye]\nuse = "tests.nodes.evaluation.evaluated_nodes:Eye"\n')
    out = tmp_path / "out"
    with FakeOpenAI(answers('{"grade": "partial", "note": "It hangs."}'), answers("I like cups.")) as server:
        asked = ["--seeds", "2", "--jobs", "1", "--set", "lot.luck=0.0", "--grade", f"eyes@{server.url}", "--rerun"]
        done = evaluate(launch, out, *asked)
    assert done.returncode == 0, done.stderr
    assert [len(request.image_urls) for request in server.requests] == [1, 1]
    assert server.requests[0].image_urls[0].startswith("data:image/jpeg;base64,")
    assert sentence("evaluation.not_graded", trial="as it is-seed1", by="eyes") in done.stderr
    log = msgspec.json.decode((out / "evaluation.json").read_bytes(), type=EvaluationLog)
    graded = Grade("as it is-seed0", "eyes", "partial", "It hangs.")
    assert [(one.outcome, one.grades) for one in log.trials] == [("failure", (graded,)), ("failure", ())]
    for seed in range(2):
        assert (out / f"as it is-seed{seed}" / "run.rrd").stat().st_size > 1000


@pytest.mark.parametrize(
    ("url", "why"),
    [("http://127.0.0.1:1/v1", sentence("evaluation.grader_away")), ("", "no such model")],
)
def test_a_grader_that_cannot_be_asked_or_sees_no_picture_is_told_and_says_nothing(
    url: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "last.jpg"
    trial = result("a", 0, True)
    with FakeOpenAI(status(404, "no such model")) as server:
        grader = grader_of(f"eyes@{url or server.url}")
        assert grader(trial, picture) is None
        assert sentence("evaluation.no_picture_to_grade", trial="a-seed0", by="eyes") in capsys.readouterr().err
        assert not server.requests
        picture.write_bytes(b"a picture")
        assert grader(trial, picture) is None
    told = capsys.readouterr().err
    assert sentence("evaluation.not_graded", trial="a-seed0", by="eyes") in told
    assert why in told


def test_a_page_shows_how_each_trial_ended_and_what_was_said(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a-seed0.jpg").write_bytes(b"a picture")
    results = [result("a", 0, False, words=((1.5, "Ann", "Not that one!"),)), result("a", 1, None, has_broken=True)]
    trials = logged_trials(results, [Grade("a-seed0", "someone", "no")], tmp_path)
    assert [one.outcome for one in trials] == ["failure", "broken"]
    assert [one.picture for one in trials] == ["pictures/a-seed0.jpg", ""]
    log = EvaluationLog(
        status="complete", written="", launch_file="lot.toml", launch_sha256="0" * 64, launch=LAUNCH, commit="",
        versions={}, is_virtual=True, variants=(), trials=trials, figures=figures_of(results), comparisons=(),
    )  # fmt: skip
    write_log(tmp_path, log, (), tmp_path / "evaluation.png")
    page = (tmp_path / "evaluation.html").read_text()
    assert base64.b64encode(b"a picture").decode() in page
    assert "Not that one!" in page
    assert "grade by someone" in page


def test_nobody_at_the_terminal_and_no_model_are_told_before_anything_runs(tmp_path: Path, launch: Path) -> None:
    for who in ("operator", "gpt-4o", "@http://127.0.0.1:1/v1"):
        with pytest.raises(UserError, match="--grade"):
            grader_of(who)


@pytest.mark.processes
def test_a_run_that_hangs_is_ended_and_no_process_of_it_is_left(tmp_path: Path, launch: Path) -> None:
    out = tmp_path / "out"
    done = evaluate(launch, out, "--seeds", "1", "--set", "lot.hangs=true", "--longest", "3")
    assert done.returncode == 1
    assert "did not end within 3 s and was killed" in done.stderr
    assert left_of(out) == []


def left_of(out: Path) -> list[str]:
    """Processes that go on and name this folder, or, where they were forked, have a file of it open."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = process.joinpath("cmdline").read_bytes().decode(errors="replace")
            files = [str(link.readlink()) for link in process.joinpath("fd").iterdir()]
        except OSError:
            continue  # it has ended
        if any(str(out) in text for text in (words, *files)):
            found.append(f"{process.name} {words}")
    return found


@pytest.mark.processes
@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_an_evaluation_that_is_interrupted_leaves_nobody_behind_and_goes_on(
    how: signal.Signals, tmp_path: Path, launch: Path
) -> None:
    out = tmp_path / "out"
    launch.write_text(LAUNCH + "params = { lasts_s = 1.0 }\n")
    asked = ["--seeds", "4", "--jobs", "1"]
    code = "import sys; from nodes.evaluation.command import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, str(launch), "--out", str(out), *asked]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        assert "[1 of 4" in process.stderr.readline()
        process.send_signal(how)
        complaint = process.communicate(timeout=240)[1]
    assert sentence("evaluation.goes_on_with") in complaint
    assert "Traceback" not in complaint
    assert left_of(out) == []
    again = evaluate(launch, out, *asked, "--json")
    assert again.returncode == 0, again.stderr
    assert successes(again.stdout) == {"as it is": [0, 1, 2, 3]}
    assert 1 <= again.stderr.count(" of 4") <= 3


@pytest.mark.processes
@pytest.mark.parametrize(
    "how", [pytest.param([], marks=pytest.mark.long, id="virtual"), pytest.param(["--real-time"], id="real-time")]
)
def test_an_evaluation_that_is_killed_leaves_nobody_behind(how: list[str], tmp_path: Path, launch: Path) -> None:
    out = tmp_path / "out"
    changes = ["--set", "lot.hangs=true"] if not how else ["--set", "lot.lasts_s=1e6"]
    code = "import sys; from nodes.evaluation.command import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, str(launch), "--out", str(out), "--seeds", "2", "--jobs", "2"]
    with subprocess.Popen(
        [*command, *how, *changes], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        eventually(lambda: bool(list(out.glob("*/run.mcap"))), "a run has begun")
        process.kill()
    eventually(lambda: not left_of(out), "no run goes on")


CARD = Card(launch="", variants=(), tasks=(), is_virtual=True, for_s=None, versions={}, git="")


@pytest.mark.parametrize("damage", [b"\n", b"\xff\n", b'{"trial": 7}\n'])
def test_a_line_that_is_damaged_is_named(damage: bytes, tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path, CARD)
    folder.add(result("a", 0, True))
    folder.close()
    file = tmp_path / "results.jsonl"
    file.write_bytes(file.read_bytes() + damage + msgspec.json.encode(result("a", 1, True)) + b"\n")
    with pytest.raises(
        UserError, match=pattern("evaluation.line_is_damaged", file=r"results\.jsonl", number=3, why=".*")
    ):
        ResultsFolder(tmp_path, CARD)


def test_a_disk_that_is_full_is_a_sentence_and_what_was_kept_before_is_gone_on_with(tmp_path: Path) -> None:
    code = """
import resource, signal, sys
from pathlib import Path
from nodes.evaluation.table import draw, shorten
from nodes.evaluation.folder import ResultsFolder
from runtime.errors import PolyrhythmError
from tests.nodes.evaluation.test_evaluation import CARD, result
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
folder = ResultsFolder(Path(sys.argv[1]), CARD)
try:
    for seed in range(100):
        folder.add(result("a", seed, True))
except PolyrhythmError as problem:
    print(seed, problem)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert "cannot be written (" in done.stdout, done.stderr
    kept = int(done.stdout.split()[0])
    folder = ResultsFolder(tmp_path, CARD)
    assert kept >= 1
    assert len(folder.results) == kept
    folder.close()


@pytest.mark.parametrize("changed", ["lot.toml", "scenario.toml"])
def test_a_file_that_changes_in_the_midst_ends_the_evaluation(changed: str, tmp_path: Path) -> None:
    launch, scenario = tmp_path / "lot.toml", tmp_path / "scenario.toml"
    launch.write_text(LAUNCH)
    scenario.write_text("")
    runs = Runs(
        str(launch), LAUNCH, [TrialVariant("a")], lambda _, changes: changes, tmp_path, is_virtual=True, for_s=None,
        keeps_all=False, longest_s=60.0, reads={scenario: digest_of(scenario)},
    )  # fmt: skip
    with (tmp_path / changed).open("a") as file:
        file.write("# other")
    with pytest.raises(PolyrhythmError, match=rf"{changed} has changed since the evaluation began"):
        runs.all_of([EvaluationRun("a", "", 0)], 1, lambda _: None)


def test_results_of_another_scenario_file_are_not_gone_on_with(tmp_path: Path) -> None:
    ResultsFolder(tmp_path, CARD).close()
    with pytest.raises(UserError, match=r"holds results of another evaluation \(other reads\)"):
        ResultsFolder(tmp_path, msgspec.structs.replace(CARD, reads={"scenarios.toml": "0" * 64}))


@pytest.mark.parametrize(("rows", "name"), [(1, "a"), (12, "a-long-name-of-a-variant-that-says-it-all-")])
def test_a_picture_has_room_for_its_rows_and_names(rows: int, name: str, tmp_path: Path) -> None:
    results = [result(f"{name}{number}", seed, number % 2 == 1) for number in range(rows) for seed in range(2)]
    draw(tmp_path / "a.png", figures_of(results), results)
    height, width, _ = pyplot.imread(tmp_path / "a.png").shape
    assert width > 1000
    assert height > 150 + 60 * rows


def test_a_long_name_keeps_both_its_ends() -> None:
    assert shorten("short", 10) == "short"
    assert shorten("a-long-name-of-seed-17", 10) == "a-lo…ed-17"


RECORDED = (
    LAUNCH
    + """
[nodes.recorder]
use = "nodes.recording.recorder:Recorder"
"""
)


@pytest.mark.processes
def test_a_measure_of_ones_own_is_a_number_for_each_run_in_the_table_and_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lot.toml"
    file.write_text(RECORDED)
    own = "tests.nodes.evaluation.evaluated_nodes"
    asked = ["--measure", f"beats={own}:beats", "--measure", f"grams={own}:broken", "--seeds", "2"]
    assert main([str(file), *asked, "--out", str(tmp_path / "a"), "--json"]) == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert [one["measures"] for one in found["results"]] == [{"beats": 10.0, "grams": None}] * 2
    assert found["figures"][0]["measures"]["beats"]["mean"] == 10.0
    assert "no scale" in told.err
    assert main([str(file), *asked, "--out", str(tmp_path / "a")]) == 0, "what is there is gone on with"
    head, row = capsys.readouterr().out.splitlines()[:2]
    assert head.split()[-2:] == ["beats", "grams"]
    assert row.split()[-1] == "-", "what could not be measured is shown as such"
    (tmp_path / "a" / LOG).unlink()
    (tmp_path / "a" / LOG).mkdir()
    assert main([str(file), *asked, "--out", str(tmp_path / "a")]) == 1, "no log is no success"
    assert sentence("evaluation.log_not_written", file=tmp_path / "a" / LOG) in capsys.readouterr().err
    assert main([str(file), "--measure", "beats"]) == 2
    assert main([str(file), "--measure", f"beats={own}:beets"]) == 2
    assert "functions there: beats, broken" in capsys.readouterr().err


@pytest.mark.processes
def test_a_graph_that_nobody_ends_is_told_before_its_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "hello.toml"
    file.write_text('[nodes.talker]\nuse = "nodes.hello:Talker"\n')
    assert main([str(file), "--for", "1", "--seeds", "1", "--out", str(tmp_path / "a")]) == 0
    told = capsys.readouterr()
    assert sentence("evaluation.nobody_ends") in told.err.splitlines()[0]
    assert "was not judged" in told.err
    assert told.out.splitlines()[1].split()[3:6] == ["1", "-", "-"], "no share of successes where nobody judges"
