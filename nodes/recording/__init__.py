"""Recorders: every message of a graph in one MCAP file; `bag` and `replay` work on what they leave."""
