"""Fixtures of all tests."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from collections.abc import Generator

import pytest
from hypothesis import settings

# The same examples in every run, so that a red run is of the change and not of the dice; `EXPLORE=1` throws them. No
# deadline for an example: how long one takes is of the machine.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("explore" if os.environ.get("EXPLORE") else "repeatable")

pytest_plugins = ["runtime.virtual.pytest_plugin"]

# `nohup` and a script's `&` have these ignored. A program that a test starts would inherit that, and no Ctrl-C and no
# lost terminal would reach it; what is caught is not inherited. A worker ends with whom it works for.
for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(ignored) is signal.SIG_IGN or (
        ignored is signal.SIGHUP and "PYTEST_XDIST_WORKER" in os.environ
    ):
        signal.signal(ignored, lambda *_: None)

gc.disable()  # until all tests are collected: nothing of theirs is garbage

RERUNS = 2
RERUN_AFTER_S = 1
MOST_SECOND_TRIES = 0.01
"""Of the tests with processes; one in a run is always allowed, so that a few tests can be run alone."""
HAS_FAILED = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test of real processes, brokers and browsers gets two more tries, which the summary names (`RERUN`).

    Such a test waits for other programs on a machine that may be busy with something else; one that passes
    only at a later try is named and counted, and too many of them fail the run. All other tests have one try.

    Their files come first: run side by side, a core that is done early has the short ones left to do.
    """
    slow = set()
    for item in items:
        if item.get_closest_marker("processes"):
            item.add_marker(pytest.mark.flaky(reruns=RERUNS, reruns_delay=RERUN_AFTER_S))
            slow.add(item.path)
    items.sort(key=lambda item: (item.path not in slow, str(item.path)))


def pytest_collection_finish() -> None:
    """What is collected stays to the end. No search for garbage looks at it again: a twentieth of the tests' time."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember what failed.

    No garbage is collected meanwhile. A report parses the source of the test. If a finaliser that complains runs in the
    middle, its traceback parses as well, and CPython before 3.11.8 and 3.12.2 then ends the run: "AST constructor
    recursion depth mismatch" (gh-106905).
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        report = yield
    finally:
        if was_enabled:
            gc.enable()
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


class SecondTries:
    """Counts the tests with processes, and those of them that needed another try; too many fail the run."""

    def __init__(self) -> None:
        self.tries: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one try has ended, here or on a worker."""
        if "processes" in report.keywords:
            self.tries[report.nodeid] += report.outcome == "rerun"  # type: ignore[comparison-overlap]  # rerunfailures'

    @property
    def again(self) -> int:
        """How many tests needed another try."""
        return sum(number > 0 for number in self.tries.values())

    @property
    def too_many(self) -> bool:
        """Whether more than 1 % of them, and more than one, did."""
        return self.again > max(1.0, MOST_SECOND_TRIES * len(self.tries))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A run that passed only by trying again has not passed."""
        if self.too_many and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The count, whatever it is."""
        if self.tries:
            line = f"{self.again} of {len(self.tries)} tests with processes needed another try"
            terminalreporter.write_line(f"{line}: more than 1 %, so the run fails" if self.too_many else line)


def pytest_configure(config: pytest.Config) -> None:
    """Reports of all workers come together here; a worker itself counts nothing.

    Each worker begins its collection in another folder: what one has compiled, the others need not.
    """
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SecondTries(), "second-tries")
    elif config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        tests = config.rootpath / "tests"
        rooms = sorted({tests.joinpath(*file.relative_to(tests).parts[:2]) for file in tests.rglob("test_*.py")})
        number = int(config.workerinput["workerid"].removeprefix("gw"))
        first = number * len(rooms) // config.workerinput["workercount"]
        config.args[:] = map(str, rooms[first:] + rooms[:first])
