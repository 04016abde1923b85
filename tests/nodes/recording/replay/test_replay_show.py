"""A recording shown in the terminal again tells what was said and logged at the run's own times, and nothing else."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from pathlib import Path

import pytest

from nodes.mcap.file import BagReader, BagWriter
from nodes.msgs import Utterance
from nodes.recording.replay.command import main
from runtime.clock import to_ns
from runtime.commands.run import main as run_main
from runtime.journal.calls import Calls, LogLine
from runtime.message import Envelope, Message, Stamped
from tests.support.sentences import sentence

ZERO_NS = to_ns(70_000.0)  # a machine that is up for most of a day
INFO, WARNING = 20, 30


def write(path: Path, *, launch: str = "", clock: str = "real") -> Path:
    """Three sentences, and log lines that were recorded a second after they were written."""
    writer = BagWriter(path, {"clock": clock})
    writer.attach("launch.toml", "application/toml", launch.encode())

    def put(topic: str, source: str, seq: int, at_s: float, message: Message) -> None:
        writer.write(Stamped(message, Envelope(topic, source, seq, ZERO_NS + to_ns(at_s))))

    for seq in (1, 2, 3):
        put("said", "robot", seq, float(seq - 1), Utterance(speaker="robot", text=f"sentence {seq}"))
    logs = (
        LogLine(at_ns=ZERO_NS + to_ns(0.5), level=INFO, text="half a second"),
        LogLine(at_ns=ZERO_NS + to_ns(1.5), level=WARNING, text="take care"),
    )
    put("calls/vlm", "vlm", 1, 2.4, Calls(node="vlm", calls=(), logs=logs))
    writer.close()
    return path


def shown(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    assert main([str(path), "--speed", "1000", *options]) == 0
    return [re.sub(r" +", " ", line) for line in capsys.readouterr().out.splitlines()]


def test_log_lines_stand_where_they_were_written_and_times_are_those_of_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(write(tmp_path / "run.mcap"), capsys) == [
        "replay of run.mcap, 1000x",
        "[ 0.0 s] robot: “sentence 1”",
        "[ 0.5 s] vlm: half a second",
        "[ 1.0 s] robot: “sentence 2”",
        "[ 1.5 s] vlm: warning: take care",
        "[ 2.0 s] robot: “sentence 3”",
        sentence("recording.recording_ends", seconds=2.4),
    ]


def test_a_run_that_was_shown_without_its_small_talk_is_so_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(write(tmp_path / "run.mcap", launch="[run]\nview = 'nodes.terminal.view:TerminalView'"), capsys)
    assert "[ 1.5 s] vlm: warning: take care" in lines
    assert not any("half a second" in line for line in lines)


def test_a_type_that_a_recording_names_is_not_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = BagWriter(tmp_path / "run.mcap", {"clock": "real"})
    envelope = Envelope("said", "robot", 1, ZERO_NS)
    writer.write_document("said", "Mischief", b"{}", {"_envelope": {}}, envelope, type_name="tests.mischief:Mischief")
    writer.close()
    (tmp_path / "mischief.py").write_text("raise SystemExit(3)")
    assert shown(tmp_path / "run.mcap", capsys)[1:] == [sentence("recording.recording_ends", seconds="0.0")]


def test_a_recording_of_the_version_before_is_shown_although_its_types_lay_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new, old = write(tmp_path / "run.mcap"), BagWriter(tmp_path / "old.mcap", {"clock": "real"})
    for message in BagReader(new):
        name = message.type_name.replace("nodes.msgs.", "runtime.msgs.")  # as an old recording names it
        old.copy(replace(message, type_name=name))
    old.close()
    assert b"runtime.msgs.robot:Utterance" in (tmp_path / "old.mcap").read_bytes()  # of an old recording
    assert shown(tmp_path / "old.mcap", capsys)[1:] == shown(new, capsys)[1:]


def test_a_run_in_virtual_time_is_told_in_virtual_time_and_so_is_its_replay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.mcap"
    monkeypatch.setattr(logging.root, "level", logging.root.level)
    monkeypatch.setattr(logging.root, "handlers", [])  # as in a process of its own
    assert run_main(["hello", "--virtual", "--for", "120", "--record", str(path)]) == 0
    told = [re.sub(r" +", " ", line) for line in capsys.readouterr().out.splitlines()]
    assert "[ 100.0 s] listener: heard beat 241" in told
    assert "[100.0 s] listener: heard beat 241" in shown(path, capsys)
    monkeypatch.setattr(logging.root, "handlers", [])
    assert main([str(path), "--in-place-of", "talker", "--virtual", "--out", str(tmp_path / "again")]) == 0
    assert "[ 100.0 s] listener: heard beat 241" in re.sub(r" +", " ", capsys.readouterr().out)
