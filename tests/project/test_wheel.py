"""Three wheels carry the whole of it; the runtime's stands alone, and says which of the others brings what it lacks."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Sequence
from email import message_from_bytes
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import runtime
from runtime.extras import EXTRA_OF, PACKAGES
from tests.support.running import eventually
from tests.support.sentences import sentence
from tests.support.wheel.wheels import FOLDERS, ROOT, build_wheels, extras, install, requirements

pytestmark = pytest.mark.processes

OURS = ("runtime", "nodes", "bridges", "polyrhythm")
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
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels, built from this tree, by their names."""
    return build_wheels(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def python(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheels and their dependencies, without extras."""
    return install(wheels.values(), tmp_path_factory.mktemp("core"))


def run(python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program of that environment, started in a folder; -P keeps the folder from being searched first."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "OPENAI"))}
    return subprocess.run(
        [python, "-P", *arguments], cwd=folder, env=clean, capture_output=True, text=True, timeout=60, check=False
    )


CARRIES = {"polyrhythm": ("runtime", "polyrhythm"), "polyrhythm-nodes": ("nodes",), "polyrhythm-bridges": ("bridges",)}


@pytest.mark.parametrize("name", CARRIES)
def test_a_wheel_carries_its_packages_with_types_and_the_licence_and_nothing_else(
    wheels: dict[str, Path], name: str
) -> None:
    names = zipfile.ZipFile(wheels[name]).namelist()
    top = {name.partition("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == set(CARRIES[name])
    for folder in CARRIES[name]:
        assert f"{folder}/py.typed" in names
        besides = {ROOT / folder / "pyproject.toml", ROOT / folder / "LICENSE"}  # what the wheel is built by
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                assert (str(file.relative_to(ROOT)) in names) == (file not in besides), file
    (licence,) = (name for name in names if name.endswith(".dist-info/licenses/LICENSE"))
    assert zipfile.ZipFile(wheels[name]).read(licence) == (ROOT / "LICENSE").read_bytes()


SAID = re.compile(rb"(?i)copyright|SPDX-License-Identifier|public domain")


@pytest.mark.parametrize(
    ("name", "licence", "told"),
    [
        ("polyrhythm", "Apache-2.0", {}),
        (
            "polyrhythm-nodes", "Apache-2.0 AND CC0-1.0 AND LicenseRef-scancode-wordnet",
            {"vlm/room/derived_words.toml": b"Copyright 2011 by Princeton University"},
        ),
        (
            "polyrhythm-bridges", "Apache-2.0 AND BSD-3-Clause AND LicenseRef-scancode-public-domain",
            {
                "web/questionnaire/scales/nasa-tlx.toml": b"public domain",
                "web/static/vendor/lit-html.md": b"BSD 3-Clause",
            },
        ),
    ],
)  # fmt: skip
def test_a_wheel_names_the_licences_of_what_others_made_and_it_carries(
    wheels: dict[str, Path], name: str, licence: str, told: dict[str, bytes]
) -> None:
    wheel = zipfile.ZipFile(wheels[name])
    info = next(one.partition("/")[0] for one in wheel.namelist() if ".dist-info/" in one)
    metadata = message_from_bytes(wheel.read(f"{info}/METADATA"))
    assert metadata["License-Expression"] == licence
    assert metadata.get_all("License-File") == ["LICENSE", *told]
    for file, words in told.items():
        assert words in wheel.read(f"{info}/licenses/{file}")
    speak = {one for one in wheel.namelist() if not one.startswith(info) and SAID.search(wheel.read(one))}
    named = {f"{folder}/{Path(file).with_suffix('')}" for folder in CARRIES[name] for file in told}
    assert {one for one in speak if str(Path(one).with_suffix("")) not in named} == set(), (
        "say 'Third party: ...' there"
    )


def test_launch_files_come_with_the_nodes(wheels: dict[str, Path]) -> None:
    names = zipfile.ZipFile(wheels["polyrhythm-nodes"]).namelist()
    shipped = {f"nodes/launch_files/{file.name}" for file in (ROOT / "launch").glob("*.toml")}
    assert {name for name in names if "launch_files/" in name} == shipped


def test_whatever_asks_for_a_package_of_ours_asks_for_a_version_that_no_index_takes(wheels: dict[str, Path]) -> None:
    version = Version(runtime.__version__)
    assert version.local, "without a local label anybody may upload it"
    exact = {f"{name}=={version}" for name in FOLDERS}
    for name, wheel in wheels.items():
        asked = [line for line in requirements(wheel) if Requirement(line).name in FOLDERS]
        pinned = {line for line in asked if line in exact}
        named = {Requirement(line).name for line in asked}
        assert named - {name} == {Requirement(line).name for line in pinned}, (name, asked)
    for project in [*(ROOT / "examples").glob("*/pyproject.toml")]:
        assert {*tomllib.loads(project.read_text())["project"]["dependencies"]} <= exact


def test_the_nodes_alone_refuse_where_an_index_has_a_strangers_package_of_our_name(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    for name in FOLDERS:
        for version in (Version(runtime.__version__).public, "99.0"):
            stranger(tmp_path, name, version)
    for library in ("mcap", "rich", "zstandard"):  # what the nodes ask for besides is there
        stranger(tmp_path, library, "99.0" if library == "rich" else "1.9")

    def installed(*folders: str, more: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        offline = ["--no-index", "--find-links", str(tmp_path), "--no-build-isolation"]
        command = [sys.executable, "-m", "pip", "install", "--dry-run", *more, *offline, *folders]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    alone = installed("./nodes", more=["--ignore-installed"])
    assert alone.returncode == 1, alone.stdout
    assert sentence("project.none_of_ours", version=runtime.__version__) in alone.stderr
    together = installed(str(wheels["polyrhythm"]), f"{wheels['polyrhythm-nodes']}[demo]")
    assert together.returncode == 0, together.stderr
    (would,) = (line for line in together.stdout.splitlines() if line.startswith("Would install"))
    version = runtime.__version__
    assert would == f"Would install polyrhythm-{version} polyrhythm-nodes-{version}"


def stranger(folder: Path, name: str, version: str) -> None:
    """A wheel of that name that is not ours."""
    stem = f"{name.replace('-', '_')}-{version}"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as file:
        told = {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            "WHEEL": "Wheel-Version: 1.0\nGenerator: stranger\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "RECORD": "",
        }
        for part, text in told.items():
            file.writestr(f"{stem}.dist-info/{part}", text)


def test_hello_runs_from_any_folder_with_the_wheel_and_no_extra(python: Path, tmp_path: Path) -> None:
    ran = run(python, tmp_path, "-c", PROGRAM, "run", "hello", "--for", "1")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[0].startswith(str(python.parents[1]))
    assert "listener: heard beat 41" in ran.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_runtime_alone_checks_tests_runs_and_echoes_what_the_readme_writes(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    python = install([wheels["polyrhythm"]], tmp_path / "alone")
    project = tmp_path / "project"
    project.mkdir()
    classes, checked = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (project / "mine.py").write_text(classes)
    (project / "test_mine.py").write_text(f"from mine import Talker\nfrom runtime import Simulation\n\n{checked}")
    launch = (ROOT / "launch" / "hello.toml").read_text().replace("nodes.hello:", "mine:")
    (project / "mine.toml").write_text(f'{launch}\n[run]\nbeside = "view"\n')  # a bridge's: it goes without

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
            it = ("--run", str(running.pid))
            eventually(lambda: "beat" in run(python, project, "-c", PROGRAM, "topics", *it).stdout, "it runs")
            assert "count" in did("echo", "beat", "--count", "1", *it)
        finally:
            running.send_signal(signal.SIGINT)
        ran = running.communicate(timeout=20)[0]
    nodes, more = sentence("project.needs_nodes"), sentence("project.more_comes")
    assert "heard beat 41" in ran
    assert more in ran
    assert nodes in did("run", "mine.toml", "--record", "mine.mcap", code=2)
    assert nodes in did("guard", "estop", code=2)
    for asked in (("replay", "mine.mcap"), ("record", "mine.mcap"), ("run", "laptop")):
        assert more in did(*asked, code=2)
    (project / "two.toml").write_text(f"{launch}\n[hosts.robot]\naddress = '127.0.0.1'\n[hosts.desk]\n")
    did("check", "two.toml")
    assert more in did("run", "two.toml", "--host", "robot", code=2)
    for module in ("polyrhythm.msgs", "polyrhythm.gym"):
        lacks = run(python, project, "-c", f"import {module}")
        assert lacks.stderr.splitlines()[-1] == f"ModuleNotFoundError: {module} cannot be imported: {nodes}"
    told = did("--help")
    assert more in told
    assert not re.search(r"robot|guard|joint|e-?stop", told)


def test_without_extras_every_shipped_launch_file_is_checked_or_told_what_to_install(
    python: Path, tmp_path: Path
) -> None:
    files = sorted(file.stem for file in (ROOT / "launch").glob("*.toml"))
    ran = run(python, tmp_path, "-c", CHECK_ALL, *files)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    said: dict[str, tuple[int, str]] = json.loads(ran.stdout)
    assert said["hello"][0] == 0
    assert said["laptop"][0] == 2
    assert "pip install './nodes[sim]'" in said["laptop"][1]
    assert said["sotopia-chat"][0] == 2
    assert "pip install './bridges[console]'" in said["sotopia-chat"][1]
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
    assert "pip install './nodes[report]'" in drawn.stderr
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
    named = {name for folder in OURS for file in (ROOT / folder).rglob("*.py") for name in imported(file)}
    core = {"argcomplete", "mcap", "msgpack", "msgspec", "numpy", "packaging", "rich", "zmq", "zstandard"}
    in_tests = {"hypothesis", "pytest"}
    elsewhere = {"sotopia", "litellm"}  # extract_package_prompts.py runs in an environment of the user's that has them
    elsewhere |= {"lerobot", "draccus", "grpc", "safetensors"}  # so does LeRobot's own Python, for its sides
    assert named - set(sys.stdlib_module_names) - set(OURS) - core - in_tests - elsewhere <= set(EXTRA_OF)


def test_the_extra_that_is_named_brings_the_library(wheels: dict[str, Path]) -> None:
    named = {name: extras(wheels[name]) for name in PACKAGES.values()}
    brought = {
        f"{folder}[{extra}]": brings for folder, name in PACKAGES.items() for extra, brings in named[name].items()
    }
    providers = packages_distributions()
    for library, extra in EXTRA_OF.items():
        if library in providers and library not in PACKAGES:  # what is not installed here is not looked at
            assert {canonicalize_name(provider) for provider in providers[library]} & brought[extra], (library, extra)


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


def test_one_version_stands_wherever_one_does() -> None:
    """A release changes pyproject.toml, and then what this names."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    public = version.partition("+")[0]
    assert f"\nversion: {public}\n" in (ROOT / "CITATION.cff").read_text()
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1].rstrip(",") == public
    asked = {
        found
        for file in (ROOT / "examples").rglob("pyproject.toml")
        for found in re.findall(r"polyrhythm[a-z-]*==([^\"]+)", file.read_text())
    }
    assert asked == {version}
