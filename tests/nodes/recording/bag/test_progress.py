"""Who waits for a command at a terminal sees how far it is; a pipe and what is asked for in JSON see nothing."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from nodes.mcap.file import BagWriter
from nodes.msgs import Utterance
from nodes.recording.bag import progress
from nodes.recording.bag.command import main
from runtime.clock import to_ns
from runtime.message import Envelope, Stamped

NUMBER = 200


class Terminal(io.StringIO):
    """Standard error that somebody looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def run(tmp_path: Path) -> Path:
    writer = BagWriter(tmp_path / "run.mcap", {"clock": "virtual"})
    for number in range(1, NUMBER + 1):
        said = Utterance(speaker="Ann", text="hello")
        writer.write(Stamped(said, Envelope("heard", "ann", number, to_ns(number / 10))))
    writer.close()
    return writer.path


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    shown = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=shown))  # sys.stderr itself is pytest's
    monkeypatch.setattr(progress, "SOON_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return shown


def test_a_person_at_a_terminal_sees_how_far_an_export_is(run: Path, tmp_path: Path, terminal: Terminal) -> None:
    assert main(["export", str(run), "--to", "jsonl", "--out", str(tmp_path / "run.jsonl")]) == 0
    assert "writing" in terminal.getvalue()
    assert f"/{NUMBER}" in terminal.getvalue()


def test_two_recordings_gone_through_at_once_have_one_bar(run: Path, terminal: Terminal) -> None:
    assert main(["diff", str(run), str(run)]) == 0
    assert "comparing" in terminal.getvalue()


def test_what_is_asked_for_in_json_shows_no_progress(
    run: Path, terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", str(run), "--json"]) == 0
    assert terminal.getvalue() == ""
    assert json.loads(capsys.readouterr().out)["messages"] == NUMBER


def test_a_pipe_shows_no_progress(
    run: Path, tmp_path: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "isatty", lambda: False)
    assert main(["export", str(run), "--to", "jsonl", "--out", str(tmp_path / "run.jsonl")]) == 0
    assert terminal.getvalue() == ""


def test_what_is_quick_shows_no_progress(
    run: Path, tmp_path: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SOON_S", 3600.0)
    assert main(["export", str(run), "--to", "jsonl", "--out", str(tmp_path / "run.jsonl")]) == 0
    assert terminal.getvalue() == ""
