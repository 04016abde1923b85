"""Fixtures of all tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# The same examples in every run, so that a red run is of the change and not of the dice; `EXPLORE=1` throws them.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile("default" if os.environ.get("EXPLORE") else "repeatable")

pytest_plugins = ["runtime.pytest_plugin"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test of real processes, brokers and browsers gets a second try, which the summary names (`RERUN`).

    Such a test waits for other programs on a machine that may be busy with something else; one that passes
    only at its second try is reported, not hidden. All other tests have one try.
    """
    for item in items:
        if item.get_closest_marker("processes"):
            item.add_marker(pytest.mark.flaky(reruns=1))
