"""GR00T's ZeroMQ protocol, against a server that answers with bytes of GR00T's own serialiser (Isaac GR00T N1.6/N1.7).

It is no package that installs without a GPU. Each constant is what `gr00t.policy.server_client.MsgSerializer.to_bytes`
gave for the value in the comment behind it.
"""

from __future__ import annotations

import io
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgpack
import numpy as np
import pytest
import zmq
from msgspec import structs

from nodes.policy.onnx.inputs import Felt
from nodes.policy.remote.gr00t import Gr00tPolicy, Gr00tSession, pack, unpack
from runtime import Simulation, to_ns
from runtime.errors import ParameterError, PolyrhythmError
from tests.support.sentences import pattern, sentence

pytestmark = pytest.mark.processes

ASKS_CONFIG = b64decode("gahlbmRwb2ludLNnZXRfbW9kYWxpdHlfY29uZmln")  # {"endpoint": "get_modality_config"}
CONFIG = b64decode(
    "hKV2aWRlb4K4X19Nb2RhbGl0eUNvbmZpZ19jbGFzc19fw6dhc19qc29uha1kZWx0YV9pbmRpY2VzkQCtbW9kYWxpdHlfa2V5c5GkaGVhZLZzaW5f"
    "Y29zX2VtYmVkZGluZ19rZXlzwLdtZWFuX3N0ZF9lbWJlZGRpbmdfa2V5c8CuYWN0aW9uX2NvbmZpZ3PApXN0YXRlgrhfX01vZGFsaXR5Q29uZmln"
    "X2NsYXNzX1/Dp2FzX2pzb26FrWRlbHRhX2luZGljZXORAK1tb2RhbGl0eV9rZXlzkaZqb2ludHO2c2luX2Nvc19lbWJlZGRpbmdfa2V5c8C3bWVh"
    "bl9zdGRfZW1iZWRkaW5nX2tleXPArmFjdGlvbl9jb25maWdzwKZhY3Rpb26CuF9fTW9kYWxpdHlDb25maWdfY2xhc3NfX8OnYXNfanNvboWtZGVs"
    "dGFfaW5kaWNlc5MAAQKtbW9kYWxpdHlfa2V5c5Kmam9pbnRzpGJhc2W2c2luX2Nvc19lbWJlZGRpbmdfa2V5c8C3bWVhbl9zdGRfZW1iZWRkaW5n"
    "X2tleXPArmFjdGlvbl9jb25maWdzkoSjcmVwqEFCU09MVVRFpHR5cGWnTk9OX0VFRqZmb3JtYXSnREVGQVVMVKlzdGF0ZV9rZXnAhKNyZXCoQUJT"
    "T0xVVEWkdHlwZadOT05fRUVGpmZvcm1hdKdERUZBVUxUqXN0YXRlX2tlecCobGFuZ3VhZ2WCuF9fTW9kYWxpdHlDb25maWdfY2xhc3NfX8OnYXNf"
    "anNvboWtZGVsdGFfaW5kaWNlc5EArW1vZGFsaXR5X2tleXOR2SFhbm5vdGF0aW9uLmh1bWFuLnRhc2tfZGVzY3JpcHRpb262c2luX2Nvc19lbWJl"
    "ZGRpbmdfa2V5c8C3bWVhbl9zdGRfZW1iZWRkaW5nX2tleXPArmFjdGlvbl9jb25maWdzwA=="
)  # video head of now, state joints of now, action joints and base of three frames, one text
QUESTION = b64decode(
    "gqhlbmRwb2ludKpnZXRfYWN0aW9upGRhdGGCq29ic2VydmF0aW9ug6V2aWRlb4GkaGVhZIKxX19uZGFycmF5X2NsYXNzX1/DpmFzX25wecSMk05V"
    "TVBZAQB2AHsnZGVzY3InOiAnfHUxJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDEsIDEsIDIsIDIsIDMpLCB9ICAgICAgICAg"
    "ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAQIDBAUGBwgJCgulc3RhdGWBpmpvaW50c4KxX19uZGFycmF5X2NsYXNz"
    "X1/DpmFzX25wecSgk05VTVBZAQB2AHsnZGVzY3InOiAnPGY0JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDEsIDEsIDgpLCB9"
    "ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAAAAzczMPc3MTD6amZk+zczMPgAAAD+amRk/"
    "MzMzP6hsYW5ndWFnZYHZIWFubm90YXRpb24uaHVtYW4udGFza19kZXNjcmlwdGlvbpGRs3BpY2sgdXAgdGhlIHJlZCBjdXCnb3B0aW9uc8A="
)  # np.arange(12, dtype=np.uint8) as (1, 1, 2, 2, 3), np.arange(8, dtype=np.float32) / 10, "pick up the red cup"
ANSWER = b64decode(
    "koKmam9pbnRzgrFfX25kYXJyYXlfY2xhc3NfX8OmYXNfbnB5xOCTTlVNUFkBAHYAeydkZXNjcic6ICc8ZjQnLCAnZm9ydHJhbl9vcmRlcic6IEZh"
    "bHNlLCAnc2hhcGUnOiAoMSwgMywgOCksIH0gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgCgAA"
    "AAAK1yM8CtejPI/C9TwK1yM9zcxMPY/CdT0pXI89CtejPexRuD3NzMw9rkfhPY/C9T24HgU+KVwPPpqZGT4K1yM+exQuPuxROD5cj0I+zcxMPj0K"
    "Vz6uR2E+H4VrPqRiYXNlgrFfX25kYXJyYXlfY2xhc3NfX8OmYXNfbnB5xJiTTlVNUFkBAHYAeydkZXNjcic6ICc8ZjQnLCAnZm9ydHJhbl9vcmRl"
    "cic6IEZhbHNlLCAnc2hhcGUnOiAoMSwgMywgMiksIH0gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg"
    "ICAgCs3MzD3NzEw+mpmZPs3MzD4AAAA/mpkZP4A="
)  # ({"joints": np.arange(24, dtype=np.float32) / 100, "base": 0.1 to 0.6 as (1, 3, 2)}, {})
FAILED = b64decode(
    "gaVlcnJvctknVmlkZW8ga2V5ICdoZWFkJyBtdXN0IGJlIGluIG9ic2VydmF0aW9u"
)  # {"error": "Video key 'head' must be in observation"}

PARTS = {"joints": ("lift", "arm", "wrist_yaw", "wrist_pitch", "wrist_roll", "gripper", "head_pan", "head_tilt")}
WITH_BASE = {**PARTS, "base": ("base_v", "base_w")}
SEEN = {"image": np.arange(12, dtype=np.uint8).reshape(2, 2, 3)}
FELT = Felt(tuple(np.arange(8) / 10), text="pick up the red cup")

Replies = Callable[[bytes], bytes | None]


@contextmanager
def serving(replies: Replies) -> Iterator[str]:
    """A server that replies as GR00T's does; None: it keeps silent."""
    context: zmq.Context[Any] = zmq.Context()
    socket, end = context.socket(zmq.ROUTER), context.socket(zmq.PAIR)
    place = f"tcp://127.0.0.1:{socket.bind_to_random_port('tcp://127.0.0.1')}"
    end.bind("inproc://end")

    def serve() -> None:
        ended = context.socket(zmq.PAIR)
        ended.connect("inproc://end")
        poller = zmq.Poller()
        poller.register(socket, zmq.POLLIN)
        poller.register(ended, zmq.POLLIN)
        while ended not in (ready := dict(poller.poll())):
            assert socket in ready
            client, empty, question = socket.recv_multipart()
            if (reply := replies(question)) is not None:
                socket.send_multipart([client, empty, reply])
        ended.close(0)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield place
    finally:
        end.send(b"")
        thread.join()
        socket.close(0)
        end.close(0)
        context.term()


@contextmanager
def session(
    place: str, *, parts: dict[str, tuple[str, ...]] = WITH_BASE, within_s: float = 5.0
) -> Iterator[Gr00tSession]:
    cameras = {"image": "head", "wrist": "wrist"}
    opened = Gr00tSession(place, cameras, parts, size_px=2, within_s=within_s)
    try:
        yield opened
    finally:
        opened.close()


def replying(answer: bytes, config: bytes = CONFIG) -> Replies:
    return lambda question: config if question == ASKS_CONFIG else answer


def modality(keys: list[str], frames: list[int]) -> dict[str, object]:
    return {"__ModalityConfig_class__": True, "as_json": {"modality_keys": keys, "delta_indices": frames}}


def trained(**others: dict[str, object]) -> bytes:
    """What a server says it was trained on, with something else than usual."""
    usual = {
        "video": modality(["head"], [0]),
        "state": modality(["joints"], [0]),
        "action": modality(["joints"], [0, 1, 2]),
        "language": modality(["task"], [0]),
    }
    told: bytes = msgpack.packb(usual | others)
    return told


def test_what_is_sent_and_read_is_byte_for_byte_what_gr00t_s_own_serialiser_gives() -> None:
    questions: list[bytes] = []

    def replies(question: bytes) -> bytes:
        questions.append(question)
        return CONFIG if len(questions) == 1 else ANSWER

    with serving(replies) as place, session(place) as opened:
        wants = opened.wants()
        chunk = opened.run(SEEN, FELT).chunk
    assert wants.names == {"image", "joints", "text"}  # it was not trained with a wrist camera
    assert questions == [ASKS_CONFIG, QUESTION]
    assert chunk[:, :8] == pytest.approx((np.arange(24) / 100).reshape(3, 8), abs=1e-7)
    assert chunk[:, 8:] == pytest.approx(np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]), abs=1e-7)


def test_actions_that_begin_a_frame_after_now_are_played_a_frame_later() -> None:
    told = trained(action=modality(["joints", "base"], [1, 2, 3]))
    with serving(replying(ANSWER, told)) as place, session(place) as opened:
        chunk = opened.run(SEEN, FELT).chunk
    assert chunk[0, :8] == pytest.approx(FELT.joints), "until then it is where it is"
    assert chunk[1:, :8] == pytest.approx((np.arange(24) / 100).reshape(3, 8), abs=1e-7)
    assert chunk[:, 8] == pytest.approx([0.1, 0.1, 0.3, 0.5], abs=1e-7)


def test_earlier_frames_and_several_texts_are_sent_where_the_server_wants_them() -> None:
    questions: list[dict[str, Any]] = []
    config = trained(
        video=modality(["head"], [-15, 0]),
        state=modality(["joints"], [-2, 0]),
        language=modality(["first", "second"], [0]),
    )

    def replies(question: bytes) -> bytes:
        if question == ASKS_CONFIG:
            return config
        asked: Any = unpack(question)
        questions.append(asked["data"]["observation"])
        return pack([{"joints": np.zeros((1, 3, 8))}, {}])

    history = tuple((float(tick),) * 8 for tick in range(3))
    with serving(replies) as place, session(place) as opened:
        assert opened.wants().history == 3
        for tick in range(20):
            seen = {"image": np.full((2, 2, 3), tick, np.uint8)}
            opened.run(seen, structs.replace(FELT, seen_ns=to_ns(1 + tick * 0.05), history=history))
    videos = [one["video"]["head"] for one in questions]
    assert {video.shape for video in videos} == {(1, 2, 2, 2, 3)}
    assert [int(video[0, 0, 0, 0, 0]) for video in videos] == [max(tick - 15, 0) for tick in range(20)]
    assert questions[0]["state"]["joints"][0, 0].tolist() == [0.0] * 8
    assert questions[0]["state"]["joints"][0, 1] == pytest.approx(FELT.joints)
    assert questions[0]["language"] == {"first": [[FELT.text]], "second": [[FELT.text]]}


def test_joints_that_the_model_has_no_part_for_stay_where_they_are() -> None:
    parts = {"arm": ("arm", "lift"), "hand": ("gripper",)}
    config = trained(state=modality(["hand"], [0]), action=modality(["arm", "hand"], [0, 1]))
    answer = pack([{"arm": np.array([[[1.0, 2.0], [3.0, 4.0]]]), "hand": np.array([[[0.5], [0.6]]])}, {}])
    with serving(replying(answer, config)) as place, session(place, parts=parts) as opened:
        chunk = opened.run(SEEN, FELT).chunk
    assert chunk.tolist() == [
        [2.0, 1.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.0, 0.0],
        [4.0, 3.0, 0.2, 0.3, 0.4, 0.6, 0.6, 0.7, 0.0, 0.0],
    ]


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (
            trained(video=modality(["ego_view"], [0])),
            sentence("policy.other_part", what="video", name="ego_view", known="head, wrist")
            + sentence("policy.say_which_image"),
        ),
        (trained(video=modality(["head"], [0, 1])), sentence("policy.frames_wanted", what="video", frames="0, 1")),
        (
            trained(state=modality(["joints"], [-90, 0])),
            sentence("policy.frames_wanted", what="state", frames="-90, 0"),
        ),
        (
            trained(state=modality(["base"], [0])),
            sentence("policy.other_part", what="state", name="base", known="joints") + sentence("policy.say_parts"),
        ),
        (
            trained(action=modality(["legs"], [0])),
            sentence("policy.other_part", what="action", name="legs", known="base, joints")
            + sentence("policy.say_parts"),
        ),
        (trained(action=modality(["joints"], [1, 3])), sentence("policy.frames_given", frames="1, 3")),
        (trained(action=modality(["joints"], [2, 3])), sentence("policy.frames_given", frames="2, 3")),
        (trained(action=modality(["joints"], [-1, 0])), sentence("policy.frames_given", frames="-1, 0")),
        (
            msgpack.packb({"video": {"as_json": "{}"}}),
            f"{pattern('policy.trained_on')} .*{pattern('policy.releases_known')}",
        ),
        (msgpack.packb({}), f"{sentence('policy.trained_on')} no action, language, state, video"),
    ],
)
def test_a_server_that_was_trained_for_something_else_is_told(config: bytes, why: str) -> None:
    with (
        serving(replying(ANSWER, config)) as place,
        session(place) as opened,
        pytest.raises(PolyrhythmError, match=why),
    ):
        opened.wants()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (FAILED, "failed: Video key 'head' must be in observation"),
        (b"\xc1", sentence("policy.no_answer", server="GR00T")),
        (ANSWER[:-4], sentence("policy.no_answer", server="GR00T")),
        (msgpack.packb([1]), sentence("policy.gave_another_type", type="list")),
        (pack([{"joints": np.zeros((1, 3, 8))}, {}]), pattern("policy.gave_shape", part="base", shape=r"\(\)")),
        (
            pack([{"joints": np.zeros((1, 3, 7)), "base": np.zeros((1, 3, 2))}, {}]),
            r"shape \(1, 3, 7\); expected numbers",
        ),
        (
            pack([{"joints": np.zeros((1, 3, 8)), "base": np.zeros((1, 2, 2))}, {}]),
            sentence("policy.other_steps", part="base", steps=2, other=3),
        ),
        (pack([{"joints": np.zeros((1, 0, 8)), "base": np.zeros((1, 0, 2))}, {}]), r"shape \(0, 10\)"),
        (msgpack.packb([{"joints": {"__ndarray_class__": True, "as_npy": b"\x93NUMPY\x01\x00"}}, {}]), "no answer"),
        (msgpack.packb([{"joints": "go"}, {}]), "expected numbers"),
    ],
)
def test_an_answer_that_is_none_is_refused_in_a_sentence(answer: bytes, why: str) -> None:
    with serving(replying(answer)) as place, session(place) as opened, pytest.raises(PolyrhythmError, match=why):
        opened.run(SEEN, FELT)


def test_arrays_of_objects_are_not_unpickled() -> None:
    file = io.BytesIO()
    np.save(file, np.array([print], object), allow_pickle=True)
    answer = msgpack.packb([{"joints": {"__ndarray_class__": True, "as_npy": file.getvalue()}}, {}])
    with pytest.raises(ValueError, match="arrays of object are not taken"):
        unpack(answer)


def test_a_late_answer_is_never_taken_for_the_answer_to_a_later_question() -> None:
    asked: list[bytes] = []

    def replies(question: bytes) -> bytes | None:
        asked.append(question)
        return None if len(asked) == 2 else CONFIG if question == ASKS_CONFIG else ANSWER

    with serving(replies) as place, session(place, within_s=1.0) as opened:
        with pytest.raises(PolyrhythmError, match=pattern("policy.did_not_answer", seconds=1)):
            opened.run(SEEN, FELT)
        assert len(opened.run(SEEN, FELT).chunk) == 3
    assert asked == [ASKS_CONFIG, QUESTION, ASKS_CONFIG, QUESTION]  # another model may be served by then


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (Gr00tPolicy("127.0.0.1:5555"), sentence("policy.address_like", address="tcp://127.0.0.1:5555")),
        (
            Gr00tPolicy("tcp://gpu:5555"),
            sentence("policy.anybody_could_answer", remedy="ssh -L 5555:localhost:5555 gpu"),
        ),
        (
            Gr00tPolicy("tcp://127.0.0.1:5555", parts={"arm": ("elbow", "arm")}),
            sentence("policy.parts_has", name="elbow", known="arm, base_v"),
        ),
        (Gr00tPolicy("tcp://127.0.0.1:5555", parts={"a": ("arm",), "b": ("arm",)}), "parts has arm twice"),
    ],
)
def test_what_cannot_be_is_refused_at_check(policy: Gr00tPolicy, why: str) -> None:
    (problem,) = policy.problems()
    assert why in problem


def test_in_virtual_time_it_is_refused() -> None:
    with pytest.raises(ParameterError, match=pattern("policy.real_robot")):
        Simulation(Gr00tPolicy("tcp://127.0.0.1:5555")).run(seconds=0.1)
