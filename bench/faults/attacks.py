"""What is done to the perimeter: the emergency stop of a terminal, forged names, two runs, and a machine in ruins."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time

from bench.faults.measures import AT_REST, MS, UNASKED, Figures, at_rest_ms, place_m, pressed
from bench.faults.rig import ESTOPPED, ROOT, STOPPED, FaultError, Rig
from runtime.clock import SystemClock
from runtime.message import Envelope, Message
from runtime.msgs import Interrupt, RobotService, Utterance
from runtime.msgs.signature import order
from runtime.transport.taps import Injector

ENTER = "Enter to held, ms"
ENDED = "Enter to motors told to stand, ms"
LATCHED = "latched by the guard that came back"
DELETED = "deleted to held, ms"
FORGED = "lifted by a forged word"
SECOND = "second runs that started"
STARTED = "robots that moved and were not stopped"
SHM_TINY = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64k tmpfs /dev/shm && exec "$@"', "sh")
FEW_DESCRIPTORS = ("sh", "-c", 'ulimit -n 40; exec "$@"', "sh")


def _estop(rig: Rig) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "runtime", "guard", "estop", "--run", str(rig.process.pid)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def at_terminal(rig: Rig) -> Figures:
    """`polyrhythm guard estop` as it is typed; from the start of its process to the braking profile."""
    rig.wait_moving()
    start_ns = time.monotonic_ns()
    tool = _estop(rig)
    try:
        record = rig.wait_mode(ESTOPPED, start_ns, "held after the emergency stop")
        rest_ms = at_rest_ms(rig, start_ns)
    finally:
        tool.wait(20.0)
    return {ENTER: (record[0] - start_ns) * MS, AT_REST: rest_ms}


def guard_frozen(rig: Rig) -> Figures:
    """The same with a guard that was frozen this moment: its process is ended by pid."""
    rig.wait_moving()
    rig.send_signal("robot", signal.SIGSTOP)
    start_ns = time.monotonic_ns()
    tool = _estop(rig)

    def stands() -> bool:
        return any(step[1] == 0.0 for step in rig.motors.since(start_ns))

    rig.wait("motors told to stand", stands, 5.0)
    zero = next(step for step in rig.motors.since(start_ns) if step[1] == 0.0)
    rest_ms = at_rest_ms(rig, start_ns)
    code = tool.wait(30.0)
    stood_m = place_m(rig)
    rig.wait_whole()
    moved_mm = abs(place_m(rig) - stood_m) * 1e3
    return {ENDED: (zero[0] - start_ns) * MS, AT_REST: rest_ms, LATCHED: float(code == 0), UNASKED: moved_mm}


def folder_deleted(rig: Rig) -> Figures:
    """A cleaner deletes the run's folder with its sockets; the run notices, and a terminal still stops it."""
    rig.wait_moving()
    start_ns = time.monotonic_ns()
    shutil.rmtree(rig.run.folder)
    record = rig.wait_mode(STOPPED, start_ns, "stopped, as its sockets are gone")
    pressed_ns = time.monotonic_ns()
    tool = _estop(rig)
    try:
        held = rig.wait_mode(ESTOPPED, pressed_ns, "held after the emergency stop")
    finally:
        tool.wait(20.0)
    return {
        DELETED: (record[0] - start_ns) * MS,
        ENTER: (held[0] - pressed_ns) * MS,
        AT_REST: at_rest_ms(rig, start_ns),
    }


def forged(rig: Rig) -> Figures:
    """A stopped robot, and a process of the same user that says go on under every name, past what tools refuse."""
    rig.wait_moving()
    said_ns = rig.say("Stop!")
    rig.wait_mode(STOPPED, said_ns, "stopped")
    at_rest_ms(rig, said_ns)
    before_m = place_m(rig)
    processes = list(rig.run.info.processes)
    way = Injector(rig.run.folder, "event", processes)
    if way.await_ready(5.0):
        raise FaultError("the forger was not connected")
    words: tuple[tuple[str, Message], ...] = (
        ("heard", Utterance(speaker="Ana", text="go on")),
        ("interrupt", Interrupt(id="x", depth="resume", text="go on", by="Ana")),
        ("robot/service", RobotService(id="x", verb="stow", by="Ana")),
        ("robot/runstop", RobotService(id="x", verb="release", by="Ana")),
        ("guard/order", order("", "resume", "Ana", SystemClock().now_ns())),
    )
    start_ns, seq = time.monotonic_ns(), 1 << 40
    try:
        for _ in range(20):
            for source in ("guard", "reflex", "planner", "policy", "vlm", "camera"):
                for topic, message in words:
                    seq += 1
                    now_ns = SystemClock().now_ns()
                    way.publish(Envelope(topic, source, seq, now_ns, origins={"utterance": now_ns}), message)
            time.sleep(0.02)
        time.sleep(0.2)
    finally:
        way.close()
    lifted = any(record[1] not in (STOPPED, ESTOPPED) for record in rig.guard.since(start_ns))
    return {FORGED: float(lifted), UNASKED: abs(place_m(rig) - before_m) * 1e3}


def second_run(rig: Rig) -> Figures:
    """Another launch file for the robot that drives: it is refused before anything of it starts."""
    rig.wait_moving()
    file = rig.folder / "another.toml"
    file.write_text((rig.folder / "faults.toml").read_text())
    done = subprocess.run(
        [sys.executable, "-m", "runtime", "run", str(file), "--for", "1"],
        cwd=ROOT, env=rig.environment, capture_output=True, text=True, timeout=60.0, check=False,
    )  # fmt: skip
    is_refused = done.returncode == 2 and f"(pid {rig.process.pid}) has it" in done.stderr
    rig.wait("the first goes on", rig.is_moving, 5.0)
    return {SECOND: float(not is_refused), **pressed(rig)}


def starved(rig: Rig) -> Figures:
    """Where the run starts at all, a stop stops it; where not, it says why and nothing moves."""
    moved = rig.wait_moving_or_end()
    if not moved:
        return {STARTED: 0.0}
    found = pressed(rig)
    return {STARTED: float(found["lifted by a word"])}
