"""`polyrhythm seat` asked rightly and wrongly; that it hands over at all is shown in test_seat_processes.py."""

from __future__ import annotations

import getpass
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodes.msgs import Comparison
from nodes.seats import command
from runtime.cli import main
from runtime.clock import to_ns
from runtime.coordination.lease import Lease
from runtime.supervision.registry import FoundRun
from tests.support.guard.guarded_nodes import GUARDED
from tests.support.running import Runs
from tests.support.sentences import sentence


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["take"], sentence("seats.which_seat")),
        (
            ["take", "policy", "--from", "3"],
            sentence("seats.goes_with", option="--from", what="take SEAT --replay RUN.mcap"),
        ),
        (
            ["take", "policy", "--as", "policy", "--keys"],
            sentence("seats.goes_with", option="--keys", what="take SEAT --as me"),
        ),
        (
            ["take", "policy", "--as", "policy", "--for", "3"],
            sentence("seats.goes_with", option="--for", what="take SEAT --as me"),
        ),
        (["give", "policy", "--as", "me"], sentence("seats.goes_with", option="--as", what="take")),
        (["list", "--keys"], sentence("seats.goes_with", option="--keys", what="take SEAT --as me")),
        (["shadow", "policy", "--replay", "x.mcap"], sentence("seats.goes_with", option="--replay", what="take SEAT")),
        (["take", "vlm", "--keys"], sentence("seats.keys_drive")),
        (["take", "policy", "--keys", "--replay", "x.mcap"], sentence("seats.one_of_two")),
        (["take", "policy", "--json"], sentence("seats.json_goes_with")),
    ],
)
def test_options_that_say_nothing_together_are_told_before_a_run_is_looked_for(
    argv: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["seat", *argv]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--for", "--from"])
@pytest.mark.parametrize("value", ["-1", "nan", "inf", "soon"])
def test_a_time_that_is_none_is_told(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["seat", "take", "policy", f"{option}={value}"])
    assert end.value.code == 2
    assert sentence("seats.no_positive_number", value=value) in capsys.readouterr().err


def test_who_has_no_name_on_this_machine_may_ask_as_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr(getpass, "getuser", nameless)
    assert main(["seat", "list", "--run", "4194305"]) != 0
    assert "run" in capsys.readouterr().err, "there is no such run; the asking itself is in order"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    with Runs(monkeypatch) as started:
        yield started


def start(runs: Runs, tmp_path: Path, text: str) -> FoundRun:
    file = tmp_path / "some.toml"
    file.write_text(text)
    return runs.start(file)


@pytest.mark.processes
def test_who_asks_for_what_is_not_there_is_told_what_there_is(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start(runs, tmp_path, GUARDED)

    def asked(code: int, *argv: str) -> str:
        assert main(["seat", *argv]) == code
        printed = capsys.readouterr()
        return printed.out + printed.err

    assert sentence("seats.no_seat", seat="vlm", seats="[seats.policy]") in asked(2, "take", "vlm")
    unknown = sentence("seats.no_candidate", name="witness", seat="policy", candidates="other, policy")
    assert unknown in asked(2, "take", "policy", "--as", "witness")
    assert main(["pub", "robot/command", '{"position": [0.9]}', "--force", "I want to"]) == 2
    assert sentence("seats.only_the_guard", topic="robot/command") in capsys.readouterr().err
    assert sentence("seats.nobody_compares") in asked(2, "shadow", "policy", "--for", "1")
    held = sentence("seats.is_held_by", seat="policy", holder="policy (script) already", number=0)
    assert asked(0, "give", "policy") == f"{held}\n", "nothing is asked of the guard"
    taken = sentence("seats.is_held_by", seat="policy", holder="other (script)", number=1)
    assert asked(0, "take", "policy", "--as", "other", "--by", "Ana") == f"{taken}\n"
    assert json.loads(asked(0, "list", "policy", "--json")) == {
        "policy": {"holder": "other", "kind": "script", "number": 1, "by": "Ana", "why": "taken"}
    }
    assert json.loads(asked(0, "give", "policy", "--json"))["policy"]["holder"] == "policy"


@pytest.mark.processes
def test_a_person_speaks_on_the_seats_own_topics_and_never_past_the_guard(runs: Runs, tmp_path: Path) -> None:
    start(runs, tmp_path, GUARDED)
    lines = 'robot/command {"position": [0]}\nbeet {}\n'
    done = subprocess.run(
        [sys.executable, "-m", "runtime", "seat", "take", "policy", "--by", "Ana"],
        input=lines, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sentence("seats.not_of_the_seat", topic="robot/command", seat="policy", topics="command") in done.stderr
    assert "has no topic 'beet'" in done.stderr
    assert "policy: given back" in done.stdout


@pytest.mark.processes
def test_a_graph_without_seats_says_so(runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start(runs, tmp_path, '[nodes.talker]\nuse = "nodes.hello:Talker"\n')
    assert main(["seat", "list"]) == 1
    assert "it has no [seats.*]" in capsys.readouterr().err
    assert main(["seat", "take", "policy"]) == 2
    assert "has no seat policy" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("displaced", "before"),
    [("policy", "; policy in shadow"), ("tool-7-console", "; before: tool-7-console"), ("", "")],
    ids=["a model of the graph goes on", "a tool need not be there any more", "nobody"],
)
def test_who_sat_there_before_is_in_shadow_only_where_it_goes_on(displaced: str, before: str) -> None:
    lease = Lease(
        seat="policy", holder="expert", number=3, kind="model", by="user ada", displaced=displaced, why="take"
    )
    text = command.line(lease, {"policy", "expert"})
    assert text == f"policy   expert (model), lease 3, take by user ada{before}"


def test_comparisons_of_commands_are_shown_once_a_second_and_those_of_words_each() -> None:
    pace = command.ComparisonLimit()
    joints = Comparison(seat="policy", holder="policy", shadow="mine", measure="joint_m_or_rad", distance=0.2)
    base = Comparison(seat="policy", holder="policy", shadow="mine", measure="base_mps", distance=0.0)
    words = Comparison(seat="vlm", holder="vlm", shadow="mine", measure="same_action", distance=1.0, text="a against b")
    shown = [(at_s, one.measure) for at_s in (3.0, 3.2, 3.9, 4.0, 4.2) for one in (joints, base, words)
             if pace.is_due(one, to_ns(at_s))]  # fmt: skip
    assert [at_s for at_s, measure in shown if measure == "joint_m_or_rad"] == [3.0, 4.0]
    assert [at_s for at_s, measure in shown if measure == "base_mps"] == [3.0, 4.0]
    assert len([measure for _, measure in shown if measure == "same_action"]) == 5
