"""The last seconds of a real run become a file when somebody asks for them from outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.mcap.file import BagReader
from nodes.mcap.parts import part_of
from runtime.commands.pub import pub_main
from runtime.errors import RecordingError
from tests.support.running import Runs, eventually

LAUNCH = """
[nodes.talker]
use = "nodes.hello:Talker"
hz = 20

[nodes.recorder]
use = "nodes.recording.recorder:Recorder"
params = {{ ring_s = 1.0, path = "{path}" }}
"""


def is_saved(path: Path) -> bool:
    """Whether the file is there, and closed."""
    try:
        return path.is_file() and "end" in BagReader(path).metadata
    except RecordingError:
        return False  # its head is not written yet


@pytest.mark.processes
def test_pub_saves_the_last_second_of_a_running_graph(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, first = tmp_path / "ring.toml", tmp_path / "saved.mcap"
    file.write_text(LAUNCH.format(path=first))
    saved: list[Path] = []

    def ask() -> bool:
        """Ask for a file, wait for it, and say whether the talker is in it."""
        assert pub_main(["recorder/save", '{"reason": "it fell"}']) == 0
        saved.append(part_of(first, len(saved) + 1))
        eventually(lambda: is_saved(saved[-1]), f"{saved[-1].name} is written")
        return any(message.topic == "beat" for message in BagReader(saved[-1]))

    with Runs(monkeypatch) as runs:
        runs.start(file)
        eventually(ask, "the talker is heard", within_s=60.0)
        assert "to recorder" in capsys.readouterr().out
        eventually(ask, "and again, in a file beside it", within_s=60.0)  # the ring was empty after the first
    reader = BagReader(saved[-1])
    assert len(saved) >= 2
    assert len(list(reader)) > 0
    assert reader.is_complete
    assert reader.metadata["end"]["reason"] == "it fell"
    assert json.loads(reader.metadata["end"]["recorder"])["unwritten"] == 0
