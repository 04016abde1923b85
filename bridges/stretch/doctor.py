"""What `polyrhythm doctor --robot stretch` looks at. It takes hold of the robot for a moment and never moves it."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

from bridges.stretch.robot import StretchRobot
from nodes.robot.protocol import RobotError
from runtime.clock import SystemClock
from runtime.supervision.diagnostics import Finding

VARIABLES = ("HELLO_FLEET_PATH", "HELLO_FLEET_ID")
LOW_BATTERY_V = 11.5
"""An hour or so above the 10.5 V at which the robot stops."""


def examine() -> list[Finding]:
    """Package, configuration, whether the robot can be taken, and what it says of itself."""
    findings = _environment()
    if any(finding.level == "problem" for finding in findings):
        return findings
    clock = SystemClock()
    robot = StretchRobot()
    try:
        robot.start(clock.now_ns())
    except RobotError as problem:
        return [*findings, Finding("robot", "problem", str(problem))]
    try:
        clock.block(0.2)  # its threads have gone round since
        robot.advance(clock.now_ns())
        return findings + _robot(robot, clock)
    finally:
        robot.close()


def _environment() -> list[Finding]:
    findings = []
    try:
        version = importlib.metadata.version("hello-robot-stretch-body")
        findings.append(Finding("stretch_body", "ok", f"{version} (the bridge was written for 0.7.31)"))
    except importlib.metadata.PackageNotFoundError:
        text = "not installed; on the robot: pip install 'polyrhythm[stretch]'"
        findings.append(Finding("stretch_body", "problem", text))
    missing = [name for name in VARIABLES if not os.environ.get(name)]
    if missing:
        text = f"{' and '.join(missing)} not set; they are on the robot's own account (a systemd unit has to name them)"
        findings.append(Finding("fleet", "problem", text))
    else:
        folder = Path(os.environ["HELLO_FLEET_PATH"]) / os.environ["HELLO_FLEET_ID"]
        level = "ok" if folder.is_dir() else "problem"
        text = str(folder) if folder.is_dir() else f"there is no {folder}, where the robot's calibration belongs"
        findings.append(Finding("fleet", "ok" if level == "ok" else "problem", text))
    return findings


def _robot(robot: StretchRobot, clock: SystemClock) -> list[Finding]:
    status = robot.status(clock.now_ns())
    findings = [Finding("robot", "ok" if status.mode == "ready" else "problem", f"{status.mode} {status.why}".rstrip())]
    volts = status.battery_v or 0.0
    charging = ", charging" if status.is_charging else ""
    findings.append(Finding("battery", "ok" if volts >= LOW_BATTERY_V else "note", f"{volts:.1f} V{charging}"))
    findings += [Finding("alert", "problem", alert) for alert in status.alerts]
    for joint in robot.limits.joints:
        text = f"{joint.lowest:.3f} to {joint.highest:.3f}, {joint.speed:g} per s, {joint.acceleration:g} per s2"
        findings.append(Finding(joint.name, "ok", text))
    return findings
