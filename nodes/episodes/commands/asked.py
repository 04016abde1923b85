"""What `run`, `resume` and `score` are asked for: checked, as settings, and kept in the run's file."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.model_brain import AnswerLatency
from nodes.episodes.dialogue.package_prompts import PackagePrompts
from nodes.episodes.evaluation.dimensions import SEVEN, Dimension, mean_scores, read_dimensions, with_steps
from nodes.episodes.results.show import print_json, print_list
from nodes.episodes.results.store import Store
from nodes.episodes.runner.runner import Judges, Settings
from nodes.models.budget import Budget, Prices
from nodes.models.model import Patience
from nodes.models.servers import Servers, ServerTable, read_servers
from runtime.errors import UserError


class Playing(msgspec.Struct, frozen=True, omit_defaults=True):
    """The arguments that decide how models are asked, as the run's file keeps them; keys are never among them."""

    rate: float = 0.0
    deadline: float = 300.0
    timeout: float = 60.0
    max_calls: int = 0
    max_tokens: int = 0
    max_money: float = 0.0
    prices: str = "0,0"
    temperature: float = 0.7
    stream: bool = False
    latency: str = "none"
    servers: dict[str, ServerTable] = {}


MAY_CHANGE = ("max_calls", "max_tokens", "max_money")
"""What a resumed run may be given anew: how much is allowed."""


def playing_of(asked: argparse.Namespace) -> Playing:
    """The arguments, with defaults where nothing was said. Raises UserError."""
    given = {name: value for name in Playing.__struct_fields__ if (value := getattr(asked, name, None)) is not None}
    given["servers"] = read_servers(asked.servers) if asked.servers else {}
    return Playing(**given)


def playing_again(asked: argparse.Namespace, kept: dict[str, Any], run: Path) -> Playing:
    """As the run's file says; UserError names what is asked otherwise now. Budgets may be changed, they are the run's
    whole."""
    before = msgspec.convert(kept, Playing)
    now = playing_of(asked)
    for name in Playing.__struct_fields__:
        if name in MAY_CHANGE or getattr(asked, name, None) is None:
            continue
        if (kept_one := getattr(before, name)) != getattr(now, name):
            shown = "other servers" if isinstance(kept_one, dict) else kept_one
            raise UserError(
                f"--{name}: the run {run} was begun with {shown}, and goes on with that; leave it out, or begin "
                "another run"
            )
    changed = {name: value for name in MAY_CHANGE if (value := getattr(asked, name, None)) is not None}
    return msgspec.structs.replace(before, **changed)


def judges_of(asked: argparse.Namespace, servers: Servers) -> Judges:
    """The judges that are named. Raises UserError for one that cannot be asked."""
    specs = tuple(dict.fromkeys(part.strip() for part in asked.judges.split(",") if part.strip()))
    if not specs:
        raise UserError("--judges is empty; expected rules, MODEL or MODEL@URL")
    if asked.dimensions == Path("fine"):
        raise UserError(
            "--dimensions fine is for people who rate; of a judge it is an option: --judges MODEL#scale=fine"
        )
    dimensions = read_dimensions(asked.dimensions) if asked.dimensions else SEVEN
    for text in specs:
        if text != "rules":
            spec = AgentSpec.parse(text, temperature=0.0)
            spec.check_model(servers)
            if spec.kind != "model":
                raise UserError(f"--judges {text}: {spec.kind} judges nothing; expected rules, MODEL or MODEL@URL")
            if spec.is_fine and with_steps(dimensions) == dimensions:
                raise UserError(f"--judges {text}: the fine-grained scale has none of these dimensions, only the seven")
    return Judges(specs, dimensions)


def judges_in(spec: Mapping[str, Any]) -> Judges:
    """The judges that a run's file names."""
    return Judges(tuple(spec["judges"]), msgspec.convert(spec["dimensions"], tuple[Dimension, ...]))


def _check(playing: Playing) -> None:
    """Raise UserError for a limit that limits nothing or everything."""
    for name in ("deadline", "timeout"):
        value = getattr(playing, name)
        if not 0.0 < value < math.inf:
            raise UserError(f"--{name} is {value:g}; expected seconds, more than 0")
    if not 0.0 <= playing.temperature <= 2.0:
        raise UserError(f"--temperature is {playing.temperature:g}; expected 0 to 2")
    for name in ("rate", "max_calls", "max_tokens", "max_money"):
        value = getattr(playing, name)
        if not 0 <= value < math.inf:
            raise UserError(f"--{name.replace('_', '-')} is {value:g}; expected 0 (no limit) or more")


def servers_of(playing: Playing, spent: Mapping[str, tuple[int, int, int]] | None = None) -> Servers:
    """The servers with the run's limits; `spent` is what earlier processes of the run used: calls, tokens, by model."""
    _check(playing)
    try:
        prompt_price, completion_price = (float(part) for part in playing.prices.split(","))
    except ValueError:
        prompt_price = completion_price = -1.0
    if not (0.0 <= prompt_price < math.inf and 0.0 <= completion_price < math.inf):
        raise UserError(f"--prices {playing.prices}: expected two numbers like 2.5,10, none below 0")
    has_prices = prompt_price or completion_price or any(table.prices for table in playing.servers.values())
    if playing.max_money and not has_prices:
        raise UserError("--max-money without --prices: nothing costs anything; expected --prices IN,OUT")
    budget = Budget(
        max_calls=playing.max_calls,
        max_tokens=playing.max_tokens,
        max_money=playing.max_money,
        prompt_price=prompt_price,
        completion_price=completion_price,
    )
    for model, (calls, prompt_tokens, completion_tokens) in (spent or {}).items():
        table = playing.servers.get(model.partition("@")[2])
        budget.calls += calls
        prices = Prices(*table.prices) if table is not None and table.prices else None
        budget.count_tokens(prompt_tokens, completion_tokens, prices=prices)
    patience = Patience(playing.deadline, min(playing.timeout, playing.deadline))
    return Servers(budget=budget, calls_per_minute=playing.rate, patience=patience, tables=playing.servers)


def settings_of(
    playing: Playing, servers: Servers, judges: Judges, jobs: int, like: PackagePrompts | None = None
) -> Settings:
    """How episodes are played."""
    latency = AnswerLatency.parse(playing.latency)
    return Settings(servers, judges, jobs, playing.temperature, playing.stream, latency, like=like)


def print_run(store: Store, asked: argparse.Namespace, settings: Settings) -> None:
    """What came out: JSON, or the list and what it cost."""
    if asked.json:
        print_json(summary_of(store))
        return
    print_list(store)
    budget = settings.servers.budget
    if budget.calls:
        cost = f", {budget.money:.4f} in money" if budget.money else ""
        tokens = f"{budget.prompt_tokens} + {budget.completion_tokens} tokens"
        estimate = f" ({budget.estimated_tokens} of them estimated)" if budget.estimated_tokens else ""
        print(f"{budget.calls} calls, {tokens}{estimate}{cost}, {settings.servers.retries} retries")
    print(f"\nrun: {store.path}")
    print("".join(f"{line}\n" for line in store.left_out()), end="")
    failed, turns = store.failed_turns()
    if failed:
        print(f"{failed} of {turns} turns could not be understood")


def failed_evaluations(store: Store, judges: Judges) -> tuple[int, str]:
    """How many evaluations by these judges are missing, and why the first one is."""
    missing = [(judge, episode) for judge in judges.specs for episode in store.unjudged(judge, judges.names)]
    said = (one.why for judge, episode in missing[:1] for one in store.scores(episode) if one.judge == judge)
    return len(missing), next(said, "not judged yet") if missing else ""


def tells_missing(store: Store, judges: Judges, remedy: str = "") -> bool:
    """Whether evaluations are missing; says so, and how to go on."""
    missing, why = failed_evaluations(store, judges)
    if missing:
        remedy = remedy or f"go on with: polyrhythm episodes resume {store.path}"
        print(f"{missing} evaluations are missing ({why}); {remedy}", file=sys.stderr)
    return missing > 0


def summary_of(store: Store) -> dict[str, Any]:
    """What a run has come to; the same for the same run, so no times of day, no paths, no durations."""
    episodes = []
    for row in store.episodes():
        scores = store.scores(row.id)
        kept = ("speaker", "kind", "argument", "to", "note")
        turns_of = [{name: getattr(turn, name) for name in kept} for turn in store.turns(row.id)]
        told = {name: getattr(row, name) for name in ("id", "task", "seed", "agents", "names", "transparency")}
        told |= {"order": row.turn_order, "state": row.state, "reason": row.reason, "turns": turns_of}
        told |= {"scores": mean_scores(scores), "evaluations": {one.judge: one.state for one in scores}}
        episodes.append(told | {"checks": store.checks(row.id)})
    calls, prompt_tokens, completion_tokens = store.tokens()
    failed, turns = store.failed_turns()
    return {
        "card": {key: value for key, value in store.card.items() if key not in ("date", "versions")},
        "episodes": episodes,
        "turns": turns,
        "failed_turns": failed,
        "calls": calls,
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
    }
