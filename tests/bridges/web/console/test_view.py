"""A page beside a running graph: who opens it sees everything, may stop the robot, and may do nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.support.guard.guarded_nodes import GUARDED
from tests.support.running import Runs

LAUNCH = GUARDED.replace('memory = "run"', 'memory = "run", arm = "auto"') + (
    '\n[nodes.painter]\nuse = "tests.bridges.foxglove.painter:Painter"\n'
)
ROOT = Path(__file__).parents[4]

pytestmark = pytest.mark.processes


class Onlooker:
    """Somebody who has the page open."""

    def __init__(self, socket: Connection, token: str) -> None:
        self.socket = socket
        self.say(t="hello", token=token, name="Mia")
        self.state: dict[str, Any] = {}

    def say(self, **message: Any) -> None:
        """Send what a page sends."""
        self.socket.send(json.dumps(message))

    def next(self) -> dict[str, Any]:
        """The next message; a state is acknowledged, as pages do, and its events and notices are kept."""
        while isinstance(told := self.socket.recv(timeout=60), bytes):
            pass  # a picture
        message: dict[str, Any] = json.loads(told)
        if message["t"] == "state":
            self.say(t="seen", n=message["n"])
            self.state = message
        return message


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with Runs(monkeypatch) as runs:
        file = tmp_path / "looked_at.toml"
        file.write_text(LAUNCH)
        runs.start(file)
        view = subprocess.Popen(
            [sys.executable, "-m", "runtime", "view"],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ.copy(),
            cwd=ROOT,
        )
        assert view.stdout is not None
        try:
            yield view.stdout.readline().removeprefix("watch: ").strip()
        finally:
            view.terminate()
            assert view.wait(30) == 0, "Ctrl-C ends it well"
            view.stdout.close()


def test_an_onlooker_sees_the_run_and_stops_the_robot_but_says_and_drives_nothing(address: str) -> None:
    host, _, token = address.removeprefix("http://").partition("/#")
    with connect(f"ws://{host}/socket", origin=f"http://{host}", proxy=None) as socket:  # type: ignore[arg-type]
        mia = Onlooker(socket, token)
        assert next(one for one in iter(mia.next, None) if one["t"] == "welcome")["role"] == "viewer"
        while mia.state.get("guard") is None or mia.state["cameras"]["head"]["age_ms"] is None:
            mia.next()
        assert mia.state["guard"]["mode"] != "stopped"
        assert mia.state["robot"]["position"], "the robot's joints are there"
        mia.say(t="say", voice="robot", text="hello")
        notices: list[str] = []
        while not notices:
            notices += [str(one) for one in mia.next().get("notices", [])]
        assert "only an operator" in notices[0]
        mia.say(t="stop", why="it comes too near")
        while mia.state["guard"]["mode"] != "stopped":
            mia.next()
        assert "Mia: it comes too near" in mia.state["guard"]["reason"], "the guard of the run says who stopped it"


def test_a_view_of_nothing_and_of_another_robot_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def view() -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "runtime", "view"], capture_output=True, text=True, cwd=ROOT)

    with Runs(monkeypatch) as runs:
        nobody = view()
        assert (nobody.returncode, nobody.stderr.count("\n")) == (1, 1)
        assert "no graph runs" in nobody.stderr
        runs.start("hello")
        hello = view()
        assert hello.returncode == 2
        assert "its topics: beat" in hello.stderr
