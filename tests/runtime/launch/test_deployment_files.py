"""The launch files that leave the simulator: they fit together, and a webcam's picture reaches the model."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from os import environ
from pathlib import Path

import pytest

from nodes.mcap.file import BagReader
from runtime.launch.file import check, load
from tests.nodes.camera.test_webcam import make_video
from tests.support.models.eyes import write_eyes
from tests.support.servers.fake_openai_server import FakeOpenAI, answers

ROOT = Path(__file__).resolve().parents[3]
SEEN = {"objects": [{"label": "cup", "colour": "red", "u": 8, "v": 8}], "target": -1}


@pytest.mark.parametrize("name", ["stretch", "stretch-gpu", "stretch4", "webcam"])
def test_the_graph_fits_together(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("VLM_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("VLM_MODEL", "m")
    eyes = [f"vlm.folder={write_eyes(tmp_path)}"] if name == "webcam" else []
    check(load(ROOT / "launch" / f"{name}.toml", eyes))


@pytest.mark.parametrize("name", ["stretch", "stretch-gpu", "stretch4"])
def test_a_real_robot_is_never_armed_by_its_launch_file(name: str) -> None:
    text = (ROOT / "launch" / f"{name}.toml").read_text()
    assert re.search(r'arm = "manual"', text)
    assert "auto" not in text


@pytest.mark.processes
@pytest.mark.parametrize("graph", ["webcam", pytest.param("laptop", marks=pytest.mark.long)])
def test_the_model_describes_what_a_real_camera_sees(graph: str, tmp_path: Path) -> None:
    """A video file stands for the webcam; the robot stays simulated."""
    video = make_video(tmp_path / "a.avi")
    with FakeOpenAI(answers(json.dumps(SEEN))) as server:
        command = [sys.executable, "-m", "runtime", "run", graph, "--virtual", "--for", "5", "--out", str(tmp_path)]
        command += ["--set", "vlm.use=nodes.vlm.openai_api:OpenAIVLM"]
        command += ["--set", "run.report="] if graph == "laptop" else []
        command += ["--set", f"{'camera' if graph == 'laptop' else 'head_camera'}.source={video}"]
        environment = {**environ, "VLM_BASE_URL": server.url, "VLM_MODEL": "fake"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert server.requests[0].image_urls[0].startswith("data:image/jpeg;base64,")
    bag = next(tmp_path.rglob("*.mcap"))
    assert "It sees: red cup." in "\n".join(descriptions(bag))


@pytest.mark.processes
def test_a_detector_in_the_process_describes_what_a_webcam_sees(tmp_path: Path) -> None:
    video = make_video(tmp_path / "a.avi")
    command = [sys.executable, "-m", "runtime", "run", "webcam", "--virtual", "--for", "5", "--out", str(tmp_path)]
    command += ["--set", f"head_camera.source={video}", "--set", f"vlm.folder={write_eyes(tmp_path)}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    bag = next(tmp_path.rglob("*.mcap"))
    assert "It sees: a person, a cup, a bowl." in "\n".join(descriptions(bag))
    scenes = [message.document for message in BagReader(bag) if message.topic == "scene"]
    [person] = scenes[-1]["people"]
    assert person["points_at"] == "cup-2"


@pytest.mark.processes
@pytest.mark.long
def test_the_scripted_vlm_tells_the_colours_that_a_real_camera_sees(tmp_path: Path) -> None:
    """Without a model and without depth: that much and no more."""
    video = make_video(tmp_path / "a.avi")
    command = [sys.executable, "-m", "runtime", "run", "laptop", "--virtual", "--for", "5", "--out", str(tmp_path)]
    command += ["--set", f"camera.source={video}", "--set", "run.report="]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "It sees: something red." in "\n".join(descriptions(next(tmp_path.rglob("*.mcap"))))


def descriptions(bag: Path) -> list[str]:
    """What the VLM told the planner, as recorded."""
    return [str(message.document["text"]) for message in BagReader(bag) if message.topic == "description"]
