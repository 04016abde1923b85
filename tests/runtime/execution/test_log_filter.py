"""A run's log has the lines of its nodes and of users' code, and no small talk of libraries."""

from __future__ import annotations

import logging
import sysconfig
from pathlib import Path

import pytest

import runtime
from runtime.execution.log_filter import is_of_the_run

LIBRARY = str(Path(sysconfig.get_path("purelib")) / "httpx2" / "_client.py")


@pytest.mark.parametrize(
    ("name", "level", "place", "is_told"),
    [
        ("httpx2", logging.INFO, LIBRARY, False),
        ("httpx2", logging.WARNING, LIBRARY, True),
        ("asyncio", logging.INFO, str(Path(logging.__file__)), False),
        ("node.talker", logging.INFO, LIBRARY, True),
        ("my_robot.drive", logging.INFO, "/home/ann/my_robot/drive.py", True),
        ("runtime", logging.INFO, str(Path(runtime.__file__)), True),
    ],
)
def test_libraries_are_heard_from_warnings_on(name: str, level: int, place: str, is_told: bool) -> None:
    record = logging.LogRecord(name, level, place, 1, "HTTP Request", None, None)
    assert is_of_the_run(record) == is_told
