"""Inspect Robots, a framework of others for benchmarks: our robots and policies in it."""
