"""`PolicySession`: one ONNX Runtime session with the inputs and outputs that a policy has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from nodes.models.onnx_file import Tensor
from nodes.models.onnx_runtime import NodeArg, OnnxModel, Timing, timed
from nodes.policy.onnx.inputs import NOTHING, Felt, PolicyAnswer, Wants, feed
from nodes.policy.onnx.tensors import CAMERAS, COLUMNS, RELATIVE, problems, trained_of
from runtime.clock import SystemClock
from runtime.errors import PolyrhythmError, UserError, choices

LARGEST_BATCH = 64
ALIKE = 1e-3
"""How far a row's answer may be from what it is alone, m or rad."""

Feed: TypeAlias = dict[str, NDArray[Any]]


Question = tuple[Mapping[str, NDArray[np.uint8]], Felt]
"""RGB images by camera, and what is felt."""


class PolicySession:
    """From images and what is felt to a chunk of commands (steps, 10), on one CPU thread unless told else.

    A model that leaves the first size of every input and output open answers several questions in one run.
    """

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
        threads: int = 1,
    ) -> None:
        """Of `providers` the first that can be had does the work; `fallback` says so where it is not the first named.

        Raises PolyrhythmError, in a sentence that begins with the name, for a model that is no policy, and where none
        of the providers can be had: the library itself would take the CPU and say nothing.
        """
        self.name = name
        self._model = OnnxModel(model, name=name, providers=providers, threads=threads, beside=beside, seed=seed)
        self.fallback = self._model.fallback
        self._inputs = {arg.name: _tensor(arg) for arg in self._model.inputs.values()}
        outputs = [_tensor(arg) for arg in self._model.outputs.values()]
        wrong = problems(list(self._inputs.values()), outputs, width_px=width_px, height_px=height_px)
        if wrong:
            raise PolyrhythmError(f"{name}: {'; '.join(wrong)}")
        self._outputs = [tensor.name for tensor in outputs]
        cameras = [self._inputs[camera] for camera in CAMERAS if camera in self._inputs]
        self._sizes_px = {tensor.name: _size_px(tensor, width_px, height_px) for tensor in cameras}
        metadata = self._model.metadata
        self._mean = _of_colours(metadata.get("image_mean", ""), 0.0, f"{name}: metadata image_mean")
        self._std = _of_colours(metadata.get("image_std", ""), 1.0, f"{name}: metadata image_std")
        if not (self._std > 0).all():
            raise PolyrhythmError(f"{name}: metadata image_std is {metadata['image_std']!r}; expected more than 0")
        try:
            trained = trained_of(metadata)
        except UserError as problem:
            raise PolyrhythmError(f"{name}: {problem}") from problem
        self._wants = Wants(
            frozenset(self._inputs),
            history=self._rows("history"),
            skills=tuple(skill for skill in metadata.get("skills", "").split(",") if skill),
            previous=self._rows("previous"),
            judges="done" in self._outputs,
            is_relative=metadata.get("positions", "") == RELATIVE,
            step_s=trained.step_s,
            units=dict(trained.units),
        )
        has_open_rows = all(tensor.shape[:1] == (None,) for tensor in (*self._inputs.values(), *outputs))
        self._most = LARGEST_BATCH if has_open_rows else 1
        # The first run is slow, and the only proof of the shape that really comes out.
        clock = SystemClock()
        begun_ns = clock.now_ns()
        self.steps = len(self.run(*self._nothing()).chunk)
        self._first_s = clock.since_s(begun_ns)
        self.why_single = "" if has_open_rows else "its first size is fixed"
        if self._most > 1:
            self.why_single = self._why_single()
            self._most = 1 if self.why_single else LARGEST_BATCH

    @property
    def is_batched(self) -> bool:
        """Whether several questions are answered in one run; `why_single` says why not."""
        return self._most > 1

    def timing(self, count: int = 1, *, rounds: int = 5) -> Timing:
        """How long runs of so many questions take; one more run of that size goes before, to warm it up."""
        asked = [self._nothing()] * count
        self._run_rows([self._given(question) for question in asked])
        return timed(lambda: self.run_many(asked), provider=self._model.provider, first_s=self._first_s, rounds=rounds)

    def _rows(self, name: str) -> int:
        return self._inputs[name].shape[1] or 0 if name in self._inputs else 0

    def _nothing(self, shade: int = 0) -> Question:
        """A question about images of one shade, in which nothing is felt but that."""
        images = {
            camera: np.full((height, width, 3), shade, np.uint8) for camera, (width, height) in self._sizes_px.items()
        }
        joints = tuple(value + shade / 100 for value in NOTHING)
        history, previous = (joints,) * self._wants.history, ((0.0,) * COLUMNS,) * self._wants.previous
        return images, Felt(joints, history=history, previous=previous)

    def _why_single(self) -> str:
        """Why its rows are not answers of their own, or "": some exported models mix them, or cannot be given two."""
        asked = [self._nothing(shade) for shade in (0, 100)]
        together = self.run_many(asked)
        alone = [self.run(*question) for question in asked]
        for one, other in zip(together, alone, strict=True):
            if isinstance(one, PolyrhythmError):
                return f"it does not take two rows ({one})"
            if not np.allclose(one.chunk, other.chunk, atol=ALIKE, equal_nan=True):
                return "a row's answer depends on the other rows"
        return ""

    def wants(self) -> Wants:
        """Return what the model is to be given."""
        return self._wants

    def run(self, images: Mapping[str, NDArray[np.uint8]], felt: Felt) -> PolicyAnswer:
        """The model's answer to RGB images by camera and what is felt; not checked for being finite.

        Raises PolyrhythmError where an image lacks or a shape is wrong.
        """
        [answer] = self._run_rows([self._given((images, felt))])
        return answer

    def run_many(self, questions: Sequence[Question]) -> list[PolicyAnswer | PolyrhythmError]:
        """The answers to several, or what is wrong with a question; in one run where the model and the shapes allow.

        A run has 1, 2, 4, ... rows, so that a device meets few shapes; rows that are too many repeat the last one.
        """
        found: list[PolicyAnswer | PolyrhythmError] = []
        alike: dict[tuple[tuple[int, ...], ...], list[tuple[int, Feed]]] = {}
        for place, question in enumerate(questions):
            found.append(PolyrhythmError(f"{self.name} was not asked"))
            try:
                given = self._given(question)
            except PolyrhythmError as problem:
                found[place] = problem
                continue
            except ValueError as problem:  # numbers that make no array
                found[place] = PolyrhythmError(f"{self.name} was asked with {problem}")
                continue
            alike.setdefault(tuple(array.shape for array in given.values()), []).append((place, given))
        for group in alike.values():
            for start in range(0, len(group), self._most):
                part = group[start : start + self._most]
                answers: Sequence[PolicyAnswer | PolyrhythmError]
                try:
                    answers = self._run_rows([given for _, given in part])
                except PolyrhythmError as problem:
                    answers = [problem] * len(part)
                for (place, _), answer in zip(part, answers, strict=True):
                    found[place] = answer
        return found

    def _given(self, question: Question) -> Feed:
        images, felt = question
        lacking = self._sizes_px.keys() - images.keys()
        if lacking:
            raise PolyrhythmError(f"{self.name} was given no {choices(sorted(lacking))}")
        seen = {
            camera: (_pixels(images[camera], size_px) - self._mean) / self._std
            for camera, size_px in self._sizes_px.items()
        }
        return feed(self._inputs.values(), seen, felt)

    def _run_rows(self, given: Sequence[Feed]) -> list[PolicyAnswer]:
        """One run for all; their arrays have the same shapes. Raises PolyrhythmError."""
        count = len(given)
        rows = [*given, *[given[-1]] * (padded(count) - count)]
        whole = given[0] if len(rows) == 1 else {name: np.concatenate([row[name] for row in rows]) for name in given[0]}
        arrays, _ = self._model.run(whole, fetch=self._outputs)
        found = dict(zip(self._outputs, arrays, strict=True))
        chunk, done = found["chunk"], found.get("done")
        memory = np.asarray(found.get("next_memory", ()), np.float32)
        size = len(rows)
        if chunk.ndim != 3 or chunk.shape[0] != size or chunk.shape[1] < 1 or chunk.shape[2] != COLUMNS:
            raise PolyrhythmError(
                f"{self.name} gave a chunk of shape {chunk.shape}; expected ({size}, steps, {COLUMNS})"
            )
        if done is not None and done.shape != (size,):
            raise PolyrhythmError(f"{self.name} gave a done of shape {done.shape}; expected ({size},)")
        if "memory" in whole and memory.shape != whole["memory"].shape:
            raise PolyrhythmError(
                f"{self.name} gave a next_memory of shape {memory.shape}; its memory {whole['memory'].shape}"
            )
        left = memory.reshape(size, -1) if "memory" in whole else None
        return [
            PolicyAnswer(
                np.asarray(chunk[row], np.float64),
                None if done is None else float(done[row]),
                b"" if left is None else left[row].tobytes(),
            )
            for row in range(count)
        ]


def padded(count: int) -> int:
    """How many rows a run for so many questions has."""
    return 1 << (count - 1).bit_length()


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
