"""Each tutorial, typed block by block into an empty folder and nothing else, ends as it says, in the time it names."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest

from nodes.scaffold.command import write_project
from tests.support.servers.fake_openai_server import FakeOpenAI, answers

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"(?:^`(?P<file>[\w./]+)`\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
STARTS_S = 5.0
"""What a command takes beside what it is told to run for; `make first-hour` measures those of each page."""
PATIENCE_S = 60.0
NEW = "from nodes.scaffold.command import main; import sys; sys.exit(main(sys.argv[1:]))"
"""`polyrhythm new`, also where the installed package is older than this checkout."""


FIRST = ("first-graph", "slow-model", "stop-it")
"""What a newcomer types first; `make long` types all of them."""


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem, marks=[] if page.stem in FIRST else [pytest.mark.long]) for page in PAGES],
)
def test_a_tutorial_ends_as_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "OPENAI_BASE_URL" not in page.read_text():
        type_blocks(page, tmp_path)
        return
    with FakeOpenAI(answers("Bring the red cup.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        type_blocks(page, tmp_path)


def type_blocks(page: Path, tmp_path: Path) -> None:
    """Write each file and type each command of the page there; what it shows is said."""
    folder = tmp_path
    beside: list[subprocess.Popen[str]] = []  # what was started with & in the block
    for block in BLOCK.finditer(page.read_text()):
        if block["file"]:
            (tmp_path / block["file"]).write_text(block["text"])
        else:
            assert block["kind"] == "console", f"nobody is told where to type: {block['text']}"
            said = ""
            for line in block["text"].splitlines():
                if line.startswith("$ cd "):
                    folder = folder / line.removeprefix("$ cd ")
                elif line.startswith("$ ") and line.endswith(" &"):
                    beside.append(start(line[2:-2], folder))
                elif line.startswith("$ "):
                    said = typed(line.removeprefix("$ "), folder)
                else:
                    assert line in said, f"expected {line!r} in:\n{said}"
    for program in beside:
        said, _ = program.communicate(timeout=PATIENCE_S)
        assert program.returncode == 0, said


def typed(line: str, folder: Path) -> str:
    """What a command says; it ends well."""
    program = start(line, folder)
    try:
        said, _ = program.communicate(timeout=PATIENCE_S)
    finally:
        program.kill()
    assert program.returncode == 0, f"{line}\n{said}"
    return said


def start(line: str, folder: Path) -> subprocess.Popen[str]:
    """A command as it is typed in that folder, with keys of its own."""
    words = shlex.split(line)
    given = dict(word.split("=", 1) for word in takewhile(lambda word: "=" in word, words))
    program, *words = words[len(given) :]
    if (program, words[:1]) == ("polyrhythm", ["new"]):
        argv = ["-c", NEW, *words[1:]]
    else:
        argv = {"polyrhythm": ["-m", "runtime"], "python": []}[program] + words
    quiet = {"PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "-p no:cacheprovider", "POLYRHYTHM_KEYS": str(folder / "keys")}
    return subprocess.Popen(
        [sys.executable, *argv], cwd=folder, env={**os.environ, **quiet, **given},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("stem", "name", "kind", "example"),
    [("study", "waver", "robot", "study"), ("your-scenario", "fair", "scenario", "episode")],
)
def test_an_example_is_what_its_tutorial_ends_with(
    stem: str, name: str, kind: str, example: str, tmp_path: Path
) -> None:
    write_project(tmp_path / name, name, kind)
    for block in BLOCK.finditer((ROOT / "docs" / "tutorials" / f"{stem}.md").read_text()):
        if block["file"]:
            (tmp_path / block["file"]).write_text(block["text"])
    ended, kept = tmp_path / name, ROOT / "examples" / example
    files = {file.relative_to(ended) for file in ended.rglob("*") if file.is_file()} - {Path("README.md")}
    assert {file for file in files if (ended / file).read_bytes() != (kept / file).read_bytes()} == set()


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_tutorial_takes_no_longer_than_it_names(page: Path) -> None:
    """Reading at 100 words and typing at 5 lines a minute, and the time that its commands run."""
    text = page.read_text()
    named = re.search(r"^(\d+) minutes", text, re.MULTILINE)
    assert named is not None
    typed_lines = [line for block in BLOCK.finditer(text) for line in block["text"].splitlines() if line.strip()]
    words = len(BLOCK.sub("", text).split())
    run_s = sum(
        STARTS_S + told_s(line) for line in typed_lines if re.match(r"\$ (?:\w+=\S+ )*(?:polyrhythm|python)", line)
    )
    said = f"{words} words, {len(typed_lines)} typed lines, {run_s:g} s of commands"
    assert words / 100 + len(typed_lines) / 5 + run_s / 60 <= int(named[1]), said


def told_s(line: str) -> float:
    """For how many seconds of real time a command is told to run."""
    told = re.search(r"--for (\d+)", line)
    return float(told[1]) if told is not None and "--virtual" not in line and not line.endswith("&") else 0.0
