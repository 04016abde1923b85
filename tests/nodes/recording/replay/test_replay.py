"""A replayed node sees exactly what it saw, does the same bit for bit, and says where that cannot be known."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from nodes.mcap.file import BagReader, BagWriter
from nodes.mcap.record import BagMessage
from nodes.msgs import Image
from nodes.recording.bag.command import main as bag_main
from nodes.recording.bag.recording import Recording
from nodes.recording.images import exact_depth_document, image_document, image_of
from nodes.recording.recorder import Recorder
from nodes.recording.replay.command import main, replay_nodes
from nodes.recording.replay.gaps import ReplayPace, TimeLine
from nodes.recording.replay.inputs import Inputs
from nodes.recording.replay.player import NodeResult
from nodes.recording.replay.recorded_launch import recorded_launch
from runtime.commands.run import main as run_main
from runtime.launch.graph import NodeSpec
from runtime.message import Envelope, Message
from runtime.node import Node, every, on
from runtime.ports import Publisher, Subscription
from runtime.virtual.simulation import Simulation
from tests.support.sentences import sentence


class Reading(Message, kind="state"):
    value: float


class Ask(Message):
    text: str


class Sensor(Node):
    image = Publisher(Image, "eye/image")
    ask = Publisher(Ask, "ask")

    @every(hz=10)
    def tick(self) -> None:
        rgb = np.full((4, 6, 3), self.random.randrange(256), np.uint8)
        depth = np.full((4, 6), self.random.random() * 3, np.float32)
        self.image.publish(Image(camera="eye", captured_ns=self.clock.now_ns(), rgb=rgb, depth_m=depth))

    @every(hz=3)
    def wonder(self) -> None:
        self.ask.publish(Ask(text=f"{self.random.random()}"))


class Thinker(Node):
    image = Subscription(Image, "eye/image")
    ask = Subscription(Ask, "ask")
    reading = Publisher(Reading, "reading")

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain
        self.asked = 0

    @every(hz=20)
    def tick(self) -> None:
        image = self.image.latest()
        if image is not None and image.depth_m is not None:
            seen = float(image.depth_m[0, 0]) + float(image.rgb[0, 0, 0]) + self.clock.now_ns() * 1e-9
            self.reading.publish(Reading(value=seen * self.gain + self.asked + self.random.random()))

    @on(ask)
    def heard(self, ask: Ask) -> None:
        self.asked += len(ask.text)


def record(folder: Path, **options: Any) -> Recording:
    specs = [
        NodeSpec("sensor", Sensor),
        NodeSpec("thinker", Thinker),
        NodeSpec("recorder", Recorder, instance=Recorder(**options)),
    ]
    simulation = Simulation(*specs, seed=3, health_hz=1.0)
    simulation.run_info["folder"] = str(folder)
    simulation.run(3.5)
    simulation.close()
    return Recording(folder / "run.mcap")


def again(recording: Recording, **params: Any) -> NodeResult:
    (result,) = replay_nodes(recording, [NodeSpec("thinker", Thinker, params=params)])
    return result


def test_a_replayed_node_does_the_same_bit_for_bit(tmp_path: Path) -> None:
    result = again(record(tmp_path))
    assert result.is_exact, (result.difference, result.doubts)
    assert result.compared == 70
    assert result.calls > 75


def test_a_changed_node_differs_at_the_first_message_with_both_values(tmp_path: Path) -> None:
    result = again(record(tmp_path), gain=1.5)
    assert result.difference is not None
    assert result.difference.message == "reading:thinker:1"
    assert result.difference.where == "value"
    assert result.difference.first != result.difference.second


def test_what_was_recorded_lossily_is_not_called_exact(tmp_path: Path) -> None:
    doubts = " ".join(again(record(tmp_path, jpeg_quality=90)).doubts)
    assert "eye/image was recorded as jpeg, not losslessly" in doubts
    (tmp_path / "without").mkdir()
    doubts = " ".join(again(record(tmp_path / "without", depth="none")).doubts)
    assert sentence("recording.depth_not_recorded") in doubts


def test_an_input_that_was_not_recorded_is_named(tmp_path: Path) -> None:
    result = again(record(tmp_path, exclude=["eye/image"]))
    assert not result.is_exact
    assert sentence("recording.read_but_missing", message="eye/image:sensor:1") in result.doubts[0]


def test_without_a_journal_nothing_is_claimed(tmp_path: Path) -> None:
    result = again(record(tmp_path, exclude=["calls/thinker"]))
    assert result.doubts == [sentence("recording.no_journal_of_calls")]


@pytest.mark.parametrize("special", [0.0, np.nan, np.inf, -1e-38, 1.23456789])
def test_depth_comes_back_bit_for_bit(special: float) -> None:
    depth = np.random.default_rng(1).random((5, 7)).astype(np.float32)
    depth[2, 3] = special
    image = Image(camera="eye", captured_ns=5, rgb=np.zeros((5, 7, 3), np.uint8), depth_m=depth, focal_px=80.5)
    envelope = Envelope("eye/image", "eye", 1, 5)
    documents = (
        image_document(image, envelope, wall_offset_ns=0, jpeg_quality=0),
        exact_depth_document(image, envelope, wall_offset_ns=0),
    )
    colour, exact_depth = (msgspec.json.decode(msgspec.json.encode(document)) for document in documents)
    back, is_exact = image_of(colour, exact_depth)
    assert is_exact
    assert back.depth_m is not None
    assert back.depth_m.tobytes() == depth.tobytes()
    assert (back.camera, back.captured_ns, back.focal_px) == ("eye", 5, 80.5)


def test_the_command_builds_nodes_from_the_recorded_launch_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from runtime.commands.run import main as run_main

    launch = tmp_path / "small.toml"
    launch.write_text(
        '[nodes.talker]\nuse = "nodes.hello:Talker"\nparams = { start = 40 }\n'
        '[nodes.listener]\nuse = "nodes.hello:Listener"\n[nodes.recorder]\nuse = "nodes.recording.recorder:Recorder"\n'
    )
    run_main([str(launch), "--virtual", "--for", "3", "--out", str(tmp_path / "out"), "--set", "talker.start=50"])
    capsys.readouterr()
    run = tmp_path / "out" / "run.mcap"
    assert recorded_launch(Recording(run), []).graph.nodes["talker"].params == {"start": 50}
    assert main([str(run), "--node", "talker", "--json"]) == 0
    (talker,) = json.loads(capsys.readouterr().out)["nodes"]
    assert (talker["is_exact"], talker["compared"]) == (True, 6)
    assert main([str(run), "--node", "talker", "--set", "talker.start=1"]) == 1
    assert "first:  51\n  second: 2" in capsys.readouterr().out
    before = run.read_bytes()
    assert main([str(run), "--live", "listener", "--virtual", "--out", str(run.parent)]) == 2
    assert sentence("recording.is_itself") in capsys.readouterr().err
    assert run.read_bytes() == before
    again = tmp_path / "again"
    assert main([str(run), "--live", "talker", "--virtual", "--out", str(again)]) == 0
    (line,) = re.findall("they said otherwise: polyrhythm bag (.*)", capsys.readouterr().out)
    assert bag_main(shlex.split(line)) == 0
    assert capsys.readouterr().out == "identical: 6 messages\n"
    shutil.rmtree(again)  # nothing is written over
    assert main([str(run), "--live", "talker", "--virtual", "--out", str(again), "--set", "talker.start=9"]) == 0
    assert bag_main(shlex.split(line)) == 1
    assert "differs in count:\n  first:  51\n  second: 10" in capsys.readouterr().out
    assert bag_main(["diff", str(run), str(run), "--nodes", "walker"]) == 2
    assert sentence("recording.no_message_of_theirs", node="walker") in capsys.readouterr().err
    assert main([str(run), "--live", "listener", "--in-place-of", "talker"]) == 2
    assert "give one of them" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main([str(run), "--live", "listener", "--virtual", "--out", str(tmp_path / "file")]) == 2
    assert sentence("recording.is_there_already") in capsys.readouterr().err
    assert main([str(run), "--node", "nobody"]) == 2
    assert "known: listener, talker, all" in capsys.readouterr().err
    assert main([str(run), "--speed", "1000"]) == 0


def test_the_recorders_own_views_of_a_message_do_not_stand_in_for_it() -> None:
    data = b'{"_envelope":{"topic":"robot/state","source":"d","seq":1,"published_ns":1}}'
    own = BagMessage("robot/state", "RobotState", 1, data)
    view = replace(own, topic="transforms", schema="foxglove.FrameTransforms")
    inputs = Inputs()
    inputs.add(own)
    inputs.add(view)
    assert inputs.recorded("robot/state:d:1") is own


def test_one_forged_stamp_is_passed_over_with_a_sentence_and_holds_up_nothing_behind_it() -> None:
    told: list[str] = []
    pace = ReplayPace(1000.0, TimeLine(0, 60.0, told.append))
    for stamp_s in (1, 2, 10**9, 3, 4):  # waited for as it is, the third would take eleven days
        pace.wait(stamp_s * 10**9)
    later, earlier = told
    assert later.startswith(
        f"{sentence('recording.next_message', at_s='2.000')} 999999998.000 s later; going on at once"
    )
    assert "999999997.000 s earlier" in earlier


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--virtual"], sentence("recording.runs_again", option="--virtual")),
        (["--set", "talker.start=5"], sentence("recording.runs_again", option="--set")),
        (["--out", "x"], sentence("recording.runs_again", option="--out")),
        (["--json"], sentence("recording.shown_without_result")),
        (["--summary", "--node", "talker"], sentence("recording.summary_runs_nothing")),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "run.mcap"), *options]) == 2
    assert said in capsys.readouterr().err


def test_a_difference_is_told_with_what_has_changed_since(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_main(["hello", "--virtual", "--for", "2", "--record", str(tmp_path / "run.mcap")]) == 0
    source, old = BagReader(tmp_path / "run.mcap"), tmp_path / "old.mcap"
    about = source.metadata["run"] | {"machine": "desk: Linux", "versions": '{"numpy":"0.1"}', "git": "1234567"}
    writer = BagWriter(old, about)
    writer.attach("launch.toml", "application/toml", source.attachments["launch.toml"])
    for message in source:
        writer.copy(message)
    writer.close({"blas": "Z80"})
    capsys.readouterr()
    assert main([str(old), "--node", "talker"]) == 0
    assert "!" not in capsys.readouterr().out  # it was the same all the same
    assert main([str(old), "--node", "talker", "--set", "talker.start=50"]) == 1
    told = capsys.readouterr().out
    assert "differs: message 1 (beat:talker:1 at 0.000000 s) differs in count" in told
    assert "! the run was made on desk: Linux; this is " in told
    assert f"{sentence('recording.another_kernel', kernel='Z80')} " in told
    assert "set OPENBLAS_CORETYPE=Z80" in told
    assert "! other packages: numpy 0.1 then, " in told


def test_a_longest_gap_that_is_no_time_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "run.mcap"), "--longest-gap", "-1"]) == 2
    assert sentence("recording.positive_seconds") in capsys.readouterr().err
