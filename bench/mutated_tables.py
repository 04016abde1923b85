"""`python -m bench.mutated_tables`: change the tables, margins and lists of guard and reflex one entry at a time, and
count what their tests notice.

mutmut changes functions. What stands beside them decides as much: an entry of a table goes, gets another value, or is
added; a member of a set goes; a number doubles or halves. The tests are collected and run once, to learn how long each
takes and which names it reads. Each mutant has a process that is forked then, changes the table where it lies, and runs
the tests that read it until one fails. What no test reads, no test can notice.

`bench/equivalent_mutants.toml` names those that change nothing: table as `function`, the change as `new`. With
`--again` only those are tried that survived in what an earlier count printed.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import re
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import CodeType, FrameType, ModuleType

import pytest

from bench.code_commit import ROOT
from bench.mutant_tests import is_random
from bench.mutants import PLUGINS, TARGETS, equivalent

GOAL = 0.97
MODULES = {
    "guard": (
        "modes", "stop_latch", "commanded_body", "command_sources", "lasting_faults", "retreat", "soft_hold",
        "base_watch", "immediate_faults", "pressure_release", "space", "state_machine", "arbitration",
    ),
    "interrupts": ("intent", "people", "reflex", "records", "stop_classifier", "phrase_matcher"),
}  # fmt: skip
COMPILED = {"nodes.interrupts.phrase_matcher": "load"}
"""By whom a module's tables are compiled at their first use: a change counts once that is done anew."""
MORE = {
    "guard": tuple(f"tests/nodes/guard/test_{name}.py" for name in ("output", "parts", "search")),
    "interrupts": tuple(f"tests/nodes/interrupts/test_{name}.py" for name in ("records", "entries", "stop_classifier")),
}
"""Tests that look at the tables themselves."""
SURVIVED, ENDED = "survived", "it ended"
LONGEST_S = 240
"""Seconds of the processor: a mutant whose tests take longer does not end."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one constant, by name, as a sentence and as what takes its place."""

    module: str
    constant: str
    what: str
    new: object

    @property
    def name(self) -> str:
        return f"{self.module}.{self.constant}: {self.what}"

    def apply(self) -> None:
        """Change a dict where it lies; anything else in each module that has imported it under its name. What was
        compiled of it is forgotten, and what the disk keeps of that is not found any more.
        """
        old = getattr(sys.modules[self.module], self.constant)
        if compiles := COMPILED.get(self.module):
            sys.pycache_prefix = os.devnull
            getattr(sys.modules[self.module], compiles).cache_clear()
        if isinstance(old, dict) and isinstance(self.new, dict):
            old.clear()
            old.update(self.new)
            return
        for name, module in list(sys.modules.items()):
            if name.startswith(("nodes.", "runtime.")) and vars(module).get(self.constant) is old:
                setattr(module, self.constant, self.new)


def mutants_of(module: ModuleType) -> Iterator[Mutant]:
    """Of each constant that is this module's own."""
    for constant, value in list(vars(module).items()):
        own = re.compile(rf"^(\w+, )*{constant}\b", re.MULTILINE)  # alone, or one of several in a row
        if not constant.isupper() or not own.search(Path(str(module.__file__)).read_text()):
            continue
        for what, new in changes(value):
            yield Mutant(module.__name__, constant, what, new)


def changes(value: object) -> Iterator[tuple[str, object]]:
    """What may become of a value, each with a word for it."""
    if isinstance(value, dict) and not any(isinstance(key, int) for key in value):  # no maps of characters
        values = list(dict.fromkeys(value.values())) if all(map(_is_plain, value.values())) else []
        for key, old in value.items():
            yield f"without {key!r}", {one: it for one, it in value.items() if one != key}
            others = [one for one in values if one != old]
            if others:
                yield f"{key!r} -> {others[0]!r}", {**value, key: others[0]}
            elif isinstance(old, float):
                yield f"{key!r} doubled", {**value, key: 2 * old}
        if value and all(isinstance(key, tuple) and len(key) == 2 for key in value) and values:
            for pair in product(*(dict.fromkeys(parts) for parts in zip(*value, strict=True))):
                if pair not in value:  # to anything but where it is: that would be as if it were not listed
                    new = next((one for one in values if one != pair[0]), values[0])
                    yield f"with {pair!r} -> {new!r}", {**value, pair: new}
    elif isinstance(value, frozenset | tuple) and all(isinstance(one, str) for one in value):
        for member in sorted(value):
            yield f"without {member!r}", type(value)(one for one in value if one != member)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield f"{value!r} doubled", 2 * value
        if (half := value // 2 if isinstance(value, int) else value / 2) != value:
            yield f"{value!r} halved", half


def _is_plain(value: object) -> bool:
    return isinstance(value, str | float | int)


def all_of(room: str) -> list[Mutant]:
    """The mutants of a room of `nodes`, in the order of its modules."""
    return [one for name in MODULES[room] for one in mutants_of(importlib.import_module(f"nodes.{room}.{name}"))]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tables", default="", metavar="ROOM")
    parser.addoption("--tables-sample", type=int, default=0, metavar="N")
    parser.addoption("--tables-again", default="", metavar="FILE")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without those that only compare a table with its page: they would notice every change, and what it does not."""
    items[:] = [item for item in items if "the_page_shows" not in item.name]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Instead of the tests once: for each mutant until one fails; who killed last goes first."""
    room = session.config.getoption("tables")
    if not room:
        return None
    mutants = all_of(room)
    random.Random(0).shuffle(mutants)
    mutants = mutants[: session.config.getoption("tables_sample") or None]
    if again := session.config.getoption("tables_again"):
        told = Path(again).read_text()
        mutants = [one for one in mutants if f"{one.name}: {SURVIVED}" in told]
    same = {f"{one.function}: {one.new}": one.why for one in equivalent()}
    reads = {item: _run_once(session, item) for item in session.items}
    kills = Counter[str]()
    lived = []
    for mutant in mutants:
        readers = {mutant.constant, COMPILED.get(mutant.module, mutant.constant)}
        items = [item for item in session.items if readers & reads[item].names]
        items.sort(key=lambda item: (is_random(item), -kills[item.nodeid], reads[item].seconds))
        killer = _forked(lambda items=items, mutant=mutant: _first_failure(session, items, mutant))  # type: ignore[misc]
        kills[killer] += 1
        why = same.get(mutant.name, "")
        print(f"\n{mutant.name}: {killer or SURVIVED}{why and f', equivalent: {why}'}", flush=True)
        if killer == "":
            lived.append(mutant.name)
    endless, nothing = kills[ENDED], sum(name in same for name in lived)
    killed, changing = len(mutants) - len(lived), len(mutants) - nothing
    share = killed / max(changing, 1)
    print(
        f"\n{room}: {killed} of {len(mutants)} mutants of tables killed, {endless} of them because they did not end; "
        f"{nothing} of the others change nothing. {share:.1%} of those that change something",
        flush=True,
    )
    session.testsfailed = int(share < GOAL)
    return True


@dataclass(frozen=True, slots=True)
class Reads:
    """How long a test took, and the names that the functions read which it called."""

    seconds: float
    names: frozenset[str]


def _run_once(session: pytest.Session, item: pytest.Item) -> Reads:
    """Run a test as it is, and note its functions. Raises pytest.UsageError where it fails without a mutant."""
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    start = time.process_time()
    sys.setprofile(note)
    threading.setprofile(note)
    try:
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    if session.testsfailed:
        raise pytest.UsageError(f"{item.nodeid} fails without a mutant")
    ours = [code for code in called if code.co_filename.startswith(str(ROOT)) and "/.venv/" not in code.co_filename]
    return Reads(time.process_time() - start, frozenset(name for code in ours for name in code.co_names))


def _first_failure(session: pytest.Session, items: Sequence[pytest.Item], mutant: Mutant) -> str:
    """The test that notices, or ""; in a process of its own."""
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST_S, LONGEST_S))
    mutant.apply()
    for place, item in enumerate(items, 1):
        after = items[place] if place < len(items) else None
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if session.testsfailed:
            return item.nodeid
    return ""


def _forked(do: Callable[[], str]) -> str:
    """What it returns in a fork of this process; `ENDED` where that died, or took too long."""
    here, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.write(there, b"=" + do().encode())
        finally:
            os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        told = pipe.read().decode()
    os.waitpid(pid, 0)
    return told.removeprefix("=") if told else ENDED


def main(argv: Sequence[str] | None = None) -> int:
    """0 where enough are killed in each room."""
    parser = argparse.ArgumentParser(
        prog="bench.mutated_tables", epilog="example: python -m bench.mutated_tables guard"
    )
    parser.add_argument("room", nargs="*", choices=[[], *MODULES], help="default: all, in turn")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="so many of each room; default: all")
    parser.add_argument("--again", default="", metavar="FILE", help="only survivors of what an earlier count printed")
    asked = parser.parse_args(argv)
    code = 0
    for room in asked.room or MODULES:
        wanted = ("guard",) if room == "guard" else ("reflex", "understanding")
        tests = dict.fromkeys(
            test for one in TARGETS if one.name in wanted for test in (*MORE.get(room, ()), *one.tests)
        )
        which = (f"--tables={room}", f"--tables-sample={asked.sample}", f"--tables-again={asked.again}")
        told = ("-m", "not processes and not long", *which)
        command = (sys.executable, "-m", "pytest", "-q", "-s", *PLUGINS, "-p", "bench.mutated_tables", *told, *tests)
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "GUARD_STEPS": "600"}
        code |= subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    return code


if __name__ == "__main__":
    sys.exit(main())
