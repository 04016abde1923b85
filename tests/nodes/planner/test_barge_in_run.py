"""A barge-in as a user meets it: planner, loudspeaker and person in processes of their own, over a real WebSocket."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nodes.planner.barge_in_nodes import ANSWER, LONG
from tests.support.servers.realtime_server import Answer, RealtimeServer

pytestmark = [pytest.mark.processes, pytest.mark.long]

RUNS = 5
LAUNCH = """
[nodes.person]
use = "tests.nodes.planner.barge_in_nodes:Interjector"

[nodes.planner]
use    = "nodes.planner.realtime_api:RealtimePlanner"
params = {{ base_url = {url}, model = "a-voice", hears_robot = {hears_robot} }}

[nodes.mouth]
use    = "nodes.voice.loudspeaker:Loudspeaker"
params = {{ command = "", device = "none", barge_in_s = {barge_in_s} }}
"""


@pytest.mark.parametrize(
    ("barge_in_s", "hears_robot"),
    [(0.3, True), (0.3, False), (5.0, True)],
    ids=[
        "cut by the voice",
        "cut by the voice, with headphones",
        "cut by the words, while the next answer is asked for",
    ],
)
def test_the_first_barge_in_of_a_run_keeps_its_own_answer(barge_in_s: float, hears_robot: bool, tmp_path: Path) -> None:
    for number in range(RUNS):
        launch = tmp_path / f"talk{number}.toml"
        # The server answers one at a time, and takes a while to cancel one.
        with RealtimeServer(
            lambda _, asked: Answer(ANSWER, 0.3) if asked else Answer(LONG, 20.0, ends=False), cancels_in_s=0.3
        ) as server:
            url, hears = json.dumps(server.url), json.dumps(hears_robot)
            launch.write_text(LAUNCH.format(url=url, hears_robot=hears, barge_in_s=barge_in_s))
            done = subprocess.run(
                [sys.executable, "-m", "runtime", "run", str(launch), "--for", "25"],
                env=os.environ | {"REALTIME_API_KEY": "key-of-a-test"},
                capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
        told = done.stdout + done.stderr
        assert done.returncode == 0, (number, told, [session.events for session in server.sessions])
        assert server.problems == []
        (session,) = server.sessions
        assert len(session.of("response.create")) == 2, told
        assert len(session.of("response.cancel")) == 1, told
        assert session.of("conversation.item.truncate"), "the server learns how far it was heard"
        assert "asked again" not in told
