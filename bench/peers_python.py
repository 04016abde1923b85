"""The Python that peers are installed for: PEERS_PYTHON, else .peers (`make bench FULL=1` makes it), else this one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_FIND = "import importlib.util as u, sys; print(*[name for name in sys.argv[1:] if u.find_spec(name)])"


def peers_python() -> str:
    """The interpreter."""
    own = ROOT / ".peers" / "bin" / "python"
    return os.environ.get("PEERS_PYTHON") or (str(own) if own.exists() else sys.executable)


@cache
def with_peers(*names: str) -> list[str]:
    """Those of these packages that it can import."""
    done = subprocess.run([peers_python(), "-c", _FIND, *names], capture_output=True, text=True, check=False)
    return done.stdout.split()


def free_port() -> int:
    """One that nobody listens at now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
