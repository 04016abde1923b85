"""What runs in LeRobot's own Python: it imports LeRobot and nothing of ours, and nothing of ours imports it."""
