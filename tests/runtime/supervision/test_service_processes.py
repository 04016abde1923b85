"""Services and goals between real processes: two clients at once, a server that dies, cancels, late answers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nodes.mcap.file import BagReader

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[3]
NODES = "tests.support.served_nodes"
FAR = 45
"""Counted in 4.5 s: before the deadline, and long after a cancel has come."""


def launched(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A run of that launch file, with what it said."""
    path = folder / "run.toml"
    path.write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "runtime", "run", str(path), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_two_clients_in_processes_of_their_own_are_answered_at_once_and_a_deadline_passes(tmp_path: Path) -> None:
    done = launched(
        tmp_path,
        f"""
[nodes.adder]
use = "{NODES}:Adder"
params = {{ style = "sleeps" }}
[nodes.one]
use = "{NODES}:Asker"
params = {{ numbers = [0, -1, 3] }}
[nodes.other]
use = "{NODES}:Asker"
params = {{ numbers = [0] }}
[nodes.story]
use = "{NODES}:Story"
params = {{ number = 0, ends = "3: deadline" }}
""",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = set(re.findall(r"told by (.*)", done.stdout))
    assert told == {"one: 0: 10", "other: 0: 10", "one: -1: refused", "one: 3: deadline"}


@pytest.mark.parametrize(("how", "number", "end"), [("cancel", FAR, "cancelled"), ("wait", 8, "done 8")])
def test_a_goal_is_reached_or_cancelled_by_its_client(tmp_path: Path, how: str, number: int, end: str) -> None:
    done = launched(tmp_path, GOAL.format(nodes=NODES, how=how, number=number, ends=end))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"done: {end}" in done.stderr


GOAL = """
[nodes.counter]
use = "{nodes}:Counter"
[nodes.commander]
use = "{nodes}:Commander"
[nodes.story]
use = "{nodes}:Story"
params = {{ how = "{how}", number = {number}, ends = "{ends}" }}
"""


def test_an_interrupt_ends_a_goal_in_another_process(tmp_path: Path) -> None:
    """The client's handler is cancelled, so that nobody tells of the end but the server.

    The server hears of it by the fence and by the cancel of the client, whose handler the fence ended; which of the two
    comes first is the machine's. `test_services` shows that the fence alone is enough.
    """
    launch = GOAL.format(nodes=NODES, how="interrupt", number=FAR, ends="")
    done = launched(tmp_path, launch + f'[nodes.watcher]\nuse = "{NODES}:Watcher"\n')
    assert "done: cancelled" in done.stderr, done.stdout + done.stderr
    assert "deadline" not in done.stdout, "the client gave up by itself"


def test_a_client_outlives_its_server_and_is_served_by_the_one_that_is_started_again(tmp_path: Path) -> None:
    launch = f'''
[nodes.adder]
use = "{NODES}:Mortal"
params = {{ grave = "{tmp_path / "grave"}" }}
[nodes.asker]
use = "{NODES}:Patient"
'''
    done = launched(tmp_path, launch)
    assert "done: deadline, then 11" in done.stderr, done.stdout + done.stderr


def test_a_recording_holds_both_topics_with_the_fields_of_the_users_own_messages(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(f'[nodes.adder]\nuse = "{NODES}:Adder"\n[nodes.asker]\nuse = "{NODES}:Asker"\n')
    recording = tmp_path / "run.mcap"
    run = [sys.executable, "-m", "runtime", "run", str(path), "--virtual", "--for", "1", "--record", str(recording)]
    subprocess.run(run, cwd=ROOT, check=True, capture_output=True)
    records = list(BagReader(recording))
    found = [json.loads(record.data) for record in records if record.topic == "add/request"]
    answers = [json.loads(record.data) for record in records if record.topic == "add/answer"]
    assert [one["request"] for one in found] == [{"a": number, "b": 10} for number in (1, 2, 3)]
    assert [one["answer"] for one in answers] == [{"total": number + 10} for number in (1, 2, 3)]
    assert [one["id"] for one in found] == [one["id"] for one in answers]
