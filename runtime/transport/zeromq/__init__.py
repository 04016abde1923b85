"""The ZeroMQ transport between processes; only this folder, `taps` and the gateway import `zmq`.

Each process binds two XPUB sockets, one for events and one for states, so that an image never stands before an
interrupt. Each connects to those of the others and subscribes to the topics that it needs. A control loop that alone
wants a topic reads its own `Reader`, with no thread between. All else comes by the process's `SubscriberThread`, a
reader with one thread, which hands over what it decoded.
"""

from runtime.transport.zeromq.frames import (
    MAX_MESSAGE_BYTES,
    PASSING,
    READY,
    is_bundle,
    pack,
    send,
    unpack,
)
from runtime.transport.zeromq.publisher_sockets import PublisherSockets
from runtime.transport.zeromq.reader import Reader, SharedMemoryReader, SubscriberThread
from runtime.transport.zeromq.sockets import (
    KINDS,
    QUEUE_LENGTH,
    TAP_QUEUE_LENGTH,
    bind_inward,
    end_threads,
    endpoint,
    endpoints,
    inward_endpoint,
    schedule_threads,
    subscriber,
)

__all__ = [
    "KINDS",
    "MAX_MESSAGE_BYTES",
    "PASSING",
    "QUEUE_LENGTH",
    "READY",
    "TAP_QUEUE_LENGTH",
    "PublisherSockets",
    "Reader",
    "SharedMemoryReader",
    "SubscriberThread",
    "bind_inward",
    "end_threads",
    "endpoint",
    "endpoints",
    "inward_endpoint",
    "is_bundle",
    "pack",
    "schedule_threads",
    "send",
    "subscriber",
    "unpack",
]
