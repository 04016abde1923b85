"""`VisionLanguageModel`: the three parts of a model as one, with its memory of what it has read (its cache)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nodes.models.onnx_runtime import Held, OnnxModel, StopFlag
from nodes.vlm.onnx.parts import DECODER, EMBED, PAST, PRESENT, VISION
from runtime.errors import PolyrhythmError

LEAST_LIKENESS = 0.98
"""Correlation of the logits of the same text, read in one go and in two; rounding leaves it near 1."""


@dataclass(frozen=True, slots=True)
class KeyValueCache:
    """What the decoder keeps of the tokens that it has read; never changed, so a question can begin anew from it."""

    length: int = 0  # in tokens
    tensors: Mapping[str, Held] = field(default_factory=dict, repr=False)  # by input of the decoder


class VisionLanguageModel:
    """Reads embeddings and says how likely each token is to come next."""

    def __init__(self, parts: Mapping[str, bytes], *, name: str, providers: tuple[str, ...], threads: int) -> None:
        """Parts as `parts` expects them. Raises PolyrhythmError, in a sentence that begins with the name."""
        self.name = name

        def opened(part: str) -> OnnxModel:
            return OnnxModel(parts[part], name=f"{name}: {part}", providers=providers, threads=threads)

        self._vision, self._embed, self._decoder = opened(VISION), opened(EMBED), opened(DECODER)
        self.fallback = self._decoder.fallback
        past = [name for name in self._decoder.inputs if name.startswith(PAST)]
        self._presents = {PRESENT + name.removeprefix(PAST): name for name in past}
        self.nothing = KeyValueCache(0, {name: self._decoder.hold(name, np.zeros(self._empty(name))) for name in past})
        self.reads_many = True  # several tokens at once after others; `prove` finds out whether that is so

    def see(self, pixels: NDArray[np.float32], stop: StopFlag | None = None) -> NDArray[np.generic]:
        """Pixel values (1, 1, 3, height, width) as embeddings (places, width)."""
        feed: dict[str, NDArray[np.generic] | Held] = {"pixel_values": pixels}
        if "pixel_attention_mask" in self._vision.inputs:
            feed["pixel_attention_mask"] = np.ones((1, 1, *pixels.shape[3:]), np.bool_)
        [seen], _ = self._vision.run(feed, fetch=list(self._vision.outputs)[:1], stop=stop)
        return seen.reshape(-1, seen.shape[-1])

    def embed(self, tokens: list[int], stop: StopFlag | None = None) -> NDArray[np.generic]:
        """Tokens as embeddings (tokens, width)."""
        asked = {"input_ids": np.array([tokens])}
        [embedded], _ = self._embed.run(asked, fetch=list(self._embed.outputs)[:1], stop=stop)
        return embedded.reshape(len(tokens), -1)

    def read(
        self, embeddings: NDArray[np.generic], memory: KeyValueCache, stop: StopFlag | None = None
    ) -> tuple[NDArray[np.float32], KeyValueCache]:
        """How likely each token is after these (logits, by token), and the memory of all.

        Raises PolyrhythmError where the model fails or what it says is not finite, StoppedError where it was stopped.
        """
        if self.reads_many or not memory.length:
            return self.forward(embeddings, memory, stop)
        for one in embeddings:
            logits, memory = self.forward(one[None], memory, stop)
        return logits, memory

    def prove(self, first: NDArray[np.generic], second: NDArray[np.generic]) -> str:
        """Whether reading in two goes gives what reading in one does; a sentence where not, and it is no longer done.

        Some exported decoders take only one token at a time after the first go, and say nothing when given more.
        """
        _, memory = self.forward(first, self.nothing, None)
        apart, _ = self.forward(second, memory, None)
        whole, _ = self.forward(np.concatenate([first, second]), self.nothing, None)
        likeness = float(np.corrcoef(apart, whole)[0, 1]) if np.ptp(apart) and np.ptp(whole) else 0.0
        self.reads_many = likeness > LEAST_LIKENESS or np.array_equal(apart, whole)
        if self.reads_many:
            return ""
        return (
            f"{self._decoder.name} reads one token at a time after the first go, and is slower (alike: {likeness:.2f})"
        )

    def forward(
        self, embeddings: NDArray[np.generic], memory: KeyValueCache, stop: StopFlag | None
    ) -> tuple[NDArray[np.float32], KeyValueCache]:
        """One pass over embeddings after what `memory` holds: the logits of the last, and what is remembered then."""
        count = len(embeddings)
        length = memory.length + count
        feed: dict[str, NDArray[np.generic] | Held] = {
            "inputs_embeds": embeddings[None],
            "attention_mask": np.ones((1, length), np.int64),
            **memory.tensors,
        }
        if "position_ids" in self._decoder.inputs:
            feed["position_ids"] = np.arange(memory.length, length)[None]
        if "num_logits_to_keep" in self._decoder.inputs:
            feed["num_logits_to_keep"] = np.array(1)
        [logits], presents = self._decoder.run(feed, fetch=["logits"], keep=self._presents, stop=stop)
        last = np.asarray(logits[0, -1], np.float32)
        if not np.isfinite(last).all():
            raise PolyrhythmError(f"{self._decoder.name} gave numbers that are not finite")
        return last, KeyValueCache(length, {self._presents[name]: value for name, value in presents.items()})

    def _empty(self, name: str) -> tuple[int, int, int, int]:
        _, heads, _, width = self._decoder.shape(name)
        return 1, heads or 0, 0, width or 0
