"""A recording stands in for any of its nodes while the others live, in virtual and in real time."""

from __future__ import annotations

import json
import re
import shlex
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodes.interrupts.reflex import Reflex
from nodes.mcap.file import BagReader, BagWriter
from nodes.recording.bag.command import main as bag_main
from nodes.recording.replay.command import main
from nodes.recording.replay.played import Played, played
from nodes.sim.camera import SimCamera
from nodes.sim.people.person import ScenarioPerson
from runtime.abilities import believes, role_of
from runtime.clock import to_ns
from runtime.commands.run import main as run_main
from runtime.node import ports_of
from runtime.ports import Publisher
from tests.support.sentences import sentence

CAMERAS = ("head_camera", "wrist_camera", "room_camera")
IMAGES = ("head/image", "wrist/image", "room/image")

SMALL = """
[nodes.source]
use = "tests.nodes.recording.replay.threaded_nodes:Source"

[nodes.racer]
use = "tests.nodes.recording.replay.threaded_nodes:Racer"
params = { ticks = 100 }

[nodes.recorder]
use = "nodes.recording.recorder:Recorder"
"""


def rows(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """By topic what each message was, when, and what it stems from; not what nodes tell of themselves."""
    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for message in BagReader(path):
        if not message.topic.startswith(("health/", "calls/")) and message.topic != "log":
            about = message.envelope
            found[message.topic].append(
                (about.ident, about.published_ns, about.begun_ns("image"), about.cause, message.document)
            )
    return dict(found)


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("laptop")
    run_main(
        ["laptop", "--virtual", "--seed", "7", "--for", "4", "--out", str(folder), "--set", "run.report=", "--json"]
    )
    return folder / "run.mcap"


def replay(recording: Path, folder: Path, *options: str) -> dict[str, list[tuple[Any, ...]]]:
    assert main([str(recording), *options, "--virtual", "--out", str(folder), "--json"]) == 0
    return rows(folder / "run.mcap")


@pytest.mark.long
def test_recorded_images_in_place_of_cameras_change_nothing(
    laptop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [word for name in CAMERAS for word in ("--in-place-of", name)]
    then, now = rows(laptop), replay(laptop, tmp_path, *options)
    assert then.keys() == now.keys()
    assert [topic for topic in then if then[topic] != now[topic]] == []
    assert set(IMAGES) <= then.keys()
    compare = json.loads(capsys.readouterr().out)["compare"]
    assert bag_main(shlex.split(compare)[2:]) == 0
    assert re.fullmatch(r"identical: \d{3,} messages\n", capsys.readouterr().out)


@pytest.mark.long
@pytest.mark.parametrize("name", ["policy", "guard", "reflex", "collaborator", "ladder", "shadow_compare"])
def test_whoever_is_played_has_their_say_in_the_order_that_they_had(laptop: Path, tmp_path: Path, name: str) -> None:
    then, now = rows(laptop), replay(laptop, tmp_path, "--in-place-of", name)
    assert [topic for topic in then if then[topic] != now[topic]] == []


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


def test_somebody_says_stop_who_did_not_and_until_then_all_is_as_it_was(laptop: Path, tmp_path: Path) -> None:
    then = rows(laptop)
    now = replay(laptop, tmp_path, "--in-place-of", "collaborator", "--say", "3.205 | Alex | Stop")
    for topic, found in then.items():
        before = [row for row in found if row[1] < to_ns(3.2)]
        assert [row for row in now[topic] if row[1] < to_ns(3.2)] == before, topic
    (stop,) = [row[4] for row in now["interrupt"] if row[1] > to_ns(3.2)]
    assert (stop["depth"], stop["by"]) == ("stop", "Alex")
    assert now["guard/state"][-1][4]["mode"] == "stopped" != then["guard/state"][-1][4]["mode"]


@pytest.mark.parametrize(
    "line", ["Stop", "soon | Sam | Stop", "-1 | Sam | Stop", "3 | Sam", "3 | | Stop", "nan | Sam | Stop"]
)
def test_a_line_that_cannot_be_said_is_refused(
    line: str, laptop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--live", "planner,vlm", "--virtual", "--out", str(tmp_path)]
    assert main([str(laptop), *options, f"--say={line}"]) == 2
    assert sentence("recording.line_expected") in capsys.readouterr().err
    assert main([str(laptop), f"--say={line}"]) == 2
    assert sentence("recording.say_needs_live") in capsys.readouterr().err


def test_a_stand_in_has_the_ports_of_its_original_and_no_others() -> None:
    stand_in = played(SimCamera)
    assert issubclass(stand_in, Played)
    assert played(SimCamera) is stand_in
    assert [port.topic for port in ports_of(stand_in, Publisher).values()] == ["head/image"]


def test_who_stands_in_for_people_or_lifts_stops_is_believed_as_the_original_was() -> None:
    for original in (SimCamera, ScenarioPerson, Reflex):
        stand_in = played(original)
        assert (role_of(stand_in), believes(stand_in)) == (role_of(original), believes(original))
    assert role_of(played(ScenarioPerson)) == "ears"
    assert (role_of(played(Reflex)), believes(played(Reflex))) == ("lifter", "ears")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--in-place-of", "nobody"], f"--in-place-of nobody: {sentence('recording.no_such_node')} "),
        (["--live", "nobody"], f"--live nobody: {sentence('recording.no_such_node')} "),
        (["--live", "policy", "--node", "policy"], "give one of them"),
    ],
)
def test_what_cannot_be_played_is_refused(
    laptop: Path, tmp_path: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(laptop), *options, "--virtual", "--out", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second of the small graph."""
    folder = tmp_path_factory.mktemp("small")
    launch = folder / "small.toml"
    launch.write_text(SMALL)
    run_main([str(launch), "--virtual", "--out", str(folder)])
    return folder / "run.mcap"


def halted(recording: Path, path: Path, *, at_s: float, for_s: float) -> Path:
    """The same run, in which everything stood still for a time, as when a machine is put to sleep."""
    source = BagReader(recording)
    writer = BagWriter(path, source.metadata["run"], wall_offset_ns=source.wall_offset_ns)
    for name, data in source.attachments.items():
        writer.attach(name, "application/toml", data)
    for message in source:
        if message.log_time_ns - source.wall_offset_ns > to_ns(at_s):
            document = json.loads(message.data)
            document["_envelope"]["published_ns"] += to_ns(for_s)
            message = replace(
                message, data=json.dumps(document).encode(), log_time_ns=message.log_time_ns + to_ns(for_s)
            )
        writer.copy(message)
    writer.close({"ended_ns": str(to_ns(1.0 + for_s))})
    return path


def values(path: Path, topic: str = "level") -> list[float]:
    return [row[4]["value"] for row in rows(path)[topic]]


def test_a_time_in_which_nobody_spoke_is_passed_over_and_told(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slept = halted(small, tmp_path / "slept.mcap", at_s=0.5, for_s=5000.0)
    now = replay(slept, tmp_path / "now", "--in-place-of", "source", "--longest-gap", "3")
    told = capsys.readouterr().err
    assert told.count("going on at once (--longest-gap 3)") == 1
    assert f"{sentence('recording.next_message', at_s='0.500')} 5000." in told
    assert [row[4]["value"] for row in now["level"]] == values(small)
    assert max(row[1] for row in now["level"]) < to_ns(1.0)
    assert 90 < len(now["answer"]) <= 100  # the other node lived for a second, not for an hour and a half


def test_a_stamp_from_another_time_holds_up_nothing_behind_it(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, forged = BagReader(small), tmp_path / "forged.mcap"
    writer = BagWriter(forged, source.metadata["run"], wall_offset_ns=source.wall_offset_ns)
    writer.attach("launch.toml", "application/toml", source.attachments["launch.toml"])
    for message in source:
        if message.topic == "level" and message.envelope.seq == 30:
            document = json.loads(message.data)
            document["_envelope"]["published_ns"] = to_ns(3e9)
            message = replace(
                message, data=json.dumps(document).encode(), log_time_ns=to_ns(3e9) + source.wall_offset_ns
            )
        writer.copy(message)
    writer.close()
    now = replay(forged, tmp_path / "now", "--in-place-of", "source")
    assert [row[4]["value"] for row in now["level"]] == values(small)
    assert max(row[1] for row in now["level"]) < to_ns(1.0)
    assert capsys.readouterr().err.count("going on at once") == 2  # forth and back


def test_a_replay_can_be_replayed_itself(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replay(small, tmp_path / "one", "--in-place-of", "source", "--set", "racer.gain=2.0")
    again = tmp_path / "one" / "run.mcap"
    capsys.readouterr()
    assert main([str(again), "--node", "all", "--json"]) == 0  # the value that was set then is known now
    (result,) = json.loads(capsys.readouterr().out)["nodes"]
    assert (result["node"], result["is_exact"]) == ("racer", True)
    assert main([str(again), "--node", "source"]) == 2
    assert "source: was played from a recording in this run" in capsys.readouterr().err
    small_too = small.rename(tmp_path / "gone.mcap")  # nothing but the second recording is needed
    try:
        then, now = rows(again), replay(again, tmp_path / "two", "--in-place-of", "source")
    finally:
        small_too.rename(small)
    assert then == now
    assert replay(again, tmp_path / "three", "--live", "source")["level"]  # and the original may live again


def test_a_cut_is_played_from_where_it_begins(small: Path, tmp_path: Path) -> None:
    piece = tmp_path / "piece.mcap"
    assert bag_main(["cut", str(small), "--from", "0.3", "--to", "0.7", "--out", str(piece)]) == 0
    now = replay(piece, tmp_path / "now", "--in-place-of", "source")
    assert [row[4]["value"] for row in now["level"]] == values(piece)
    assert max(row[1] for row in now["level"]) <= to_ns(0.4)
    assert max(row[1] for row in now["answer"]) <= to_ns(0.4)


def test_a_recorder_of_a_ring_records_the_replay_all_the_same(small: Path, tmp_path: Path) -> None:
    now = replay(small, tmp_path / "now", "--in-place-of", "source", "--set", "recorder.ring_s=5.0")
    assert [row[4]["value"] for row in now["level"]] == values(small)


def test_a_node_that_was_added_is_there_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launch = tmp_path / "small.toml"
    launch.write_text(SMALL)
    added = ["--add", "talker=nodes.hello:Talker", "--set", "talker.start=40"]
    run_main([str(launch), "--virtual", "--out", str(tmp_path), *added])
    capsys.readouterr()
    assert main([str(tmp_path / "run.mcap"), "--node", "talker"]) == 0
    assert sentence("recording.bit_for_bit") in capsys.readouterr().out


@pytest.mark.processes
def test_played_processes_pass_over_a_silence_together(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slept = halted(small, tmp_path / "slept.mcap", at_s=0.5, for_s=5000.0)
    played = ["--in-place-of", "source", "--in-place-of", "racer", "--out", str(tmp_path / "now"), "--json"]
    assert main([str(slept), *played]) == 0
    then, now = rows(small), rows(tmp_path / "now" / "run.mcap")
    for topic in ("level", "answer"):
        said = [row[4]["value"] for row in now[topic]]
        assert said == [row[4]["value"] for row in then[topic]][: len(said)]
        assert len(said) > 0.6 * len(then[topic])  # past the silence


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
