"""`ModelWords`: text as a model's tokens; the only file that knows the package tokenizers (extra vlm).

What people said is text and nothing else: a token with a meaning of its own, such as the end of a turn, is left out
wherever it appears in words.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from nodes.vlm.onnx.folder import END_OF_TURN
from runtime.errors import PolyrhythmError
from runtime.extras import install

START, FAKE, GLOBAL, IMAGE = "<|im_start|>", "<fake_token_around_image>", "<global-img>", "<image>"
MEANING = (START, END_OF_TURN, FAKE, GLOBAL, IMAGE)


def why_no_tokenizer() -> str:
    """What is not installed, in a sentence, or ""."""
    if importlib.util.find_spec("tokenizers") is None:
        return f"the package tokenizers is not installed: {install('nodes[vlm]')}"
    return ""


class ModelWords:
    """A tokenizer.json, and the prompt that a chat model of this kind was trained with."""

    def __init__(self, file: Path) -> None:
        """Raises PolyrhythmError for a file that is no tokenizer, or that of another kind of model."""
        import tokenizers

        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(file))
        except Exception as problem:  # the library raises Exception itself
            raise PolyrhythmError(f"{file} is no tokenizer: {str(problem)[:300]}") from problem
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        known = {word: self._tokenizer.token_to_id(word) for word in MEANING}
        self._meaning = {word: token for word, token in known.items() if token is not None}
        missing = [word for word in MEANING if word not in self._meaning]
        if missing:
            raise PolyrhythmError(f"{file} has no token {', '.join(missing)}; the model is of another kind")
        self._added = set(self._tokenizer.get_added_tokens_decoder())
        self.image_token = self._meaning[IMAGE]
        self.size = self._tokenizer.get_vocab_size()
        self.vocabulary = {
            text: token
            for text, token in self._tokenizer.get_vocab().items()
            if token not in self._added and text.isascii() and text.isprintable()
        }
        """What a token says, for those that say nothing but plain letters, digits and signs."""

    def tokens(self, text: str) -> list[int]:
        """Plain text, without any token that means more than it says."""
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        return [token for token in encoded.ids if token not in self._added]

    def opening(self, system: str) -> list[int]:
        """The prompt up to the image, the same for every question."""
        end, start = self._meaning[END_OF_TURN], self._meaning[START]
        return [start, *self.tokens(f"System: {system}"), end, *self.tokens("\nUser:")]

    def question(self, text: str, image_tokens: int) -> list[int]:
        """The rest of the prompt: the image, as so many places for what the model sees, and the question."""
        fake = self._meaning[FAKE]
        image = [fake, self._meaning[GLOBAL], *[self.image_token] * image_tokens, fake]
        return [*image, *self.tokens(text), self._meaning[END_OF_TURN], *self.tokens("\nAssistant:")]

    def said(self, tokens: list[int]) -> str:
        """What tokens say, with those that mean more."""
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=False)
        return text
