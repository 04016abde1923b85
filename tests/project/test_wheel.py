"""The wheel carries the whole of it; alone it brings the bus, and says which extra brings the rest."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from runtime.extras import EXTRA_OF
from tests.support.running import eventually
from tests.support.sentences import sentence
from tests.support.wheel.wheels import ROOT, build_wheel, extras, install

pytestmark = pytest.mark.processes

PACKAGES = ("runtime", "nodes", "bridges", "polyrhythm")
PROGRAM = (
    "import sys; from runtime.cli import main; print(sys.modules['runtime'].__file__); sys.exit(main(sys.argv[1:]))"
)
IMPORT_ALL = """
import importlib, json, pkgutil
from runtime.extras import lacking

unknown = {}
for package in ("runtime", "nodes", "bridges", "polyrhythm"):
    path = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(path, package + ".", onerror=lambda _: None):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError as problem:
                if lacking(problem) is None:
                    unknown[module.name] = str(problem)
print(json.dumps(unknown))
"""
CHECK_ALL = """
import contextlib, io, json, sys
from runtime.cli import main

said = {}
for name in sys.argv[1:]:
    words = io.StringIO()
    with contextlib.redirect_stdout(words), contextlib.redirect_stderr(words):
        code = main(["check", name])
    said[name] = [code, words.getvalue()]
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this tree."""
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel and its dependencies, without extras."""
    return install(wheel, tmp_path_factory.mktemp("core"))


def run(python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program of that environment, started in a folder; -P keeps the folder from being searched first."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "OPENAI"))}
    return subprocess.run(
        [python, "-P", *arguments], cwd=folder, env=clean, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_wheel_carries_code_launch_files_types_the_licence_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.partition("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == set(PACKAGES)
    shipped = {f"runtime/launch_files/{file.name}" for file in (ROOT / "launch").glob("*.toml")}
    assert {name for name in names if name.startswith("runtime/launch_files/")} == shipped
    for folder in PACKAGES:
        assert f"{folder}/py.typed" in names
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                assert str(file.relative_to(ROOT)) in names
    (licence,) = (name for name in names if name.endswith(".dist-info/licenses/LICENSE"))
    assert zipfile.ZipFile(wheel).read(licence) == (ROOT / "LICENSE").read_bytes()


def test_hello_runs_from_any_folder_with_the_wheel_and_no_extra(python: Path, tmp_path: Path) -> None:
    ran = run(python, tmp_path, "-c", PROGRAM, "run", "hello", "--for", "1")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[0].startswith(str(python.parents[1]))
    assert "listener: heard beat 41" in ran.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_runtime_alone_checks_tests_runs_and_echoes_what_the_readme_writes(wheel: Path, tmp_path: Path) -> None:
    python = install(wheel, tmp_path / "alone", only=("runtime", "polyrhythm"))
    project = tmp_path / "project"
    project.mkdir()
    classes, checked = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (project / "mine.py").write_text(classes)
    (project / "test_mine.py").write_text(f"from mine import Talker\nfrom runtime import Simulation\n\n{checked}")
    launch = (ROOT / "launch" / "hello.toml").read_text().replace("nodes.hello:", "mine:")
    (project / "mine.toml").write_text(launch)

    def did(*words: str, code: int = 0) -> str:
        ran = run(python, project, "-c", PROGRAM, *words)
        assert ran.returncode == code, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr

    did("check", "mine.toml")
    test = "import sys; sys.path.append('.'); import test_mine; test_mine.test_talker_counts_twice_a_second()"
    assert run(python, project, "-c", test).returncode == 0
    command = [str(python), "-P", "-c", PROGRAM, "run", "mine.toml", "--for", "30"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True) as running:
        try:
            eventually(lambda: "beat" in run(python, project, "-c", PROGRAM, "topics").stdout, "it runs")
            assert "count" in did("echo", "beat", "--count", "1")
        finally:
            running.send_signal(signal.SIGINT)
        assert "heard beat 41" in str(running.communicate(timeout=20)[0])
    assert sentence("robot.no_module", name="nodes") in did("run", "mine.toml", "--record", "mine.mcap", code=2)
    assert not re.search(r"guard|joint|e-?stop", did("--help"))


def test_without_extras_every_shipped_launch_file_is_checked_or_told_what_to_install(
    python: Path, tmp_path: Path
) -> None:
    files = sorted(file.stem for file in (ROOT / "launch").glob("*.toml"))
    ran = run(python, tmp_path, "-c", CHECK_ALL, *files)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    said: dict[str, tuple[int, str]] = json.loads(ran.stdout)
    assert said["hello"][0] == 0
    assert said["laptop"][0] == 2
    assert "pip install 'polyrhythm[sim]'" in said["laptop"][1]
    assert said["sotopia-chat"][0] == 2
    assert "pip install 'polyrhythm[console]'" in said["sotopia-chat"][1]
    assert not [name for name, (_, words) in said.items() if "Traceback" in words]


def test_a_run_without_images_is_recorded_and_reported_without_extras(python: Path, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        f"{(ROOT / 'launch' / 'hello.toml').read_text()}\n"
        '[nodes.recorder]\nuse = "nodes.recording.recorder:Recorder"\nparams = { path = "own.mcap" }\n'
    )
    ran = run(python, tmp_path, "-c", PROGRAM, "run", "own.toml", "--virtual", "--for", "10")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    told = run(python, tmp_path, "-c", PROGRAM, "bag", "info", "own.mcap")
    assert "beat" in told.stdout, told.stdout + told.stderr
    drawn = run(python, tmp_path, "-c", PROGRAM, "report", "own.mcap")
    assert drawn.returncode == 2, drawn.stdout + drawn.stderr
    assert "pip install 'polyrhythm[report]'" in drawn.stderr
    assert "Traceback" not in drawn.stderr


def test_whatever_module_cannot_be_imported_without_extras_names_the_extra(python: Path, tmp_path: Path) -> None:
    ran = run(python, tmp_path, "-c", IMPORT_ALL)
    assert ran.returncode == 0, ran.stderr
    unknown = json.loads(ran.stdout)
    for_tests = {name for name, problem in unknown.items() if "'pytest'" in problem}
    for_lerobot = {
        "nodes.policy.onnx.lerobot_side.gateway"
    }  # a program for LeRobot's own Python; nothing of ours imports it
    assert set(unknown) - for_tests - for_lerobot == set(), unknown


def imported(file: Path) -> set[str]:
    """The packages that a file imports anywhere, first words only."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def test_every_library_that_is_imported_anywhere_is_of_the_core_or_has_an_extra() -> None:
    named = {name for folder in PACKAGES for file in (ROOT / folder).rglob("*.py") for name in imported(file)}
    core = {"argcomplete", "mcap", "msgpack", "msgspec", "numpy", "packaging", "rich", "zmq", "zstandard"}
    in_tests = {"hypothesis", "pytest"}
    elsewhere = {"sotopia", "litellm"}  # extract_package_prompts.py runs in an environment of the user's that has them
    elsewhere |= {"lerobot", "draccus", "grpc", "safetensors"}  # so does LeRobot's own Python, for its sides
    assert named - set(sys.stdlib_module_names) - set(PACKAGES) - core - in_tests - elsewhere <= set(EXTRA_OF)


def test_the_extra_that_is_named_brings_the_library(wheel: Path) -> None:
    named, providers = extras(wheel), packages_distributions()
    for library, extra in EXTRA_OF.items():
        if library in providers:  # what is not installed here, such as a robot's, is not looked at
            assert {canonicalize_name(provider) for provider in providers[library]} & named[extra], (library, extra)


def test_polyrhythm_gives_out_the_names_of_runtime(python: Path, tmp_path: Path) -> None:
    program = (
        "import polyrhythm, polyrhythm.msgs, runtime, nodes.msgs\n"
        "for thin, whole in ((polyrhythm, runtime), (polyrhythm.msgs, nodes.msgs)):\n"
        "    assert all(getattr(thin, name) is getattr(whole, name) for name in whole.__all__)\n"
        "assert polyrhythm.__version__ == runtime.__version__\n"
    )
    ran = run(python, tmp_path, "-c", program)
    assert ran.returncode == 0, ran.stderr


def test_polyrhythm_names_the_file_that_hides_its_runtime(python: Path, tmp_path: Path) -> None:
    (tmp_path / "runtime.py").write_text("")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import polyrhythm"
    ran = run(python, tmp_path, "-c", program)
    assert ran.returncode == 1
    assert sentence("project.hides_our_package", file=tmp_path / "runtime.py") in ran.stderr
