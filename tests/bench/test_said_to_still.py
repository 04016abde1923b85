"""Said to still, from outside: what counts as still, and a robot in a process of its own that is stopped by a word."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench.said_to_still import Sample, gap_s, is_moving, main, numbers_of, still_after_s
from tests.support.sentences import sentence


def braking(rest_s: float, until_s: float) -> list[Sample]:
    """Lines at 100 Hz of a joint at 0.1 rad/s that stands from then on."""
    return [(k / 100, (0.1 * min(k / 100, rest_s), 0.0)) for k in range(int(until_s * 100))]


def test_it_is_still_from_where_it_does_not_go_on() -> None:
    took_s = still_after_s(braking(1.4, 4.0), 1.0, still=0.005, for_s=1.0)
    assert took_s == pytest.approx(0.4, abs=0.06)  # 5 mrad at 0.1 rad/s


def test_a_robot_that_creeps_on_is_not_still() -> None:
    assert still_after_s(braking(9.0, 9.0), 1.0, still=0.005, for_s=1.0) is None


def test_a_pause_that_is_too_short_does_not_count() -> None:
    pausing = [(at_s, (x + (0.2 if at_s > 1.9 else 0.0), y)) for at_s, (x, y) in braking(1.2, 4.0)]
    assert still_after_s(pausing, 1.0, still=0.005, for_s=1.0) == pytest.approx(0.91, abs=0.02)


def test_it_moves_while_the_lines_of_the_last_moment_are_apart() -> None:
    samples = braking(2.0, 4.0)
    assert is_moving(samples, 1.5, still=0.005, for_s=0.5)
    assert not is_moving(samples, 3.9, still=0.005, for_s=0.5)


def test_lines_are_numbers_or_json_and_others_are_passed_over() -> None:
    assert numbers_of("lift 0.5, arm -1e-3", "") == (0.5, -0.001)
    assert numbers_of('{"message":{"position":[1,2]}}', "message.position") == (1.0, 2.0)
    assert numbers_of("hello", "") is None
    assert numbers_of("hello", "message.position") is None
    assert gap_s(braking(1.0, 2.0)) == pytest.approx(0.01)


ROBOT = """
import pathlib, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)  # at 100 Hz
at, word = 0.0, pathlib.Path(sys.argv[1])
while True:
    at += 0.0 if word.exists() and "Stop!" in word.read_text() else 0.002
    print(at, flush=True)
    signal.sigwait({signal.SIGALRM})
"""
EAR = """
import pathlib, sys
for line in sys.stdin:
    pathlib.Path(sys.argv[1]).write_text(line)
"""


@pytest.mark.processes
def test_a_robot_in_another_process_is_said_to_stop_and_its_time_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    robot, ear, word = tmp_path / "robot.py", tmp_path / "ear.py", tmp_path / "word"
    robot.write_text(ROBOT)
    ear.write_text(EAR)
    commands = ["--watch", f"{sys.executable} {robot} {word}", "--say", f"{sys.executable} {ear} {word}"]
    commands += ["--again", f"rm {word}"]
    assert main([*commands, "--times", "2", "--up-to", "0.1", "--for", "0.3"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["times"], told["without"]) == (2, 0)
    assert all(0.0 <= took_s < 20.0 for took_s in told["all_s"])


@pytest.mark.processes
def test_a_robot_that_says_nothing_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--watch", f"{sys.executable} -c pass", "--say", f"{sys.executable} -c pass"]) == 1
    assert sentence("bench.does_not_move", number=0) in capsys.readouterr().err
