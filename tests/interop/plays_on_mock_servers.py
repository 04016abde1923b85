"""Plays episodes, and the robot's planner, against two mock servers from npm that we did not write.

usage: python -m tests.interop.plays_on_mock_servers FOLDER  (with @copilotkit/aimock and openai-mock-api in
node_modules; make interop does it)

The first is asked again with a twentieth of all calls answered by 429, a tenth by 500 and a twentieth by garbage:
no episode may be lost.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, cast

from nodes.episodes.command import main as episodes
from nodes.episodes.evaluation.dimensions import NAMES
from nodes.episodes.results.store import Store
from tests.nodes.planner.openai_planner_table import REQUEST, Table, picture, put
from tests.support.servers.fake_openai_server import FakeOpenAI

TASKS = ("quiet-hours", "three-stalls", "cello-with-a-crack", "lot-seventeen", "last-table")
KEY = "mock-key"
ACT = json.dumps({"action_type": "speak", "argument": "Good morning.", "to": []})
JUDGED = json.dumps(
    {"evaluations": {f"agent_{n}": {d: {"reasoning": "so", "score": 0} for d in NAMES} for n in (1, 2, 3)}}
)
CHAOS = ("--chaos-ratelimit", "0.05", "--chaos-drop", "0.1", "--chaos-malformed", "0.05")
PATIENCE_S = 60.0


def aimock(folder: Path, port: int, *more: str) -> list[str]:
    """Its fixtures: the first one that fits answers."""
    planned = {"match": {"userMessage": REQUEST}, "response": {"content": put("blue")}}
    judged = {"match": {"userMessage": "Judge an episode between"}, "response": {"content": JUDGED}}
    played = {"match": {"userMessage": "You play "}, "response": {"content": ACT}}
    file = folder / "fixtures.json"
    file.write_text(json.dumps({"fixtures": [planned, judged, played]}))
    return ["node_modules/@copilotkit/aimock/dist/cli.js", "-p", str(port), "-f", str(file), *more]


def openai_mock_api(folder: Path, port: int) -> list[str]:
    """Its conversations; JSON is YAML, too. A system message is part of a conversation."""

    def flow(name: str, answer: str, *asked: dict[str, str]) -> dict[str, Any]:
        return {"id": name, "messages": [*asked, {"role": "assistant", "content": answer}]}

    def holds(text: str) -> dict[str, str]:
        return {"role": "user", "content": text, "matcher": "contains"}

    flows = [
        flow("plan", put("blue"), {"role": "system", "matcher": "any"}, holds(REQUEST)),
        flow("judge", JUDGED, holds("Judge an episode between")),
        flow("act", ACT, holds("You play ")),
    ]
    file = folder / "mock.yaml"
    file.write_text(json.dumps({"apiKey": KEY, "port": port, "responses": flows}))
    return ["node_modules/openai-mock-api/dist/cli.js", "-c", str(file), "-p", str(port)]


class Served:
    """A server of `node`, from when it answers until the block is left."""

    def __init__(self, where: Path, command: list[str], port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self._process = subprocess.Popen(
            ["node", *command], cwd=where, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def __enter__(self) -> Served:
        for _ in range(int(PATIENCE_S / 0.1)):
            try:
                urllib.request.urlopen(self.url.removesuffix("/v1"), timeout=5).close()
            except urllib.error.HTTPError:
                return self  # it speaks
            except OSError:
                assert self._process.poll() is None, "the server has ended"
                time.sleep(0.1)
                continue
            return self
        raise AssertionError("the server does not answer")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_S)


def played(served: Served, folder: Path) -> str:
    """Five episodes with a judge; what it took."""
    servers, out = folder / "servers.toml", folder / "run.sqlite"
    servers.write_text(f'[servers.mock]\nurls = ["{served.url}"]\nkey = "MOCK_KEY"\n')
    asked = ["run", *(part for task in TASKS for part in ("--task", task)), "--servers", str(servers)]
    assert episodes([*asked, "--agents", "m@mock", "--judges", "m@mock", "--out", str(out)]) == 0
    with Store.read(out) as store:
        rows = store.episodes()
        assert [row.state for row in rows] == ["done"] * len(TASKS)
        faults = sum(bool(turn.fault) for row in rows for turn in store.turns(row.id))
        turns = sum(len(store.turns(row.id)) for row in rows)
        assert all(store.judges() == ["m@mock"] for _ in rows)
    return f"{len(rows)} episodes, {turns} turns ({faults} failed), judged"


def planned(served: Served) -> str:
    """The robot's planner hears a request, sees a picture, and sets the subtask that the server answers."""
    os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = served.url, KEY
    with Table(cast(FakeOpenAI, served), model="m") as table:
        table.sim.publish("head/image", picture())
        table.hear(REQUEST)
        table.sim.run(seconds=12.0)
        assert table.sim.outcome is None, table.reason()
        texts = [subtask.text for subtask in table.subtasks]
        assert "Put the cups in the bin" in texts, (texts, [one.text for one in table.said])
        return f"planner: {texts[-1]!r} after {table.planner.request.budget.calls} calls"


def free_port() -> int:
    """One that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(where: Path) -> int:
    """0 where all was played."""
    os.environ["MOCK_KEY"] = KEY
    for name, command, more in (
        ("aimock", aimock, ()),
        ("aimock with 429s, 500s and garbage", aimock, CHAOS),
        ("openai-mock-api", openai_mock_api, ()),
    ):
        with tempfile.TemporaryDirectory() as folder:
            port = free_port()
            with Served(where, command(Path(folder), port, *more), port) as served:
                told = played(served, Path(folder))
                told += "" if more else f"; {planned(served)}"
                print(f"mock server {name}: {told}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
