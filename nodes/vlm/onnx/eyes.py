"""`LocalVisionModel`: a question and an image in, an answer out, token by token, with a model in this process.

The instructions come before the image and are read once. The answer follows `answer_script`: what is certain the
model is not asked, and reads in one go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from nodes.models.onnx_runtime import StopFlag
from nodes.vlm.eyes.model_prompt import Coordinates, words
from nodes.vlm.onnx.answer_script import Script, continuations, missing_letters, remaining, script
from nodes.vlm.onnx.folder import ModelFolder
from nodes.vlm.onnx.model import KeyValueCache, VisionLanguageModel
from nodes.vlm.onnx.words import ModelWords
from runtime.errors import PolyrhythmError

TOKENS_PER_THING = 40
"""Of the answer, before the first is counted."""
TOKENS_AT_THE_END = 40
"""Of what comes behind the list of things."""
PROOF_TOKENS = 64
"""Of the instructions: so much is enough to see whether a decoder reads on as it should."""


def tile(
    rgb: NDArray[np.uint8], size_px: int, mean: tuple[float, ...], std: tuple[float, ...], scale: float
) -> NDArray[np.float32]:
    """Pixel values (1, 1, 3, size_px, size_px): squeezed into a square, as these models see whole images.

    `scale` makes 0..255 what `mean` and `std` are of. Raises ValueError where the image is none.
    """
    if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8 or 0 in rgb.shape:
        raise ValueError(f"an image is {rgb.dtype} of shape {rgb.shape}; expected uint8 (height, width, 3)")
    shrinks = rgb.shape[0] >= size_px and rgb.shape[1] >= size_px
    square = cv2.resize(
        np.ascontiguousarray(rgb), (size_px, size_px), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC
    )
    values = (square.astype(np.float32) * scale - np.asarray(mean, np.float32)) / np.asarray(std, np.float32)
    return np.ascontiguousarray(values.transpose(2, 0, 1)[None, None], np.float32)


@dataclass(slots=True)
class Look:
    """One answer under way: what it may take, and what it has taken so far."""

    longest: int  # answer, in tokens
    most_things: int
    is_late: Callable[[], bool]
    skills: tuple[str, ...] = ()  # that may be chosen
    stop: StopFlag = field(default_factory=StopFlag)
    prompt_tokens: int = 0
    answer_tokens: int = 0

    def has_room(self, things: int) -> bool:
        """Whether one more thing may be listed: an answer that grows too long, or late, is closed and not cut off."""
        per_thing = self.answer_tokens / things if things else TOKENS_PER_THING
        needs = self.answer_tokens + 1.5 * per_thing + TOKENS_AT_THE_END
        return things < self.most_things and needs < self.longest and not self.is_late()


class LocalVisionModel:
    """A model, its tokenizer and what it has read of the instructions."""

    def __init__(
        self, folder: ModelFolder, *, system: str, coordinates: Coordinates, providers: tuple[str, ...], threads: int
    ) -> None:
        """Raises PolyrhythmError, in sentences, for a model that cannot be asked; it has been run once, then."""
        parts, problems = folder.read_parts()
        if problems:
            raise PolyrhythmError("; ".join(problems))
        self.name = folder.name
        self.coordinates = coordinates
        self.pictures = folder.pictures
        self.words = ModelWords(folder.tokenizer)
        self.model = VisionLanguageModel(parts, name=f"model {self.name!r}", providers=providers, threads=threads)
        del parts
        letters = (*words().sizes_m, *words().colours, 'abcdefghijklmnopqrstuvwxyz_0123456789-"{}[],')
        if missing := missing_letters(letters, self.words.vocabulary):
            raise PolyrhythmError(f"{folder.tokenizer} has no tokens for {missing!r}; answers need them")
        self._opening_tokens = self.words.opening(system)
        self._opening = self.model.embed(self._opening_tokens)
        self._memory: KeyValueCache | None = None
        self.notes = [note for note in (self.model.fallback, self._prove()) if note]

    def answer(self, text: str, rgb: NDArray[np.uint8], look: Look) -> str:
        """The answer as JSON, by the coordinates asked for. Raises StoppedError, PolyrhythmError, ValueError."""
        seen = self._see(rgb, look.stop)
        rest = self._question(text, seen, look.stop)
        look.prompt_tokens = len(self._opening_tokens) + len(rest)
        if self._memory is not None:
            logits, memory = self.model.read(rest, self._memory, look.stop)
        else:
            logits, memory = self.model.read(np.concatenate([self._opening, rest]), self.model.nothing, look.stop)
        height_px, width_px = rgb.shape[:2]
        right, bottom = (999, 999) if self.coordinates == "thousandth" else (width_px - 1, height_px - 1)
        lines = script(words().sizes_m, words().colours, right, bottom, look.has_room, look.skills, words().say.led)
        return self._follow(lines, logits, memory, look)

    def _follow(self, lines: Script, logits: NDArray[np.float32], memory: KeyValueCache, look: Look) -> str:
        said: list[str] = []
        unread: list[int] = []

        def write(text: str, tokens: list[int]) -> None:
            said.append(text)
            unread.extend(tokens)
            look.answer_tokens += len(tokens)

        left = next(lines)
        while True:
            chosen = ""
            while len(left) > 1:
                if unread:
                    logits, memory = self.model.read(self.model.embed(unread, look.stop), memory, look.stop)
                    unread.clear()
                allowed = continuations(left, self.words.vocabulary)
                token = max(allowed, key=lambda token: (logits[token], -token))
                write(allowed[token], [token])
                chosen += allowed[token]
                left = remaining(left, allowed[token])
            if left[0]:
                write(left[0], self.words.tokens(left[0]))
            try:
                left = lines.send(chosen + left[0])
            except StopIteration:
                return "".join(said)

    def _see(self, rgb: NDArray[np.uint8], stop: StopFlag | None) -> NDArray[np.generic]:
        form = self.pictures
        return self.model.see(tile(rgb, form.size_px, form.image_mean, form.image_std, form.rescale_factor), stop)

    def _question(self, text: str, seen: NDArray[np.generic], stop: StopFlag | None) -> NDArray[np.generic]:
        tokens = self.words.question(text, len(seen))
        embeddings = self.model.embed(tokens, stop).copy()
        embeddings[np.array(tokens) == self.words.image_token] = seen
        return embeddings

    def _prove(self) -> str:
        """Run the whole once: the only proof that the parts fit. Raises PolyrhythmError where they do not."""
        seen = self._see(np.full((8, 8, 3), 128, np.uint8), None)
        if not len(seen) or seen.shape[1] != self._opening.shape[1]:
            raise PolyrhythmError(
                f"model {self.name!r}: what it sees is of shape {seen.shape}, its words of width "
                f"{self._opening.shape[1]}; the parts are of different models"
            )
        question = self._question("What is there?", seen, None)
        logits, _ = self.model.read(question, self.model.nothing)
        if len(logits) <= max(self.words.vocabulary.values()):
            raise PolyrhythmError(
                f"model {self.name!r}: it knows {len(logits)} tokens, its tokenizer {self.words.size}; "
                "they are of different models"
            )
        note = self.model.prove(self._opening[-PROOF_TOKENS:], question)
        if not note:
            _, self._memory = self.model.read(self._opening, self.model.nothing)
        return note
