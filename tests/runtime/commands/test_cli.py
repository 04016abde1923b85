"""The `polyrhythm` command itself: an overview that loads nothing, and mistakes in words."""

from __future__ import annotations

import importlib.metadata
import os
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import IO

import pytest

import runtime
from runtime.cli import OWN, main
from runtime.commands import GROUP
from runtime.commands.run import what_takes_time
from tests.support.sentences import sentence

OTHERS = [entry.name for entry in entry_points(group=GROUP)]


def test_the_overview_says_of_every_command_what_it_does_within_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in [*OWN, *OTHERS]:
        (line,) = [line for line in lines if line.startswith(f"  {name} ")]
        assert len(line.split()) > 2, line
    assert max(map(len, lines)) <= 80


def test_without_a_command_it_is_asked_wrongly_and_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "polyrhythm run laptop" in capsys.readouterr().out


def test_a_slip_of_the_finger_is_told_what_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rnu"]) == 2
    assert "there is no command 'rnu'; did you mean run? known: " in capsys.readouterr().err


@pytest.mark.processes
def test_the_overview_loads_no_command() -> None:
    code = "import sys; from runtime.cli import main; main(['--help']); print(*sorted(sys.modules), file=sys.stderr)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.split()
    assert not {"zmq", "numpy", "mcap", "rich", "matplotlib"} & set(loaded)
    assert {name for name in loaded if name.startswith("runtime.commands.")} <= {"runtime.command_line.arguments"}


def written(argv: list[str], unbuffered: str, output: IO[bytes]) -> tuple[int, bytes]:
    """The exit code of a command whose standard output is that file, and what it says on standard error."""
    ended = subprocess.run(
        [sys.executable, "-m", "runtime", *argv],
        stdout=output,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        timeout=120,
        check=False,
    )
    return ended.returncode, ended.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("argv", [["--help"], ["check", "--help"], ["check", "hello"]])
def test_a_reader_that_has_gone_is_no_failure(argv: list[str], unbuffered: str) -> None:
    read_fd, write_fd = os.pipe()
    os.close(read_fd)
    with os.fdopen(write_fd, "wb") as nobody:
        assert written(argv, unbuffered, nobody) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is always full is Linux's")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_told_in_a_sentence(unbuffered: str) -> None:
    with open("/dev/full", "wb") as full:
        code, errors = written(["check", "hello"], unbuffered, full)
    assert (code, errors) == (1, b"polyrhythm: No space left on device; make room and try again\n")


POLYRHYTHM = [sys.executable, "-m", "runtime"]


def test_a_terminal_without_our_letters_gets_other_ones(tmp_path: Path) -> None:
    (tmp_path / "é.toml").write_text('nodes.talker.use = "nodes.hello:Talker"\n')
    latin = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(__file__).parents[3])}
    ended = subprocess.run(
        [*POLYRHYTHM, "run", "é.toml", "--virtual", "--for", "1"], cwd=tmp_path, env=latin, capture_output=True,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout.count(b"? in virtual time")) == (0, 1), ended.stderr


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_whoever_closed_its_streams_is_served(closed: str) -> None:
    line = f"{shlex.join(POLYRHYTHM)} run hello --for 0.1 {closed}"
    ended = subprocess.run(["sh", "-c", line], cwd=Path(__file__).parents[3], capture_output=True)
    assert (ended.returncode, b"Traceback" in ended.stderr) == (0, False), ended.stderr


def test_ctrl_c_while_the_command_is_looked_for_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: object, **__: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.metadata, "entry_points", pressed)
    assert (main(["report"]), main(["view"])) == (130, 0)


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    line = f"rmdir {tmp_path}/gone && {shlex.join(POLYRHYTHM)} check hello"
    (tmp_path / "gone").mkdir()
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    ended = subprocess.run(["sh", "-c", line], cwd=tmp_path / "gone", env=env, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (
        2, f"polyrhythm: {sentence('runtime.folder_is_gone')}",
    )  # fmt: skip


def test_a_report_that_takes_a_while_is_announced(tmp_path: Path) -> None:
    recording = tmp_path / "run.mcap"
    recording.write_bytes(b"")
    assert what_takes_time(recording) == ""
    os.truncate(recording, 150_000_000)
    assert what_takes_time(recording) == sentence("runtime.report_takes_a_while", mb=150, recording=recording)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"polyrhythm {runtime.__version__}\n"
    assert runtime.__version__ == importlib.metadata.version("polyrhythm")


def test_a_folder_that_cannot_be_made_is_told_and_the_run_goes_on_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "runs").write_text("a file in the place of the folder")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    asked = ["run", "hello", "--virtual", "--for", "1", "--add", "recorder=nodes.recording.recorder:Recorder"]
    assert main(asked) == 0
    assert "runs/" in capsys.readouterr().err
    assert [file.stat().st_size > 0 for file in tmp_path.glob("polyrhythm-*/run.mcap")] == [True]
    assert main([*asked, "--out", "runs/mine"]) == 2
