"""A stop that a person says at a terminal is lifted there, too: by plain words of theirs, and by no others."""

from __future__ import annotations

import os
import pty
from pathlib import Path

import pytest

from nodes.guard.command import main as main_of_guard
from nodes.interrupts.reflex import REFUSALS
from nodes.terminal.say import main
from nodes.terminal.typed_lines import TypedLines
from tests.support.guard.guarded_nodes import GUARDED
from tests.support.running import Runs, eventually

pytestmark = pytest.mark.processes


def test_who_stopped_the_robot_at_a_terminal_lets_it_go_on_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(words: str, by: str) -> str:
        assert main([words, "--by", by]) == 0
        return capsys.readouterr().out

    with Runs(monkeypatch) as runs:
        file = tmp_path / "guarded.toml"
        file.write_text(GUARDED.replace('memory = "run"', 'memory = "run", arm = "auto"'))
        run = runs.start(file)
        assert "guard: stopped by Ann: Stop!" in said("Stop!", "Ann")
        assert "guard: stopped by" not in said("Stop!", "Bo"), "it stands already"
        assert REFUSALS["another_person"] in said("Go on", "Ann"), "Bo's stop is Bo's to lift"
        assert "guard:" not in said('He said "go on"', "Bo"), "words about words lift nothing"
        assert "resumed by Bo" in said("All right, go on", "Bo")
        assert "guard: stopped by Cy: Stop!" in said("Stop!", "Cy")
        keys, program = pty.openpty()
        monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp())
        typed = TypedLines(program, str(run.info.supervisor_pid), "Cy")
        os.write(keys, b"go on\n")

        def goes_on() -> bool:
            assert typed.poll() == []
            return main_of_guard(["state"]) == 0 and "stopped" not in capsys.readouterr().out

        eventually(goes_on, "what is typed at the run's own terminal counts as well")
        typed.close()
        answer = said("Go on", "Bo")
        assert not any(refusal in answer for refusal in REFUSALS.values()), "where nothing is stopped, nothing is"
