"""A policy's session on another machine: what its model wants goes there, images as JPEG or as they are; it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import cv2
import msgspec
import numpy as np
from numpy.typing import NDArray

from nodes.policy.onnx.inputs import Felt, PolicyAnswer, Wants
from nodes.policy.onnx.tensors import COLUMNS
from runtime.errors import PolyrhythmError
from runtime.hosts.service import Client

if TYPE_CHECKING:
    from nodes.policy.onnx.session import PolicySession

LARGEST_PX = 4096
ASKS_WANTS = b"what do you want?"
"""The question, of one frame, that a model's `Wants` answer."""


class RemoteObservation(msgspec.Struct, frozen=True, array_like=True):
    """What the robot sees and feels, as it crosses the network; behind it comes a frame of bytes for each shape."""

    shapes: dict[str, tuple[int, int]]
    is_jpeg: bool
    felt: Felt


class RemoteSession:
    """The same as a `PolicySession`, answered by a server within a deadline."""

    def __init__(self, client: Client, *, within_s: float, jpeg_quality: int) -> None:
        """`jpeg_quality`: 1 to 100; 0 sends the pixels as they are."""
        self._client = client
        self._within_s = within_s
        self._quality = jpeg_quality
        self._wants: Wants | None = None

    def wants(self) -> Wants:
        """What the server's model is to be given, asked once. Raises PolyrhythmError where no answer came in time."""
        if self._wants is None:
            answer = self._client.ask([ASKS_WANTS], self._within_s)
            try:
                self._wants = msgspec.msgpack.decode(answer[0] if answer else b"", type=Wants)
            except msgspec.MsgspecError as problem:
                raise PolyrhythmError(f"{self._client.address} does not say what its model wants") from problem
        return self._wants

    def run(self, images: Mapping[str, NDArray[np.uint8]], felt: Felt) -> PolicyAnswer:
        """The model's answer. Raises PolyrhythmError where none came in time or it is none."""
        sent = {camera: rgb for camera, rgb in images.items() if camera in self.wants().names}
        head = msgspec.msgpack.encode(
            RemoteObservation({camera: rgb.shape[:2] for camera, rgb in sent.items()}, bool(self._quality), felt)
        )
        try:
            answer = self._client.ask([head, *map(self._packed, sent.values())], self._within_s)
        except PolyrhythmError:
            self._wants = None  # another model may be served there by now
            raise
        if len(answer) != 3 or not answer[0] or len(answer[0]) % (8 * COLUMNS) or len(answer[1]) not in (0, 8):
            raise PolyrhythmError(f"{self._client.address} gave no chunk")
        done = float(np.frombuffer(answer[1], np.float64)[0]) if answer[1] else None
        return PolicyAnswer(np.frombuffer(answer[0], np.float64).reshape(-1, COLUMNS), done, answer[2])

    def _packed(self, rgb: NDArray[np.uint8]) -> memoryview:
        pixels: Any = np.ascontiguousarray(rgb)
        if self._quality:
            is_encoded, pixels = cv2.imencode(
                ".jpg", np.ascontiguousarray(rgb[:, :, ::-1]), [cv2.IMWRITE_JPEG_QUALITY, self._quality]
            )
            if not is_encoded:
                raise PolyrhythmError(f"an image of shape {rgb.shape} cannot be sent")
        return memoryview(pixels).cast("B")


def answering(session: PolicySession) -> Callable[[Sequence[bytes]], list[bytes]]:
    """What a server does with a question."""

    def answer(frames: Sequence[bytes]) -> list[bytes]:
        if list(frames) == [ASKS_WANTS]:
            return [msgspec.msgpack.encode(session.wants())]
        try:
            seen = msgspec.msgpack.decode(frames[0] if frames else b"", type=RemoteObservation)
        except msgspec.MsgspecError as problem:
            raise PolyrhythmError(f"no question of a policy: {problem}; expected what is seen and felt") from problem
        if len(frames) != 1 + len(seen.shapes):
            raise PolyrhythmError(f"{len(frames)} frames; expected what is felt and {len(seen.shapes)} images")
        images = {
            camera: _pixels(shape, data, is_jpeg=seen.is_jpeg)
            for (camera, shape), data in zip(seen.shapes.items(), frames[1:], strict=True)
        }
        found = session.run(images, seen.felt)
        done = b"" if found.done is None else np.float64(found.done).tobytes()
        return [np.ascontiguousarray(found.chunk, np.float64).tobytes(), done, found.memory]

    return answer


def _pixels(shape: tuple[int, int], data: bytes, *, is_jpeg: bool) -> NDArray[np.uint8]:
    height, width = shape
    if not (0 < height <= LARGEST_PX and 0 < width <= LARGEST_PX):
        raise PolyrhythmError(f"an image of {width}x{height}; expected at most {LARGEST_PX} pixels a side")
    if not is_jpeg:
        if len(data) != height * width * 3:
            raise PolyrhythmError(f"{len(data)} bytes are no image of {width}x{height}")
        return np.frombuffer(data, np.uint8).reshape(height, width, 3)
    try:
        bgr = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    except cv2.error as problem:
        raise PolyrhythmError(f"{len(data)} bytes are no JPEG") from problem
    if bgr is None or bgr.shape[:2] != shape:
        raise PolyrhythmError(f"{len(data)} bytes are no JPEG of {width}x{height}")
    return np.ascontiguousarray(bgr[:, :, ::-1], np.uint8)
