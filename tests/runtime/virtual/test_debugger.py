"""A virtual run can be walked through: from Python callback by callback, at a prompt from pause to pause."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodes.hello import Beat, Listener, Talker
from runtime import Simulation
from runtime.errors import UserError
from runtime.virtual.debugger import HELP, Stepper
from tests.support.sentences import pattern, sentence


@pytest.fixture
def hello() -> Iterator[Simulation]:
    simulation = Simulation(Talker(), Listener())
    yield simulation
    simulation.close()


def walk(simulation: Simulation, *answers: str, pause_on: str = "beat", seconds: float | None = 3) -> list[str]:
    """What is told where these are the answers at the prompt; after them there is nobody to ask."""
    told: list[str] = []
    left = list(answers)
    stepper = Stepper(simulation, [pause_on], ask=lambda _: left.pop(0) if left else None, tell=told.append)
    stepper.run(seconds)
    return told


def test_python_steps_callback_by_callback_and_sees_the_newest_messages(hello: Simulation) -> None:
    assert hello.latest("beat") is None
    while hello.latest("beat") is None:
        assert hello.step()
    assert hello.latest("beat") == Beat(count=1)
    hello.run(until=lambda: hello.latest("beat") == Beat(count=4))
    assert hello.clock.now_ns() == 1_500_000_000
    stamped = hello.latest_stamped("beat")
    assert stamped is not None
    assert (stamped.envelope.source, stamped.envelope.seq) == ("talker", 4)


def test_each_message_on_the_topic_is_a_pause(hello: Simulation) -> None:
    told = walk(hello, "", "continue", "quit")
    assert [line.split() for line in told] == [
        [f"{time:.6f}", "s", "beat", "from", "talker", f"#{count}:", f"Beat(count={count})"]
        for count, time in enumerate((0.0, 0.5, 1.0), start=1)
    ]
    assert hello.clock.now_ns() == 1_000_000_000


def test_the_end_of_the_run_ends_the_walk(hello: Simulation) -> None:
    assert len(walk(hello, *[""] * 20)) == 6
    assert hello.clock.now_ns() == 3_000_000_000


def test_where_nobody_answers_the_state_is_told_and_the_run_ends_there(hello: Simulation) -> None:
    told = walk(hello)
    assert told[-1] == "at 0.000000 s\n  beat    0.000 s old  Beat(count=1)"
    assert len(told) == 2


def test_steps_are_counted_in_messages(hello: Simulation) -> None:
    told = walk(hello, "step 3", "step", "quit", pause_on="health/talker", seconds=10)
    assert told == []  # a simulation without health never pauses there
    simulation = Simulation(Talker(), Listener(), health_hz=1)
    told = walk(simulation, "step 2", "quit", pause_on="health/talker", seconds=10)
    simulation.close()
    assert [line.split()[2] for line in told] == ["health/talker", "beat"]


@pytest.mark.parametrize("answer", ["step x", "step -1", "step 1.5"])
def test_a_step_that_is_no_number_does_not_move_time_and_says_what_can_be_asked(answer: str, hello: Simulation) -> None:
    told = walk(hello, answer, "quit")
    assert told[1] == HELP
    assert len(told) == 2


def test_a_look_does_not_move_time(hello: Simulation) -> None:
    asked = ("latest health/talker", "latest beet", "latest Beat!")
    told = walk(hello, "topics", "latest beat", *asked, "what?", "quit")
    assert told[1] == "at 0.000000 s\n  beat    0.000 s old  Beat(count=1)"
    assert told[2] == told[0]
    assert told[3] == sentence("runtime.nothing_on_topic", topic="health/talker", topics="beat")
    assert "did you mean 'beat'?" in told[4], "a topic of nobody is no topic that is silent"
    assert "'Beat!' is no topic name" in told[5]
    assert "Enter or continue" in told[6]
    assert hello.clock.now_ns() == 0


def test_a_topic_that_is_not_there_is_refused_with_those_that_are(hello: Simulation) -> None:
    with pytest.raises(UserError, match=pattern("runtime.no_such_topic", topic="baet", known="beat, health/listener")):
        walk(hello, pause_on="baet")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runtime", "run", "hello", *arguments]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)


@pytest.mark.processes
def test_the_command_stops_at_the_first_pause_where_there_is_no_terminal() -> None:
    done = run("--virtual", "--until", "5", "--pause-on", "beat")
    assert done.returncode == 0, done.stderr
    assert "beat from talker #1: Beat(count=41)" in done.stderr
    assert "at 0.000000 s\n" in done.stderr
    assert "#2" not in done.stderr


@pytest.mark.processes
def test_until_and_for_end_a_virtual_run() -> None:
    until, seconds = run("--virtual", "--until", "2"), run("--virtual", "--for", "2")
    assert until.stdout.count("heard beat") == seconds.stdout.count("heard beat") == 4
    assert until.stderr == seconds.stderr
    assert "trace: " in until.stderr


@pytest.mark.processes
def test_pausing_in_real_time_is_refused() -> None:
    done = run("--pause-on", "beat")
    assert (done.returncode, "add --virtual" in done.stderr) == (2, True)


TEST = """
import os
from nodes.hello import Beat, Listener, Talker
from runtime.launch.graph import NodeSpec

def test_talk(simulate):
    start = int(os.environ["START"])
    simulation = simulate(NodeSpec("talker", Talker, params={"start": start}), Listener(), seed=3)
    simulation.run(2)
    assert simulation.latest("beat") == Beat(count=4)
"""


@pytest.mark.processes
def test_a_failed_test_leaves_seed_command_hash_first_difference_and_timeline(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["runtime.virtual.pytest_plugin"]\n')
    (tmp_path / "test_it.py").write_text(TEST)

    def pytest_run(start: int) -> subprocess.CompletedProcess[str]:
        import os

        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "test_it.py"]
        environment = {**os.environ, "START": str(start), "PYTHONPATH": str(Path.cwd())}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    assert pytest_run(0).returncode == 0
    failed = pytest_run(1)
    assert failed.returncode == 1, failed.stdout
    assert "virtual run: see" in failed.stdout
    folder = tmp_path / "runs" / "failed" / "test_it.py_test_talk"
    report = (folder / "report.txt").read_text()
    assert "seed: 3\n" in report
    assert 'again: python -m pytest "test_it.py::test_talk" --virtual-seed 3\n' in report
    assert "trace: " in report
    assert "(4 messages)" in report
    assert "ended at: 2.000000 s" in report
    assert "passed: 0.000000000 beat:talker:1" in report
    assert "Beat(count=2)" in report
    assert str(folder / "timeline.html") in report
    shown = (folder / "timeline.html").read_text()
    assert "first difference, 0.000 s" in shown
    assert "--virtual-seed 3" in shown
    timeline = (folder / "timeline.txt").read_text()
    assert timeline.splitlines()[1].startswith("beat 1.")
    assert "1.500000000 beat:talker:4" in timeline


def test_the_walk_in_the_documentation_goes_as_it_says() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "virtual-time.md").read_text()
    (block,) = [part for part in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "simulation.step()" in part]
    exec(compile(block, "docs/virtual-time.md", "exec"), {})
