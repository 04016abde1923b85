"""The log: one writer, answers before use, and a killed run that ends as an uninterrupted one."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from nodes.episodes.results.run_file import StoreError
from nodes.episodes.results.store import Store
from nodes.episodes.runner.runner import Judges, Settings, play_all
from nodes.models.chat_format import ModelAnswer
from nodes.models.servers import Servers
from nodes.msgs.episode import Score, Scores
from runtime import UserError
from tests.support.episode_cast import plan
from tests.support.sentences import pattern

KILLS = (5, pytest.param(50, marks=pytest.mark.long))

TABLES = {
    "episodes": "id, state, reason, seconds, failures",
    "turns": "*",
    "prompts": "*",
    "calls": "*",
    "evaluations": "*",
    "judgements": "*",
    "checks": "*",
}

PLAY = """
import asyncio, json, os, random, signal, sys, zlib
from pathlib import Path
from nodes.models.servers import Servers
from nodes.models.chat_format import ModelAnswer as Answer
from nodes.episodes.runner.runner import Judges, Settings, judge_unjudged, play_all
from nodes.episodes.results.store import Store

path, calls, kills = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
calls.touch()

async def ask(prompt, schema):
    await asyncio.sleep(0)  # others go on meanwhile, as with a real server
    number = zlib.crc32(prompt.encode())
    with calls.open("a") as log:
        log.write(f"{number:10d}\\n")
    if number % 11 == 0:
        return Answer("not json", 5, 1)
    return Answer(json.dumps({"action_type": "speak", "argument": f"Line {number}", "to": []}), 5, 3)

def play():
    child = os.fork()
    if child:
        return child
    with Store.open(path) as store:
        settings = Settings(Servers(), Judges(("rules",)), jobs=3, ask=ask)
        async def run():
            await play_all(store.unfinished(), store, settings)
            await judge_unjudged(store, settings)
        asyncio.run(run())
    os._exit(0)

chance = random.Random(7)
done = 0
while done < kills:
    target = calls.stat().st_size // 11 + chance.randint(0, 3)
    child = play()
    while calls.stat().st_size // 11 <= target and os.waitpid(child, os.WNOHANG)[0] == 0:
        pass
    try:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    except (ProcessLookupError, ChildProcessError):
        break
    done += 1
assert os.waitpid(play(), 0)[1] == 0
print(done)
"""


def contents(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with sqlite3.connect(path) as db:
        found = {
            table: sorted(db.execute(f"SELECT {columns} FROM {table}").fetchall(), key=repr)
            for table, columns in TABLES.items()
        }
    db.close()
    return found


def new_run(path: Path) -> None:
    plans = [
        plan(task, seed=seed).__class__(
            **{
                **{field: getattr(plan(task, seed=seed), field) for field in plan().__struct_fields__},
                "id": f"{task}-{seed}",
                "agents": ("fake@http://127.0.0.1:1/v1", "fake@http://127.0.0.1:1/v1"),
            }
        )
        for task in ("cello", "music")
        for seed in range(10)
    ]
    with Store.create(path, {"judges": ["rules"], "dimensions": []}) as store:
        store.add(plans)


def play(path: Path, calls: Path, *, kills: int) -> int:
    command = [sys.executable, "-c", PLAY, str(path), str(calls), str(kills)]
    done = subprocess.run(command, cwd=Path(__file__).parents[4], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.processes
@pytest.mark.parametrize("number", KILLS)
def test_a_run_killed_at_many_moments_ends_like_an_uninterrupted_one(tmp_path: Path, number: int) -> None:
    whole, broken = tmp_path / "whole.sqlite", tmp_path / "broken.sqlite"
    new_run(whole)
    new_run(broken)
    play(whole, tmp_path / "whole.calls", kills=0)
    kills = play(broken, tmp_path / "broken.calls", kills=number)
    expected = contents(whole)
    assert kills == number
    assert contents(broken) == expected
    wanted = len(expected["calls"])
    made = len((tmp_path / "broken.calls").read_text().split())
    # A call in flight at a kill has no stored answer and is made again, a stored one never is: 3 jobs, so 3 at a kill.
    assert wanted <= made <= wanted + 3 * kills


def test_a_stored_answer_is_never_asked_for_again(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    new_run(path)
    asked: list[str] = []

    async def ask(prompt: str, schema: dict[str, object]) -> ModelAnswer:
        asked.append(prompt)
        return ModelAnswer(json.dumps({"action_type": "speak", "argument": f"Line {len(prompt)}", "to": []}), 1, 1)

    with Store.open(path) as store:
        settings = Settings(Servers(), Judges(("rules",)), ask=ask)
        assert asyncio.run(play_all(store.unfinished(), store, settings))
        before = contents(path)
        count = len(asked)
        store.db.execute("UPDATE episodes SET state = 'waiting', reason = ''")
        store.db.execute("DELETE FROM turns")
        store.db.commit()
        assert asyncio.run(play_all(store.unfinished(), store, settings))
    assert len(asked) == count == 20 * 20
    assert contents(path) == before


@pytest.mark.parametrize("took_s", [0.0, 0.000004, 2.5, None])
def test_how_long_an_answer_took_is_kept_however_short_it_was(tmp_path: Path, took_s: float | None) -> None:
    """0 s is a time; None says that nobody measured it."""
    path = tmp_path / "run.sqlite"
    new_run(path)
    with Store.open(path) as store:
        answers = store.answers(next(iter(store.unfinished())).id)
        answers.keep_answer(0, 1, "act", "m", "Who?", "sha", ModelAnswer("I.", took_s=took_s))
        assert answers.find_answer(0, 1, "sha") == ModelAnswer("I.", took_s=took_s)


def test_a_second_writer_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with Store.create(path, {}):
        with pytest.raises(StoreError, match=f"process {os.getpid()} {pattern('episodes.is_being_written')}"):
            Store.open(path)
        Store.read(path).close()
    Store.open(path).close()


def test_what_is_no_run_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=pattern("episodes.no_such_run")):
        Store.read(tmp_path / "none.sqlite")
    noise = tmp_path / "noise.sqlite"
    noise.write_bytes(b"hello" * 1000)
    with pytest.raises(StoreError, match="is no run"):
        Store.read(noise)
    with pytest.raises(UserError, match="exists already"):
        Store.create(noise, {})


def test_a_failed_evaluation_is_no_zero(tmp_path: Path) -> None:
    episode = plan()
    with Store.create(tmp_path / "run.sqlite", {}) as store:
        store.add([episode])
        good = Scores(
            episode=episode.id,
            judge="a",
            state="done",
            scores=(Score(name="Ana Ruiz", dimension="GOAL", score=6.0, reasoning="r"),),
        )
        store.save_scores(good)
        store.save_scores(Scores(episode=episode.id, judge="b", state="failed", scores=(), why="no answer"))
        found = store.scores(episode.id)
    from nodes.episodes.evaluation.dimensions import mean_scores

    assert [(one.judge, one.state) for one in found] == [("a", "done"), ("b", "failed")]
    assert mean_scores(found) == {"Ana Ruiz": {"GOAL": 6.0}}
