"""`python -m bench.mutants`: change the code that decides who may move the robot in every way that mutmut knows; count
what its tests notice.

Each target is counted apart and works in a copy of the tree. There each decorated function, a node's handler say, is
split first: the decorated one calls a plain one that holds its body, since mutmut changes no decorated function. With
`--sample` a seeded random sample of each target is tried, and the figure says so, with its interval.

Results go to docs/results/mutants.json, one entry a target, and as a table into docs/reliability.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import libcst
import msgspec

from bench import marked
from bench.code_commit import ROOT, commit_of
from nodes.statistics.paired import wilson

PAGE = ROOT / "docs" / "reliability.md"
RESULTS = ROOT / "docs" / "results" / "mutants.json"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
BEGIN, END = "<!-- mutants: begin, written by make mutants -->", "<!-- mutants: end -->"
GOAL = 0.97
STEPS = "600"  # of the random stories, for each mutant
BATCH = 150
KILLED = ("killed", "timeout", "segfault", "suspicious")
TREE = ("runtime", "nodes", "bridges", "bench", "launch", "tests", "docs", "README.md")
MUTMUT = (sys.executable, "-c", "from mutmut.__main__ import cli; cli()")
PLAIN = "_undecorated"
WITHOUT = ("-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:unraisableexception", "-p", "no:threadexception")
PLUGINS = (*WITHOUT, "-W", "ignore::pytest.PytestUnknownMarkWarning", "-p", "bench.mutant_tests")


@dataclass(frozen=True, slots=True)
class Target:
    """Code that is counted by itself, and the tests that have to notice; files and tests as in mutmut's settings."""

    name: str
    files: tuple[str, ...]
    tests: tuple[str, ...]
    but: tuple[str, ...] = ()  # of these files, those that are not changed


TARGETS = (
    Target(
        "guard",
        (
            "nodes/guard/*",
            "nodes/seats/ladder.py",
            "nodes/seats/compare.py",
            "runtime/coordination/lease.py",
            "runtime/coordination/fence.py",
            "nodes/msgs/signature.py",
        ),
        (
            "tests/nodes/guard/test_exactness.py",
            "tests/nodes/guard/test_parts.py",
            "tests/nodes/guard/test_output.py",
            "tests/nodes/guard/test_base.py",
            "tests/nodes/guard/test_feed.py",
            "tests/nodes/guard/test_state_machine.py",
            "tests/nodes/guard/stops/test_stops.py",
            "tests/nodes/guard/test_immediate_faults.py",
            "tests/nodes/guard/test_any_story.py",
            "tests/nodes/guard/test_arbitration.py",
            "tests/nodes/guard/stops/test_latch_exactness.py",
            "tests/nodes/guard/stops/test_refusals.py",
            "tests/nodes/guard/test_announcements.py",
            "tests/nodes/guard/test_persistence.py",
            "tests/nodes/guard/stops/test_latches.py",
            "tests/nodes/guard/stops/test_returns.py",
            "tests/nodes/guard/test_node.py",
            "tests/nodes/guard/test_needs.py",
            "tests/nodes/guard/test_motion_profile.py",
            "tests/nodes/guard/test_invariants.py",
            "tests/nodes/guard/test_lasting_faults.py",
            "tests/nodes/guard/stops/test_retreat.py",
            "tests/nodes/guard/stops/test_pressure_release.py",
            "tests/nodes/guard/stops/test_robots_latch.py",
            "tests/nodes/guard/test_space.py",
            "tests/nodes/guard/test_watchdog_table.py",
            "tests/nodes/guard/test_sideways.py",
            "tests/nodes/guard/untrusted/test_false_states.py",
            "tests/nodes/guard/stops/test_who_lifts.py",
            "tests/nodes/guard/untrusted/test_trust.py",
            "tests/nodes/msgs/test_signature.py",
            "tests/runtime/coordination/test_leases.py",
            "tests/runtime/coordination/test_fence.py",
            "tests/nodes/seats/test_shadow_compare.py",
            "tests/nodes/seats/test_ladder.py",
            "tests/nodes/interrupts/test_false_alarm.py",
        ),
        # what a terminal asks, counted below; what a page shows; what processes and launch files show
        but=("command.py", "orders.py", "table.py", "estop_signal.py", "graph_rules.py", "watchdog.py"),
    ),
    Target(
        "orders",
        ("nodes/guard/orders.py", "nodes/guard/command.py"),
        ("tests/nodes/guard/stops/test_command.py", "tests/nodes/guard/stops/test_estop_command.py"),
    ),
    Target(
        "driver",
        ("nodes/robot/driver.py", "nodes/robot/rest.py"),
        ("tests/nodes/robot/test_driver.py", "tests/nodes/robot/test_brake.py", "tests/nodes/robot/test_rest.py"),
    ),
    Target(
        "reflex",
        ("nodes/interrupts/reflex.py", "nodes/interrupts/second_judge.py", "nodes/interrupts/people.py"),
        (
            "tests/nodes/interrupts/test_reflex.py",
            "tests/nodes/interrupts/test_reflex_exactness.py",
            "tests/nodes/interrupts/test_soft_hold.py",
            "tests/nodes/interrupts/test_false_alarm.py",
            "tests/nodes/interrupts/test_alarm.py",
            "tests/nodes/interrupts/test_people.py",
            "tests/nodes/interrupts/test_bounds.py",
        ),
    ),
    Target(
        "understanding",
        ("nodes/interrupts/intent.py", "nodes/interrupts/phrase_matcher.py"),
        (
            "tests/nodes/interrupts/test_intent.py",
            "tests/nodes/interrupts/test_intent_exactness.py",
            "tests/nodes/interrupts/test_phrase_matcher.py",
            "tests/nodes/interrupts/test_pairs.py",
            "tests/nodes/interrupts/test_meanings.py",
            "tests/nodes/interrupts/test_told_apart.py",
            "tests/nodes/interrupts/test_entries.py",
            "tests/nodes/interrupts/test_bounds.py",
            "tests/nodes/interrupts/test_reflex.py",
        ),
    ),
)  # fmt: skip


class Module(msgspec.Struct, frozen=True):
    """What became of the mutants of one module; `timeouts` are those of the killed that did not end."""

    module: str
    all: int
    tried: int
    killed: int
    timeouts: int = 0
    equivalent: int = 0


class Survivor(msgspec.Struct, frozen=True):
    """A mutant that no test noticed: what was changed where, and why it changes nothing, where that is known."""

    function: str
    old: str
    new: str
    why: str = ""


class Count(msgspec.Struct, frozen=True):
    """One target: its modules, the survivors, and what it was counted on; `seed` counts where it is a sample."""

    target: str
    commit: str
    date: str
    minutes: float
    seed: int
    modules: tuple[Module, ...]
    survivors: tuple[Survivor, ...]
    code: str = ""  # a digest of the files that were changed

    @property
    def is_of_this_code(self) -> bool:
        """Whether the files are still as they were when they were changed."""
        return any(one.name == self.target and digest(one) == self.code for one in TARGETS)

    def total(self, name: str) -> int:
        """Of all modules together."""
        return sum(getattr(one, name) for one in self.modules)

    @property
    def is_sample(self) -> bool:
        """Whether only some were tried."""
        return self.total("tried") < self.total("all")

    @property
    def share(self) -> float:
        """Killed of those tried that change anything; 0 where none was tried."""
        of = self.total("tried") - self.total("equivalent")
        return self.total("killed") / of if of else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Where that share of all mutants is, as far as those tried tell (Wilson, 95 %)."""
        of = self.total("tried") - self.total("equivalent")
        return wilson(self.total("killed"), of) if of else (0.0, 1.0)

    @property
    def misses(self) -> bool:
        """Whether fewer than the goal are killed; a sample says so only where the goal is above its interval."""
        return (self.interval[1] if self.is_sample and self.total("tried") else self.share) < GOAL


def main(argv: Sequence[str] | None = None) -> int:
    """1 where a target misses its goal or mutmut failed, else 0; prints the survivors."""
    asked = _parser().parse_args(argv)
    made = []
    for target in TARGETS:
        if not asked.target or target.name in asked.target:
            count = _count(target, asked)
            made.append(count)
            for one in count.survivors:
                why = f"equivalent: {one.why}" if one.why else ""
                print(f"{one.function}\n  - {one.old}\n  + {one.new}\n  {why}", flush=True)
            print(f"{target.name}: {count.share:.1%}")
            if not asked.only:
                counts = {one.target: one for one in read()} | {
                    target.name: count
                }  # another may have written meanwhile
                write([counts[one.name] for one in TARGETS if one.name in counts])
    if asked.only:
        print("a part of the modules is not the figure of the docs: nothing written")
    return 1 if any(one.misses for one in made) else 0


def read() -> list[Count]:
    """What was counted last of each target. Raises msgspec.ValidationError where the file is of another shape."""
    return msgspec.json.decode(RESULTS.read_bytes(), type=list[Count]) if RESULTS.exists() else []


def equivalent() -> list[Survivor]:
    """The mutants that are known to change nothing. Raises msgspec.ValidationError where the file is wrong."""
    return msgspec.convert(tomllib.loads(EQUIVALENT.read_text())["mutant"], list[Survivor])


def write(counts: Sequence[Count]) -> None:
    """Keep them, and put their table into the page."""
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(counts), indent=1) + b"\n")
    marked.write(PAGE, BEGIN, END, as_markdown(counts))


def as_markdown(counts: Sequence[Count]) -> str:
    """The figures with what they were counted on."""
    lines = []
    for count in counts:
        tried, everything, equivalent = (count.total(name) for name in ("tried", "all", "equivalent"))
        low, high = count.interval
        which = (
            f"a random sample (seed {count.seed}) of {tried} of {everything}, so of all it is "
            f"{low:.1%} to {high:.1%} (Wilson, 95 %)"
            if count.is_sample
            else f"all {everything}"
        )
        lines += [
            f"**{count.target}**: {count.total('killed')} of {tried} mutants killed, {count.total('timeouts')} of them "
            f"because they did not end; {equivalent} of the others change nothing. **{count.share:.1%}** of those that "
            f"change something (goal: {GOAL:.0%}). Tried were {which}; {count.date}, "
            f"{count.minutes:.0f} minutes, on commit {count.commit}.",
            "",
        ]
    counted = {one.target for one in counts}
    if missing := [one.name for one in TARGETS if one.name not in counted]:
        lines += [f"Not counted yet: {', '.join(missing)}.", ""]
    lines += ["| target | module | mutants | tried | killed | equivalent | share |", "|---|---|---|---|---|---|---|"]
    for count in counts:
        for one in count.modules:
            of = one.tried - one.equivalent
            share = f"{one.killed / of:.1%}" if of else ""
            cells = (count.target, f"`{one.module}`", one.all, one.tried, one.killed, one.equivalent, share)
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def tally(results: Mapping[str, str], same: Sequence[str] = ()) -> tuple[Module, ...]:
    """By module; names are mutmut's, `package.module.function__mutmut_number`, and "" was not tried."""
    everything, tried, killed, timeouts, unchanging = (Counter[str]() for _ in range(5))
    for name, found in results.items():
        module = name.rpartition("__mutmut_")[0].rpartition(".")[0]
        everything[module] += 1
        tried[module] += bool(found)
        killed[module] += found in KILLED
        timeouts[module] += found == "timeout"
        unchanging[module] += name in same
    return tuple(
        Module(module, everything[module], tried[module], killed[module], timeouts[module], unchanging[module])
        for module in sorted(everything)
    )


def digest(target: Target) -> str:
    """What tells this code of a target from any other."""
    found = sha256()
    for pattern in target.files:
        for path in sorted(ROOT.glob(pattern)):
            if path.suffix == ".py" and path.name not in target.but:
                found.update(path.read_bytes())
    return found.hexdigest()[:12]


def readable(name: str) -> str:
    """Of mutmut's name of a mutant the function: `package.module.Class.function`."""
    module, _, function = name.rpartition("__mutmut_")[0].rpartition(".")
    function = function.removeprefix("x").replace("ǁ", ".").lstrip(".")
    if "ǁ" not in name:
        function = function.removeprefix("_")
    return f"{module}.{function.removesuffix(PLAIN)}"


def _count(target: Target, asked: argparse.Namespace) -> Count:
    start = time.monotonic()
    commit, code = commit_of(), digest(target)
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        folder = Path(place)
        _copy_tree(folder, target)
        results = dict.fromkeys(_names(folder, asked.only, asked.processes), "")
        order = sorted(results)
        random.Random(asked.seed).shuffle(order)
        order = order[: asked.sample] if asked.sample else order
        noted = _Noted(target, goes_on=asked.resume)
        results.update({name: noted.killed[name] for name in order if name in noted.killed})
        order = [name for name in order if not results[name]]
        for first in range(0, len(order), BATCH):
            results.update(_try(folder, target, order[first : first + BATCH], asked.processes))
            noted.note(results)
            tried = [found for found in results.values() if found]
            share = sum(found in KILLED for found in tried) / len(tried)
            minutes = (time.monotonic() - start) / 60
            print(f"{target.name}: {len(tried)} tried, {share:.1%} killed, {minutes:.0f} min", flush=True)
        lived = sorted(name for name, found in results.items() if found and found not in KILLED)
        survivors = dict(zip(lived, _changes(folder, lived), strict=True))
    same = [name for name, one in survivors.items() if one.why]
    return Count(
        target.name, commit, f"{datetime.now(UTC):%Y-%m-%d}", round((time.monotonic() - start) / 60, 1), asked.seed,
        tally(results, same), tuple(survivors.values()), code,
    )  # fmt: skip


class _Noted:
    """Which mutants of a target were killed, kept in runs/ for `--resume`; of other code nothing is kept."""

    def __init__(self, target: Target, *, goes_on: bool) -> None:
        self._path = ROOT / "runs" / f"mutants-{target.name}.json"
        self._code = digest(target)
        self.killed: dict[str, str] = {}
        if goes_on and self._path.exists():
            kept = msgspec.json.decode(self._path.read_bytes(), type=dict[str, dict[str, str]])
            self.killed = kept.get(self._code, {})

    def note(self, results: Mapping[str, str]) -> None:
        """Keep those that were killed."""
        self.killed.update({name: found for name, found in results.items() if found in KILLED})
        self._path.parent.mkdir(exist_ok=True)
        self._path.write_bytes(msgspec.json.encode({self._code: self.killed}))


class Undecorate(libcst.CSTTransformer):
    """Splits each decorated function in two: the decorated one calls a plain one that holds its body.

    A string with a space is a sentence for people, and becomes an f-string, which mutmut does not change.
    """

    def __init__(self) -> None:
        super().__init__()
        self._classes: list[str] = []

    def visit_ClassDef(self, node: libcst.ClassDef) -> None:  # noqa: N802  the name is libcst's
        self._classes.append(node.name.value)

    def leave_ClassDef(  # noqa: N802  the name is libcst's
        self, original_node: libcst.ClassDef, updated_node: libcst.ClassDef
    ) -> libcst.ClassDef:
        self._classes.pop()
        return updated_node

    _LEFT_ALONE = ("staticmethod", "classmethod", "overload", "abstractmethod", "fixture")

    def leave_FunctionDef(  # noqa: N802  the name is libcst's
        self, original_node: libcst.FunctionDef, updated_node: libcst.FunctionDef
    ) -> libcst.FunctionDef | libcst.FlattenSentinel[libcst.FunctionDef]:
        names = {libcst.Module([]).code_for_node(one.decorator) for one in updated_node.decorators}
        if not names or names.intersection(self._LEFT_ALONE):
            return updated_node
        name = f"{updated_node.name.value}{PLAIN}"
        params = updated_node.params
        given = [one.name.value for one in (*params.posonly_params, *params.params)]
        is_method = given[:1] == ["self"]
        arguments = [*given[is_method:], *(f"{one.name.value}={one.name.value}" for one in params.kwonly_params)]
        if is_method:  # by its class: a subclass may have split a method of that name, too
            name_there, arguments = f"{self._classes[-1]}.{name}", ["self", *arguments]
        call = f"{name_there if is_method else name}({', '.join(arguments)})"
        body = f"return await {call}" if updated_node.asynchronous else f"return {call}"
        shell = updated_node.with_changes(body=libcst.IndentedBlock([libcst.parse_statement(body)]))
        plain = updated_node.with_changes(decorators=[], name=libcst.Name(name))
        return libcst.FlattenSentinel([plain, shell])

    def leave_SimpleString(  # noqa: N802  the name is libcst's
        self, original_node: libcst.SimpleString, updated_node: libcst.SimpleString
    ) -> libcst.BaseExpression:
        text = updated_node.value
        if " " not in text or updated_node.prefix or updated_node.quote not in ("'", '"') or set(text) & set("{}\\"):
            return updated_node
        return libcst.parse_expression(f"f{text}")


def undecorated(source: str) -> str:
    """The code with its decorated functions split and its sentences hidden, which does the same."""
    return libcst.parse_module(source).visit(Undecorate()).code


def _copy_tree(folder: Path, target: Target) -> None:
    for name in TREE:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy(source, folder)
    for pattern in target.files:
        for path in folder.glob(pattern):
            if path.suffix == ".py":
                path.write_text(undecorated(path.read_text()))
    settings = {
        "source_paths": ["nodes", "runtime"],
        "only_mutate": list(target.files),
        "do_not_mutate": [f"*/{name}" for name in target.but],
        "do_not_mutate_patterns": [r"self\.log\.", r"help=", r"metavar="],  # what a log and a help show
        "also_copy": ["bridges", "bench", "launch", "docs", "README.md"],
        "use_git_change_detection": False,
        "pytest_add_cli_args": ["-x", *PLUGINS],
        "pytest_add_cli_args_test_selection": list(target.tests),
    }
    lines = (f"{key} = {json.dumps(value)}" for key, value in settings.items())  # such JSON is TOML, too
    text = "\n".join([(ROOT / "pyproject.toml").read_text(), "[tool.mutmut]", *lines, ""])
    (folder / "pyproject.toml").write_text(text)


def _environment(path: Path) -> dict[str, str]:
    """For tests that run there."""
    return {**os.environ, "GUARD_STEPS": STEPS, "PYTHONPATH": str(path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def _mutmut(folder: Path, *arguments: str, excuse: str = "") -> str:
    """What it prints. Raises SystemExit with its last words where it fails, but for the excuse."""
    done = subprocess.run(
        [*MUTMUT, *arguments], cwd=folder, env=_environment(folder), capture_output=True, text=True, check=False
    )
    if done.returncode and not (excuse and excuse in done.stderr):
        told = done.stdout + done.stderr
        problems = [line for line in told.splitlines() if line.startswith(("ERROR", "FAILED", "E  "))]
        raise SystemExit("\n".join([f"mutmut {arguments[0]} failed:", *problems[:20], told[-4000:]]))
    return done.stdout


def _names(folder: Path, only: str, processes: int) -> list[str]:
    """Of all mutants. A first run of none, which it complains of, makes them and learns which test runs what."""
    _mutmut(folder, "run", "--max-children", str(processes), "none", excuse="nothing matches")
    return [name for name in _results(folder) if only in name]


def _try(folder: Path, target: Target, names: Sequence[str], processes: int) -> dict[str, str]:
    """What became of each. Raises SystemExit with the last words of the tests where they do not run at all."""
    asked = folder / "asked.json"
    asked.write_text(json.dumps(names))
    place = folder / "mutants"
    command = (sys.executable, "-m", "pytest", "--rootdir=.", "-qx", "-p", "no:randomly", *PLUGINS)
    told = (f"--mutants={asked}", "--at-once", str(processes))  # a path that stands alone would move pytest's root
    done = subprocess.run(
        [*command, *told, *target.tests],
        cwd=place, env=_environment(place), capture_output=True, text=True, check=False,
    )  # fmt: skip
    told_of = asked.with_suffix(".done")
    found = dict(json.loads(line) for line in told_of.read_text().splitlines()) if told_of.exists() else {}
    if set(found) != set(names):
        raise SystemExit(f"the tests of {target.name} did not run:\n{(done.stdout + done.stderr)[-4000:]}")
    return found


def _results(folder: Path) -> dict[str, str]:
    lines = (line.strip().rpartition(": ") for line in _mutmut(folder, "results", "--all", "true").splitlines())
    return {name: found for name, colon, found in lines if colon and "__mutmut_" in name}


_STRICT = re.compile(r",\s*(strict=(True|False|None)\s*)?\)")
STRICT_WHY = "zip does not ask any more whether its lengths are the same, of which the code before has made sure"


def is_less_strict(old: str, new: str) -> bool:
    """Whether nothing was changed but that a `zip` does not ask any more for equal lengths."""
    is_zip = "zip(" in old or "(" not in old  # or its arguments alone, on a line of their own
    is_same = is_zip and _STRICT.sub(")", old) == _STRICT.sub(")", new)
    return is_same and old.count("strict=True") >= new.count("strict=True")


def _changes(folder: Path, names: Sequence[str]) -> list[Survivor]:
    """What was changed in each of these, and why it changes nothing, where the file of equivalent ones says so."""
    reasons = {(one.function, one.old, one.new): one.why for one in equivalent()}
    code = "import sys; from mutmut.__main__ import show; show.callback(sys.argv[1])"
    found = []
    for name in names:
        done = subprocess.run(
            [sys.executable, "-c", code, name], cwd=folder, capture_output=True, text=True, check=False
        )
        old, new = (
            " ".join(line[1:].strip() for line in done.stdout.splitlines() if line[:1] == sign and line[:3] != sign * 3)
            for sign in "-+"
        )
        function = readable(name)
        why = reasons.get((function, old, new), STRICT_WHY if is_less_strict(old, new) else "")
        found.append(Survivor(function, old, new, why))
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench.mutants", epilog="example: python -m bench.mutants --target reflex --sample 300"
    )
    parser.add_argument("--target", nargs="*", choices=[one.name for one in TARGETS], help="default: all, in turn")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="so many of each target; default: all")
    parser.add_argument("--resume", action="store_true", help="those killed before in the same code need not die again")
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants whose name holds the text; writes nothing")
    parser.add_argument("--seed", type=int, default=0, help="of the order in which they are tried")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="default: one per core")
    return parser


if __name__ == "__main__":
    sys.exit(main())
