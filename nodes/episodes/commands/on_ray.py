"""The shards of a run: merged by `episodes merge`, and played by `--engine ray` as tasks on an existing Ray cluster.

A shard is a run's file of its own. It travels to a worker, is played there on that machine's own disk, and comes back
every few seconds. A worker that dies loses what it did since then; its shard goes on from there on another one.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.commands.asked import (
    Playing,
    failed_evaluations,
    judges_in,
    playing_again,
    print_run,
    servers_of,
    settings_of,
)
from nodes.episodes.commands.ray_cluster import MOST_DEATHS, RayCluster
from nodes.episodes.dialogue.package_prompts import prompts_in
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.results.card import card_of
from nodes.episodes.results.run_file import check_is_new
from nodes.episodes.results.store import KeptPlans, Store
from nodes.episodes.runner.progress import RunProgress
from nodes.episodes.runner.runner import play_and_judge
from nodes.models.budget import Spent
from nodes.models.servers import Servers
from nodes.msgs.episode import Outcome
from runtime import __version__
from runtime.clock import SystemClock
from runtime.errors import PolyrhythmError, UserError
from runtime.operating_system.whole_file import write_whole


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


NEWS_S = 1.0
CHECKPOINT_S = 3.0
"""A shard comes back as often, or less where that would cost more than a twentieth of its time."""


class ShardWork(msgspec.Struct, frozen=True):
    """What a worker is given: a shard's file, and how it is to be played."""

    name: str
    data: bytes  # the file, compressed
    playing: Playing
    jobs: int
    spent: Spent  # so far, with what workers spent that died before their answers came back
    version: str = __version__


class ShardNews(msgspec.Struct, frozen=True):
    """What a worker tells: how far the shard is, and now and then its file."""

    done: int
    failed: int = 0
    spent: Spent = Spent()
    why: str = ""  # at the end: why not all of it is done
    is_spent: bool = False  # its share of the budget is used up
    data: bytes = b""  # the file, compressed


def play_shard(work: ShardWork) -> Iterator[ShardNews]:
    """Play a shard to its end on this machine; the last news has its file."""
    if work.version != __version__:
        raise UserError(f"a worker has polyrhythm {__version__}, who started the run {work.version}; expected the same")
    with TemporaryDirectory(prefix="episodes-") as folder:
        path = Path(folder) / work.name
        path.write_bytes(zlib.decompress(work.data))
        with Store.open(path) as store:  # which refuses a network file system
            yield from _played(store, work)


def _played(store: Store, work: ShardWork) -> Iterator[ShardNews]:
    servers, clock, counts = servers_of(work.playing), SystemClock(), _states(store)
    servers.budget.count(work.spent)
    settings = settings_of(work.playing, servers, judges_in(store.spec), work.jobs, prompts_in(store.spec))
    counts["failed"] = 0

    def played(plan: EpisodePlan, outcome: Outcome) -> None:
        counts[outcome.state] += 1

    def news(data: bytes = b"", why: str = "") -> ShardNews:
        budget = servers.budget
        return ShardNews(counts["done"], counts["failed"], budget.so_far(), why, bool(budget.spent), data)

    with asyncio.Runner() as runner:
        task = runner.get_loop().create_task(play_and_judge(store.unfinished(), store, settings, played))
        try:
            next_s = clock.now_s() + CHECKPOINT_S
            while not task.done():
                runner.run(_wait(task))
                began_s = clock.now_s()
                if began_s < next_s:
                    yield news()
                    continue
                yield news(_copy_of(store))
                next_s = clock.now_s() + max(CHECKPOINT_S, 20 * (clock.now_s() - began_s))
            task.result()
        finally:
            task.cancel()
            runner.run(servers.close())
    yield news(_copy_of(store), _lacking(store))


def _lacking(store: Store) -> str:
    """Why not all of it is done; "" where it is."""
    failed, first = store.not_done()
    unjudged, why = failed_evaluations(store, judges_in(store.spec))
    return (first if failed else "") or (f"{unjudged} evaluations are missing: {why}" if unjudged else "")


async def _wait(task: asyncio.Task[bool]) -> None:
    await asyncio.wait({task}, timeout=NEWS_S)


def _states(store: Store) -> Counter[str]:
    return Counter(dict(store.db.execute("SELECT state, count(*) FROM episodes GROUP BY state")))


def _copy_of(store: Store) -> bytes:
    """The file as it stands, compressed."""
    copy = store.path.with_name("copy")
    store.db.execute("VACUUM INTO ?", (str(copy),))
    data = zlib.compress(copy.read_bytes(), 1)
    copy.unlink()
    return data


Amount = tuple[float, float, float]
"""Of calls, tokens and money."""


@dataclass(slots=True)
class Purse:
    """The budget of the whole run, given out to shards in shares; what a shard leaves over goes to others."""

    limits: Amount  # 0: no limit
    spent: dict[int, Amount] = field(default_factory=dict)  # by shard
    bounds: dict[int, Amount] = field(default_factory=dict)  # how far those may go that play now

    def may_go_to(self, shard: int, others: int) -> Amount | None:
        """How far the shard may go in all while so many others want something, too; None where nothing is left."""
        known, bounds = {**self.spent, **self.bounds}, []
        for kind, limit in enumerate(self.limits):
            left = limit - sum(one[kind] for one in known.values())
            least = limit / 100 if kind == 2 else max(1.0, limit / 100)
            share = max(left / (2 * others + 1), min(left, least)) if others else left
            share = share if kind == 2 else int(share)
            if limit and share <= 0:
                return None
            bounds.append(self.spent.get(shard, (0, 0, 0))[kind] + share if limit else 0)
        self.bounds[shard] = (bounds[0], bounds[1], bounds[2])
        return self.bounds[shard]


def play_on(
    cluster: RayCluster[ShardWork, ShardNews],
    shards: Sequence[Path],
    playing: Playing,
    jobs: int,
    progress: RunProgress,
) -> list[ShardNews]:
    """Play all shards to their ends; the last news of each. Their files hold what came of it."""
    purse = Purse((playing.max_calls, playing.max_tokens, playing.max_money))
    starved, deaths, told = set[int](), Counter[int](), list[ShardNews]()
    for shard, path in enumerate(shards):
        with Store.read(path) as store:
            spent = servers_of(playing, store.tokens_by_model()).budget.so_far()
            told.append(ShardNews(_states(store)["done"], 0, spent, _lacking(store)))
        purse.spent[shard] = _amount(spent)
    waiting = [shard for shard, news in enumerate(told) if news.why]
    while True:
        for shard in tuple(waiting):
            is_starved = shard in starved  # its share was too small for one call: it waits for all that is left
            if is_starved and purse.bounds:
                continue
            others = 0 if is_starved else len(waiting) - 1 + len(purse.bounds)
            if (bound := purse.may_go_to(shard, others)) is not None:
                waiting.remove(shard)
                how = _share_of(playing, bound, min(cluster.slots, len(shards)))
                data = zlib.compress(shards[shard].read_bytes(), 1)
                cluster.submit(shard, ShardWork(shards[shard].name, data, how, jobs, told[shard].spent))
        if not purse.bounds:
            return told
        shard, news, death = cluster.next()
        if news is not None:
            told[shard] = news
            if news.data:
                deaths[shard] = 0
                write_whole(shards[shard], zlib.decompress(news.data))
            spent = Spent(*(sum(getattr(one.spent, name) for one in told) for name in Spent.__struct_fields__))
            progress.stands(sum(one.done for one in told), sum(one.failed for one in told), spent)
            continue
        before, purse.spent[shard] = purse.spent[shard], _amount(told[shard].spent)
        del purse.bounds[shard]
        deaths[shard] += bool(death)
        if deaths[shard] >= MOST_DEATHS:
            raise PolyrhythmError(f"{deaths[shard]} workers died over {shards[shard]}, the last one: {death}")
        if death or (told[shard].is_spent and not (shard in starved and before == purse.spent[shard])):
            waiting.append(shard)
            if not death and before == purse.spent[shard]:
                starved.add(shard)


def _amount(spent: Spent) -> Amount:
    return spent.calls, spent.prompt_tokens + spent.completion_tokens, spent.money


def _share_of(playing: Playing, bound: Amount, together: int) -> Playing:
    """With a share of the budget, and of each server's rate."""
    replace = msgspec.structs.replace
    tables = {name: replace(table, rate=table.rate / together) for name, table in playing.servers.items()}
    playing = replace(playing, rate=playing.rate / together, servers=tables)
    return replace(playing, max_calls=int(bound[0]), max_tokens=int(bound[1]), max_money=bound[2])


def shards_of(path: Path) -> Path:
    """The folder where a run's shards are while it is played."""
    return path.with_name(path.name + ".shards")


def run_on_ray(
    path: Path, plans: list[EpisodePlan], spec: Mapping[str, Any], card: dict[str, Any], asked: argparse.Namespace
) -> int:
    """Make the shards, have them played, merge them."""
    folder = shards_of(path)
    if asked.shard:
        raise UserError("--shard is for runs without an engine; with --engine ray it is --shards N, all of them")
    if asked.shards < 0:
        raise UserError(f"--shards is {asked.shards}; expected at least 1")
    for text in sorted({agent for plan in plans for agent in plan.agents}):
        if (kind := AgentSpec.parse(text).kind) in ("human", "script", "replay"):
            raise UserError(
                f"--agents {text}: {kind} plays on this machine; with --engine ray expected rules or models"
            )
    check_is_new(path)
    if folder.exists():
        raise UserError(f"{folder}: holds the shards of a run; go on with: {_again(path)}")
    cluster = RayCluster(play_shard)
    count = min(asked.shards or cluster.slots, len(plans))
    shards = [folder / f"{number + 1:04}.sqlite" for number in range(count)]
    for number, shard in enumerate(shards):
        with Store.create(shard, {**spec, "shard": f"{number + 1}/{count}"}) as store:
            store.add(plans[number::count], first=number, step=count)
            store.set_card(card)
    return _play_and_merge(cluster, shards, path, msgspec.convert(spec["playing"], Playing), asked)


def resume_on_ray(asked: argparse.Namespace) -> int:
    """Go on with the shards of a run that was stopped, or of which something has failed."""
    shards = sorted(shards_of(asked.run).glob("*.sqlite"))
    if not shards:
        raise UserError(
            f"{shards_of(asked.run)}: there are no shards; without --engine ray {asked.run} is resumed here"
        )
    check_is_new(asked.run)
    with Store.open(shards[0]) as store:
        playing = playing_again(asked, store.spec.get("playing", {}), asked.run)
    return _play_and_merge(RayCluster(play_shard), shards, asked.run, playing, asked)


def _play_and_merge(
    cluster: RayCluster[ShardWork, ShardNews],
    shards: Sequence[Path],
    path: Path,
    playing: Playing,
    asked: argparse.Namespace,
) -> int:
    count = 0
    for shard in shards:
        with Store.read(shard) as store:
            count += sum(_states(store).values())
            judges = judges_in(store.spec)
    progress = RunProgress(count, Servers(), is_shown=sys.stderr.isatty() and not asked.json)
    try:
        with redirect_stdout(sys.stderr), progress.bar:  # Ray prints what it thinks of dead workers
            told = play_on(cluster, shards, playing, asked.jobs, progress)
            cluster.close()
    except KeyboardInterrupt:
        print(f"stopped; go on with: {_again(path)}", file=sys.stderr)
        return 130
    if why := next((one.why for one in told if one.why), ""):
        print(
            f"{sum(one.done for one in told)} of {count} episodes are done ({why}); go on with: {_again(path)}\n"
            f"or take what there is: polyrhythm episodes merge {shards_of(path)}/*.sqlite --out {path}",
            file=sys.stderr,
        )
        return 1
    draft = path.with_name(path.name + ".new")
    merge_files(shards, draft)
    draft.rename(path)
    draft.with_name(draft.name + ".lock").unlink(missing_ok=True)
    shutil.rmtree(shards_of(path))
    with Store.open(path) as store:
        servers = servers_of(playing, store.tokens_by_model())
        print_run(store, asked, settings_of(playing, servers, judges, 1))
    return 0


def _again(path: Path) -> str:
    return f"polyrhythm episodes resume {path} --engine ray"
