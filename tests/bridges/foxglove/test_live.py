"""A client that speaks Foxglove's protocol sees a running graph, and may press the emergency stop with the token."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from websockets import Subprotocol
from websockets.sync.client import connect

from tests.support.sentences import sentence

pytest.importorskip("foxglove", reason="needs the extra foxglove")

from jsonschema import Draft202012Validator

from bridges.foxglove.command import main
from nodes.mcap.file import BagWriter
from nodes.msgs import Utterance
from nodes.recording.foxglove.schemas import SCHEMAS
from nodes.recording.foxglove.typed_topics import TOPICS
from nodes.terminal.say import main as say
from runtime.command_line.attach import Sender, attach
from runtime.message import Envelope, Message, Stamped
from tests.support.guard.guarded_nodes import GUARDED
from tests.support.running import Runs

LAUNCH = GUARDED + '\n[nodes.painter]\nuse = "tests.bridges.foxglove.painter:Painter"\n'


class Viewer(ExitStack):
    """What Foxglove's own viewer says and hears: subscribe, message data, service calls. A context manager."""

    def __init__(self, url: str) -> None:
        super().__init__()
        protocol = Subprotocol("foxglove.sdk.v1")
        self.socket = self.enter_context(connect(url, subprotocols=[protocol], max_size=None))
        self.channels: dict[str, dict[str, Any]] = {}
        self.services: dict[str, int] = {}
        self.came: dict[int, list[bytes]] = {}  # payloads that nobody has asked for yet

    def until(self, is_it: Any) -> Any:
        """The first thing said that is it; what is advertised on the way is remembered."""
        while True:
            said = self.socket.recv(timeout=30)
            if isinstance(said, str):
                told = json.loads(said)
                if told["op"] == "advertise":
                    self.channels |= {one["topic"]: one for one in told["channels"]}
                elif told["op"] == "advertiseServices":
                    self.services |= {one["name"]: one["id"] for one in told["services"]}
                said = told
            elif said[0] == 1:
                self.came.setdefault(struct.unpack_from("<I", said, 1)[0], []).append(said[13:])
            if (found := is_it(said)) is not None:
                return found

    def subscribe(self, topic: str) -> int:
        """Begin to hear a topic; its number."""
        while topic not in self.channels:
            self.until(lambda _: True)
        number = int(self.channels[topic]["id"])
        subscription = {"op": "subscribe", "subscriptions": [{"id": number, "channelId": number}]}
        self.socket.send(json.dumps(subscription))
        return number

    def first_of(self, topic: str) -> bytes:
        """The payload of the next message of a topic."""
        return self.next_of(self.subscribe(topic))

    def next_of(self, number: int) -> bytes:
        """The payload of the next message of a topic, by its number."""

        while not self.came.get(number):
            self.until(lambda _: True)
        return self.came[number].pop(0)

    def call(self, service: str, request: dict[str, str]) -> tuple[bool, str]:
        """Whether the service did it, and what it said."""
        while service not in self.services:
            self.until(lambda _: True)
        head = b"\x02" + struct.pack("<III", self.services[service], 7, 4) + b"json"
        self.socket.send(head + json.dumps(request).encode())

        def answer(said: Any) -> tuple[bool, str] | None:
            if isinstance(said, bytes) and said[0] == 3:
                length = struct.unpack_from("<I", said, 9)[0]
                return True, said[13 + length :].decode()
            if isinstance(said, dict) and said["op"] == "serviceCallFailure":
                return False, str(said["message"])
            return None

        done, text = self.until(answer)
        return bool(done), str(text)


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the view has complained of so far."""
    return tmp_path_factory.mktemp("view") / "complaints"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, complaints: Path) -> Iterator[tuple[str, str]]:
    """A run, and the address and token of its view."""
    file = tmp_path_factory.mktemp("graph") / "graph.toml"  # before `Runs` takes the folder for temporary files
    file.write_text(LAUNCH)
    with complaints.open("w") as stderr, pytest.MonkeyPatch.context() as patch, Runs(patch) as runs:
        runs.start(file)
        layout = file.with_name("layout.json")
        view = subprocess.Popen(
            [sys.executable, "-m", "bridges.foxglove", "--port", "0", "--stop", "--layout", str(layout)],
            stdout=subprocess.PIPE, stderr=stderr, text=True, env=os.environ.copy(), cwd=Path(__file__).parents[3],
        )  # fmt: skip
        assert view.stdout is not None
        try:
            assert "layout.json" in view.stdout.readline()
            panels = json.loads(layout.read_text())
            assert "head/image" in json.dumps(panels), "the camera of this run has a panel"
            address = view.stdout.readline().rpartition(" ")[2].strip()
            token = re.search(r'"token": "([^"]+)"', view.stdout.readline())
            assert token is not None
            yield address, token[1]
        finally:
            view.terminate()
            assert view.wait(30) == 0
            view.stdout.close()


def first_of(address: str, topic: str) -> bytes:
    with Viewer(address) as viewer:
        return viewer.first_of(topic)


@pytest.mark.processes
def test_a_viewer_sees_joints_pictures_transforms_and_messages(served: tuple[str, str]) -> None:
    images = pytest.importorskip("foxglove_schemas_protobuf.CompressedImage_pb2")
    image = images.CompressedImage.FromString(first_of(served[0], "head/image"))
    pixels = cv2.imdecode(np.frombuffer(image.data, np.uint8), cv2.IMREAD_COLOR)
    assert pixels is not None
    assert pixels.shape == (12, 16, 3)
    assert (image.frame_id, image.format) == ("head", "jpeg")
    joints = json.loads(first_of(served[0], "joints"))["joints"]
    assert [joint["name"] for joint in joints[:2]] == ["lift", "arm"]
    tree = json.loads(first_of(served[0], "transforms"))["transforms"]
    pairs = {(one["parent_frame_id"], one["child_frame_id"]) for one in tree}
    assert {("odometry", "base"), ("base", "lift"), ("head_tilt", "head"), ("wrist_roll", "wrist")} <= pairs
    state = json.loads(first_of(served[0], "guard/state"))
    assert state["mode"] == "disarmed"
    assert state["_envelope"]["source"] == "guard"


@pytest.mark.processes
def test_live_and_recorded_look_alike(served: tuple[str, str]) -> None:
    with Viewer(served[0]) as viewer:
        viewer.first_of("transforms")
        shown = {name: one["schemaName"] for name, one in viewer.channels.items() if name in TOPICS}
        assert shown == TOPICS
        for topic in ("robot_description", "scene/robot", "scene/guard", "head/image/calibration"):
            document, schema = json.loads(viewer.first_of(topic)), json.loads(viewer.channels[topic]["schema"])
            Draft202012Validator(schema).validate(document)
            assert schema == json.loads(SCHEMAS[viewer.channels[topic]["schemaName"]]), "as a recording has it"
            if topic == "scene/robot":
                links = {one["id"]: one for one in document["entities"]}
                assert links["lift"]["frame_id"] == "lift"
                assert links["lift"]["cubes"]


@pytest.mark.processes
def test_parameters_can_be_read_and_not_set(served: tuple[str, str]) -> None:
    with Viewer(served[0]) as viewer:

        def values(said: Any) -> dict[str, Any] | None:
            is_it = isinstance(said, dict) and said["op"] == "parameterValues"
            return {one["name"]: one.get("value") for one in said["parameters"]} if is_it else None

        viewer.socket.send(json.dumps({"op": "getParameters", "parameterNames": [], "id": "all"}))
        known = viewer.until(values)
        assert known["/robot_description"].startswith("<robot")
        assert known["guard.memory"] == "run"
        change = [{"name": "guard.memory", "value": "machine"}]
        viewer.socket.send(json.dumps({"op": "setParameters", "parameters": change, "id": "one"}))
        assert viewer.until(values)["guard.memory"] == "run"


@pytest.mark.long
@pytest.mark.processes
def test_a_viewer_that_never_reads_holds_nobody_up(served: tuple[str, str]) -> None:
    with Viewer(served[0]) as deaf, Viewer(served[0]) as viewer:
        while not {"head/image", "guard/state", "robot/state"} <= deaf.channels.keys():
            deaf.until(lambda _: True)
        numbers = [{"id": one["id"], "channelId": one["id"]} for one in deaf.channels.values()]
        deaf.socket.send(json.dumps({"op": "subscribe", "subscriptions": numbers}))
        first = json.loads(viewer.first_of("robot/state"))["read_ns"]

        def is_later(said: Any) -> bool | None:
            return True if isinstance(said, bytes) and json.loads(said[13:])["read_ns"] > first + 10**9 else None

        assert viewer.until(is_later), "another one sees the robot for a second more"


class Gesture(Message):
    """What a node of a newer version says on `heard`."""

    hand: int


@pytest.mark.processes
def test_a_topic_whose_type_changed_is_a_sentence_and_the_view_goes_on(
    served: tuple[str, str], complaints: Path
) -> None:
    with Viewer(served[0]) as viewer:
        words = viewer.subscribe("heard")
        viewer.first_of("guard/state")  # from here on it is subscribed
        newer = Sender(attach(None), "heard", provenance="person")
        for _ in range(2):
            newer.publish(Gesture(hand=2))
        newer.close()
        assert say(["Good", "evening", "--by", "Ann", "--wait", "0.2"]) == 0
        assert json.loads(viewer.next_of(words))["text"] == "Good evening"
        (line,) = [one for one in complaints.read_text().splitlines() if "heard" in one]
        assert line.startswith("! heard: ")
        assert line.endswith("; not shown")


@pytest.mark.processes
def test_words_that_somebody_types_are_seen(served: tuple[str, str]) -> None:
    with Viewer(served[0]) as viewer:
        words, talk = viewer.subscribe("heard"), viewer.subscribe("log/conversation")
        viewer.first_of("guard/state")  # from here on it is subscribed
        assert say(["Good", "morning", "--by", "Ann", "--wait", "0.2"]) == 0
        assert json.loads(viewer.next_of(words))["text"] == "Good morning"
        assert "Good morning" in json.loads(viewer.next_of(talk))["message"]


@pytest.mark.processes
def test_a_stop_from_the_viewer_is_said_by_a_person(served: tuple[str, str]) -> None:
    with Viewer(served[0]) as viewer:
        event = viewer.subscribe("events")
        is_done, said = viewer.call("stop", {"token": served[1]})
        assert is_done, said
        facts = {fact["key"]: fact["value"] for fact in json.loads(viewer.next_of(event))["metadata"]}
        assert (facts["depth"], facts["text"]) == ("stop", "Stop!")


@pytest.mark.processes
def test_the_emergency_stop_needs_the_token_and_latches(served: tuple[str, str]) -> None:
    with Viewer(served[0]) as viewer:
        is_done, said = viewer.call("estop", {"token": "guessed"})
        assert not is_done
        assert "is not the one" in said
        is_done, said = viewer.call("estop", {"token": served[1]})
        assert is_done, said
        viewer.first_of("guard/state")

        def latched(said: Any) -> bool | None:
            return True if isinstance(said, bytes) and json.loads(said[13:])["estop"] else None

        assert viewer.until(latched)


def test_the_layout_that_lies_beside_its_page_is_the_one_that_is_written() -> None:
    from bridges.foxglove.layout import layout

    file = Path(__file__).parents[3] / "docs" / "foxglove-layout.json"
    assert json.loads(file.read_text()) == json.loads(layout(["head/image", "room/image"]))


def test_a_recording_is_opened_without_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bag = BagWriter(tmp_path / "run.mcap", {})
    bag.write(Stamped(Utterance(speaker="robot", text="yes"), Envelope("said", "robot", 1, 5)))
    bag.close()
    layout = tmp_path / "layout.json"
    assert main([str(tmp_path / "run.mcap"), "--layout", str(layout)]) == 0
    assert "Open local file" in capsys.readouterr().out
    assert "scene/robot" in layout.read_text()
    assert main([str(tmp_path / "run.mcap"), "--layout", str(tmp_path / "no" / "folder.json")]) == 2
    assert sentence("bridges.another_place") in capsys.readouterr().err
    assert main([str(layout)]) == 1
