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

pytest.importorskip("foxglove", reason="needs the extra foxglove")

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
            if (found := is_it(said)) is not None:
                return found

    def first_of(self, topic: str) -> bytes:
        """The payload of the next message of a topic."""
        while topic not in self.channels:
            self.until(lambda _: True)
        number = self.channels[topic]["id"]
        subscription = {"op": "subscribe", "subscriptions": [{"id": number, "channelId": number}]}
        self.socket.send(json.dumps(subscription))

        def payload(said: Any) -> bytes | None:
            is_data = isinstance(said, bytes) and said[0] == 1 and struct.unpack_from("<I", said, 1)[0] == number
            return said[13:] if is_data else None

        return bytes(self.until(payload))

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
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A run, and the address and token of its view."""
    file = tmp_path_factory.mktemp("graph") / "graph.toml"  # before `Runs` takes the folder for temporary files
    file.write_text(LAUNCH)
    with pytest.MonkeyPatch.context() as patch, Runs(patch) as runs:
        runs.start(file)
        layout = file.with_name("layout.json")
        view = subprocess.Popen(
            [sys.executable, "-m", "bridges.foxglove", "--port", "0", "--estop", "--layout", str(layout)],
            stdout=subprocess.PIPE, text=True, env=os.environ.copy(), cwd=Path(__file__).parents[3],
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
    joints = pytest.importorskip("foxglove_schemas_protobuf.JointStates_pb2")
    transforms = pytest.importorskip("foxglove_schemas_protobuf.FrameTransforms_pb2")
    image = images.CompressedImage.FromString(first_of(served[0], "head/image"))
    pixels = cv2.imdecode(np.frombuffer(image.data, np.uint8), cv2.IMREAD_COLOR)
    assert pixels is not None
    assert pixels.shape == (12, 16, 3)
    assert (image.frame_id, image.format) == ("head", "jpeg")
    names = [joint.name for joint in joints.JointStates.FromString(first_of(served[0], "joints")).joints]
    assert names[:2] == ["lift", "arm"]
    tree = transforms.FrameTransforms.FromString(first_of(served[0], "transforms")).transforms
    pairs = {(one.parent_frame_id, one.child_frame_id) for one in tree}
    assert pairs == {("odometry", "base"), ("base", "head"), ("base", "wrist")}
    state = json.loads(first_of(served[0], "guard/state"))
    assert state["mode"] == "disarmed"
    assert state["_envelope"]["source"] == "guard"


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
