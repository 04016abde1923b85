"""The fault matrix: real processes are killed, frozen, starved and lied to, and the robot's answer is measured."""
