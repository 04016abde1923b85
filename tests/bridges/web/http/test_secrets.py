"""What opens a page stays on the terminal, and what a run records stays with whoever ran it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from nodes.mcap.file import BagReader
from runtime.errors import RecordingError
from tests.support.pages.console_run import ConsoleRun
from tests.support.running import eventually

LAUNCH = """
[nodes.console]
use = "bridges.web.console.node:Console"

[nodes.recorder]
use = "nodes.recording.recorder:Recorder"
"""
NOBODY = 65534


def tells_the_address(recording: Path) -> bool:
    """Whether the line with the page's address is in the recording so far."""
    try:
        return any(b"#(secret)" in message.data for message in BagReader(recording))
    except RecordingError:
        return False


@pytest.mark.processes
def test_no_token_is_in_the_recording_and_nobody_else_reads_it(tmp_path: Path) -> None:
    launch, out = tmp_path / "console.toml", tmp_path / "out"
    launch.write_text(LAUNCH)
    with ConsoleRun(launch, out) as run:
        tokens = run.tokens
        eventually(lambda: tells_the_address(out / "run.mcap"), "the line with the address is recorded")
    assert len(tokens) == 3
    recording = out / "run.mcap"
    messages = [message.data for message in BagReader(recording)]
    assert messages
    for token in tokens.values():
        assert not any(token.encode() in data for data in messages)
        assert not [path for path in out.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    assert stat.S_IMODE(recording.stat().st_mode) == 0o600


@pytest.mark.processes
@pytest.mark.skipif(os.getuid() != 0, reason="only root can try as another user")
def test_another_user_cannot_read_a_recording(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder != Path("/") and "pytest" in folder.name:
            folder.chmod(0o755)  # so that only the file itself is in the way
    code = (
        "import sys; from pathlib import Path; from nodes.mcap.file import BagWriter; "
        "BagWriter(Path(sys.argv[1]), {}).close({})"
    )
    path = tmp_path / "run.mcap"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    tried = subprocess.run(["cat", str(path)], user=NOBODY, capture_output=True, check=False)
    assert tried.returncode == 1
    assert b"Permission denied" in tried.stderr
