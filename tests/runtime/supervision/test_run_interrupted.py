"""Ctrl-C in virtual time ends `polyrhythm run` at once, and says what became of the recording."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from runtime.cli import main
from tests.support.running import PATIENCE_S
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


@pytest.mark.processes
@pytest.mark.parametrize(("arguments", "code"), [(("run", "hello"), 0), (("run", "hello", "--virtual"), 130)])
@pytest.mark.parametrize(
    "module", ["runtime.operating_system.telling", "runtime.errors", "_datetime", "runtime.launch.graph"]
)
def test_ctrl_c_gives_its_code_also_while_the_command_is_loaded(
    arguments: tuple[str, ...], code: int, module: str
) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "runtime", *arguments]
    loading = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert loading.stderr is not None
    bound = threading.Timer(PATIENCE_S, loading.kill)
    bound.start()
    with loading.stderr as errors:
        for line in errors:
            if line.rstrip().endswith(f" {module}"):
                os.kill(loading.pid, signal.SIGINT)
                break
        told = errors.read()
    bound.cancel()
    assert loading.wait(PATIENCE_S) == code, told
    assert "Traceback" not in told
