"""`SharedMemoryReader`: the reading side of arrays that travel through shared memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import zmq

from runtime.errors import CodecError, TransportError
from runtime.messages.codec import Frame
from runtime.transport.shared_memory import SlotAddress, Views
from runtime.transport.zeromq.frames import WHOLE

_FAILURES = 3  # of one segment, before a reader asks for whole messages

_place_decoder = msgspec.msgpack.Decoder(SlotAddress)


class SharedMemoryReader:
    """Fetches arrays that lie in shared memory; where it cannot, it subscribes to whole messages instead."""

    def __init__(self, end: bytes) -> None:
        self._end = end
        self._views = Views()
        self._failures: Counter[str] = Counter()  # by segment

    def fetch(self, topic: bytes, place: bytes, socket: zmq.Socket[bytes]) -> Sequence[Frame] | str:
        """The arrays, or the reason why they are lost. Raises CodecError where these bytes are no place."""
        try:
            where = _place_decoder.decode(place)
            return self._views.take(where) or "overwritten"
        except (msgspec.MsgspecError, ValueError) as problem:
            raise CodecError(f"not a place in shared memory: {problem}") from problem
        except TransportError as problem:
            self._failures[where.segment] += 1
            if self._failures[where.segment] == _FAILURES:  # not one that has just gone with its writer
                socket.setsockopt(zmq.SUBSCRIBE, WHOLE + topic + self._end)
                socket.setsockopt(zmq.UNSUBSCRIBE, topic + self._end)
            return f"unreachable: {problem}"

    def close(self) -> None:
        """Forget the memory; arrays in use stay good."""
        self._views.close()
