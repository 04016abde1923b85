"""`Budget`: what asking models may cost, in calls, tokens and money, and what it has cost so far.

Tokens that a server does not tell of, as for a request that was cancelled, are estimated, and told as such.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from nodes.models.answers import BudgetError, ModelError
from runtime.coordination.health import Spending
from runtime.launch.tables.budgets_table import Budgets, RunBudget
from runtime.operating_system.whole_file import write_whole
from runtime.run_facts import RunFacts
from runtime.serialization.msgspec_cache import from_json

CHARACTERS_PER_TOKEN = 4.0
TOKENS_PER_IMAGE = 1100
"""What a 640 x 480 image costs at most with the models that say how they count; smaller ones cost less."""


class Prices(msgspec.Struct, frozen=True):
    """Money per million tokens of prompts and of answers."""

    prompt: float = 0.0
    completion: float = 0.0

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """What so many tokens cost."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) * 1e-6


class Reservation(msgspec.Struct, frozen=True):
    """What a call in flight may cost at most."""

    tokens: float
    money: float
    model: str = ""
    times: float = 1.0  # what the request itself would come to: calls of this model were so much dearer


class Spent(msgspec.Struct, frozen=True):
    """What a node has spent so far; kept over the deaths of a process."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated_tokens: int = 0
    money: float = 0.0


@dataclass(slots=True)
class Budget:
    """What all calls that share it may cost together; 0: no limit. Prices are in money per million tokens."""

    max_calls: int = 0
    max_tokens: int = 0
    max_money: float = 0.0
    prompt_price: float = 0.0
    completion_price: float = 0.0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated_tokens: int = 0  # of the tokens above
    spent: str = ""  # why a call was refused, for good: what is spent does not come back
    keep: Callable[[Budget], None] | None = field(default=None, repr=False)  # called when something has changed
    run: RunBudget = field(default_factory=RunBudget)  # what all nodes of the run may spend together
    others: Callable[[], Sequence[Spent]] = field(default=tuple, repr=False)  # what the other nodes have spent
    elsewhere: float = 0.0  # money for tokens of servers with prices of their own, beyond what the prices above make
    in_flight: list[Reservation] = field(default_factory=list, repr=False)
    _freed: asyncio.Event | None = field(default=None, repr=False)
    _dearer: dict[str, float] = field(default_factory=dict, repr=False)  # by model: so many times what was set aside

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def money(self) -> float:
        """What the tokens so far cost at the given prices."""
        return self._prices.of(self.prompt_tokens, self.completion_tokens) + self.elsewhere

    def price(self, prompt_tokens: int, completion_tokens: int, prices: Prices | None = None) -> float:
        """What so many tokens cost, at these prices where the server has its own."""
        return (prices or self._prices).of(prompt_tokens, completion_tokens)

    @property
    def _prices(self) -> Prices:
        return Prices(self.prompt_price, self.completion_price)

    async def reserve(
        self, prompt_tokens: int, longest_answer: int, prices: Prices | None = None, model: str = ""
    ) -> Reservation:
        """Set aside what a call costs at most, until it is released: more where calls of the model have cost more.

        Waits while calls in flight might use up what this one needs; so no limit is passed by more than one call.
        What a model really costs is not known before its first answer (it may think, or count otherwise than we do),
        so that under a limit its first call is alone.
        """
        while self.in_flight and not self._fits(self._most(prompt_tokens, longest_answer, prices, model)):
            self._freed = self._freed or asyncio.Event()
            await self._freed.wait()
        reservation = self._most(prompt_tokens, longest_answer, prices, model)
        self.in_flight.append(reservation)
        return reservation

    def _fits(self, wanted: Reservation) -> bool:
        if (self.max_tokens or self.max_money) and wanted.model not in self._dearer:
            return all(one.model != wanted.model for one in self.in_flight)
        tokens = self.tokens + wanted.tokens + sum(one.tokens for one in self.in_flight)
        money = self.money + wanted.money + sum(one.money for one in self.in_flight)
        return (not self.max_tokens or tokens <= self.max_tokens) and (not self.max_money or money <= self.max_money)

    def _most(self, prompt_tokens: int, longest_answer: int, prices: Prices | None, model: str) -> Reservation:
        times, money = self._dearer.get(model, 1.0), self.price(prompt_tokens, longest_answer, prices)
        return Reservation(times * (prompt_tokens + longest_answer), times * money, model, times)

    def cost(self, reservation: Reservation, tokens: int, money: float) -> None:
        """What a call did cost: where it is more than was set aside, more is set aside from now on."""
        more = max(tokens / (reservation.tokens or 1.0), money / reservation.money if reservation.money else 0.0)
        known = self._dearer.get(reservation.model, 1.0)
        self._dearer[reservation.model] = max(known, reservation.times * more)

    def release(self, reservation: Reservation) -> None:
        """The call is over; what it did cost is counted beside this."""
        self.in_flight.remove(reservation)
        if self._freed is not None:
            self._freed.set()
            self._freed = None

    def refusal(self, prompt_tokens: int = 0) -> str:
        """Why no call with a prompt of that length may be made any more, or ""; the prompt alone must be affordable."""
        for whose, limit, (calls, tokens, money) in self._limits():
            if limit.calls and calls >= limit.calls:
                self.spent = f"{whose} budget of {limit.calls} calls is spent"
            elif limit.tokens and tokens + prompt_tokens >= limit.tokens:
                self.spent = f"{whose} budget of {limit.tokens} tokens is spent ({tokens} used)"
            elif limit.money and money + prompt_tokens * self.prompt_price * 1e-6 >= limit.money:
                self.spent = f"{whose} budget of {limit.money:g} is spent ({money:.4f} used)"
            else:
                continue
            break
        return self.spent

    def _limits(self) -> Iterator[tuple[str, RunBudget, tuple[int, int, float]]]:
        """Its own limits and those of the run, each with what counts against it."""
        own = RunBudget(calls=self.max_calls, tokens=self.max_tokens, money=self.max_money)
        yield "the", own, (self.calls, self.tokens, self.money)
        yield "the run's", self.run, self._together()

    def _together(self) -> tuple[int, int, float]:
        """Calls, tokens and money of all nodes of the run."""
        all_spent = (*self.others(), self.so_far()) if self.run != RunBudget() else ()
        return (
            sum(one.calls for one in all_spent),
            sum(one.prompt_tokens + one.completion_tokens for one in all_spent),
            sum(one.money for one in all_spent),
        )

    def so_far(self) -> Spent:
        """What was spent, as it is kept."""
        return Spent(self.calls, self.prompt_tokens, self.completion_tokens, self.estimated_tokens, self.money)

    def count(self, spent: Spent) -> None:
        """What somebody else has spent of it, or this node in an earlier process."""
        self.calls += spent.calls
        self.prompt_tokens += spent.prompt_tokens
        self.completion_tokens += spent.completion_tokens
        self.estimated_tokens += spent.estimated_tokens
        self.elsewhere += spent.money - self._prices.of(spent.prompt_tokens, spent.completion_tokens)

    def longest_answer(self, wanted: int, prompt_tokens: int = 0) -> int:
        """So many tokens may be asked for that the answer does not go beyond the budget; at least one."""
        most = wanted
        for _, limit, (_, tokens, money) in self._limits():
            if limit.tokens:
                most = min(most, limit.tokens - tokens - prompt_tokens)
            if limit.money and self.completion_price:
                left = limit.money - money - prompt_tokens * self.prompt_price * 1e-6
                most = min(most, int(left * 1e6 / self.completion_price))
        return max(1, most)

    def take_call(self, where: str, prompt_tokens: int = 0, *, longest_answer: int = 1) -> int:
        """Count a call to `where` before it leaves; how long its answer may be, at most `longest_answer`.

        Raises BudgetError where no such call may be made any more, ModelError where it cannot be noted.
        """
        try:
            if spent := self.refusal(prompt_tokens):
                raise BudgetError(f"{where} is not asked any more: {spent}", spent=spent)
            self.calls += 1
            self._keep()
            return self.longest_answer(longest_answer, prompt_tokens)
        except OSError as problem:
            raise ModelError(f"{where} is not asked: the call cannot be noted ({problem.strerror})") from problem

    def count_tokens(
        self, prompt: int, completion: int, *, is_estimate: bool = False, prices: Prices | None = None
    ) -> None:
        """What an answer cost, at these prices where the server has its own."""
        if prices is not None:
            self.elsewhere += prices.of(prompt, completion) - self._prices.of(prompt, completion)
        self.prompt_tokens += prompt
        self.completion_tokens += completion
        if is_estimate:
            self.estimated_tokens += prompt + completion
        self._keep()

    def spending(self, model: str) -> Spending:
        """For health, `top` and the summary."""
        return Spending(
            model=model,
            calls=self.calls,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            estimated_tokens=self.estimated_tokens,
            money=round(self.money, 6),
            max_calls=self.max_calls,
            max_tokens=self.max_tokens,
            max_money=self.max_money,
            spent=self.spent,
        )

    def _keep(self) -> None:
        if self.keep is not None:
            self.keep(self)


def budget_of(node: str, run_info: RunFacts, max_calls: int) -> Budget:
    """A node's budget in this run: its [budgets.models.NODE], or else its own most calls; and [budgets.run].

    What it spent before it was restarted is spent: the file of that stands in the run's own folder, beside those of the
    other nodes. In virtual time all nodes share `run_info`, which holds the same.
    """
    budgets = Budgets.of(run_info.known)
    limits = budgets.models.get(node)
    budget = Budget(max_calls=max_calls)
    if limits is not None:
        budget = Budget(
            max_calls=limits.calls or max_calls,
            max_tokens=limits.tokens,
            max_money=limits.money,
            prompt_price=limits.input_price,
            completion_price=limits.output_price,
        )
    budget.run = budgets.run
    if registry := run_info.registry:
        purse = _Purse(Path(registry), node)
        purse.restore(budget)
        budget.keep, budget.others = purse.keep, purse.others
    elif budgets.run != RunBudget():
        shelf = _Shelf(run_info.spent, node)
        budget.keep, budget.others = shelf.keep, shelf.others
    return budget


def estimated_tokens(characters: int, images: int = 0) -> int:
    """About how many tokens a text and its images are."""
    return round(characters / CHARACTERS_PER_TOKEN) + images * TOKENS_PER_IMAGE


class _Purse:
    """Keeps what was spent in a file, so that a process that dies and is started again does not begin at nothing."""

    def __init__(self, folder: Path, node: str) -> None:
        self._folder = folder
        self._path = folder / f"spent-{node}.json"

    def restore(self, budget: Budget) -> None:
        """Count what an earlier process of the run has spent."""
        try:
            spent = from_json(self._path.read_bytes(), Spent)
        except (OSError, msgspec.MsgspecError):
            return  # nothing spent yet; the file is replaced whole, so it is never half there
        budget.count(spent)

    def keep(self, budget: Budget) -> None:
        """Write it down before the call leaves. Raises OSError: what cannot be counted is not to be spent."""
        write_whole(self._path, msgspec.json.encode(budget.so_far()))

    def others(self) -> Sequence[Spent]:
        """What the other nodes' files say. Raises OSError where one cannot be read: what it holds is not guessed."""
        paths = (path for path in self._folder.glob("spent-*.json") if path != self._path)
        try:
            return tuple(from_json(path.read_bytes(), Spent) for path in paths)
        except msgspec.MsgspecError as problem:
            raise OSError(errno.EIO, f"what others have spent is damaged: {problem}") from problem


class _Shelf:
    """The same among nodes of one process, as plain data."""

    def __init__(self, spent: dict[str, Any], node: str) -> None:
        self._spent = spent
        self._node = node

    def keep(self, budget: Budget) -> None:
        """For the other nodes to see."""
        self._spent[self._node] = msgspec.to_builtins(budget.so_far())

    def others(self) -> Sequence[Spent]:
        """What they have spent."""
        return tuple(msgspec.convert(one, Spent) for node, one in self._spent.items() if node != self._node)
