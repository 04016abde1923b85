"""Trains `nodes/vlm/room/crops.onnx`: python -m examples.train_eyes.train CUTS.npz... --check CUTS.npz

A small convolutional network with a head for each question: kind, colour, fill, contents, dirty and open. Seeded.
Needs the extra `train`.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

import numpy as np

from runtime.extras import install

try:
    import torch
except ModuleNotFoundError:
    sys.exit(f"examples.train_eyes.train: torch is not installed: {install('nodes[train]')}")
from torch import nn

from nodes.vlm.room.crops import COLOURS, CONTENTS, FILLS, KINDS, KNOWN_FROM, MODEL, SIDE_PX

SEED, BATCH, RATE, DECAY = 7, 64, 3e-3, 2e-3
WEIGHTS = (1.0, 0.6, 0.5, 0.5, 1.0, 0.5)
"""Of the questions, in the order of the labels."""
MIXED = 0.06
"""Of what is learned from: two halves of things of two kinds, which together are of none."""
OWN = 3
"""The channel with the group's own pixels."""


class Reader(nn.Module):  # type: ignore[misc]  # torch is not there where types are checked
    """Five channels of a cut-out, and four sizes, to likelihoods."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 5
        for width, stride in ((16, 2), (32, 1), (56, 2), (88, 1), (112, 2), (128, 1)):
            layers += [
                nn.Conv2d(before, width, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            ]  # fmt: skip
            before = width
        self.body = nn.Sequential(*layers)
        self.joined = nn.Sequential(nn.Linear(2 * before + 4, 128), nn.ReLU(), nn.Dropout(0.25))
        self.heads = nn.ModuleList(nn.Linear(128, n) for n in (len(KINDS), len(COLOURS), len(FILLS), len(CONTENTS), 2))

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


def varied(
    cuts: torch.Tensor, sizes: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Mirrored, lit otherwise, moved, rough, before another ground, some of two halves; and measured a bit wrongly."""
    n = len(cuts)
    found, labels = cuts.float(), labels.clone()
    flip = torch.rand(n) < 0.5
    found[flip] = found[flip].flip(3)
    is_moved = (torch.rand(n, 1, 1, 1) < 0.3) & (found[:, OWN : OWN + 1] < 64)
    found[:, :3] = torch.where(is_moved, found.roll(1, 0)[:, :3], found[:, :3])
    few = int(MIXED * n)
    half, other = SIDE_PX // 2 + random.randint(-4, 4), found[few : 2 * few]
    if random.random() < 0.5:
        found[:few, :, half:] = other[:, :, half:]
    else:
        found[:few, :, :, half:] = other[..., half:]
    is_odd = labels[:few, 0] != labels[few : 2 * few, 0]
    labels[:few][is_odd] = torch.tensor((len(KINDS) - 1, -1, -1, -1, -1, -1))
    labels[:few][~is_odd, 1:] = -1
    light = 0.5 + 0.9 * torch.rand(n, 1, 1, 1)
    tint = 1 + 0.15 * (2 * torch.rand(n, 3, 1, 1) - 1)
    middle = found[:, :3].mean(dim=(1, 2, 3), keepdim=True)
    contrast = 0.75 + 0.5 * torch.rand(n, 1, 1, 1)
    found[:, :3] = (
        ((found[:, :3] - middle) * contrast + middle) * light * tint
        + 4 * torch.randn(n, 3, SIDE_PX, SIDE_PX) + 12 * (torch.rand(n, 1, 1, 1) - 0.5)
    )  # fmt: skip
    across, down = random.randint(-2, 2), random.randint(-2, 2)
    found = torch.roll(found, (across, down), (2, 3))
    small = torch.rand(n) < 0.35  # as from far away
    if small.any():
        size = random.choice((12, 16, 22, 28))
        few_px = nn.functional.interpolate(found[small], size=size, mode="area")
        found[small] = nn.functional.interpolate(few_px, size=SIDE_PX, mode="bilinear")
    return (
        found.clamp(0, 255).contiguous(memory_format=torch.channels_last),
        sizes * (1 + 0.08 * torch.randn(n, 4)),
        labels,
    )


def loaded(files: list[Path]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Cut-outs, sizes and labels of some files."""
    all_ = [np.load(one) for one in files]
    cuts, sizes, labels = (np.concatenate([one[name] for one in all_]) for name in ("cuts", "sizes", "labels"))
    pictures = torch.from_numpy(cuts).permute(0, 3, 1, 2).contiguous()
    return pictures, torch.from_numpy(sizes), torch.from_numpy(labels.astype(np.int64))


def told_of(answers: list[torch.Tensor], labels: torch.Tensor) -> str:
    """How much of each question is told right; and of strangers, and of things, at `KNOWN_FROM`."""
    right = []
    for number in range(4):
        is_asked = labels[:, number] >= 0
        right.append(float((answers[number].argmax(1) == labels[:, number])[is_asked].float().mean()))
    for number in range(2):
        is_asked = labels[:, 4 + number] >= 0
        said = (answers[4][:, number] > 0) == (labels[:, 4 + number] == 1)
        right.append(float(said[is_asked].float().mean()))
    other = len(KINDS) - 1
    sure, said = answers[0].softmax(1).max(1)
    is_unknown = (said == other) | (sure < KNOWN_FROM)
    is_stranger = labels[:, 0] == other
    unknown = float(is_unknown[is_stranger].float().mean())
    named = float(((said == labels[:, 0]) & ~is_unknown)[~is_stranger].float().mean())
    names = ("kind", "colour", "fill", "contents", "dirty", "open", "strangers unknown", "things named")
    return ", ".join(f"{name} {share:.3f}" for name, share in zip(names, (*right, unknown, named), strict=True))


def main() -> None:
    """Train, tell after each round how well the cut-outs to check with are told, and write the file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cuts", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=MODEL)
    parser.add_argument("--check", type=Path, required=True, help="cut-outs of the split to check with")
    parser.add_argument("--epochs", type=int, default=8)
    asked = parser.parse_args()
    torch.manual_seed(SEED)
    random.seed(SEED)
    torch.set_num_threads(1)
    cuts, sizes, labels = loaded(asked.cuts)
    shown, measured, wanted = loaded([asked.check])
    reader = Reader().to(memory_format=torch.channels_last)
    print(len(cuts), "cut-outs,", sum(p.numel() for p in reader.parameters()), "weights", flush=True)
    steps = asked.epochs * (len(cuts) // BATCH)
    worker = torch.optim.AdamW(reader.parameters(), lr=RATE, weight_decay=DECAY)
    pace = torch.optim.lr_scheduler.OneCycleLR(worker, RATE, total_steps=steps)
    for epoch in range(asked.epochs):
        reader.train()
        mixed, total = torch.randperm(len(cuts)), 0.0
        for step in range(len(cuts) // BATCH):
            some = mixed[step * BATCH : (step + 1) * BATCH]
            *seen, asked_for = varied(cuts[some], sizes[some], labels[some])
            loss = loss_of(reader(*seen), asked_for)
            worker.zero_grad()
            loss.backward()
            worker.step()
            pace.step()
            total += loss.item()
        reader.eval()
        with torch.no_grad():
            answers = reader(shown, measured)
        print(f"epoch {epoch + 1}: loss {total * BATCH / len(cuts):.3f}; {told_of(answers, wanted)}", flush=True)
    example = (torch.zeros(2, 5, SIDE_PX, SIDE_PX, dtype=torch.uint8), torch.zeros(2, 4))
    torch.onnx.export(
        Told(reader).eval(), example, str(asked.out), input_names=["cuts", "sizes"],
        output_names=["kind", "colour", "fill", "contents", "flags"], dynamo=False, opset_version=17,
        dynamic_axes={name: {0: "n"} for name in ("cuts", "sizes", "kind", "colour", "fill", "contents", "flags")},
    )  # fmt: skip


if __name__ == "__main__":
    main()
