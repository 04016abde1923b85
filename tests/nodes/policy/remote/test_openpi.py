"""openpi's websocket protocol, against a server that answers with bytes of openpi's own client (openpi-client 0.1.2).

The package itself wants numpy below 2, so it is not installed here. Each constant is what its `msgpack_numpy.packb`
gave for the value in the comment behind it.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from websockets.sync.server import ServerConnection, serve

from nodes.policy.onnx.adopt import main as policy
from nodes.policy.onnx.inputs import Felt
from nodes.policy.onnx.tensors import CAMERAS
from nodes.policy.remote.gr00t import unpack as unpack_of_gr00t
from nodes.policy.remote.openpi import OpenPiPolicy, OpenPiSession, pack, unpack
from nodes.policy.remote.policy import RemotePolicy
from runtime import Simulation
from runtime.clock import SystemClock
from runtime.errors import ParameterError, PolyrhythmError, UserError
from runtime.launch.file import load
from tests.support.guard.driving import SIMULATED, driver_and_guard
from tests.support.sentences import pattern, sentence

pytestmark = pytest.mark.processes

GREETING = b64decode("gaVyb2JvdKdzdHJldGNo")  # {"robot": "stretch"}
OBSERVATION = b64decode(
    "g7FvYnNlcnZhdGlvbi9pbWFnZYTEC19fbmRhcnJheV9fw8QEZGF0YcQMAAECAwQFBgcICQoLxAVkdHlwZaN8dTHEBXNoYXBlkwICA7FvYnNlcnZh"
    "dGlvbi9zdGF0ZYTEC19fbmRhcnJheV9fw8QEZGF0YcQgAAAAAM3MzD3NzEw+mpmZPs3MzD4AAAA/mpkZPzMzMz/EBWR0eXBlozxmNMQFc2hhcGWR"
    "CKZwcm9tcHSzcGljayB1cCB0aGUgcmVkIGN1cA=="
)  # np.arange(12, dtype=np.uint8).reshape(2, 2, 3), np.arange(8, dtype=np.float32) / 10, "pick up the red cup"
ANSWER = b64decode(
    "gqdhY3Rpb25zhMQLX19uZGFycmF5X1/DxARkYXRhxHgAAAAACtcjPArXozyPwvU8CtcjPc3MTD2PwnU9KVyPPQrXoz3sUbg9zczMPa5H4T2PwvU9"
    "uB4FPilcDz6amRk+CtcjPnsULj7sUTg+XI9CPs3MTD49Clc+rkdhPh+Faz6PwnU+AACAPrgehT5xPYo+KVyPPuF6lD7EBWR0eXBlozxmNMQFc2hh"
    "cGWSAwqtc2VydmVyX3RpbWluZ4GoaW5mZXJfbXPLQCkAAAAAAAA="
)  # {"actions": (np.arange(30, dtype=np.float32) / 100).reshape(3, 10), "server_timing": {"infer_ms": 12.5}}
JOINTS_ALONE = b64decode(
    "gadhY3Rpb25zhMQLX19uZGFycmF5X1/DxARkYXRhxMAAAAAAAADQPwAAAAAAANA/AAAAAAAA0D8AAAAAAADQPwAAAAAAANA/AAAAAAAA0D8AAAAA"
    "AADQPwAAAAAAANA/AAAAAAAA0D8AAAAAAADQPwAAAAAAANA/AAAAAAAA0D8AAAAAAADQPwAAAAAAANA/AAAAAAAA0D8AAAAAAADQPwAAAAAAANA/"
    "AAAAAAAA0D8AAAAAAADQPwAAAAAAANA/AAAAAAAA0D8AAAAAAADQPwAAAAAAANA/AAAAAAAA0D/EBWR0eXBlozxmOMQFc2hhcGWSAwg="
)  # {"actions": np.full((3, 8), 0.25)}

NAMES = {"image": "observation/image", "wrist": "", "joints": "observation/state", "text": "prompt"}
SEEN = {"image": np.arange(12, dtype=np.uint8).reshape(2, 2, 3)}
FELT = Felt(tuple(np.arange(8) / 10), text="pick up the red cup")

Answers = Callable[[bytes], "bytes | str | None"]


@contextmanager
def serving(answers: Answers) -> Iterator[str]:
    """A server that greets and answers like openpi's; None: it keeps silent."""
    is_over = threading.Event()

    def talk(connection: ServerConnection) -> None:
        connection.send(GREETING)
        for question in connection:
            assert isinstance(question, bytes)
            answer = answers(question)
            if answer is None:
                is_over.wait(10.0)
                return
            connection.send(answer)

    with serve(talk, "127.0.0.1", 0, compression=None, max_size=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            is_over.set()
            server.shutdown()
            thread.join()


def asked(
    answers: Answers, *, within_s: float = 5.0, size_px: int = 2
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    with serving(answers) as place:
        session = OpenPiSession(place, NAMES, size_px=size_px, within_s=within_s)
        try:
            return session.run(SEEN, FELT).chunk
        finally:
            session.close()


def test_what_is_sent_and_read_is_byte_for_byte_what_openpi_s_own_client_packs() -> None:
    questions: list[bytes] = []

    def answers(question: bytes) -> bytes:
        questions.append(question)
        return ANSWER

    chunk = asked(answers)
    assert questions == [OBSERVATION]
    assert chunk == pytest.approx((np.arange(30) / 100).reshape(3, 10), abs=1e-7)


def test_a_connection_serves_many_questions_and_actions_of_the_joints_leave_the_base_alone() -> None:
    with serving(lambda _: JOINTS_ALONE) as place:
        session = OpenPiSession(place, NAMES, size_px=2, within_s=5.0)
        for _ in range(3):
            chunk = session.run(SEEN, FELT).chunk
        session.close()
    assert (chunk[:, :8] == 0.25).all()
    assert (chunk[:, 8:] == 0.0).all()


def test_images_of_four_cameras_go_into_a_dictionary_of_their_own_with_their_channels_first() -> None:
    questions: list[dict[str, Any]] = []

    def answers(question: bytes) -> bytes:
        asked: Any = unpack(question)
        questions.append(asked)
        return ANSWER

    names = {"image": "cam_high", "wrist": "cam_left_wrist", "camera_3": "cam_right_wrist", "camera_4": "cam_low",
             "joints": "state", "text": "prompt"}  # fmt: skip
    seen = {camera: np.full((2, 2, 3), (shade, 0, 1), np.uint8) for shade, camera in enumerate(CAMERAS)}
    with serving(answers) as place:
        session = OpenPiSession(place, names, size_px=0, within_s=5.0, images_name="images", channels_first=True)
        session.run(seen, FELT)
        session.close()
    [asked] = questions
    assert asked.keys() == {"images", "state", "prompt"}
    assert asked["images"].keys() == {"cam_high", "cam_left_wrist", "cam_right_wrist", "cam_low"}
    assert asked["images"]["cam_low"].tolist() == [[[3, 3], [3, 3]], [[0, 0], [0, 0]], [[1, 1], [1, 1]]]


def test_an_image_is_made_square_and_not_stretched() -> None:
    sizes: list[object] = []

    def answers(question: bytes) -> bytes:
        image = msgpack.unpackb(question)["observation/image"]
        pixels = np.frombuffer(image[b"data"], np.uint8).reshape(image[b"shape"])
        sizes.append((pixels.shape, pixels[0].max(), pixels[112].min(), pixels[-1].max()))
        return ANSWER

    with serving(answers) as place:
        session = OpenPiSession(place, NAMES, size_px=224, within_s=5.0)
        session.run({"image": np.full((240, 320, 3), 200, np.uint8)}, FELT)
        session.close()
    assert sizes == [((224, 224, 3), 0, 200, 0)]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("Traceback ...\nValueError: no such key: state", "failed: ValueError: no such key: state"),
        (b"\xc1", sentence("policy.no_answer", server="openpi")),
        (ANSWER[:-20], sentence("policy.no_answer", server="openpi")),
        (msgpack.packb({"chunk": 1}), sentence("policy.gave_no_actions", what="chunk")),
        (msgpack.packb([1]), sentence("policy.gave_no_actions", what="list")),
        (msgpack.packb({"actions": "go"}), r"actions of shape \(\)"),
        (pack({"actions": np.zeros((3, 7))}), pattern("policy.steps_expected", shape=r"\(3, 7\)")),
        (pack({"actions": np.zeros((0, 8))}), r"shape \(0, 8\)"),
        (msgpack.packb({"actions": {b"__ndarray__": True, b"data": b"x", b"dtype": "|O", b"shape": [1]}}), "not taken"),
    ],
)
def test_an_answer_that_is_none_is_refused_in_a_sentence(answer: bytes | str, why: str) -> None:
    with pytest.raises(PolyrhythmError, match=why):
        asked(lambda _: answer)


def test_a_late_answer_is_never_taken_for_the_answer_to_a_later_question() -> None:
    held: list[bytes] = []

    def answers(question: bytes) -> bytes | None:
        held.append(question)
        return None if len(held) == 1 else ANSWER

    with serving(answers) as place:
        session = OpenPiSession(place, NAMES, size_px=2, within_s=1.0)
        with pytest.raises(PolyrhythmError, match=pattern("policy.did_not_answer", seconds=1)):
            session.run(SEEN, FELT)
        assert len(session.run(SEEN, FELT).chunk) == 3
        session.close()


def test_a_server_that_is_not_there_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        place = f"ws://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(PolyrhythmError, match="cannot be asked"):
        OpenPiSession(place, NAMES, size_px=2, within_s=1.0).run(SEEN, FELT)


def test_numbers_that_are_not_finite_pass_here_and_are_dropped_by_the_policy() -> None:
    chunk = asked(lambda _: pack({"actions": np.full((2, 8), np.nan)}))
    assert np.isnan(chunk[:, :8]).all()


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ("127.0.0.1:8000", sentence("policy.address_like", address="ws://127.0.0.1:8000")),
        (
            "ws://gpu:8000",
            sentence("policy.anybody_could_answer", remedy="use wss://, or ssh -L 8000:localhost:8000 gpu"),
        ),
        ("ws://[", "expected an address"),
    ],
)
def test_a_place_that_cannot_be_trusted_is_refused_at_check(server: str, why: str) -> None:
    (problem,) = OpenPiPolicy(server).problems()
    assert why in problem
    assert OpenPiPolicy("wss://gpu.example/policy").problems() == []


def test_in_virtual_time_it_is_refused() -> None:
    with pytest.raises(ParameterError, match=pattern("policy.real_robot")):
        Simulation(OpenPiPolicy("ws://127.0.0.1:8000")).run(seconds=0.1)


def test_arrays_come_back_as_they_were() -> None:
    value = unpack(pack({"a": np.arange(6, dtype=np.int16).reshape(2, 3)}))
    assert isinstance(value, dict)
    assert value["a"].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("key", [bytes, str])
def test_arrays_of_msgpack_numpy_are_read_and_none_of_objects_or_records(key: type) -> None:
    def packed(**fields: object) -> bytes:
        named = {name.encode() if key is bytes else name: value for name, value in fields.items()}
        return bytes(msgpack.packb(named))

    rows = np.arange(16.0).reshape(2, 8)
    array = packed(nd=True, type="<f8", kind=b"", shape=rows.shape, data=rows.tobytes())
    assert np.array_equal(np.asarray(unpack(array)), rows)
    assert np.array_equal(np.asarray(unpack_of_gr00t(array)), rows)
    assert unpack(packed(nd=False, type="<f4", data=np.float32(0.5).tobytes())) == 0.5
    for kind in ("|O", [["a", "<f8"]], "<U4", "<c16", "|V8"):
        with pytest.raises(ValueError, match="not taken"):
            unpack(packed(nd=True, type=kind, kind=b"", shape=(1,), data=b"12345678"))
    with pytest.raises(ValueError, match="reshape"):
        unpack(packed(nd=True, type="<f8", kind=b"", shape=(3,), data=b"12345678"))


def test_a_deadline_whose_answers_are_never_played_is_refused_and_the_rate_of_training_is_asked_for() -> None:
    problems = OpenPiPolicy("ws://127.0.0.1:8000", within_s=2.0).problems()
    told = [sentence("policy.deadline_over_budget", within="2", budget="1")]
    assert problems == told
    assert RemotePolicy("tcp://127.0.0.1:7500", within_s=2.0).problems() == told
    unstated = OpenPiPolicy("ws://127.0.0.1:8000").model_findings(is_timed=False)
    assert [level for level, _ in unstated] == ["note"]
    assert OpenPiPolicy("ws://127.0.0.1:8000", step_s=0.02).model_findings(is_timed=False) == []


LAUNCH = f"""
{driver_and_guard(SIMULATED, 'arm = "auto", memory = "run", max_image_age_s = 0.3')}
[nodes.head_camera]
use = "nodes.sim.camera:SimCamera"

[nodes.policy]
"""


@pytest.mark.parametrize(
    "served",
    [
        'use = "nodes.policy.remote.openpi:OpenPiPolicy"\nparams = { server = "ws://127.0.0.1:8000", within_s = 0.5 }',
        'use = "nodes.policy.remote.gr00t:Gr00tPolicy"\nparams = { server = "tcp://127.0.0.1:5555", within_s = 0.5 }',
        'use = "nodes.policy.remote.policy:RemotePolicy"\nparams = { server = "tcp://127.0.0.1:7500", within_s = 0.5 }',
    ],
)
def test_a_deadline_beyond_the_guards_image_age_is_refused_at_check(served: str, tmp_path: Path) -> None:
    file = tmp_path / "served.toml"
    file.write_text(LAUNCH + served)
    why = sentence("policy.deadline_over_age", within="0.5", age="0.3")
    told = [problem for node, problem in load(file).graph.problems() if node == "policy"]
    assert len(told) == 1
    assert told[0].startswith(why)
    file.write_text(LAUNCH + served.replace("0.5", "0.3"))
    graph = load(file).graph
    assert not [problem for node, problem in graph.problems() if node == "policy"]
    asks = [note for node, note in graph.notes() if node == "policy"]
    assert all(note.startswith(sentence("policy.step_is_not_stated")) for note in asks)
    assert len(asks) == ("RemotePolicy" not in served)


def test_a_server_is_tried_before_a_robot_stands_there(capsys: pytest.CaptureFixture[str]) -> None:
    questions: list[bytes] = []

    def answers(question: bytes) -> bytes:
        questions.append(question)
        return ANSWER

    with serving(answers) as place:
        assert policy(["try", place, "--set", "within_s=0.9", "--answers", "3"]) == 0
        told = capsys.readouterr().out
        assert policy(["try", place, "--set", "step_s=0.5", "--set", "within_s=0.9", "--json"]) == 0
    assert len(questions) == 4 + 6
    assert sentence("policy.would_be_played") in told
    assert sentence("policy.step_is_not_stated") in told
    found = json.loads(capsys.readouterr().out)
    assert (found["steps"], found["step_s"], found["within_s"], len(found["later_s"])) == (3, 0.5, 0.9, 5)
    assert (found["problems"], found["notes"]) == ([], [])


def test_a_trial_whose_answers_would_not_be_played_ends_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(lambda _: ANSWER) as place:
        assert policy(["try", place, "--set", "within_s=1e-9", "--answers", "2"]) == 1
    assert sentence("policy.took_longer_than_within", number=2, within="1e-09") in capsys.readouterr().out
    with serving(lambda _: pack({"actions": np.full((90, 8), np.nan)})) as place:
        assert policy(["try", place, "--json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert sentence("policy.answer_not_finite") in problem
    with serving(lambda _: msgpack.packb([1])) as place, pytest.raises(PolyrhythmError, match="expected actions"):
        policy(["try", place])


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (["127.0.0.1:8000"], sentence("policy.no_address_of_a_server")),
        (
            ["ws://127.0.0.1:8000", "--set", "within_s=2.0"],
            sentence("policy.deadline_over_budget", within="2", budget="1"),
        ),
    ],
)
def test_a_trial_that_is_asked_wrongly_asks_nobody(asked: list[str], why: str) -> None:
    with pytest.raises(UserError, match=re.escape(why)):
        policy(["try", *asked])
    with pytest.raises(UserError, match="within_ms"):
        policy(["try", "ws://127.0.0.1:8000", "--set", "within_ms=2"])


def test_a_cold_server_is_asked_once_before_its_robot_moves_and_is_given_longer_for_that() -> None:
    questions: list[bytes] = []

    def answers(question: bytes) -> bytes:
        questions.append(question)
        is_over.wait(0.3)  # longer than an answer may take
        return ANSWER

    is_over = threading.Event()
    with serving(answers) as place:
        node = OpenPiPolicy(place, within_s=0.05, size_px=8)
        node.clock = SystemClock()
        node.on_start()
        node.on_stop()
    assert len(questions) == 1
    asked = msgpack.unpackb(questions[0])
    assert asked["observation/image"][b"shape"] == [8, 8, 3]


def test_a_server_that_is_not_there_does_not_keep_a_run_from_beginning(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        place = f"ws://127.0.0.1:{closed.getsockname()[1]}"
    node = OpenPiPolicy(place)
    node.clock = SystemClock()
    node.on_start()
    node.on_stop()
    assert "not warm" in caplog.text
