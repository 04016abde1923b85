"""A recording stands in for any of its nodes while the others live, in virtual and in real time."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from nodes.replay.command import main
from nodes.replay.played import Played, played
from nodes.sim.camera import SimCamera
from runtime.bag import BagReader
from runtime.commands.run import main as run_main
from runtime.node import ports_of
from runtime.ports import Publisher

CAMERAS = ("head_camera", "wrist_camera", "room_camera")
IMAGES = ("head/image", "wrist/image", "room/image")

SMALL = """
[nodes.source]
use = "tests.threaded_nodes:Source"

[nodes.racer]
use = "tests.threaded_nodes:Racer"
params = { ticks = 100 }

[nodes.recorder]
use = "nodes.recorder:Recorder"
"""


def rows(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """By topic what each message was, when, and what it stems from; not what nodes tell of themselves."""
    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for message in BagReader(path):
        if not message.topic.startswith(("health/", "calls/")) and message.topic != "log":
            about = message.envelope
            found[message.topic].append(
                (about.ident, about.published_ns, about.image_ns, about.cause, message.document)
            )
    return dict(found)


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("laptop")
    run_main(["laptop", "--virtual", "--seed", "7", "--for", "4", "--out", str(folder), "--json"])
    return folder / "run.mcap"


def replay(recording: Path, folder: Path, *options: str) -> dict[str, list[tuple[Any, ...]]]:
    assert main([str(recording), *options, "--virtual", "--out", str(folder), "--json"]) == 0
    return rows(folder / "run.mcap")


def test_recorded_images_in_place_of_cameras_change_nothing(laptop: Path, tmp_path: Path) -> None:
    options = [word for name in CAMERAS for word in ("--in-place-of", name)]
    then, now = rows(laptop), replay(laptop, tmp_path, *options)
    assert then.keys() == now.keys()
    assert [topic for topic in then if then[topic] != now[topic]] == []
    assert set(IMAGES) <= then.keys()


def test_cameras_see_the_recorded_world_as_they_saw_it(laptop: Path, tmp_path: Path) -> None:
    options = [word for name in CAMERAS for word in ("--live", name)]
    then, now = rows(laptop), replay(laptop, tmp_path, *options)
    assert then["sim/world"] == now["sim/world"]
    for topic in IMAGES:
        pictures = [{row[4]["captured_ns"]: row[4]["data"] for row in found[topic]} for found in (then, now)]
        same = pictures[0].keys() & pictures[1].keys()
        assert len(same) >= 0.8 * len(pictures[0]) > 0  # at one instant a camera may see the world before or after
        assert all(pictures[0][stamp] == pictures[1][stamp] for stamp in same)


def test_one_live_node_hears_all_that_the_others_said(laptop: Path, tmp_path: Path) -> None:
    then, now = rows(laptop), replay(laptop, tmp_path, "--live", "reflex")
    for topic in ("robot/state", "heard", "description", "head/image", "guard/state", "interrupt"):
        assert [row[0] for row in then[topic]] == [row[0] for row in now[topic]], topic
        assert [row[4] for row in then[topic]] == [row[4] for row in now[topic]], topic


def test_a_stand_in_has_the_ports_of_its_original_and_no_others() -> None:
    stand_in = played(SimCamera)
    assert issubclass(stand_in, Played)
    assert played(SimCamera) is stand_in
    assert [port.topic for port in ports_of(stand_in, Publisher).values()] == ["head/image"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--in-place-of", "nobody"], "--in-place-of nobody: the recorded run has no such node; known: "),
        (["--live", "nobody"], "--live nobody: the recorded run has no such node; known: "),
        (["--live", "policy", "--node", "policy"], "give one of them"),
    ],
)
def test_what_cannot_be_played_is_refused(
    laptop: Path, tmp_path: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(laptop), *options, "--virtual", "--out", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.processes
@pytest.mark.parametrize("speed", [1, 4])
def test_a_graph_of_processes_hears_the_recording_at_any_speed(
    speed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = tmp_path / "small.toml"
    launch.write_text(SMALL)
    run_main([str(launch), "--virtual", "--for", "2", "--out", str(tmp_path / "then")])
    capsys.readouterr()
    recording = tmp_path / "then" / "run.mcap"
    options = ["--in-place-of", "source", "--speed", str(speed), "--out", str(tmp_path / "now"), "--json"]
    assert main([str(recording), *options]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["played"] == ["source"]
    then, now = rows(recording), rows(tmp_path / "now" / "run.mcap")
    heard = [row[4]["value"] for row in now["level"]]
    said = [row[4]["value"] for row in then["level"]]
    assert heard == said[: len(heard)]
    assert len(heard) > 5
    assert now["answer"]  # the other node lives
    assert {row[0].split(":")[1] for row in now["answer"]} == {"racer"}
