"""A program for LeRobot's own Python: a policy that LeRobot saved becomes ONNX, and LeRobot answers a sample with it.

`polyrhythm policy adopt FOLDER --python PYTHON` starts it as `PYTHON export.py FOLDER SAMPLE.npz OUT`. It reads numbers
and settings, and unpickles nothing. OUT/model.onnx has LeRobot's names and none of its normalisation;
OUT/answer.npy is what LeRobot itself says to the sample, with all of it: (steps, columns).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from lerobot.configs.policies import PreTrainedConfig
from lerobot.policies.factory import get_policy_class, make_pre_post_processors

OPSET = 18
ADOPTED = ("act",)
"""Kinds of policies whose chunk follows from what is seen and felt now, and from nothing else."""


class Chunk(torch.nn.Module):  # type: ignore[misc]  # untyped where torch is not installed
    """A policy as a function of tensors in a fixed order."""

    def __init__(self, policy: torch.nn.Module, names: list[str]) -> None:
        super().__init__()
        self.policy = policy
        self.names = names

    def forward(self, *values: torch.Tensor) -> torch.Tensor:
        """The chunk, (1, steps, columns)."""
        return self.policy.predict_action_chunk(dict(zip(self.names, values, strict=True)))


def main(folder: str, sample: str, out: str) -> None:
    """Write both files."""
    config = PreTrainedConfig.from_pretrained(folder)
    if config.type not in ADOPTED:
        sys.exit(f"it is a {config.type} policy, and only {', '.join(ADOPTED)} can be exported so far")
    config.device = "cpu"
    policy = get_policy_class(config.type).from_pretrained(folder, config=config).eval()
    on_cpu = {"device_processor": {"device": "cpu"}}
    before, after = make_pre_post_processors(
        config, pretrained_path=folder, preprocessor_overrides=on_cpu, postprocessor_overrides=on_cpu
    )
    with np.load(sample) as arrays, torch.no_grad():
        names = list(config.input_features)
        ready = before({name: torch.from_numpy(arrays[name]) for name in names})
        answer = after(policy.predict_action_chunk(ready))
        np.save(Path(out) / "answer.npy", answer[0].numpy())
        torch.onnx.export(
            Chunk(policy, names).eval(),
            tuple(ready[name] for name in names),
            str(Path(out) / "model.onnx"),
            input_names=names,
            output_names=["action"],
            opset_version=OPSET,
            dynamo=True,
            external_data=False,
            verbose=False,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
