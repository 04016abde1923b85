"""A Hello Robot Stretch as numbers: limits, kinematics, and which pixels show its own body."""
