"""ONNX Runtime sessions as we want them: on the device that was asked for, quiet, and with errors in sentences."""

from __future__ import annotations

import onnxruntime
from onnxruntime import InferenceSession, NodeArg, OrtValue, RunOptions

from runtime.errors import PolyrhythmError, choices

__all__ = ["InferenceSession", "NodeArg", "OrtValue", "RunOptions", "open_session", "why_no_provider"]


def why_no_provider(providers: tuple[str, ...]) -> str:
    """Why none of these can do the work, or ""; whether the first does is known only once a session is open."""
    known = onnxruntime.get_available_providers()
    if any(provider in known for provider in providers):
        return ""
    return f"provider {choices(map(repr, providers))} is not installed; known: {choices(known)}"


def open_session(
    model: bytes, *, name: str, providers: tuple[str, ...], threads: int = 1
) -> tuple[InferenceSession, str]:
    """A session on the first of `providers` that can be had, and a sentence where that is not the first named, or "".

    Raises PolyrhythmError, in a sentence that begins with the name, for bytes that are no model, and where none of the
    providers can be had: the library itself would take the CPU and say nothing.
    """
    if missing := why_no_provider(providers):
        raise PolyrhythmError(f"{name}: {missing}")
    known = onnxruntime.get_available_providers()
    installed = [provider for provider in providers if provider in known]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
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
