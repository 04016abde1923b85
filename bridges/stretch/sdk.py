"""The way into stretch_body: opened, kept from taking over signals, and asked in words of either of its releases."""

from __future__ import annotations

import importlib
import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from bridges.stretch.units import CHAINS
from nodes.robot.protocol import RobotError

log = logging.getLogger("bridges.stretch.robot")


def open_body() -> Any:
    """A started stretch_body Robot. Raises RobotError in words where it cannot be had."""
    try:
        module = importlib.import_module("stretch_body.robot")
        body = module.Robot()
    except ImportError as problem:
        raise RobotError(
            f"stretch_body cannot be imported ({problem}); on the robot: pip install 'polyrhythm[stretch]'"
        ) from problem
    except (Exception, SystemExit) as problem:  # it reads the environment and files, and may exit
        raise RobotError(
            f"stretch_body does not load: {type(problem).__name__}: {problem}; "
            "are HELLO_FLEET_PATH and HELLO_FLEET_ID set, as on the robot's own account?"
        ) from problem
    try:
        is_started = bool(body.startup())
    except (Exception, SystemExit) as problem:
        with suppress(Exception):
            body.stop()
        raise RobotError(f"the Stretch does not start: {type(problem).__name__}: {problem}") from problem
    if not is_started:
        with suppress(Exception):
            body.stop()
        raise RobotError(
            "the Stretch does not start: another program holds it (stretch_free_robot_process.py ends that), "
            "or a device does not answer (stretch_system_check.py tells which)"
        )
    return body


def avoid_collisions(body: Any) -> None:
    """Switch on stretch_body's own collision management, which is off by default; an older library may lack it."""
    try:
        body.enable_collision_mgmt()
    except (Exception, SystemExit) as problem:  # noqa: BLE001  # it loads models and starts a process
        log.warning("the robot does not avoid collisions with itself: %s: %s", type(problem).__name__, problem)


@contextmanager
def handlers_kept() -> Iterator[None]:
    """stretch_body takes over SIGINT, SIGTERM and the hook for threads' exceptions; the runtime needs its own."""
    hook = threading.excepthook
    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)} if is_main else {}
    try:
        yield
    finally:
        threading.excepthook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def is_homed(body: Any) -> bool:
    return bool(body.is_homed() if hasattr(body, "is_homed") else body.is_calibrated())


def chain(body: Any, name: str) -> Any:
    return getattr(body, CHAINS[name])
