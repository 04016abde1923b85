"""A person at any terminal speaks to a running graph and reads what the robot says to that."""

from __future__ import annotations

import io
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodes.guard.command import main as guard_main
from nodes.terminal.say import main
from runtime.operating_system import machine
from runtime.supervision.registry import find_runs
from tests.support.running import Runs
from tests.support.sentences import sentence

PARROT = '[run]\nfrozen_s = 60.0\n[nodes.parrot]\nuse = "tests.nodes.terminal.parrot:Parrot"\n'


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
    assert told.pop("pid") == find_runs()[0].info.supervisor_pid
    assert told == {
        "said": "Stop!", "by": "Ann", "run": "parrot", "heard_by": ["parrot"],
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


@pytest.mark.processes
def test_a_stop_goes_to_every_run_and_other_words_to_the_one_that_is_named(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    for name in ("kitchen_one", "kitchen_two"):
        file = tmp_path / f"{name}.toml"
        file.write_text(PARROT)
        started.append(runs.start(file))
    os.kill(next(iter(started[0].states().values())).pid, signal.SIGSTOP)
    try:
        assert main(["Stop!", "--by", "Ann"]) == 1, "one of them cannot hear it"
    finally:
        os.kill(next(iter(started[0].states().values())).pid, signal.SIGCONT)
    told = capsys.readouterr()
    assert told.out == f"{started[1].title}: robot: Ann says: Stop!\n", "which does not wait for the other"
    assert started[0].title in told.err
    assert sentence("terminal.said_to", run=started[1].title, by="Ann") in told.err
    assert main(["Stop!", "--by", "Ann", "--json"]) == 0
    told_data = json.loads(capsys.readouterr().out)
    assert {one["run"]: one["heard_by"] for one in told_data["runs"]} == {
        "kitchen_one": ["parrot"], "kitchen_two": ["parrot"],
    }  # fmt: skip
    assert main(["Bring me tea"]) == 2
    assert sentence("runtime.choose_a_run") in capsys.readouterr().err
    assert main(["Bring me tea", "--run", "kitchen_two", "--by", "Bo"]) == 0
    assert capsys.readouterr().out == "robot: Bo says: Bring me tea\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("hello\nStop!\n"))
    assert main(["--by", "Bo"]) == 2, "only the second line needs no name"
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(
        f"{run.title}: robot: Bo says: Stop!" for run in started
    )
    (started[0].folder / "run.json").write_text('{"of": "another release"}')
    assert main(["Stop!", "--by", "Ann"]) == 1, "one of them cannot be read"
    told = capsys.readouterr()
    assert told.out == "robot: Ann says: Stop!\n"
    assert sentence("terminal.cannot_be_read", folder=started[0].folder) in told.err
    assert guard_main(["runstop"]) == 1, "which goes to every run, too"
    assert sentence("terminal.cannot_be_read", folder=started[0].folder) in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.processes
def test_a_stop_stops_the_robots_of_two_laptop_runs_and_names_both(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    started = [runs.start("laptop"), runs.start("laptop")]
    assert main(["Stop!", "--by", "Ann", "--json"]) == 0
    told = {one["pid"]: one for one in json.loads(capsys.readouterr().out)["runs"]}
    assert sorted(told) == sorted(run.info.supervisor_pid for run in started)
    for run in started:
        assert any(answer["who"] == "guard" for answer in told[run.info.supervisor_pid]["answers"])
        assert guard_main(["state", "--run", str(run.info.supervisor_pid), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["mode"] == "stopped"


@pytest.mark.processes
@pytest.mark.usefixtures("talking")
def test_words_for_a_run_of_another_login_name_it_and_a_stop_need_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "PROCESSES", Path("/nowhere"))
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.2 22")
    assert main(["hello"]) == 2
    assert sentence("terminal.another_login") in capsys.readouterr().err
    assert main(["Stop!", "--by", "Ann"]) == 0
    assert main(["hello", "--by", "Ann", "--run", "parrot"]) == 0
    assert capsys.readouterr().out == "robot: Ann says: Stop!\nrobot: Ann says: hello\n"
