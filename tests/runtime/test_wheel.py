"""The wheel carries the whole of it, and `polyrhythm` works from any folder with the wheel alone."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this tree."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (file,) = folder.glob("polyrhythm-*.whl")
    return file


def test_the_wheel_carries_code_launch_files_and_data_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.partition("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"runtime", "nodes", "bridges"}
    shipped = {f"runtime/launch_files/{file.name}" for file in (ROOT / "launch").glob("*.toml")}
    assert {name for name in names if name.startswith("runtime/launch_files/")} == shipped
    for folder in ("runtime", "nodes", "bridges"):
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                assert str(file.relative_to(ROOT)) in names


def test_hello_runs_from_any_folder_with_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    zipfile.ZipFile(wheel).extractall(site)
    # A folder called `runtime` in the way of ours would be found first by `python -m`; -P keeps the folder out.
    program = (
        "import sys; from runtime.cli import main; print(sys.modules['runtime'].__file__); sys.exit(main(sys.argv[1:]))"
    )
    run = subprocess.run(
        [sys.executable, "-P", "-c", program, "run", "hello", "--for", "1"],
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[0] == str(site / "runtime" / "__init__.py")
    assert "listener: heard beat 41" in run.stdout
    assert list(elsewhere.iterdir()) == []
