"""Loads an export of ours with the sotopia package's own EpisodeLog; run it in an environment that has that package.

usage: python tests/interop/load_sotopia_logs.py export.jsonl PROFILES   (make interop does all of it)

PROFILES is the folder of `episodes export --profiles`; the package's own readers find characters and scenarios in it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("SOTOPIA_STORAGE_BACKEND", "local")


def main(path: Path, profiles: Path) -> int:
    """0 where every line is an EpisodeLog whose scores, turns and people are those of the file."""
    from sotopia.database import storage_backend  # type: ignore[import-not-found]  # only in its own environment
    from sotopia.database.logs import EpisodeLog  # type: ignore[import-not-found]
    from sotopia.database.serialization import episodes_to_jsonl  # type: ignore[import-not-found]

    storage_backend.get_storage_backend().base_path = profiles

    count, logs = 0, []
    for line in path.read_text().splitlines():
        raw = json.loads(line)
        log = EpisodeLog(**raw)
        assert len(log.rewards) == len(log.agents)
        for given, kept in zip(raw["rewards"], log.rewards, strict=True):
            assert kept == (given if isinstance(given, float) else tuple(given)), (given, kept)  # 0.0: not judged
        assert [[tuple(message) for message in group] for group in raw["messages"]] == log.messages
        logs.append(log)
        if len(log.agents) == 2:  # the package renders two, and serialises no more
            people, turns = log.render_for_humans()
            names = {receiver for sender, receiver, _ in log.messages[0] if sender == "Environment"}
            assert {f"{one.first_name} {one.last_name}".strip() for one in people} == names, names
            assert len(turns) == len(log.messages) + 2
            count += 1
    pairs = [log for log in logs if len(log.agents) == 2 and not any(isinstance(one, float) for one in log.rewards)]
    again = path.with_suffix(".package.jsonl")
    episodes_to_jsonl(pairs, str(again))
    rows = [json.loads(line) for line in again.read_text().splitlines()]
    assert [row["episode_id"] for row in rows] == [log.pk for log in pairs]
    assert all(row["scenario"] and row["codename"] and len(row["agents_background"]) == 2 for row in rows)
    print(f"{len(logs)} episodes loaded, {count} rendered and {len(rows)} serialised by the sotopia package")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
