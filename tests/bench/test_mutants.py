"""The count of mutants: by target and module, of those tried, and said to be a sample where it is one."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from bench import mutant_tests
from bench.code_commit import ROOT
from bench.mutants import (
    TARGETS,
    Count,
    Module,
    as_markdown,
    digest,
    equivalent,
    is_less_strict,
    readable,
    tally,
    undecorated,
)
from bench.mutated_tables import MODULES, all_of
from tests.support.sentences import sentence

RESULTS = {
    "nodes.guard.node.xǁGuardǁ_stop__mutmut_1": "killed",
    "nodes.guard.node.xǁGuardǁ_stop__mutmut_2": "survived",
    "nodes.guard.node.x_stop__mutmut_1": "timeout",
    "runtime.coordination.lease.x_take__mutmut_1": "no tests",
    "runtime.coordination.lease.x_take__mutmut_2": "",
}


def count(modules: tuple[Module, ...]) -> Count:
    return Count("guard", "abc1234", "2026-01-01", 2.0, 3, modules, ())


def test_mutants_are_counted_by_module_and_only_those_tried_share_in_the_figure() -> None:
    modules = tally(RESULTS)
    assert modules == (Module("nodes.guard.node", 3, 3, 2, 1), Module("runtime.coordination.lease", 2, 1, 0))
    assert count(modules).share == 0.5
    assert count(()).share == 0.0


def test_what_changes_nothing_is_counted_apart_and_has_no_part_in_the_share() -> None:
    modules = tally(RESULTS, ["nodes.guard.node.xǁGuardǁ_stop__mutmut_2"])
    assert modules[0] == Module("nodes.guard.node", 3, 3, 2, 1, 1)
    assert count(modules).share == 2 / 3


def test_a_sample_says_so_with_its_interval_and_a_whole_run_too() -> None:
    sample = as_markdown([count(tally(RESULTS))])
    assert sentence("bench.mutants_killed", killed=2, tried=4) in sample
    assert sentence("bench.random_sample", seed=3, tried=4, mutants=5) in sample
    assert "15.0% to 85.0% (Wilson, 95 %)" in sample
    assert "| guard | `nodes.guard.node` | 3 | 3 | 2 | 0 | 66.7% |" in sample
    whole = as_markdown([count((Module("m", 4, 4, 4),))])
    assert sentence("bench.all_were_tried", mutants=4) in whole
    assert "Wilson" not in whole


@pytest.mark.parametrize(
    ("everything", "tried", "killed", "misses"),
    [(300, 30, 28, False), (300, 30, 27, True), (300, 0, 0, True), (100, 100, 97, False), (100, 100, 96, True)],
)
def test_a_sample_misses_the_goal_where_it_shows_that_and_a_whole_run_by_its_share(
    everything: int, tried: int, killed: int, misses: bool
) -> None:
    assert count((Module("m", everything, tried, killed),)).misses is misses


def test_a_mutant_is_named_as_its_function_is_in_the_code() -> None:
    assert readable("nodes.guard.node.xǁGuardǁ_stop__mutmut_2") == "nodes.guard.node.Guard._stop"
    assert readable("nodes.guard.node.xǁGuardǁtick_undecorated__mutmut_2") == "nodes.guard.node.Guard.tick"
    assert readable("nodes.guard.immediate_faults.x_is_whole__mutmut_1") == "nodes.guard.immediate_faults.is_whole"


def test_a_zip_that_asks_less_is_told_from_one_that_asks_more_or_joins_others() -> None:
    line = "for one, two in zip(these, those, strict=True)"
    for less in ("zip(these, those, strict=False)", "zip(these, those, strict=None)", "zip(these, those, )"):
        assert is_less_strict(line, line.replace("zip(these, those, strict=True)", less))
    assert is_less_strict("these, those, strict=True )", "these, those, )"), "on a line of its own"
    assert not is_less_strict(line, line.replace("those", "None"))
    assert not is_less_strict("zip(these, strict=False)", "zip(these, strict=True)"), "it raises where it did not"
    assert not is_less_strict("f(these, strict=True)", "f(these, strict=False)")


SOURCE = """
class Handler:
    @on(port)
    def hear(self, message: int = 1, *, twice: bool = False) -> int:
        "What it does."
        return message * (2 if twice else 1)

    @staticmethod
    def left_alone() -> str:
        return f"a sentence is no code"

class Louder(Handler):
    @on(port)
    def hear(self, message: int = 1, *, twice: bool = False) -> int:
        return 10 * super().hear(message, twice=twice)

@cache
async def remembered(text: str) -> str:
    return text + "a sentence is no code" + "key"
"""


def test_a_decorated_function_is_split_so_that_its_body_is_changed_and_does_the_same() -> None:
    found: dict[str, object] = {}
    code = undecorated(SOURCE)
    exec("port, on, cache = 0, lambda port: (lambda f: f), lambda f: f\n" + code, found)
    handler = found["Handler"]()  # type: ignore[operator]  # it is a class
    assert handler.hear(3, twice=True) == handler.hear_undecorated(3, twice=True) == 6
    assert handler.hear() == 1
    assert found["Louder"]().hear(3) == 30, "each calls its own"  # type: ignore[operator]  # it is a class
    assert "remembered_undecorated" in found
    assert code.count("@") == SOURCE.count("@")
    assert 'f"a sentence is no code" + "key"' in code


def test_a_count_knows_whether_the_code_is_still_the_same() -> None:
    guard = TARGETS[0]
    now = Count(guard.name, "abc1234", "2026-01-01", 2.0, 0, (), (), digest(guard))
    assert now.is_of_this_code
    assert not msgspec.structs.replace(now, target="driver").is_of_this_code
    assert not count(()).is_of_this_code


def test_what_is_named_as_changing_nothing_is_still_in_the_code() -> None:
    tables = {f"{one.module}.{one.constant}: {one.what}" for room in MODULES for one in all_of(room)}
    for one in equivalent():
        if one.function.rpartition(".")[2].strip("_").isupper():
            assert f"{one.function}: {one.new}" in tables
            assert one.why
            continue
        module, _, function = one.function.rpartition(".")
        path = ROOT / f"{module.replace('.', '/')}.py"
        if not path.exists():  # a method
            path = ROOT / f"{module.rpartition('.')[0].replace('.', '/')}.py"
        assert one.old in path.read_text(), f"{one.function}: {one.old}"
        assert f"def {function}(" in path.read_text(), one.function
        assert one.why


def test_each_target_has_files_and_tests() -> None:
    for target in TARGETS:
        assert all(list(ROOT.glob(pattern)) for pattern in target.files), target
        assert all((ROOT / path).exists() for path in target.tests), target


class Trial:
    """A test that fails, dies or does not end where one of these mutants is on trial."""

    def __init__(self, nodeid: str, *, fails: str = "", dies: str = "", hangs: str = "", spins: str = "") -> None:
        self.nodeid, self.fails, self.dies, self.hangs, self.spins = nodeid, fails, dies, hangs, spins

    def run(self, session: Any) -> None:
        mutant = os.environ["MUTANT_UNDER_TEST"]
        if mutant == self.dies:
            os.kill(os.getpid(), signal.SIGTERM)
        while mutant == self.spins:
            pass
        while mutant == self.hangs:
            signal.pause()  # until it is killed
        session.testsfailed += mutant == self.fails


def test_each_mutant_meets_the_tests_that_reach_its_function_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"m.x_f__mutmut_{number}" for number in range(5)]
    tests = [
        Trial("t.py::a", fails=names[0], dies=names[1], hangs=names[2], spins=names[4]),
        Trial("t.py::b", fails="m.x_g__mutmut_0"),
        Trial("t.py::never", fails=names[3]),
    ]
    session: Any = SimpleNamespace(items=tests, testsfailed=0)
    hook = SimpleNamespace(pytest_runtest_protocol=lambda item, nextitem: item.run(session))
    session.config = SimpleNamespace(hook=hook)
    reach = {"m.x_f": ["t.py::b", "t.py::a"], "m.x_g": ["t.py::a", "t.py::b", "t.py::gone"]}
    learnt = {"tests_by_mangled_function_name": reach, "duration_by_test": dict.fromkeys(("t.py::a", "t.py::b"), 0.1)}
    monkeypatch.setattr(mutant_tests, "LONGEST_S", 0.5)
    monkeypatch.setattr(mutant_tests, "SLOWEST", 2.0)
    hunt = mutant_tests.Hunt(session, cast(Any, learnt))
    ended = hunt.run([*names, "m.x_g__mutmut_0", "m.x_unreached__mutmut_0"], 2)
    assert dict(pair for found in ended for pair in found.items()) == {
        names[0]: "killed", names[1]: "killed", names[2]: "timeout", names[3]: "survived",
        names[4]: "timeout",
        "m.x_g__mutmut_0": "killed", "m.x_unreached__mutmut_0": "survived",
    }  # fmt: skip
    assert session.testsfailed == 0, "nothing of a mutant comes back"
