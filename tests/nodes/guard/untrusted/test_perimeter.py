"""What another process of the same user does to a running graph through its sockets: it may ask, and it may stop.

Each attack is the raw one: it goes to the sockets themselves, under any name, past what the tools refuse.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.faults.rig import STOPPED, Rig
from nodes.guard.estop_signal import SIGNAL
from nodes.msgs import (
    DriverOrder,
    GuardState,
    Interrupt,
    JointCommand,
    RobotService,
    RobotState,
    RobotStatus,
    Utterance,
)
from nodes.msgs.signature import TOKEN_FILE
from nodes.stretch.limits import STOW
from runtime.clock import SystemClock
from runtime.command_line.attach import Sender
from runtime.coordination.fence import Fence
from runtime.coordination.lease import Lease
from runtime.errors import UserError
from runtime.message import Envelope, Message
from runtime.transport.taps import Injector
from tests.support.sentences import pattern

pytestmark = pytest.mark.processes

MANY = 1 << 40
EXCLUSIVE = ("robot/command", "driver/runstop", "driver/service", "robot/state", "robot/status", "guard/state", "lease",
             "fence", "guard/answer")  # fmt: skip


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    rig = Rig({"seats.policy": 'holder = "policy"'})
    try:
        yield rig
    finally:
        rig.close()


class Attacker:
    """Connects to every process of a run, as any program of this user can, and says anything under any name."""

    def __init__(self, rig: Rig) -> None:
        names = list(rig.run.info.processes)
        self.ways = {kind: Injector(rig.run.folder, kind, names) for kind in ("event", "state")}
        for way in self.ways.values():
            assert way.await_ready(5.0) == []
        self.seq = MANY

    def say(self, topic: str, message: Message, source: str, *, seat: str = "") -> None:
        self.seq += 1
        now_ns = SystemClock().now_ns()
        epochs = dict.fromkeys(("planner", "vlm", "policy"), MANY)
        envelope = Envelope(topic, source, self.seq, now_ns, origins={"utterance": now_ns}, epochs=epochs, seat=seat)
        self.ways[message.message_kind].publish(envelope, message)

    def say_all(self) -> None:
        """Once all that might move a robot that is stopped, or let it go on."""
        now_ns = SystemClock().now_ns()
        self.say("robot/command", JointCommand(position=STOW, base_v_mps=0.3), "guard")
        self.say("robot/state", RobotState(
            read_ns=now_ns, position=STOW, velocity=STOW, effort=STOW, base_x_m=0.0, base_y_m=0.0,
            base_heading_rad=0.0, base_v_mps=0.0, base_w_radps=0.0,
        ), "driver")  # fmt: skip
        self.say("robot/service", RobotService(id="x", verb="stow", by="anybody"), "console")
        self.say("robot/runstop", RobotService(id="x", verb="release", by="anybody"), "console")
        for source in ("reflex", "guard", "camera", "me-1"):
            self.say("interrupt", Interrupt(id="x", depth="resume", text="go on", by="Ana"), source)
            self.say("heard", Utterance(speaker="Ana", text="go on"), source)

    def close(self) -> None:
        for way in self.ways.values():
            way.close()


def unmoved(rig: Rig, start_ns: int) -> bool:
    """Whether the motors have stood since then."""
    records = rig.motors.since(start_ns)
    return bool(records) and abs(records[-1][3] - records[0][3]) < 1e-9


def test_nobody_takes_the_guards_word_from_a_forger_and_a_stop_stays_a_stop(rig: Rig) -> None:
    rig.wait_moving()
    attacker = Attacker(rig)
    try:
        for source in ("guard", "driver", "somebody"):
            attacker.say("lease", Lease(seat="policy", holder="nobody", number=MANY), source)
            attacker.say("fence", Fence(epochs=dict.fromkeys(("planner", "vlm", "policy"), MANY), depth="stop"), source)
            attacker.say("guard/state", GuardState(mode="disarmed", reason="forged"), source)
            attacker.say("robot/status", RobotStatus(read_ns=MANY, mode="runstopped", is_runstopped=True), source)
            attacker.say("driver/runstop", DriverOrder(verb="runstop", why="forged"), source)
        said_ns = SystemClock().now_ns()
        rig.wait(
            "half a second of commands: a lifespan, and a lost lease", lambda: len(rig.motors.since(said_ns)) >= 25
        )
        rig.wait("the robot goes on as if nothing had been said", rig.is_moving, 5.0)

        start_ns = rig.say("Stop!")
        rig.wait_mode(STOPPED, start_ns, "stopped")
        rig.wait("at rest", lambda: rig.motors.last() is not None and abs((rig.motors.last() or (0, 0, 1))[2]) < 1e-9)
        rest_ns = SystemClock().now_ns()
        for step in range(1, 51):  # of the robot's driver, at 50 Hz: for a second, ten times as fast as it
            for _ in range(10):
                attacker.say_all()
            rig.wait("the driver's next step", lambda step=step: len(rig.motors.since(rest_ns)) >= step)
        record = rig.guard.last()
        assert record is not None
        assert record[1] == STOPPED
        assert unmoved(rig, rest_ns)
        assert rig.process.poll() is None
    finally:
        attacker.close()
    rig.wait_moving()  # by a person's signature, and nothing is worn out


@pytest.mark.parametrize("topic", EXCLUSIVE)
def test_tools_are_told_who_alone_publishes_there(rig: Rig, topic: str) -> None:
    owner = "driver" if topic in ("robot/state", "robot/status") else "guard"
    with pytest.raises(UserError, match=pattern("guard.may_publish", who=owner, topic=topic)):
        Sender(rig.run, topic, provenance="person")


ANOTHER_USER = 65534


def refused(what: Path, guard_pid: int) -> list[str]:
    """What of a run this process may not touch."""
    found = []
    for name in sorted(os.listdir(what)) if os.access(what, os.R_OK | os.X_OK) else ("view",):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            try:
                door.connect(str(what / name))
            except PermissionError:
                found.append("sockets")
            except OSError:
                pass
    try:
        (what / TOKEN_FILE).read_bytes()
    except PermissionError:
        found.append("token")
    for number in (SIGNAL or signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(guard_pid, number)
        except PermissionError:
            found.append(signal.Signals(number).name if number == signal.SIGKILL else "e-stop")
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="to become another user needs root")
def test_another_user_of_this_machine_reads_nothing_stops_nothing_and_signs_nothing(rig: Rig) -> None:
    rig.wait_moving()
    folder, guard_pid = rig.run.folder, rig.pid("robot")
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setgid(ANOTHER_USER)
        os.setuid(ANOTHER_USER)
        os.write(writing, json.dumps(refused(folder, guard_pid)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        found = json.loads(told.read())
    os.waitpid(child, 0)
    assert found == ["sockets", "token", "e-stop", "SIGKILL"]
    assert rig.is_moving()
