"""What `polyrhythm doctor --device stretch` looks at. It takes hold of the robot for a moment and never moves it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from bridges.stretch.link import NEEDS, OWN_ENVIRONMENT, OnboardLink, found_python, lacking
from bridges.stretch.robot import StretchRobot
from nodes.robot.protocol import Robot, RobotError
from runtime.clock import SystemClock
from runtime.supervision.diagnostics import Finding

VARIABLES = ("HELLO_FLEET_PATH", "HELLO_FLEET_ID")
LOW_BATTERY_V = 11.5
"""An hour or so above the 10.5 V at which the robot stops."""


def examine(link: OnboardLink | None = None) -> list[Finding]:
    """The library's own Python, configuration, whether the robot can be taken, and what it says of itself."""
    findings = [*([] if link else [_python()]), _fleet()]
    if any(finding.level == "problem" for finding in findings):
        return findings
    clock = SystemClock()
    robot = StretchRobot(link=link)
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


def _python() -> Finding:
    try:
        return Finding("stretch_body", "ok", f"by {found_python()}")
    except RobotError as problem:
        own = str(OWN_ENVIRONMENT.expanduser())
        missing = lacking(own) if shutil.which(own) else list(NEEDS)
        text = f"{problem}; {own} lacks {', '.join(missing)}" if shutil.which(own) else str(problem)
        return Finding("stretch_body", "problem", text)


def _fleet() -> Finding:
    missing = [name for name in VARIABLES if not os.environ.get(name)]
    if missing:
        text = f"{' and '.join(missing)} not set; they are on the robot's own account (a systemd unit has to name them)"
        return Finding("fleet", "problem", text)
    folder = Path(os.environ["HELLO_FLEET_PATH"]) / os.environ["HELLO_FLEET_ID"]
    if not folder.is_dir():
        return Finding("fleet", "problem", f"there is no {folder}, where the robot's calibration belongs")
    return Finding("fleet", "ok", str(folder))


def _robot(robot: StretchRobot, clock: SystemClock) -> list[Finding]:
    hello = robot.hello
    library = f"stretch_body {hello.library} (written for 0.7.31) on Python {hello.python}"
    findings = [
        Finding("model", "ok", f"{hello.model} with {hello.tool}, {library}"),
        *told(robot, clock, LOW_BATTERY_V),
        *(Finding("collisions", "note", note) for note in hello.notes),
    ]
    if not robot.calibration.is_measured:
        text = "grasps and wheels are not measured on this robot: polyrhythm bringup stretch --again calibrate"
        findings.append(Finding("calibration", "note", text))
    return findings


def told(robot: Robot, clock: SystemClock, low_v: float = 0.0) -> list[Finding]:
    """What any robot says of itself: mode, battery, alerts, limits."""
    status = robot.status(clock.now_ns())
    volts, charging = status.battery_v or 0.0, ", charging" if status.is_charging else ""
    ranges = [
        (joint.name, f"{joint.lowest:.3f} to {joint.highest:.3f}, {joint.speed:g} per s, {joint.acceleration:g} per s2")
        for joint in robot.limits.joints
    ]
    return [
        Finding("robot", "ok" if status.mode == "ready" else "problem", f"{status.mode} {status.why}".rstrip()),
        Finding("battery", "ok" if volts >= low_v else "note", f"{volts:.1f} V{charging}"),
        *(Finding("alert", "problem", alert) for alert in status.alerts),
        *(Finding(name, "ok", text) for name, text in ranges),
    ]
