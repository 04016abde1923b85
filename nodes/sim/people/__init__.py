"""Simulated people beside the robot, and how what a wizard practises is scored."""
