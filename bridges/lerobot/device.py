"""`LeRobotDevice`: one robot, teleoperator or camera of LeRobot's in its own process: opened, heard, told, closed.

The process runs in LeRobot's Python (`bridges/lerobot/side`, docs/decisions/lerobot-python.md). It is heard without
waiting, and what it has no room for is dropped: a bus that hangs, or a process that is frozen, never stops the driver.
"""

from __future__ import annotations

import json
import math
import os
import select
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from bridges.side_process import SideProcess
from nodes.robot.protocol import RobotError
from runtime.clock import SystemClock, to_ns, to_s
from runtime.errors import UserError
from runtime.operating_system.processes import foreign_environment

Kind = Literal["robot", "teleoperator", "hand", "camera"]
Setting = int | float | str | bool

SIDE = Path(__file__).with_name("side") / "device.py"
ENVIRONMENT = Path("~/.local/share/polyrhythm/lerobot")
"""Where `polyrhythm lerobot install` makes it."""
WHOLE = "polyrhythm.json"
"""A file in there, written when all is installed."""
CONNECT_S = 30.0
"""LeRobot imports for 5 to 15 s; then a device connects, or hangs."""
CLOSE_S = 2.0
BEAT_LOST_S = 0.5
"""A process that lives says so every 0.05 s."""
HANGS_S = 0.5
"""A bus answers in some ms."""


class DeviceHello(msgspec.Struct, frozen=True):
    """What a device says of itself once it is connected."""

    joints: dict[str, JointHello] = {}
    actions: tuple[str, ...] = ()
    calibrated: bool = True
    moved: tuple[str, ...] = ()
    """Its keys whose motors were elsewhere after it had connected than before."""
    before: dict[str, float] = {}
    """What one without a bus of LeRobot's measured before it connected, where it did."""
    watched: bool = True
    """Whether its encoders are read before it connects, so that motion inside LeRobot's `connect()` is seen."""
    motors: bool = False
    """Of a leader: whether its motors can be sent somewhere."""


class JointHello(msgspec.Struct, frozen=True):
    """What LeRobot knows of one of its numbers."""

    mode: str = ""
    """How it is normalised: "degrees", "range_m100_100", "range_0_100"; "": not known."""
    turn: int = 0
    """Steps of the motor's encoder in a turn; 0: not known."""
    range: tuple[int, int] | None = None
    """Its ends by calibration, in these steps."""


class DeviceReading(msgspec.Struct, frozen=True):
    """What a device measured; `ns` is no later than any of it."""

    ns: int = 0
    at: dict[str, float] = {}
    lacking: tuple[str, ...] = ()
    """Keys that had no finite number this time."""


class DeviceFrame(msgspec.Struct, frozen=True):
    """A picture as a camera of LeRobot's gave it."""

    ns: int
    shape: tuple[int, ...]
    kind: str
    data: bytes


class DeviceLink(Protocol):
    """The way to a robot of LeRobot's; tests have one without a process."""

    def open(self) -> DeviceHello:
        """Connect it, which is not to move it. Raises RobotError in words."""
        ...

    def exchange(self, goal: Mapping[str, float] | None = None, until_ns: int = 0) -> DeviceReading:
        """Say what is wanted and until when, or nothing; the newest that was measured. Waits for nothing."""
        ...

    @property
    def is_there(self) -> bool:
        """Whether anything is there that could answer."""
        ...

    def why_silent(self, now_ns: int) -> str:
        """Why nothing is measured now; nothing while all is well."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class LeRobotDevice:
    """The device of that type, with the settings of LeRobot's configuration class."""

    def __init__(self, kind: Kind, type_: str, settings: Mapping[str, Setting], python: str = "") -> None:
        self._kind, self._type, self._settings, self._python = kind, type_, dict(settings), python
        self._clock = SystemClock()
        self._side: SideProcess | None = None
        self._rest, self._needed = bytearray(), 0
        self._reading = DeviceReading()
        self._frame: DeviceFrame | None = None
        self._hello: DeviceHello | None = None
        self._problem = self._fault = ""
        self._alive_ns = self._since_ns = 0
        self._doing = ""

    def libraries(self) -> tuple[str, ...]:
        """What a node's `libraries` says."""
        return own_libraries(self._python)

    @property
    def pid(self) -> int:
        """Of its process; 0 before it is opened."""
        return self._side.child.pid if self._side is not None else 0

    def open(self) -> DeviceHello:
        """Start its process and wait until it is connected. Raises RobotError in words."""
        return self._open([self._kind, self._type, json.dumps(self._settings)])

    def described(self) -> DeviceHello:
        """What LeRobot knows of it; it is not connected. Raises RobotError."""
        try:
            return self._open(["facts", self._kind, self._type, json.dumps(self._settings)])
        finally:
            self.close()

    def _open(self, words: list[str]) -> DeviceHello:
        python = found_python(self._python)
        try:
            # -I: neither this folder nor the user's own packages come before those of that environment
            side = SideProcess([python, "-I", str(SIDE), *words], "LeRobot's process", answers=True)
        except OSError as problem:
            raise RobotError(f"{python}: cannot be started ({problem.strerror})") from problem
        self._side = side
        assert side.child.stdin is not None
        assert side.child.stdout is not None
        for pipe in (side.child.stdin, side.child.stdout):
            os.set_blocking(pipe.fileno(), False)
        until_ns = self._clock.now_ns() + to_ns(CONNECT_S)
        while not (self._hello or self._problem) and self._clock.now_ns() < until_ns:
            ended = side.ended()  # before: what it said last is heard all the same
            self.wait(0.05)
            if ended:
                break
        if self._hello is not None:
            return self._hello
        doing = f" ({self._doing})" if self._doing else ""
        why = self._problem or side.ended() or f"it has not connected within {CONNECT_S:g} s{doing}; is its cable in?"
        self._end(0.0 if not self._problem else CLOSE_S)
        raise RobotError(f"{self._kind} {self._type} of LeRobot: {why}")

    def exchange(self, goal: Mapping[str, float] | None = None, until_ns: int = 0) -> DeviceReading:
        """Say what is wanted and until when that counts, or nothing; the newest that was measured."""
        side = self._side
        if goal and side is not None and side.child.stdin is not None:
            try:
                words = {"goal": dict(goal), "until": until_ns}
                os.write(side.child.stdin.fileno(), json.dumps(words).encode() + b"\n")
            except (BlockingIOError, BrokenPipeError):
                pass  # frozen, or gone: `why_silent` tells
        self.wait(0.0)
        return self._reading

    @property
    def is_there(self) -> bool:
        """Whether its process runs."""
        return self._side is not None and self._side.child.poll() is None

    def wait(self, seconds: float) -> None:
        """Take in what it has said, or is about to say within that time."""
        side = self._side
        if side is None or side.child.stdout is None:
            return
        pipe = side.child.stdout.fileno()
        while select.select([pipe], [], [], seconds)[0]:
            seconds = 0.0
            data = os.read(pipe, 1 << 20)
            if not data:
                return
            self._rest += data
            while self._take():
                pass

    def take_frame(self) -> DeviceFrame | None:
        """The newest picture that was not taken yet."""
        frame, self._frame = self._frame, None
        return frame

    def _take(self) -> bool:
        """Whether there was a whole message."""
        end = self._rest.find(b"\n") + 1
        if not end or len(self._rest) < self._needed:
            return False
        try:
            words: dict[str, Any] = json.loads(self._rest[:end])
        except ValueError:
            del self._rest[:end]  # what a full pipe has cut
            return True
        if "frame" in words:
            shape = tuple(words["frame"])
            self._needed = end + int(words["kind"][2:]) * math.prod(shape)
            if len(self._rest) < self._needed:
                return False
            self._frame = DeviceFrame(words["ns"], shape, words["kind"], bytes(self._rest[end : self._needed]))
            self._fault, end, self._needed = "", self._needed, 0
        del self._rest[:end]
        if "at" in words:
            self._fault = ""
            self._reading = DeviceReading(words["ns"], words["at"], tuple(words["lacking"]))
        elif "alive" in words:
            self._alive_ns, self._doing, self._since_ns = words["alive"], words["doing"], words["since"]
        elif "hello" in words:
            self._hello = msgspec.convert(words["hello"], DeviceHello)
            self._alive_ns = self._since_ns = 0  # what it did until then is over
        self._fault = words.get("fault", self._fault)
        self._problem = words.get("problem", self._problem)
        return True

    def why_silent(self, now_ns: int) -> str:
        """Why nothing is measured now; nothing while all is well."""
        if self._side is None:
            return "it is not open"
        if ended := self._side.ended():
            return f"{ended}; end the run and start it again"
        if self._fault:
            return f"LeRobot's device says: {self._fault}"
        if self._reading.lacking:
            return f"LeRobot's device gave no number for {', '.join(self._reading.lacking)}"
        if self._alive_ns and to_s(now_ns - self._alive_ns) > BEAT_LOST_S:
            return f"LeRobot's process has not run for {BEAT_LOST_S:g} s"
        if self._alive_ns and to_s(self._alive_ns - self._since_ns) > HANGS_S:
            return f"LeRobot's device has not come back from {self._doing} for {HANGS_S:g} s"
        return ""

    def close(self) -> None:
        """Let it stay where it is and let go of it; a process that hangs is killed."""
        self._end(CLOSE_S)

    def _end(self, within_s: float) -> None:
        side, self._side = self._side, None
        if side is not None:
            side.close(within_s)


def environment_python() -> Path:
    """The Python of the environment that `polyrhythm lerobot install` makes, whether it is there or not."""
    return ENVIRONMENT.expanduser() / "bin" / "python"


def found_python(named: str = "") -> str:
    """LeRobot's Python: the one named, or that of the environment. Raises RobotError with what to do."""
    if named:
        if shutil.which(named) is None:
            raise RobotError(f"python is {named!r}: there is no such program; name that of LeRobot's environment")
        return named
    python = environment_python()
    if python.exists() and (ENVIRONMENT.expanduser() / WHOLE).is_file():
        return str(python)
    raise RobotError(f"there is no LeRobot in {ENVIRONMENT}: polyrhythm lerobot install, or say python=")


def own_libraries(python: str = "") -> tuple[str, ...]:
    """LeRobot's own, where there is no Python that has it."""
    try:
        found_python(python)
    except RobotError:
        return ("lerobot",)
    return ()


def known_types() -> dict[str, list[str]]:
    """The types of devices that LeRobot and its plug-ins know there, by kind. Raises UserError."""
    command = [found_python(""), "-I", str(SIDE), "known"]
    try:
        told = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=CONNECT_S * 2, env=foreign_environment()
        )
        words = json.loads(told.stdout.strip().splitlines()[-1])["known"] if told.returncode == 0 else None
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError, KeyError) as problem:
        raise UserError(f"{command[0]}: LeRobot does not tell what it knows ({problem})") from problem
    if words is None:
        last = (told.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        raise UserError(f"{command[0]}: LeRobot cannot be asked: {last[:300]}")
    return msgspec.convert(words, dict[str, list[str]])
