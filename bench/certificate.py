"""`python -m bench.certificate`: from each requirement of safety to its code, its tests, mutants and measured figures.

Requirements stand in bench/requirements.toml. The page docs/certificate.md is written anew from them, from
docs/results/mutants.json and from the tables of the fault matrix. The command fails with a sentence for each
requirement without a test, for code or a test that is not there, and for a figure that is missing or out of bounds.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from bench import mutants
from bench.code_commit import ROOT, commit_of
from runtime.errors import choices

REQUIREMENTS = Path(__file__).with_name("requirements.toml")
PAGE = ROOT / "docs" / "certificate.md"
HAZARDS = ROOT / "docs" / "hazards.md"
MATRICES = {"with rights": "faults.md", "without": "faults-ordinary.md"}
"""The tables of the fault matrix in docs/results, by what the account may do."""
CELLS = 8  # of a row of such a table

HEAD = """# Certificate: what is required of a stop, and what shows it

Written by `python -m bench.certificate` on commit {commit}, from
[`bench/requirements.toml`](../bench/requirements.toml). It is our own evidence, and no certificate of an authority.

*Mutants* are changes to the file that holds the code; how many were tried and noticed is on [the page of
reliability](reliability.md#mutants), with the commit. *Measured* is the worst of all trials, behind it the bound; [the
same page](reliability.md#the-fault-matrix) says what each figure is. Of two values the first is with real-time rights
and the second without. A figure with one value does not hang on them, and was measured with them only. H1 and the like
are rows of [the list of hazards](hazards.md).

{missing}
| | requirement | code | tests | mutants killed | measured |
|---|---|---|---|---|---|
"""


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the fault matrix, by its first two cells."""

    fault: str
    figure: str


class Requirement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One requirement: `code` as "path:Class.function", `tests` as "path::function"; `id` never changes."""

    id: str
    says: str
    code: tuple[str, ...]
    tests: tuple[str, ...]
    hazards: tuple[str, ...]  # rows of docs/hazards.md that it stands against
    figures: tuple[Figure, ...] = ()


class _File(msgspec.Struct, forbid_unknown_fields=True):
    requirement: tuple[Requirement, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """What a table of the fault matrix says of one figure."""

    worst: str
    bound: str
    is_within: bool


Table = Mapping[tuple[str, str], Measured]


def main(argv: Sequence[str] | None = None) -> int:
    """0 where every requirement is shown, 1 where one is not; the page is written in both cases."""
    asked = _parser().parse_args(argv)
    found = read()
    tables = {name: read_table(ROOT / "docs" / "results" / file) for name, file in MATRICES.items()}
    counts = mutants.read()
    problems = [*static_problems(found), *figure_problems(found, *tables.values())]
    if not asked.check:
        PAGE.write_text(page(found, tables, counts, problems))
    if asked.json:
        print(json.dumps({"requirements": len(found), "problems": problems}))
    else:
        print("\n".join(problems) or f"{len(found)} requirements, each with code, tests and its figures within bounds")
    return 1 if problems else 0


def read(path: Path = REQUIREMENTS) -> tuple[Requirement, ...]:
    """The requirements. Raises msgspec.ValidationError with the place where one has not the fields it should."""
    return msgspec.convert(tomllib.loads(path.read_text()), _File).requirement


def static_problems(found: Sequence[Requirement], root: Path = ROOT) -> Iterator[str]:
    """What is wrong with the requirements themselves: a sentence each."""
    for number, one in enumerate(found):
        if one.id in {other.id for other in found[:number]}:
            yield f"{one.id}: two requirements have this id; give the later one an id of its own"
        if not one.tests:
            yield f"{one.id}: no test shows that {one.says!r}; name one under tests"
        if not one.code:
            yield f"{one.id}: no code is named for {one.says!r}; name it under code"
        known = re.findall(r"^\| (H\d+) \|", HAZARDS.read_text(), re.MULTILINE)
        if not one.hazards or not set(one.hazards) <= set(known):
            named = choices(one.hazards) if one.hazards else "nothing"
            yield f"{one.id}: it stands against {named}; known hazards: {choices(known)}"
        for place in one.code:
            path, _, name = place.partition(":")
            if name not in _names(root / path):
                yield f"{one.id}: {place} is not there; was it moved or renamed?"
        for place in one.tests:
            path, _, name = place.partition("::")
            if not name.rpartition("::")[2].startswith("test_") or name.replace("::", ".") not in _names(root / path):
                yield f"{one.id}: there is no test {place}; was it moved or renamed?"


def figure_problems(found: Sequence[Requirement], table: Table, without: Table) -> Iterator[str]:
    """Which figures are missing in the table, or out of bounds in one of the two: a sentence each."""
    for one in found:
        for figure in one.figures:
            name = f"{one.id}: {figure.figure!r} of {figure.fault!r}"
            place = (figure.fault, figure.figure)
            if place not in table:
                yield f"{name} was not measured; run make faults"
            for where, measured in (("", table.get(place)), (" without real-time rights", without.get(place))):
                if measured is not None and not measured.is_within:
                    yield f"{name} is {measured.worst}{where}, out of its bound of {measured.bound}"
    if not without and any(one.figures for one in found):
        yield "nothing was measured without real-time rights; run make faults"


def read_table(path: Path) -> dict[tuple[str, str], Measured]:
    """Of docs/results the table of a fault matrix by fault and figure; {} where none was shipped."""
    table = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| ") and len(cells) == CELLS:
            fault, figure, _, worst, _, bound, _, passed = cells
            table[fault, figure] = Measured(worst, bound, passed.startswith("yes"))
    return table


def page(
    found: Sequence[Requirement],
    tables: Mapping[str, Table],
    counts: Sequence[mutants.Count],
    problems: Sequence[str],
) -> str:
    """The whole page."""
    modules = {one.module: (count, one) for count in counts for one in count.modules}
    lines = []
    for one in found:
        killed = []
        for path in dict.fromkeys(place.partition(":")[0] for place in one.code):
            killed.append(_killed(*modules.get(path.removesuffix(".py").replace("/", "."), ())))
        measured = [f"{figure.fault}: {figure.figure} {_worst(figure, tables)}" for figure in one.figures]
        cells = (
            f"<a id='{one.id.lower()}'></a>{one.id}",
            f"{one.says} ({', '.join(one.hazards)})",
            "<br>".join(f"`{place}`" for place in one.code),
            "<br>".join(f"`{place.rpartition('/')[2]}`" for place in one.tests),
            "<br>".join(killed),
            "<br>".join(measured),
        )
        lines.append(f"| {' | '.join(cells)} |")
    missing = "".join(f"- **Not shown**: {problem}\n" for problem in problems)
    return HEAD.format(commit=commit_of(), missing=missing) + "\n".join(lines) + "\n"


def _killed(count: mutants.Count | None = None, module: mutants.Module | None = None) -> str:
    of = module.tried - module.equivalent if module is not None else 0
    if count is None or module is None or not of:
        return "not counted"
    return f"{module.killed} of {of}{'' if count.is_of_this_code else ', of older code'}"


def _worst(figure: Figure, tables: Mapping[str, Table]) -> str:
    rows = [table.get((figure.fault, figure.figure)) for table in tables.values()]
    bound = next((row.bound for row in rows if row is not None), "")
    values = " / ".join(row.worst for row in rows if row is not None) or "not measured"
    return f"**{values}** ({bound})" if bound else f"**{values}**"


@cache
def _names(path: Path) -> frozenset[str]:
    """Functions and classes of a file, methods as "Class.method"; none where there is no such file."""
    if not path.is_file():
        return frozenset()
    found: set[str] = set()

    def look(body: Sequence[ast.stmt], before: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(f"{before}{node.name}")
                if isinstance(node, ast.ClassDef):
                    look(node.body, f"{before}{node.name}.")

    look(ast.parse(path.read_text()).body, "")
    return frozenset(found)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench.certificate",
        description="Write docs/certificate.md, and tell which requirement is not shown.",
        epilog="example: python -m bench.certificate",
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--json", action="store_true", help="print the problems as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
