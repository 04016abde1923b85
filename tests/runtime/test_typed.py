"""Types reach users: mypy and pyright, strict, check the README's program against the installed wheel."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.wheels import ROOT, build_wheel, install

pytestmark = pytest.mark.processes

IMPORTS = "from runtime import Message, Node, Publisher, Simulation, Subscription, every, on"
MISTAKES = {
    "a message that the publisher does not take": ("publish(Beat(count=self.count))", "publish(self.count)"),
    "a handler of another type than its port": ("def heard(self, beat: Beat)", "def heard(self, beat: str)"),
}


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def program() -> str:
    """The README's node and its test, as one file."""
    node, test = blocks(ROOT / "README.md")[:2]
    first, _, rest = node.partition("\n")
    assert first.startswith("from runtime import"), "the README's program begins with its import"
    return f"{IMPORTS}\n{rest}\n\n{test}"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel."""
    return install(build_wheel(tmp_path_factory.mktemp("dist")), tmp_path_factory.mktemp("typed"))


def mypy(python: Path, file: Path) -> list[str]:
    """What mypy says, as "line: text"."""
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(python), "--no-error-summary"]
    cache = python.parents[1] / "cache"
    ran = subprocess.run(
        [*command, "--cache-dir", str(cache), file.name], cwd=file.parent, capture_output=True, text=True, check=False
    )
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    return re.findall(rf"^{file.name}:(\d+: error: .*)$", ran.stdout, re.MULTILINE)


def pyright(python: Path, file: Path) -> list[str]:
    """What pyright says, as "line: text"; skips the test where its node does not start."""
    checker = str(Path(sys.executable).with_name("basedpyright"))
    try:
        version = subprocess.run([checker, "--version"], capture_output=True, text=True, check=False)
    except OSError as problem:
        pytest.skip(f"basedpyright does not start: {problem}")
    if version.returncode:
        pytest.skip(f"basedpyright's node does not start here: {(version.stderr or version.stdout).strip()[-300:]}")
    (file.parent / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    command = [checker, "--outputjson", "--pythonpath", str(python), file.name]
    ran = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
    found = json.loads(ran.stdout)["generalDiagnostics"]
    return [f"{line['range']['start']['line'] + 1}: {line['message']}" for line in found if line["severity"] == "error"]


@pytest.mark.parametrize("check", [mypy, pyright], ids=["mypy", "pyright"])
def test_the_readmes_program_has_no_type_error(
    python: Path, tmp_path: Path, check: Callable[[Path, Path], list[str]]
) -> None:
    file = tmp_path / "own_hello.py"
    file.write_text(program())
    assert check(python, file) == []


@pytest.mark.parametrize("check", [mypy, pyright], ids=["mypy", "pyright"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_is_found_where_it_is(
    python: Path, tmp_path: Path, check: Callable[[Path, Path], list[str]], mistake: str
) -> None:
    right, wrong = MISTAKES[mistake]
    file = tmp_path / "own_hello.py"
    file.write_text(program().replace(right, wrong))
    (line,) = (number for number, text in enumerate(file.read_text().splitlines(), 1) if wrong in text)
    found = check(python, file)
    assert found
    assert {int(text.partition(":")[0]) for text in found} <= {line - 1, line}  # of a handler: its decorator's line
