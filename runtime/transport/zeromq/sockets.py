"""Where the processes of a run bind their sockets, and how long their queues are."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import zmq

from runtime.errors import TransportError, with_remedy
from runtime.message import Kind
from runtime.transport.zeromq.frames import MAX_MESSAGE_BYTES, READY

Depth = Literal["deep", "arrays"]

KINDS: tuple[Kind, Kind] = ("event", "state")
QUEUE_LENGTH: dict[Kind, int] = {"event": 4096, "state": 16}
DEEP_QUEUE_LENGTH: dict[Depth, int] = {"deep": 4096, "arrays": 256}
"""Lengths of both ends' queues of states for a recorder, which must miss none: without arrays, and with."""
TAP_QUEUE_LENGTH: dict[Kind, int] = {"event": 4096, "state": 64}


def endpoint(folder: Path, process: str, kind: Kind) -> str:
    """Where a process of a run publishes messages of this kind."""
    return f"ipc://{folder / f'{process}.{kind}'}"


def deep_endpoint(folder: Path, process: str, depth: Depth) -> str:
    """Where a process publishes states for a reader that queues them."""
    return f"ipc://{folder / f'{process}.{depth}'}"


def bind(socket: zmq.Socket[bytes], address: str) -> None:
    """Raises TransportError with what to do, by the fault's number: newer bindings put the address into its text."""
    try:
        socket.bind(address)
    except zmq.ZMQError as problem:
        raise TransportError(f"{address} cannot be bound: {with_remedy(zmq.strerror(problem.errno or 0))}") from problem


def bind_outward(socket: zmq.Socket[bytes], folder: Path, process: str, kind: Kind) -> None:
    """Let others connect, each to a queue of the length that it asks for. Raises TransportError.

    ZeroMQ gives a connection the length that was set when its endpoint was bound.
    """
    lengths = {endpoint(folder, process, kind): QUEUE_LENGTH[kind]}
    if kind == "state":
        lengths |= {deep_endpoint(folder, process, depth): length for depth, length in DEEP_QUEUE_LENGTH.items()}
    for address, length in lengths.items():
        socket.setsockopt(zmq.SNDHWM, length)
        bind(socket, address)


def inward_endpoint(folder: Path, name: str, kind: Kind) -> str:
    """Where a process of a run, or a tool, receives what tools publish."""
    return f"ipc://{folder / f'{name}.in.{kind}'}"


def receipt_endpoint(folder: Path, process: str) -> str:
    """Where a process of a run receives the receipts of its reliable events."""
    return f"ipc://{folder / f'{process}.receipts'}"


def endpoints(folder: Path, process: str) -> list[Path]:
    """The socket files of a process."""
    sockets = [folder / f"{process}{way}.{kind}" for way in ("", ".in") for kind in KINDS]
    return [*sockets, *(folder / f"{process}.{name}" for name in (*DEEP_QUEUE_LENGTH, "receipts"))]


def schedule(context: zmq.Context[zmq.Socket[bytes]], priority: int) -> None:
    """Let ZeroMQ's own threads run with SCHED_FIFO; call it before the first socket, and only where that is granted."""
    if priority:
        context.set(zmq.THREAD_SCHED_POLICY, os.SCHED_FIFO)
        context.set(zmq.THREAD_PRIORITY, priority)


def schedule_threads(priority: int) -> None:
    """Set the priority of the threads that all readers of this process share; call it before the first reader."""
    schedule(zmq.Context.instance(), priority)


def end_threads(patience_s: float) -> None:
    """End the shared threads once what is queued is sent, or after `patience_s`; an open socket keeps them alive."""
    ending = threading.Thread(target=zmq.Context.instance().term, name="ending", daemon=True)
    ending.start()
    ending.join(patience_s)


def subscriber(context: zmq.Context[zmq.Socket[bytes]], queue_length: int) -> zmq.Socket[bytes]:
    """A subscribing socket with a queue of this length; it retries a lost connection after 3 to 40 ms."""
    socket = context.socket(zmq.SUB)
    socket.setsockopt(zmq.RCVHWM, queue_length)
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
    socket.setsockopt(zmq.RECONNECT_IVL, 3)  # and twice as long each time
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, 40)  # a start waits for the last of the others to be found
    socket.setsockopt(zmq.LINGER, 0)
    return socket


def bind_inward(sockets: Mapping[Kind, zmq.Socket[bytes]], folder: Path, name: str) -> None:
    """Bind the sockets on which a process receives what tools publish. Raises TransportError."""
    for kind, socket in sockets.items():
        socket.setsockopt(zmq.SUBSCRIBE, READY + name.encode())
        address = inward_endpoint(folder, name, kind)
        bind(socket, address)
