"""Counts the rooms of each package and the arrows between them, and the words of the pages.

A room is a folder, or a loose file beside folders. An arrow is one room that imports another, however often; what only
type checkers import is not counted. `python -m bench.rooms [COMMIT ...]` counts the working tree, and each commit;
`python -m bench.rooms --table` writes what lives in each room into docs/architecture.md; `python -m bench.rooms
--words` counts the words of README and docs that a person wrote; `--lines` counts the lines of the product.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench import marked

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("runtime", "nodes", "bridges")
MOVED = ("bench/interruptions",)
"""What was part of the product once, and is counted with it as before."""
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- rooms: begin, written by python -m bench.rooms --table -->", "<!-- rooms: end -->"
WRITTEN_PAGES = ("docs/reference/", "docs/results/", "docs/certificate.md")
"""Pages that commands write whole: make reference, make faults, the soak and its like, make mutants."""
_WRITTEN_PART = re.compile(r"<!-- (\w+): begin, written by [^>]+ -->.*?<!-- \1: end -->", re.DOTALL)


def working_tree() -> dict[str, str]:
    """The Python files of the packages, by path."""
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    return {file.relative_to(ROOT).as_posix(): file.read_text() for file in files}


def tree_of(commit: str) -> dict[str, str]:
    """Those of a commit; one that Git does not know ends the program with Git's sentence."""
    done = subprocess.run(["git", "archive", commit, "--", *PACKAGES], cwd=ROOT, capture_output=True)
    if done.returncode:
        sys.exit(f"commit {commit!r} cannot be counted: {done.stderr.decode().strip()}")
    archive = done.stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        members = [member for member in packed.getmembers() if member.isfile() and member.name.endswith(".py")]
        return {member.name: packed.extractfile(member).read().decode() for member in members}  # type: ignore[union-attr]  # files


def count(files: Mapping[str, str]) -> dict[str, tuple[set[str], set[tuple[str, str]]]]:
    """Rooms and arrows of each package."""
    modules = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in files}
    folders = {path.rpartition("/")[0].replace("/", ".") for path in files}
    rooms = {module: module if module in folders else _room(module) for module in modules}
    counted = {}
    for package in PACKAGES:
        own = {module for module in modules if module.partition(".")[0] == package}
        arrows = {
            (rooms[module], rooms[target])
            for module in own
            for target in _imported(files[modules[module]], modules)
            if target in own and rooms[target] != rooms[module]
        }
        counted[package] = ({rooms[module] for module in own} - {package}, arrows)
    return counted


def table(files: Mapping[str, str]) -> list[str]:
    """A row for each room that is a folder: its path, and the first sentence of its `__init__`."""
    rows = ["| room | what lives there |", "|---|---|"]
    for path in sorted(path for path in files if path.endswith("/__init__.py") and path.count("/") > 1):
        text = ast.get_docstring(ast.parse(files[path])) or ""
        sentence = " ".join(text.partition("\n\n")[0].split())
        rows.append(f"| `{path.removesuffix('/__init__.py')}` | {sentence} |")
    return rows


def words(root: Path = ROOT) -> dict[str, int]:
    """Words of README and of each page of docs by path, without what a command writes; words as `wc -w` counts."""
    pages = {page.relative_to(root).as_posix(): page for page in (root / "README.md", *(root / "docs").rglob("*.md"))}
    return {
        path: len(_WRITTEN_PART.sub("", page.read_text()).split())
        for path, page in sorted(pages.items())
        if not path.startswith(WRITTEN_PAGES)
    }


def lines() -> dict[str, int]:
    """Lines of Python of the product, by package, with what has moved out of it."""
    return {
        folder: sum(file.read_text().count("\n") for file in (ROOT / folder).rglob("*.py"))
        for folder in (*PACKAGES, "polyrhythm", *MOVED)
    }


def _room(module: str) -> str:
    folder = module.rpartition(".")[0]
    return module if folder in PACKAGES else folder


def _imported(source: str, modules: Mapping[str, str]) -> Iterator[str]:
    """The modules of the house that a file imports where it runs."""
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += node.orelse
            continue
        waiting += ast.iter_child_nodes(node)
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [
                name if (name := f"{node.module}.{alias.name}") in modules else node.module for alias in node.names
            ]
        yield from (name for name in names if name in modules)


def main() -> None:
    """Print a line for each package of each tree, or for each page; or write the table of rooms."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.rooms",
        description=(__doc__ or "").split("\n\n")[0],
        epilog="e.g. python -m bench.rooms HEAD~10",
    )
    parser.add_argument("commits", nargs="*", metavar="COMMIT", help="count this commit, too, beside the working tree")
    parser.add_argument("--table", action="store_true", help="write what lives in each room into docs/architecture.md")
    parser.add_argument("--words", action="store_true", help="count the words of README and docs, by page and in all")
    parser.add_argument(
        "--lines", action="store_true", help="count the lines of the product, with what moved out of it"
    )
    told = parser.parse_args()
    if told.lines:
        for folder, number in lines().items():
            print(f"{number:7,} {folder}")
        print(f"{sum(lines().values()):7,} in all")
        return
    if told.table:
        marked.write(PAGE, BEGIN, END, "\n".join(table(working_tree())))
        return
    if told.words:
        counted = words()
        for path, number in sorted(counted.items(), key=lambda one: one[1]):
            print(f"{number:7,} {path}")
        print(f"{sum(counted.values()):7,} in {len(counted)} pages")
        return
    for name, files in [("working tree", working_tree()), *((commit, tree_of(commit)) for commit in told.commits)]:
        for package, (rooms, arrows) in count(files).items():
            loose = sum(f"{room.replace('.', '/')}.py" in files for room in rooms)
            print(f"{name:14} {package:8} {len(rooms):4} rooms ({loose} loose files) {len(arrows):5} arrows")


if __name__ == "__main__":
    main()
