"""Trains `alarm_spotter.onnx`: python -m examples.train_stop_spotter.train CLIPS.npz... --held HELD.npz

A convolutional network over 0.9 s of loudness in 40 bands: at each of its steps the likelihood of each word of alarm.
Seeded. Needs the extra `train`. Prints, for words and for other clips that were held back, how many are told at bounds.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from pathlib import Path

import numpy as np

from runtime.extras import install

try:
    import torch
except ModuleNotFoundError:
    sys.exit(f"examples.train_stop_spotter.train: torch is not installed: {install('nodes[train]')}")
from torch import nn

from nodes.voice.hearing.alarm_spotter import BANDS, FIELD, MODEL, SMOOTHED, STRIDE, WORDS

SEED, BATCH, RATE, DECAY = 7, 32, 2e-3, 1e-3
CHANNELS, DILATIONS = 80, (1, 1, 2, 2, 4, 4)
BOUNDS = (0.5, 0.7, 0.8, 0.9, 0.95)
OTHER_WEIGHT = 0.5
"""Of a step without a word: there are many more of them."""


class Block(nn.Module):  # type: ignore[misc]  # torch is not there where types are checked
    """Three steps to one, beside the middle one as it was."""

    def __init__(self, dilation: int) -> None:
        super().__init__()
        self.dilation = dilation
        self.layer = nn.Conv1d(CHANNELS, CHANNELS, 3, dilation=dilation, bias=False)
        self.norm = nn.BatchNorm1d(CHANNELS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.layer(x)) + x[:, :, 2 * self.dilation :])


class Spotter(nn.Module):  # type: ignore[misc]  # torch is not there where types are checked
    """(batch, frames, BANDS) to logits (batch, steps, words); what comes later is not looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(BANDS, CHANNELS, 5, stride=STRIDE, bias=False)
        self.norm = nn.BatchNorm1d(CHANNELS)
        self.blocks = nn.Sequential(*(Block(dilation) for dilation in DILATIONS))
        self.drop = nn.Dropout(0.15)
        self.last = nn.Conv1d(CHANNELS, len(WORDS), 1)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.first(frames.transpose(1, 2))))
        return self.last(self.drop(self.blocks(x))).transpose(1, 2)


class Likelihoods(nn.Module):  # type: ignore[misc]  # torch is not there where types are checked
    """What ships: likelihoods instead of logits."""

    def __init__(self, spotter: Spotter) -> None:
        super().__init__()
        self.spotter = spotter

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.spotter(frames), dim=2)


def blurred(frames: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Louder or softer, and with a few bands and moments missing."""
    count, length, bands = frames.shape
    frames = frames + 0.1 * torch.randn(count, 1, 1, generator=draw)
    for size, most in ((length, 12), (bands, 6)):
        width = torch.randint(0, most, (count, 1), generator=draw)
        start = torch.randint(0, size, (count, 1), generator=draw)
        at = torch.arange(size).expand(count, size)
        hidden = (at >= start) & (at < start + width)
        frames = frames.masked_fill(hidden.unsqueeze(2) if size == length else hidden.unsqueeze(1), 0.0)
    return frames


def told(spotter: Spotter, clips: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How sure it is of each word in the clips, and how sure at most where there is none."""
    spotter.eval()
    with torch.no_grad():
        parts = [torch.from_numpy(clips[at : at + 256].astype(np.float32)) for at in range(0, len(clips), 256)]
        sure = torch.cat([1 - torch.softmax(spotter(part), dim=2)[:, :, 0] for part in parts])
    smooth = sure.unfold(1, SMOOTHED, 1).mean(2).numpy()
    smooth = np.concatenate([np.zeros((len(smooth), SMOOTHED - 1), np.float32), smooth], axis=1)
    has = (wanted > 0).any(axis=1)
    return np.where(wanted > 0, smooth, 0).max(axis=1)[has], np.where(wanted == 0, smooth, 0).max(axis=1)[~has]


def train(clips: np.ndarray, wanted: np.ndarray, held: tuple[np.ndarray, np.ndarray], epochs: int) -> Spotter:
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    draw = torch.Generator().manual_seed(SEED)
    spotter = Spotter()
    print(f"{sum(one.numel() for one in spotter.parameters())} numbers", flush=True)
    steps = epochs * (len(clips) // BATCH)
    optimiser = torch.optim.AdamW(spotter.parameters(), RATE, weight_decay=DECAY)
    pace = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps, pct_start=0.15)
    weights = torch.ones(len(WORDS))
    weights[0] = OTHER_WEIGHT
    loss_of = nn.CrossEntropyLoss(weights, ignore_index=-1, label_smoothing=0.01)
    for epoch in range(epochs):
        spotter.train()
        total, began_s = 0.0, time.process_time()
        order = torch.randperm(len(clips), generator=draw).numpy()
        for at in range(0, len(clips) - BATCH + 1, BATCH):
            rows = np.sort(order[at : at + BATCH])
            frames = blurred(torch.from_numpy(clips[rows].astype(np.float32)), draw)
            loss = loss_of(spotter(frames).flatten(0, 1), torch.from_numpy(wanted[rows].astype(np.int64)).flatten())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            pace.step()
            total += float(loss)
        words, others = told(spotter, *held)
        at_one = np.quantile(others, 0.99) if len(others) else 1.0
        shares = ((bound, (words >= bound).mean(), (others >= bound).mean()) for bound in (*BOUNDS, at_one))
        bounds = " ".join(f"{bound:.2f}: {found:.3f}/{false:.4f}" for bound, found, false in shares)
        print(
            f"{epoch}: {total / (len(clips) // BATCH):.4f}, {bounds}, {time.process_time() - began_s:.0f} s", flush=True
        )
    return spotter


def save(spotter: Spotter, path: Path) -> None:
    spotter.eval()
    torch.onnx.export(
        Likelihoods(spotter), (torch.zeros(1, FIELD + 2 * STRIDE, BANDS),), str(path), input_names=["frames"],
        output_names=["words"], dynamic_axes={"frames": {1: "frames"}, "words": {1: "steps"}}, opset_version=17,
        dynamo=False,
    )  # fmt: skip
    print(f"{path}: {path.stat().st_size / 1e3:.0f} kB, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}")


def main() -> int:
    """Train and save."""
    parser = argparse.ArgumentParser(prog="examples.train_stop_spotter.train", description=__doc__)
    parser.add_argument("clips", type=Path, nargs="+")
    parser.add_argument("--held", type=Path, required=True, help="clips that are only measured")
    parser.add_argument("--out", type=Path, default=MODEL)
    parser.add_argument("--epochs", type=int, default=16)
    asked = parser.parse_args()
    clips, wanted = (np.concatenate([np.load(path)[name] for path in asked.clips]) for name in ("clips", "wanted"))
    held = np.load(asked.held)
    began_s = time.process_time()
    spotter = train(clips, wanted, (held["clips"], held["wanted"]), asked.epochs)
    print(f"{time.process_time() - began_s:.0f} s of CPU")
    save(spotter, asked.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
