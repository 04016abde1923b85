"""Planners: history, descriptions and the newest image in; speech and the next subtask out, about 0.5 Hz."""
