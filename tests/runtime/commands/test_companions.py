"""What [run] names beside the nodes is loaded before a run, and a report that fails loses nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runtime.cli import main
from runtime.commands.companions import make_view
from runtime.errors import UserError
from runtime.refusals import CODES
from tests.support.sentences import sentence

TALKER = '[nodes.talker]\nuse = "nodes.hello:Talker"\n'
OWN = """
class Blind:
    def __init__(self, title, *, live): ...

class Sulky(Blind):
    def message(self, stamped): ...
    def process(self, name, pid, state): ...
    def log(self, level, source, text, at_s=None): ...
    def refresh(self, now_ns): ...
    def close(self): ...
    def __init__(self, title, *, live):
        raise OverflowError("no room")

def short(recording):
    return True

def broken(recording, folder, **told):
    return {}["figures"]

def nothing(title, live):
    return None

NAME = "a word"
"""

WRONG = {
    "view = 'own:Blind'": sentence("runtime.is_no_view", view="own:Blind"),
    "view = 'own:Nope'": "'own:Nope'",
    "view = 'nope:View'": "there is no module 'nope'",
    "view = 'nodes.report.command:report_run'": "live=",
    "report = 'own:NAME'": sentence("runtime.is_no_function", name="own:NAME", kind="str"),
    "report = 'own:short'": "'own:short' (own.py:14)",
    "report = 'own:Blind'": "not_kept=",
    "report = 'nodes.terminal.view:TerminalView'": "not_kept=",
    "report = 'own'": "'own' names no class",
    "beside = 'veiw'": "did you mean 'view'?",
    "robot = 'nope:LIMITS'": sentence("runtime.nobody_takes_a_robot", robot="nope:LIMITS"),
}


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write graph.toml beside a module `own`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "own", raising=False)
    Path("own.py").write_text(OWN, encoding="utf-8")

    def written(*lines: str) -> None:
        Path("graph.toml").write_text("\n".join([TALKER, "[run]", *lines]), encoding="utf-8")

    return written


@pytest.mark.parametrize("line", WRONG)
@pytest.mark.parametrize("command", [["check"], ["run", "--virtual", "--for", "1"], ["run", "--for", "1"]])
def test_what_a_run_names_is_refused_before_it_starts(
    write: Any, capsys: pytest.CaptureFixture[str], line: str, command: list[str]
) -> None:
    write(line)
    assert main([*command, "graph.toml"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"polyrhythm: graph.toml: [run] {line.partition(' ')[0]}")
    assert WRONG[line] in said.err
    assert said.err.rpartition(" [")[2].removesuffix("]\n") in CODES
    assert not Path("runs").exists()


def test_doctor_tells_what_a_run_names_and_is_not_there(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    write("report = 'own:short'")
    main(["doctor", "graph.toml"])
    assert "'own:short' (own.py:14)" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "why"), [("own:Sulky", "OverflowError: no room"), ("own:nothing", "NoneType")])
def test_a_view_that_cannot_be_made_is_a_sentence(write: Any, name: str, why: str) -> None:
    write()
    with pytest.raises(UserError, match=why):
        make_view(name, "graph", live=False)


def test_a_report_that_fails_is_named_with_its_line_and_the_recording_is_kept(
    write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    write("report = 'own:broken'")
    assert main(["run", "graph.toml", "--virtual", "--for", "1", "--record", "one.mcap"]) == 1
    said = capsys.readouterr().err
    assert sentence("runtime.report_failed", report="own:broken", why="KeyError: 'figures' (own.py:18)") in said
    assert Path("one.mcap").stat().st_size > 0
