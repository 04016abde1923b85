"""Seats: taking and giving them from a terminal, comparing shadows, and the ladder for silent holders."""
