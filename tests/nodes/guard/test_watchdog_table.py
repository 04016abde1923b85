"""The table [watchdog] of a launch file: what is refused, what is noted, and which program it starts."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote

import pytest

from nodes.guard import watchdog
from runtime.errors import UserError
from runtime.launch.file import load
from runtime.launch.tables.more_tables import HasPrograms, Program
from tests.support.guard.driving import DRIVING
from tests.support.sentences import pattern


@pytest.mark.parametrize(
    ("table", "noted"),
    [("runstop = 'true'\nstate = '{python} -c 1'", 0), ("runstop = 'no-such-button --now'\nstate = './none'", 2)],
)
def test_a_command_that_is_not_on_this_machine_is_noted(tmp_path: Path, table: str, noted: int) -> None:
    file = tmp_path / "watched.toml"
    file.write_text(DRIVING + table)
    assert len([note for place, note in load(file).notes() if place == "watchdog"]) == noted


WRONG = (
    (DRIVING + "runstops = 'x'", pattern("runtime.watchdog_key")),
    (DRIVING + "runstop = 'x \"y'", pattern("runtime.watchdog_quotes", command="runstop")),
    (DRIVING + "state = 'x \"y'", pattern("runtime.watchdog_quotes", command="state")),
    ('[nodes.talker]\nuse = "nodes.hello:Talker"\n[watchdog]\n', pattern("runtime.watchdog_alone")),
)


@pytest.mark.parametrize(("text", "wrong"), WRONG)
def test_a_table_that_is_wrong_or_watches_nobody_is_refused(tmp_path: Path, text: str, wrong: str) -> None:
    file = tmp_path / "watched.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=wrong) as refused:
        load(file)
    assert "[watchdog]" in str(refused.value)


def test_the_program_is_given_both_commands_with_this_python_and_the_run_in_their_places(tmp_path: Path) -> None:
    file = tmp_path / "watched.toml"
    file.write_text(DRIVING + "runstop = '{python} press --run {run}'\nstate = 'read {run}'")
    table = load(file).more["watchdog"]
    assert isinstance(table, HasPrograms)
    press = f"--runstop={quote(sys.executable)} press --run 4711"
    told = (str(tmp_path), press, "--state=read 4711")
    assert table.programs(4711, tmp_path) == (Program(Path(watchdog.__file__), told, "guard"),)


def test_a_real_robot_without_a_watchdog_is_noted_and_one_with_it_is_not(tmp_path: Path) -> None:
    told = {
        has: any("[watchdog]" in note for _, note in load(_real(tmp_path, has_watchdog=has)).notes()) for has in (0, 1)
    }
    assert told == {0: True, 1: False}


def _real(place: Path, *, has_watchdog: int) -> Path:
    file = place / f"real{has_watchdog}.toml"
    text = DRIVING.replace("nodes.sim.kinematic:KinematicRobot", "tests.support.robots.real_robot:RealRobot")
    file.write_text(text.replace('arm = "auto", ', "") if has_watchdog else text.replace("[watchdog]", ""))
    return file
