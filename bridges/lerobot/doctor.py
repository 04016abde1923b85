"""What `polyrhythm doctor --device lerobot` looks at: LeRobot's environment and what it knows. Nothing is connected."""

from __future__ import annotations

import os
from pathlib import Path

from bridges.lerobot.device import environment_python, found_python, known_types
from nodes.robot.protocol import RobotError
from runtime.errors import UserError, choices
from runtime.supervision.diagnostics import Finding

PORTS = ("ttyACM*", "ttyUSB*")


def examine(devices: Path = Path("/dev")) -> list[Finding]:
    """The environment, its types of devices, and serial ports that this user may not open."""
    try:
        findings = [Finding("lerobot", "ok", f"by {found_python()}")]
        known = known_types()
    except RobotError as problem:
        half = f"; {environment_python().parents[1]} is half made" if environment_python().exists() else ""
        return [Finding("lerobot", "problem", f"{problem}{half}")]
    except UserError as problem:
        return [Finding("lerobot", "problem", str(problem))]
    findings += [Finding(f"{kind}s", "ok", choices(types) if types else "none") for kind, types in known.items()]
    for port in sorted(port for pattern in PORTS for port in devices.glob(pattern)):
        is_open = os.access(port, os.R_OK | os.W_OK)
        text = "this user may open it" if is_open else "this user may not open it: add it to the group dialout"
        findings.append(Finding(str(port), "ok" if is_open else "problem", text))
    return findings
