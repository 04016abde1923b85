"""Nothing of a Stretch is in the general code: its joints are named in its own rooms, and in a list that shrinks."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NAMES = {"wrist_yaw", "wrist_pitch", "wrist_roll", "head_pan", "head_tilt"}
"""Of its joints; "lift", "arm" and "gripper" are words of everybody's."""
ROOMS = (
    "nodes/stretch/",
    "bridges/stretch/",
    "bridges/stretch4/",
    "nodes/vlm/room/",
    "nodes/policy/room_policy.py",
    "examples/",
)
"""The kitchen is a simulation of that very robot, and an example may be for one."""
OWN_FILES = {
    "nodes/sim/world/mjcf.py": "its model",
    "nodes/sim/robot.py": "that model in physics",
    "nodes/policy/stretch_motion.py": "how it carries out skills",
    "nodes/policy/stretch_hand.py": "its hand, for the console",
    "nodes/policy/learn/network.py": "what learns to move it",
}
KNOWN = {
    "nodes/msgs/robot.py": "JOINTS: the joints of a graph that names no robot",
    "nodes/guard/motion_profile.py": "the robot of a guard that is told of none",
    "nodes/sim/physics.py": "pouring: the joint that tips what is held; other robots pour nothing",
    "nodes/sim/kinematic.py": "the robot of a class that says nothing else",
    "nodes/exploration/explorer.py": "rooms are explored with this robot's arm",
    "nodes/policy/onnx/inputs.py": "what the shipped ONNX model is fed",
    "nodes/policy/onnx/policy.py": "the shipped ONNX model; refused for other joints",
    "bridges/web/console/page_handler.py": "the console; refused for other joints",
}


def test_only_its_rooms_name_its_joints_or_import_them() -> None:
    found = {path for path in python_files() if speaks_of_it(ROOT / path)}
    beyond = {path for path in found if not path.startswith(ROOMS)}
    assert beyond - {*OWN_FILES, *KNOWN} == set(), "take what you need from the robot's Body, limits or motion"
    assert {*OWN_FILES, *KNOWN} - beyond == set(), "these no longer do: take them off the list"


def python_files() -> list[str]:
    folders = ("runtime", "nodes", "bridges", "examples")
    return [str(path.relative_to(ROOT)) for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def speaks_of_it(path: Path) -> bool:
    text = path.read_text()
    if "stretch" not in text and not any(name in text for name in NAMES):
        return False
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nodes.stretch"):
            return True
        if isinstance(node, ast.Constant) and node.value in NAMES:
            return True
    return False
