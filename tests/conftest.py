"""Fixtures of all tests."""

pytest_plugins = ["runtime.pytest_plugin"]
