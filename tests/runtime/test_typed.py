"""Types reach users: mypy and pyright, strict, check programs of users against the installed wheel."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.wheel.wheels import ROOT, build_wheel, install

pytestmark = pytest.mark.processes

IMPORTS = "from runtime import Message, Node, Publisher, Simulation, Subscription, every, on"
MISTAKES = {
    "a message that the publisher does not take": ("publish(Beat(count=self.count))", "publish(self.count)"),
    "a handler of another type than its port": ("def heard(self, beat: Beat)", "def heard(self, beat: str)"),
}

IN_HANDLERS = {
    "a handler of envelopes of another type": ("press: Stamped[Press]", "press: Stamped[Level]"),
    "a handler of two ports that takes one type": ("message: Press | Level", "message: Press"),
    "a handler of two ports that takes envelopes of one type": (
        "message: Stamped[Press | Level]",
        "message: Stamped[Press]",
    ),
    "a field of the envelope's message that is none": ("press.message.count)", "press.message.counts)"),
    "a service that answers with another type": ("return Sum(total=question.a + question.b)", "return question"),
    "a question of another type": ("self.add.call(Question(a=1, b=2))", "self.add.call(Sum(total=1))"),
    "a field of the answer that is none": ("answer.total)", "answer.totals)"),
    "feedback of another type": ("goal.feedback(Progress(left_m=goal.goal.x_m))", "goal.feedback(Arrived(x_m=1.0))"),
    "a field of the result that is none": ("arrived.x_m, self", "arrived.left_m, self"),
}
"""In `tests/support/wheel/typed_handlers.py`."""


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
    assert_found(python, tmp_path / "own_hello.py", program().replace(right, wrong), wrong, check)


@pytest.mark.parametrize("check", [mypy, pyright], ids=["mypy", "pyright"])
def test_handlers_services_and_goals_have_no_type_error_and_planted_ones_are_found(
    python: Path, tmp_path: Path, check: Callable[[Path, Path], list[str]]
) -> None:
    text = (ROOT / "tests" / "support" / "wheel" / "typed_handlers.py").read_text()
    file = tmp_path / "own_handlers.py"
    file.write_text(text)
    assert check(python, file) == []
    for right, wrong in IN_HANDLERS.values():
        assert text.count(right) == 1, right
        text = text.replace(right, wrong)
    file.write_text(text)  # all at once: a checker takes a second each time
    lines = {int(found.partition(":")[0]) for found in check(python, file)}
    for name, (_, wrong) in IN_HANDLERS.items():
        (line,) = (number for number, one in enumerate(text.splitlines(), 1) if wrong in one)
        assert lines & {line - 1, line}, name


def assert_found(python: Path, file: Path, text: str, wrong: str, check: Callable[[Path, Path], list[str]]) -> None:
    file.write_text(text)
    (line,) = (number for number, text in enumerate(file.read_text().splitlines(), 1) if wrong in text)
    found = check(python, file)
    assert found
    assert {int(text.partition(":")[0]) for text in found} <= {line - 1, line}  # of a handler: its decorator's line
