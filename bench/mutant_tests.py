"""How tests run against a mutant (`pytest -p bench.mutant_tests`): exact ones first, random ones short, repeatable.

A mutant dies at the first test that fails, so the order decides how long that takes, and nobody looks for a smaller
example of why.
"""

from __future__ import annotations

import sys
from collections.abc import Collection

import pytest
from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "mutants",
    max_examples=40,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("mutants")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests with random examples after those without; those that count calls not at all: changed code makes more."""
    count_calls = [item for item in items if "test_bounds" in item.nodeid and "_cost" in item.name]
    items[:] = [item for item in items if item not in count_calls]
    config.hook.pytest_deselected(items=count_calls)
    items.sort(key=lambda item: hasattr(getattr(item, "obj", None), "hypothesis") or "TestCase" in str(type(item)))


def pytest_sessionstart() -> None:
    """Nothing is remembered of code that was not changed: all mutants are forked from one process."""
    _forget(but=())


def pytest_runtest_setup() -> None:
    """Nor from another test; only the tables of phrases, which take long to read, are read once."""
    _forget(but=("load",))


def _forget(but: Collection[str]) -> None:
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("nodes.interrupts."):
            for name, found in vars(module).items():
                if hasattr(found, "cache_clear") and name not in but:
                    found.cache_clear()
