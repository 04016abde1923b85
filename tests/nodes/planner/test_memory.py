"""Claims about `nodes.planner.memory.py`: what was taught outlives the run, is shown and forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.planner.memory import keep, main, remembered
from nodes.planner.scripted import ScriptedPlanner
from runtime.errors import UserError
from tests.support.sentences import pattern, sentence


def test_what_was_taught_is_known_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "memory.json"
    first = ScriptedPlanner(household="kitchen", memory=str(path))
    assert first.mind.habits == {}
    first.mind.habits = {"mug": "shelf"}
    first.tick()
    assert ScriptedPlanner(household="kitchen", memory=str(path)).mind.habits == {"mug": "shelf"}
    assert ScriptedPlanner(household="kitchen").mind.habits == {}, "without a memory nothing outlives the run"


def test_it_is_shown_and_forgotten_kind_by_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "memory.json"
    keep(path, {"mug": "shelf", "apple": "tray"})
    assert main([str(path)]) == 0
    assert capsys.readouterr().out == "apple: tray\nmug: shelf\n"
    assert main([str(path), "--forget", "mug"]) == 0
    assert capsys.readouterr().out == "apple: tray\n"
    assert remembered(path) == {"apple": "tray"}
    assert main([str(path), "--forget-all"]) == 0
    assert capsys.readouterr().out == f"{sentence('kitchen.nothing_remembered')}\n"
    assert ScriptedPlanner(household="kitchen", memory=str(path)).mind.habits == {}


def test_what_it_does_not_know_and_what_is_no_memory_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "memory.json"
    assert main([str(path)]) == 2
    assert sentence("kitchen.no_memory_file") in capsys.readouterr().err
    keep(path, {"mug": "shelf"})
    assert main([str(path), "--forget", "apple"]) == 2
    assert "knows nothing of 'apple'; it knows mug" in capsys.readouterr().err
    path.write_text("[1]", "utf-8")
    with pytest.raises(UserError, match=pattern("kitchen.wrong_memory_file")):
        remembered(path)
