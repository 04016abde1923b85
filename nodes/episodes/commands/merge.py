"""`episodes merge`: the files of a run's shards as one run's file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from nodes.episodes.commands.asked import Playing, judges_in
from nodes.episodes.dialogue.package_prompts import prompts_in
from nodes.episodes.results.card import card_of
from nodes.episodes.results.store import KeptPlans, Store


def merge(asked: argparse.Namespace) -> int:
    """One run's file of the shards of a run; what is not done can be resumed in it. 1 where a shard is missing."""
    merged = merge_files(asked.shards, asked.out)
    if asked.json:
        print(msgspec.json.encode(merged).decode())
    else:
        print(f"{merged.done} of {merged.episodes} episodes done\n\nrun: {asked.out}")
    if merged.missing:
        print(
            f"{merged.missing} of the run's {merged.episodes + merged.missing} episodes are in none of these files; "
            "merge all shards together",
            file=sys.stderr,
        )
    return 1 if merged.missing else 0


class Merged(msgspec.Struct, frozen=True):
    """What came of a merge: episodes in the file, those that are done, those of shards that were not given."""

    run: str
    episodes: int
    done: int
    missing: int


def merge_files(shards: Sequence[Path], out: Path) -> Merged:
    """Write the run's file. Raises UserError where the shards are not of one run."""
    with Store.read(shards[0]) as first:
        spec = {key: value for key, value in first.spec.items() if key != "shard"}
    for path in shards:
        Store.open(path).close()  # nobody writes it, and it is a run
    with Store.create(out, spec) as store:
        try:
            for path in shards:
                store.take_in(path)
        except BaseException:
            out.unlink()
            raise
        plans = KeptPlans(store)
        judges = judges_in(spec)
        temperature = msgspec.convert(spec.get("playing", {}), Playing).temperature
        store.set_card(card_of(plans, judges.specs, judges.dimensions, temperature, prompts_in(spec)))
        whole = int(spec.get("whole", {}).get("episodes", len(plans)))
        return Merged(str(out), len(plans), len(plans) - store.not_done()[0], max(0, whole - len(plans)))
