"""A process that is ready goes on connecting to those who come up after it, before the run begins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest

from runtime import Message, Node, Publisher, Subscription, on
from runtime.launch.file import resolve
from runtime.launch.process_plan import plan
from runtime.transport.direct import DirectSender, is_available
from tests.support.running import PATIENCE_S, eventually


class Word(Message):
    """What is said."""


class Speaker(Node):
    word = Publisher(Word, "word")


class Hearer(Node):
    """Nobody hears it, so it is ready at once."""

    word = Subscription(Word, "word")

    @on(word)
    def hear(self, word: Word) -> None: ...


@pytest.mark.processes
@pytest.mark.skipif(not is_available(), reason="this system has no packets")
def test_a_process_that_is_ready_connects_to_one_that_comes_up_after_it() -> None:
    use = {name: {"use": f"{__name__}:{name.title()}"} for name in ("speaker", "hearer")}
    plans = plan(resolve({"nodes": use}, path=Path("wiring.toml")))
    assert plans["speaker"].direct_to == {"word": ("hearer",)}
    run = {"processes": msgspec.to_builtins(plans), "launch_file": "wiring.toml", "nodes": list(use), "seed": 0}
    orders_read, orders_write = os.pipe()
    events_read, events_write = os.pipe()
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as short, os.fdopen(events_read) as events:
        folder = Path(short)
        (folder / "run.json").write_text(json.dumps(run))
        fds = (orders_read, events_write)
        command = [sys.executable, "-P", "-m", "runtime.supervision.process_main", short, "hearer", *map(str, fds)]
        hearer = subprocess.Popen(command, pass_fds=fds, env={**os.environ, "PYTHONPATH": str(Path.cwd())})
        os.close(events_write)
        assert any(json.loads(line)["event"] == "ready" for line in events)
        speaker = DirectSender(folder, "speaker", plans["speaker"].direct_to, plans["speaker"].direct_events)
        eventually(lambda: not speaker.lacking(), "the hearer connects")
        os.write(orders_write, b'{"do": "stop"}\n')
        assert hearer.wait(PATIENCE_S) == 0
        speaker.close()
    os.close(orders_read)
    os.close(orders_write)
