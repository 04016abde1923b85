"""Loads training data of ours with the packages datasets and trl; run it where they are installed.

usage: python tests/interop/load_training_data.py FOLDER [FOLDER ...]   (make interop does all of it)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory


def main(folders: list[str]) -> int:
    """0 where every folder loads by its card, line by line as it was written, and trl knows its format."""
    from datasets import load_dataset
    from trl.data_utils import is_conversational

    for folder in folders:
        with TemporaryDirectory() as cache:
            loaded = load_dataset(folder, cache_dir=cache, keep_in_memory=True)
        for split, name in (("train", "train.jsonl"), ("test", "held_out.jsonl")):
            rows = [json.loads(line) for line in (Path(folder) / name).read_text().splitlines()]
            assert not rows or list(loaded[split]) == rows, (folder, split)
        first = loaded["train"][0]
        assert is_conversational(first) == ("messages" in first), folder
        print(f"{folder}: {loaded['train'].num_rows} rows, {'messages' if 'messages' in first else 'alpaca'}")
    return 0 if folders else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
