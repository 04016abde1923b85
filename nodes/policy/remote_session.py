"""A policy's session on another machine: the image goes there as JPEG, or as it is, and the chunk comes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import cv2
import msgspec
import numpy as np
from numpy.typing import NDArray

from runtime.errors import PolyrhythmError
from runtime.hosts.service import Client

if TYPE_CHECKING:
    from nodes.policy.onnx_session import PolicySession

COLUMNS = 10
LARGEST_PX = 4096


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """What the robot sees and feels, as it crosses the network."""

    shape: tuple[int, int]
    is_jpeg: bool
    joints: tuple[float, ...]


class RemoteSession:
    """The same as a `PolicySession`, answered by a server within a deadline."""

    def __init__(self, client: Client, *, within_s: float, jpeg_quality: int) -> None:
        """`jpeg_quality`: 1 to 100; 0 sends the pixels as they are."""
        self._client = client
        self._within_s = within_s
        self._quality = jpeg_quality

    def run(self, rgb: NDArray[np.uint8], joints: tuple[float, ...]) -> NDArray[np.float64]:
        """The chunk (steps, 10). Raises PolyrhythmError where none came in time or it is none."""
        height, width = rgb.shape[:2]
        pixels: Any = np.ascontiguousarray(rgb)
        if self._quality:
            is_encoded, pixels = cv2.imencode(
                ".jpg", np.ascontiguousarray(rgb[:, :, ::-1]), [cv2.IMWRITE_JPEG_QUALITY, self._quality]
            )
            if not is_encoded:
                raise PolyrhythmError(f"an image of shape {rgb.shape} cannot be sent")
        head = msgspec.msgpack.encode(Seen((height, width), bool(self._quality), joints))
        answer = self._client.ask([head, memoryview(pixels).cast("B")], self._within_s)
        if len(answer) != 1 or len(answer[0]) % (8 * COLUMNS) or not answer[0]:
            raise PolyrhythmError(f"{self._client.address} gave no chunk")
        return np.frombuffer(answer[0], np.float64).reshape(-1, COLUMNS)


def answering(session: PolicySession) -> Callable[[Sequence[bytes]], list[bytes]]:
    """What a server does with a question."""

    def answer(frames: Sequence[bytes]) -> list[bytes]:
        if len(frames) != 2:
            raise PolyrhythmError(f"{len(frames)} frames; expected what is felt and an image")
        try:
            seen = msgspec.msgpack.decode(frames[0], type=Seen)
        except msgspec.MsgspecError as problem:
            raise PolyrhythmError(f"no question of a policy: {problem}") from problem
        chunk = session.run(_pixels(seen, frames[1]), seen.joints)
        return [np.ascontiguousarray(chunk, np.float64).tobytes()]

    return answer


def _pixels(seen: Seen, data: bytes) -> NDArray[np.uint8]:
    height, width = seen.shape
    if not (0 < height <= LARGEST_PX and 0 < width <= LARGEST_PX):
        raise PolyrhythmError(f"an image of {width}x{height}; expected at most {LARGEST_PX} pixels a side")
    if not seen.is_jpeg:
        if len(data) != height * width * 3:
            raise PolyrhythmError(f"{len(data)} bytes are no image of {width}x{height}")
        return np.frombuffer(data, np.uint8).reshape(height, width, 3)
    try:
        bgr = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    except cv2.error as problem:
        raise PolyrhythmError(f"{len(data)} bytes are no JPEG") from problem
    if bgr is None or bgr.shape[:2] != seen.shape:
        raise PolyrhythmError(f"{len(data)} bytes are no JPEG of {width}x{height}")
    return np.ascontiguousarray(bgr[:, :, ::-1], np.uint8)
