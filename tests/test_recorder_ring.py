"""The last seconds of a real run become a file when somebody asks for them from outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.bag_commands.recording import Recording
from runtime.bag import BagReader
from runtime.commands.pub import pub_main
from tests.running import Runs, eventually

LAUNCH = """
[nodes.talker]
use = "nodes.hello:Talker"
hz = 20

[nodes.recorder]
use = "nodes.recorder:Recorder"
params = {{ ring_s = 1.0, path = "{path}" }}
"""


@pytest.mark.processes
def test_pub_saves_the_last_second_of_a_running_graph(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, saved = tmp_path / "ring.toml", tmp_path / "saved.mcap"
    file.write_text(LAUNCH.format(path=saved))
    with Runs(monkeypatch) as runs:
        runs.start(file)
        assert pub_main(["recorder/save", '{"reason": "it fell"}']) == 0
        assert "to recorder" in capsys.readouterr().out
        eventually(lambda: saved.is_file() and "end" in BagReader(saved).metadata, "the ring is saved")
        recording = Recording(saved)
        assert recording.end["reason"] == "it fell"
        assert recording.is_complete
        stamps = [message.envelope.published_ns for message in recording]
        assert len(stamps) > 0
        assert max(stamps) - min(stamps) < 5_000_000_000  # of messages that were on their way when it began
        assert pub_main(["recorder/save", '{"reason": "again"}']) == 0
        second = tmp_path / "saved-2.mcap"
        eventually(lambda: second.is_file() and "end" in BagReader(second).metadata, "the next one is saved, too")
    assert BagReader(second).metadata["end"]["reason"] == "again"
    assert json.loads(BagReader(second).metadata["end"]["recorder"])["missed"] == 0
