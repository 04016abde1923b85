"""Types reach users: mypy and pyright, strict, check programs of users against the installed wheel."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.wheel.wheels import ROOT, build_wheels, install

pytestmark = [pytest.mark.processes, pytest.mark.long]

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


Checker = Callable[[Path, Path], dict[str, list[tuple[int, str]]]]
"""Takes a Python and a folder; gives the errors of each file in it, as line and text."""


def mypy(python: Path, folder: Path) -> dict[str, list[tuple[int, str]]]:
    """What mypy says."""
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(python), "--no-error-summary"]
    cache = python.parents[1] / "cache"
    names = sorted(file.name for file in folder.glob("*.py"))
    ran = subprocess.run(
        [*command, "--cache-dir", str(cache), *names], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    found: dict[str, list[tuple[int, str]]] = {name: [] for name in names}
    for name, line, said in re.findall(r"^(\w+\.py):(\d+): error: (.*)$", ran.stdout, re.MULTILINE):
        found[name].append((int(line), said))
    return found


def pyright(python: Path, folder: Path) -> dict[str, list[tuple[int, str]]]:
    """What pyright says; skips the test where its node does not start."""
    checker = str(Path(sys.executable).with_name("basedpyright"))
    try:
        version = subprocess.run([checker, "--version"], capture_output=True, text=True, check=False)
    except OSError as problem:
        pytest.skip(f"basedpyright does not start: {problem}")
    if version.returncode:
        pytest.skip(f"basedpyright's node does not start here: {(version.stderr or version.stdout).strip()[-300:]}")
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    names = sorted(file.name for file in folder.glob("*.py"))
    command = [checker, "--outputjson", "--pythonpath", str(python), *names]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found: dict[str, list[tuple[int, str]]] = {name: [] for name in names}
    for said in json.loads(ran.stdout)["generalDiagnostics"]:
        if said["severity"] == "error":
            found[Path(said["file"]).name].append((said["range"]["start"]["line"] + 1, said["message"]))
    return found


HANDLERS = ROOT / "tests" / "support" / "wheel" / "typed_handlers.py"
OF_MISTAKES = {mistake: f"mistake_{number}.py" for number, mistake in enumerate(MISTAKES)}


def all_mistakes() -> str:
    """The handlers with all mistakes in them at once."""
    text = HANDLERS.read_text()
    for right, wrong in IN_HANDLERS.values():
        assert text.count(right) == 1, right
        text = text.replace(right, wrong)
    return text


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheels."""
    return install(build_wheels(tmp_path_factory.mktemp("dist")).values(), tmp_path_factory.mktemp("typed"))


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What users might write, side by side: a checker needs seconds to start, and hardly more for one file more."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "own_hello.py").write_text(program())
    for mistake, (right, wrong) in MISTAKES.items():
        assert right in program()
        (folder / OF_MISTAKES[mistake]).write_text(program().replace(right, wrong))
    (folder / "own_handlers.py").write_text(HANDLERS.read_text())
    (folder / "mistakes_in_handlers.py").write_text(all_mistakes())
    return folder


@pytest.fixture(scope="module", params=[mypy, pyright], ids=["mypy", "pyright"])
def errors(request: pytest.FixtureRequest, python: Path, programs: Path) -> dict[str, list[tuple[int, str]]]:
    """What a checker says of each program, in an environment that holds the wheel."""
    check: Checker = request.param
    return check(python, programs)


def test_the_readmes_program_has_no_type_error(errors: dict[str, list[tuple[int, str]]]) -> None:
    assert errors["own_hello.py"] == []


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_is_found_where_it_is(
    errors: dict[str, list[tuple[int, str]]], programs: Path, mistake: str
) -> None:
    file = OF_MISTAKES[mistake]
    wrong = MISTAKES[mistake][1]
    (line,) = (number for number, text in enumerate((programs / file).read_text().splitlines(), 1) if wrong in text)
    lines = {number for number, _ in errors[file]}
    assert lines
    assert lines <= {line - 1, line}  # of a handler: its decorator's line


def test_handlers_services_and_goals_have_no_type_error_and_planted_ones_are_found(
    errors: dict[str, list[tuple[int, str]]],
) -> None:
    assert errors["own_handlers.py"] == []
    lines = {number for number, _ in errors["mistakes_in_handlers.py"]}
    for name, (_, wrong) in IN_HANDLERS.items():
        (line,) = (number for number, one in enumerate(all_mistakes().splitlines(), 1) if wrong in one)
        assert lines & {line - 1, line}, name
