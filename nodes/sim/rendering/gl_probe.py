"""Whether this machine can render with OpenGL, asked of a process of its own: a wrong guess breaks mujoco's import."""

from __future__ import annotations

import os
import subprocess
import sys

PROBE_TIMEOUT_S = 20.0

_PROGRAM = """
import mujoco
model = mujoco.MjModel.from_xml_string('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>')
renderer = mujoco.Renderer(model, 8, 8)
renderer.update_scene(mujoco.MjData(model))
assert renderer.render().shape == (8, 8, 3)
"""


def enable_gl() -> str | None:
    """Point mujoco at the first OpenGL that works here (EGL, then OSMesa) and name it; None where none does.

    mujoco reads `MUJOCO_GL` once, when it is imported, so after that only the value in force is tried.
    """
    in_force = os.environ.get("MUJOCO_GL")
    candidates = [in_force] if in_force or "mujoco" in sys.modules else ["egl", "osmesa"]
    for candidate in candidates:
        if candidate and _works(candidate):
            os.environ["MUJOCO_GL"] = candidate
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
