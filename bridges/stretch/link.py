"""`OnboardProcess`: the 3.10 process that speaks to stretch_body, started, signed for, and listened to by the driver.

`docs/decisions/stretch-python.md` says why it is a process of its own. Its socket lies in a folder of mode 0700.
"""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Protocol

import zmq

from bridges.side_process import SideProcess
from bridges.stretch.onboard.words import Goals, Hello, MotionOrder, Reading, Seal
from nodes.robot.protocol import RobotError
from runtime.operating_system.processes import foreign_environment

ONBOARD = Path(__file__).with_name("onboard")
NEEDS = ("stretch_body", "zmq", "msgspec")
OWN_ENVIRONMENT = Path("~/.local/share/polyrhythm/stretch/bin/python")
"""Where docs/stretch.md puts the environment; `robot_params.python` names another."""
START_S = 60.0
"""stretch_body loads meshes for its collision models; 5 to 20 s."""
END_S = 6.0


class OnboardLink(Protocol):
    """The way to the one who speaks to stretch_body; tests have one without a process."""

    def open(self) -> Hello:
        """Take hold of the robot. Raises RobotError in words."""
        ...

    def exchange(self, goals: Goals | None, lease: int, verb: str = "", verb_number: int = 0) -> Reading:
        """Say what is wanted; the newest that the robot said. Waits for nothing."""
        ...

    def ended(self) -> str:
        """Why the other side is gone; nothing while it is there."""
        ...

    def close(self) -> None:
        """Everything held, the robot let go."""
        ...


class OnboardProcess:
    """One process, and the only peer it listens to."""

    def __init__(self, python: str = "", profile: str = "default", avoid_collisions: bool = True) -> None:
        self._python = python
        self._settings = {"profile": profile, "avoid_collisions": avoid_collisions}
        self._lock = RLock()  # the driver homes in a thread of its own
        self._side: SideProcess | None = None
        self._reading = Reading()
        self._counter = 0

    @property
    def pid(self) -> int:
        """Of the process; 0 before it is started."""
        return self._side.child.pid if self._side is not None else 0

    def open(self) -> Hello:
        """Start the process and hear whether it has the robot. Raises RobotError in words."""
        python = self._python or found_python()
        side = self._side = SideProcess([python, "-E", str(ONBOARD)], "the process that speaks to stretch_body")
        process, key, endpoint = side.child, secrets.token_bytes(32), f"ipc://{side.folder}/body"
        assert process.stdin is not None
        settings = {**self._settings, "key": key.hex(), "endpoint": endpoint}
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(settings).encode() + b"\n")
            process.stdin.flush()
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PAIR)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.SNDHWM, 5)
        self._socket.connect(endpoint)
        hellos: Seal[Hello] = Seal(key, b"driver", b"body", Hello)
        self._seal: Seal[Reading] = Seal(key, b"driver", b"body", Reading)
        for _ in range(round(START_S / 0.1)):
            has_ended = process.poll() is not None
            frame = self._heard(wait_ms=100)
            if frame is not None or has_ended:
                break
        hello = hellos.open(frame) if frame is not None else None
        if hello is None or hello.problem:
            problem = hello.problem if hello else self.ended() or f"it did not answer within {START_S:g} s"
            self.close()
            raise RobotError(problem)
        return hello

    def exchange(self, goals: Goals | None, lease: int, verb: str = "", verb_number: int = 0) -> Reading:
        """Say what is wanted; the newest that the robot said."""
        with self._lock:
            if self._side is None:
                return self._reading
            self._counter += 1
            with suppress(zmq.Again):  # a process that hangs; its silence is seen by the age of its readings
                order = MotionOrder(self._counter, lease, goals, verb, verb_number)
                self._socket.send(self._seal.close(order), zmq.NOBLOCK)
            while (frame := self._heard(wait_ms=0)) is not None:
                reading = self._seal.open(frame)
                if reading is not None and reading.counter > self._reading.counter:
                    self._reading = reading
            return self._reading

    def ended(self) -> str:
        """Why the process is gone; nothing while it runs."""
        return self._side.ended() if self._side is not None else ""

    def close(self) -> None:
        """Let it hold everything and go; what is left of its group after a while is killed."""
        with self._lock:
            side, self._side = self._side, None
            if side is not None:
                side.close(END_S)
                self._socket.close()

    def _heard(self, wait_ms: int) -> bytes | None:
        self._socket.setsockopt(zmq.RCVTIMEO, wait_ms)
        try:
            return self._socket.recv()
        except zmq.Again:
            return None


def found_python() -> str:
    """A Python that has stretch_body and what else the process needs. Raises RobotError with what to do."""
    candidates = [str(OWN_ENVIRONMENT.expanduser()), sys.executable, "/usr/bin/python3.10", "python3.10", "python3"]
    for python in candidates:
        if shutil.which(python) and not lacking(python):
            return python
    raise RobotError(
        f"no Python here has {', '.join(NEEDS)} (looked at {', '.join(dict.fromkeys(candidates))}); docs/stretch.md, "
        "'The environment', says what to install"
    )


def lacking(python: str) -> list[str]:
    """Which of the modules that the process needs this Python does not find; imports none of them."""
    code = f"import importlib.util as u; print(*[n for n in {NEEDS!r} if u.find_spec(n) is None])"
    try:
        told = subprocess.run(
            [python, "-E", "-c", code], capture_output=True, text=True, timeout=20, env=foreign_environment()
        )
    except (OSError, subprocess.TimeoutExpired):
        return list(NEEDS)
    return told.stdout.split() if told.returncode == 0 else list(NEEDS)
