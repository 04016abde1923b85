"""Loads an exported dataset with the lerobot package's own loader and looks at every column of some frames.

Usage: python lerobot_loads.py DATASET EPISODES (in an environment that has lerobot; `make interop` makes one)
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from lerobot.datasets.lerobot_dataset import LeRobotDataset


def main() -> None:
    root, episodes = Path(sys.argv[1]), int(sys.argv[2])
    # PyAV brings its own FFmpeg; torchcodec, the default, needs the system's.
    dataset = LeRobotDataset(
        "local/polyrhythm", root=root, video_backend="pyav", delta_timestamps={"action": [0.0, 0.05, 0.1]}
    )
    assert dataset.num_episodes == episodes, dataset.num_episodes
    assert len(dataset) == dataset.num_frames
    cameras = dataset.meta.camera_keys
    assert cameras, "no camera"
    tasks = set()
    for index in range(0, len(dataset), max(1, len(dataset) // 40)):
        frame = dataset[index]
        assert frame["observation.state"].shape == (11,)
        assert frame["action"].shape == (3, 10), frame["action"].shape
        assert torch.isfinite(frame["action"]).all()
        for key in cameras:
            assert frame[key].shape[0] == 3
            assert 0.0 <= float(frame[key].min()) <= float(frame[key].max()) <= 1.0
            assert float(frame[key].std()) > 0.01, "a picture of one colour"
        tasks.add(frame["task"])
    if "language_events" in dataset.features:
        told = [row for index in range(len(dataset)) for row in dataset.hf_dataset[index]["language_events"]]
        styles = {row["style"] for row in told}
        calls = {call["function"]["name"] for row in told for call in row["tool_calls"] or ()}
        assert "interjection" in styles, styles
        assert {"say", "interrupt"} <= calls, calls
        assert [row["style"] for row in dataset[len(dataset) - 1]["language_persistent"]][-1] == "subtask"
        print(f"and its words: {len(told)} events, calls of {', '.join(sorted(calls))}")
    last = dataset[len(dataset) - 1]
    assert bool(last["next.done"])
    if "language_events" not in dataset.features:  # PyTorch's own collate knows no words
        see_a_batch(dataset)
    print(
        f"lerobot loads it: {dataset.num_episodes} episode(s), {len(dataset)} frames, cameras {', '.join(cameras)}, "
        f"success {bool(last['next.success'])}, tasks {sorted(tasks)}"
    )


def see_a_batch(dataset: LeRobotDataset) -> None:
    loader = torch.utils.data.DataLoader(dataset, batch_size=8)
    batch = next(iter(loader))
    assert batch["observation.state"].shape == (8, 11)


if __name__ == "__main__":
    main()
