"""The film of a run shows the room as it was recorded, and what was said in it when it was said."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from pathlib import Path

import cv2
import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from nodes.msgs import Utterance
from nodes.recording.recorder import Recorder
from nodes.report.command import main
from nodes.report.film import CAPTION_BAR_PX, CLIP_EACH, CLIP_PX, HZ, SIZE_PX, draw_film
from nodes.report.room_pictures import room_pictures
from nodes.report.run import read_run
from nodes.sim.camera import model_of
from nodes.sim.messages import World
from runtime.message import Envelope, Stamped
from runtime.run_facts import RunFacts
from tests.support.sentences import sentence
from tests.support.synthetic_run import write_run

START_NS, SECOND_NS = 5_000_000_000, 1_000_000_000


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds of a world in which something moves after one, when somebody has spoken."""
    from tests.support.table import build_scene

    data = mujoco.MjData(mujoco.MjModel.from_xml_string(build_scene().xml))
    path = tmp_path_factory.mktemp("film") / "run.mcap"
    recorder = Recorder(path=str(path))
    recorder.on_start()
    for number in range(21):
        ns = START_NS + number * SECOND_NS // 10
        qpos = data.qpos.copy()
        qpos[0] += 0.3 * (number > 10)
        world = World(stepped_ns=ns, qpos=qpos, mocap_pos=data.mocap_pos.copy())
        recorder.on_any(Stamped(world, Envelope("sim/world", "driver", number + 1, ns)))
        if number == 10:
            words = Utterance(speaker="Mia", text="Come nearer")
            recorder.on_any(Stamped(words, Envelope("heard", "mia", 1, ns)))
    recorder.on_stop()
    return path


def pictures(path: Path) -> list[NDArray[np.uint8]]:
    video = cv2.VideoCapture(str(path))
    found: list[NDArray[np.uint8]] = []
    while (read := video.read())[0]:
        found.append(np.asarray(read[1], np.uint8))
    return found


def test_the_film_shows_motion_and_words_when_they_were(recording: Path, tmp_path: Path) -> None:
    shares: list[float] = []
    assert draw_film(read_run(recording), tmp_path / "film.mp4", shares.append)
    film = pictures(tmp_path / "film.mp4")
    assert (len(film), film[0].shape) == (round(2 * HZ), (SIZE_PX[1], SIZE_PX[0], 3))
    assert shares == sorted(shares)
    assert shares[-1] == 1.0, "who waits is told how far it is"
    room = [one[:-CAPTION_BAR_PX].astype(int) for one in film]
    bar = [one[-CAPTION_BAR_PX:, :600].astype(int) for one in film]  # to the right stands the time
    before, after = round(0.5 * HZ), round(1.5 * HZ)
    assert np.sum(abs(room[before] - room[0]) > 60) < 100, "nothing has moved yet"
    assert np.sum(abs(room[after] - room[0]) > 60) > 1000, "something has"
    assert bar[before].min() > 200, "nobody has spoken yet"
    assert bar[after].min() < 100, "the words are there to be read"


def test_the_clip_is_the_same_film_small_and_moving(recording: Path, tmp_path: Path) -> None:
    assert main([str(recording), "--clip", "--out", str(tmp_path)]) == 0
    with Image.open(tmp_path / "clip.webp") as clip:
        assert (clip.size, getattr(clip, "n_frames", 1)) == (CLIP_PX, round(2 * HZ / CLIP_EACH))
    assert (tmp_path / "clip.webp").stat().st_size < 200_000


@pytest.mark.long
def test_of_a_run_without_a_simulated_world_there_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = write_run(tmp_path)
    assert not draw_film(read_run(recording), tmp_path / "film.mp4")
    assert not (tmp_path / "film.mp4").exists()
    assert main([str(recording), "--film", "--out", str(tmp_path / "out")]) == 2
    assert sentence("report.no_simulated_world") in capsys.readouterr().err


def test_a_robot_from_a_file_is_drawn_in_its_room_and_one_that_is_not_here_is_not(tmp_path: Path) -> None:
    arm = "nodes.arm:arm.toml"
    model = model_of(arm)
    data = mujoco.MjData(model)
    for robot, number in ((arm, 1), ("gone.toml", 0), ("", 0)):
        path = tmp_path / f"run {Path(robot).stem}.mcap"
        recorder = Recorder(path=str(path))
        recorder.run_info = RunFacts.of({"robot": robot, "parameters": {"driver": {"scene": "cubes"}}})
        recorder.on_start()
        world = World(stepped_ns=START_NS, qpos=data.qpos.copy(), mocap_pos=data.mocap_pos.copy())
        recorder.on_any(Stamped(world, Envelope("sim/world", "driver", 1, START_NS)))
        recorder.on_stop()
        count, drawn = room_pictures(read_run(path), [START_NS], (64, 48))
        assert (count, len([one.shape for one in drawn])) == (number, number)


@pytest.mark.processes
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads in /proc what a process does not hear")
def test_ctrl_c_is_not_heard_by_those_who_draw_beside(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them would leave a traceback on the terminal."""
    # Those who draw begin with the file of the program; what runs tests side by side has none.
    monkeypatch.setattr(sys.modules["__main__"], "__file__", __file__, raising=False)
    monkeypatch.setattr("nodes.report.room_pictures.AT_ONCE", 8)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    wanted = [START_NS + number * SECOND_NS // 12 for number in range(24)]
    _, drawn = room_pictures(read_run(recording), wanted, (64, 48))
    next(drawn)
    lines = [
        line
        for child in multiprocessing.active_children()
        for line in Path(f"/proc/{child.pid}/status").read_text().splitlines()
        if line.startswith("SigBlk:")
    ]
    assert [int(line.split()[1], 16) >> (signal.SIGINT - 1) & 1 for line in lines] == [1, 1]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ()), "who started them hears it"
    assert len(list(drawn)) == 23
