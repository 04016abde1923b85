"""Whose pages cannot be served here is known before anything starts: by `check`, by `run`, and by `doctor`."""

from __future__ import annotations

import hashlib
import importlib.util
import re
from importlib.machinery import ModuleSpec

import pytest

from bridges.web.http.server import STATIC
from runtime.cli import main
from tests.support.sentences import sentence

find_spec = importlib.util.find_spec


@pytest.fixture(params=["uvicorn", "starlette"])
def missing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A library that is not installed."""

    def found(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == request.param else find_spec(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", found)
    return str(request.param)


@pytest.mark.parametrize(("graph", "node"), [("wizard", "console"), ("study", "study"), ("sotopia-chat", "buyer")])
def test_a_page_without_its_libraries_is_refused_before_the_start(
    graph: str, node: str, missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", graph]) == 2
    refused = capsys.readouterr().err
    assert refused.endswith(f"[nodes.{node}] it needs {missing}: {sentence('bridges.install_console')} [P013]\n")


def test_doctor_calls_it_a_problem(missing: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "wizard"]) == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("PROBLEM")]
    assert any("console" in line and f"it needs {missing}" in line for line in lines)


def test_the_library_that_is_shipped_is_the_one_that_its_page_names() -> None:
    vendor = STATIC / "vendor"
    told = (vendor / "lit-html.md").read_text()
    shipped = (vendor / "lit-html.js").read_bytes()
    assert hashlib.sha256(shipped).hexdigest() in told
    ((version, licence),) = re.findall(r"^Third party: pkg:npm/lit-html@(\S+) \((.+)\)$", told, re.MULTILINE)
    assert f'litHtmlVersions??=[]).push("{version}")'.encode() in shipped
    assert f"SPDX-License-Identifier: {licence}\n".encode() in shipped
    assert "BSD 3-Clause" in told
