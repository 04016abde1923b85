"""What kinds of robots a Stretch 3 and a Stretch 4 are: joint ranges, speeds and accelerations, base, stow posture.

Nominal values of Hello Robot's stretch_body 0.7.31 for model SE3, and of stretch4_body 2026.10.21.2 for model SE4 with
its standard gripper (`default` motion profile, padded ranges); a real robot's driver reads its own.
"""

from nodes.msgs import JOINTS
from nodes.robot.protocol import BaseLimit, CartesianLimits, JointLimit, RobotLimits

STRETCH_3 = RobotLimits(
    joints=(
        JointLimit("lift", 0.0, 1.10, 0.13, 0.30),
        JointLimit("arm", 0.0, 0.52, 0.30, 0.40),
        JointLimit("wrist_yaw", -1.35, 4.50, 2.0, 10.0),
        JointLimit("wrist_pitch", -1.571, 0.451, 2.0, 10.0),
        JointLimit("wrist_roll", -2.911, 2.918, 2.0, 12.0),
        JointLimit("gripper", 0.0, 0.12, 0.12, 1.0),
        JointLimit("head_pan", -3.88, 1.84, 3.0, 14.0),
        JointLimit("head_tilt", -1.61, 0.34, 3.0, 14.0),
    ),
    base=BaseLimit(wheel_speed_mps=0.30, acceleration_mps2=0.30, track_m=0.3153),
    cartesian=CartesianLimits(
        outline="nodes.stretch.body:outline", tip_speed_mps=1.0, base_speed_out_mps=0.25, out_m=0.55
    ),
    body="nodes.stretch.body:BODY",
    urdf="nodes.stretch:stretch.urdf",
)

assert tuple(joint.name for joint in STRETCH_3.joints) == JOINTS

STOW = (0.30, 0.0, 3.0, -0.62, 0.0, 0.0, 0.0, 0.0)
"""Joint positions of the stowed robot, in the order of JOINTS."""

STRETCH_4 = RobotLimits(
    joints=(
        JointLimit("lift", 0.0, 1.20, 0.30, 0.30),
        JointLimit("arm", 0.0, 0.55, 0.40, 0.40),
        # Those of the profile `slow`: without an outline of this body nothing else limits how fast the tip is.
        JointLimit("wrist_yaw", -1.134, 4.276, 4.0, 4.0),
        JointLimit("wrist_pitch", -1.117, 4.258, 4.0, 4.0),
        JointLimit("wrist_roll", -1.117, 4.258, 4.0, 4.0),
        JointLimit("gripper", 0.0, 0.15, 0.12, 0.17),
    ),
    base=BaseLimit(wheel_speed_mps=0.30, acceleration_mps2=0.25, track_m=0.348, is_omni=True),
)
"""Its three wheels stand 0.174 m from the middle: none is faster than the two of this track that the guard counts."""
