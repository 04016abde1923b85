"""A shell is told what may stand where its cursor is, and nothing is done for that."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.cli import main

pytestmark = pytest.mark.processes


def offered(line: str, folder: Path) -> set[str]:
    """What is offered at the end of the line, as the shells' own script asks for it."""
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "COMP_TYPE": "9"}
    told = {
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SHELL": "bash",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(folder / "told"),
    }
    path = os.pathsep.join([str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [sys.executable, "-m", "runtime"], env={**os.environ, **asked, **told, "PYTHONPATH": path},
        cwd=folder, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    return {word.strip() for word in (folder / "told").read_text().split("\n")}


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("polyrhythm r", {"run", "record", "replay", "report"}),
        ("polyrhythm run --vir", {"--virtual"}),
        ("polyrhythm run lap", {"laptop"}),
        ("polyrhythm new my_robot --with pl", {"planner"}),
        ("polyrhythm check mi", {"mine.toml"}),
        ("polyrhythm guard es", {"estop"}),
        ("polyrhythm bag in", {"info"}),
        ("polyrhythm bag info --js", {"--json"}),
        ("polyrhythm episodes run --ag", {"--agents"}),
        ("polyrhythm nothing --x", set[str]()),
    ],
)
def test_what_may_follow_is_offered(line: str, wanted: set[str], tmp_path: Path) -> None:
    (tmp_path / "mine.toml").touch()
    assert offered(line, tmp_path) - {""} == wanted


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_reads_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    subprocess.run(["bash", "-n"], input=capsys.readouterr().out, text=True, check=True)


ZSH = """
autoload -U compinit is-at-least && compinit -u -D
eval "$(polyrhythm completion zsh)"
_describe() { print -l -- ${(P)2} }
words=(polyrhythm r); BUFFER="polyrhythm r"; CURSOR=12
$_comps[polyrhythm]
"""
FISH = """
polyrhythm completion fish | source
complete -C "polyrhythm r"
"""


@pytest.mark.parametrize(("shell", "text"), [(["zsh", "-f"], ZSH), (["fish", "--no-config"], FISH)])
def test_other_shells_offer_what_bash_offers(shell: list[str], text: str, tmp_path: Path) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"there is no {shell[0]}")
    root = str(Path(__file__).parents[3])
    command = tmp_path / "polyrhythm"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m runtime "$@"\n')
    command.chmod(0o755)
    (tmp_path / "script").write_text(text)
    found = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    told = subprocess.run(
        [*shell, str(tmp_path / "script")], capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, **found},
    )  # fmt: skip
    assert {"run", "record", "replay", "report"} <= {line.strip().rstrip(":") for line in told.stdout.splitlines()}
