"""The guard: the last node before the motors."""
