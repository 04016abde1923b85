"""One child process of a run: start, ready, go, and the stop ladder on its group; programs beside a run."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from runtime.errors import with_remedy
from runtime.supervision.fork_server import ForkedProcess, ForkError, ForkServer, environment

Events = Callable[["ChildProcess", dict[str, Any]], None]

_PIPE_BYTES = 1 << 20
_FRAME = re.compile(r'  File "(.+)", line (\d+) in (\S+)')
"""A line of what Python's faulthandler writes where a process crashes, the innermost first."""
_ABORT = re.compile(r"(.+) \(\S*src/\w+\.[ch]pp:\d+\)$")
"""What libzmq writes before it ends the process, such as "Too many open files (src/ipc_listener.cpp:297)"."""


@cache
def _libraries() -> tuple[str, ...]:
    from sysconfig import get_path  # not at the top: only a crash asks

    return tuple(os.path.realpath(path) + os.sep for path in {get_path("stdlib"), get_path("platlib")})


class ChildProcess:
    """A process of a run, with the pipes to and from it; `on_event` gets what it reports, `exited` marks its end."""

    def __init__(
        self,
        name: str,
        folder: Path,
        on_event: Events,
        held: tuple[int, ...] = (),
        mark: str = "",
        server: ForkServer | None = None,
    ) -> None:
        """`held` are file descriptors that it keeps open while it lives. `mark` is one more argument, by which tools
        find it. `server` forks it; None starts it afresh.
        """
        self.name = name
        self._held = held
        self._marks = (mark,) if mark else ()
        self._server = server
        self._folder = folder
        self._on_event = on_event
        self._process: asyncio.subprocess.Process | ForkedProcess | None = None
        self._orders_fd = -1
        self._tasks: list[asyncio.Task[None]] = []
        self.exited = asyncio.Event()
        self.failure = ""  # what it told before it failed
        self.crashed_at = ""
        """The line of Python at which it crashed: the innermost outside of libraries, where there is one."""
        self._is_in_crash = False
        self.killed_for = ""
        """Why the supervisor killed it."""
        self.aborted = ""
        """What libzmq said before it gave up, with what to do."""

    @property
    def pid(self) -> int:
        """Its process id; 0 before the start."""
        return self._process.pid if self._process else 0

    async def start(self) -> None:
        """Start it in a session and a process group of its own, with the modules that this process finds."""
        self.exited.clear()
        self.failure = self.crashed_at = self.aborted = self.killed_for = ""
        self._is_in_crash = False
        orders_read, self._orders_fd = os.pipe()
        (events_read, events_write), (output_read, output_write) = os.pipe(), os.pipe()
        try:
            self._process = await self._make(output_write, (orders_read, events_write, *self._held))
        finally:
            for fd in (orders_read, events_write, output_write):
                os.close(fd)
        self._tasks = [
            asyncio.create_task(self._read_events(await lines_of(events_read)), name=f"{self.name}-events"),
            asyncio.create_task(self._read_output(await lines_of(output_read)), name=f"{self.name}-output"),
        ]
        self._tasks.append(asyncio.create_task(self._await_exit(self._tasks[:]), name=f"{self.name}-exit"))

    async def _make(self, output: int, fds: tuple[int, ...]) -> asyncio.subprocess.Process | ForkedProcess:
        """Fork it, or start it afresh; the first two of `fds` are its control pipes."""
        if self._server is not None:
            try:
                return await self._server.fork((str(self._folder), self.name, *self._marks), output, fds)
            except ForkError as problem:
                text = f"{self.name} is started afresh and not forked, which takes longer: {problem}"
                self._on_event(self, {"event": "log", "level": "warning", "source": "supervisor", "text": text})
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-u", "-m", "runtime.supervision.process_main"),
            *(str(self._folder), self.name, *map(str, fds[:2]), *self._marks),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=fds,
            start_new_session=True,
            env=environment(),
        )

    def order(self, order: str, **fields: object) -> None:
        """Tell it to "go" or "stop", that what it sends is "refused", or how the run "ended"."""
        try:
            os.write(self._orders_fd, json.dumps({"do": order, **fields}).encode() + b"\n")
        except OSError:
            pass  # it has gone; `exited` tells

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its process group."""
        if not self.pid:
            return  # not started yet; group 0 would be our own
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # it has gone; `exited` tells

    async def stop(self, patience_s: float) -> None:
        """Ask it to stop, then terminate it, then kill it with its process group, until it is gone."""
        if self._process is None:
            return
        self.order("stop")
        for number, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 1.0)):
            try:
                await asyncio.wait_for(self.exited.wait(), wait_s)
                break
            except TimeoutError:
                if number == signal.SIGKILL:
                    self.killed_for = f"it did not end within {patience_s + wait_s:g} s"
                self.signal(number)
        await self.exited.wait()

    async def _read_events(self, stream: asyncio.StreamReader) -> None:
        while line := await stream.readline():
            event = json.loads(line)
            if event["event"] == "failed":
                self.failure = event["text"]
            self._on_event(self, event)

    async def _read_output(self, stream: asyncio.StreamReader) -> None:
        """What it prints, line by line; a library may write here, a crash leaves its traceback here."""
        while True:
            try:
                line = await stream.readline()
            except ValueError:
                continue  # longer than the buffer: that part is lost
            if not line:
                return
            text = line.decode(errors="replace").rstrip()
            self._note_crash(text)
            self._on_event(self, {"event": "log", "level": "output", "source": self.name, "text": text})

    def _note_crash(self, line: str) -> None:
        if line.startswith("Current thread "):
            self._is_in_crash, self.crashed_at = True, ""
        elif found := _ABORT.match(line):
            self.aborted = with_remedy(found[1])
        elif not (found := _FRAME.match(line)):
            self._is_in_crash = False
        elif self._is_in_crash:
            file, number, function = found.groups()
            is_own = not os.path.realpath(file).startswith(_libraries())
            if is_own or not self.crashed_at:
                self.crashed_at = f"{function} ({os.path.basename(file)}:{number})"
            self._is_in_crash = not is_own

    async def _await_exit(self, readers: list[asyncio.Task[None]]) -> None:
        assert self._process is not None
        await self._process.wait()
        await asyncio.wait(readers, timeout=0.5)  # a grandchild may hold the pipes open
        for reader in readers:
            reader.cancel()
        os.close(self._orders_fd)
        self._orders_fd = -1  # the number may soon be another pipe's
        self.exited.set()
        self._on_event(self, {"event": "exited", "code": self._process.returncode})


async def start_command(
    arguments: Sequence[str], output: int, server: ForkServer | None
) -> asyncio.subprocess.Process | ForkedProcess:
    """Start `polyrhythm` with these arguments and this output: forked, or afresh where there is no server."""
    if server is not None:
        try:
            return await server.fork(arguments, output, program="runtime.cli")
        except ForkError:
            pass
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "runtime", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    )


async def lines_of(fd: int) -> asyncio.StreamReader:
    """The lines that come through this pipe."""
    stream = asyncio.StreamReader(limit=_PIPE_BYTES)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(fd, "rb"))
    return stream


AGAIN_S, LONGEST_AGAIN_S, LIVES_S = 0.2, 3.0, 10.0
"""The wait before the next start, doubled up to the longest; one that has lived for `LIVES_S` begins anew."""


class SideProgram:
    """One process after another while the run goes on."""

    def __init__(
        self,
        command: tuple[str, ...],
        heard: Callable[[], None],
        tell: Callable[[str], None],
    ) -> None:
        self._command = (sys.executable, "-I", "-S", *command)
        self._heard, self._tell = heard, tell
        self.pid = 0

    async def keep(self) -> None:
        """Until it is cancelled; then the program is ended."""
        wait_s, loop = AGAIN_S, asyncio.get_running_loop()
        while True:
            began_s = loop.time()
            code = await self._live()
            wait_s = AGAIN_S if loop.time() - began_s > LIVES_S else min(2 * wait_s, LONGEST_AGAIN_S)
            self._tell(f"it ended ({code}) and is started again")
            await asyncio.sleep(wait_s)

    async def _live(self) -> int:
        output_read, output_write = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output_write,
                stderr=output_write,
                start_new_session=True,  # Ctrl-C is the run's
            )
        finally:
            os.close(output_write)
        self.pid = process.pid
        try:
            async for line in await lines_of(output_read):
                self._heard()
                if text := line.decode(errors="replace").rstrip():
                    self._tell(text)
            return await process.wait()
        finally:
            with suppress(ProcessLookupError):
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)  # it holds nothing
            await process.wait()

    def kill(self) -> None:
        """End it where it is frozen."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
