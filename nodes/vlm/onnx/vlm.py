"""`OnnxVLM`: eyes from a vision-language model in this process, by ONNX Runtime: no server, no key, no network.

The model is a folder in the layout in which SmolVLM and its kind are published for ONNX Runtime (docs/vlm.md).
"""

from __future__ import annotations

import math
import os
from typing import Literal

from nodes.models.budget import budget_of
from nodes.vlm.eyes.model_prompt import MOST_OBJECTS, Coordinates, system_prompt
from nodes.vlm.onnx.folder import read_folder
from nodes.vlm.onnx.request import OnnxRequest
from nodes.vlm.pointing_vlm import PointingVLM
from runtime import ParameterError, PolyrhythmError

CPU = ("CPUExecutionProvider",)


class OnnxVLM(PointingVLM):
    """A model in a thread of this node; an interrupt stops it between two tokens, and sooner.

    Of `precision` ("q4", "fp16") the folder must hold all three parts; with none named, it takes the only one there is.
    `threads=0` is half of this machine's processors. What `max_objects`, `max_tokens` or the time leave no room for
    is not listed.
    """

    provenance = "model:onnx"

    def __init__(
        self,
        folder: str,
        precision: str = "",
        providers: tuple[str, ...] = CPU,
        threads: int = 0,
        deadline_s: float = 10.0,
        max_calls: int = 0,
        max_tokens: int = 600,
        max_objects: int = 12,
        latency_s: float = 1.0,
        coordinates: Coordinates = "thousandth",
        speaker: str = "robot",
        limits: str = "",
    ) -> None:
        if not 0.0 < deadline_s < math.inf:
            raise ParameterError(f"vlm: deadline_s is {deadline_s}; expected a number of seconds above 0")
        for name, count, most in (("max_tokens", max_tokens, 10_000), ("max_objects", max_objects, MOST_OBJECTS)):
            if not 1 <= count <= most:
                raise ParameterError(f"vlm: {name} is {count}; expected 1 to {most}")
        for name, least in (("threads", threads), ("max_calls", max_calls), ("latency_s", latency_s)):
            if not least >= 0:
                raise ParameterError(f"vlm: {name} is {least:g}; expected 0 or more")
        if not providers:
            raise ParameterError("vlm: providers is empty; CPUExecutionProvider is always there")
        self.local = OnnxRequest(
            latency_s=latency_s,
            deadline_s=deadline_s,
            max_calls=max_calls,
            max_tokens=max_tokens,
            max_objects=max_objects,
        )
        super().__init__(
            self.local, coordinates, speaker, limits, has_ids=False
        )  # its answers are led, by pixels alone
        self.folder = folder
        self.precision = precision
        self.providers = tuple(providers)
        self.threads = threads or max(1, (os.cpu_count() or 2) // 2)

    def problems(self) -> list[str]:
        """What the folder and this machine lack, in sentences; models are read and not run."""
        from nodes.models.onnx_runtime import why_no_provider
        from nodes.vlm.onnx.words import why_no_tokenizer

        found, problems = read_folder(self.folder, self.precision)
        if found is not None:
            problems += found.read_parts()[1]
        problems += [text for text in (why_no_tokenizer(), why_no_provider(self.providers)) if text]
        return problems

    def model_findings(self, *, is_timed: bool) -> list[tuple[Literal["ok", "note", "problem"], str]]:
        """Return why a provider cannot be had; how long an answer takes is told at the end of a run."""
        from nodes.models.onnx_runtime import provider_notes

        return [("note", text) for text in provider_notes(self.providers)]

    def on_start(self) -> None:
        found, problems = read_folder(self.folder, self.precision)
        if found is None or problems:
            raise ParameterError(f"{self.name}: {'; '.join(problems)}")
        from nodes.vlm.onnx.eyes import LocalVisionModel

        size_mb = sum(file.stat().st_size for file in found.parts.values()) / 1e6
        names = ", ".join(file.name for file in found.parts.values())
        self.log.info("loading %s: %s (%.0f MB)", found.name, names, size_mb)
        begun_ns = self.clock.now_ns()
        try:
            eyes = LocalVisionModel(
                found,
                system=system_prompt(self.model.coordinates),
                coordinates=self.model.coordinates,
                providers=self.providers,
                threads=self.threads,
            )
        except PolyrhythmError as problem:
            raise ParameterError(f"{self.name}: {problem}") from problem
        self.log.info("%s is loaded, after %.1f s", found.name, self.clock.since_s(begun_ns))
        for note in eyes.notes:
            self.log.warning("%s", note)
        self.of_model(eyes.name)
        self.local.start(self.clock, eyes, budget_of(self.name, self.run_info, self.local.budget.max_calls))
