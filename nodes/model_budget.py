"""`Budget`: what asking models may cost, in calls, tokens and money, and what it has cost so far.

Tokens that a server does not tell of, as for a request that was cancelled, are estimated, and told as such.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from runtime.budgets import Budgets
from runtime.health import Spending

CHARACTERS_PER_TOKEN = 4.0
TOKENS_PER_IMAGE = 1100
"""What a 640 x 480 image costs at most with the models that say how they count; smaller ones cost less."""


class _Spent(msgspec.Struct):
    """What is kept over the deaths of a process."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated_tokens: int = 0


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

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def money(self) -> float:
        """What the tokens so far cost at the given prices."""
        return (self.prompt_tokens * self.prompt_price + self.completion_tokens * self.completion_price) * 1e-6

    def refusal(self, prompt_tokens: int = 0) -> str:
        """Why no call with a prompt of that length may be made any more, or ""; the prompt alone must be affordable."""
        if self.max_calls and self.calls >= self.max_calls:
            self.spent = f"the budget of {self.max_calls} calls is spent"
        elif self.max_tokens and self.tokens + prompt_tokens >= self.max_tokens:
            self.spent = f"the budget of {self.max_tokens} tokens is spent ({self.tokens} used)"
        elif self.max_money and self.money + prompt_tokens * self.prompt_price * 1e-6 >= self.max_money:
            self.spent = f"the budget of {self.max_money:g} is spent ({self.money:.4f} used)"
        return self.spent

    def longest_answer(self, wanted: int, prompt_tokens: int = 0) -> int:
        """So many tokens may be asked for that the answer does not go beyond the budget; at least one."""
        most = wanted
        if self.max_tokens:
            most = min(most, self.max_tokens - self.tokens - prompt_tokens)
        if self.max_money and self.completion_price:
            left = self.max_money - self.money - prompt_tokens * self.prompt_price * 1e-6
            most = min(most, int(left * 1e6 / self.completion_price))
        return max(1, most)

    def count_call(self) -> None:
        """A call is about to be made."""
        self.calls += 1
        self._keep()

    def count_tokens(self, prompt: int, completion: int, *, is_estimate: bool = False) -> None:
        """What an answer cost."""
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


def budget_of(node: str, run_info: dict[str, Any], max_calls: int) -> Budget:
    """A node's budget in this run: its [budgets.models.NODE], or else its own most calls.

    What it spent before it was restarted is spent: the file of that stands in the run's own folder.
    """
    limits = Budgets.of(run_info).models.get(node)
    budget = Budget(max_calls=max_calls)
    if limits is not None:
        budget = Budget(
            max_calls=limits.calls or max_calls,
            max_tokens=limits.tokens,
            max_money=limits.money,
            prompt_price=limits.input_price,
            completion_price=limits.output_price,
        )
    if registry := run_info.get("registry"):
        purse = _Purse(Path(str(registry)) / f"spent-{node}.json")
        purse.restore(budget)
        budget.keep = purse.keep
    return budget


def estimated_tokens(characters: int, images: int = 0) -> int:
    """About how many tokens a text and its images are."""
    return round(characters / CHARACTERS_PER_TOKEN) + images * TOKENS_PER_IMAGE


class _Purse:
    """Keeps what was spent in a file, so that a process that dies and is started again does not begin at nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def restore(self, budget: Budget) -> None:
        """Count what an earlier process of the run has spent."""
        try:
            spent = msgspec.json.decode(self._path.read_bytes(), type=_Spent)
        except (OSError, msgspec.MsgspecError):
            return  # nothing spent yet; the file is replaced whole, so it is never half there
        budget.calls, budget.prompt_tokens = spent.calls, spent.prompt_tokens
        budget.completion_tokens, budget.estimated_tokens = spent.completion_tokens, spent.estimated_tokens

    def keep(self, budget: Budget) -> None:
        """Write it down before the call leaves. Raises OSError: what cannot be counted is not to be spent."""
        spent = _Spent(budget.calls, budget.prompt_tokens, budget.completion_tokens, budget.estimated_tokens)
        draft = self._path.with_name(self._path.name + ".new")
        draft.write_bytes(msgspec.json.encode(spent))
        draft.replace(self._path)
