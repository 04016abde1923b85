"""`OpenPiPolicy`: a vision-language-action model behind openpi's websocket protocol (openpi, vLLM-Omni).

The protocol: the server greets with its metadata, and answers each observation with a dictionary that has `actions`
(steps, columns). All are msgpack, with arrays as openpi's client packs them; text in place of bytes is the server's
error. Nothing is unpickled. Questions carry no number, so after a late answer the connection is opened anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import NDArray

from nodes.policy.onnx.inputs import Felt, PolicyAnswer, Wants
from nodes.policy.onnx.tensors import CAMERAS
from nodes.policy.remote.policy_server import (
    LARGEST_BYTES,
    ServerPolicy,
    ServerSettings,
    array_of,
    as_answer,
    lacking,
    packed,
    padded,
    unpacked,
)
from runtime import PolyrhythmError
from runtime.hosts.proxies import is_here

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection


class OpenPiPolicy(ServerPolicy):
    """Asks the server at `server`, like "ws://127.0.0.1:8000", and plays its chunks as any policy's.

    The names under which openpi's training knows images, joints and words are parameters; an image without a name is
    not sent. `images_name` is that of a dictionary in which all images are, as ALOHA's `images`; with `channels_first`
    they are (3, height, width). Its `actions` are the eight joints, or these and the base's v and w, `step_s` apart.
    """

    provenance = "model:openpi"
    schemes = ("ws", "wss")
    encrypted = "wss"
    port = 8000

    def __init__(
        self,
        server: str,
        image_name: str = "observation/image",
        wrist_name: str = "observation/wrist_image",
        joints_name: str = "observation/state",
        text_name: str = "prompt",
        images_name: str = "",
        channels_first: bool = False,
        **settings: Unpack[ServerSettings],
    ) -> None:
        super().__init__(server, {"image": image_name, "wrist": wrist_name}, **settings)
        self.names = {**self.cameras, "joints": joints_name, "text": text_name}
        self.images_name, self.channels_first = images_name, channels_first

    def connect(self, key: str) -> OpenPiSession:
        """Make a session with the server."""
        import websockets  # noqa: F401  # what is not installed is told now, and not at the first answer

        return OpenPiSession(
            self.model,
            self.names,
            size_px=self.size_px,
            within_s=self.within_s,
            key=key,
            images_name=self.images_name,
            channels_first=self.channels_first,
        )


class OpenPiSession:
    """The same as a `PolicySession`, answered by an openpi server within a deadline."""

    def __init__(
        self,
        server: str,
        names: Mapping[str, str],
        *,
        size_px: int,
        within_s: float,
        key: str = "",
        images_name: str = "",
        channels_first: bool = False,
    ) -> None:
        """`names`: what the server calls each camera, joints and text; an empty one is not sent."""
        self._images_name = images_name
        self._axes = (2, 0, 1) if channels_first else (0, 1, 2)
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
        if missing := lacking(self._names, images):
            raise PolyrhythmError(f"{self._server} was given no {', '.join(sorted(missing))}")
        cameras = [camera for camera in CAMERAS if camera in self._names]
        shown = {
            self._names[camera]: np.ascontiguousarray(padded(images[camera], self._size_px).transpose(self._axes))
            for camera in cameras
        }
        seen: dict[str, object] = {self._images_name: shown} if self._images_name else {**shown}
        if "joints" in self._names:
            seen[self._names["joints"]] = np.asarray(felt.joints, np.float32)
        if "text" in self._names:
            seen[self._names["text"]] = felt.text
        try:
            return as_answer(self._server, _actions(self._server, self._asked(pack(seen))))
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
                    proxy=None if is_here(self._server) else True,
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
    """Pack as `openpi_client.msgpack_numpy` does: arrays by their bytes, type and shape."""
    return packed(
        value,
        lambda one: {b"__ndarray__": True, b"data": one.tobytes(), b"dtype": one.dtype.str, b"shape": one.shape},
    )


def unpack(data: bytes) -> object:
    """The same back. Raises ValueError for what is none; arrays of objects are none."""
    return unpacked(data, array_of)


def _actions(server: str, answer: object) -> object:
    if not isinstance(answer, dict) or "actions" not in answer:
        had = ", ".join(sorted(map(str, answer))) if isinstance(answer, dict) else type(answer).__name__
        raise PolyrhythmError(f"{server} gave {had}; expected actions")
    return answer["actions"]
