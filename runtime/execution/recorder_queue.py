"""`DeepPort`: a subscription of a node that hears every topic: deep queues with a common bound in bytes.

Messages with arrays and messages without have a bound each, so that images are dropped first, and only for each other.
A full queue drops its own oldest message and counts it as "queue full". Messages that still wait at the end of the run
are counted as "end of run".
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from functools import cache

from runtime.message import M, Message, Stamped, array_fields, fields_of
from runtime.ports import Subscription
from runtime.qos import QoS

MESSAGES_QUEUED = 4096
"""Most queued messages of one topic."""
ARRAY_BYTES = 256 * 1024 * 1024
OTHER_BYTES = 64 * 1024 * 1024
"""Most queued bytes of all topics: of messages with arrays, and of messages without."""
_OVERHEAD_BYTES = 1000  # of a message with its envelope, roughly
_PART_BYTES = 200  # of one element of a tuple


class ByteBudget:
    """A number of bytes that some queues share."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self.lock = threading.Lock()

    def change(self, number: int) -> None:
        """Use this many more bytes, or fewer (any thread)."""
        with self.lock:
            self.used += number

    def has_room(self, number: int) -> bool:
        """Whether this many more bytes would fit."""
        return self.used + number <= self.limit


class DeepPort(Subscription[M]):
    """A subscription whose queue counts towards a budget."""

    def __init__(self, message: type[M], topic: str, budget: ByteBudget) -> None:
        super().__init__(message, topic, qos=QoS(depth=MESSAGES_QUEUED))
        self.has_handler = True
        self.budget = budget
        self._sizes: deque[int] = deque()  # of the messages in the queue

    def push(self, stamped: Stamped[M]) -> None:
        """Take in a message from the bus (any thread)."""
        size = size_of(stamped.message)
        with self.lock:
            self.received += 1
            self._newest = stamped
            queue, sizes, budget = self._queue, self._sizes, self.budget
            while queue and (len(queue) >= self.qos.depth or not budget.has_room(size)):
                queue.popleft()
                budget.change(-sizes.popleft())
                self.dropped["queue full"] += 1
            if not budget.has_room(size):
                self.dropped["queue full"] += 1
                return
            budget.change(size)
            sizes.append(size)
            queue.append(stamped)

    def pop(self) -> Stamped[M] | None:
        """The next message, oldest first."""
        with self.lock:
            if not self._queue:
                return None
            stamped = self._queue.popleft()
            self.budget.change(-self._sizes.popleft())
            self.delivered += 1
            return stamped

    def give_up(self) -> list[Stamped[M]]:
        """Drop all waiting messages, counted as "end of run"."""
        with self.lock:
            left = list(self._queue)
            if left:
                self.dropped["end of run"] += len(left)
            self.budget.change(-sum(self._sizes))
            self._queue.clear()
            self._sizes.clear()
        return left


def size_of(message: Message) -> int:
    """Bytes of memory that a message uses: exact for arrays, roughly for the rest."""
    size = _OVERHEAD_BYTES
    for name in array_fields(type(message)):
        array = getattr(message, name)
        if array is not None:
            size += array.nbytes
    for name in _other_fields(type(message)):
        value = getattr(message, name)
        size += _PART_BYTES * len(value) if isinstance(value, tuple) else sys.getsizeof(value)
    return size


@cache
def _other_fields(message: type[Message]) -> tuple[str, ...]:
    """The names of its tuples, texts and bytes."""
    return tuple(
        field.name
        for field in fields_of(message)
        if field.name not in array_fields(message)
        and any(word in str(field.type) for word in ("tuple", "str", "bytes"))
    )
