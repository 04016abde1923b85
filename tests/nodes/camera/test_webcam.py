"""The camera node on video files made here: true times, no old frames, faults told once and over when they are over."""

from __future__ import annotations

import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from nodes.camera.calibration import Lens
from nodes.camera.video_source import LiveSource, as_rgb, asked_of, why_not_open
from nodes.camera.webcam import Camera, CameraState, CaptureSettings
from nodes.msgs import Image
from runtime import Simulation
from runtime.errors import ParameterError
from runtime.virtual.scheduler import VirtualClock
from tests.support.sentences import sentence

FPS = 20
LENGTH = 40


def make_video(path: Path, *, frames: int = LENGTH) -> Path:
    """Grey 64 x 48 frames that get brighter by 5 each, with a red patch at the top left."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), FPS, (64, 48))
    for number in range(frames):
        frame = np.full((48, 64, 3), 40 + 5 * number, np.uint8)
        frame[:16, :16] = (0, 0, 255)
        writer.write(frame)
    writer.release()
    return path


def number_of(image: Image) -> int:
    """Which frame of the video it is."""
    return round((float(image.rgb[24:, 32:].mean()) - 40) / 5)


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_video(tmp_path_factory.mktemp("video") / "a.avi")


def watch(camera: Camera, seconds: float) -> tuple[list[Image], list[CameraState]]:
    sim = Simulation(camera)
    images, states = sim.record(Camera.image), sim.record(Camera.state)
    sim.run(seconds=seconds)
    sim.close()
    return images, states


def test_a_file_is_shown_at_its_own_pace_with_the_times_of_its_frames(video: Path) -> None:
    images, states = watch(Camera(source=str(video), fps=100.0), 1.5)
    assert [number_of(image) for image in images] == list(range(30))
    start_ns = images[0].captured_ns
    assert [image.captured_ns - start_ns for image in images] == [number * 50_000_000 for number in range(30)]
    assert [state.is_live for state in states] == [True]
    red = images[0].rgb[4, 4]
    assert red[0] > 200
    assert red[2] < 60


def test_slower_publishing_leaves_frames_out_and_keeps_their_times(video: Path) -> None:
    images, _ = watch(Camera(source=str(video), fps=5.0), 1.5)
    assert 7 <= len(images) <= 9
    assert all(
        number_of(image) == (image.captured_ns - images[0].captured_ns) // 50_000_000 for image in images
    )  # fmt: skip


def test_a_looped_file_goes_on_with_new_times(video: Path) -> None:
    images, _ = watch(Camera(source=str(video), fps=100.0), 3.0)
    assert len(images) == 60
    assert [number_of(image) for image in images][38:42] == [38, 39, 0, 1]
    assert np.all(np.diff([image.captured_ns for image in images]) > 0)


def test_a_file_that_ends_is_a_fault_and_no_frame_comes_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    short = make_video(tmp_path / "short.avi", frames=10)
    images, states = watch(Camera(source=str(short), fps=100.0, loop=False), 5.0)
    assert len(images) == 10
    assert [(state.is_live, sentence("camera.has_ended") in state.why) for state in states] == [
        (True, False),
        (False, True),
    ]
    assert caplog.text.count(sentence("camera.has_ended")) == 1


def test_a_camera_that_is_not_there_is_said_once_and_seen_when_it_comes(
    tmp_path: Path, video: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "later.avi"
    place.write_bytes(b"no video yet")
    sim = Simulation(camera := Camera(source=str(place), fps=100.0))
    images, states = sim.record(Camera.image), sim.record(Camera.state)
    sim.run(seconds=7.0)
    assert images == []
    assert caplog.text.count(sentence("camera.cannot_be_opened")) == 1
    shutil.copy(video, place)
    sim.run(seconds=4.0)
    sim.close()
    assert images
    assert [state.is_live for state in states] == [False, True]
    assert camera.camera == "head"


class Device:
    """A cv2.VideoCapture whose cable can be pulled."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.is_plugged = True
        self.is_stuck = False
        self.delay_s = 0.02
        self.noise = np.random.default_rng(1)
        self.frame = np.zeros((48, 64, 3), np.uint8)

    def grab(self) -> bool:
        return self.is_plugged

    def get(self, _: int) -> float:
        return self.clock.now_ns() * 1e-6 - self.delay_s * 1e3

    def retrieve(self) -> tuple[bool, NDArray[np.uint8]]:
        if not self.is_stuck:
            self.frame = self.noise.integers(0, 9, self.frame.shape, np.uint8)
        return True, self.frame

    def release(self) -> None:
        pass


def test_why_a_source_cannot_be_opened_is_told_with_what_to_do(tmp_path: Path) -> None:
    assert why_not_open("0", False, tmp_path) == sentence("camera.cameras_here", names="none")
    (tmp_path / "video2").touch()
    (tmp_path / "video3").touch()
    known = sentence("camera.cameras_here", names=f"{tmp_path}/video2, {tmp_path}/video3")
    assert why_not_open("0", False, tmp_path) == known
    assert why_not_open("2", False, tmp_path) == sentence("camera.gives_no_pictures")
    assert why_not_open("rtsp://10.0.0.9/a", False, tmp_path) == sentence("camera.no_video_answers")
    assert why_not_open("a.mp4", True, tmp_path) == sentence("camera.no_video_in_it")


def test_an_unplugged_device_is_a_fault_and_sees_again_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    camera = Camera(source=0, fps=10.0)
    sim = Simulation(camera)
    images, states = sim.record(Camera.image), sim.record(Camera.state)
    device = Device(sim.clock)

    def opened(*_: object) -> LiveSource | None:
        return LiveSource(device, sim.clock) if device.is_plugged else None  # type: ignore[arg-type]

    monkeypatch.setattr("nodes.camera.video_source.open_source", opened)
    sim.run(seconds=1.0)
    assert 8 <= len(images) <= 11
    device.is_plugged = False
    seen = len(images)
    sim.run(seconds=6.0)
    assert len(images) == seen
    assert [state.is_live for state in states] == [True, False]
    assert caplog.text.count(sentence("camera.is_gone")) == 1
    device.is_plugged = True
    sim.run(seconds=4.0)
    sim.close()
    assert len(images) > seen + 10
    assert [state.is_live for state in states] == [True, False, True]


def test_a_device_that_shows_one_picture_with_new_stamps_is_a_fault_within_a_second_until_it_shows_another(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sim = Simulation(Camera(source=0, fps=10.0))
    images, states = sim.record(Camera.image), sim.record(Camera.state)
    device = Device(sim.clock)
    monkeypatch.setattr(
        "nodes.camera.video_source.open_source",
        lambda *_: LiveSource(device, sim.clock),  # type: ignore[arg-type]
    )
    sim.run(seconds=1.0)
    device.is_stuck, seen = True, len(images)
    sim.run(seconds=1.0)
    assert [state.is_live for state in states] == [True, False]
    assert len(images) <= seen + 5
    assert caplog.text.count(sentence("camera.shows_one_picture")) == 1
    device.is_stuck = False
    sim.run(seconds=1.0)
    sim.close()
    assert [state.is_live for state in states] == [True, False, True]
    assert len(images) > seen + 8


@pytest.mark.parametrize("frame", [None, np.zeros((4, 4, 5), np.uint8), np.zeros((4, 4, 3), np.float32)])
def test_a_device_whose_frames_cannot_be_decoded_is_a_fault_within_a_second_until_they_can(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, frame: NDArray[np.uint8] | None
) -> None:
    sim = Simulation(Camera(source=0, fps=10.0))
    states = sim.record(Camera.state)
    device = Device(sim.clock)
    monkeypatch.setattr(
        "nodes.camera.video_source.open_source",
        lambda *_: LiveSource(device, sim.clock),  # type: ignore[arg-type]
    )
    sim.run(seconds=1.0)
    monkeypatch.setattr(Device, "retrieve", lambda _: (frame is not None, frame))
    sim.run(seconds=1.5)
    assert [state.is_live for state in states] == [True, False]
    assert caplog.text.count(sentence("camera.cannot_be_decoded", seconds=1)) == 1
    monkeypatch.undo()
    sim.run(seconds=1.0)
    sim.close()
    assert [state.is_live for state in states] == [True, False, True]


def test_every_form_of_a_picture_becomes_rgb_of_8_bits() -> None:
    red = np.zeros((4, 6, 3), np.uint8)
    red[..., 2] = 200  # OpenCV's order
    alpha = np.dstack([red, np.full((4, 6), 9, np.uint8)])
    grey = np.full((4, 6), 77, np.uint8)
    yuyv = np.dstack([grey, np.full((4, 6), 128, np.uint8)])
    for picture, value in (
        (red, (200, 0, 0)),
        (alpha, (200, 0, 0)),
        (red.astype(np.uint16) * 256 + 255, (200, 0, 0)),
        (grey, (77, 77, 77)),
        (grey[..., None], (77, 77, 77)),
        (grey.astype(np.uint16) << 8, (77, 77, 77)),
    ):
        rgb = as_rgb(picture)
        assert rgb is not None
        assert (rgb.shape, rgb.dtype) == ((4, 6, 3), np.dtype(np.uint8))
        assert tuple(rgb[1, 1]) == pytest.approx(value, abs=1)
    seen = as_rgb(yuyv)
    assert seen is not None
    assert np.ptp(seen[1, 1].astype(int)) <= 2  # without colour, it is grey
    right = as_rgb(red[..., ::-1], order="rgb")
    assert right is not None
    assert tuple(right[0, 0]) == (200, 0, 0)
    for none in (red.astype(np.float32), np.zeros((0, 4, 3), np.uint8), yuyv[:, :5], np.zeros(7, np.uint8)):
        assert as_rgb(none) is None


def test_what_a_device_is_asked_for_and_does_not_do_is_told_and_the_format_comes_first() -> None:
    class Wanted:
        """A device of one size, which takes everything else."""

        def __init__(self) -> None:
            self.asked: list[int] = []
            self.has: dict[int, float] = {}

        def set(self, what: int, value: float) -> bool:
            self.asked.append(what)
            if what != cv2.CAP_PROP_FRAME_WIDTH:
                self.has[what] = value
            return True

        def get(self, what: int) -> float:
            return self.has.get(what, 640.0)

    device = Wanted()
    wants = CaptureSettings("MJPG", 1280, 720, 30.0, exposure=150.0, white_balance_k=4600)
    assert asked_of(device, wants) == ["capture_width 1280 (it has 640)"]  # type: ignore[arg-type]
    first = [cv2.CAP_PROP_AUTO_WB, cv2.CAP_PROP_FOURCC, cv2.CAP_PROP_FRAME_WIDTH]
    assert device.asked[:3] == first
    assert device.asked.index(cv2.CAP_PROP_AUTO_EXPOSURE) < device.asked.index(cv2.CAP_PROP_EXPOSURE)
    assert asked_of(Wanted(), CaptureSettings()) == []  # type: ignore[arg-type]


def test_a_device_that_delivers_nothing_is_a_fault_before_it_returns(caplog: pytest.LogCaptureFixture) -> None:
    camera = Camera(source=0)
    camera.opened = LiveSource(Device(VirtualClock.__new__(VirtualClock)), camera.clock)  # type: ignore[arg-type]
    camera.alive_ns = camera.clock.now_ns() - 900_000_000
    camera.watch()
    assert camera.state.sent == 0
    camera.alive_ns -= 200_000_000
    camera.watch()
    camera.watch()
    assert camera.state.sent == 1
    assert sentence("camera.no_frame", seconds=1) in caplog.text


def test_a_driver_stamp_counts_where_it_is_one() -> None:
    class Fixed:
        def now_ns(self) -> int:
            return 50_000_000_000

    device = Device(Fixed())  # type: ignore[arg-type]
    source = LiveSource(device, Fixed())  # type: ignore[arg-type]
    assert source.grab() == pytest.approx(49_980_000_000, abs=1000)
    device.delay_s = 30.0  # no stamp of this clock
    assert source.grab() == 50_000_000_000
    device.delay_s = -1.0
    assert source.grab() == 50_000_000_000


def test_frames_are_turned_clockwise_and_scaled_without_squeezing(video: Path) -> None:
    (image, *_), _ = watch(Camera(source=str(video), rotate_deg=90, width=24, height=24), 0.2)
    assert image.rgb.shape == (24, 24, 3)
    (image, *_), _ = watch(Camera(source=str(video), rotate_deg=90), 0.2)
    assert image.rgb.shape == (64, 48, 3)
    assert image.rgb[4, 44, 0] > 200  # the patch is at the top right now
    assert image.focal_px == 0.0


def test_a_calibration_straightens_the_image_and_tells_the_focal_length(tmp_path: Path) -> None:
    file = tmp_path / "lens.toml"
    file.write_text(
        "width = 320\nheight = 240\nfocal_px = [300.0, 300.0]\ncentre_px = [170.0, 110.0]\n"
        "distortion = [-0.2, 0.0, 0.0, 0.0]\n"
    )
    lens = Lens.load(str(file), 0, (0, 0))
    frame = np.zeros((480, 640, 3), np.uint8)
    frame[218:223, 338:343] = 255  # where the calibration has its centre, at twice the size
    straight, focal_px = lens.apply(frame)
    assert focal_px == 600.0
    rows, columns = np.nonzero(straight[:, :, 0] > 128)
    assert (rows.mean(), columns.mean()) == pytest.approx((239.5, 319.5), abs=1.0)
    assert Lens.load(str(file), 0, (320, 240)).apply(frame)[1] == 300.0


@pytest.mark.parametrize("text", ["width = 0", "nonsense", "colour = 1"])
def test_a_calibration_that_is_none_is_refused_in_words(tmp_path: Path, text: str) -> None:
    file = tmp_path / "lens.toml"
    file.write_text(text)
    with pytest.raises(ParameterError, match=r"calibration .*lens\.toml"):
        Lens.load(str(file), 0, (0, 0))


def test_files_that_are_not_there_or_hold_no_calibration_are_known_before_the_start(tmp_path: Path) -> None:
    (tmp_path / "lens.toml").write_text("x = 1\n")
    assert sentence("camera.calibration_expected") in Camera(calibration=str(tmp_path / "lens.toml")).problems()[0]
    problems = Camera(source="nowhere.mp4", calibration="no.toml").problems()
    assert len(problems) == 2
    assert Camera(source=0).problems() == Camera(source="rtsp://a:b@c/d").problems() == []


def test_an_address_is_told_without_its_password(caplog: pytest.LogCaptureFixture) -> None:
    camera = Camera(source="rtsp://user:secret@10.0.0.9/stream")
    assert "secret" not in camera.where
    assert "10.0.0.9" in camera.where


@pytest.mark.parametrize(
    "parameters",
    [
        {"rotate_deg": 45},
        {"width": 10},
        {"fps": 0.0},
        {"stall_s": -1.0},
        {"fourcc": "MJ"},
        {"capture_width": 640},
        {"exposure": -1.0},
        {"white_balance_k": 3},
    ],
)
def test_parameters_that_cannot_be_are_refused(parameters: dict[str, float | str]) -> None:
    with pytest.raises(ParameterError, match="camera: "):
        Camera(**parameters)  # type: ignore[arg-type]
