"""`python -m tests.nodes.vlm.onnx.vlm_model DIR`: writes a tiny vision-language model in the layout of the real ones.

It was made by hand and not trained: it finds things of strong colours, one of each, calls what is teal a bin and the
others cups, and chooses the first whose colour the question does not name. That is enough to try `OnnxVLM` without a
download, and for tests. Needs the packages onnx (extra dev) and tokenizers (extra vlm).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from nodes.vlm.eyes.model_prompt import words
from nodes.vlm.onnx.words import MEANING, ModelWords

SIZE_PX = 96
SPACE = "Ġ"  # how byte-level tokenizers write it


def write_model(folder: Path, *, suffix: str = "", is_half: bool = False, size_px: int = SIZE_PX) -> Path:
    """Write all files into the folder, which may exist; the folder. `is_half`: the decoder keeps 16-bit floats."""
    from tests.nodes.vlm.onnx.vlm_graphs import COLOURS, Lexicon, decoder, embed_tokens, vision_encoder

    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    _write_tokenizer(folder / "tokenizer.json")
    known = ModelWords(folder / "tokenizer.json")
    named = {colour: token for colour in COLOURS for (token,) in [known.tokens(f" {colour}")]}
    lexicon = Lexicon(known.size, known.vocabulary, known.tokens, named)
    parts = {
        "vision_encoder": vision_encoder(lexicon, size_px),
        "embed_tokens": embed_tokens(lexicon),
        "decoder_model_merged": decoder(lexicon, is_half=is_half),
    }
    for part, data in parts.items():
        (folder / "onnx" / f"{part}{suffix}.onnx").write_bytes(data)
    configs: dict[str, dict[str, Any]] = {
        "config.json": {"model_type": "idefics3", "image_token_id": known.image_token},
        "preprocessor_config.json": {
            "max_image_size": {"longest_edge": size_px},
            "image_mean": [0.5, 0.5, 0.5],
            "image_std": [0.5, 0.5, 0.5],
            "rescale_factor": 1 / 255,
        },
        "chat_template.json": {"chat_template": "{{message}}<end_of_utterance>\nAssistant:"},
    }
    for name, config in configs.items():
        (folder / name).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    return folder


def _write_tokenizer(file: Path) -> None:
    """Bytes, and as tokens of their own the words that an answer may hold, also after a space."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    merges: list[tuple[str, str]] = []
    for word in (*words().sizes_m, *words().colours):
        merges += [(word[:end], word[end]) for end in range(1, len(word))]
        merges.append((SPACE, word))
    merges = list(dict.fromkeys(merges))
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    texts = list(dict.fromkeys([*letters, *("".join(pair) for pair in merges)]))
    vocabulary = {text: number for number, text in enumerate(texts)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(word, special=True) for word in MEANING])
    tokenizer.save(str(file))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.nodes.vlm.onnx.vlm_model DIR")
    write_model(Path(sys.argv[1]))
