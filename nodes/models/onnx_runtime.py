"""ONNX Runtime sessions as we want them: on the device that was asked for, quiet, and with errors in sentences."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime import InferenceSession, NodeArg, OrtValue

from runtime import Node
from runtime.clock import SystemClock
from runtime.errors import ParameterError, PolyrhythmError, choices
from runtime.extras import install

__all__ = [
    "Held",
    "NodeArg",
    "OnnxModel",
    "StopFlag",
    "StoppedError",
    "Timing",
    "findings",
    "open_session",
    "provider_notes",
    "tell_speed",
    "timed",
    "why_no_provider",
]

_NUMPY_TYPES: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}
_DEVICES = {"CUDAExecutionProvider": "cuda", "TensorrtExecutionProvider": "cuda"}
_OF_GPU_BUILD = ("CUDAExecutionProvider", "TensorrtExecutionProvider")

Held: TypeAlias = OrtValue  # a tensor that stays where the model runs


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a model took here; the first run, which is slow, stands apart."""

    provider: str
    first_s: float
    runs_s: tuple[float, ...]
    cpu_s: float  # of all threads, for one run

    def __str__(self) -> str:
        median, slowest = sorted(self.runs_s)[len(self.runs_s) // 2], max(self.runs_s)
        return (
            f"{self.provider}: first answer {1e3 * self.first_s:.1f} ms, then {1e3 * median:.1f} ms (slowest of "
            f"{len(self.runs_s)}: {1e3 * slowest:.1f} ms), {1e3 * self.cpu_s:.1f} ms of CPU each"
        )

    def why_slow(self, budget_s: float) -> str:
        """That even its fastest answer is later than the budget, with the remedy, or ""."""
        if min(self.runs_s) <= budget_s:
            return ""
        return (
            f"takes {1e3 * min(self.runs_s):.1f} ms for an answer on {self.provider}, and its budget is "
            f"{1e3 * budget_s:g} ms: take a smaller model, more threads, a provider with a card, or a larger budget_s"
        )


class Timed(Protocol):
    """A model, or several, that can say how long they take."""

    fallback: str

    def timing(self, *, rounds: int = 5) -> Timing:
        """How long so many runs take."""
        ...


def findings(
    providers: tuple[str, ...], opened: Callable[[], Timed] | None, name: str, budget_s: float
) -> list[tuple[Literal["ok", "note", "problem"], str]]:
    """What `polyrhythm doctor` tells of a model; `opened` loads it to be timed. Raises what that raises."""
    found: list[tuple[Literal["ok", "note", "problem"], str]] = [("note", text) for text in provider_notes(providers)]
    if opened is not None:
        model = opened()
        found += [("note", model.fallback)] if model.fallback else []
        timing = model.timing(rounds=50)
        slow = timing.why_slow(budget_s)
        told = f"{name} on {timing}; budget {1e3 * budget_s:g} ms"
        found.append(("problem", f"{name} {slow}") if slow else ("ok", told))
    return found


def tell_speed(node: Node, model: Timed, name: str, budget_s: float) -> None:
    """Log where a model runs; in real time, how long it takes. Raises ParameterError where that breaks its budget."""
    if model.fallback:
        node.log.warning("%s", model.fallback)
    if not node.clock.is_virtual:
        timing = model.timing()
        if slow := timing.why_slow(budget_s):
            raise ParameterError(f"{node.name}: {name} {slow}")
        node.log.info("%s on %s", name, timing)


def timed(run: Callable[[], object], *, provider: str, first_s: float, rounds: int) -> Timing:
    """How long a warm model takes for so many runs."""
    taken_s, clock, cpu_s = [], SystemClock(), _cpu_s()
    for _ in range(rounds):
        begun_ns = clock.now_ns()
        run()
        taken_s.append(clock.since_s(begun_ns))
    return Timing(provider, first_s, tuple(taken_s), (_cpu_s() - cpu_s) / rounds)


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def why_no_provider(providers: tuple[str, ...]) -> str:
    """Why none of these can do the work, or ""; whether the first does is known only once a session is open."""
    known = onnxruntime.get_available_providers()
    if any(provider in known for provider in providers):
        return ""
    return f"provider {choices(map(repr, providers))} is not installed; known: {choices(known)}"


def provider_notes(providers: tuple[str, ...]) -> list[str]:
    """Why the first of these that can be had is not the first named, in sentences with the remedy; [] where it is."""
    known = onnxruntime.get_available_providers()
    lost = []
    for provider in providers:
        if provider in known:
            break
        remedy = (
            f"pip uninstall onnxruntime, then {install('nodes[gpu]')}, on a machine with an NVIDIA card"
            if provider in _OF_GPU_BUILD
            else f"known: {choices(known)}"
        )
        lost.append(f"{provider} is not in this build of ONNX Runtime: {remedy}")
    return lost


def open_session(
    model: bytes,
    *,
    name: str,
    providers: tuple[str, ...],
    threads: int = 1,
    beside: Mapping[str, bytes] | None = None,
    seed: int = 0,
) -> tuple[InferenceSession, str]:
    """A session on the first of `providers` that can be had, and a sentence where that is not the first named, or "".

    `beside` are the files, by name, in which the model keeps weights; `seed` is that of operators which draw random
    numbers and have none of their own. Raises PolyrhythmError, in a sentence that begins
    with the name, for bytes that are no model, and where none of the providers can be had: the library itself would
    take the CPU and say nothing.
    """
    if missing := why_no_provider(providers):
        raise PolyrhythmError(f"{name}: {missing}")
    known = onnxruntime.get_available_providers()
    installed = [provider for provider in providers if provider in known]
    onnxruntime.set_seed(seed % 2**31)  # the library's own is the time of day
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        if beside:
            names, parts = list(beside), list(beside.values())
            options.add_external_initializers_from_files_in_memory(names, parts, [len(part) for part in parts])
        session = onnxruntime.InferenceSession(model, options, providers=installed)
    except Exception as problem:  # the library has no exception class in common
        why = str(problem).strip().partition("\n")[0]
        raise PolyrhythmError(f"{name} cannot be loaded: {why[:300]}") from problem
    session.disable_fallback()  # in mid-run a failure is an error, and no slower run on another device
    working = [provider for provider in installed if provider in session.get_providers()]
    if not working:
        raise PolyrhythmError(f"{name}: provider {choices(map(repr, installed))} does not start on this machine")
    lost = providers[: providers.index(working[0])]
    return session, f"{name} runs on {working[0]}: {choices(lost)} cannot be had on this machine" if lost else ""


class StoppedError(PolyrhythmError):
    """A run was stopped by its `StopFlag`."""


class StopFlag:
    """Ends the run under way and all that follow with it; `set` may be called from another thread."""

    def __init__(self) -> None:
        self.options = onnxruntime.RunOptions()

    def set(self) -> None:
        """The run under way ends after the operator that it is at."""
        self.options.terminate = True

    @property
    def is_set(self) -> bool:
        return bool(self.options.terminate)


class OnnxModel:
    """A model with several inputs and outputs, some of which stay on its device between runs."""

    def __init__(
        self,
        model: bytes,
        *,
        name: str,
        providers: tuple[str, ...],
        threads: int = 1,
        beside: Mapping[str, bytes] | None = None,
        seed: int = 0,
    ) -> None:
        """Raises PolyrhythmError as `open_session` does."""
        self.name = name
        self._session, self.fallback = open_session(
            model, name=name, providers=providers, threads=threads, beside=beside, seed=seed
        )
        self.inputs = {arg.name: arg for arg in self._session.get_inputs()}
        self.outputs = {arg.name: arg for arg in self._session.get_outputs()}
        self.metadata: Mapping[str, str] = self._session.get_modelmeta().custom_metadata_map
        self.provider = self._session.get_providers()[0]
        self._device = _DEVICES.get(self.provider, "cpu")

    def shape(self, name: str) -> list[int | None]:
        """Of an input; None where the model leaves a size open."""
        return [size if isinstance(size, int) else None for size in self.inputs[name].shape]

    def dtype(self, name: str) -> type[np.generic]:
        """Of an input. Raises PolyrhythmError for one that no array here can be."""
        kind = self.inputs[name].type
        if kind not in _NUMPY_TYPES:
            raise PolyrhythmError(f"{self.name}: input {name!r} is {kind}; expected {choices(_NUMPY_TYPES)}")
        return _NUMPY_TYPES[kind]

    def hold(self, name: str, array: NDArray[np.generic]) -> Held:
        """An array as the input `name` takes it."""
        return OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array, self.dtype(name)))

    def run(
        self,
        feed: Mapping[str, NDArray[np.generic] | Held],
        *,
        fetch: Sequence[str],
        keep: Iterable[str] = (),
        stop: StopFlag | None = None,
    ) -> tuple[list[NDArray[np.generic]], dict[str, Held]]:
        """The outputs `fetch` as arrays, and those of `keep` as they are, on the device.

        Arrays are given the type that their input has. Raises StoppedError, and PolyrhythmError where the model fails.
        """
        binding = self._session.io_binding()
        try:
            for name, value in feed.items():
                held = value if isinstance(value, OrtValue) else self.hold(name, value)
                binding.bind_ortvalue_input(name, held)
            kept = list(keep)
            for name in fetch:
                binding.bind_output(name, "cpu")
            for name in kept:
                binding.bind_output(name, self._device)
            self._session.run_with_iobinding(binding, stop.options if stop is not None else None)
        except PolyrhythmError:
            raise
        except Exception as problem:  # as above
            if stop is not None and stop.is_set:
                raise StoppedError(f"{self.name} was stopped") from problem
            raise PolyrhythmError(f"{self.name} failed: {str(problem).strip()[:300]}") from problem
        found = binding.get_outputs()
        arrays = [np.asarray(one.numpy()) for one in found[: len(fetch)]]
        return arrays, dict(zip(kept, found[len(fetch) :], strict=True))
