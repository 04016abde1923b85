"""A recorder splits its file, keeps a ring, leaves a full disk in order, and tells what a viewer and an heir need."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from nodes.mcap.file import BagReader
from nodes.mcap.parts import parts_of
from nodes.msgs import Image, RecorderState, RobotState, Utterance
from nodes.recording import recorder as recorder_module
from nodes.recording.bag.command import main as bag_main
from nodes.recording.foxglove.schemas import LOG_NAME, TRANSFORMS_NAME
from nodes.recording.recorder import Recorder, SaveRecording
from nodes.recording.ring_buffer import RingBuffer, last_written, model_files
from nodes.report.run import read_run
from runtime.clock import Clock, SystemClock, to_ns, to_s
from runtime.coordination.health import Health, PortHealth
from runtime.errors import UserError
from runtime.journal.calls import Calls, LogLine
from runtime.message import Envelope, Stamped
from runtime.run_facts import RunFacts
from tests.nodes.recording.test_recorder import said, stamped, started, what_is_told
from tests.support.sentences import pattern, sentence


class Now:
    """A clock that stands where a test puts it."""

    is_virtual = True

    def __init__(self) -> None:
        self.at_s = 0.0

    def now_ns(self) -> int:
        return to_ns(self.at_s)

    def since_s(self, stamp_ns: int) -> float:
        return to_s(self.now_ns() - stamp_ns)


def on_clock(folder: Path, clock: Now | None = None, **parameters: object) -> tuple[Recorder, Now]:
    recorder = Recorder(**parameters)  # type: ignore[arg-type]  # parameters by name, as from a launch file
    clock = clock or Now()
    recorder.clock = cast(Clock, clock)
    recorder.run_info = RunFacts.of({"folder": str(folder), "seed": 1})
    recorder.on_start()
    return recorder, clock


def test_a_recording_goes_on_in_another_file_after_so_long(tmp_path: Path) -> None:
    recorder, clock = on_clock(tmp_path, split_s=10.0)
    for second in range(1, 35):
        clock.at_s = second
        recorder.on_any(said(second))
        recorder.flush()
    recorder.on_stop()
    parts = parts_of(tmp_path / "run.mcap")
    assert [len(list(BagReader(part))) for part in parts] == [10, 10, 10, 4]
    whole = read_run(tmp_path / "run.mcap")
    assert whole.is_complete
    assert len(whole.stamps["words"]) == 34


def test_where_no_other_file_can_be_opened_the_recording_goes_on_in_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder, clock = on_clock(tmp_path, split_s=1.0)
    (tmp_path / "run-2.mcap").symlink_to(tmp_path / "gone" / "run-2.mcap")
    for second in range(1, 6):
        clock.at_s = second
        recorder.on_any(said(second))
        recorder.flush()
    recorder.on_stop()
    told = [record.message for record in caplog.records if "goes on in one file" in record.message]
    assert len(told) == 1
    reader = BagReader(tmp_path / "run.mcap")
    assert len(list(reader)) == 5
    assert reader.is_complete


def test_a_recorder_started_again_after_a_split_deletes_nothing(tmp_path: Path) -> None:
    recorder, clock = on_clock(tmp_path, split_s=1.0)
    recorder.on_any(said(1))
    clock.at_s = 2.0
    recorder.flush()
    recorder.on_any(said(2))
    recorder.flush()
    again, _ = on_clock(tmp_path, split_s=1.0)
    again.on_any(said(3))
    again.on_stop()
    assert recorder.bag is not None
    recorder.bag.abandon()  # it died
    assert len(read_run(tmp_path / "run.mcap").stamps["words"]) == 3


def test_a_ring_writes_the_last_seconds_when_asked(tmp_path: Path) -> None:
    recorder, clock = on_clock(tmp_path, ring_s=5.0)
    for second in range(1, 21):
        clock.at_s = second
        recorder.on_any(said(second))
    assert not (tmp_path / "run.mcap").exists()
    recorder.save_ring(SaveRecording(reason="it fell"))
    recorder.on_stop()
    reader = BagReader(tmp_path / "run.mcap")
    assert [message.envelope.seq for message in reader] == list(range(15, 21))
    assert reader.metadata["end"]["reason"] == "it fell"


def test_a_ring_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodes.recording.ring_buffer.RING_BYTES", 3 * 8600)
    ring = RingBuffer(1000.0)
    for number in range(10):
        ring.add(stamped(Image(camera="c", captured_ns=1, rgb=np.zeros((50, 50, 3), np.uint8)), "i", number), number)
    assert [one.envelope.seq for one in ring.messages] == [7, 8, 9]
    assert ring.is_cut


def test_a_ring_counts_the_bytes_of_any_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodes.recording.ring_buffer.RING_BYTES", 50_000)
    ring = RingBuffer(1000.0)
    for number in range(1, 11):
        ring.add(stamped(Utterance(speaker="robot", text="x" * 20_000), "words", number), number)
    assert [one.envelope.seq for one in ring.messages] == [9, 10]


def test_a_ring_that_cannot_be_saved_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, clock = on_clock(tmp_path, ring_s=5.0)
    for second in range(1, 4):
        clock.at_s = second
        recorder.on_any(said(second))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("nodes.mcap.file.BagWriter.write", full)
        recorder.save_ring(SaveRecording(reason="it fell"))
    assert not list(tmp_path.glob("*.mcap"))
    recorder.save_ring(SaveRecording(reason="again"))
    reader = BagReader(tmp_path / "run.mcap")
    assert [message.envelope.seq for message in reader] == [1, 2, 3]
    assert reader.metadata["end"]["reason"] == "again"
    recorder.on_stop()


def test_a_disk_that_fills_up_ends_the_recording_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = started(tmp_path)
    told = what_is_told(recorder)
    recorder.on_any(said(1))
    monkeypatch.setattr(recorder_module, "free_space", lambda path: (500.0, 0.05))
    recorder.flush()
    recorder.flush()
    assert caplog.text.count("only 5.0 % of the disk is free") == 1
    monkeypatch.setattr(recorder_module, "free_space", lambda path: (20.0, 0.001))
    recorder.flush()
    recorder.on_any(said(2))
    recorder.flush()
    recorder.on_stop()
    assert caplog.text.count(sentence("recording.goes_on_without")) == 1
    reader = BagReader(tmp_path / "run.mcap")
    assert len(list(reader)) == 1
    assert reader.is_complete
    assert reader.metadata["end"]["ended_by"] == "disk full"
    assert told[-1] == RecorderState(mode="stopped", file="run.mcap", why="the disk is full")


def test_what_nodes_lost_is_in_the_ledger_at_the_end(tmp_path: Path) -> None:
    recorder = started(tmp_path)
    port = PortHealth(topic="head/image", received=5, delivered=3, waiting=0, dropped={"overwritten": 2})
    recorder.on_any(
        stamped(
            Health(node="vlm", pid=1, timers=(), ports=(port,), sent={}, errors=0, cpu_s=0.0, rss_mb=0.0),
            "health/vlm",
            source="vlm",
        )
    )
    recorder.on_stop()
    assert BagReader(tmp_path / "run.mcap").metadata["end"]["ledger"] == '{"vlm":{"head/image":{"overwritten":2}}}'


def test_models_are_known_by_name_and_hash(tmp_path: Path) -> None:
    model = tmp_path / "small.onnx"
    model.write_bytes(b"weights")
    found = model_files({"policy": {"model": str(model), "rate": 3}, "vlm": {"model": "gone.onnx"}})
    assert found == {"policy.model": {"path": str(model), "sha256": hashlib.sha256(b"weights").hexdigest()}}


def test_transforms_and_logs_stand_in_foxgloves_schemas(tmp_path: Path) -> None:
    recorder = started(tmp_path)
    zeros = (0.0,) * 8
    state = RobotState(
        read_ns=to_ns(1), position=zeros, velocity=zeros, effort=zeros, base_x_m=1.0, base_y_m=2.0,
        base_heading_rad=np.pi, base_v_mps=0.0, base_w_radps=0.0,
    )  # fmt: skip
    recorder.on_any(stamped(state, "robot/state"))
    recorder.on_any(
        stamped(Calls(node="vlm", calls=(), logs=(LogLine(at_ns=5, level=30, text="dark"),)), "calls/vlm", source="vlm")
    )
    recorder.on_stop()
    by_schema = {message.schema: message.document for message in BagReader(tmp_path / "run.mcap")}
    base, *links = by_schema[TRANSFORMS_NAME]["transforms"]
    assert (base["parent_frame_id"], base["child_frame_id"]) == ("odometry", "base")
    assert {"lift", "wrist_roll", "finger_left", "head", "wrist"} <= {link["child_frame_id"] for link in links}
    assert base["translation"] == {"x": 1.0, "y": 2.0, "z": 0.0}
    assert base["rotation"]["z"] == pytest.approx(1.0)
    line = by_schema[LOG_NAME]
    assert (line["level"], line["message"], line["name"]) == (3, "dark", "vlm")


def test_run_can_be_told_to_record_what_its_launch_file_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    from runtime.commands.run import main

    launch = tmp_path / "hello.toml"
    launch.write_text('[nodes.talker]\nuse = "nodes.hello:Talker"\n[nodes.listener]\nuse = "nodes.hello:Listener"\n')
    for name in ("a", "b"):
        main([str(launch), "--virtual", "--seed", "7", "--for", "2", "--record", str(tmp_path / f"{name}.mcap")])
    from nodes.recording.bag.command import main as bag

    assert bag(["diff", str(tmp_path / "a.mcap"), str(tmp_path / "b.mcap")]) == 0
    run = BagReader(tmp_path / "a.mcap").metadata["run"]
    assert run["seed"] == "7"
    for folder in ("", str(tmp_path)):
        with pytest.raises(UserError, match=pattern("recording.folder_for_a_file")):
            main([str(launch), "--virtual", "--for", "2", "--record", folder])
    with pytest.raises(UserError, match="no such topic"):
        main([str(launch), "--virtual", "--for", "2", "--record", str(tmp_path / "c.mcap"), "--pause-on", "nothing"])
    with pytest.raises(UserError, match=pattern("recording.is_there_already")):
        main([str(launch), "--virtual", "--for", "2", "--record", str(tmp_path / "a.mcap")])
    assert len(list(BagReader(tmp_path / "a.mcap"))) > 0, "nothing is written over"
    capsys.readouterr()
    assert main([str(launch), "--virtual", "--for", "2", "--record", str(tmp_path / "d.mcap"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["recording"] == str(tmp_path / "d.mcap")
    assert told["trace"] == BagReader(tmp_path / "d.mcap").metadata["end"]["trace"]
    assert run["machine"]


def test_a_recording_of_virtual_time_does_not_begin_in_1970(tmp_path: Path) -> None:
    from runtime.commands.run import main

    recording = tmp_path / "run.mcap"
    assert main(["hello", "--virtual", "--for", "2", "--out", str(tmp_path), "--record", str(recording)]) == 0
    years = {datetime.fromtimestamp(message.log_time_ns / 1e9, UTC).year for message in BagReader(recording)}
    assert years == {2020}


def test_beside_a_recorder_of_trials_the_whole_run_is_recorded(tmp_path: Path) -> None:
    from runtime.commands.run import main

    launch, whole = tmp_path / "study.toml", tmp_path / "whole.mcap"
    launch.write_text(
        '[nodes.talker]\nuse = "nodes.hello:Talker"\n'
        '[nodes.trials]\nuse = "nodes.recording.trial_recorder:TrialRecorder"\n'
    )
    assert main([str(launch), "--virtual", "--for", "2", "--out", str(tmp_path / "o"), "--record", str(whole)]) == 0
    assert "beat" in {message.topic for message in BagReader(whole)}


def one(topic: str, number: int, at_s: float) -> Stamped[Utterance]:
    return Stamped(Utterance(speaker="a", text="b"), Envelope(topic, "node", number, to_ns(at_s)))


def test_a_recorder_started_again_counts_what_was_said_while_it_was_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, clock = on_clock(tmp_path)
    for number in (1, 2, 4):  # 3 was missed, and with the dead recorder goes its own account
        first.on_any(one("words", number, float(number)))
    first.on_any(one("heard", 30, 4.0))
    first.on_any(one("told", 5, 4.0))
    first.flush()
    assert first.bag is not None
    first.bag.abandon()  # it was killed
    again, _ = on_clock(tmp_path, clock)
    for number in (4, 9, 11):  # 4 is sent again: nobody has acknowledged it
        again.on_any(one("words", number, float(number)))
    again.on_any(one("heard", 3, 11.0))  # its node started again, too
    again.on_any(one("told", 6, 11.0))
    again.on_any(one("new", 8, 11.0))  # perhaps nothing was missed of it
    again.on_stop()
    end = BagReader(tmp_path / "run-2.mcap").metadata["end"]
    assert json.loads(end["missed"]) == {"heard": 2, "words": 5}
    assert json.loads(end["missed_away"]) == {"heard": 2, "words": 4}
    assert bag_main(["info", str(tmp_path / "run.mcap")]) == 0
    told = capsys.readouterr().out
    assert f"{sentence('recording.missed_some', missed='2 of heard, 5 of words')} " in told


def test_the_last_number_of_a_rare_topic_is_found_behind_those_of_a_busy_one(tmp_path: Path) -> None:
    recorder, _ = on_clock(tmp_path)
    recorder.on_any(one("rare", 7, 0.5))
    for number in range(1, 61):
        recorder.on_any(one("busy", number, float(number)))
        recorder.flush()
    path = tmp_path / "run.mcap"
    assert last_written([path], SystemClock()) == {
        ("rare", "node"): (7, to_ns(0.5)),
        ("busy", "node"): (60, to_ns(60.0)),
    }
    seen = [message.envelope.seq for message in BagReader(path).newest_first(lambda: True)]
    assert seen == [60, 59, 58, 57, 56, 55, 54, 53, 1, 7], "the chunks between are left unread"
    recorder.on_stop()
