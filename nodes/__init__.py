"""Nodes that ship: the robot, its three policies, and what they need on a laptop."""
