"""Rounds of generate, play, filter, train, serve, evaluate and compare: whole, and killed at any moment."""

from __future__ import annotations

import json
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from nodes.episodes.command import main
from nodes.episodes.learning.rounds import Rounds, comparison_text
from nodes.episodes.results.store import Store
from tests.support.killing import run_killed
from tests.support.ports import free_ports
from tests.support.sentences import sentence

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[4]
COMMAND = [sys.executable, "-c", "import sys; from nodes.episodes.command import main; sys.exit(main(sys.argv[1:]))"]
POLICY = ROOT / "tests" / "support" / "models" / "tiny_policy.py"


def rounds_file(folder: Path, port: int, **more: Any) -> Path:
    """A file of two rounds with a policy that trains in no time."""
    folder.mkdir(parents=True, exist_ok=True)
    keys = {
        "folder": str(folder / "pi"),
        "prompts": str(ROOT / "examples" / "social_learning" / "prompts.csv"),
        "base": "nothing",
        "train": f"{{python}} {POLICY} train {{data}} {{base}} {{model}}",
        "serve": f"{{python}} {POLICY} serve {{model}} {{port}}",
        "port": port,
        "tasks": 3,
        "casts": 3,
        "turns": 6,
        "data_prompts": "small",
        "evaluation_tasks": ["cello-with-a-crack", "van-with-a-cough"],
        **more,
    }
    table = "\n".join(f"{key} = {json.dumps(value)}" for key, value in keys.items())
    path = folder / "pi.toml"
    path.write_text(
        f"[rounds]\n{table}\n\n"
        '[[round]]\nname = "bc"\nfilter = "bc"\nplayers = ["{expert},{expert}"]\n\n'
        '[[round]]\nname = "sr"\nfilter = "sr"\nplayers = ["{policy},{expert}"]\nlearn_from = "{policy}"\n'
    )
    return path


def found_in(folder: Path) -> dict[str, Any]:
    """All that must be the same however often it was killed: answers, data, models, figures."""
    answers = {}
    for path in sorted(folder.glob("*/*.sqlite")):
        with Store.read(path) as store:
            answers[str(path.relative_to(folder))] = [
                (row.id, row.state, store.calls(row.id), store.turns(row.id)) for row in store.episodes()
            ]
    comparison = json.loads((folder / "comparison.json").read_text())
    return {
        "answers": answers,
        "data": [path.read_text() for path in sorted(folder.glob("*/data/*.jsonl"))],
        "tasks": [path.read_text() for path in sorted(folder.glob("*/tasks/*.jsonl"))],
        "models": [path.read_text() for path in sorted(folder.glob("*/model/model.json"))],
        "means": comparison["means"],
        "to_base": comparison["to_base"],
    }


@pytest.mark.long
def test_killed_at_twenty_random_moments_the_rounds_lose_and_repeat_nothing(tmp_path: Path) -> None:
    port, asked, jobs = free_ports(1), tmp_path / "asked", 2
    serve = f"{{python}} {POLICY} serve {{model}} {{port}} {asked}"

    def begin(name: str) -> Path:
        asked.unlink(missing_ok=True)
        return rounds_file(tmp_path / name, port, serve=serve, jobs=jobs)

    path = begin("whole")
    began = time.monotonic()
    assert subprocess.run([*COMMAND, "rounds", str(path)], check=False).returncode == 0
    whole_s = time.monotonic() - began
    whole, count = found_in(path.with_name("pi")), asked.stat().st_size
    assert count == sum(len(calls) for run in whole["answers"].values() for _, _, calls, _ in run)
    chance, hits, moments = random.Random(0), 0, set()
    while hits < 20:
        path = begin("killed")
        folder = path.with_name("pi")
        hit = run_killed(
            lambda path=path: [*COMMAND, "rounds", str(path)], chance, whole_s, 20 - hits,  # type: ignore[misc]
            note=lambda folder=folder: moments.add(len([*folder.glob("*/*.json")])),  # type: ignore[misc]
        )  # fmt: skip
        assert found_in(folder) == whole
        assert asked.stat().st_size - count <= hit * jobs, "only what was under way at a kill is asked for again"
        shutil.rmtree(path.parent)
        hits += hit
    assert len(moments) >= 4, f"the kills hit few of 11 steps: {moments}"


@pytest.mark.long
def test_a_policy_that_learned_to_offer_is_compared_with_its_base(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = rounds_file(tmp_path, free_ports(1))
    assert main(["rounds", str(path), "--json"]) == 0
    comparison = json.loads(capsys.readouterr().out)
    assert list(comparison["means"]) == ["base", "bc", "sr"]
    assert comparison["to_base"]["bc"]["GOAL"]["pairs"] == 4  # two tasks, both seats
    assert "  - base" in comparison_text(comparison)
    models = [json.loads((tmp_path / "pi" / name / "model" / "model.json").read_text()) for name in ("bc", "sr")]
    assert 0 < models[0] < models[1]  # the second round went on from the first
    began = time.monotonic()
    assert main(["rounds", str(path), "--json"]) == 0  # all is done: nothing is played again
    assert json.loads(capsys.readouterr().out) == comparison
    assert time.monotonic() - began < 60


@pytest.mark.long
def test_a_round_begins_with_the_model_that_it_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = rounds_file(tmp_path, free_ports(1))
    path.write_text(path.read_text() + 'begin_with = "base"\n')
    assert main(["rounds", str(path)]) == 0
    bc, sr = (tmp_path / "pi" / name for name in ("bc", "sr"))
    pairs = len((sr / "data" / "train.jsonl").read_text().splitlines())
    assert json.loads((sr / "model" / "model.json").read_text()) == pairs  # and none of bc
    assert (sr / "tasks" / "scenarios.jsonl").read_text() == (bc / "tasks" / "scenarios.jsonl").read_text()
    path.write_text(path.read_text().replace('"base"\n', '"dpo"\n'))
    capsys.readouterr()
    assert main(["rounds", str(path)]) == 2
    assert "round sr: begin_with is 'dpo'; known: base, bc" in capsys.readouterr().err


def test_what_goes_wrong_in_a_step_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_ports(1)
    path = rounds_file(tmp_path / "a", port, train="{python} -c \"raise SystemExit('no memory')\"")
    assert main(["rounds", str(path)]) == 2
    assert sentence("episodes.training_ended", name="bc", code=1, why="no memory") in capsys.readouterr().err
    path = rounds_file(tmp_path / "b", port, serve="{python} -c \"raise SystemExit('no chat template')\"")
    assert main(["rounds", str(path)]) == 2
    assert "does not answer: no chat template" in capsys.readouterr().err
    path = rounds_file(tmp_path / "c", port, rank=8)
    assert main(["rounds", str(path)]) == 2
    assert "rank" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "why"),
    [({"tasks": 0}, sentence("episodes.whole_number_from_one", name="tasks", value=0)),
     ({"held_out": 1.0}, sentence("episodes.share_below_one", name="held_out", value="1.0")),
     ({"train": "no-such-program {data} {base} {model}"},
      f"train: {sentence('episodes.no_program', program='no-such-program')}"),
     ({"serve": "{python} {modle}"}, sentence("episodes.no_such_part", name="modle", known="python, model, port")),
     ({"train": "{python} 'x"}, "No closing quotation"),
     ({"policy": "policy@http://127.0.0.1:{prt}/v1"}, sentence("episodes.port_expected", name="prt")),
     ({"prompts": "none.csv"}, f"prompts: {sentence('episodes.no_file', file='none.csv')}")],
)  # fmt: skip
def test_a_file_that_cannot_be_played_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: dict[str, Any], why: str
) -> None:
    assert main(["rounds", str(rounds_file(tmp_path, 1, **wrong))]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "pi").exists()


def test_a_port_that_another_server_has_and_prompts_that_are_too_few_are_sentences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        path = rounds_file(tmp_path / "a", other.getsockname()[1])
        assert main(["rounds", str(path)]) == 2
    assert sentence("episodes.port_is_taken") in capsys.readouterr().err
    path = rounds_file(tmp_path / "b", free_ports(1), tasks=500)
    assert main(["rounds", str(path)]) == 2
    assert "bc: `episodes scenarios` ended with 1: 35 of 500 tasks in" in capsys.readouterr().err


def test_the_shipped_file_has_prompts_enough_for_the_rounds_that_follow_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    path = ROOT / "examples" / "social_learning" / "pi.toml"
    loop = Rounds(path, main).loop
    asked = ["scenarios", "new", "--from", loop.prompts, "--n", str(loop.tasks), "--evaluation", loop.evaluation]
    assert main([*asked, "--out", str(tmp_path / "bc")]) == 0
    assert main([*asked, "--out", str(tmp_path / "bc-sr"), "--not-in", str(tmp_path / "bc")]) == 0


@pytest.mark.long
def test_no_server_outlives_its_killed_command(tmp_path: Path) -> None:
    port = free_ports(1)
    path = rounds_file(tmp_path, port)
    process = subprocess.Popen([*COMMAND, "rounds", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    process.stderr.readline()
    log = tmp_path / "pi" / "base" / "serve.log"
    pause = threading.Event()
    until = time.monotonic() + 60
    while not log.exists() and time.monotonic() < until:
        pause.wait(0.01)
    process.kill()
    process.wait()
    process.stderr.close()
    assert main(["rounds", str(path)]) == 0  # which it is not where the port is taken
