"""The node that drives a robot, robots without hardware behind it, and the tests that every robot must pass."""
