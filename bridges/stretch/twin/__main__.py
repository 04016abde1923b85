"""`python -m bridges.stretch.twin FOLDER --python PYTHON`: a Stretch 3 on this machine's pseudo-terminals.

Writes a fleet folder that names the terminals, says in one line of JSON which environment stretch_body needs, and then
takes one thing to do on each line of its standard input: {"do": "runstop", "value": true}; each is answered with how
the robot stands. Nothing of stretch_body is replaced. Ends when its input ends.
"""

from __future__ import annotations

import argparse
import errno
import heapq
import json
import os
import pty
import select
import subprocess
import sys
import tty
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bridges.stretch.twin.robot import BOARDS, BUSES, PORTS, STEP_S, TwinRobot
from bridges.stretch.twin.wire import BoardWire
from runtime.clock import SystemClock

CLOCK = SystemClock()
STALL_S = 0.11
FLEET_ID = "stretch-se3-0000"
_FLEET = """
import importlib.util, json, os, sys, yaml
folder, ports = sys.argv[1], json.loads(sys.argv[2])
where = importlib.util.find_spec("stretch_body").submodule_search_locations[0]
spec = importlib.util.spec_from_file_location("nominal", os.path.join(where, "robot_params_SE3.py"))
nominal = importlib.util.module_from_spec(spec); spec.loader.exec_module(nominal)
user = {"robot": {"use_collision_manager": 0},
        "pimu": {"usb_name": ports["pimu"]}, "wacc": {"usb_name": ports["wacc"]},
        "lift": {"usb_name": ports["lift"]}, "arm": {"usb_name": ports["arm"]},
        "base": {"usb_name_left_wheel": ports["left_wheel"], "usb_name_right_wheel": ports["right_wheel"]},
        "end_of_arm": {"usb_name": ports["end_of_arm"]}, "head": {"usb_name": ports["head"]}}
for name in ("wrist_yaw", "wrist_pitch", "wrist_roll", "stretch_gripper"):
    user[name] = {"usb_name": ports["end_of_arm"]}
for name in ("head_pan", "head_tilt"):
    user[name] = {"usb_name": ports["head"]}
for name, what in (("configuration", nominal.configuration_params_template), ("user", user)):
    with open(os.path.join(folder, f"stretch_{name}_params.yaml"), "w") as file:
        yaml.dump(what, file)
"""


def write_fleet(folder: Path, python: str, ports: dict[str, str]) -> None:
    """The folder with the calibration of a robot as it leaves the factory, its devices at these ports."""
    fleet = folder / FLEET_ID
    fleet.mkdir(parents=True, exist_ok=True)
    (folder / "log" / "stretch_body_logger").mkdir(parents=True, exist_ok=True)
    subprocess.run([python, "-E", "-c", _FLEET, str(fleet), json.dumps(ports)], check=True)


class Wires:
    """The pseudo-terminals, and what travels on them. One loop; no threads."""

    def __init__(self) -> None:
        self.robot = TwinRobot(CLOCK.now_s)
        self.ports: dict[str, str] = {}
        self._names: dict[int, str] = {}
        self._slaves: dict[str, int] = {}  # kept open: a port without a reader would hang up
        self._wires = {name: BoardWire(self.robot.calls[name]) for name in BOARDS}
        self._turned_s = CLOCK.now_s()
        self.stalls = 0
        self._due: list[tuple[float, int, bytes]] = []
        for name in PORTS:
            master, slave = pty.openpty()
            tty.setraw(slave)
            os.set_blocking(master, False)
            self.ports[name], self._names[master], self._slaves[name] = os.ttyname(slave), name, slave

    def pull(self, name: str) -> None:
        """Take a port away, as a USB cable that is pulled out."""
        for master in [number for number, known in self._names.items() if known == name]:
            del self._names[master]
            os.close(master)
            os.close(self._slaves.pop(name))

    def turn(self, inputs: Sequence[int]) -> list[int]:
        """Wait a moment, answer what came; which of `inputs` have something to read."""
        due_s = self._due[0][0] - CLOCK.now_s() if self._due else STEP_S
        ready, _, _ = select.select([*self._names, *inputs], [], [], min(max(due_s, 0.0), STEP_S))
        self.robot.step()
        now_s = CLOCK.now_s()
        # A servo never stalls: where this process did, its buses heard nothing, rather than answer too late.
        has_stalled = now_s - self._turned_s > STALL_S
        self.stalls += has_stalled
        self._turned_s = now_s
        for number in ready:
            name = self._names.get(number)
            if name is None:
                continue
            data = self._read(number)
            if not data or name in self.robot.silent or (has_stalled and name in BUSES):
                continue
            bus = self.robot.buses.get(name)
            answer, after_s = bus.feed(data) if bus else (self._wires[name].feed(data), 0.0)
            if answer:
                heapq.heappush(self._due, (now_s + after_s, number, answer))
        while self._due and self._due[0][0] <= CLOCK.now_s():
            _, number, answer = heapq.heappop(self._due)
            if number in self._names:
                os.write(number, answer)
        return [number for number in ready if number in inputs]

    @staticmethod
    def _read(number: int) -> bytes:
        try:
            return os.read(number, 4096)
        except OSError as problem:
            if problem.errno in (errno.EIO, errno.EAGAIN):
                return b""
            raise


def main(arguments: Sequence[str] | None = None) -> int:
    """Be a Stretch until the input ends."""
    parser = argparse.ArgumentParser(prog="python -m bridges.stretch.twin", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the fleet folder goes")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has stretch_body")
    chosen = parser.parse_args(arguments)
    with suppress(OSError):  # it stands for hardware, which waits for no processor
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    wires = Wires()
    write_fleet(chosen.folder, chosen.python, wires.ports)
    environment = {"HELLO_FLEET_PATH": str(chosen.folder), "HELLO_FLEET_ID": FLEET_ID}
    print(json.dumps(environment), flush=True)
    typed, waiting = sys.stdin.fileno(), b""
    while True:
        if not wires.turn([typed]):
            continue
        data = os.read(typed, 4096)
        if not data:
            return 0
        waiting += data
        while b"\n" in waiting:
            line, waiting = waiting.split(b"\n", 1)
            _do(wires, line)


def _do(wires: Wires, line: bytes) -> None:
    try:
        said = json.loads(line)
        if said["do"] == "pull":
            wires.pull(said["value"])
        elif said["do"] != "where":
            wires.robot.do(said["do"], said.get("value"))
        print(json.dumps({**wires.robot.where(), "stalls": wires.stalls}), flush=True)
    except (ValueError, KeyError, TypeError) as problem:
        print(json.dumps({"problem": str(problem)}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
