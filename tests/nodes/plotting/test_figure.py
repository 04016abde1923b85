"""Pictures are drawn wherever a program runs, without a window and without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DRAW = """
import sys
from nodes.plotting.figure import Figure
figure = Figure()
figure.add_subplot().set_title("joints, rad")
figure.savefig(sys.argv[1])
assert "matplotlib.pyplot" not in sys.modules, "which would look for a window"
"""


@pytest.mark.long  # matplotlib reads all fonts anew
@pytest.mark.processes
def test_a_home_that_cannot_be_written_is_no_complaint(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a file, where nobody makes a folder, root neither")
    nothing = {name: value for name, value in os.environ.items() if name not in ("MPLCONFIGDIR", "XDG_CONFIG_HOME")}
    drawn = subprocess.run(
        [sys.executable, "-c", DRAW, str(tmp_path / "a.png")], env={**nothing, "HOME": str(home)},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert drawn.stderr == ""
    assert (tmp_path / "a.png").stat().st_size > 1000
