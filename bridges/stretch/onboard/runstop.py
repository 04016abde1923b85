"""Presses a Stretch's runstop after a run that did not end by itself; systemd runs it (`polyrhythm-stretch.service`).

By path and on the robot's own Python, like the process that speaks to stretch_body; by then nobody else does.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from pathlib import Path

ENDED_BY_ITSELF = ("success", "exit-code")
"""Of a run that ended so everything was held; systemd says it in SERVICE_RESULT."""
SEEN_WITHIN_S = 2.0
GONE_WITHIN_S = 2.0


def main() -> int:
    """0 where it is pressed, or need not be; 1 where nobody can say so."""
    result = os.environ.get("SERVICE_RESULT", "")
    if result in ENDED_BY_ITSELF:
        return 0
    end_what_is_left()
    try:
        pimu = importlib.import_module("stretch_body.pimu").Pimu()
    except (Exception, SystemExit) as problem:  # noqa: BLE001  # it reads the environment and files, and may exit
        print(f"the runstop is not pressed: stretch_body does not load: {problem}", file=sys.stderr)
        return 1
    if not pimu.startup():
        print("the runstop is not pressed: the power board (hello-pimu) does not answer", file=sys.stderr)
        return 1
    try:
        until_s = time.monotonic() + SEEN_WITHIN_S
        while time.monotonic() < until_s:
            pimu.runstop_event_trigger()
            pimu.push_command()
            pimu.pull_status()
            if pimu.status["runstop_event"]:
                print(
                    f"the run ended by {result or 'nobody knows what'}: the runstop is pressed; release it at the robot"
                )
                return 0
        print(f"the runstop is not seen to be pressed within {SEEN_WITHIN_S:g} s", file=sys.stderr)
        return 1
    finally:
        pimu.stop()


def end_what_is_left() -> None:
    """Kill what remains of the service: the power board has one port, and systemd kills only after this program."""
    until_s = time.monotonic() + GONE_WITHIN_S
    while (left := [pid for pid in _of_the_service() if pid != os.getpid()]) and time.monotonic() < until_s:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # ended meanwhile
        time.sleep(0.02)


def _of_the_service() -> list[int]:
    """Processes of the service's control group; none where systemd did not start this very program."""
    if os.environ.get("SYSTEMD_EXEC_PID") != str(os.getpid()):
        return []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, kind, path = line.split(":", 2)
        members = Path("/sys/fs/cgroup", kind.partition("=")[2], path.lstrip("/"), "cgroup.procs")
        if kind in ("", "name=systemd") and path.endswith(".service") and members.exists():
            return [int(pid) for pid in members.read_text().split()]
    return []


if __name__ == "__main__":
    sys.exit(main())
