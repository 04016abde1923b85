"""What was called otherwise in the version before is told with its new name, which there is."""

from __future__ import annotations

import importlib
import importlib.util
from itertools import accumulate
from pathlib import Path

import pytest

from nodes.robot.robot_from_launch import load_limits
from runtime.commands.companions import check_companions
from runtime.errors import LaunchFileError, ParameterError, UserError
from runtime.launch.file import load
from runtime.launch.tables.nodes_table import load_name
from runtime.renamed import renamed

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("old", renamed("names"))
def test_an_old_name_is_told_with_the_new_one_and_that_loads(old: str) -> None:
    with pytest.raises(UserError) as told:
        load_name(old)
    assert str(told.value) == f"{old!r} is now {renamed('names')[old]!r}"
    load_name(renamed("names")[old])


@pytest.mark.parametrize("old", renamed("modules"))
def test_the_import_of_an_old_module_is_told_the_new_one_which_there_is(old: str) -> None:
    new = renamed("modules")[old]
    asked = next(
        one for one in accumulate(old.split("."), "{}.{}".format) if one in renamed("modules")
    )  # a parent first
    with pytest.raises(ModuleNotFoundError, match=f"^module '{asked}' is now '{renamed('modules')[asked]}'$"):
        importlib.import_module(old)
    assert importlib.util.find_spec(new) is not None
    with pytest.raises(UserError, match="is now"):
        load_name(f"{old}:Something")


@pytest.mark.parametrize("old", renamed("exports"))
def test_what_the_runtime_exported_before_is_told_where_it_is_imported(old: str) -> None:
    with pytest.raises(ImportError, match=f"^'{old}' of 'runtime' is now '{renamed('exports')[old]}'$"):
        exec(f"from runtime import {old}")
    load_name(renamed("exports")[old])


def test_a_module_that_never_was_is_simply_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'nodes\.never'"):
        importlib.import_module("nodes.never")


def test_a_launch_file_of_the_version_before_says_what_to_write(tmp_path: Path) -> None:
    file = tmp_path / "old.toml"
    file.write_text('[nodes.reflex]\nuse = "nodes.reflex:Reflex"\n')
    with pytest.raises(LaunchFileError, match=r"\[nodes.reflex\] 'nodes.reflex:Reflex' is now 'nodes.interrupts"):
        load(file)
    file.write_text('[run]\nview = "nodes.terminal:TerminalView"\n[nodes.t]\nuse = "nodes.hello:Talker"\n')
    with pytest.raises(LaunchFileError, match=r"\[run\] view: 'nodes.terminal:TerminalView' is now 'nodes.terminal"):
        check_companions(load(file))
    with pytest.raises(ParameterError, match=r"'nodes.stretch:STRETCH_3' is now 'nodes.stretch.limits:STRETCH_3'"):
        load_limits("nodes.stretch:STRETCH_3")


def test_nothing_that_is_shipped_uses_an_old_name() -> None:
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "launch").rglob("*.toml")]
    assert len(files) > 20
    assert [(file.name, old) for file in files for old in renamed("names") if old in file.read_text()] == []
