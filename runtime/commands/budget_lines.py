"""Budgets as lines of text: what was promised, what was measured or spent, and whether that is within it."""

from __future__ import annotations

from runtime.control_messages.health import PathHealth, Spending
from runtime.launch.budgets_table import MISSES


def is_kept(path: PathHealth) -> bool:
    """Whether at most one message in a hundred was older than the budget."""
    return path.over <= MISSES * path.count


def path_line(path: PathHealth) -> str:
    """One path budget."""
    if not path.count:
        return f"path {path.name}: nothing measured yet of {path.p99_budget_ms:g} ms at p99"
    verdict = "met" if is_kept(path) else "NOT MET"
    return (
        f"path {path.name}: p50 {path.p50_ms:.1f}, p99 {path.p99_ms:.1f}, max {path.max_ms:.1f} ms "
        f"of {path.p99_budget_ms:g} ms at p99; {path.over:,} of {path.count:,} over it: {verdict}"
    )


def spending_line(node: str, spending: Spending) -> str:
    """One node's model budget."""
    tokens = spending.prompt_tokens + spending.completion_tokens
    about = f", {spending.estimated_tokens:,} of them estimated" if spending.estimated_tokens else ""
    parts = [
        f"{spending.calls:,}{_of(spending.max_calls)} calls",
        f"{tokens:,}{_of(spending.max_tokens)} tokens ({spending.prompt_tokens:,} in, "
        f"{spending.completion_tokens:,} out{about})",
    ]
    if spending.money or spending.max_money:
        most = f" of {spending.max_money:g}" if spending.max_money else ""
        parts.append(f"{spending.money:.4f}{most} of money")
    verdict = f"SPENT: {spending.spent}" if spending.spent else "within it"
    return f"model {node} ({spending.model}): {', '.join(parts)}; {verdict}"


def _of(limit: int) -> str:
    return f" of {limit:,}" if limit else ""
