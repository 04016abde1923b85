"""The recorder keeps everything it is shown, tells what it missed, and never takes the run down."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from nodes.mcap.file import BagReader, BagWriter
from nodes.mcap.parts import parts_of
from nodes.mcap.schema import Document
from nodes.msgs import Image, RecorderState, Utterance
from nodes.recording.images import SCHEMA_NAME, depth_document, image_document, pixels
from nodes.recording.recorder import Recorder
from nodes.report.run import read_run
from runtime.errors import ParameterError, RecordingError
from runtime.message import Envelope, Message, Stamped
from runtime.run_facts import RunFacts

RGB = np.random.default_rng(0).integers(0, 255, (12, 16, 3), dtype=np.uint8)
DEPTH = np.linspace(0.2, 3.0, 12 * 16, dtype=np.float32).reshape(12, 16)
IMAGE = Image(camera="head", captured_ns=900_000_000, rgb=RGB, depth_m=DEPTH, focal_px=150.0)


def stamped(message: Message, topic: str, seq: int = 1, source: str = "node") -> Stamped[Message]:
    return Stamped(message, Envelope(topic=topic, source=source, seq=seq, published_ns=seq * 1_000_000_000))


def said(seq: int, source: str = "node") -> Stamped[Message]:
    return stamped(Utterance(speaker="robot", text="yes"), "words", seq, source)


def started(folder: Path, **parameters: object) -> Recorder:
    recorder = Recorder(**parameters)  # type: ignore[arg-type]  # parameters by name, as from a launch file
    recorder.run_info = RunFacts.of(
        {"launch_text": "[nodes.x]\n", "seed": 7, "folder": str(folder), "versions": {"numpy": "2"}}
    )
    recorder.on_start()
    return recorder


def what_is_told(recorder: Recorder) -> list[Message]:
    """All that it says of itself from now on."""
    told: list[Message] = []
    recorder.told.sink = lambda port, message, _: told.append(message)
    return told


def test_the_recording_says_what_the_run_was(tmp_path: Path) -> None:
    recorder = started(tmp_path)
    recorder.run_info = recorder.run_info.noting(outcome={"ok": True, "reason": "done"})
    recorder.on_stop()
    reader = BagReader(tmp_path / "run.mcap")
    assert reader.attachments["launch.toml"] == b"[nodes.x]\n"
    assert reader.metadata["run"]["seed"] == "7"
    assert reader.metadata["run"]["versions"] == '{"numpy":"2"}'
    assert reader.metadata["run"]["clock"] == "real"
    assert reader.metadata["end"]["outcome"] == '{"ok":true,"reason":"done"}'


def test_images_are_kept_losslessly_where_foxglove_finds_them(tmp_path: Path) -> None:
    recorder = started(tmp_path, depth="millimetres")
    recorder.on_any(stamped(IMAGE, "head/image"))
    recorder.on_stop()
    colour, depth, *_ = BagReader(tmp_path / "run.mcap")  # and its calibration
    assert (colour.schema, depth.topic) == (SCHEMA_NAME, "head/image/depth")
    assert np.array_equal(pixels(colour.document), RGB)
    assert colour.document["format"] == "png"
    assert colour.envelope.published_ns == 1_000_000_000


def written(document: Document) -> Document:
    """As it stands in a recording."""
    found: Document = msgspec.json.decode(msgspec.json.encode(document))
    return found


def test_images_may_be_jpeg(tmp_path: Path) -> None:
    envelope = stamped(IMAGE, "head/image").envelope
    document = written(image_document(IMAGE, envelope, wall_offset_ns=10, jpeg_quality=90))
    assert document["format"] == "jpeg"
    assert document["timestamp"] == {"sec": 0, "nsec": 900_000_010}
    assert pixels(document).shape == RGB.shape


def test_depth_is_in_millimetres_with_zero_for_unknown() -> None:
    import base64

    import cv2

    depth_m = DEPTH.copy()
    depth_m[0, :3] = (np.nan, np.inf, 70.0)
    image = Image(camera="head", captured_ns=0, rgb=RGB, depth_m=depth_m)
    document = written(depth_document(image, stamped(image, "head/image").envelope, wall_offset_ns=0))
    back = cv2.imdecode(np.frombuffer(base64.b64decode(document["data"]), np.uint8), cv2.IMREAD_UNCHANGED)
    assert back is not None
    assert back.dtype == np.uint16
    assert list(back[0, :3]) == [0, 0, 0]
    assert np.abs(back[1:] / 1000.0 - DEPTH[1:]).max() <= 0.0005001


@pytest.mark.parametrize("data", ["", "!!", "aGVsbG8="])
def test_a_damaged_image_is_refused(data: str) -> None:
    with pytest.raises(RecordingError, match="recorded image"):
        pixels({"data": data})


def test_an_image_bomb_is_refused_by_its_header() -> None:
    import base64

    header = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + (12_000).to_bytes(4, "big") * 2
    with pytest.raises(RecordingError, match="claims 12000 x 12000 pixels"):
        pixels({"data": base64.b64encode(header).decode()})


@pytest.mark.parametrize(("topic", "excluded"), [("words", "words"), ("health/talker", "health/*")])
def test_excluded_topics_are_left_out(topic: str, excluded: str, tmp_path: Path) -> None:
    recorder = started(tmp_path, exclude=[excluded])
    one = said(2)
    recorder.on_any(Stamped(one.message, msgspec.structs.replace(one.envelope, topic=topic)))
    recorder.on_stop()
    assert list(BagReader(tmp_path / "run.mcap")) == []


def test_what_only_begins_like_an_excluded_topic_is_kept(tmp_path: Path) -> None:
    recorder = started(tmp_path, exclude=["wor/*", "wor"])
    recorder.on_any(said(1))
    recorder.on_stop()
    assert [one.topic for one in BagReader(tmp_path / "run.mcap")] == ["words"]


def test_gaps_in_the_sequence_are_counted_and_a_restart_is_none(tmp_path: Path) -> None:
    recorder = started(tmp_path)
    for seq in (4, 5, 8, 1, 2):  # 6 and 7 never came; then the node started again
        recorder.on_any(said(seq))
    recorder.on_any(said(40, source="other"))
    recorder.on_stop()
    assert BagReader(tmp_path / "run.mcap").metadata["end"]["missed"] == '{"words":2}'


def test_a_tick_leaves_nothing_unflushed(tmp_path: Path) -> None:
    recorder = started(tmp_path)
    recorder.on_any(said(1))
    recorder.flush()
    assert len(list(BagReader(tmp_path / "run.mcap"))) == 1
    recorder.on_stop()


def test_a_full_disk_ends_the_recording_and_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = started(tmp_path)
    told = what_is_told(recorder)
    recorder.on_any(said(1))
    recorder.flush()

    def full(self: BagWriter, stamped: Stamped[Message]) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(BagWriter, "write", full)
    recorder.on_any(said(2))
    recorder.on_any(said(3))
    recorder.flush()
    recorder.on_stop()
    assert "recording stopped after 1 messages (No space left on device); the run goes on" in caplog.text
    assert [record.envelope.seq for record in BagReader(tmp_path / "run.mcap")] == [1]
    assert told == [
        RecorderState(mode="recording", file="run.mcap"),
        RecorderState(mode="stopped", file="run.mcap", why="the disk is full"),
        RecorderState(mode="stopped", file="run.mcap", why="the disk is full"),  # and again at each tick
    ]


def test_a_quality_that_is_none_is_refused() -> None:
    with pytest.raises(ParameterError, match="jpeg_quality is 101"):
        Recorder(jpeg_quality=101)


def test_a_graph_in_virtual_time_is_recorded_the_same_twice(tmp_path: Path) -> None:
    from nodes.hello import Listener, Talker
    from runtime import Simulation

    def record(name: str) -> bytes:
        sim = Simulation(Talker(), Listener(), Recorder(path=str(tmp_path / name)), seed=7, health_hz=1.0)
        sim.run(seconds=2.9)
        sim.close()
        return (tmp_path / name).read_bytes()

    assert record("a.mcap") == record("b.mcap")
    counts = [one.document["count"] for one in BagReader(tmp_path / "a.mcap") if one.topic == "beat"]
    assert counts == [1, 2, 3, 4, 5, 6]


def test_a_recorder_started_again_keeps_what_it_recorded_before(tmp_path: Path) -> None:
    first = started(tmp_path)
    first.on_any(said(1))
    first.flush()
    assert first.bag is not None
    first.bag.abandon()  # what is left of a recorder that is killed
    second = started(tmp_path)
    second.on_any(said(2))
    second.on_stop()
    assert [path.name for path in parts_of(tmp_path / "run.mcap")] == ["run.mcap", "run-2.mcap"]
    run = read_run(tmp_path / "run.mcap")
    assert run.stamps == {"words": [1_000_000_000, 2_000_000_000]}
    assert not run.is_complete
    assert "messages" in run.end


def test_a_new_run_leaves_the_recordings_of_others_alone(tmp_path: Path) -> None:
    """Ann records take.mcap and take-2.mcap, each a run of its own, and then take.mcap again."""
    for name, folder in (("take", "one"), ("take-2", "two"), ("take", "three")):
        recorder = Recorder(path=str(tmp_path / f"{name}.mcap"))
        recorder.run_info = RunFacts.of({"folder": folder})
        recorder.on_start()
        recorder.on_any(said(1))
        recorder.on_stop()
    assert len(list(BagReader(tmp_path / "take-2.mcap"))) == 1
    assert parts_of(tmp_path / "take.mcap") == [tmp_path / "take.mcap"]


def test_a_new_run_leaves_an_old_recording_as_it_is(tmp_path: Path) -> None:
    recorders = []
    for folder in ("one", "two"):
        recorder = Recorder(path=str(tmp_path / "run.mcap"))
        recorder.run_info = RunFacts.of({"folder": folder})
        recorder.on_start()
        recorder.on_any(said(1))
        recorder.on_stop()
        recorders.append((tmp_path / "run.mcap").read_bytes())
    assert recorders[0] == recorders[1]
    assert parts_of(tmp_path / "run.mcap") == [tmp_path / "run.mcap"], "the other is a recording of its own"
    assert len(list(BagReader(tmp_path / "run-2.mcap"))) == 1
