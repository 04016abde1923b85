"""Loads an export of ours with the sotopia package's own EpisodeLog; run it in an environment that has that package.

usage: python tests/interop/load_sotopia_logs.py export.jsonl   (make interop does all of it)
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("SOTOPIA_STORAGE_BACKEND", "local")


def main(path: Path) -> int:
    """0 where every line is an EpisodeLog whose scores and turns are those of the file."""
    from sotopia.database.logs import EpisodeLog  # type: ignore[import-not-found]  # only in its own environment

    count = 0
    for line in path.read_text().splitlines():
        raw = json.loads(line)
        log = EpisodeLog(**raw)
        assert len(log.rewards) == len(log.agents)
        for given, kept in zip(raw["rewards"], log.rewards, strict=True):
            assert list(kept) == [given[0], given[1]], (given, kept)
        assert [[tuple(message) for message in group] for group in raw["messages"]] == log.messages
        count += 1
    print(f"{count} episodes loaded by the sotopia package")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
