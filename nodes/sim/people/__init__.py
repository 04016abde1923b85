"""Simulated people beside the robot, and how the cleared table is judged."""
