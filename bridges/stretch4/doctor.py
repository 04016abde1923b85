"""What `polyrhythm doctor --device stretch4` looks at. It asks the robot's server for its status alone."""

from __future__ import annotations

from bridges.stretch.doctor import told
from bridges.stretch4.link import Stretch4Link
from bridges.stretch4.robot import Stretch4Robot
from bridges.stretch4.status import WRITTEN_FOR, gripper_words
from nodes.robot.protocol import RobotError
from runtime.clock import SystemClock
from runtime.supervision.diagnostics import Finding


def examine(link: Stretch4Link | None = None) -> list[Finding]:
    """Whether the server can be had, and what the robot says of itself."""
    clock = SystemClock()
    robot = Stretch4Robot(link=link)
    try:
        robot.start(clock.now_ns())
    except RobotError as problem:
        return [Finding("robot", "problem", str(problem))]
    try:
        robot.advance(clock.now_ns())
        server = f"{robot.reading.server}; its status is read as stretch4_body {WRITTEN_FOR} writes it"
        return [
            Finding("server", "ok" if robot.reading.server == "RUNNING" else "problem", server),
            *told(robot, clock),
            Finding("gripper", "note", gripper_words(robot.reading)),
        ]
    finally:
        robot.close()
