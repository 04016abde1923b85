"""`polyrhythm new`: what it makes fits, is typed and passes its own test; what would hide something is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodes.scaffold.command import KINDS, PLAIN, TEMPLATES, main
from tests.support.sentences import sentence

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What mypy remembers from one kind to the next."""
    return tmp_path_factory.mktemp("mypy")


@pytest.mark.processes
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind == PLAIN else [pytest.mark.long]) for kind in KINDS]
)
def test_what_is_made_fits_is_typed_and_passes_its_own_test(
    kind: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["fetch_bot", "--with", kind]) == 0
    assert "cd fetch_bot" in capsys.readouterr().out
    folder = tmp_path / "fetch_bot"
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert {"README.md", "pyproject.toml", "fetch_bot.toml", "test_fetch_bot.py", "__init__.py"} <= {
        file.name for file in files
    }
    for file in files:
        assert "my_robot" not in file.read_text() + str(file.relative_to(folder)), file
        assert "MyRobot" not in file.read_text(), file
    assert sentence("runtime.all_of_it_fits") in ran(folder, "runtime", "check", "fetch_bot.toml")
    assert "Success" in ran(folder, "mypy", "--cache-dir", str(cache))
    assert "passed" in ran(folder, "pytest", "-q", "-p", "no:cacheprovider")


def ran(folder: Path, *words: str) -> str:
    """What `python -m` says there; it ends well."""
    path = {"PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, env={**os.environ, **path},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_kind_has_templates_and_every_template_a_kind() -> None:
    assert {folder.name for folder in TEMPLATES.iterdir()} == {"common", *KINDS}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nodes", sentence("scaffold.hides_ours", name="nodes")),
        ("polyrhythm", sentence("scaffold.hides_ours", name="polyrhythm")),
        ("json", sentence("scaffold.hides_pythons", name="json")),
        ("numpy", sentence("scaffold.hides_an_installed", name="numpy")),
        ("class", sentence("scaffold.is_a_keyword", name="class")),
        ("match", sentence("scaffold.is_a_keyword", name="match")),
        ("list", sentence("scaffold.hides_a_builtin", name="list")),
        ("none", sentence("scaffold.class_is_taken", name="none", cls="None")),
        ("driver", sentence("scaffold.class_is_taken", name="driver", cls="Driver")),
        ("../x", sentence("scaffold.no_package_name", name="../x")),
    ],
)
def test_a_name_that_would_hide_a_package_is_refused(
    name: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([name, "--with", "robot"]) == 2
    assert capsys.readouterr().err == f"polyrhythm new: {why}\n"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    assert main(["mine"]) == 2
    assert sentence("scaffold.is_there_already", name="mine") in capsys.readouterr().err
    assert list((tmp_path / "mine").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert main(["mine"]) == 2
    why = sentence("scaffold.cannot_be_written", name="mine", why="Permission denied")
    assert capsys.readouterr().err == f"polyrhythm new: {why}\n"
