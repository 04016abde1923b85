"""`ServedModels`: the models behind `polyrhythm serve`. They answer several robots' questions in one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

import cv2
import msgspec
import numpy as np
from numpy.typing import NDArray

from nodes.models.onnx_runtime import Timing
from nodes.policy.onnx.inputs import PolicyAnswer
from nodes.policy.onnx.session import PolicySession, Question
from nodes.policy.remote.session import ASKS_WANTS, LARGEST_PX, RemoteObservation
from runtime.clock import to_ns
from runtime.errors import PolyrhythmError, choices
from runtime.hosts.service import LONGEST_WAIT_S, Costs


class ServedModels:
    """An `Answerer` (`runtime.hosts.service`) by models with names; who names none asks the first."""

    def __init__(self, models: Mapping[str, PolicySession], most: int = 1) -> None:
        """How long 1, 2, 4, ... answers take is measured now, up to `most` together; the first run does not count."""
        self.most = most
        self._models = models
        self.told: list[str] = []
        """What was measured of each model, in sentences."""
        taken: dict[tuple[str, int], int] = {}
        for name, model in models.items():
            timings = _timings(model, most)
            taken |= {(name, size): to_ns(median(one.runs_s)) for size, one in timings.items()}
            single = f"; one at a time, as {model.why_single}" if most > 1 and model.why_single else ""
            largest = max(timings)
            many = f"; {largest} together in {1e3 * median(timings[largest].runs_s):.1f} ms" if largest > 1 else ""
            self.told.append(f"{name} on {timings[1]}{many}{single}")
        self.costs = Costs(taken)

    def swap(self, other: ServedModels) -> None:
        """From the next question on answer by the models of another; those who ask notice nothing."""
        self._models, self.costs = other._models, other.costs

    def kind_of(self, frames: Sequence[bytes]) -> str:
        name = ""
        if frames and frames[0] == ASKS_WANTS:
            name = frames[1].decode("utf-8", "replace") if len(frames) > 1 else ""
        else:
            try:
                name = msgspec.msgpack.decode(frames[0] if frames else b"", type=RemoteObservation).of
            except msgspec.MsgspecError:
                pass  # that it is no question is its answer
        return (name or next(iter(self._models))) if not name or name in self._models else ""

    def answer(self, kind: str, questions: Sequence[Sequence[bytes]]) -> Sequence[Sequence[bytes] | Exception]:
        model = self._models.get(kind)
        if model is None:
            known = choices(self._models)
            return [PolyrhythmError(f"no such model is served here; known: {known}")] * len(questions)
        found: list[Sequence[bytes] | Exception] = [PolyrhythmError("not answered")] * len(questions)
        asked: dict[int, Question] = {}
        for place, frames in enumerate(questions):
            if frames and frames[0] == ASKS_WANTS:
                found[place] = [msgspec.msgpack.encode(model.wants())]
                continue
            try:
                asked[place] = _question(frames)
            except PolyrhythmError as problem:
                found[place] = problem
        for place, answer in zip(asked, model.run_many(list(asked.values())), strict=True):
            found[place] = _packed(answer) if isinstance(answer, PolicyAnswer) else answer
        return found


def _timings(model: PolicySession, most: int) -> dict[int, Timing]:
    """By how many answers are made together."""
    found = {1: model.timing(rounds=5)}
    while model.is_batched and (size := max(found)) < most and median(found[size].runs_s) < LONGEST_WAIT_S / 4:
        found[min(2 * size, most)] = model.timing(min(2 * size, most), rounds=3)
    return found


def _question(frames: Sequence[bytes]) -> Question:
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
    return images, seen.felt


def _packed(answer: PolicyAnswer) -> list[bytes]:
    done = b"" if answer.done is None else np.float64(answer.done).tobytes()
    return [np.ascontiguousarray(answer.chunk, np.float64).tobytes(), done, answer.memory]


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
