"""`OpenPiPolicy`: a vision-language-action model behind openpi's websocket protocol (openpi, vLLM-Omni).

The protocol: the server greets with its metadata, and answers each observation with a dictionary that has `actions`
(steps, columns). All are msgpack, with arrays as openpi's client packs them; text in place of bytes is the server's
error. Nothing is unpickled. Questions carry no number, so after a late answer the connection is opened anew.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack, cast
from urllib.parse import urlsplit

import msgpack
import numpy as np
from numpy.typing import NDArray

from nodes.policy.model_inputs import Felt, PolicyAnswer, Wants
from nodes.policy.model_tensors import CAMERAS, COLUMNS
from nodes.policy.onnx_policy import OnnxPolicy, PlaybackSettings
from runtime import ParameterError, PolyrhythmError, choices
from runtime.msgs import JOINTS

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

LONGEST_S = 10.0
LARGEST_BYTES = 1 << 24
MOST_STEPS = 1024
SMALLEST_PX, LARGEST_PX = 8, 1024


class OpenPiPolicy(OnnxPolicy):
    """Asks the server at `server`, like "ws://127.0.0.1:8000", and plays its chunks as any policy's.

    The names under which openpi's training knows images, joints and words are parameters; an image without a name is
    not sent. Its `actions` are the eight joints, or these and the base's v and w, `step_s` apart.
    """

    provenance = "model:openpi"

    def __init__(
        self,
        server: str,
        image_name: str = "observation/image",
        wrist_name: str = "observation/wrist_image",
        joints_name: str = "observation/state",
        text_name: str = "prompt",
        size_px: int = 224,
        key_variable: str = "",
        within_s: float = 0.4,
        **playback: Unpack[PlaybackSettings],
    ) -> None:
        super().__init__(model=server, **playback)
        self.names = {"image": image_name, "wrist": wrist_name, "joints": joints_name, "text": text_name}
        self.size_px = size_px
        self.key_variable = key_variable
        self.within_s = within_s

    def problems(self) -> list[str]:
        """What is wrong with the server's place, in sentences; it is not called."""
        problems = []
        try:
            place = urlsplit(self.model)
            is_place = place.scheme in ("ws", "wss") and bool(place.hostname) and place.port != 0
        except ValueError:
            is_place = False
        if not is_place:
            problems.append(f"server is {self.model!r}; expected an address like 'ws://127.0.0.1:8000'")
        elif place.scheme == "ws" and place.hostname not in ("127.0.0.1", "::1", "localhost"):
            tunnel = f"ssh -L 8000:localhost:{place.port or 80} {place.hostname}"
            problems.append(
                f"server {self.model} is another machine, and anybody on the way could answer: use wss://, or {tunnel}"
            )
        if not self.names["image"] and not self.names["wrist"]:
            problems.append("image_name and wrist_name are empty; expected a name for at least one image")
        if not SMALLEST_PX <= self.size_px <= LARGEST_PX:
            problems.append(f"size_px is {self.size_px}; expected {SMALLEST_PX} to {LARGEST_PX}")
        if not 0.0 < self.within_s <= LONGEST_S:
            problems.append(f"within_s is {self.within_s}; expected more than 0 and at most {LONGEST_S:g} s")
        return problems

    def on_start(self) -> None:
        if problems := self.problems():
            raise ParameterError(f"{self.name}: {'; '.join(problems)}")
        if self.clock.is_virtual:
            raise ParameterError(f"{self.name}: a server on the network does not wait for virtual time; use OnnxPolicy")
        import cv2  # noqa: F401  # what is not installed is told now, and not at the first answer
        import websockets  # noqa: F401

        key = os.environ.get(self.key_variable, "") if self.key_variable else ""
        if self.key_variable and not key:
            raise ParameterError(f"{self.name}: the environment variable {self.key_variable} is not set")
        self._asks = OpenPiSession(self.model, self.names, size_px=self.size_px, within_s=self.within_s, key=key)
        self.session = self._asks
        for port in (self.chunk, self.command):
            port.provenance = f"model:{self.model}"

    def on_stop(self) -> None:
        self._asks.close()


class OpenPiSession:
    """The same as a `PolicySession`, answered by an openpi server within a deadline."""

    def __init__(self, server: str, names: Mapping[str, str], *, size_px: int, within_s: float, key: str = "") -> None:
        """`names`: what the server calls image, wrist, joints and text; an empty one is not sent."""
        self._server = server
        self._names = {ours: name for ours, name in names.items() if name}
        self._size_px = size_px
        self._within_s = within_s
        self._headers = {"Authorization": f"Api-Key {key}"} if key else None
        self._connection: ClientConnection | None = None

    def wants(self) -> Wants:
        """What the server is to be given."""
        return Wants(frozenset(self._names))

    def run(self, images: Mapping[str, NDArray[np.uint8]], felt: Felt) -> PolicyAnswer:
        """The server's chunk. Raises PolyrhythmError where none came in time or it is none."""
        cameras = [camera for camera in CAMERAS if camera in self._names]
        if lacking := [camera for camera in cameras if camera not in images]:
            raise PolyrhythmError(f"{self._server} was given no {choices(lacking)}")
        seen: dict[str, object] = {self._names[camera]: _padded(images[camera], self._size_px) for camera in cameras}
        if "joints" in self._names:
            seen[self._names["joints"]] = np.asarray(felt.joints, np.float32)
        if "text" in self._names:
            seen[self._names["text"]] = felt.text
        try:
            return PolicyAnswer(_rows(self._server, self._asked(pack(seen))))
        except PolyrhythmError:
            self.close()
            raise

    def close(self) -> None:
        """Hang up."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close_socket()

    def _asked(self, question: bytes) -> object:
        from websockets.exceptions import WebSocketException
        from websockets.sync.client import connect

        try:
            if self._connection is None:
                self._connection = connect(
                    self._server,
                    compression=None,
                    max_size=LARGEST_BYTES,
                    additional_headers=self._headers,
                    open_timeout=self._within_s,
                    close_timeout=0.1,
                )
                self._connection.recv(timeout=self._within_s)  # its metadata: whatever it says is not needed
            self._connection.send(question)
            answer = self._connection.recv(timeout=self._within_s)
        except TimeoutError as problem:
            raise PolyrhythmError(f"{self._server} did not answer within {self._within_s:g} s") from problem
        except (OSError, WebSocketException) as problem:
            raise PolyrhythmError(f"{self._server} cannot be asked: {str(problem)[:200]}") from problem
        if isinstance(answer, str):
            told = answer.strip().rpartition("\n")[2]
            raise PolyrhythmError(f"{self._server} failed: {told[:200]}")
        try:
            return unpack(answer)
        except ValueError as problem:  # of msgpack and numpy, too
            raise PolyrhythmError(f"{self._server} gave no answer of openpi: {str(problem)[:200]}") from problem


def pack(value: object) -> bytes:
    """As `openpi_client.msgpack_numpy` packs it; arrays by their bytes, type and shape."""

    def with_array(found: object) -> object:
        if isinstance(found, np.ndarray):
            return {b"__ndarray__": True, b"data": found.tobytes(), b"dtype": found.dtype.str, b"shape": found.shape}
        raise TypeError(f"a {type(found).__name__} cannot be sent")

    return cast(bytes, msgpack.packb(value, default=with_array))


def unpack(data: bytes) -> object:
    """The same back. Raises ValueError for what is none; arrays of objects are none."""
    try:
        return msgpack.unpackb(data, object_hook=_array)
    except (TypeError, KeyError, AttributeError, RecursionError, msgpack.UnpackException) as problem:
        raise ValueError(str(problem) or type(problem).__name__) from problem


def _array(found: dict[Any, Any]) -> object:
    if b"__ndarray__" not in found and b"__npgeneric__" not in found:
        return found
    kind = np.dtype(found[b"dtype"])
    if kind.kind not in "fiub":
        raise ValueError(f"arrays of {kind} are not taken")
    if b"__npgeneric__" in found:
        return kind.type(found[b"data"])
    return np.frombuffer(found[b"data"], kind).reshape(found[b"shape"])


def _rows(server: str, answer: object) -> NDArray[np.float64]:
    """The chunk of an answer, with a base that stands where it has none. Raises PolyrhythmError."""
    if not isinstance(answer, dict) or "actions" not in answer:
        had = choices(map(str, answer)) if isinstance(answer, dict) else type(answer).__name__
        raise PolyrhythmError(f"{server} gave {had}; expected actions")
    actions = np.asarray(answer["actions"])
    if actions.ndim != 2 or actions.shape[1] not in (len(JOINTS), COLUMNS) or not 1 <= len(actions) <= MOST_STEPS:
        raise PolyrhythmError(
            f"{server} gave actions of shape {actions.shape}; expected (steps, {len(JOINTS)}) or (steps, {COLUMNS})"
        )
    if actions.dtype.kind not in "fiu":
        raise PolyrhythmError(f"{server} gave actions of type {actions.dtype}; expected numbers")
    rows = np.zeros((len(actions), COLUMNS))
    rows[:, : actions.shape[1]] = actions
    return rows


def _padded(rgb: NDArray[np.uint8], size_px: int) -> NDArray[np.uint8]:
    """(size, size, 3), with black where the image is not square, as openpi's own client resizes."""
    import cv2

    height, width = rgb.shape[:2]
    share = size_px / max(height, width)
    rows, columns = max(int(height * share), 1), max(int(width * share), 1)
    small = cv2.resize(np.ascontiguousarray(rgb), (columns, rows), interpolation=cv2.INTER_AREA)
    square = np.zeros((size_px, size_px, 3), np.uint8)
    top, left = (size_px - rows) // 2, (size_px - columns) // 2
    square[top : top + rows, left : left + columns] = small
    return square
