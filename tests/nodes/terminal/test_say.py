"""A person at any terminal speaks to a running graph and reads what the robot says to that."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodes.terminal.say import main
from tests.support.running import Runs
from tests.support.sentences import sentence

PARROT = '[nodes.parrot]\nuse = "tests.nodes.terminal.parrot:Parrot"\n'


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    with Runs(monkeypatch) as started:
        yield started


@pytest.fixture
def talking(runs: Runs, tmp_path: Path) -> None:
    file = tmp_path / "parrot.toml"
    file.write_text(PARROT)
    runs.start(file)


@pytest.mark.processes
@pytest.mark.usefixtures("talking")
def test_the_robot_hears_the_words_and_its_answer_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["Put", "the cup away", "--by", "Ann"]) == 0
    assert capsys.readouterr().out == "robot: Ann says: Put the cup away\n"
    assert main(["Stop!", "--by", "Ann", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "said": "Stop!", "by": "Ann", "heard_by": ["parrot"],
        "answers": [{"who": "robot", "text": "Ann says: Stop!"}],
    }  # fmt: skip
    assert main(["hello", "--by", "B\x1b[2Jo"]) == 0
    assert capsys.readouterr().out == "robot: B\\x1b[2Jo says: hello\n", "to be read, and not obeyed by the terminal"
    monkeypatch.setattr("sys.stdin", io.StringIO("hello\nare you there?\n\nnever said\n"))
    assert main(["--by", "Bo"]) == 0
    assert capsys.readouterr().out.splitlines() == ["robot: Bo says: hello", "robot: Bo says: are you there?"]


@pytest.mark.processes
@pytest.mark.usefixtures("talking")
def test_words_that_cannot_be_said_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ("", "a\x1b[2Jb", "x" * 3000):
        assert main([words]) == 2
        assert sentence("terminal.one_line_expected") in capsys.readouterr().err


@pytest.mark.processes
def test_a_graph_in_which_nobody_listens_says_so(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hello"]) == 1
    assert "no graph runs" in capsys.readouterr().err
    file = tmp_path / "hello.toml"
    file.write_text('[nodes.talker]\nuse = "nodes.hello:Talker"\n[nodes.listener]\nuse = "nodes.hello:Listener"\n')
    runs.start(file)
    assert main(["hello"]) == 2
    assert sentence("terminal.nobody_listens") in capsys.readouterr().err
