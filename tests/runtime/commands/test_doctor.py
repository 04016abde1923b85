"""The doctor names what is missing, where it is missing, and fails only where something will not work."""

from __future__ import annotations

import importlib.util
import json
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from runtime.cli import main
from runtime.commands.doctor import examine_launch
from runtime.launch.file import find
from runtime.supervision.diagnostics import Finding, as_lines, compare, examine, spelled_out
from tests.support.sentences import sentence


def test_packages_are_held_against_what_is_needed() -> None:
    installed = {"good": "1.5", "old": "0.9"}
    needed = ["good>=1.2,<2", "old>=1", "gone", "elsewhere>=1; sys_platform == 'beos'", "extra>=1; extra == 'gpu'"]
    problems, there = compare(needed, installed.get)
    assert problems == ["old is 0.9; old>=1 is needed", "gone is not installed; gone is needed"]
    assert there == ["good 1.5"]


def test_an_extra_is_looked_at_with_those_that_it_includes() -> None:
    extras = {
        "nodes[sim]": ["physics>=4", "polyrhythm-nodes[camera]"],
        "nodes[camera]": ["eyes>=1"],
        "bridges[all]": ["polyrhythm-nodes[sim,camera]", "web"],
    }
    assert spelled_out("nodes[sim]", extras) == ["physics>=4", "eyes>=1"]
    assert spelled_out("bridges[all]", extras) == ["eyes>=1", "physics>=4", "eyes>=1", "web"]


@pytest.mark.processes
def test_every_subject_is_looked_at_and_this_machine_can_run_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "hello", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] is True
    subjects = {finding["subject"] for finding in answer["findings"]}
    assert subjects >= {"python", "packages", "opengl", "realtime", "cores", "shared memory", "disk", "clock", "runs"}
    assert subjects >= {"mosquitto", "chromium", "launch file"}


def test_a_launch_file_lacks_what_each_of_its_nodes_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_VARIABLE", raising=False)
    file = tmp_path / "a.toml"
    file.write_text(
        """
        [nodes.one]
        use = "no_such_package:Node"

        [nodes.two]
        use = "nodes.hello:Talker"
        params = { start = "${NO_SUCH_VARIABLE}" }

        [nodes.three]
        use = "nodes.hello:Listener"
        """
    )
    one, two = examine_launch(file)
    assert "there is no module 'no_such_package'" in one.text
    assert sentence("runtime.variable_is_not_set", variable="NO_SUCH_VARIABLE") in two.text
    assert {one.level, two.level} == {"problem"}


def test_what_a_node_checks_itself_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    launch = Path(__file__).parents[3] / "launch" / "laptop.toml"
    findings = examine_launch(launch, ["planner.use=nodes.planner.openai_api:OpenAIPlanner"])
    assert [(finding.subject, finding.level) for finding in findings] == [("planner", "problem")]
    assert "OPENAI_API_KEY" in findings[0].text


def test_a_problem_makes_the_exit_code_one_and_is_easy_to_see(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("runtime.commands.doctor.examine", lambda: [Finding("disk", "problem", "no room")])
    assert main(["doctor"]) == 1
    assert "PROBLEM  disk           no room\n1 problem\n" in capsys.readouterr().out
    assert as_lines([Finding("cores", "note", "1")]).startswith("note ")
    assert main(["doctor", "no_such_launch"]) == 2


def test_nothing_that_the_machine_refuses_raises() -> None:
    assert {finding.level for finding in examine()} <= {"ok", "note", "problem"}


def test_what_examines_no_robot_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("os:getcwd", "os:getpid"):
        assert main(["doctor", "--device", name]) == 2
        assert sentence("runtime.examines_nothing") in capsys.readouterr().err


def test_a_robot_s_finding_of_no_known_level_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    swapped = [Finding("ok", "battery", "12.4 V")]  # type: ignore[arg-type]
    monkeypatch.setattr("runtime.supervision.diagnostics.examine", lambda: swapped)
    assert main(["doctor", "--device", "runtime.supervision.diagnostics:examine"]) == 2
    assert "expected a function that returns findings (Invalid enum value 'battery'" in capsys.readouterr().err


def test_a_library_that_a_node_would_miss_once_it_runs_is_told_before(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def nothing_of_a_robot(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name in ("stretch_body", "pyrealsense2") else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", nothing_of_a_robot)
    for name in ("OPENAI_API_KEY", "VLM_MODEL", "VLM_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/v1")
    lacking = {(one.subject, one.level) for one in examine_launch(find("stretch"))}
    assert lacking == {(name, "problem") for name in ("driver", "head_camera", "wrist_camera")}


def test_who_wants_to_talk_is_told_what_is_missing_and_the_command_that_brings_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = importlib.util.find_spec

    def bare(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "faster_whisper" else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", bare)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("SPEECH_API_KEY", "SPEECH_BASE_URL", "SPEECH_MODEL"):
        monkeypatch.delenv(name, raising=False)
    lacking = {one.subject: one.text for one in examine_launch(find("voice")) if one.level == "problem"}
    assert sentence("runtime.install_models") in lacking["words"]
    assert sentence("runtime.install_espeak") in lacking["mouth"]
