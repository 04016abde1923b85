"""A handler that reads several inputs of one moment is replayed bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.cli import main
from tests.support.sentences import sentence

GRAPH = """
[nodes.camera]
use = "tests.runtime.test_alignment:Camera"
[nodes.joints]
use = "tests.runtime.test_alignment:Joints"
[nodes.fusion]
use = "tests.runtime.test_alignment:Fusion"
[nodes.recorder]
use = "nodes.recording.recorder:Recorder"
"""


def test_what_was_aligned_is_aligned_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, recording = tmp_path / "fusion.toml", tmp_path / "run.mcap"
    file.write_text(GRAPH)
    assert main(["run", str(file), "--virtual", "--for", "2", "--record", str(recording), "--out", str(tmp_path)]) == 0
    assert main(["replay", str(recording), "--node", "fusion"]) == 0
    assert sentence("recording.bit_for_bit") in capsys.readouterr().out
