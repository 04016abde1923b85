"""The pages say what is there: links lead somewhere, named files and classes exist, every command has its example."""

from __future__ import annotations

import re
import shlex
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib.metadata import entry_points
from io import StringIO
from itertools import takewhile
from pathlib import Path
from runpy import run_module
from types import ModuleType
from warnings import catch_warnings, simplefilter

import pytest

from runtime import Simulation
from runtime.cli import OWN, main
from runtime.commands import GROUP
from runtime.launch.file import find

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), ROOT / "llms.txt", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
)
COMMANDS = sorted([*OWN, *(entry.name for entry in entry_points(group=GROUP))])

LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED_FILE = re.compile(r"`((?:runtime|nodes|bridges|tests|bench|launch|docs)/[\w./-]+\.\w+)`")
NAMED_CLASS = re.compile(r"\b((?:runtime|nodes|bridges)(?:\.\w+)+):(\w+)")
RUN_BY_NAME = re.compile(r"polyrhythm (?:run|check|graph|doctor) ([a-z][\w-]*)(?![\w./-])")


def names(pages: list[Path]) -> list[str]:
    return [str(page.relative_to(ROOT)) for page in pages]


def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them."""
    lines = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), link
        assert not anchor or anchor in headings(place), link


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_files_and_classes_that_are_named_exist(page: Path) -> None:
    text = page.read_text()
    for name in NAMED_FILE.findall(text):
        assert (ROOT / name).exists(), name
    for module, name in NAMED_CLASS.findall(text):
        place = ROOT / module.replace(".", "/")
        sources = [place.with_suffix(".py")] if place.with_suffix(".py").exists() else sorted(place.glob("*.py"))
        defined = re.compile(rf"^(?:class |def |async def |){name}\b", re.MULTILINE)
        assert any(defined.search(source.read_text()) for source in sources), f"{module}:{name}"


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_launch_files_that_are_run_by_name_are_shipped(page: Path) -> None:
    for name in RUN_BY_NAME.findall(page.read_text()):
        find(name)


CODE_LINE = re.compile(r" {4,}(?!\s*(?:[-*]|\d+\.) )\S")
SECOND_COMMAND = re.compile(r"(?!\s*(?:\$ )?(?:\w+=\S+ )+polyrhythm)[^#]*[^\s;&|:`($>#] polyrhythm [a-z]")


def joined_commands(text: str) -> list[str]:
    """Lines of code that begin with an option, or in which a second command begins: somebody made prose of them."""
    found, is_fenced, before = [], False, ""
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            is_fenced = not is_fenced
        elif is_fenced or CODE_LINE.match(line):
            is_continued = before.endswith("\\")
            if SECOND_COMMAND.match(line) or (line.lstrip().startswith("--") and not is_continued):
                found.append(line)
        before = line
    return found


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_no_two_commands_of_a_block_are_one(page: Path) -> None:
    assert joined_commands(page.read_text()) == []


def test_commands_that_were_made_a_paragraph_are_found() -> None:
    first = "    polyrhythm eval a --seeds 5 polyrhythm eval b"
    assert joined_commands(f"{first}\n    --out c\n") == [first, "    --out c"]
    assert joined_commands("```\npolyrhythm eval a \\\n    --seeds 5\npolyrhythm eval b\n```\n") == []


EVIDENCE = (ROOT / "docs" / "README.md").read_text().partition("## Evidence")[2].partition("\n## ")[0]
MEASURED = re.compile(
    r"\b(?:(?:one|two|four|\d+|an?) (?:busy|quiet|shared|idle|loaded) (?:\S+ )?(?:cores?|machine)|cores? of an? "
    r"|(?:little|nothing) else to do|beside (?:much )?other work|once each"
    r"|load average|median of \d|p(?:50|90|95|99) (?:was|of) \d|(?:CPU|MB|ms|us) (?:was|were) measured)"
)
"""How a figure that somebody measured is told: on what machine, beside what load, as what of how many."""


def test_figures_of_measurements_stand_on_pages_of_evidence_only() -> None:
    allowed = set(LINK.findall(EVIDENCE))
    assert {"performance.md", "reliability.md", "certificate.md"} <= allowed
    assert MEASURED.search((ROOT / "docs" / "performance.md").read_text())
    pages = [ROOT / "README.md", *(page for page in (ROOT / "docs").glob("*.md") if page.name not in allowed)]
    assert len(pages) > 20
    assert [(page.name, found[0]) for page in pages for found in MEASURED.finditer(page.read_text())] == []


QUOTED_LINE = re.compile(r"\| `([\w/]+\.py)` \| `(.+)` \|$", re.MULTILINE)


def test_the_lines_that_the_walk_through_the_code_quotes_are_there() -> None:
    quoted = QUOTED_LINE.findall((ROOT / "docs" / "message-and-stop.md").read_text())
    assert len(quoted) > 20
    assert [(file, line) for file, line in quoted if line not in (ROOT / file).read_text()] == []


@pytest.mark.parametrize(("page", "code"), [("README.md", 2), ("docs/coming-from-ros2.md", 1)])
def test_the_python_of_a_page_runs(page: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert len(blocks) == code
    module = ModuleType("code_of_the_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # messages look their types up in their module
    vars(module)["Simulation"] = Simulation
    for block in blocks:
        exec(compile(block, page, "exec"), vars(module))
    for name, test in list(vars(module).items()):
        if name.startswith("test_"):
            test()


def test_every_page_stands_in_the_menu_of_the_site() -> None:
    menu = (ROOT / ".ci" / "site.yml").read_text().partition("nav:")[2].split()
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").as_posix()
        assert page.parent.name == "decisions" or name in menu, f"nav in .ci/site.yml does not list {name}"


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "README.md" or f"]({page.name})" in index, f"docs/README.md does not list {page.name}"


def test_every_decision_and_every_picture_is_on_some_page() -> None:
    everything = "".join(page.read_text() for page in PAGES)
    for file in [
        *(ROOT / "docs" / "decisions").glob("*.md"),
        *(ROOT / "docs").glob("*.png"),
        *(ROOT / "docs").glob("*.webp"),
    ]:
        assert f"{file.name})" in everything, f"no page leads to {file.name}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_a_page_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with suppress(SystemExit):  # argparse prints, and ends
        assert main([command, "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(rf"examples?: polyrhythm {command}\b", text)
    page = (ROOT / "docs" / "commands.md").read_text()
    assert re.search(rf"^\$ polyrhythm {command}\b", page, re.MULTILINE)
    assert re.search(rf"^## .*\bpolyrhythm {command}\b", page, re.MULTILINE)


OURS = r"polyrhythm|python -m (?:bench|bridges|examples|nodes|runtime)\b[\w.]*|make"
COMMAND = re.compile(rf"(?:\$ )?(?:\w+=\S+ )*(?:\.venv/bin/)?({OURS})((?: .*)?)")
NAMED_INSIDE = re.compile(r"(?:^|=)((?:docs|examples|launch|bench|tests)/\S+\.\w+)$")
TARGETS = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
OPEN = "limits.md"


class Parsed(BaseException):
    """A command has read its arguments, and goes no further."""


def commands_of(page: Path) -> list[str]:
    """What a reader types: lines of code, and on the page of what is open also what stands within its sentences."""
    found = [line for line in code_of(page.read_text()) if COMMAND.fullmatch(line)]
    if page.name == OPEN:
        found += [text for text in re.findall(r"`([^`]+)`", page.read_text()) if COMMAND.fullmatch(text)]
    return list(dict.fromkeys(found))


def code_of(text: str) -> Iterator[str]:
    """The lines of code of a page, each with what goes on after a backslash."""
    is_fenced, begun = False, ""
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            is_fenced, begun = not is_fenced, ""
        elif is_fenced or CODE_LINE.match(line):
            begun += line.strip()
            if begun.endswith("\\"):
                begun = begun[:-1]
            else:
                yield begun
                begun = ""


def words_of(line: str) -> list[str]:
    """The arguments of a shell's first command on a line."""
    shell = shlex.shlex(line, posix=True, punctuation_chars=";|&<>")
    shell.whitespace_split = True
    return list(takewhile(lambda word: not set(word) <= set(";|&<>"), shell))


def fault_of(line: str) -> str:
    """What is wrong with a command, by its own parser; it is asked for its help, so that nothing is ever done."""
    found = COMMAND.fullmatch(line)
    assert found is not None
    program, words = found[1], words_of(found[2])
    if missing := [name[1] for name in map(NAMED_INSIDE.search, words) if name and not (ROOT / name[1]).exists()]:
        return f"there is no {missing[0]}"
    if program == "make":
        return "".join(f"no target {word}" for word in words if "=" not in word and word not in TARGETS)
    parse = ArgumentParser.parse_args

    def read(self: ArgumentParser, args: list[str] | None = None, namespace: object = None) -> None:
        parse(self, (sys.argv[1:] if args is None else args)[:-1])
        raise Parsed

    said = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), redirect_stderr(said), catch_warnings():
        simplefilter("ignore", RuntimeWarning)  # another test may have imported it
        patch.setattr(ArgumentParser, "parse_args", read)
        patch.setattr(sys, "argv", [program, *words, "--help"])
        try:
            if program == "polyrhythm":
                main([*words, "--help"])
            elif not (source := module_of(program)).exists():
                return f"there is no {source.relative_to(ROOT)}"
            elif "argparse" in source.read_text():
                run_module(program.rpartition(" ")[2], run_name="__main__")
            else:
                return f"{program} takes no arguments" if words and "sys.argv" not in source.read_text() else ""
        except Parsed:
            return ""
        except SystemExit as end:
            if "--help" in words or "is not installed" in str(end):
                return ""  # without the library of an extra nobody reads them
    return said.getvalue().strip().rpartition("\n")[2] or "it read no arguments"


def module_of(program: str) -> Path:
    """The file that `python -m` runs."""
    place = ROOT / program.rpartition(" ")[2].replace(".", "/")
    return place / "__main__.py" if place.is_dir() else place.with_suffix(".py")


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_commands_are_read_by_their_own_parsers(page: Path) -> None:
    found = {line: fault_of(line) for line in commands_of(page)}
    assert {line: fault for line, fault in found.items() if fault} == {}
    assert found or page.name != OPEN


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("polyrhythm run laptop --nowhere", "unrecognized arguments: --nowhere"),
        ("polyrhythm episodes rate", "the following arguments are required: run"),
        ("python -m bench.serving --nowhere", "unrecognized arguments: --nowhere"),
        ("python -m bench.nowhere", "there is no bench/nowhere.py"),
        ("make nothing", "no target nothing"),
        ("polyrhythm run docs/nowhere.toml", "there is no docs/nowhere.toml"),
        ("polyrhythm nowhere", "there is no command 'nowhere'"),
    ],
)
def test_a_command_that_cannot_be_typed_is_found(line: str, fault: str) -> None:
    assert fault in fault_of(line)
