"""The shipped graph that is talked to, whole: real speech in, deeds and an answer out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from nodes.mcap.file import BagReader
from nodes.msgs import Saying, Utterance
from tests.support.models.spoken import needs_espeak, silence, spoken, write_wav
from tests.support.servers.fake_speech_server import FakeSpeech, says

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.processes

ORDER = "Put all the cups in the bin."


@pytest.mark.long
@needs_espeak
def test_a_spoken_order_is_carried_out_and_answered_aloud(tmp_path: Path) -> None:
    talk = write_wav(tmp_path / "talk.wav", silence(2.0), spoken(ORDER), silence(6.0), spoken("Stop!"), silence(1.0))
    with FakeSpeech(says(ORDER, "Stop!")) as server:
        command = [
            *(sys.executable, "-m", "runtime", "run", "voice", "--virtual", "--for", "14", "--out", str(tmp_path)),
            *("--set", f"ears.source={talk}", "--set", "mouth.device=none", "--set", "mouth.command="),
            *("--set", "words.looks_ahead=false", "--set", "run.view="),
        ]
        environment = {**os.environ, "SPEECH_BASE_URL": server.url, "SPEECH_MODEL": "whisper-test"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("**/*.mcap")
    messages = list(BagReader(path))
    heard = [message.message(Utterance).text for message in messages if message.topic == "heard"]
    assert heard == [ORDER, "Stop!"]
    assert any(message.topic == "subtask" for message in messages)
    sayings = [message.message(Saying) for message in messages if message.topic == "saying"]
    phases = Counter(saying.phase for saying in sayings)
    assert phases["begun"] == phases["done"] + phases["cut"] > 0
    assert "stopped" in {message.document["mode"] for message in messages if message.topic == "guard/state"}
