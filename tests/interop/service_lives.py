"""What a real systemd makes of `polyrhythm-stretch.service`, as root in the machine that `tests/interop/service` boots.

The robot is the twin of bridges/stretch/twin, behind the maker's library. Each claim is a line of what it prints; the
first that does not hold ends it with code 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOME = Path("/home/hello-robot")
UNIT = "polyrhythm-stretch"
STEP_S = 0.1
START_S, WATCHDOG_S, RESTART_S = 180.0, 15.0, 60.0
GRAPH = """
[nodes.driver]
use     = "nodes.robot.driver:Driver"
process = "robot"
params  = { robot = "bridges.stretch.robot:StretchRobot" }

[nodes.guard]
use     = "nodes.guard.node:Guard"
process = "robot"
params  = { arm = "manual" }

[nodes.reflex]
use     = "nodes.interrupts.reflex:Reflex"
process = "robot"

[nodes.policy]
use = "idle:Idle"
"""
IDLE = """
from nodes.msgs import JointCommand
from runtime import Node, Publisher

class Idle(Node):
    command = Publisher(JointCommand, "command")
"""


def told(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout.strip()


def of_account(*command: str) -> list[str]:
    become = ["/usr/bin/setpriv", "--reuid=hello-robot", "--regid=hello-robot", "--init-groups"]
    return [*become, "/usr/bin/env", f"HOME={HOME}", *command]


def polyrhythm(*words: str) -> Any:
    """What the command says in JSON, or None where it says nothing."""
    said = told(*of_account(str(HOME / ".venv/bin/polyrhythm"), *words, "--json"))
    return json.loads(said.splitlines()[0]) if said else None


def unit(name: str) -> str:
    return told("systemctl", "show", UNIT, "--property", name, "--value")


def waits_for(what: str, is_so: Callable[[], bool], within_s: float) -> None:
    begun_s = time.monotonic()
    while not is_so():
        if time.monotonic() - begun_s > within_s:
            print(f"NOT: {what}, within {within_s:g} s\n" + told("journalctl", "-u", UNIT, "-n", "60", "--no-pager"))
            sys.exit(1)
        time.sleep(STEP_S)
    print(f"{what}: after {time.monotonic() - begun_s:.1f} s", flush=True)


class Twin:
    """The robot, in a process of the account's."""

    def __init__(self) -> None:
        command = of_account(str(HOME / ".venv/bin/python"), "-m", "bridges.stretch.twin", str(HOME / "stretch_user"))
        self._process = subprocess.Popen(
            [*command, "--python", "/usr/bin/python3.10"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HOME,
        )  # fmt: skip
        self._line()

    def where(self, do: str = "where", value: bool | None = None) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, "value": value}) + "\n")
        self._process.stdin.flush()
        found = json.loads(self._line())
        left, right = found["wheels_m"]
        return {"lift": found["lift_m"], "arm": found["arm_m"], "left": left, "right": right}

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def is_up() -> bool:
    return unit("ActiveState") == "active"


def is_runstopped() -> bool:
    status = polyrhythm("echo", "robot/status", "--count", "1", "--for", "5")
    return status is not None and status["message"]["mode"] == "runstopped"


def is_disarmed() -> bool:
    state = polyrhythm("guard", "state", "--run", "robot")
    return state is not None and not state["is_armed"]


def dies(twin: Twin, signal: str, within_s: float) -> None:
    """The run is hurt: it is started again, the robot's own runstop is pressed, and nothing has moved."""
    before, pid = twin.where(), unit("MainPID")
    told("systemctl", "kill", "--kill-whom=main", "-s", signal, UNIT)
    waits_for(
        f"{signal} to the run: another one is up", lambda: is_up() and unit("MainPID") != pid, within_s + RESTART_S
    )
    waits_for("its own runstop is pressed", is_runstopped, 30.0)
    waits_for("the guard comes up disarmed", is_disarmed, 30.0)
    rests(twin, before)
    twin.where("runstop", False)


def rests(twin: Twin, before: dict[str, float]) -> None:
    moved_m = max(abs(now - before[name]) for name, now in twin.where().items())
    print(f"moved meanwhile: {moved_m * 1000:.2f} mm", flush=True)
    if moved_m > 0.001:
        print("NOT: a start moves nothing")
        sys.exit(1)


def main() -> int:
    twin = Twin()
    (HOME / "robot.toml").write_text(GRAPH)
    (HOME / "idle.py").write_text(IDLE)
    before = twin.where()
    told("systemctl", "start", "--no-block", UNIT)
    waits_for("started, and ready by its own word", is_up, START_S)
    print(told("systemd-analyze", "security", "--no-pager", UNIT).splitlines()[-1])
    waits_for("the guard comes up disarmed", is_disarmed, 30.0)
    rests(twin, before)
    dies(twin, "SIGSTOP", WATCHDOG_S)
    dies(twin, "SIGKILL", 0.0)
    told("systemctl", "stop", UNIT)
    waits_for("stopped, as success", lambda: (unit("ActiveState"), unit("Result")) == ("inactive", "success"), 20.0)
    left = told("pgrep", "-u", "hello-robot", "-af", "runtime|stretch_body|onboard").splitlines()
    print(f"processes that stayed: {len(left)}")
    (HOME / "robot.toml").write_text("[nodes.guard]\nuse = 'nodes.guard.node:Gard'\n")
    told("systemctl", "start", UNIT)
    waits_for("a launch file that is refused is not started", lambda: unit("ActiveState") == "failed", 120.0)
    print(told("journalctl", "-u", UNIT, "-n", "8", "--no-pager", "-o", "cat"))
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
