"""The same with PyTorch and a memory: `python recurrent.py DATASET policy.onnx`, with torch, onnx, onnxscript, pyarrow.

What the model remembers goes one step on with each answer. It sees nothing, so it answers 25 times a second and is
taught at that rate: `polyrhythm bag export ... --hz 25`, and `--set policy.step_s=0.04`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import torch
from torch import nn

STEPS, HIDDEN, ROUNDS = 16, 32, 40


class Recurrent(nn.Module):  # type: ignore[misc]  # torch is not there where types are checked
    """From the joints and what it remembers to a chunk and what it will remember.

    A chunk stays within what was shown (10 numbers each): a node refuses one that leaves the robot's ranges.
    """

    def __init__(self, lowest: torch.Tensor, highest: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("lowest", lowest)
        self.register_buffer("highest", highest)
        self.cell = nn.GRUCell(8, HIDDEN)
        self.head = nn.Linear(HIDDEN, STEPS * 10)

    def forward(self, joints: torch.Tensor, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Of one row each."""
        memory = self.cell(joints, memory)
        share = torch.sigmoid(self.head(memory)).reshape(1, STEPS, 10)
        return self.lowest + (self.highest - self.lowest) * share, memory


def main(dataset: str, file: str) -> None:
    """Learn from the first episode, which is enough to show how, and write the model there."""
    episode = parquet.read_table(sorted(Path(dataset).glob("data/*/*.parquet"))[0])
    joints = torch.tensor(np.stack(episode["observation.state"].to_numpy()))[:, :8]
    actions = torch.tensor(np.stack(episode["action"].to_numpy()))
    wanted = actions.unfold(0, STEPS, 1).transpose(1, 2)  # (frames, STEPS, 10)

    torch.manual_seed(1)
    model = Recurrent(actions.amin(0), actions.amax(0))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(ROUNDS):
        memory, loss = torch.zeros(1, HIDDEN), torch.zeros(())
        for now, then in zip(joints, wanted, strict=False):
            chunk, memory = model(now[None], memory)
            loss = loss + ((chunk[0] - then) ** 2).mean() / len(wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"mean squared error {loss.item():.2g}")

    torch.onnx.export(
        model.eval(),
        (joints[:1], torch.zeros(1, HIDDEN)),
        file,
        input_names=["joints", "memory"],
        output_names=["chunk", "next_memory"],
        dynamo=True,
        external_data=False,  # the weights in this file, and not in one beside it
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
