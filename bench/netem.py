"""A cable between two network namespaces with delay, loss and a rate, packet by packet: netem without the kernel's.

Each end is a TUN device; real TCP of the kernel goes over it, with its own retransmissions and waits. Needs root,
iproute2 and /dev/net/tun. Starts a thread.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

ROBOT, OTHER = 0, 1
"""The two ends; a way is named by the end that it begins at."""
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_QUEUE_S = 0.1
"""What a narrow place keeps waiting; more is dropped, as a router does."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How bad the cable is, each way."""

    delay_s: float = 0.0
    loss: float = 0.0  # of packets, 0 to 1
    mbit: float = 0.0  # megabits per second; 0: no limit
    seed: int = 0


def can_make() -> bool:
    """Whether this user may make namespaces and TUN devices here."""
    if not os.access("/dev/net/tun", os.W_OK):
        return False
    name = f"pn{os.getpid()}"
    with suppress(OSError):
        if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0:
            subprocess.run(["ip", "netns", "del", name], check=False)
            return True
    return False


class Cable:
    """Two namespaces and what lies between them; `broken` ways carry nothing."""

    def __init__(self, shape: Shape, *, is_ipv6: bool = False) -> None:
        self.shape = shape
        self.addresses = ("fd77::1", "fd77::2") if is_ipv6 else ("10.77.32.1", "10.77.32.2")
        self.broken: frozenset[int] = frozenset()
        self.passed, self.lost = [0, 0], [0, 0]
        self._names = tuple(f"pn{os.getpid()}{end}" for end in (ROBOT, OTHER))
        self._random = random.Random(shape.seed)
        self._free_s = [0.0, 0.0]
        self._is_closed = False
        self._devices: list[int] = []
        for name, address in zip(self._names, self.addresses, strict=True):
            subprocess.run(["ip", "netns", "add", name], check=True)
            device, label = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK), f"t{name}"
            fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", label.encode(), _IFF_TUN | _IFF_NO_PI))
            self._devices.append(device)
            _ip("link", "set", label, "netns", name)
            _ip("-n", name, "link", "set", "lo", "up")
            size = "64" if is_ipv6 else "24"
            _ip("-n", name, "addr", "add", f"{address}/{size}", "dev", label, *(["nodad"] if is_ipv6 else []))
            _ip("-n", name, "link", "set", label, "up")
        self._thread = threading.Thread(target=self._carry, name="cable")
        self._thread.start()

    def within(self, end: int) -> list[str]:
        """What runs a command at that end."""
        return ["ip", "netns", "exec", self._names[end]]

    def close(self) -> None:
        """Remove it all."""
        self._is_closed = True
        self._thread.join()
        for device in self._devices:
            os.close(device)
        for name in self._names:
            subprocess.run(["ip", "netns", "del", name], check=False)

    def _carry(self) -> None:
        with suppress(OSError):  # it stands for a cable, which waits for no processor
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -20)
        waiting: list[tuple[float, int, int, bytes]] = []
        count = 0
        while not self._is_closed:
            wait_s = waiting[0][0] - time.monotonic() if waiting else 0.1
            ready, _, _ = select.select(self._devices, [], [], min(max(wait_s, 0.0), 0.1))
            for device in ready:
                way = self._devices.index(device)
                packet = os.read(device, 65536)
                due_s = self._due_s(way, len(packet))
                if due_s is not None:
                    count += 1
                    heapq.heappush(waiting, (due_s, count, way, packet))
            while waiting and waiting[0][0] <= time.monotonic():
                _, _, way, packet = heapq.heappop(waiting)
                if way not in self.broken:  # what is on its way when it breaks is gone as well
                    with suppress(OSError):
                        os.write(self._devices[1 - way], packet)

    def _due_s(self, way: int, size: int) -> float | None:
        """When a packet arrives; None where it never does."""
        shape, now_s = self.shape, time.monotonic()
        takes_s = size * 8 / (shape.mbit * 1e6) if shape.mbit else 0.0
        free_s = max(self._free_s[way], now_s)
        if way in self.broken or self._random.random() < shape.loss or free_s - now_s > _QUEUE_S:
            self.lost[way] += 1
            return None
        self.passed[way] += 1
        self._free_s[way] = free_s + takes_s
        return free_s + takes_s + shape.delay_s


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
