"""A policy's session on another machine: what its model wants goes there, images as JPEG or as they are; it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cv2
import msgspec
import numpy as np
from numpy.typing import NDArray

from nodes.policy.onnx.inputs import Felt, PolicyAnswer, Wants
from nodes.policy.onnx.tensors import COLUMNS
from runtime.errors import PolyrhythmError
from runtime.hosts.service import Client

LARGEST_PX = 4096
ASKS_WANTS = b"what do you want?"
"""The question that a model's `Wants` answer; the frame behind it is the model's name, where one is named."""


class RemoteObservation(msgspec.Struct, frozen=True, array_like=True):
    """What the robot sees and feels, as it crosses the network; behind it comes a frame of bytes for each shape."""

    shapes: dict[str, tuple[int, int]]
    is_jpeg: bool
    felt: Felt
    of: str = ""  # which of the server's models; "": its first


class RemoteSession:
    """The same as a `PolicySession`, answered by a server within a deadline."""

    def __init__(self, client: Client, *, within_s: float, jpeg_quality: int, of: str = "") -> None:
        """`jpeg_quality`: 1 to 100; 0 sends the pixels as they are. `of`: which model; "": the server's first."""
        self._client = client
        self._within_s = within_s
        self._quality = jpeg_quality
        self._of = of
        self._wants: Wants | None = None

    def wants(self) -> Wants:
        """What the server's model is to be given, asked once. Raises PolyrhythmError where no answer came in time."""
        if self._wants is None:
            name = [self._of.encode()] if self._of else []
            answer = self._client.ask([ASKS_WANTS, *name], self._within_s)
            try:
                self._wants = msgspec.msgpack.decode(answer[0] if answer else b"", type=Wants)
            except msgspec.MsgspecError as problem:
                raise PolyrhythmError(f"{self._client.address} does not say what its model wants") from problem
        return self._wants

    def run(self, images: Mapping[str, NDArray[np.uint8]], felt: Felt) -> PolicyAnswer:
        """The model's answer. Raises PolyrhythmError where none came in time or it is none."""
        sent = {camera: rgb for camera, rgb in images.items() if camera in self.wants().names}
        head = msgspec.msgpack.encode(
            RemoteObservation(
                {camera: rgb.shape[:2] for camera, rgb in sent.items()}, bool(self._quality), felt, self._of
            )
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
