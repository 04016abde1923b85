"""Whether this machine can render with OpenGL, asked of a process of its own: a wrong guess breaks mujoco's import."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

_READS = "mujoco.rendering.classic.gl_context"
"""The module of mujoco that reads MUJOCO_GL, once."""
PROBE_TIMEOUT_S = 20.0

_PROGRAM = """
import mujoco
model = mujoco.MjModel.from_xml_string('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>')
renderer = mujoco.Renderer(model, 8, 8)
renderer.update_scene(mujoco.MjData(model))
assert renderer.render().shape == (8, 8, 3)
"""


def enable_gl() -> str | None:
    """Point mujoco at the first OpenGL that works here (EGL, then OSMesa) and name it; None where none does."""
    in_force = os.environ.get("MUJOCO_GL")
    for candidate in [in_force] if in_force else ["egl", "osmesa"]:
        if _works(candidate):
            os.environ["MUJOCO_GL"] = candidate
            if read := sys.modules.get(_READS):  # mujoco is imported already, and has read another value
                importlib.reload(read)
            return candidate
    return None


def _works(candidate: str) -> bool:
    try:
        probe = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={**os.environ, "MUJOCO_GL": candidate},
            capture_output=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return probe.returncode == 0
