"""How tests run against a mutant (`pytest -p bench.mutant_tests`): exact ones first, random ones short, repeatable.

A mutant dies at the first test that fails, so the order decides how long that takes, and nobody looks for a smaller
example of why. With `--mutants FILE` the tests are collected once, and each mutant has a process that is forked then.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, Phase, settings
from mutmut.mutation import trampoline

settings.register_profile(
    "mutants",
    max_examples=40,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


def pytest_configure() -> None:
    settings.load_profile("mutants")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests with random examples after those without; those that count calls not at all: changed code makes more."""
    count_calls = [item for item in items if "test_bounds" in item.nodeid and "_cost" in item.name]
    items[:] = [item for item in items if item not in count_calls]
    config.hook.pytest_deselected(items=count_calls)
    items.sort(key=is_random)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutants", metavar="FILE", help="a JSON list; FILE.done tells of each")
    parser.addoption("--at-once", type=int, default=1, metavar="N", help="so many mutants at a time")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Instead of the tests once: for each mutant those that reach its function, until one fails."""
    asked = session.config.getoption("mutants")
    if not asked:
        return None
    path = Path(asked)
    hunt = Hunt(session, json.loads(Path("mutmut-stats.json").read_text()))
    with path.with_suffix(".done").open("w") as told:
        for ended in hunt.run(json.loads(path.read_text()), session.config.getoption("at_once")):
            for pair in ended.items():
                print(json.dumps(pair), file=told, flush=True)
    return True


class Hunt:
    """Mutants of code whose tests are collected; what mutmut has learnt tells which test reaches which function."""

    def __init__(self, session: pytest.Session, learnt: Mapping[str, Mapping[str, Any]]) -> None:
        self._session = session
        self._items = {item.nodeid: item for item in session.items}
        self._reach, self._seconds = learnt["tests_by_mangled_function_name"], learnt["duration_by_test"]
        self._kills: defaultdict[str, Counter[str]] = defaultdict(Counter)  # by function: which tests killed there
        self._running: dict[
            int, tuple[str, int, float]
        ] = {}  # by pid: mutant, its pipe, and when it has taken too long

    def run(self, mutants: Sequence[str], at_once: int) -> Iterator[dict[str, str]]:
        """What became of those that have ended, bit by bit: "killed", "timeout" or "survived"."""
        for mutant in mutants:
            while len(self._running) >= at_once:
                yield self._reap()
            self._begin(mutant)
        while self._running:
            yield self._reap()

    def _begin(self, mutant: str) -> None:
        function = mutant.rpartition("__mutmut_")[0]
        names = [name for name in self._reach.get(function, ()) if name in self._items]
        kills = self._kills[function]
        names.sort(key=lambda name: (-kills[name], is_random(self._items[name]), self._seconds[name]))
        limit_s = LONGEST_S + LONGEST_SHARE * sum(self._seconds[name] for name in names)
        here, there = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(here)
            resource.setrlimit(resource.RLIMIT_CPU, (ceil(limit_s), ceil(limit_s)))
            _end_at_failure(self._session, [self._items[name] for name in names], mutant, there)
        os.close(there)
        self._running[pid] = (mutant, here, time.monotonic() + SLOWEST * limit_s)

    def _reap(self) -> dict[str, str]:
        """Those that have ended since; waits for a moment where there is none."""
        ended = {}
        for pid, (mutant, pipe, end_s) in list(self._running.items()):
            is_late = time.monotonic() > end_s
            if is_late:
                os.kill(pid, signal.SIGKILL)
            found, status = os.waitpid(pid, 0 if is_late else os.WNOHANG)
            if found:
                killer = os.read(pipe, 65_536).decode()
                os.close(pipe)
                del self._running[pid]
                self._kills[mutant.rpartition("__mutmut_")[0]][killer] += 1
                is_endless = is_late or os.waitstatus_to_exitcode(status) in (-signal.SIGXCPU, -signal.SIGKILL)
                ended[mutant] = "survived" if killer == SURVIVED else "timeout" if is_endless else "killed"
        if not ended:
            time.sleep(0.01)
        return ended


LONGEST_S, LONGEST_SHARE = 20.0, 3.0
"""A mutant that works for so many seconds, and so much longer than its tests took before, does not end."""
SLOWEST = 30.0
"""Nor does one that works for no longer and takes so much more time: it waits for something."""
SURVIVED = "-"


def _end_at_failure(session: pytest.Session, items: Sequence[pytest.Item], mutant: str, pipe: int) -> NoReturn:
    """In a process of its own: tell by whom it was killed, or that it survived; nothing where the process dies."""
    trampoline.set_mutant_under_test(mutant)
    trampoline.get_mutant_under_test = lambda: mutant  # asked at each call; the environment takes longer to look at
    try:
        for place, item in enumerate(items, 1):
            after = items[place] if place < len(items) else None
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if session.testsfailed:
                os.write(pipe, item.nodeid.encode())
                break
        else:
            os.write(pipe, SURVIVED.encode())
    finally:
        os._exit(0)


def is_random(item: pytest.Item) -> bool:
    """Whether its examples are drawn."""
    return hasattr(getattr(item, "obj", None), "hypothesis") or "TestCase" in str(type(item))


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
