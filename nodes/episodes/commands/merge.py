"""`episodes merge`: the files of a run's shards as one run's file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import msgspec

from nodes.episodes.commands.asked import Playing
from nodes.episodes.dialogue.package_prompts import prompts_in
from nodes.episodes.results.card import card_of
from nodes.episodes.results.store import KeptPlans, Store


def merge(asked: argparse.Namespace) -> int:
    """One run's file of the shards of a run; what is not done in them can be resumed in it."""
    done, count = merge_files(asked.shards, asked.out)
    print(f"{done} of {count} episodes done\n\nrun: {asked.out}")
    return 0


def merge_files(shards: Sequence[Path], out: Path) -> tuple[int, int]:
    """Write the run's file; how many episodes are done, of how many. Raises UserError where they are not of one run."""
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
        temperature = msgspec.convert(spec.get("playing", {}), Playing).temperature
        store.set_card(card_of(plans, spec["judges"], temperature=temperature, prompts=prompts_in(spec)))
        return len(plans) - store.not_done()[0], len(plans)
