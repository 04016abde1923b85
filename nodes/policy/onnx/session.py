"""`PolicySession`: one ONNX Runtime session with the inputs and outputs that a policy has."""

from __future__ import annotations

from collections.abc import Mapping

import cv2
import numpy as np
from numpy.typing import NDArray

from nodes.models.onnx_file import Tensor
from nodes.models.onnx_runtime import NodeArg, open_session
from nodes.policy.onnx.inputs import NOTHING, Felt, PolicyAnswer, Wants, feed
from nodes.policy.onnx.tensors import CAMERAS, COLUMNS, RELATIVE, problems
from runtime.errors import PolyrhythmError, choices


class PolicySession:
    """From images and what is felt to a chunk of commands (steps, 10), on one CPU thread unless told else."""

    def __init__(
        self,
        model: bytes,
        *,
        name: str,
        width_px: int,
        height_px: int,
        providers: tuple[str, ...],
        beside: Mapping[str, bytes] | None = None,
        seed: int = 0,
    ) -> None:
        """Of `providers` the first that can be had does the work; `fallback` says so where it is not the first named.

        Raises PolyrhythmError, in a sentence that begins with the name, for a model that is no policy, and where none
        of the providers can be had: the library itself would take the CPU and say nothing.
        """
        self.name = name
        self._session, self.fallback = open_session(model, name=name, providers=providers, beside=beside, seed=seed)
        self._inputs = {tensor.name: tensor for tensor in map(_tensor, self._session.get_inputs())}
        outputs = [_tensor(arg) for arg in self._session.get_outputs()]
        wrong = problems(list(self._inputs.values()), outputs, width_px=width_px, height_px=height_px)
        if wrong:
            raise PolyrhythmError(f"{name}: {'; '.join(wrong)}")
        self._outputs = [tensor.name for tensor in outputs]
        cameras = [self._inputs[camera] for camera in CAMERAS if camera in self._inputs]
        self._sizes_px = {tensor.name: _size_px(tensor, width_px, height_px) for tensor in cameras}
        metadata = self._session.get_modelmeta().custom_metadata_map
        self._mean = _of_colours(metadata.get("image_mean", ""), 0.0, f"{name}: metadata image_mean")
        self._std = _of_colours(metadata.get("image_std", ""), 1.0, f"{name}: metadata image_std")
        if not (self._std > 0).all():
            raise PolyrhythmError(f"{name}: metadata image_std is {metadata['image_std']!r}; expected more than 0")
        self._wants = Wants(
            frozenset(self._inputs),
            history=self._rows("history"),
            skills=tuple(skill for skill in metadata.get("skills", "").split(",") if skill),
            previous=self._rows("previous"),
            is_relative=metadata.get("positions", "") == RELATIVE,
        )
        # The first run is slow, and the only proof of the shape that really comes out.
        nothing = {camera: np.zeros((height, width, 3), np.uint8) for camera, (width, height) in self._sizes_px.items()}
        history, previous = (NOTHING,) * self._wants.history, ((0.0,) * COLUMNS,) * self._wants.previous
        self.steps = len(self.run(nothing, Felt(NOTHING, history=history, previous=previous)).chunk)

    def _rows(self, name: str) -> int:
        return self._inputs[name].shape[1] or 0 if name in self._inputs else 0

    def wants(self) -> Wants:
        """Return what the model is to be given."""
        return self._wants

    def run(self, images: Mapping[str, NDArray[np.uint8]], felt: Felt) -> PolicyAnswer:
        """The model's answer to RGB images by camera and what is felt; not checked for being finite.

        Raises PolyrhythmError where an image lacks or a shape is wrong.
        """
        lacking = self._sizes_px.keys() - images.keys()
        if lacking:
            raise PolyrhythmError(f"{self.name} was given no {choices(sorted(lacking))}")
        seen = {
            camera: (_pixels(images[camera], size_px) - self._mean) / self._std
            for camera, size_px in self._sizes_px.items()
        }
        given = feed(self._inputs.values(), seen, felt)
        try:
            found = self._session.run(self._outputs, given)
        except Exception as problem:  # as above
            raise PolyrhythmError(f"{self.name} failed: {str(problem).strip()[:300]}") from problem
        answer = dict(zip(self._outputs, map(np.asarray, found), strict=True))
        chunk = answer["chunk"]
        if chunk.ndim != 3 or chunk.shape[0] != 1 or chunk.shape[1] < 1 or chunk.shape[2] != COLUMNS:
            raise PolyrhythmError(f"{self.name} gave a chunk of shape {chunk.shape}; expected (1, steps, {COLUMNS})")
        done = answer.get("done")
        if done is not None and done.shape != (1,):
            raise PolyrhythmError(f"{self.name} gave a done of shape {done.shape}; expected (1,)")
        memory = np.asarray(answer.get("next_memory", ()), np.float32)
        if "memory" in given and memory.shape != given["memory"].shape:
            raise PolyrhythmError(
                f"{self.name} gave a next_memory of shape {memory.shape}; its memory {given['memory'].shape}"
            )
        return PolicyAnswer(
            np.asarray(chunk[0], np.float64), None if done is None else float(done[0]), memory.tobytes()
        )


def _pixels(rgb: NDArray[np.uint8], size_px: tuple[int, int]) -> NDArray[np.float32]:
    """(1, 3, height, width), from 0 to 1."""
    if (rgb.shape[1], rgb.shape[0]) != size_px:
        rgb = cv2.resize(rgb, size_px, interpolation=cv2.INTER_AREA).astype(np.uint8)
    return np.ascontiguousarray(rgb.transpose(2, 0, 1)[None], np.float32) / np.float32(255)


def _of_colours(text: str, otherwise: float, what: str) -> NDArray[np.float32]:
    """(3, 1, 1) from three numbers with commas between them. Raises PolyrhythmError."""
    try:
        numbers = [float(one) for one in text.split(",")] if text else [otherwise] * 3
    except ValueError:
        numbers = []
    if len(numbers) != 3 or not np.isfinite(numbers).all():
        raise PolyrhythmError(f"{what} is {text!r}; expected three numbers, like 0.485,0.456,0.406")
    return np.array(numbers, np.float32)[:, None, None]


def _size_px(tensor: Tensor, width_px: int, height_px: int) -> tuple[int, int]:
    return tensor.shape[3] or width_px, tensor.shape[2] or height_px


def _tensor(arg: NodeArg) -> Tensor:
    sizes = tuple(size if isinstance(size, int) else None for size in arg.shape)
    return Tensor(arg.name, arg.type.removeprefix("tensor(").removesuffix(")"), sizes)
