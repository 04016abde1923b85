"""`Gr00tPolicy`: a vision-language-action model behind the ZeroMQ server of NVIDIA's Isaac GR00T (N1.6 and N1.7).

The protocol: one request, one reply, in msgpack with arrays as .npy. The server is asked once what it was trained on
(`get_modality_config`), and then, with all that in a batch of one, for actions (`get_action`). It answers with a pair:
a part of the body -> (1, steps, numbers), and notes. A request carries no number, so after a late answer the connection
is opened anew. N1.5's server speaks another dialect; that is told.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

import msgspec
import numpy as np
import zmq
from numpy.typing import NDArray

from nodes.msgs import JOINTS
from nodes.policy.onnx.inputs import Felt, PolicyAnswer, Wants
from nodes.policy.onnx.policy import RATE_HZ, STEP_S
from nodes.policy.onnx.tensors import CAMERAS, COLUMNS, LONGEST_HISTORY
from nodes.policy.remote.policy_server import (
    LARGEST_BYTES,
    ServerPolicy,
    ServerSettings,
    array_of,
    as_answer,
    lacking,
    numbers,
    packed,
    padded,
    unpacked,
)
from runtime import PolyrhythmError, to_ns

BASE = ("base_v", "base_w")
COLUMN_OF = {name: column for column, name in enumerate((*JOINTS, *BASE))}
LONGEST_S = 10.0
"""How far back an image or a posture may be asked for."""
PARTS: Mapping[str, tuple[str, ...]] = {"joints": JOINTS, "base": BASE}


class Gr00tPolicy(ServerPolicy):
    """Asks the server at `server`, like "tcp://127.0.0.1:5555", and plays its chunks as any policy's.

    `parts` are what its training calls parts of the body, and the joints of each: names of `msgs.JOINTS`, and base_v
    and base_w for the base's velocities, which are no state. What the server has no part for stays where it is.
    """

    provenance = "model:gr00t"
    schemes = ("tcp",)
    port = 5555

    def __init__(
        self,
        server: str,
        image_name: str = "head",
        wrist_name: str = "wrist",
        parts: dict[str, tuple[str, ...]] | None = None,
        **settings: Unpack[ServerSettings],
    ) -> None:
        super().__init__(server, {"image": image_name, "wrist": wrist_name}, **settings)
        self.parts = {name: tuple(joints) for name, joints in (PARTS if parts is None else parts).items()}

    def problems(self) -> list[str]:
        """What is wrong with the server's place and the parts, in sentences; it is not called."""
        told = [joint for joints in self.parts.values() for joint in joints]
        unknown = [joint for joint in told if joint not in COLUMN_OF]
        twice = {joint for joint in told if told.count(joint) > 1}
        problems = super().problems()
        if unknown:
            problems.append(f"parts has {', '.join(sorted(unknown))}; known: {', '.join(sorted(COLUMN_OF))}")
        if twice:
            problems.append(f"parts has {', '.join(sorted(twice))} twice")
        if not all(self.parts.values()) or not set(told) & set(JOINTS):
            problems.append("parts has one without joints; each has at least one")
        return problems

    def connect(self, key: str) -> Gr00tSession:
        """Make a session with the server."""
        return Gr00tSession(
            self.model,
            self.cameras,
            self.parts,
            size_px=self.size_px,
            within_s=self.within_s,
            key=key,
            step_s=self.step_s,
        )


class Modality(msgspec.Struct, frozen=True):
    """What the server was trained on, of one kind."""

    modality_keys: tuple[str, ...]
    delta_indices: tuple[int, ...]


class Gr00tSession:
    """The same as a `PolicySession`, answered by a GR00T server within a deadline.

    Of images that the server wants from before it gets those that it was asked with nearest to then; where it was asked
    with none so early, the first.
    """

    def __init__(
        self,
        server: str,
        cameras: Mapping[str, str],
        parts: Mapping[str, Sequence[str]],
        *,
        size_px: int,
        within_s: float,
        key: str = "",
        step_s: float = STEP_S,
    ) -> None:
        """`cameras`: what the server calls each; an empty one is not sent. Its frames are `step_s` apart."""
        self._step_s = step_s
        self._shown: list[tuple[int, dict[str, NDArray[np.uint8]]]] = []  # when captured, oldest first
        self._server = server
        self._cameras = cameras
        self._parts = parts
        self._size_px = size_px
        self._within_s = within_s
        self._key = key
        self._context: zmq.Context[Any] = zmq.Context()
        self._socket: zmq.Socket[bytes] | None = None
        self._trained: dict[str, Modality] | None = None

    def wants(self) -> Wants:
        """Ask the server what it was trained on. Raises PolyrhythmError where it does not say, or wants too much."""
        trained = self._trained_on()
        seen = trained["video"].modality_keys
        ours = {camera for camera in CAMERAS if self._cameras.get(camera) in seen}
        return Wants(frozenset({"joints", "text", *ours}), history=self._postures(trained["state"]))

    def run(self, images: Mapping[str, NDArray[np.uint8]], felt: Felt) -> PolicyAnswer:
        """Ask the server for a chunk. Raises PolyrhythmError where none came in time, or it is none."""
        trained = self._trained_on()
        wanted = {camera: name for camera, name in self._cameras.items() if name in trained["video"].modality_keys}
        if missing := lacking(wanted, images):
            raise PolyrhythmError(f"{self._server} was given no {', '.join(sorted(missing))}")
        rows = [self._posture(felt, frame) for frame in trained["state"].delta_indices]
        observation = {
            "video": self._frames(wanted, images, felt.seen_ns, trained["video"].delta_indices),
            "state": {
                part: np.array([[[row[COLUMN_OF[joint]] for joint in self._parts[part]] for row in rows]], np.float32)
                for part in trained["state"].modality_keys
            },
            "language": {words: [[felt.text]] for words in trained["language"].modality_keys},
        }
        answer = self._asked("get_action", {"observation": observation, "options": None})
        if not isinstance(answer, list) or len(answer) != 2 or not isinstance(answer[0], dict):
            raise PolyrhythmError(f"{self._server} gave {type(answer).__name__}; expected actions and notes")
        chunk = self._rows(answer[0], trained["action"].modality_keys, felt)
        if trained["action"].delta_indices[0] and len(chunk):  # the first is due a frame from now
            now = np.array(felt.joints)
            chunk = np.vstack([np.append(now, chunk[0, len(now) :])[None], chunk])
        return as_answer(self._server, chunk)

    def close(self) -> None:
        """Close the connection."""
        self._hang_up()
        self._context.term()

    def _frames(
        self,
        wanted: Mapping[str, str],
        images: Mapping[str, NDArray[np.uint8]],
        seen_ns: int,
        frames: Sequence[int],
    ) -> dict[str, NDArray[np.uint8]]:
        """(1, frames, height, width, 3) by the server's name."""
        seen = {name: padded(images[camera], self._size_px) for camera, name in wanted.items()}
        oldest_ns = seen_ns + to_ns((min(frames) - 1) * self._step_s)
        is_apart = bool(self._shown) and not oldest_ns <= self._shown[-1][0] <= seen_ns
        kept = [] if is_apart else self._shown  # what was seen long before belongs to something else
        before = [one for one in kept if one[0] < oldest_ns][-1:]  # the nearest to the oldest one may be this
        self._shown = shown = [*before, *(one for one in kept if oldest_ns <= one[0] < seen_ns), (seen_ns, seen)]
        chosen = [
            min(shown, key=lambda one: abs(one[0] - at_ns))[1]
            for at_ns in (seen_ns + to_ns(frame * self._step_s) for frame in frames)
        ]
        return {name: np.stack([one[name] for one in chosen])[None] for name in seen}

    def _postures(self, trained: Modality) -> int:
        """How many postures it needs of the ticks before; 0 where the one of now is enough."""
        earliest = min(trained.delta_indices)
        return 1 + math.ceil(-earliest * self._step_s * RATE_HZ) if earliest else 0

    def _posture(self, felt: Felt, frame: int) -> Sequence[float]:
        if not frame or not felt.history:
            return felt.joints
        return felt.history[max(len(felt.history) - 1 + round(frame * self._step_s * RATE_HZ), 0)]

    def _rows(self, actions: dict[object, object], parts: Iterable[str], felt: Felt) -> NDArray[np.float64]:
        rows: NDArray[np.float64] | None = None
        for part in parts:
            joints, found = self._parts[part], np.asarray(actions.get(part))
            if found.dtype.kind not in "fiu" or found.ndim != 3 or found.shape[::2] != (1, len(joints)):
                raise PolyrhythmError(
                    f"{self._server} gave {part} of shape {found.shape}; expected numbers, (1, steps, {len(joints)})"
                )
            if rows is None:
                rows = np.tile((*felt.joints, 0.0, 0.0), (found.shape[1], 1))
            if len(rows) != found.shape[1]:
                raise PolyrhythmError(f"{self._server} gave {part} {found.shape[1]} steps, and others {len(rows)}")
            rows[:, [COLUMN_OF[joint] for joint in joints]] = found[0]
        return np.zeros((0, COLUMNS)) if rows is None else rows

    def _trained_on(self) -> dict[str, Modality]:
        """Asked once. Raises PolyrhythmError."""
        if self._trained is None:
            try:
                told = msgspec.convert(self._asked("get_modality_config", None), dict[str, Modality])
            except msgspec.ValidationError as problem:
                why = f"{problem}; N1.6 and N1.7 are known"
                raise PolyrhythmError(f"{self._server} does not say what it was trained on: {why}") from problem
            self._check(told)
            self._trained = told
        return self._trained

    def _check(self, told: Mapping[str, Modality]) -> None:
        """Whether what it was trained on is what a robot of ours has. Raises PolyrhythmError."""
        if absent := {"video", "state", "action", "language"} - told.keys():
            raise PolyrhythmError(f"{self._server} does not say what it was trained on: no {', '.join(sorted(absent))}")
        still = [part for part in self._parts if not set(self._parts[part]) & set(BASE)]
        for kind, known in (
            ("video", [name for name in self._cameras.values() if name]),
            ("state", still),
            ("action", list(self._parts)),
        ):
            if unknown := [name for name in told[kind].modality_keys if name not in known]:
                remedy = "say image_name and wrist_name" if kind == "video" else "say parts"
                raise PolyrhythmError(
                    f"{self._server} was trained with {kind} {', '.join(sorted(unknown))}; "
                    f"known: {', '.join(sorted(known))}; {remedy}"
                )
        longest_s = {"video": LONGEST_S, "state": (LONGEST_HISTORY - 1) / RATE_HZ}
        for kind, most_s in longest_s.items():
            frames = told[kind].delta_indices
            if not frames or max(frames) > 0 or -min(frames) * self._step_s > most_s:
                listed = ", ".join(map(str, frames)) or "none"
                raise PolyrhythmError(
                    f"{self._server} wants {kind} of the frames {listed}, {self._step_s:g} s apart; expected some "
                    f"up to now (0), and none more than {most_s:g} s before"
                )
        steps = told["action"].delta_indices
        if not steps or steps[0] not in (0, 1) or steps != tuple(range(steps[0], steps[0] + len(steps))):
            listed = ", ".join(map(str, sorted(steps))) or "none"
            raise PolyrhythmError(
                f"{self._server} gives actions for the frames {listed}; expected each one from 0 or 1 on"
            )
        if not told["language"].modality_keys or told["language"].delta_indices != (0,):
            raise PolyrhythmError(f"{self._server} wants no text of now; expected one or more, of the frame 0")

    def _asked(self, endpoint: str, data: object) -> object:
        request = {"endpoint": endpoint} | ({} if data is None else {"data": data})
        if self._key:
            request["api_token"] = self._key
        try:
            if self._socket is None:
                self._socket = self._connected()
            self._socket.send(pack(request), zmq.NOBLOCK)
            if not self._socket.poll(max(round(self._within_s * 1000), 1)):
                self._hang_up()
                raise PolyrhythmError(f"{self._server} did not answer within {self._within_s:g} s")
            reply = self._socket.recv()
        except zmq.ZMQError as problem:
            self._hang_up()
            raise PolyrhythmError(f"{self._server} cannot be asked: {problem}") from problem
        try:
            answer = unpack(reply)
        except ValueError as problem:  # of msgpack and numpy, too
            raise PolyrhythmError(f"{self._server} gave no answer of GR00T: {str(problem)[:200]}") from problem
        if isinstance(answer, dict) and "error" in answer:
            raise PolyrhythmError(f"{self._server} failed: {str(answer['error'])[:200]}")
        return answer

    def _connected(self) -> zmq.Socket[bytes]:
        socket: zmq.Socket[bytes] = self._context.socket(zmq.REQ)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.MAXMSGSIZE, LARGEST_BYTES)
        socket.connect(self._server)
        return socket

    def _hang_up(self) -> None:
        """What was asked may be of another model by now: that is asked again."""
        socket, self._socket, self._trained = self._socket, None, None
        if socket is not None:
            socket.close()


def pack(value: object) -> bytes:
    """Pack a request as GR00T's own client does; arrays become .npy files."""

    def as_file(array: NDArray[Any]) -> dict[str, object]:
        file = io.BytesIO()
        np.save(file, array, allow_pickle=False)
        return {"__ndarray_class__": True, "as_npy": file.getvalue()}

    return packed(value, as_file)


def unpack(data: bytes) -> object:
    """The same back, and what a server was trained on as a dictionary. Raises ValueError for what is none."""
    return unpacked(data, _read)


def _read(found: dict[Any, Any]) -> object:
    if "__ModalityConfig_class__" in found:
        told = found["as_json"]
        return msgspec.json.decode(told) if isinstance(told, str | bytes) else told
    if "__ndarray_class__" not in found:
        return array_of(found)
    file = io.BytesIO(found["as_npy"])
    version = np.lib.format.read_magic(file)
    head = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, is_fortran, kind = head(file)
    flat = np.frombuffer(file.getbuffer()[file.tell() :], numbers(kind))
    return flat.reshape(shape, order="F" if is_fortran else "C")
