"""One trial: `python -m nodes.evaluation.child PIPE_FD run ...` is `polyrhythm run ...` that ends with its starter."""

from __future__ import annotations

import sys

from runtime.cli import main
from runtime.supervision.control_pipe import end_with

if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
