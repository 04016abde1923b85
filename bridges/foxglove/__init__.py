"""Foxglove: a live view of any running graph, for people who have its viewer on the desk."""
