"""The loudspeaker as a user runs it: processes of their own, a real synthesiser, real time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.models.spoken import needs_espeak

pytestmark = pytest.mark.processes

LAUNCH = """
[nodes.chatterbox]
use = "tests.nodes.voice.speaking_nodes:Chatterbox"

[nodes.mouth]
use    = "nodes.voice.loudspeaker:Loudspeaker"
params = { device = "none", lifespan_s = 60.0, deadline_s = 60.0 }
"""


@needs_espeak
@pytest.mark.parametrize("clock", ["real", "virtual"])
def test_what_is_said_in_one_process_is_spoken_in_another_and_cut_by_a_stop(clock: str, tmp_path: Path) -> None:
    launch = tmp_path / "talk.toml"
    launch.write_text(LAUNCH)
    command = [sys.executable, "-m", "runtime", "run", str(launch), *(["--virtual"] if clock == "virtual" else [])]
    done = subprocess.run([*command, "--for", "60"], capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "told: begun, done, begun, cut" in done.stdout + done.stderr
