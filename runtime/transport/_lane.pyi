import mmap
from collections.abc import Callable, Mapping
from typing import Any

from runtime.message import Envelope, Stamped

class Map:
    def __init__(self, path: str) -> None: ...
    def view(self, slot: int, generation: int, size: int) -> Any: ...

class Ring:
    def __init__(self, fd: int, memory: mmap.mmap, slots: int, capacity: int) -> None: ...
    def store(
        self, arrays: tuple[Any, ...], offsets: tuple[int, ...], size: int, now_ns: int, grace_ns: int
    ) -> tuple[int, int] | None: ...
    def send(
        self, array: Any, now_ns: int, grace_ns: int, head: bytes, key: bytes, document: bytes, fds: list[int]
    ) -> int | None: ...

class Opener:
    def __init__(
        self,
        start: bytes,
        topic: str,
        last: dict[str, Envelope],
        envelope: type[Envelope],
        stamped: type[Stamped[Any]],
        read: Callable[[bytes], Any],
    ) -> None: ...
    def open(self, document: bytes, is_new: Callable[[Envelope], bool]) -> Stamped[Any] | None: ...

def receive(fd: int, channels: Mapping[bytes, Any], maps: Mapping[bytes, Any]) -> Any: ...
def receive_run(
    fd: int, channels: Mapping[bytes, Any], maps: Mapping[bytes, Any], most: int, opened: list[Stamped[Any]]
) -> Any: ...
def offer(fd: int, packet: bytearray) -> bool: ...
def send(head: bytes, document: bytes, fds: list[int]) -> int: ...
