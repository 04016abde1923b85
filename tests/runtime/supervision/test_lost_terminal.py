"""A terminal that is closed ends a run as Ctrl-C does, at each moment; one that is halted keeps nobody waiting."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from nodes.mcap.file import BagReader
from nodes.msgs import GuardState
from nodes.scaffold.command import KINDS, write_project
from runtime.clock import SystemClock
from runtime.command_line.attach import StopSignal, attach, hear
from runtime.serialization.codec import decode
from runtime.supervision.registry import FoundRun, find_runs
from tests.support.running import Runs, eventually, is_alive
from tests.support.terminals import CTRL_C, CTRL_Q, CTRL_S, POLYRHYTHM, Terminal

pytestmark = pytest.mark.processes
ROOT = Path(__file__).parents[3]
GONE_S = 5.0
MOVES_S = 20.0  # for a graph that needs a while until somebody asks it to move, or has nobody who does
SERVERS = dict.fromkeys(("OPENAI_BASE_URL", "SPEECH_BASE_URL", "VLM_BASE_URL"), "http://127.0.0.1:9/v1")
"""Nobody answers there: what a launch file needs to start, and no more."""
Open = Callable[..., Terminal]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens terminals with a run, whose states stand in a registry of their own."""
    terminals: list[Terminal] = []

    def open_one(*arguments: str, folder: Path = ROOT, prefix: Sequence[str] = ()) -> Terminal:
        command = [*prefix, *POLYRHYTHM, "run", *arguments]
        state = {"XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONPATH": str(ROOT), **SERVERS}
        terminals.append(Terminal(command, folder, state))
        return terminals[-1]

    with Runs(monkeypatch):
        yield open_one
        for terminal in terminals:
            terminal.end()


def run_of(terminal: Terminal) -> FoundRun | None:
    """What tools see of it; None where it is not registered yet."""
    return next((run for run in find_runs() if run.info.supervisor_pid == terminal.process.pid), None)


def states_of(terminal: Terminal) -> list[str]:
    """The states of its processes."""
    run = run_of(terminal)
    return [state.state for state in run.states().values()] if run else []


def loads(terminal: Terminal) -> None:
    eventually(lambda: bool(states_of(terminal)) or terminal.process.poll() is not None, "a process is started")


def runs(terminal: Terminal) -> None:
    eventually(lambda: set(states_of(terminal)) == {"running"} or terminal.process.poll() is not None, "all run")


def moves(terminal: Terminal) -> None:
    """Until the guard lets somebody move the robot; a graph without one has run for a while, or has ended."""
    runs(terminal)
    run = run_of(terminal)
    if run is None or "guard/state" not in run.info.topics:
        return
    for arrival in hear(run, ["guard/state"], StopSignal(), MOVES_S):
        if arrival is not None and decode(arrival.frames, GuardState).message.mode == "moving":
            return


def stops(terminal: Terminal) -> None:
    moves(terminal)
    terminal.type(CTRL_C)


MOMENTS = {"loading": loads, "before the first motion": runs, "moving": moves, "stopping": stops, "twice": moves}


def close_at(terminal: Terminal, moment: str) -> list[int]:
    """Close the window at that moment; the processes that the run had then."""
    MOMENTS[moment](terminal)
    family = terminal.family()
    terminal.close()
    if moment == "twice" and terminal.process.poll() is None:
        terminal.process.send_signal(signal.SIGHUP)
    return family


def assert_all_gone(family: list[int]) -> None:
    eventually(lambda: not any(map(is_alive, family[1:])), f"the processes {family[1:]} are gone", GONE_S)


def assert_ended_well(terminal: Terminal, family: list[int], recording: Path) -> None:
    code = terminal.process.wait(GONE_S)
    assert_all_gone(family)
    assert code == 0, terminal.output
    if recording.exists():
        assert BagReader(recording).is_complete


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_closed_terminal_ends_a_run_as_ctrl_c_does(opened: Open, moment: str, tmp_path: Path) -> None:
    recording = tmp_path / "run.mcap"
    terminal = opened("hello", "--record", str(recording))
    assert_ended_well(terminal, close_at(terminal, moment), recording)


def test_a_robot_whose_terminal_is_closed_while_it_moves_stands_within_its_time(opened: Open, tmp_path: Path) -> None:
    write_project(tmp_path / "waver", "waver", "robot")
    recording = tmp_path / "run.mcap"
    terminal = opened("waver.toml", "--record", str(recording), folder=tmp_path / "waver")
    assert_ended_well(terminal, close_at(terminal, "moving"), recording)
    assert sum(message.envelope.topic == "robot/command" for message in BagReader(recording)) > 1


@pytest.mark.long
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("launch", sorted(file.stem for file in (ROOT / "launch").glob("*.toml")))
def test_a_closed_terminal_ends_each_shipped_launch_file(
    opened: Open, launch: str, moment: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    terminal = opened(launch, "--out", str(out))
    family = close_at(terminal, moment)
    terminal.process.wait(GONE_S)
    assert_all_gone(family)
    for recording in out.glob("*.mcap"):
        assert BagReader(recording).is_complete


@pytest.mark.long
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_closed_terminal_ends_each_kind_of_scaffold(opened: Open, kind: str, moment: str, tmp_path: Path) -> None:
    write_project(tmp_path / "waver", "waver", kind)
    recording = tmp_path / "run.mcap"
    terminal = opened("waver.toml", "--record", str(recording), folder=tmp_path / "waver")
    family = close_at(terminal, moment)
    terminal.process.wait(GONE_S)
    assert_all_gone(family)
    if recording.exists():
        assert BagReader(recording).is_complete


@pytest.mark.parametrize("prefix", [("nohup",), ("setsid", "--wait")])
def test_a_run_that_was_started_without_a_terminal_goes_on(opened: Open, prefix: Sequence[str], tmp_path: Path) -> None:
    terminal = opened(str(ROOT / "launch" / "hello.toml"), prefix=prefix, folder=tmp_path)
    eventually(lambda: bool(find_runs()), "the run is there")
    run = attach(None)
    eventually(lambda: {state.state for state in run.states().values()} == {"running"}, "all run")
    terminal.close()
    beats = hear(run, ["beat"], StopSignal(), for_s=20.0)
    start_ns = SystemClock().now_ns()
    heard = next(beat for beat in beats if beat is not None and beat.envelope.published_ns > start_ns + 1_500_000_000)
    assert run.is_alive, heard
    os.kill(run.info.supervisor_pid, signal.SIGINT)
    eventually(lambda: not run.is_alive, "Ctrl-C ends it all the same", GONE_S)


def test_a_halted_terminal_does_not_keep_a_run_from_ending(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "loud.toml").write_text('[nodes.loud]\nuse = "tests.support.ending_nodes:Loud"\n')
    terminal = opened("loud.toml", folder=tmp_path)
    terminal.says("loud: 200 ")
    terminal.type(CTRL_S)
    family = terminal.family()
    eventually(lambda: states_of(terminal) == ["running"], "it runs")
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.process.wait(GONE_S) == 0
    assert_all_gone(family)
    terminal.type(CTRL_Q)


def test_two_signals_at_once_are_one_request(opened: Open, tmp_path: Path) -> None:
    recording = tmp_path / "run.mcap"
    terminal = opened("hello", "--record", str(recording))
    terminal.says("heard beat")
    family = terminal.family()
    terminal.process.send_signal(signal.SIGINT)
    terminal.process.send_signal(signal.SIGTERM)
    assert_ended_well(terminal, family, recording)


def test_ctrl_c_gives_the_same_exit_code_at_each_moment(opened: Open) -> None:
    codes = []
    for wait in (loads, runs, stops):
        terminal = opened("hello")
        wait(terminal)
        terminal.type(CTRL_C)
        codes.append(terminal.process.wait(GONE_S))
    assert codes == [0, 0, 0]
