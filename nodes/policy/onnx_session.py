"""`PolicySession`: one ONNX Runtime session with the inputs and the output that a policy has; owns onnxruntime."""

from __future__ import annotations

import cv2
import numpy as np
import onnxruntime
from numpy.typing import NDArray

from runtime.errors import PolyrhythmError, choices

JOINTS = 8
COLUMNS = JOINTS + 2  # joint positions, base v, base w


class PolicySession:
    """From an RGB image and joint positions to a chunk of commands (steps, 10), on one CPU thread unless told else."""

    def __init__(self, model: bytes, *, name: str, width_px: int, height_px: int, providers: tuple[str, ...]) -> None:
        """Of `providers` the first that can be had does the work; `fallback` says so where it is not the first named.

        Raises PolyrhythmError, in a sentence that begins with the name, for a model that is no policy, and where none
        of the providers can be had: the library itself would take the CPU and say nothing.
        """
        self.name = name
        self.width_px = width_px
        self.height_px = height_px
        known = onnxruntime.get_available_providers()
        installed = [provider for provider in providers if provider in known]
        if not installed:
            raise PolyrhythmError(
                f"{name}: provider {choices(map(repr, providers))} is not installed; known: {choices(known)}"
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(model, options, providers=installed)
        except Exception as problem:  # the library has no exception class in common
            why = str(problem).strip().partition("\n")[0]
            raise PolyrhythmError(f"{name} cannot be loaded: {why[:300]}") from problem
        self._session.disable_fallback()  # in mid-run a failure is an error, and no slower run on another device
        working = [provider for provider in installed if provider in self._session.get_providers()]
        if not working:
            raise PolyrhythmError(f"{name}: provider {choices(map(repr, installed))} does not start on this machine")
        lost = providers[: providers.index(working[0])]
        self.fallback = f"{name} runs on {working[0]}: {choices(lost)} cannot be had on this machine" if lost else ""
        self._check(self._session.get_inputs(), {"image": (1, 3, height_px, width_px), "joints": (1, JOINTS)}, "input")
        self._check(self._session.get_outputs(), {"chunk": (1, None, COLUMNS)}, "output")
        # The first run is slow, and the only proof of the shape that really comes out.
        self.steps = len(self.run(np.zeros((height_px, width_px, 3), np.uint8), (0.0,) * JOINTS))

    def run(self, rgb: NDArray[np.uint8], joints: tuple[float, ...]) -> NDArray[np.float64]:
        """The chunk (steps, 10); not checked for being finite. Raises PolyrhythmError where the shape is wrong."""
        image = rgb
        if image.shape[:2] != (self.height_px, self.width_px):
            image = cv2.resize(image, (self.width_px, self.height_px), interpolation=cv2.INTER_AREA).astype(np.uint8)
        feed = {
            "image": np.ascontiguousarray(image.transpose(2, 0, 1)[None], np.float32) / np.float32(255),
            "joints": np.asarray([joints], np.float32),
        }
        try:
            chunk = np.asarray(self._session.run(["chunk"], feed)[0])
        except Exception as problem:  # as above
            raise PolyrhythmError(f"{self.name} failed: {str(problem).strip()[:300]}") from problem
        if chunk.ndim != 3 or chunk.shape[0] != 1 or chunk.shape[1] < 1 or chunk.shape[2] != COLUMNS:
            raise PolyrhythmError(f"{self.name} gave a chunk of shape {chunk.shape}; expected (1, steps, {COLUMNS})")
        return np.asarray(chunk[0], np.float64)

    def _check(
        self,
        found: list[onnxruntime.NodeArg],
        expected: dict[str, tuple[int | None, ...]],
        what: str,
    ) -> None:
        """Names and types as expected, and every size that the model fixes."""
        names = [arg.name for arg in found]
        if sorted(names) != sorted(expected):
            raise PolyrhythmError(
                f"{self.name}: its {what}s are {choices(names)}; expected {choices(expected)} and nothing else"
            )
        for arg in found:
            shape = expected[arg.name]
            fits = len(arg.shape) == len(shape) and all(
                size is None or not isinstance(fixed, int) or fixed == size
                for fixed, size in zip(arg.shape, shape, strict=True)
            )
            if arg.type != "tensor(float)" or not fits:
                sizes = ", ".join("any" if size is None else str(size) for size in shape)
                raise PolyrhythmError(
                    f"{self.name}: {what} {arg.name!r} is {arg.type} of shape {list(arg.shape)}; "
                    f"expected tensor(float) of shape [{sizes}]"
                )
