"""`TwinStretch`: the driver of a Stretch 3 above a twin that it starts; the body of that twin is somebody else's."""

from __future__ import annotations

import json
import logging
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bridges.stretch import calibration as measured
from bridges.stretch.link import found_python
from bridges.stretch.robot import StretchRobot, calibration_file
from nodes.msgs import JointVector
from nodes.robot.protocol import RobotError
from runtime.clock import NS_PER_S, SystemClock

WAIT_S = 0.004
"""So long a tick waits for where the twin is; what comes later is taken by the next one."""
MOST_UNANSWERED = 25
START_S, END_S = 20.0, 10.0
STARTS = 5
log = logging.getLogger("bridges.stretch.twin")

CALIBRATION = measured.Calibration(
    empty=[(-50.0, 30.0), (0.0, 4.0), (60.0, 4.0)], grasp_percent=measured.FELT_PERCENT, is_measured=True
)
"""What bring-up measures of a twin's gripper."""


class TwinProcess:
    """`python -m bridges.stretch.twin` as a child; `environment` leads stretch_body to it."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-m", "bridges.stretch.twin", str(folder), "--python", python]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0, start_new_session=True
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._waiting, self._unanswered = b"", 1
        found = self._answers(START_S)
        if not found:
            self.close()
            raise RobotError(f"the twin does not start: {' '.join(command)} says why")
        self.environment: dict[str, str] = found[-1]

    def do(self, what: str, value: object = None) -> dict[str, Any]:
        """Do something to it; how it stands. Raises RobotError where it does not answer, or does not know that."""
        self._say(what, value)
        stands: dict[str, Any] = {}
        while self._unanswered and (found := self._answers(END_S)):
            stands = found[-1]
        if self._unanswered or "problem" in stands:
            raise RobotError(f"the twin: {what!r}: {stands.get('problem', 'it does not answer')}")
        return stands

    def tell(self, what: str, value: object) -> dict[str, Any] | None:
        """The same, and waits for next to nothing; None where it has not answered since, or has ended."""
        if self._unanswered < MOST_UNANSWERED:
            with suppress(RobotError):  # its library says which boards do not answer
                self._say(what, value)
        found = self._answers(WAIT_S)
        return found[-1] if found else None

    def close(self) -> None:
        """Switch it off."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _say(self, what: str, value: object) -> None:
        try:
            os.write(self._input, json.dumps({"do": what, "value": value}).encode() + b"\n")
            self._unanswered += 1
        except BrokenPipeError as problem:
            raise RobotError("the twin has ended; end the run and start it again") from problem

    def _answers(self, wait_s: float) -> list[dict[str, Any]]:
        """What has come by then, the oldest first; none where it has ended."""
        while b"\n" not in self._waiting and select.select([self._output], [], [], wait_s)[0]:
            data = os.read(self._output, 65536)
            if not data:
                break
            self._waiting += data
        *lines, self._waiting = self._waiting.split(b"\n")
        self._unanswered -= len(lines)
        return [json.loads(line) for line in lines]


class PatientStretch(StretchRobot):
    """Started again, and told, where the twin had so little of this machine that it answered the library too late."""

    def start(self, now_ns: int) -> None:
        for left in reversed(range(STARTS)):
            try:
                super().start(now_ns)
            except RobotError as problem:
                if not left or "do not answer" not in str(problem):
                    raise
                log.warning("%s; asked again", problem)
            else:
                return


class TwinStretch(PatientStretch):
    """A Stretch 3 on this machine, calibrated as bring-up leaves it."""

    def __init__(self, speed: str = "default", python: str = "") -> None:
        self._python = python or found_python()
        super().__init__(speed, avoid_collisions=False, python=self._python)
        self._begins: JointVector = ()
        self.twin: TwinProcess | None = None

    def stand_at(self, position: JointVector) -> None:
        """Where its joints are when it is switched on."""
        self._begins = position

    def start(self, now_ns: int) -> None:
        """Switch the twin on and take hold of it. Raises RobotError in words, as in virtual time."""
        if abs(SystemClock().now_ns() - now_ns) > NS_PER_S:
            raise RobotError("the library above the twin does not wait for virtual time; run it without --virtual")
        twin = self.twin = TwinProcess(Path(tempfile.mkdtemp(prefix="polyrhythm-twin-")), self._python)
        try:
            os.environ.update(twin.environment)
            measured.save(calibration_file(), CALIBRATION)
            if self._begins:
                twin.do("stand_at", self._begins)
            super().start(now_ns)
        except BaseException:
            self.close()
            raise

    def embody(
        self, between_m: float | None, wheels_percent: float, blocked: Mapping[str, float]
    ) -> tuple[int, JointVector, JointVector, tuple[float, float], tuple[float, float]] | None:
        """Tell the motors what they meet; when, where and how fast joints and wheels are, or None: nothing new."""
        met = {"between_m": between_m, "wheels_percent": wheels_percent, "blocked": dict(blocked)}
        told = self.twin.tell("feel", met) if self.twin is not None else None
        if told is None:
            return None
        (left_m, right_m), (left_mps, right_mps) = told["wheels_m"], told["wheels_mps"]
        joints = tuple(told["position"]), tuple(told["velocity"])
        return told["stepped_ns"], *joints, (left_m, right_m), (left_mps, right_mps)

    def close(self) -> None:
        """Let go of the robot, and switch the twin off."""
        super().close()
        twin, self.twin = self.twin, None
        if twin is not None:
            twin.close()
            shutil.rmtree(twin.folder, ignore_errors=True)
