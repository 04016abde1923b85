"""Exports hold what was recorded: datasets never look ahead, tables have a row a message, videos a frame a period."""

from __future__ import annotations

import csv
import json
import resource
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pyarrow.parquet as parquet
import pytest

from nodes.mcap.file import BagReader, BagWriter
from nodes.msgs import Action, Feedback, Image, JointCommand, RobotState, SeenObject, Subtask, aimed_at
from nodes.recording.bag.command import main
from nodes.recording.bag.recording import Recording
from nodes.recording.dataset.episode import read_episode
from nodes.recording.images import SCHEMA, SCHEMA_NAME, image_document
from runtime.clock import to_ns
from runtime.coordination.lease import Lease
from runtime.errors import RecordingError, UserError
from runtime.message import Envelope, Message, Stamped
from tests.nodes.recording.bag.export.ramp_recording import ZEROS, recording
from tests.support.sentences import pattern, sentence


def test_a_dataset_has_state_sent_action_task_intervention_and_success(tmp_path: Path) -> None:
    path = recording(tmp_path / "run.mcap")
    out = tmp_path / "dataset"
    assert main(["export", str(path), "--to", "lerobot", "--out", str(out), "--hz", "20"]) == 0
    table = parquet.read_table(out / "data/chunk-000/file-000.parquet").to_pydict()
    info = json.loads((out / "meta/info.json").read_text())
    assert info["codebase_version"] == "v3.0"
    assert info["total_frames"] == len(table["index"]) == 38
    first_s = 0.1  # state, command and image are all known from then on
    for frame in range(36):
        at_s = first_s + frame / 20
        lift, sent = table["observation.state"][frame][0], table["action"][frame][0]
        assert at_s - 0.02 <= lift + 1e-6 <= at_s + 1e-5, "the newest state, and never a later one"
        assert at_s - 1e-5 <= sent <= at_s + 0.05 + 1e-5, "what was sent in the frame's period"
    tasks = parquet.read_table(out / "meta/tasks.parquet").to_pydict()["__index_level_0__"]
    assert tasks == ["clear the table", "wipe it"]
    assert table["task_index"] == [0] * 18 + [1] * 20
    person = [index for index, held in enumerate(table["intervention"]) if held]
    assert person == list(range(22, 28))
    assert table["next.success"] == [False] * 37 + [True]
    video = cv2.VideoCapture(str(out / "videos/observation.images.head/chunk-000/file-000.mp4"))
    shown = []
    while (read := video.read())[0]:
        shown.append(float(read[1].mean()))
    assert len(shown) == 38
    assert shown == sorted(shown)


def test_the_intervention_flag_follows_two_hand_overs_frame_by_frame(tmp_path: Path) -> None:
    """A person sits from 0.6 s to 0.9 s and from 1.2 s to 1.5 s; the displaced model goes on in shadow all the time."""
    path = tmp_path / "run.mcap"
    writer = BagWriter(path, {"clock": "virtual"})
    kinds = {0: "script", 60: "person", 90: "script", 120: "person", 150: "script"}
    holder = ""
    for tick in range(200):
        stamp_ns = to_ns(tick / 100)
        if tick in kinds:
            holder = kinds[tick]
            lease = Lease(seat="policy", holder=holder, number=tick, kind="person" if holder == "person" else "script")
            writer.write(Stamped(lease, Envelope("lease", "guard", tick + 1, stamp_ns)))
            other = Lease(seat="planner", holder="x", number=tick, kind="person" if holder == "script" else "script")
            writer.write(Stamped(other, Envelope("lease", "guard", tick + 2, stamp_ns)))
        if tick % 2 == 0:
            state = RobotState(
                read_ns=stamp_ns, position=ZEROS, velocity=ZEROS, effort=ZEROS, base_x_m=0.0, base_y_m=0.0,
                base_heading_rad=0.0, base_v_mps=0.0, base_w_radps=0.0,
            )  # fmt: skip
            writer.write(Stamped(state, Envelope("robot/state", "driver", tick + 1, stamp_ns)))
        if tick % 5 == 0:
            command = JointCommand(position=ZEROS)
            hand = Envelope("command", "hand", tick + 1, stamp_ns, provenance="person:Ann")
            model = Envelope("command", "policy", tick + 1, stamp_ns, provenance="model:x")
            for said in (hand, model) if holder == "person" else (model,):
                writer.write(Stamped(command, said))
            writer.write(Stamped(command, Envelope("robot/command", "guard", tick + 1, stamp_ns)))
    writer.close({})
    episode = read_episode(Recording(path), fps=20, show=lambda topic, frame, rgb: None)
    expected = [60 <= 5 * frame < 90 or 120 <= 5 * frame < 150 for frame in range(len(episode))]
    assert episode.interventions == expected
    assert len(episode) == 40
    assert sum(expected) == 12


def test_what_the_policy_asked_for_is_a_column_beside_what_the_guard_sent(tmp_path: Path) -> None:
    """The policy asks for 0.8 until 0.5 s and is silent then; the guard sends half of that; a shadow wants 0.1."""
    path, out = tmp_path / "run.mcap", tmp_path / "dataset"
    writer = BagWriter(path, {"clock": "virtual"})
    writer.write(Stamped(Lease(seat="policy", holder="policy", number=1), Envelope("lease", "guard", 1, 1)))
    for tick in range(1, 101):
        stamp_ns = to_ns(tick / 100)
        state = RobotState(
            read_ns=stamp_ns, position=ZEROS, velocity=ZEROS, effort=ZEROS, base_x_m=0.0, base_y_m=0.0,
            base_heading_rad=0.0, base_v_mps=0.0, base_w_radps=0.0,
        )  # fmt: skip
        writer.write(Stamped(state, Envelope("robot/state", "driver", tick, stamp_ns)))
        said = {"shadow": ("command", 0.1), "policy": ("command", 0.8), "guard": ("robot/command", 0.4)}
        for source, (topic, lift_m) in said.items():
            if source != "policy" or tick <= 50:
                command = JointCommand(position=(lift_m, *ZEROS[1:]))
                writer.write(Stamped(command, Envelope(topic, source, tick, stamp_ns)))
    writer.close({})
    assert main(["export", str(path), "--to", "lerobot", "--out", str(out), "--hz", "20"]) == 0
    table = parquet.read_table(out / "data/chunk-000/file-000.parquet").to_pydict()
    assert [row[0] for row in table["action"]] == pytest.approx([0.4] * 20)
    assert [row[0] for row in table["policy.action"]] == pytest.approx([0.8] * 10 + [0.4] * 10)
    assert json.loads((out / "meta/info.json").read_text())["features"]["policy.action"]["shape"] == [10]


def test_a_dataset_has_the_cameras_that_were_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = cameras(tmp_path / "run.mcap", {"head/image": (64, 48), "room/image": (32, 32)}), tmp_path / "dataset"
    assert main(["export", str(path), "--to", "lerobot", "--out", str(out), "--camera", "head"]) == 0
    features = json.loads((out / "meta/info.json").read_text())["features"]
    assert [key for key, feature in features.items() if feature["dtype"] == "video"] == ["observation.images.head"]
    assert main(["export", str(path), "--to", "lerobot", "--out", str(tmp_path / "x"), "--camera", "wrist"]) == 2
    assert "has no camera wrist; it has head, room" in capsys.readouterr().err
    assert main(["export", str(path), "--to", "mp4", "--out", str(tmp_path / "y"), "--camera", "head"]) == 2


def test_a_frame_says_which_skill_is_under_way_where_its_target_is_and_whether_it_is_done(tmp_path: Path) -> None:
    """A pick from 0.5 s on, done at 1.0 s, while the base drives at 1 m/s; who watches in shadow wants a look."""
    path, out = tmp_path / "run.mcap", tmp_path / "dataset"
    writer = BagWriter(path, {"clock": "virtual"})
    cup = SeenObject(
        label="cup", colour="red", x_m=2.0, y_m=-0.6, z_m=0.5, width_m=0.08, height_m=0.1, u_px=0.0, v_px=0.0
    )
    writer.write(Stamped(Lease(seat="vlm", holder="vlm", number=1), Envelope("lease", "guard", 1, 1)))
    for tick in range(1, 76):
        stamp_ns = to_ns(tick / 50)
        state = RobotState(
            read_ns=stamp_ns, position=ZEROS, velocity=ZEROS, effort=ZEROS, base_x_m=tick / 50, base_y_m=0.0,
            base_heading_rad=0.0, base_v_mps=1.0, base_w_radps=0.0,
        )  # fmt: skip
        writer.write(Stamped(state, Envelope("robot/state", "driver", tick, stamp_ns)))
        writer.write(Stamped(JointCommand(position=ZEROS), Envelope("robot/command", "guard", tick, stamp_ns)))
        if tick == 25:
            pick = Action(id="a1", skill="pick", arguments=aimed_at(cup))
            writer.write(Stamped(pick, Envelope("action", "vlm", tick, stamp_ns)))
            writer.write(Stamped(Action(id="a1", skill="look"), Envelope("action", "other", tick, stamp_ns)))
        if tick == 50:
            done = Feedback(action_id="a1", status="success")
            writer.write(Stamped(done, Envelope("feedback", "policy", tick, stamp_ns)))
    writer.close({})
    assert main(["export", str(path), "--to", "lerobot", "--out", str(out), "--hz", "20"]) == 0
    table = parquet.read_table(out / "data/chunk-000/file-000.parquet").to_pydict()
    names = json.loads((out / "meta/info.json").read_text())["features"]["observation.skill"]["names"]
    assert names == ["pick", "place", "look", "point", "nod", "shake", "hold"]
    assert table["observation.skill"][:5] == [[0.0] * 7] * 5
    assert table["observation.skill"][-1] == [1.0, *[0.0] * 6]
    for target, felt in zip(table["observation.target"][12:], table["observation.state"][12:], strict=True):
        assert target == pytest.approx([2.0 - felt[8], -0.6, 0.5], abs=1e-5)
    assert table["observation.target"][0] == [0.0, 0.0, 0.0]
    done_from = table["skill.done"].index(True)
    assert 0.98 <= table["observation.state"][done_from][8] <= 1.06
    assert all(table["skill.done"][done_from:])


def test_a_jump_of_the_stamps_is_refused_and_fills_no_memory(tmp_path: Path) -> None:
    path = recording(tmp_path / "run.mcap", seconds=0.5)
    broken = BagWriter(tmp_path / "broken.mcap", {"clock": "virtual"})
    for message in BagReader(path):
        broken.copy(message)
    late = Envelope("said", "node", 1, 1 << 61)
    broken.write(Stamped(Subtask(id="late", text="late"), late))
    broken.close()
    with pytest.raises(RecordingError, match=pattern("recording.stamps_jump", at_s=r"0\.\d+")):
        read_episode(Recording(tmp_path / "broken.mcap"), fps=20, show=lambda topic, frame, rgb: None)
    assert main(["plot", str(tmp_path / "broken.mcap"), "--out", str(tmp_path / "plot.png")]) == 0
    assert main(["export", str(tmp_path / "broken.mcap"), "--to", "mp4", "--out", str(tmp_path / "videos")]) == 0


def test_a_way_sideways_has_no_place_in_a_datasets_actions_and_that_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, vy_mps in (("aside", 0.1), ("ahead", 0.0)):
        path = recording(tmp_path / f"{name}.mcap", seconds=1.0, vy_mps=vy_mps)
        assert main(["export", str(path), "--to", "lerobot", "--out", str(tmp_path / name)]) == 0
        said = capsys.readouterr()
        assert ("driven sideways" in said.out + said.err) is (vy_mps != 0.0)


def test_several_recordings_are_several_episodes(tmp_path: Path) -> None:
    paths = [recording(tmp_path / f"{name}.mcap", seconds=1.0) for name in "ab"]
    out = tmp_path / "dataset"
    assert main(["export", *map(str, paths), "--to", "lerobot", "--out", str(out)]) == 0
    episodes = parquet.read_table(out / "meta/episodes/chunk-000/file-000.parquet").to_pydict()
    assert episodes["dataset_from_index"] == [0, 18]
    assert episodes["dataset_to_index"] == [18, 36]
    stats = json.loads((out / "meta/stats.json").read_text())
    assert stats["action"]["count"] == [36]
    assert np.asarray(stats["observation.images.head"]["mean"]).shape == (3, 1, 1)


def test_a_dataset_has_a_whole_number_of_frames_a_second(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recording(tmp_path / "run.mcap")
    for hz in ("0.2", "12.5"):
        assert main(["export", str(path), "--to", "lerobot", "--hz", hz, "--out", str(tmp_path / "data")]) == 2
        assert sentence("recording.whole_rate") in capsys.readouterr().err


def test_a_dataset_without_commands_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recording(tmp_path / "run.mcap", seconds=0.5, with_commands=False)
    assert main(["export", str(path), "--to", "lerobot", "--out", str(tmp_path / "d")]) == 1
    assert sentence("recording.state_and_command_needed") in capsys.readouterr().err


def test_tables_have_a_row_for_each_message(tmp_path: Path) -> None:
    path = recording(tmp_path / "run.mcap")
    number = len(list(BagReader(path)))
    assert main(["export", str(path), "--to", "jsonl", "--out", str(tmp_path / "run.jsonl")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert len(lines) == number
    assert all("data" not in line["message"] for line in lines)
    assert main(["export", str(path), "--to", "csv", "--out", str(tmp_path / "csv")]) == 0
    with (tmp_path / "csv/robot_state.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[9]["position.0"]) == float(rows[9]["at_s"]) == 0.2
    assert sum(len(file.read_text().splitlines()) - 1 for file in (tmp_path / "csv").iterdir()) == number


def test_a_field_that_is_called_like_one_of_the_envelope_has_a_column_of_its_own(tmp_path: Path) -> None:
    class Odd(Message):
        cause: str
        seq: int

    writer = BagWriter(tmp_path / "run.mcap", {"clock": "virtual"})
    writer.write(Stamped(Odd(cause="mine", seq=70), Envelope("odd", "node", 3, 5, cause="heard:x:1")))
    writer.close()
    assert main(["export", str(tmp_path / "run.mcap"), "--to", "csv", "--out", str(tmp_path / "csv")]) == 0
    (row,) = csv.DictReader((tmp_path / "csv" / "odd.csv").read_text().splitlines())
    assert (row["cause"], row["seq"], row["message.cause"], row["message.seq"]) == ("heard:x:1", "3", "mine", "70")


def test_a_video_runs_at_the_cameras_rate(tmp_path: Path) -> None:
    path = recording(tmp_path / "run.mcap", seconds=2.0)
    assert main(["export", str(path), "--to", "mp4", "--out", str(tmp_path / "videos")]) == 0
    video = cv2.VideoCapture(str(tmp_path / "videos/head_image.mp4"))
    assert video.get(cv2.CAP_PROP_FPS) == pytest.approx(10.0)
    assert video.get(cv2.CAP_PROP_FRAME_COUNT) == 19


@pytest.mark.parametrize("form", ["lerobot", "jsonl", "csv", "mp4", "wav"])
@pytest.mark.parametrize("folder", [".", "here", "/"])
def test_a_folder_is_told_from_a_recording(
    form: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("here").mkdir()
    assert main(["export", folder, "--to", form]) == 2
    assert f"{folder}: {sentence('recording.is_a_folder')} " in capsys.readouterr().err


def test_only_a_dataset_takes_several_recordings(tmp_path: Path) -> None:
    path = str(recording(tmp_path / "run.mcap", seconds=0.3))
    assert main(["export", path, path, "--to", "csv"]) == 2


def cameras(path: Path, sizes: dict[str, tuple[int, int]], from_s: float = 500.0) -> Path:
    """A second of a robot with these cameras, by topic their width and height."""
    writer = BagWriter(path, {"clock": "real"})
    for tick in range(1, 21):
        stamp_ns = to_ns(from_s + tick / 20)
        for brightness, (topic, (width, height)) in enumerate(sizes.items(), start=1):
            rgb = np.full((height, width, 3), 50 * brightness, np.uint8)
            envelope = Envelope(topic, "camera", tick, stamp_ns)
            image = Image(camera=topic, captured_ns=stamp_ns, rgb=rgb)
            document = image_document(image, envelope, wall_offset_ns=0, jpeg_quality=0)
            writer.write_document(topic, SCHEMA_NAME, SCHEMA, document, envelope)
        state = RobotState(
            read_ns=stamp_ns, position=ZEROS, velocity=ZEROS, effort=ZEROS, base_x_m=0.0, base_y_m=0.0,
            base_heading_rad=0.0, base_v_mps=0.0, base_w_radps=0.0,
        )  # fmt: skip
        writer.write(Stamped(state, Envelope("robot/state", "driver", tick, stamp_ns)))
        writer.write(Stamped(JointCommand(position=ZEROS), Envelope("robot/command", "guard", tick, stamp_ns)))
    writer.close()
    return path


def video(path: Path) -> tuple[int, int, float]:
    """Width, height and brightness of a video."""
    capture = cv2.VideoCapture(str(path))
    is_read, frame = capture.read()
    capture.release()
    assert is_read
    return frame.shape[1], frame.shape[0], round(float(frame.mean()), -1)


def test_topics_whose_names_are_alike_have_files_of_their_own(tmp_path: Path) -> None:
    path = cameras(tmp_path / "run.mcap", {"arm/left/image": (64, 48), "arm_left/image": (32, 32)})
    for form in ("mp4", "csv", "lerobot"):
        assert main(["export", str(path), "--to", form, "--out", str(tmp_path / form)]) == 0
    assert video(tmp_path / "mp4" / "arm_left_image.mp4") == (64, 48, 50)
    assert video(tmp_path / "mp4" / "arm_left_image-2.mp4") == (32, 32, 100)
    tables = {file.name: len(file.read_text().splitlines()) - 1 for file in (tmp_path / "csv").glob("arm*.csv")}
    assert tables == {"arm_left_image.csv": 20, "arm_left_image-2.csv": 20}
    features = json.loads((tmp_path / "lerobot" / "meta" / "info.json").read_text())["features"]
    shapes = {key: feature["shape"] for key, feature in features.items() if feature["dtype"] == "video"}
    assert shapes == {
        "observation.images.arm_left": [48, 64, 3],
        "observation.images.arm_left-2": [32, 32, 3],
    }


def test_what_a_dataset_says_of_its_videos_is_so(tmp_path: Path) -> None:
    """Of an odd width, which no video has."""
    path, out = cameras(tmp_path / "a.mcap", {"head/image": (33, 31)}), tmp_path / "dataset"
    assert main(["export", str(path), "--to", "lerobot", "--out", str(out)]) == 0
    shape = json.loads((out / "meta" / "info.json").read_text())["features"]["observation.images.head"]["shape"]
    assert shape == [30, 32, 3]
    assert video(out / "videos/observation.images.head/chunk-000/file-000.mp4") == (32, 30, 50)


@pytest.mark.parametrize("form", ["lerobot", "mp4"])
def test_a_picture_of_another_size_is_told_and_never_stretched(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the second recording, and in the middle of one."""
    first = cameras(tmp_path / "a.mcap", {"head/image": (64, 48)})
    second = cameras(tmp_path / "b.mcap", {"head/image": (32, 48)}, from_s=501.0)
    both = BagWriter(tmp_path / "both.mcap", {"clock": "real"})
    for message in (*BagReader(first), *BagReader(second)):
        both.copy(message)
    both.close()
    asked = ["--to", form, "--out", str(tmp_path / "out")]
    assert main(["export", str(tmp_path / "both.mcap"), *asked]) == 1
    assert sentence("recording.not_stretched") in capsys.readouterr().err
    if form == "lerobot":
        assert main(["export", str(first), str(second), *asked]) == 1
        told = capsys.readouterr().err
        assert "b.mcap: head/image is 32 x 48 pixels, and 64 x 48 in the dataset" in told
        assert sentence("recording.not_stretched") in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.mcap", "b.mcap", "both.mcap"], "nothing is left"


def test_what_a_dataset_lacks_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = tmp_path / "short.mcap"
    assert main(["cut", str(cameras(tmp_path / "a.mcap", {})), "--to", "0.01", "--out", str(short)]) == 0
    assert main(["export", str(short), "--to", "lerobot", "--out", str(tmp_path / "x")]) == 1
    assert "short.mcap: it ends before the first frame" in capsys.readouterr().err
    empty = write_nothing(tmp_path / "empty.mcap")
    assert main(["export", str(empty), "--to", "csv", "--out", str(tmp_path / "y")]) == 1
    assert "holds no messages" in capsys.readouterr().err


def write_nothing(path: Path) -> Path:
    BagWriter(path, {"clock": "real"}).close()
    return path


def test_what_an_export_leaves_out_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = cameras(tmp_path / "run.mcap", {"head/image": (64, 48)})
    late = BagWriter(tmp_path / "late.mcap", {"clock": "real"})
    first = Envelope("said", "node", 1, to_ns(490.0))
    late.write(Stamped(Subtask(id="s", text="long before"), first))
    for message in BagReader(path):
        late.copy(message)
    late.close()
    assert main(["export", str(tmp_path / "late.mcap"), "--to", "lerobot", "--out", str(tmp_path / "x")]) == 0
    assert f"late.mcap: {sentence('recording.first_frame_is_late', seconds=10.1)}" in capsys.readouterr().err
    data = bytearray(path.read_bytes())
    del data[-200:]
    path.write_bytes(data)
    for command in (["export", "--to", "jsonl"], ["export", "--to", "lerobot"], ["plot"], ["why", "--at", "0.5"]):
        assert main([command[0], str(path), *command[1:]]) == 0
        assert "! " in capsys.readouterr().err


@pytest.fixture
def full_disk() -> Iterator[None]:
    """No file may grow beyond 4 kB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("form", ["mp4", "lerobot", "jsonl", "csv"])
def test_an_export_that_does_not_fit_on_the_disk_is_told(
    form: str, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recording(tmp_path / "run.mcap", seconds=2.5)
    noise = np.random.default_rng(0).integers(0, 255, (240, 320, 3), dtype=np.uint8)
    writer = BagWriter(tmp_path / "large.mcap", {"clock": "virtual"})
    for message in BagReader(path):
        if message.topic == "head/image":
            about = message.envelope
            image = Image(camera="head", captured_ns=about.published_ns, rgb=np.roll(noise, about.seq, axis=0))
            document = image_document(image, about, wall_offset_ns=0, jpeg_quality=0)
            writer.write_document("head/image", SCHEMA_NAME, SCHEMA, document, about)
        else:
            writer.copy(message)
    writer.close()
    request.getfixturevalue("full_disk")
    assert main(["export", str(tmp_path / "large.mcap"), "--to", form, "--out", str(tmp_path / "out")]) == 1
    told = capsys.readouterr().err
    assert "File too large" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["large.mcap", "run.mcap"], "nothing is left"
    assert "None" not in told


class Force(Message, kind="state"):
    newton: float
    torques_nm: tuple[float, ...]


class Motion(Message, kind="state"):
    velocity_mps: float


def own_robot(path: Path, skill: str = "") -> Path:
    """Forces at 50 Hz and a motion each 50 ms, of a graph without a Stretch; maybe a skill of its own."""
    writer = BagWriter(path, {"clock": "virtual"})
    for tick in range(1, 100):
        stamp_ns = to_ns(tick / 50)
        force = Force(newton=tick / 50, torques_nm=(1.0, 2.0))
        writer.write(Stamped(force, Envelope("gripper/force", "gripper", tick, stamp_ns)))
        if tick % 5 == 0:
            writer.write(Stamped(Motion(velocity_mps=tick / 50), Envelope("motion", "drive", tick, stamp_ns)))
    if skill:
        writer.write(Stamped(Action(id="a", skill=skill), Envelope("action", "vlm", 1, to_ns(1.0))))
    writer.close({})
    return path


def test_a_dataset_of_another_robot_has_its_own_columns_and_nothing_of_a_kitchen(tmp_path: Path) -> None:
    path, out = own_robot(tmp_path / "own.mcap"), tmp_path / "dataset"
    options = [
        "--feature", "observation.state=gripper/force:newton,torques_nm", "--feature", "action=motion:velocity_mps",
        "--task", "hold the egg",
    ]  # fmt: skip
    assert main(["export", str(path), "--to", "lerobot", "--out", str(out), *options]) == 0
    table = parquet.read_table(out / "data/chunk-000/file-000.parquet").to_pydict()
    features = json.loads((out / "meta/info.json").read_text())["features"]
    assert features["observation.state"]["names"] == ["newton", "torques_nm_0", "torques_nm_1"]
    assert features["action"]["names"] == ["velocity_mps"]
    assert not {name for name in (*table, *features) if "skill" in name or "target" in name or "policy" in name}
    assert set(table) == set(features)
    for frame, (state, action) in enumerate(zip(table["observation.state"][:30], table["action"], strict=False)):
        at_s = 0.1 + frame / 20
        assert at_s - 0.02 <= state[0] + 1e-5 <= at_s + 1e-4, "the newest, and never a later one"
        assert at_s - 1e-5 <= action[0] <= at_s + 0.1, "what was sent from then on"
    assert parquet.read_table(out / "meta/tasks.parquet").to_pydict()["__index_level_0__"] == ["hold the egg"]


def test_skills_of_another_robot_are_its_own(tmp_path: Path) -> None:
    path, out = own_robot(tmp_path / "own.mcap", "pour"), tmp_path / "dataset"
    options = ["--feature", "observation.state=gripper/force:newton", "--feature", "action=motion:velocity_mps"]
    assert main(["export", str(path), "--to", "lerobot", "--out", str(out), *options]) == 0
    features = json.loads((out / "meta/info.json").read_text())["features"]
    assert features["observation.skill"]["names"] == ["pour"]
    assert parquet.read_table(out / "meta/tasks.parquet").to_pydict()["__index_level_0__"] == [""], (
        "and no task is made up"
    )


@pytest.mark.parametrize(
    ("feature", "error"),
    [
        ("observation.state", "expected NAME=TOPIC:FIELD"),
        ("observation.state=gripper/force:weight", "has no field 'weight'"),
        ("observation.state=gripper/mass:newton", "gripper/mass"),
    ],
)
def test_a_feature_that_cannot_be_is_told(
    feature: str, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = own_robot(tmp_path / "own.mcap")
    options = ["--feature", feature, "--feature", "action=motion:velocity_mps", "--out", str(tmp_path / "d")]
    try:
        assert main(["export", str(path), "--to", "lerobot", *options]) != 0
        said = capsys.readouterr().err
    except UserError as problem:
        said = str(problem)
    assert error in said
