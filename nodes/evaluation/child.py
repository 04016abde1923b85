"""One trial: `polyrhythm run ...` in a process that `multiprocessing` has started; it ends with its starter."""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

from runtime.cli import main
from runtime.supervision.control_pipe import end_with


def run_trial(argv: list[str], said: Path, complaint: Path) -> None:
    """Run the command in this process, its output in these files, and leave with its exit code."""
    for stream, path in ((sys.stdout, said), (sys.stderr, complaint)):
        stream.flush()
        target_fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(target_fd, stream.fileno())
        os.close(target_fd)
    starter = multiprocessing.parent_process()
    if starter is not None:
        end_with(os.dup(starter.sentinel))
    sys.exit(main(argv))
