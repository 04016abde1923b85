"""A RealSense camera, by a fake of its library: aligned depth, rotation, stamps, and a camera that goes and comes."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

from nodes.camera.realsense import DepthCamera
from nodes.camera.realsense_source import RealSense
from nodes.camera.webcam import CameraState
from nodes.msgs import Image
from runtime.clock import wall_time_ns
from runtime.errors import ParameterError, PolyrhythmError
from runtime.virtual.simulation import Simulation
from tests.support.sentences import sentence

WIDTH, HEIGHT = 8, 6


class FakeLibrary(types.ModuleType):
    """As much of pyrealsense2 as is used: one camera, whose frames a test hands out."""

    def __init__(self) -> None:
        super().__init__("pyrealsense2")
        self.devices = {"123": "Intel RealSense D435I"}
        self.is_plugged = True
        self.has_frame = True
        self.is_stuck = False
        self.noise = np.random.default_rng(1)
        self.age_s = 0.03
        self.starts = self.stops = 0
        self.stream = types.SimpleNamespace(color="color", depth="depth")
        self.format = types.SimpleNamespace(rgb8="rgb8", z16="z16")
        self.camera_info = types.SimpleNamespace(serial_number="serial", name="name")
        self.rgb = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
        self.rgb[0, :, 0] = 200  # the upper edge is red
        self.depth = np.full((HEIGHT, WIDTH), 1500, np.uint16)
        self.depth[:, 0] = 12000

    def context(self) -> Any:
        def device(serial: str, name: str) -> Any:
            return types.SimpleNamespace(get_info=lambda kind: serial if kind == "serial" else name)

        return types.SimpleNamespace(query_devices=lambda: [device(*pair) for pair in self.devices.items()])

    def config(self) -> Any:
        return types.SimpleNamespace(enable_device=lambda serial: None, enable_stream=lambda *arguments: None)

    def align(self, to: str) -> Any:
        return types.SimpleNamespace(process=lambda frames: frames)

    def pipeline(self) -> Any:
        return types.SimpleNamespace(start=self._start, stop=self._stop, try_wait_for_frames=self._frames)

    def _start(self, configuration: Any) -> Any:
        if not self.is_plugged:
            raise RuntimeError("no device connected")
        self.starts += 1
        intrinsics = types.SimpleNamespace(fx=400.0, ppx=4.0, ppy=3.0)
        video = types.SimpleNamespace(get_intrinsics=lambda: intrinsics)
        return types.SimpleNamespace(
            get_device=lambda: types.SimpleNamespace(
                first_depth_sensor=lambda: types.SimpleNamespace(get_depth_scale=lambda: 0.001)
            ),
            get_stream=lambda kind: types.SimpleNamespace(as_video_stream_profile=lambda: video),
        )

    def _stop(self) -> None:
        self.stops += 1

    def _frames(self, wait_ms: int) -> tuple[bool, Any]:
        if not self.is_plugged:
            raise RuntimeError("device disconnected")
        if not self.has_frame:
            return False, None
        if not self.is_stuck:
            self.rgb[-1, -1] = self.noise.integers(0, 255, 3)  # in place, as the library writes into its own memory
        stamp_ms = wall_time_ns() / 1e6 - self.age_s * 1e3
        colour = types.SimpleNamespace(get_data=lambda: self.rgb, get_timestamp=lambda: stamp_ms)
        depth = types.SimpleNamespace(get_data=lambda: self.depth)
        return True, types.SimpleNamespace(get_color_frame=lambda: colour, get_depth_frame=lambda: depth)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    fake = FakeLibrary()
    monkeypatch.setitem(sys.modules, "pyrealsense2", fake)
    return fake


def seen(node: DepthCamera, seconds: float = 1.0) -> tuple[list[Image], list[CameraState], Simulation]:
    sim = Simulation(node)
    images, states = sim.record(DepthCamera.image), sim.record(DepthCamera.state)
    sim.run(seconds=seconds)
    return images, states, sim


def test_images_carry_depth_in_metres_and_unknown_where_it_is_too_far(library: FakeLibrary) -> None:
    images, states, _ = seen(DepthCamera(width=WIDTH, height=HEIGHT, fps=5.0, farthest_m=10.0))
    assert 4 <= len(images) <= 6
    image = images[0]
    assert image.depth_m is not None
    assert image.depth_m[2, 3] == pytest.approx(1.5)
    assert image.depth_m[2, 0] == 0.0
    assert image.focal_px == 400.0
    assert [state.is_live for state in states] == [True]


def test_a_camera_on_its_side_is_turned_clockwise(library: FakeLibrary) -> None:
    images, _, _ = seen(DepthCamera(width=WIDTH, height=HEIGHT, rotate_deg=90))
    image = images[0]
    assert image.rgb.shape == (WIDTH, HEIGHT, 3)
    assert image.depth_m is not None
    assert image.depth_m.shape == (WIDTH, HEIGHT)
    assert (image.rgb[:, -1, 0] == 200).all()  # what was above is on the right


def test_a_camera_that_goes_away_is_told_once_and_taken_again(library: FakeLibrary) -> None:
    node = DepthCamera(width=WIDTH, height=HEIGHT)
    images, states, sim = seen(node)
    library.is_plugged = False
    before = len(images)
    sim.run(seconds=3.0)
    assert len(images) == before
    library.is_plugged = True
    sim.run(seconds=3.0)
    assert len(images) > before
    assert [state.is_live for state in states] == [True, False, True]
    assert sentence("camera.is_gone") in states[1].why


def test_a_camera_that_shows_one_picture_with_new_stamps_is_told_and_shows_it_no_more(library: FakeLibrary) -> None:
    library.is_stuck = True
    images, states, sim = seen(DepthCamera(), 1.0)
    sim.close()
    assert [state.is_live for state in states] == [True, False]
    assert len(images) <= 5


def test_a_camera_that_stalls_is_a_fault_and_no_old_frame_comes(library: FakeLibrary) -> None:
    images, states, sim = seen(DepthCamera(width=WIDTH, height=HEIGHT))
    library.has_frame = False
    before = len(images)
    sim.run(seconds=2.0)
    assert len(images) == before
    assert not states[-1].is_live
    assert sentence("camera.no_frame", seconds=1) in states[-1].why


class FixedClock:
    is_virtual = False

    def now_ns(self) -> int:
        return 5_000_000_000


def test_a_frame_is_as_old_as_the_camera_says_and_new_where_its_clock_is_not_ours(library: FakeLibrary) -> None:
    camera = RealSense("D435I", "", (WIDTH, HEIGHT), 30, FixedClock())  # type: ignore[arg-type]  # as much as is used
    captured_ns = camera.grab()
    assert captured_ns is not None
    assert 0.02e9 < 5_000_000_000 - captured_ns < 0.3e9
    library.age_s = 3600.0
    assert camera.grab() == 5_000_000_000


@pytest.mark.parametrize(
    ("devices", "serial", "words"),
    [
        ({}, "", sentence("camera.which_of_the_model", number=0, model="D435I", names="none")),
        (
            {"1": "D435I", "2": "D435I"},
            "",
            sentence("camera.which_of_the_model", number=2, model="D435I", names="D435I (1), D435I (2)"),
        ),
        ({"1": "D405"}, "99", sentence("camera.no_such_serial_number", serial=99, names="D405 (1)")),
    ],
)
def test_a_camera_that_cannot_be_chosen_is_a_sentence(
    library: FakeLibrary, devices: dict[str, str], serial: str, words: str
) -> None:
    library.devices = devices
    with pytest.raises(PolyrhythmError) as refusal:
        RealSense("D435I", serial, (WIDTH, HEIGHT), 30, FixedClock())  # type: ignore[arg-type]
    assert words in str(refusal.value)


def test_without_the_library_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyrealsense2", None)
    with pytest.raises(PolyrhythmError, match=r"pip install .*\[realsense\]"):
        RealSense("D435I", "", (WIDTH, HEIGHT), 30, FixedClock())  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"rotate_deg": 45}, {"width": 0}, {"fps": 0.0}, {"farthest_m": -1.0}])
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        DepthCamera(**wrong)
