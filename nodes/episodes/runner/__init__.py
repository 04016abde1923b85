"""Plays episodes: thousands in virtual time, one from a launch file, one with a body."""
