"""What the arm can do; the guard lets nothing through beyond it."""

from nodes.robot.protocol import JointLimit, RobotLimits

LIMITS = RobotLimits(
    joints=(  # name, lowest, highest, speed, acceleration: m or rad, per s, per s2
        JointLimit("waist", -2.8, 2.8, 0.5, 2.0),
        JointLimit("shoulder", -1.5, 1.5, 0.4, 1.5),
        JointLimit("elbow", 0.0, 2.4, 0.6, 2.0),
        JointLimit("gripper", 0.0, 0.08, 0.05, 0.5),
    ),
)
