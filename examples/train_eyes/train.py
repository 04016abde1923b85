"""Trains `nodes/kitchen/vision/crops.onnx`: python -m examples.train_eyes.train CUTS.npz... [--out FILE] [--epochs 14]

A small convolutional network with a head for each question: kind, colour, fill, contents, dirty and open. Seeded.
Needs the extra `train`.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import numpy as np
import torch
from torch import nn

from nodes.kitchen.vision.crops import COLOURS, CONTENTS, FILLS, KINDS, MODEL, SIDE_PX

SEED, BATCH, RATE, DECAY = 7, 48, 3e-3, 1e-3
WEIGHTS = (1.0, 0.6, 0.5, 0.5, 1.0, 0.5)
"""Of the questions, in the order of the labels."""
HELD_BACK = 0.05


class Reader(nn.Module):  # type: ignore[misc]  # torch is not there where types are checked
    """Five channels of a cut-out, and four sizes, to likelihoods."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 5
        for width, stride in ((16, 2), (32, 1), (48, 2), (64, 1), (80, 2), (96, 1)):
            layers += [
                nn.Conv2d(before, width, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            ]  # fmt: skip
            before = width
        self.body = nn.Sequential(*layers)
        self.joined = nn.Sequential(nn.Linear(2 * before + 4, 96), nn.ReLU(), nn.Dropout(0.2))
        self.heads = nn.ModuleList(nn.Linear(96, n) for n in (len(KINDS), len(COLOURS), len(FILLS), len(CONTENTS), 2))

    def forward(self, cuts: torch.Tensor, sizes: torch.Tensor) -> list[torch.Tensor]:
        """Logits of each question."""
        found = self.body(cuts.float() / 127.5 - 1.0)
        found = torch.cat([found.mean(dim=(2, 3)), found.amax(dim=(2, 3)), sizes], dim=1)
        found = self.joined(found)
        return [head(found) for head in self.heads]


class Told(nn.Module):  # type: ignore[misc]  # as above
    """The reader with likelihoods in place of logits."""

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self.reader = reader

    def forward(self, cuts: torch.Tensor, sizes: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Each question's likelihoods."""
        *choices, flags = self.reader(cuts, sizes)
        return (*(one.softmax(dim=1) for one in choices), flags.sigmoid())


def loss_of(answers: list[torch.Tensor], labels: torch.Tensor) -> torch.Tensor:
    """Of all questions that are asked."""
    total = answers[0].new_zeros(())
    for number in range(4):
        one = nn.functional.cross_entropy(answers[number], labels[:, number], ignore_index=-1, reduction="sum",
                                          label_smoothing=0.03 if number == 0 else 0.0)  # fmt: skip
        total = total + WEIGHTS[number] * one / max(int((labels[:, number] >= 0).sum()), 1)
    for number in range(2):
        asked = labels[:, 4 + number] >= 0
        if asked.any():
            said, is_so = answers[4][asked, number], labels[asked, 4 + number].float()
            total = total + WEIGHTS[4 + number] * nn.functional.binary_cross_entropy_with_logits(said, is_so)
    return total


def varied(cuts: torch.Tensor, sizes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mirrored, lighter or darker, tinted, moved, rough; and measured a little wrongly."""
    n = len(cuts)
    found = cuts.float()
    flip = torch.rand(n) < 0.5
    found[flip] = found[flip].flip(3)
    light = 0.6 + 0.75 * torch.rand(n, 1, 1, 1)
    tint = 1 + 0.12 * (2 * torch.rand(n, 3, 1, 1) - 1)
    found[:, :3] = (
        found[:, :3] * light * tint + 4 * torch.randn(n, 3, SIDE_PX, SIDE_PX) + 12 * (torch.rand(n, 1, 1, 1) - 0.5)
    )
    across, down = random.randint(-2, 2), random.randint(-2, 2)
    found = torch.roll(found, (across, down), (2, 3))
    small = torch.rand(n) < 0.35  # as from far away
    if small.any():
        size = random.choice((12, 16, 22, 28))
        few = nn.functional.interpolate(found[small], size=size, mode="area")
        found[small] = nn.functional.interpolate(few, size=SIDE_PX, mode="bilinear")
    return found.clamp(0, 255), sizes * (1 + 0.08 * torch.randn(n, 4))


def main() -> None:
    """Train, tell how well what was held back is told, and write the file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cuts", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=MODEL)
    parser.add_argument("--epochs", type=int, default=14)
    asked = parser.parse_args()
    torch.manual_seed(SEED)
    random.seed(SEED)
    torch.set_num_threads(1)
    loaded = [np.load(one) for one in asked.cuts]
    cuts = torch.from_numpy(np.concatenate([one["cuts"] for one in loaded])).permute(0, 3, 1, 2).contiguous()
    sizes = torch.from_numpy(np.concatenate([one["sizes"] for one in loaded]))
    labels = torch.from_numpy(np.concatenate([one["labels"] for one in loaded]).astype(np.int64))
    order = torch.randperm(len(cuts))
    held, kept = order[: int(HELD_BACK * len(order))], order[int(HELD_BACK * len(order)) :]
    reader = Reader()
    print(len(cuts), "cut-outs,", sum(p.numel() for p in reader.parameters()), "weights", flush=True)
    steps = asked.epochs * (len(kept) // BATCH)
    worker = torch.optim.AdamW(reader.parameters(), lr=RATE, weight_decay=DECAY)
    pace = torch.optim.lr_scheduler.OneCycleLR(worker, RATE, total_steps=steps)
    for epoch in range(asked.epochs):
        reader.train()
        mixed, total = kept[torch.randperm(len(kept))], 0.0
        for step in range(len(kept) // BATCH):
            some = mixed[step * BATCH : (step + 1) * BATCH]
            loss = loss_of(reader(*varied(cuts[some], sizes[some])), labels[some])
            worker.zero_grad()
            loss.backward()
            worker.step()
            pace.step()
            total += loss.item()
        reader.eval()
        with torch.no_grad():
            answers = reader(cuts[held], sizes[held])
        right = []
        for number in range(4):
            is_asked = labels[held, number] >= 0
            right.append(float((answers[number].argmax(1) == labels[held, number])[is_asked].float().mean()))
        for number in range(2):
            is_asked = labels[held, 4 + number] >= 0
            said = (answers[4][:, number] > 0) == (labels[held, 4 + number] == 1)
            right.append(float(said[is_asked].float().mean()))
        names = ("kind", "colour", "fill", "contents", "dirty", "open")
        told = ", ".join(f"{name} {share:.3f}" for name, share in zip(names, right, strict=True))
        print(f"epoch {epoch + 1}: loss {total / max(len(kept) // BATCH, 1):.3f}; {told}", flush=True)
    example = (torch.zeros(2, 5, SIDE_PX, SIDE_PX, dtype=torch.uint8), torch.zeros(2, 4))
    torch.onnx.export(
        Told(reader).eval(), example, str(asked.out), input_names=["cuts", "sizes"],
        output_names=["kind", "colour", "fill", "contents", "flags"], dynamo=False, opset_version=17,
        dynamic_axes={name: {0: "n"} for name in ("cuts", "sizes", "kind", "colour", "fill", "contents", "flags")},
    )  # fmt: skip


if __name__ == "__main__":
    main()
