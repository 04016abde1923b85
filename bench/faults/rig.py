"""`Rig`: a running test graph with its motors, its black boxes, and hands that do it harm."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.faults.black_box import FOLDER_VARIABLE, Switchboard, bare_box, guard_box, motor_box
from bench.faults.nodes import MODES, SPEED_MPS
from nodes.msgs import TERMINAL, EStop, Utterance
from nodes.msgs.signature import order, token_of
from runtime.command_line.attach import Sender
from runtime.message import Message
from runtime.operating_system.real_time import ask_for_fifo, be_ordinary
from runtime.supervision.registry import FoundRun, find_runs

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE_S = 30.0
HOGS = 16
SENDER_PRIORITY = 10
RECENT_S = 20.0  # a process that was killed longer ago has worked for 10 s since then, however long it loaded
MOVING, HOLDING, STOPPED, ESTOPPED, RETREATING = (
    MODES.index(mode) for mode in ("moving", "holding", "stopped", "estopped", "retreating")
)
NODES = "bench.faults.nodes:"
GRAPH: dict[str, str] = {
    "driver": 'use = "nodes.robot.driver:Driver"\nprocess = "robot"\n'
    'params = { robot = "bench.faults.nodes:MotorRobot" }',
    "guard": f'use = "{NODES}WatchedGuard"\nprocess = "robot"\nparams = {{ arm = "auto", memory = "run" }}',
    "reflex": 'use = "nodes.interrupts.reflex:Reflex"\nprocess = "robot"',
    "neighbour": f'use = "{NODES}Neighbour"\nprocess = "robot"',
    "policy": f'use = "{NODES}SteadyPolicy"',
    "vlm": f'use = "{NODES}VLM"',
    "planner": f'use = "{NODES}Planner"',
    "camera": f'use = "{NODES}SmallCamera"',
    "recorder": 'use = "nodes.recording.recorder:Recorder"',
}


class FaultError(Exception):
    """The trial could not be made or the graph did what no figure describes; the text says what."""


class Rig:
    """One run of the test graph. `changes` replaces nodes' tables, or adds others ("seats.policy"), with FOLDER for its
    own folder, in which `prepare` puts what it needs; `out` is where it records.
    """

    def __init__(
        self,
        changes: Mapping[str, str] | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        out: str = "",
        prepare: Callable[[Path], None] = lambda place: None,
        prefix: tuple[str, ...] = (),
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="faults-"))
        prepare(self.folder)
        self.out = Path(out) if out else self.folder / "out"
        self.out.mkdir(exist_ok=True)
        self.switches = Switchboard(self.folder / "switches")
        self.guard, self.motors, self.bare = (make(self.folder) for make in (guard_box, motor_box, bare_box))
        self.output: deque[str] = deque(maxlen=400)
        self.kills: dict[str, deque[float]] = defaultdict(deque)  # of each process, when
        self.watched: dict[int, int] = {}
        self.moving_s = 0.0  # how long was waited for the robot to move, in all
        self._senders: dict[str, Sender] = {}
        state = {"XDG_STATE_HOME": str(self.folder / "state")}  # what is latched here is nobody else's
        self.environment = {**os.environ, FOLDER_VARIABLE: str(self.folder), **state, **(environment or {})}
        file = self.folder / "faults.toml"
        tables = {**GRAPH, **(changes or {})}
        names = {name: name if "." in name or name in ("run", "watchdog") else f"nodes.{name}" for name in tables}
        text = "\n".join(f"[{names[name]}]\n{table}\n" for name, table in tables.items())
        file.write_text(text.replace("FOLDER", str(self.folder)))
        command = [*prefix, sys.executable, "-m", "runtime", "run", str(file), "--out", str(self.out)]
        self._helpers = [self._python("bench.faults.motors"), self._python("bench.faults.motors", "bare")]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _python(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-m", module, str(self.folder), *arguments], cwd=ROOT)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output.append(line)

    # what goes on

    @property
    def run(self) -> FoundRun:
        """The run as tools see it."""
        for run in find_runs():
            if run.info.supervisor_pid == self.process.pid:
                return run
        raise FaultError("the run is not registered:\n" + self.tail())

    def tail(self) -> str:
        """What the run printed last."""
        return "".join(list(self.output)[-15:])

    def pid(self, name: str) -> int:
        """The process of that name; "supervisor" too."""
        return self.process.pid if name == "supervisor" else self.run.states()[name].pid

    def pids(self) -> list[int]:
        """All processes but the supervisor's."""
        return [state.pid for state in self.run.states().values()]

    def wait(self, what: str, is_so: object, within_s: float = PATIENCE_S) -> int:
        """Wait until `is_so()`; how long it took, in ns. Raises FaultError."""
        assert callable(is_so)
        start_ns = time.monotonic_ns()
        while not is_so():
            if time.monotonic_ns() - start_ns > within_s * 1e9:
                raise FaultError(f"{what}: not within {within_s:g} s; the run said:\n{self.tail()}")
            time.sleep(0.01)
        return time.monotonic_ns() - start_ns

    def is_moving(self) -> bool:
        """Whether the robot drives at full speed, now."""
        record = self.guard.last()
        is_fresh = record is not None and time.monotonic_ns() - record[0] < 200_000_000
        return bool(is_fresh and record and record[1] == MOVING and record[7] > SPEED_MPS - 0.01)

    def wait_mode(self, mode: int, since_ns: int, what: str) -> tuple[float, ...]:
        """The guard's first record of that mode since then. Raises FaultError where none comes within 5 s."""
        found: list[tuple[float, ...]] = []

        def is_there() -> bool:
            found[:] = [record for record in self.guard.since(since_ns) if record[1] == mode][:1]
            return bool(found)

        self.wait(what, is_there, 5.0)
        return found[0]

    def wait_moving(self) -> None:
        """Until the robot drives at full speed; lifts a stop first where there is one, also an emergency stop.

        Somebody presses and releases the runstop of a stopped robot before it is told to go on. The guard then knows
        no way back any more, which would take four seconds after each word of pain.
        """
        start = time.monotonic()
        while not self.is_moving():
            if self.process.poll() is not None:
                raise FaultError(f"the run ended:\n{self.tail()}")
            record = self.guard.last()
            mode = "" if record is None else MODES[int(record[1])]
            if mode == "estopped":
                self.rearm()
                time.sleep(0.1)
            elif mode == "stopped" and record is not None:
                has_let_go = not record[12]
                self.switches["runstop"], self.switches["button"] = int(not has_let_go), 0
                if has_let_go:
                    self.resume()
                time.sleep(0.05)
            if time.monotonic() - start > PATIENCE_S:
                raise FaultError(f"the robot never moved ({record}); the run said:\n{self.tail()}")
            time.sleep(0.02)
        for topic in ("heard", "estop"):
            self._sender(topic)  # connected before anything is frozen
        self.wait("the bare timer loop", lambda: self.bare.count > 0)
        self.moving_s += time.monotonic() - start

    def wait_moving_or_end(self) -> bool:
        """Whether it moves, rather than that the run ended by itself."""
        while self.process.poll() is None:
            if self.guard.count and self.is_moving():
                return True
            time.sleep(0.05)
        return False

    def wait_whole(self) -> None:
        """Until all processes run: one that was killed in the trial before may still load."""

        def is_whole() -> bool:
            runs = [run for run in find_runs() if run.info.supervisor_pid == self.process.pid]
            states = [state.state for run in runs for state in run.states().values()]
            if self.process.poll() is not None:
                raise FaultError(f"the run ended:\n{self.tail()}")
            return bool(states) and set(states) == {"running"}

        self.wait("all processes run", is_whole)

    def lateness_ms(self, start_ns: int) -> float:
        """Worst lateness of the bare timer loop since then."""
        late = [record[1] for record in self.bare.since(start_ns)]
        last = self.bare.last()
        return max([*late, 0.0 if last is None else (time.monotonic_ns() - last[0]) * 1e-6 - 20.0, 0.0])

    # what is done to it

    def say(self, text: str) -> int:
        """A person says something; the stamp of it."""
        return self._sender().publish(Utterance(speaker="Ana", text=text)).published_ns

    def hear(self, number: int) -> None:
        """The graph's own ears hear one of `bench.faults.nodes.WORDS`, counted from 1."""
        self.switches["heard"] = number
        time.sleep(0.1)  # five looks of the ears
        self.switches["heard"] = 0
        time.sleep(0.1)

    def press(self) -> int:
        """Somebody presses an emergency stop; the stamp of it."""
        return self._sender("estop").publish(EStop(source="button", is_pressed=True)).published_ns

    def rearm(self) -> None:
        """Whoever pressed lets go and re-arms; the robot then still stands."""
        for source in ("button", TERMINAL):
            self._sender("estop").publish(EStop(source=source, is_pressed=False))
        self.send("guard/order", order(token_of(self.run.folder), "rearm", "Ana", time.monotonic_ns()))

    def resume(self) -> None:
        """A person at a terminal lets it go on."""
        self.send("guard/order", order(token_of(self.run.folder), "resume", "Ana", time.monotonic_ns()))

    def send(self, topic: str, message: Message) -> None:
        """Publish anything."""
        self._sender(topic).publish(message)

    def _sender(self, topic: str = "heard") -> Sender:
        if topic not in self._senders:
            if topic == "estop":  # a button's program has real-time threads too, which those it starts inherit
                ask_for_fifo(SENDER_PRIORITY)
            try:
                self._senders[topic] = Sender(self.run, topic, provenance="person:test")
            finally:
                be_ordinary()
        return self._senders[topic]

    def send_signal(self, name: str, number: signal.Signals) -> int:
        """Send a signal to a process of the run; when."""
        pid = self.pid(name)
        if number == signal.SIGKILL:
            self.kills[name].append(time.monotonic())
        now_ns = time.monotonic_ns()
        os.kill(pid, number)
        return now_ns

    def wait_killed(self, name: str, pid: int, start_ns: int) -> float:
        """Wait until the supervisor has killed that process, frozen since `start_ns`, and another one runs; when it
        was killed, in ms.
        """

        def is_gone() -> bool:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 0)
                return False
            return True

        self.wait("the frozen process is killed", is_gone, 10.0)
        killed_ns = time.monotonic_ns()
        self.kills[name].append(time.monotonic())
        self.wait("the supervisor knows of it", lambda: self.pid(name) != pid)
        self.wait_whole()
        return (killed_ns - start_ns) * 1e-6

    @property
    def is_spent(self) -> bool:
        """Whether the supervisor would not restart one more process, or is gone."""
        now = time.monotonic()
        for kills in self.kills.values():
            while kills and now - kills[0] > RECENT_S:
                kills.popleft()
        return any(len(kills) >= 3 for kills in self.kills.values()) or self.process.poll() is not None

    def watch_children(self) -> None:
        """Remember the processes, to see later whether they are gone."""
        for pid in self.pids():
            if pid not in self.watched:
                with contextlib.suppress(ProcessLookupError):
                    self.watched[pid] = os.pidfd_open(pid)

    def are_children_gone(self) -> bool:
        """Of those watched."""
        return all(select.select([fd], [], [], 0)[0] for fd in self.watched.values())

    def cpu_s(self, name: str) -> float:
        """Processor time that a process has used."""
        fields = Path(f"/proc/{self.pid(name)}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self, name: str) -> float:
        """Resident memory of a process."""
        pages = int(Path(f"/proc/{self.pid(name)}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def recordings(self) -> list[Path]:
        """The files that the recorder has written, oldest first."""
        return sorted(self.out.rglob("*.mcap"), key=lambda path: path.stat().st_ctime_ns)

    def close(self) -> None:
        """End everything, whatever state it is in."""
        for sender in self._senders.values():
            sender.close()
        with contextlib.suppress(FaultError, KeyError):
            self.watch_children()
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGCONT)
            for pid in self.watched:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
            self.process.kill()
            self.process.wait()
        for pid, fd in self.watched.items():
            if not select.select([fd], [], [], 0)[0]:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
            os.close(fd)
        for helper in self._helpers:
            helper.kill()
            helper.wait()
        self._reader.join(5.0)
        assert self.process.stdout is not None
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def hogs(number: int = HOGS) -> Iterator[None]:
    """Busy loops in processes of their own."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for hog in running:
            hog.kill()
        for hog in running:
            hog.wait()
