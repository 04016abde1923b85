"""Fixtures of all tests."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from hypothesis import settings

# The same examples in every run, so that a red run is of the change and not of the dice; `EXPLORE=1` throws them.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile("default" if os.environ.get("EXPLORE") else "repeatable")

pytest_plugins = ["runtime.virtual.pytest_plugin"]

RERUNS = 2
RERUN_AFTER_S = 1
HAS_FAILED = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test of real processes, brokers and browsers gets two more tries, which the summary names (`RERUN`).

    Such a test waits for other programs on a machine that may be busy with something else; one that passes
    only at a later try is reported, not hidden. All other tests have one try.

    Their files come first: run side by side, a core that is done early has the short ones left to do.
    """
    slow = set()
    for item in items:
        if item.get_closest_marker("processes"):
            item.add_marker(pytest.mark.flaky(reruns=RERUNS, reruns_delay=RERUN_AFTER_S))
            slow.add(item.path)
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember what failed."""
    report = yield
    if report.failed:
        item.stash[HAS_FAILED] = True
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """What failed leaves nothing behind: the next try, and the next test, start the module's runs and browsers anew.

    Otherwise a robot that was left latched, or a page left open, fails every try after the first one.
    """
    if item.stash.get(HAS_FAILED, False):
        item.stash[HAS_FAILED] = False
        item.session._setupstate.teardown_exact(None)
