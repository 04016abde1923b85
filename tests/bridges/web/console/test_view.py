"""A page beside a running graph: who opens it sees everything, may stop the robot, and may do nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.support.guard.driving import SIMULATED, driver_and_guard
from tests.support.guard.guarded_nodes import GUARDED
from tests.support.running import Runs, eventually

LAUNCH = GUARDED.replace('memory = "run"', 'memory = "run", arm = "auto"') + (
    '\n[nodes.painter]\nuse = "tests.bridges.foxglove.painter:Painter"\n'
)
ARM = f"""
[run]
robot = "nodes.arm:arm.toml"

{driver_and_guard(SIMULATED)}
[nodes.policy]
use = "tests.support.guard.guarded_nodes:StillPolicy"

[nodes.painter]
use   = "tests.bridges.foxglove.painter:Painter"
remap = {{ "head/image" = "corner/image" }}

[seats.policy]
holder = "policy"
"""
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


@contextmanager
def looking(tmp_path: Path, launch: str, *options: str, **environment: str) -> Iterator[str]:
    """The address of the view of that launch file's run; what it complains of stands in the file `complaints`."""
    with (tmp_path / "complaints").open("w") as complaints, pytest.MonkeyPatch.context() as patch, Runs(patch) as runs:
        file = tmp_path / "looked_at.toml"
        file.write_text(launch)
        runs.start(file)
        view = subprocess.Popen(
            [sys.executable, "-m", "runtime", "view", *options],
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            env={**os.environ, **environment},
            cwd=ROOT,
        )
        assert view.stdout is not None
        try:
            yield view.stdout.readline().removeprefix("watch: ").strip()
        finally:
            view.terminate()
            assert view.wait(30) == 0, "Ctrl-C ends it well"
            view.stdout.close()


@contextmanager
def onlooker(address: str) -> Iterator[tuple[Onlooker, dict[str, Any]]]:
    """Somebody who has opened it, and what they are told once."""
    host, _, token = address.removeprefix("http://").partition("/#")
    with connect(f"ws://{host}/socket", origin=f"http://{host}", proxy=None) as socket:  # type: ignore[arg-type]
        mia = Onlooker(socket, token)
        yield mia, next(one for one in iter(mia.next, None) if one["t"] == "welcome")


def test_an_onlooker_sees_and_stops_and_does_nothing_else_and_one_that_never_reads_holds_nobody_up(
    tmp_path: Path,
) -> None:
    with looking(tmp_path, LAUNCH) as address, onlooker(address) as (deaf, _), onlooker(address) as (mia, welcome):
        assert welcome["role"] == "viewer"
        deaf.say(t="watch", cameras=["head"])
        mia.say(t="watch", cameras=["head"])
        while not mia.state:
            mia.next()
        begun = mia.state["n"]
        while (
            mia.state["n"] < begun + 30
            or mia.state.get("guard") is None
            or mia.state["cameras"]["head"]["age_ms"] is None
        ):
            mia.next()
        assert mia.state["cameras"]["head"]["age_ms"] < 10_000, "pictures go on, too"
        assert mia.state["guard"]["mode"] != "stopped"
        assert mia.state["robot"]["position"], "the robot's joints are there"
        assert "topics" not in mia.state, "what the robot does is shown, not each of its messages"
        mia.say(t="say", voice="robot", text="hello")
        notices: list[str] = []
        while not notices:
            notices += [str(one) for one in mia.next().get("notices", [])]
        assert "only an operator" in notices[0]
        mia.say(t="stop", why="it comes too near")
        while mia.state["guard"]["mode"] != "stopped":
            mia.next()
        assert "Mia: it comes too near" in mia.state["guard"]["reason"], "the guard of the run says who stopped it"


def test_of_a_robot_from_a_file_joints_with_their_ranges_and_its_cameras_are_shown(tmp_path: Path) -> None:
    with looking(tmp_path, ARM) as address, onlooker(address) as (mia, welcome):
        names = [joint["name"] for joint in welcome["joints"]]
        assert (names[0], names[-1], len(names)) == ("waist", "gripper", 7)
        assert all(joint["lowest"] < joint["highest"] for joint in welcome["joints"])
        assert welcome["head_camera"] is None, "nothing is drawn over its picture as if it were a Stretch's"
        assert welcome["shown"]["cameras"] == {"head": "corner"}
        mia.say(t="watch", cameras=["head"])
        while mia.state.get("robot") is None or mia.state["cameras"]["head"]["age_ms"] is None:
            mia.next()
        assert len(mia.state["robot"]["position"]) == 7
        assert mia.state["robot"]["hand"] is None


@pytest.mark.long
def test_of_a_graph_without_a_robot_topics_and_words_are_shown_also_where_no_browser_can_be_opened(
    tmp_path: Path,
) -> None:
    launch = 'nodes.talker.use = "nodes.hello:Talker"\nnodes.ana.use = "tests.support.pages.web_nodes:Speaks"\n'
    opens: dict[str, str] = {"BROWSER": "/no/such/browser %s", "PATH": str(tmp_path)}
    with looking(tmp_path, launch, "--open", **opens) as address, onlooker(address) as (mia, welcome):
        complaints = tmp_path / "complaints"
        eventually(
            lambda: "no browser could be opened here; open that address in one" in complaints.read_text(), "it says so"
        )
        assert "Traceback" not in complaints.read_text()
        shown = welcome["shown"]
        assert (shown["cameras"], shown["robot"], shown["stop"], shown["words"]) == ({}, False, False, True)
        told: list[str] = []
        while not told or not any(one["topic"] == "beat" and one["hz"] > 1 for one in mia.state.get("topics", [])):
            told += [f"{one['who']}: {one['text']}" for one in mia.next().get("events", [])]
        assert told[0] == "Ana: What do you ask for it?"
        beat = next(one for one in mia.state["topics"] if one["topic"] == "beat")
        assert beat["text"].startswith("count=")
        assert not any(one["topic"].startswith("health/") for one in mia.state["topics"])


TALKER = 'nodes.talker.use = "nodes.hello:Talker"\n'


def test_a_browser_that_stays_in_the_terminal_does_not_hold_the_page_up(tmp_path: Path) -> None:
    number = tmp_path / "number"
    browser = f"sh -c 'echo $$ > {number}; exec sleep 600' %s"
    try:
        with looking(tmp_path, TALKER, "--open", BROWSER=browser) as address, onlooker(address) as (mia, _):
            assert mia.next()["t"] == "state"
            eventually(lambda: number.exists() and number.read_text() != "", "the browser was opened")
    finally:
        if number.exists():
            os.kill(int(number.read_text()), signal.SIGKILL)


def test_a_view_of_nothing_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with Runs(monkeypatch):
        nobody = subprocess.run([sys.executable, "-m", "runtime", "view"], capture_output=True, text=True, cwd=ROOT)
    assert (nobody.returncode, nobody.stderr.count("\n")) == (1, 1)
    assert "no graph runs" in nobody.stderr
