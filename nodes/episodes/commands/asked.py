"""From the arguments that `run`, `resume` and `score` share to judges, settings and what is printed in the end."""

from __future__ import annotations

import argparse
import math

import msgspec

from nodes.episodes.agents.caller import ModelSpec, Servers
from nodes.episodes.evaluation.dimensions import SEVEN, read_dimensions
from nodes.episodes.results.show import print_list
from nodes.episodes.results.store import Store
from nodes.episodes.results.summary import summary_of
from nodes.episodes.runner.runner import Judges, Settings
from nodes.models.budget import Budget
from runtime.errors import UserError


def judges_of(asked: argparse.Namespace) -> Judges:
    specs = tuple(dict.fromkeys(part.strip() for part in asked.judges.split(",") if part.strip()))
    if not specs:
        raise UserError("--judges is empty; expected rules, MODEL or MODEL@URL")
    for spec in specs:
        if spec != "rules":
            ModelSpec.parse(spec, temperature=0.0)
    return Judges(specs, read_dimensions(asked.dimensions) if asked.dimensions else SEVEN)


def check_playing(asked: argparse.Namespace) -> None:
    """Raise UserError for a limit that limits nothing or everything."""
    if asked.jobs < 1:
        raise UserError(f"--jobs is {asked.jobs}; expected at least 1")
    if not 0.0 < asked.deadline < math.inf:
        raise UserError(f"--deadline is {asked.deadline:g}; expected seconds, more than 0")
    if not 0.0 <= asked.temperature <= 2.0:
        raise UserError(f"--temperature is {asked.temperature:g}; expected 0 to 2")
    for name in ("rate", "max_calls", "max_tokens", "max_money"):
        value = getattr(asked, name)
        if not 0 <= value < math.inf:
            raise UserError(f"--{name.replace('_', '-')} is {value:g}; expected 0 (no limit) or more")


def settings_of(asked: argparse.Namespace, judges: Judges) -> Settings:
    check_playing(asked)
    try:
        prompt_price, completion_price = (float(part) for part in asked.prices.split(","))
    except ValueError as problem:
        raise UserError(f"--prices {asked.prices}: expected two numbers like 2.5,10") from problem
    if not (0.0 <= prompt_price < math.inf and 0.0 <= completion_price < math.inf):
        raise UserError(f"--prices {asked.prices}: expected two numbers like 2.5,10, none below 0")
    if asked.max_money and not prompt_price and not completion_price:
        raise UserError("--max-money without --prices: nothing costs anything; expected --prices IN,OUT")
    budget = Budget(
        max_calls=asked.max_calls,
        max_tokens=asked.max_tokens,
        max_money=asked.max_money,
        prompt_price=prompt_price,
        completion_price=completion_price,
    )
    servers = Servers(budget=budget, calls_per_minute=asked.rate, deadline_s=asked.deadline)
    return Settings(servers, judges, jobs=asked.jobs, temperature=asked.temperature, stream=asked.stream)


def print_run(store: Store, asked: argparse.Namespace, settings: Settings) -> None:
    if asked.json:
        print(msgspec.json.format(msgspec.json.encode(summary_of(store)), indent=1).decode())
        return
    print_list(store)
    budget = settings.servers.budget
    if budget.calls:
        cost = f", {budget.money:.4f} in money" if budget.money else ""
        tokens = f"{budget.prompt_tokens} + {budget.completion_tokens} tokens"
        print(f"{budget.calls} calls, {tokens}{cost}, {settings.servers.retries} retries")
    print(f"\nrun: {store.path}")
