"""A whole study over the pages' own sockets: six scripted people, one who withdraws, and a crash in a trial."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bridges.web.study.command import main
from tests.support.pages.page_run import ROOT, PageRun

pytest.importorskip("websockets")
from websockets.sync.client import connect
from websockets.sync.connection import Connection
from websockets.typing import Origin

pytestmark = [pytest.mark.processes, pytest.mark.long]
LAUNCH = """
[nodes.study]
use    = "bridges.web.study.node:Study"
params = {{ folder = "{folder}", protocol = "{protocol}" }}
"""
PROTOCOL = """
title = "Slow and fast"
[consent]
text = "A short study."
statements = ["I agree."]
[[task]]
id = "one"
title = "One"
text = "Say hello."
[[task]]
id = "two"
title = "Two"
text = "Say it again."
[[condition]]
id = "slow"
title = "It is slow"
[[condition]]
id = "fast"
title = "It is fast"
[questionnaires]
after_trial = ["safe"]
[[questionnaire]]
id = "safe"
title = "How safe was it?"
[[questionnaire.item]]
id = "safe"
text = "I felt safe."
"""
WITHDRAWS, CRASHES = 3, 5


class Guide:
    """The experimenter's page and the one participant's page that is good now."""

    def __init__(self, run: PageRun) -> None:
        self.url, token = run.addresses["study", "experimenter"].split("#")
        self.sockets = ExitStack()
        self.guide = self.page(token)
        self.view: dict[str, Any] = {}
        self.token = ""  # the participant's
        self.person = self.page(run.addresses["study", "participant"].split("#")[1])

    def page(self, token: str) -> Connection:
        place, origin = self.url.replace("http", "ws"), Origin(self.url.rpartition("/")[0])
        socket = self.sockets.enter_context(connect(f"{place}/socket", origin=origin, proxy=None))
        socket.send(json.dumps({"t": "hello", "token": token}))
        return socket

    def until(self, **wanted: Any) -> None:
        """Until the experimenter's page shows that."""
        while any(self.view.get(name) != value for name, value in wanted.items()):
            message = json.loads(self.guide.recv(timeout=60))
            if message["t"] == "state":
                assert not message["notices"], message["notices"]
                self.guide.send(json.dumps({"t": "seen", "n": message["n"]}))
                self.view = message["view"] or self.view
                if "address" in message:
                    self.token = message["address"]["url"].rpartition("#")[2]

    def does(self, **message: Any) -> None:
        self.guide.send(json.dumps(message))

    def says(self, **message: Any) -> None:
        self.person.send(json.dumps(message))

    def begins(self, number: int) -> None:
        self.does(t="begin", number=number)
        self.until(code=f"P{number:02}", kind="consent")
        self.person = self.page(self.token)
        self.says(t="agree", ticked=1)

    def goes_on(self, trial: int) -> None:
        """The rest of a trial that has begun, and what is asked after it."""
        self.says(t="say", text="Hello there.")
        self.does(t="end", how="completed")
        self.until(kind="questionnaire")
        self.says(t="answer", step=f"trial-{trial}/safe", item="safe", value=trial + 3)
        self.says(t="submit", step=f"trial-{trial}/safe")

    def starts(self, trial: int) -> None:
        self.until(kind="trial", trial=trial, running=False)
        self.does(t="start")
        self.until(running=True)


def started(launch: Path, out: Path, sockets: ExitStack) -> tuple[PageRun, Guide]:
    run = sockets.enter_context(PageRun("run", launch, "--out", out, pages=2))
    guide = Guide(run)
    sockets.push(guide.sockets)
    return run, guide


def test_six_people_a_withdrawal_and_a_crash_are_exported_and_the_example_makes_their_table(tmp_path: Path) -> None:
    folder, launch, protocol = tmp_path / "study", tmp_path / "study.toml", tmp_path / "protocol.toml"
    protocol.write_text(PROTOCOL)
    launch.write_text(LAUNCH.format(folder=folder, protocol=protocol))
    with ExitStack() as sockets:
        run, guide = started(launch, tmp_path / "one", sockets)
        for number in range(1, 7):
            guide.begins(number)
            for trial in (1, 2):
                guide.starts(trial)
                if number == WITHDRAWS:
                    guide.says(t="withdraw")
                    guide.until(withdrawn=True)
                    break
                if (number, trial) == (CRASHES, 1):
                    run.kill()
                    run, guide = started(launch, tmp_path / "two", sockets)
                    guide.starts(trial)
                guide.goes_on(trial)
            else:
                guide.until(over=True)
    assert main(["export", str(folder)]) == 0
    with (folder / "export" / "trials.csv").open() as file:
        trials = [(one["participant"], one["condition"], one["outcome"]) for one in csv.DictReader(file)]
    assert [one for one in trials if one[2] != "completed"] == [
        ("P03", next(one[1] for one in trials if one[0] == "P03"), "aborted"),
        ("P05", next(one[1] for one in trials if one[0] == "P05"), "interrupted"),
    ]
    assert sum(one[2] == "completed" for one in trials) == 10
    command = [sys.executable, str(ROOT / "examples" / "study" / "table.py"), str(folder / "export")]
    table = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    assert "6 participants, 5 of them to the end" in table
    assert [line.split()[:3] for line in table.splitlines() if " safe " in line] == [
        ["fast", "safe", "5"], ["slow", "safe", "5"],
    ]  # fmt: skip
