"""Ctrl-C in virtual time ends `polyrhythm run` at once, and says what became of the recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.cli import main
from tests.support.sentences import sentence


@pytest.mark.parametrize("is_recorded", [True, False])
def test_who_interrupts_a_virtual_run_is_told_where_its_recording_is(
    is_recorded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(launch: object, recording: Path, **_: object) -> None:
        if is_recorded:
            recording.touch()
        raise KeyboardInterrupt

    monkeypatch.setattr("runtime.commands.run.run_virtual", interrupted)
    path = tmp_path / "run.mcap"
    assert main(["run", "hello", "--virtual", "--record", str(path)]) == 130
    told = sentence("runtime.recorded_until_then", recording=path)
    assert (told in capsys.readouterr().err) is is_recorded
