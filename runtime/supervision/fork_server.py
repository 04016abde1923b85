"""The process from which those of a run are forked: it has imported what their nodes need, and has one thread.

`ForkServer` is the supervisor's end of it. `forked` forks it from this process, which has imported the nodes; it loads
what they share while this process checks the graph. `started` starts it afresh, where this process has threads. A
module that starts a thread when it is imported is then left out, and is `apart`.

A process of a run is a child of the supervisor all the same: the server forks twice, and the supervisor adopts the
orphan (PR_SET_CHILD_SUBREAPER). So the kernel reports its end, and a server that dies ends nobody.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import gc
import importlib
import io
import json
import os
import signal
import socket
import sys
import traceback
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from runtime.launch.file import Launch
from runtime.message import array_fields
from runtime.node import Node, ports_of
from runtime.operating_system import held_signal
from runtime.operating_system.machine import can
from runtime.operating_system.processes import OUTER_PATH, PATH, forget_path
from runtime.ports import Publisher, Subscription
from runtime.serialization.codec import decoder_of, fingerprint, holds_arrays

_POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OPENCV_FOR_THREADS_NUM")
SINGLE_THREADED = dict.fromkeys(_POOLS, "1")
"""Environment that gives libraries one thread: many processes share the cores, and numpy makes its pool at import."""
_MODULE = "runtime.supervision.fork_server"
PROCESS = "runtime.supervision.process_main"
_NEEDED = (PROCESS,)
_APART = "--apart="
_TASKS, _STAT = Path("/proc/self/task"), Path("/proc/self/stat")
_REQUEST_BYTES, _MOST_FDS = 1 << 16, 16
_PATIENCE_S, _ANSWER_S = 60.0, 10.0  # its modules may take long to import; then it is quick
_PR_SET_CHILD_SUBREAPER = 36


def threads() -> int:
    """How many threads this process has, including those of libraries."""
    return len(os.listdir(_TASKS))


class ForkError(Exception):
    """The server did not fork; the text says why."""


class ForkedProcess:
    """A child of this process that the fork server has made."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._descriptor = os.pidfd_open(pid)
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = loop.create_future()
        loop.add_reader(self._descriptor, self._reap)

    async def wait(self) -> int:
        """Wait for its end and return its exit code, negative for a signal."""
        return await asyncio.shield(self._ended)

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        _, status = os.waitpid(self.pid, 0)
        self.returncode = os.waitstatus_to_exitcode(status)
        self._ended.set_result(self.returncode)


class ForkServer:
    """The supervisor's end of a fork server."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.apart: frozenset[str] = frozenset()
        """The modules that start a thread when they are imported: who needs one of them is started afresh."""
        self._pid = pid
        self._connection = connection
        self._turn = asyncio.Lock()
        self._is_ended = False

    @classmethod
    def forked(cls, nodes: Iterable[type[Node]]) -> ForkServer:
        """Fork the server from this process, which must have one thread, for these classes. Raises ForkError.

        It prepares itself while this process goes on: `ready` waits for it.
        """
        if (number := threads()) != 1:
            raise ForkError(f"this process has {number} threads")
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        gc.freeze()  # what is never looked through for garbage is not copied for each process
        pid = os.fork()
        if pid == 0:
            _exit_with(lambda: _begin(its, ours, nodes))
        its.close()
        return cls(pid, ours)

    @classmethod
    def started(cls, uses: Iterable[str]) -> ForkServer:
        """Start the server afresh, for classes with these names, as "module:Class". Raises ForkError."""
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        its.set_inheritable(True)
        command = [sys.executable, "-P", "-u", "-m", _MODULE, str(its.fileno()), *dict.fromkeys(uses)]
        server = cls(os.posix_spawn(sys.executable, command, environment(), setsid=True), ours)
        its.close()
        server.ready()
        return server

    def ready(self) -> None:
        """Wait until it can fork. Raises ForkError."""
        self._connection.settimeout(_PATIENCE_S)
        try:
            told = json.loads(self._connection.recv(_REQUEST_BYTES))
        except (OSError, ValueError) as problem:
            self.close()
            raise ForkError(f"it did not start ({problem})") from problem
        if number := told["threads"]:
            self.close()
            raise ForkError(f"it has {number} threads")
        self.apart = frozenset(told["apart"])
        self._connection.setblocking(False)

    async def fork(
        self, arguments: Sequence[str], output: int, fds: Sequence[int] = (), program: str = PROCESS
    ) -> ForkedProcess:
        """Fork a process that calls `main` of this module with these arguments as `sys.argv[1:]`. Raises ForkError.

        For `process_main`, the numbers of its pipes, the first two of `fds`, follow the second argument. Its output
        goes to `output`, and it holds the `fds` while it lives.
        """
        request = json.dumps({"arguments": list(arguments), "program": program}).encode()
        loop = asyncio.get_running_loop()
        async with self._turn:
            _take_in_orphans(1)
            try:
                socket.send_fds(self._connection, [request], [output, *fds])
                told = await asyncio.wait_for(loop.sock_recv(self._connection, _REQUEST_BYTES), _ANSWER_S)
            except OSError:
                told = b""
            finally:
                _take_in_orphans(0)
            if not told:
                self._connection.close()
                raise ForkError("the fork server has ended")
        answer = json.loads(told)
        if "pid" not in answer:
            raise ForkError(answer["problem"])
        return ForkedProcess(answer["pid"])

    def close(self) -> None:
        """End the server; a second time does nothing."""
        if self._is_ended:
            return
        self._is_ended = True  # a connection that was given up says nothing of it: the server may hang
        try:
            os.kill(self._pid, signal.SIGKILL)  # before the connection: what is done at an exit is not for it to do
            os.waitpid(self._pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass  # it has gone already
        self._connection.close()


def fork_server(launch: Launch) -> ForkServer | None:
    """The fork server for this launch, forked while this process has one thread; None where that is not possible.

    `ready` says whether it is.
    """
    if not launch.is_forked or not can("fork"):
        return None
    try:
        return ForkServer.forked(spec.cls for spec in launch.here)
    except ForkError:
        return None


def ready(server: ForkServer | None, launch: Launch) -> ForkServer | None:
    """That server once it can fork, or one that is started afresh; None for none."""
    if not launch.is_forked or not can("fork"):
        return None
    if server is not None:
        try:
            server.ready()
            return server
        except ForkError:
            pass
    uses = [str(launch.tables["nodes"][spec.name]["use"]) for spec in launch.here]
    try:
        return ForkServer.started(uses)
    except ForkError as problem:
        print(f"each process is started afresh and not forked, which takes longer: {problem}", file=sys.stderr)
        return None


def environment() -> dict[str, str]:
    """The environment of a process of a run: it finds the modules that this one finds; libraries have one thread."""
    path = os.pathsep.join(part or os.getcwd() for part in sys.path)
    return {**SINGLE_THREADED, **os.environ, PATH: path, OUTER_PATH: os.environ.get(PATH, "")}


def modules_of(nodes: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """The modules of these [nodes.NAME] tables."""
    named = {str(table[key]) for table in nodes.values() for key in ("use", "stand_in") if table.get(key)}
    return frozenset(name.partition(":")[0] for name in named)


def _take_in_orphans(does: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, does, 0, 0, 0)


def _share(nodes: Iterable[type[Node]]) -> None:
    for node in dict.fromkeys(nodes):
        try:
            node.preload()
        except Exception as problem:  # noqa: BLE001  # its start will say so, where that matters
            print(f"{node.__name__}.preload: {type(problem).__name__}: {problem}", file=sys.stderr)
        for port in (*ports_of(node, Publisher).values(), *ports_of(node, Subscription).values()):
            message: Any = port.message
            try:
                for known in (decoder_of, fingerprint, holds_arrays, array_fields):
                    known(message)
            except Exception:  # noqa: BLE001  # likewise
                continue


# --- in the server


def _begin(connection: socket.socket, other: socket.socket, nodes: Iterable[type[Node]]) -> None:
    gc.disable()
    other.close()
    held_signal.block()
    os.setsid()  # Ctrl-C is the supervisor's to answer
    for number in (signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) is signal.default_int_handler:  # that of a command
            signal.signal(number, signal.SIG_DFL)
    os.environ.update({**SINGLE_THREADED, **os.environ})
    for name in _NEEDED:
        importlib.import_module(name)
    _share(nodes)
    _serve(connection)


def _serve(connection: socket.socket, apart: Iterable[str] = ()) -> None:
    """Say so, then fork what is asked for, until nobody asks any more."""
    number = threads()
    connection.send(json.dumps({"threads": 0 if number == 1 else number, "apart": sorted(apart)}).encode())
    held_signal.block()
    gc.freeze()  # what is never looked through for garbage is not copied for each process
    gc.disable()
    _show("fork server")
    while True:
        data, fds, _, _ = socket.recv_fds(connection, _REQUEST_BYTES, _MOST_FDS)
        if not data:
            return
        try:
            answer: dict[str, object] = {"pid": _fork_twice(connection, json.loads(data), fds)}
        except (ForkError, OSError) as problem:
            answer = {"problem": str(problem)}
        for fd in fds:
            os.close(fd)
        connection.send(json.dumps(answer).encode())


def _fork_twice(connection: socket.socket, request: dict[str, Any], fds: list[int]) -> int:
    number = threads()
    if number != 1:
        raise ForkError(f"the fork server has {number} threads")
    told, tell = os.pipe()
    between = os.fork()
    if between == 0:
        _exit_with(lambda: _fork_once(connection, request, fds, told, tell))
    os.close(tell)
    os.waitpid(between, 0)
    with os.fdopen(told, "rb") as pipe:
        text = pipe.read()
    if not text:
        raise ForkError("the process ended before it began")
    return int(text)


def _fork_once(connection: socket.socket, request: dict[str, Any], fds: list[int], told: int, tell: int) -> int:
    if os.fork() != 0:
        os._exit(0)  # its child is the supervisor's now
    connection.close()
    os.close(told)
    output, *held = fds
    os.setsid()
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.FileIO(fd, "w", closefd=False), errors="backslashreplace", write_through=True)
        for fd in (1, 2)
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _forget_exits()
    arguments: list[str] = request["arguments"]
    _show(" ".join(arguments))
    os.write(tell, str(os.getpid()).encode())
    os.close(tell)
    gc.enable()
    program = importlib.import_module(request["program"])
    sys.argv = [str(program.__file__), *arguments[:2], *(str(fd) for fd in held[:2]), *arguments[2:]]
    if generator := sys.modules.get("numpy.random"):
        generator.seed()  # others do so by themselves
    code: int = program.main()
    return code


def _forget_exits() -> None:
    """What the process that this one was forked from wants done at its end is not this one's to do."""
    atexit._clear()
    finalizers: Any = weakref.finalize
    finalizers._registry.clear()
    finalizers._registered_with_atexit = False


def _show(title: str) -> None:
    """Stand in lists of processes under that title, and not under what this process was forked from."""
    for name, value in os.environ.items():
        os.putenv(name, value)  # elsewhere: the place of the first environment is written over
    fields = _STAT.read_text().rpartition(")")[2].split()
    begin, end = int(fields[45]), int(fields[48])  # of the arguments, and of the environment behind them
    ctypes.memmove(begin, f"polyrhythm {title}".encode()[: end - begin - 1].ljust(end - begin, b"\0"), end - begin)


def _exit_with(work: Any) -> NoReturn:
    """Do that and exit with the code that it gives, as a program does at its end; nothing of who called goes on."""
    code = 1
    try:
        code = work() or 0
    except SystemExit as wish:
        code = wish.code if isinstance(wish.code, int) else 1
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        ctypes.pythonapi.Py_Exit(ctypes.c_int(code))
    raise AssertionError


def main() -> None:
    """Run the server as a program."""
    fd, *uses = sys.argv[1:]
    apart = {use.removeprefix(_APART) for use in uses if use.startswith(_APART)}
    names = [use for use in uses if not use.startswith(_APART) and use.partition(":")[0] not in apart]
    connection = socket.socket(fileno=int(fd))
    nodes: list[type[Node]] = []
    for name in (*_NEEDED, *names):
        module, _, cls = name.partition(":")
        try:
            found = getattr(importlib.import_module(module), cls, None)
        except Exception:  # noqa: BLE001  # whoever needs it will say so
            continue
        if threads() != 1:
            os.execv(sys.executable, [sys.executable, "-P", "-u", "-m", _MODULE, *sys.argv[1:], f"{_APART}{module}"])
        nodes += [found] if found is not None else []
    _share(nodes)
    forget_path()
    _exit_with(lambda: _serve(connection, apart))


if __name__ == "__main__":
    main()
