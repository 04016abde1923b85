"""Asks servers that we did not write: llama.cpp's with SmolLM2, and LiteLLM's proxy before it and before a fake.

usage: python -m tests.interop.plays_on_foreign_servers PYTHON LITELLM  (an interpreter that has llama.cpp and the
weights, and the program `litellm`; make interop does it)

At llama.cpp's `polyrhythm models try` asks an act, a plan, a judgement, about an image, and a long prompt. What a model
of 135 million weights means is not looked at: each answer is read or told as what it is, and the exit code is true.
Behind LiteLLM planner, VLM, an episode and a judge ask a fake that behaves badly; its errors are told in other words.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from nodes.episodes.results.store import Store
from tests.interop.plays_on_mock_servers import free_port
from tests.nodes.models.server_table import TASK, Server, all_rows, judges, planner, players, until, vlm
from tests.nodes.planner.openai_planner_table import REQUEST, Table
from tests.support.servers.behaviours import Row
from tests.support.servers.fake_openai_server import FakeOpenAI

PATIENCE_S = 120.0
LONGEST_S = 1500
"""All of it; two cores that do nothing else need a few minutes."""
MODEL = "smollm2"
ALIVE = "/health/liveliness"
KEY = "sk-of-the-proxy"
LIMITS = ("--max-tokens", "150", "--timeout", "120")


@contextmanager
def served(command: list[str], port: int, health: str) -> Iterator[str]:
    """The address of a server, from when it answers until the block is left."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/v1"
    try:
        for _ in range(int(PATIENCE_S / 0.2)):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}{health}", timeout=5).close()
                break
            except urllib.error.HTTPError as problem:
                if problem.code < 500:
                    break
            except OSError:
                assert process.poll() is None, f"{command[0]} has ended"
            time.sleep(0.2)
        else:
            raise AssertionError(f"{command[0]} does not answer")
        yield url
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.terminate()
        process.wait(60)


def litellm(program: str, folder: Path, port: int, models: Mapping[str, str]) -> list[str]:
    """The proxy before these addresses, by the names of their models."""
    file = folder / f"litellm{port}.json"
    listed = [
        {"model_name": name, "litellm_params": {"model": f"openai/{name}", "api_base": at, "api_key": "none"}}
        for name, at in models.items()
    ]
    settings = {"model_list": listed, "general_settings": {"master_key": KEY}}
    file.write_text(json.dumps(settings))  # JSON is YAML, too
    return [program, "--config", str(file), "--host", "127.0.0.1", "--port", str(port)]


def tried(name: str, url: str) -> dict[str, str]:
    """What `polyrhythm models try` finds; its exit code is true."""
    command = [sys.executable, "-m", "runtime", "models", "try", f"{MODEL}@{url}", "--json", *LIMITS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    found = json.loads(done.stdout)
    assert done.returncode == (0 if found["ok"] else 1)
    how = {one["what"]: one["problem"] or "ok" for one in found["tried"]}
    assert len(how) == 5
    for what, problem in how.items():
        print(f"{name}: {what}: {problem[:150]}", flush=True)
    return how


def seated(name: str, url: str, folder: Path) -> None:
    """A planner, both players of an episode and its judge: each answer is read, or told as what it is."""
    os.environ["OPENAI_BASE_URL"] = url
    at = cast(FakeOpenAI, SimpleNamespace(url=url))
    with Table(at, model=MODEL, deadline_s=PATIENCE_S, max_tokens=40) as table:
        table.hear(REQUEST)
        until(table.sim, lambda: table.subtasks or table.said, 90)
        assert table.subtasks or table.said, "it plans, or tells the person why not"
        print(
            f"{name}: planner: {[one.text for one in table.subtasks] or [one.text for one in table.said]}", flush=True
        )
    out = folder / f"{name.replace(' ', '-')}.sqlite"
    spec = f"{MODEL}@{url}#tokens=40"
    asked = ["--task", TASK, "--agents", spec, "--judges", spec, "--turns", "2", "--out", str(out)]
    limits = ["--deadline", f"{PATIENCE_S:g}", "--timeout", "600"]
    command = [sys.executable, "-m", "runtime", "episodes", "run", *asked, *limits]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    with Store.read(out) as store:
        (episode,) = store.episodes()
        scores = store.scores(episode.id)
        assert len(store.turns(episode.id)) or episode.state != "done"
    if episode.state != "done":
        assert done.returncode == 1, done.stdout
    print(f"{name}: episode {episode.state}, judge {[one.state for one in scores]}, exit {done.returncode}", flush=True)


class Behind(Server):
    """The seats of the table, with a proxy between them and a server that behaves so or so."""

    def __init__(self, rows: list[Row]) -> None:
        super().__init__(rows, 20.0)
        self.proxy = ""

    def own_address(self, row: Row, seat: str) -> str:
        """Where the proxy asks."""
        return super().address(row, seat)

    def address(self, row: Row, seat: str) -> str:
        return self.proxy

    def model(self, row: Row, seat: str) -> str:
        return f"row{self.rows.index(row)}-{seat}"

    def asked(self, row: Row, seat: str) -> int:
        return 1  # the proxy asks again by itself


SEATS = ("planner", "vlm", "act", "judge")
BEHIND = (
    "good as it should be", "after `<think>`", "tokens that are null", "a system message refused: Gemma",
    "the form of the answer refused: llama.cpp, as 500", "an image refused: OpenAI",
    "the question is too long: OpenAI, vLLM", "a filter before the model: Azure", "401", "500, always",
)  # fmt: skip
"""What LiteLLM tells in its own words."""


def behind_litellm(program: str, folder: Path) -> None:
    """What each seat does about these where LiteLLM stands between."""
    rows = [row for row in all_rows() if row.name in BEHIND]
    with Behind(rows) as server:
        models = {server.model(row, seat): server.own_address(row, seat) for row in rows for seat in SEATS}
        port = free_port()
        with served(litellm(program, folder, port, models), port, ALIVE) as url:
            server.proxy = os.environ["OPENAI_BASE_URL"] = url
            acted = players(server, rows, folder, stream=False)
            judged = judges(server, rows, folder, stream=False)
            for row, act, judge in zip(rows, acted, judged, strict=True):
                cells = (planner(server, row), vlm(server, row), act, judge)
                why = next((cell.why for cell in cells if cell.why), "")
                told = ", ".join(cell.what for cell in cells)
                print(f"LiteLLM before a fake, {row.name}: {told}{f' ({why[:150]})' if why else ''}", flush=True)
                if row.name in BEHIND[:5]:
                    assert told == "plans, sees, plays, scores", told


def over(number: int, frame: object) -> None:
    """It takes too long: what was started is ended on the way out."""
    raise TimeoutError(f"not done within {LONGEST_S} s")


def main(python: str, program: str) -> int:
    """0 where all was read, or told as what it is."""
    signal.signal(signal.SIGALRM, over)
    signal.alarm(LONGEST_S)
    os.environ["OPENAI_API_KEY"] = os.environ["VLM_API_KEY"] = KEY
    find = "from nodes.models.smollm2 import weights; print(weights())"
    found = subprocess.run([python, "-c", find], capture_output=True, text=True, check=True).stdout.strip()
    port, other = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        behind_litellm(program, Path(folder))
        with served([python, "-m", "nodes.models.smollm2", found, str(port)], port, "/health") as url:
            how = tried("llama.cpp", url)
            assert how["image"] != "ok", "it takes none"
            seated("llama.cpp", url, Path(folder))
            with served(litellm(program, Path(folder), other, {MODEL: url}), other, ALIVE) as proxy:
                os.environ["OPENAI_BASE_URL"] = proxy
                tried("LiteLLM before llama.cpp", proxy)
                seated("LiteLLM before llama.cpp", proxy, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
