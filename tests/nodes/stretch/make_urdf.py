"""Writes nodes/stretch/stretch.urdf from the simulator's model: python -m tests.nodes.stretch.make_urdf"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np

from nodes.robot.urdf import Joint, urdf_text
from nodes.robot_file.as_urdf import urdf_of_model
from nodes.sim.world.mjcf import BASE_JOINTS, build_stretch
from nodes.sim.world.scenario import layout_of
from nodes.stretch.limits import STRETCH_3

FILE = Path(__file__).resolve().parents[3] / "nodes" / "stretch" / "stretch.urdf"


def stretch_urdf() -> str:
    """The URDF of a Stretch as the simulator has it, with one joint `gripper` that both fingers follow."""
    model = mujoco.MjModel.from_xml_string(build_stretch(replace(layout_of("clear-table"), things=())))
    urdf, _ = urdf_of_model(model, "stretch", root="base", plane=BASE_JOINTS)
    opening = STRETCH_3.joints[5]
    gripper = Joint(
        "gripper",
        "prismatic",
        "wrist_roll",
        "gripper_opening",
        np.eye(4),
        lowest=opening.lowest,
        highest=opening.highest,
    )
    joints = [
        replace(joint, mimics=("gripper", 0.5, 0.0)) if joint.name.startswith("finger_") else joint
        for joint in urdf.joints
    ]
    return urdf_text(replace(urdf, joints=(*joints, gripper), shapes={**urdf.shapes, "gripper_opening": ()}))


if __name__ == "__main__":
    FILE.write_text(stretch_urdf(), encoding="utf-8")
