"""What the way to a text episode imports: it is to start in a moment."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("numpy", "zmq", "openai", "httpx", "rich", "matplotlib", "mcap", "starlette")


def test_an_episode_is_on_its_way_without_arrays_sockets_or_pictures() -> None:
    code = f"import sys, nodes.episodes.runner.runner; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == []
