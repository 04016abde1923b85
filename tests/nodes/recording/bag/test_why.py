"""A trace leads from a command to the words behind it by what handlers read, and says where it can only guess."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.mcap.file import BagWriter
from nodes.msgs import Action, GuardState, Interrupt, JointCommand, Subtask, Utterance
from nodes.recording.bag.causes import CausalStep, CausalTrace, trace
from nodes.recording.bag.command import main
from nodes.recording.bag.latency import KEPT, Durations
from nodes.recording.bag.recording import Recording
from nodes.recording.bag.why import describe
from runtime.clock import to_ns
from runtime.journal.calls import CallRecord, Calls
from runtime.launch.tables.handler_latency import read_trace
from runtime.message import Envelope, Message, Stamped
from tests.support.sentences import sentence

COMMAND = JointCommand(position=(0.0,) * 8, base_v_mps=0.2)


def write(path: Path, *, journal: bool = True, clock: str = "virtual") -> Path:
    writer = BagWriter(path, {"clock": clock})

    def put(topic: str, source: str, seq: int, at_s: float, message: Message, plan_s: float = 0.0) -> None:
        writer.write(Stamped(message, Envelope(topic, source, seq, to_ns(at_s), origins={"plan": to_ns(plan_s)})))

    put("heard", "person", 1, 1.0, Utterance(speaker="Ann", text="Clear the table"))
    put("subtask", "planner", 1, 2.0, Subtask(id="s1", text="Put every cup in the bin"))
    put("heard", "person", 2, 2.2, Utterance(speaker="Ann", text="Nice weather"))
    put("subtask", "planner", 2, 3.9, Subtask(id="s2", text="Too late to matter"))
    put("action", "vlm", 1, 3.0, Action(id="a1", skill="pick", text="pick up the red cup"))
    put("command", "policy", 7, 4.0, COMMAND, plan_s=2.0)
    put("robot/command", "guard", 9, 4.01, COMMAND, plan_s=2.0)
    if journal:
        for node, handler, started_s, trigger, reads, sent in (
            ("planner", "tick", 1.2, "heard:person:1", [], "subtask:planner:1"),
            ("vlm", "look", 2.9, "", ["subtask=subtask:planner:1", "image="], "action:vlm:1"),
            ("policy", "tick", 4.0, "", ["action=action:vlm:1"], "command:policy:7"),
            ("guard", "tick", 4.01, "", ["command=command:policy:7"], "robot/command:guard:9"),
        ):
            call = CallRecord(
                handler=handler, started_ns=to_ns(started_s), took_ns=to_ns(0.1), epochs={}, trigger=trigger,
                reads=tuple(reads), sent=(sent,),
            )  # fmt: skip
            put(f"calls/{node}", node, 1, 5.0, Calls(node=node, calls=(call,)))
    writer.close()
    return path


def test_a_command_is_traced_to_the_words_behind_it(tmp_path: Path) -> None:
    found = trace(Recording(write(tmp_path / "a.mcap")), at_s=4.5)
    assert [step.ident for step in found.steps] == [
        "heard:person:1", "subtask:planner:1", "action:vlm:1", "command:policy:7", "robot/command:guard:9",
    ]  # fmt: skip
    assert found.has_journal
    assert found.steps[0].age_s == pytest.approx(3.01)
    assert found.steps[2].how == "read by policy.tick"


def test_without_a_journal_the_newest_stand_in_and_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.mcap", journal=False)
    assert main(["why", str(path), "--at", "4.5"]) == 0
    told = capsys.readouterr().out
    assert sentence("recording.no_journal") in told
    assert "action:vlm:1" in told


def test_the_trace_is_drawn_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, picture = write(tmp_path / "a.mcap"), tmp_path / "why.png"
    assert main(["why", str(path), "--at", "4.5", "--png", str(picture), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"][0]["text"] == "Ann: Clear the table"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["plot", str(path), "--out", str(picture)]) == 2, "nothing is written over"
    assert main(["plot", str(path), "--out", str(tmp_path / "plot.png")]) == 0


def test_before_the_first_command_there_is_nothing_to_explain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why", str(write(tmp_path / "a.mcap")), "--at", "1.0"]) == 1
    assert "holds no robot/command at or before 1 s" in capsys.readouterr().err


def test_a_robot_that_is_stopped_is_explained_by_what_stopped_it(tmp_path: Path) -> None:
    writer = BagWriter(tmp_path / "stop.mcap", {"clock": "virtual"})
    for message in Recording(write(tmp_path / "a.mcap")):
        writer.copy(message)

    def put(topic: str, source: str, seq: int, at_s: float, message: Message) -> None:
        writer.write(Stamped(message, Envelope(topic, source, seq, to_ns(at_s))))

    put("heard", "person", 3, 4.5, Utterance(speaker="Ann", text="Ouch!"))
    put("interrupt", "reflex", 1, 4.5, Interrupt(id="reflex-1", depth="stop", text="Ouch!", by="Ann"))
    put("guard/state", "guard", 8, 4.52, GuardState(mode="stopped", reason="stopped by Ann", stop_cause="reflex-1"))
    put("robot/command", "guard", 10, 4.52, JointCommand(position=(0.0,) * 8))
    put("guard/state", "guard", 9, 6.0, GuardState(mode="armed", reason=""))
    put("robot/command", "guard", 11, 6.02, COMMAND)
    call = CallRecord(
        handler="heard", started_ns=to_ns(4.5), took_ns=0, epochs={}, trigger="heard:person:3", reads=(),
        sent=("interrupt:reflex:1",),
    )  # fmt: skip
    put("calls/reflex", "reflex", 2, 6.1, Calls(node="reflex", calls=(call,)))
    writer.close()
    recording = Recording(tmp_path / "stop.mcap")
    found = trace(recording, at_s=4.6)
    assert [step.ident for step in found.steps] == ["heard:person:3", "interrupt:reflex:1", "robot/command:guard:10"]
    assert found.steps[1].how == sentence("recording.guard_brakes")
    assert "interrupt:reflex:1" not in [step.ident for step in trace(recording, at_s=6.1).steps]


def test_a_moment_after_the_end_is_said_to_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = str(write(tmp_path / "a.mcap"))
    assert main(["why", recording, "--at", "999"]) == 0
    assert sentence("recording.ends_early", at_s="5.000") in capsys.readouterr().out
    assert main(["why", recording, "--at", "4.5"]) == 0
    assert "this recording ends" not in capsys.readouterr().out


def test_any_message_can_be_asked_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.mcap")
    writer = BagWriter(tmp_path / "b.mcap", {"clock": "virtual"})
    for message in Recording(path):
        writer.copy(message)
    writer.write(Stamped(Utterance(speaker="robot", text="yes"), Envelope("said", "vlm", 1, to_ns(4.2))))
    writer.close()
    assert main(["why", str(tmp_path / "b.mcap"), "--at", "5", "--topic", "said"]) == 0
    assert "why said:vlm:1 at 4.200 s" in capsys.readouterr().out


@pytest.mark.parametrize("time", ["nan", "inf", "1e300", "1e999"])
def test_a_time_that_is_none_is_refused(tmp_path: Path, time: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", str(write(tmp_path / "a.mcap")), "--at", time]) == 2
    assert sentence("recording.run_time_expected") in capsys.readouterr().err


def test_durations_of_a_real_run_become_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = write(tmp_path / "a.mcap", clock="real"), tmp_path / "measured.json"
    assert main(["latency", str(path), "--out", str(out), "--json"]) == 0
    assert {row["p50_s"] for row in json.loads(capsys.readouterr().out)} == {0.1}
    assert json.loads(out.read_text())["handlers"]["vlm.look"] == [0.1]
    assert read_trace(out, "vlm")["look"].measured_s == (0.1,)


def test_virtual_time_measures_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["latency", str(write(tmp_path / "a.mcap"))]) == 1
    assert sentence("recording.record_in_real_time") in capsys.readouterr().err


def test_many_durations_are_thinned_out_evenly() -> None:
    durations = Durations()
    for number in range(10 * KEPT):
        durations.add(float(number))
    assert KEPT / 2 <= len(durations.kept) <= KEPT
    assert durations.percentile(50) == pytest.approx(5 * KEPT, rel=0.02)


def test_on_a_narrow_terminal_why_and_info_fit_and_lose_no_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write(tmp_path / "a.mcap"))
    monkeypatch.chdir(tmp_path)
    said = {}
    for columns in (None, 80):
        monkeypatch.setattr("nodes.recording.bag.why.terminal_width", lambda columns=columns: columns)
        monkeypatch.setattr("nodes.recording.bag.info.terminal_width", lambda columns=columns: columns)
        for command in (["why", path, "--at", "4.5"], ["info", path, "--all"]):
            assert main(command) == 0
            said[command[0], columns] = capsys.readouterr().out
    assert max(len(line) for line in said["why", None].splitlines()) > 100
    assert max(len(line) for line in said["why", 80].splitlines()) <= 80
    assert said["why", 80].split() == said["why", None].split()
    topics = [line for line in said["info", 80].splitlines() if "robot/command" in line]
    assert len(topics) == 1
    assert len(topics[0]) <= 80
    assert topics[0].endswith("JointCommand")


def test_beside_a_topic_as_long_as_the_window_a_text_stays_in_one_piece() -> None:
    said = "arm:planner:7 of a topic with a long name"
    name = "robot/left_arm/wrist/force_torque"
    step = CausalStep(ident="x:y:1", topic=name, text=said, at_s=1.0, age_s=0.1, how="", provenance="")
    found = CausalTrace(command="x:y:1", at_s=1.0, steps=[step], inputs=[], has_journal=True)
    assert any(line.endswith(f"{name}  {said}") for line in describe(found, 60).splitlines())
