"""The report tells what happened in a run, from its recording alone, with the right figures."""

from __future__ import annotations

import dataclasses
import json
import shlex
from io import StringIO
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from nodes.mcap.file import BagWriter, next_chunk
from nodes.msgs import MISTAKE, TAKEN_BACK, Action, Interrupt, Mark, Trial, Utterance, WizardResponse
from nodes.recording.bag.command import main as bag
from nodes.report.actions import action_spans
from nodes.report.command import BY_HAND, main, report_run, report_session
from nodes.report.interrupt_outcomes import followed, stop_times
from nodes.report.key_frames import FEWEST, MOST, frames, moments
from nodes.report.run import Run, TopicMessages, read_run
from nodes.report.summary import CUT_OFF, NOT_JUDGED, Percentiles, TaskSummary, spread, summarise
from nodes.report.summary_tables import print_result, print_summary
from nodes.report.timeline import mode_spans, rows, seated, stops
from nodes.scaffold.command import main as new
from runtime.coordination.health import Health, TimerHealth
from runtime.errors import RecordingError
from runtime.message import Envelope, Stamped
from tests.support.sentences import pattern, sentence
from tests.support.shadowed_run import a_run_with_a_planner_in_shadow
from tests.support.synthetic_run import ACTIONS, DIALOGUE, STOP_S, picture, write_run


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def run(recording: Path) -> Run:
    return read_run(recording)


def test_what_was_said_and_planned_in_shadow_is_no_part_of_the_run(tmp_path: Path) -> None:
    run = read_run(a_run_with_a_planner_in_shadow(tmp_path / "wizard.mcap"))
    assert [one.message.text for one in run.said.messages] == ["by the model", "by the person", "in the robot's voice"]
    assert run.subtasks.messages == []
    assert len(run.stamps["said"]) == 4, "it was recorded, and is counted as such"


@pytest.mark.parametrize(
    ("phase", "words"), [("completed", "trial 2 completed"), ("aborted", "trial 2 broken off"), (None, CUT_OFF)]
)
def test_the_recording_of_a_trial_ends_as_the_trial_did(phase: Any, words: str, tmp_path: Path) -> None:
    bag = BagWriter(tmp_path / "P01-trial-2-1.mcap", {})
    bag.note("trial", {"participant": "P01", "number": "2", "attempt": "1"})
    for at_s, one in enumerate(("started", phase) if phase else ("started",)):
        trial = Trial(participant="P01", number=2, attempt=1, task="t", condition="c", phase=one)
        bag.write(Stamped(trial, Envelope(topic="study/trial", source="study", seq=at_s, published_ns=at_s * 10**9)))
    bag.close()
    summary = summarise(read_run(tmp_path / "P01-trial-2-1.mcap"))
    assert (summary.is_success, summary.reason) == (None, words)


@pytest.mark.parametrize(("ticks", "is_piece"), [(40, False), (4000, True)])
def test_a_piece_of_a_run_says_that_its_nodes_count_from_the_runs_start(
    ticks: int, is_piece: bool, tmp_path: Path
) -> None:
    bag = BagWriter(tmp_path / "piece.mcap", {})
    bag.write(Stamped(Utterance(speaker="Ann", text="Hello"), Envelope("heard", "person", 1, 100 * 10**9)))
    for seq, seen in enumerate((ticks, ticks + 20)):
        timer = TimerHealth(
            name="tick", hz_target=20.0, hz_achieved=20.0, ticks=seen, overruns=0, lateness_p50_ms=0.1,
            lateness_p99_ms=0.2, lateness_max_ms=0.3,
        )  # fmt: skip
        health = Health(node="policy", pid=7, timers=(timer,), ports=(), sent={}, errors=0, cpu_s=1.0, rss_mb=70.0)
        bag.write(Stamped(health, Envelope("health/policy", "policy", seq + 1, (102 + seq) * 10**9)))
    bag.close()
    summary = summarise(read_run(tmp_path / "piece.mcap"))
    assert summary.counts_from_before is is_piece
    console = Console(file=StringIO(), width=80, record=True)
    print_summary(summary, console)
    assert (sentence("report.since_the_run_began") in console.export_text()) is is_piece


def test_a_wizard_s_times_and_their_own_mistakes_are_told(tmp_path: Path) -> None:
    bag = BagWriter(tmp_path / "wizard.mcap", {})
    told = (
        WizardResponse(by="Ann", act="say", after_s=1.5),
        WizardResponse(by="Ann", act="act", after_s=4.0),
        WizardResponse(by="Ann", act="say", after_s=2.0),
        Mark(label=TAKEN_BACK, note="I am lost.", by="Ann"),
        Mark(label=MISTAKE, note="said “Hello”", by="Ann"),
        Mark(label="smiles", by="Bo"),
    )
    for at_s, one in enumerate(told):
        topic = "mark" if isinstance(one, Mark) else "console/response"
        bag.write(Stamped(one, Envelope(topic, "console", at_s, at_s * 10**9)))
    bag.close()
    summary = summarise(read_run(tmp_path / "wizard.mcap"))
    assert summary.wizard is not None
    assert summary.wizard.after_s == Percentiles(count=3, p50=2.0, p99=4.0, highest=4.0)
    assert summary.wizard.acts == {"say": 2, "act": 1}
    console = Console(file=StringIO(), width=80, record=True)
    print_summary(summary, console)
    text = " ".join(console.export_text().split())
    assert "median 2.0 s, longest 4.0 s, of 3 (2 say, 1 act)" in text
    assert "1: 4.0 s said “Hello”" in text
    assert "1: 3.0 s I am lost." in text


def test_a_run_without_a_wizard_has_no_times_of_one(run: Run) -> None:
    assert summarise(run).wizard is None


def test_percentiles_are_nearest_rank() -> None:
    assert spread([]) is None
    assert spread(range(1, 101)) == Percentiles(count=100, p50=50, p99=99, highest=100)
    assert spread([3.0]) == Percentiles(count=1, p50=3.0, p99=3.0, highest=3.0)


def test_outcome_task_and_conversation(run: Run) -> None:
    summary = summarise(run)
    assert (summary.is_success, summary.reason) == (True, "every cup but the blue one is in the bin")
    assert summary.task == TaskSummary("cup", in_bin=("green_cup", "red_cup", "yellow_cup"), left=("blue_cup",))
    assert [(round(line.at_s, 6), line.speaker, line.text) for line in summary.conversation] == [
        (at_s, speaker, text) for at_s, _, speaker, text in DIALOGUE
    ]
    assert summary.actions == {"pick": {"succeeded": 3, "replaced": 1, "failed": 1}, "place": {"succeeded": 3}}
    assert summary.seed == 7
    assert summary.duration_s == pytest.approx(60.0, abs=0.1)


def test_age_of_the_image_behind_the_commands(run: Run) -> None:
    age = summarise(run).image_age_ms
    assert age is not None
    assert [age.p50, age.p99, age.highest] == pytest.approx([60.0, 140.0, 140.0])
    assert age.count == sum(1 for tick in range(1200) if tick / 20 >= 3.2)  # none counted before the first image


def test_a_stop_is_measured_from_the_utterance_to_held_rest_and_release(run: Run) -> None:
    stop = next(one for one in summarise(run).interrupts if one.depth == "stop")
    assert stop.held_ms == pytest.approx(12.0)
    assert stop.at_rest_ms == pytest.approx(400.0)
    assert stop.resumed_s == pytest.approx(6.015)
    assert stop.followed == sentence(
        "report.stop_measured", held=sentence("report.stop_held", ms="12.0"), still_s="0.40", released_s="6.0"
    )


def test_what_followed_the_other_interrupts(run: Run) -> None:
    followed = {one.depth: one.followed for one in summarise(run).interrupts}
    assert followed["replan"] == (
        "plan after 0.50 s: Put every cup in the bin; action after 1.20 s: pick up the red cup"
    )
    assert followed["amend"].endswith("action after 0.50 s: pick up the green cup")
    assert followed["resume"] == "moving after 0.01 s"


def test_rates_overruns_and_drops_are_those_of_the_last_health(run: Run) -> None:
    summary = summarise(run)
    policy = next(timer for timer in summary.timers if timer.node == "policy")
    assert (policy.hz_achieved, policy.hz_target, policy.ticks, policy.lateness_p99_ms) == (20.0, 20.0, 1180, 1.5)
    assert next(timer.overruns for timer in summary.timers if timer.node == "vlm") == 2
    assert summary.dropped == {"overwritten": 236}
    assert summary.missed_by_recorder == {}


def test_a_restarted_node_counts_both_lives(run: Run) -> None:
    planner = next(node for node in summarise(run).nodes if node.node == "planner")
    assert (planner.starts, planner.pids) == (2, (111, 222))
    assert planner.received == 5 * 40 + 5 * 19
    assert planner.sent == 20 + 9


def test_budgets_are_summed_up_as_met_or_not_and_spending_over_all_lives(run: Run) -> None:
    summary = summarise(run)
    kept, missed = summary.paths
    assert (kept.path, kept.is_met, kept.count, kept.over) == ("eye_to_hand", True, 2950, 0)
    assert kept.p99_ms == 140.0, "the exact figure of the recorded commands, not that of the node's buckets"
    assert (missed.path, missed.is_met, missed.over) == ("too_tight", False, 295)
    (spent,) = summary.spending
    assert (spent.node, spent.calls, spent.max_calls, spent.prompt_tokens) == ("planner", 59, 100, 590)


def test_topics_have_counts_and_rates(run: Run) -> None:
    by_name = {topic.topic: topic for topic in summarise(run).topics}
    assert by_name["command"].messages == 1200
    assert by_name["command"].hz == pytest.approx(20.0)
    assert by_name["head/image"].messages == 120
    assert summarise(run).messages == sum(topic.messages for topic in by_name.values())


def test_a_second_stop_finds_the_robot_held_already(run: Run) -> None:
    first = next(one for one in run.interrupts.messages if one.message.depth == "stop")
    later_ns = first.envelope.published_ns + 1_000_000_000
    second = Stamped(
        Interrupt(id="reflex-9", depth="stop", text="Stop!", by="collaborator"),
        Envelope("interrupt", "reflex", 9, later_ns, origins={"utterance": later_ns}),
    )
    times = stop_times(run, second)
    assert (times.held_ms, times.is_cause) == (0.0, False)
    assert followed(run, second) == sentence(
        "report.stop_measured", held=sentence("report.was_held_already"), still_s="0.00", released_s="5.0"
    )


def test_a_guard_that_felt_a_touch_itself_and_names_the_interrupt_later_was_stopped_by_it(recording: Path) -> None:
    run = read_run(recording)
    stop = next(one for one in run.interrupts.messages if one.message.depth == "stop")
    held = run.guard.first_after(stop.envelope.published_ns, lambda state: state.mode == "stopped")
    assert held is not None
    unnamed = Stamped(msgspec.structs.replace(cast(Any, held.message), stop_cause=""), held.envelope)
    run.guard.messages.insert(run.guard.messages.index(held), unnamed)
    assert stop_times(run, stop).is_cause
    assert followed(run, stop).startswith(sentence("report.stop_held", ms="12.0"))


def test_a_stop_that_held_nothing_is_told() -> None:
    stop = Stamped(Interrupt(id="i", depth="stop", text="Stop!", by="Sam"), Envelope("interrupt", "reflex", 1, 1_000))
    assert followed(Run(path=Path("none")), stop) == "nothing"


def test_json_is_sorted_rounded_and_stable(run: Run) -> None:
    text = summarise(run).to_json()
    assert text == summarise(run).to_json()
    known = json.loads(text)
    assert list(known) == sorted(known)
    assert known["stop_to_held_ms"]["p50"] == 12.0
    [rest_ms] = [one["at_rest_ms"] for one in known["interrupts"] if one["at_rest_ms"] is not None]
    assert known["stop_to_rest_ms"]["p50"] == rest_ms > 12.0
    assert known["recording"].endswith("run.mcap")


def test_json_of_a_virtual_run_has_no_machine_in_it(recording: Path) -> None:
    virtual = read_run(recording)
    virtual.about = {**virtual.about, "clock": "virtual"}
    text = summarise(virtual, pictures=["/somewhere/timeline.png"]).to_json()
    assert not any(word in text for word in ("run.mcap", "timeline.png", "a machine", "abc123", "111", "cpu", "rss"))


def test_the_tables_fit_into_80_columns(run: Run) -> None:
    console = Console(width=80, record=True, file=open("/dev/null", "w"), force_terminal=False)  # noqa: SIM115
    print_summary(summarise(run, pictures=["runs/1/timeline.png"]), console)
    console.file.close()
    text = console.export_text()
    assert max(len(line) for line in text.splitlines()) <= 80
    for words in (
        "SUCCESS",
        sentence("report.cups_in_the_bin"),
        "3 of 4; left: blue_cup",
        "p50 60.0",
        sentence("report.stop_held", ms="12.0"),
        "overwritten 236",
        "not met",
        "59 of 100",
    ):
        assert words in text


def test_a_task_without_things_that_it_counts_has_no_row_of_them(run: Run) -> None:
    console = Console(file=StringIO(), width=80, record=True)
    print_result(dataclasses.replace(summarise(run), task=TaskSummary("cup", (), ())), console)
    assert sentence("report.cups_in_the_bin") not in console.export_text()


def test_a_run_that_has_just_ended_is_told_in_few_lines_with_commands_that_work(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(recording.parent)
    assert report_run(recording, tmp_path / "out") is True
    result, _, to_try = capsys.readouterr().out.strip().partition("three things to try next\n")
    assert len([line for line in result.splitlines() if not line.startswith(("recording", "picture", "  "))]) <= 10
    for words in ("SUCCESS", "3 of 4; left: blue_cup", "stop by ", "not met"):
        assert words in result
    lines = [line for line in to_try.splitlines() if line.split()]
    commands = [shlex.split(line) for line in lines if line.split()[0].endswith("polyrhythm")]  # or its whole path
    assert [command[1] for command in commands] == ["bag", "report", "new"]
    assert bag([*commands[0][2:]]) == 0
    assert main([*commands[1][2:], "--out", str(tmp_path / "again")]) == 0
    assert new(commands[2][2:]) == 0
    assert "Rates and lateness" in capsys.readouterr().out


def test_a_recording_cut_short_is_still_summed_up(recording: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.mcap"
    size = recording.stat().st_size
    with recording.open("rb") as file:
        chunk = next_chunk(file, size * 6 // 10, size)
        assert chunk is not None
        file.seek(0)
        cut.write_bytes(file.read(chunk + 100))
    summary = summarise(read_run(cut))
    assert summary.is_success is None
    assert summary.reason == CUT_OFF
    assert not summary.is_complete
    assert summary.damage
    assert 20 < summary.duration_s < 50
    assert [line.text for line in summary.conversation[:3]] == [text for _, _, _, text in DIALOGUE[:3]]


def test_an_empty_recording_has_nothing_to_report(tmp_path: Path) -> None:
    from nodes.mcap.file import BagWriter

    BagWriter(tmp_path / "a.mcap", {}).close()
    with pytest.raises(RecordingError, match=pattern("report.no_messages")):
        read_run(tmp_path / "a.mcap")


def test_key_frames_are_few_ordered_and_hold_every_interrupt(run: Run) -> None:
    chosen = moments(run, in_rows_of=4)
    assert FEWEST <= len(chosen) <= MOST
    assert [one.ns for one in chosen] == sorted(one.ns for one in chosen)
    assert {"order", "amend", "stop", "resume", "success", "end"} <= {one.kind for one in chosen}
    (ouch,) = (text for at_s, _, _, text in DIALOGUE if at_s == STOP_S)
    assert f"“{ouch}”" in [one.text for one in chosen]


def test_the_only_success_of_its_skill_is_shown_before_the_others(run: Run) -> None:
    last = run.actions.messages[5]
    given = msgspec.structs.replace(last.message, skill="hand_over", text="give the green cup")  # type: ignore[type-var]  # a Struct
    rest = [Stamped(given, one.envelope) if one is last else one for one in run.actions.messages]
    told = dataclasses.replace(run, actions=TopicMessages(Action, rest))
    shown = [[one.text for one in moments(one, most=8) if one.kind == "success"] for one in (run, told)]
    assert "put down the green cup" not in shown[0]
    assert "give the green cup" in shown[1]


def test_a_quiet_run_still_has_frames() -> None:
    quiet = Run(path=Path("none"), start_ns=0, end_ns=60_000_000_000)
    assert len(moments(quiet, in_rows_of=4)) == FEWEST


def test_frames_are_the_nearest_ones(run: Run) -> None:
    (found,) = frames(run, "head/image", [run.start_ns + 30_100_000_000])
    assert np.array_equal(found, picture(30.0))


def test_spans_of_actions_modes_and_stops(run: Run) -> None:
    spans = action_spans(run)
    assert [one.end for one in spans] == [status or "replaced" for *_, status in ACTIONS]
    assert [run.at_s(spans[0].start_ns), run.at_s(spans[0].end_ns)] == pytest.approx([3.2, 8.0])
    assert [run.at_s(spans[2].start_ns), run.at_s(spans[2].end_ns)] == pytest.approx(
        [12.4, 14.5]
    )  # replaced: until the next one
    assert [mode for _, mode in mode_spans(run)] == ["armed", "moving", "stopped", "moving"]
    assert np.array(stops(run)) == pytest.approx(np.array([[30.0, 36.015]]))


def test_the_timeline_shows_when_a_person_sat_on_which_seat(tmp_path: Path, run: Run) -> None:
    assert seated(run) == []
    assert seated(read_run(a_run_with_a_planner_in_shadow(tmp_path / "wizard.mcap"))) == [("planner", (2.0, 4.0))]


def test_texts_on_the_timeline_take_turns_in_rows() -> None:
    assert rows([(0.0, 10.0), (1.0, 11.0), (2.0, 12.0), (20.0, 30.0), (12.0, 22.0)], 3) == [0, 1, 2, 0, 1]
    assert rows([(0.0, 10.0), (1.0, 11.0)], 1) == [0, 0]
    assert rows([(0.0, 10.0), (1.0, 11.0), (12.0, 22.0)], 4, [2, 1, 2]) == [0, 2, 0], "a long one takes two rows"


def test_both_pictures_are_drawn_and_show_something(recording: Path, tmp_path: Path) -> None:
    report_run(recording, tmp_path / "out", as_json=True)
    for name in ("contact_sheet.png", "timeline.png"):
        with Image.open(tmp_path / "out" / name) as opened:
            picture = np.asarray(opened.convert("RGB"))
        assert picture.shape[1] > 1500
        assert picture.shape[0] > 900
        assert picture.std() > 15
        assert len(np.unique(picture[::5, ::5].reshape(-1, 3), axis=0)) > 40


def test_the_command_prints_json_and_draws_only_where_asked(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(recording), "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert known["is_success"] is True
    assert known["pictures"] == []
    assert not (recording.parent / "timeline.png").exists()


def test_recordings_that_share_a_folder_do_not_overwrite_each_others_pictures(tmp_path: Path) -> None:
    run = a_run_with_a_planner_in_shadow(tmp_path / "run.mcap")
    trials = [a_run_with_a_planner_in_shadow(tmp_path / f"P01-trial-{number}-1.mcap") for number in (1, 2)]
    for one in (run, *trials):
        assert main([str(one)]) == 0
    assert [str(one.relative_to(tmp_path)) for one in sorted(tmp_path.rglob("timeline.png"))] == [
        "P01-trial-1-1-report/timeline.png",
        "P01-trial-2-1-report/timeline.png",
        "timeline.png",
    ]


def test_the_command_refuses_what_is_no_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "gone.mcap")]) == 2
    assert "gone.mcap: cannot be read (No such file or directory)" in capsys.readouterr().err
    assert main(["--unknown"]) == 2


def test_a_run_without_speech_plans_or_robot_is_drawn_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from nodes.hello import Listener, Talker
    from nodes.recording.recorder import Recorder
    from runtime import Simulation

    sim = Simulation(Talker(), Listener(), Recorder(path=str(tmp_path / "run.mcap")), health_hz=1.0)
    sim.run(seconds=2.0)
    sim.close()
    report_run(tmp_path / "run.mcap", tmp_path, as_json=True)
    known = json.loads(capsys.readouterr().out)
    assert [one.name for one in tmp_path.glob("*.png")] == ["timeline.png"]
    assert known["image_age_ms"] is None
    assert known["task"] is None


def test_what_people_end_by_hand_has_not_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from nodes.hello import Talker
    from nodes.recording.recorder import Recorder
    from runtime import Simulation

    file = tmp_path / "run.mcap"
    sim = Simulation(Talker(), Recorder(path=str(file)))
    sim.run(seconds=1.0)
    sim.close()
    assert not report_run(file, tmp_path, as_json=True)
    assert json.loads(capsys.readouterr().out)["reason"] == NOT_JUDGED
    assert report_session(file, tmp_path, as_json=True)
    assert json.loads(capsys.readouterr().out)["reason"] == BY_HAND
    assert not report_session(file, tmp_path, outcome=(False, "the driver is gone"), as_json=True)
    assert json.loads(capsys.readouterr().out)["reason"] == "the driver is gone"
