"""The maker's own server and client classes of a Stretch 4, unchanged, with our simulated body behind the server.

Runs where stretch4_body is installed.   usage: stretch4_makers.py server | client NAME PRIORITY
Both take JSON lines on their standard input, answer each, and end with it.
"""

from __future__ import annotations

import grp
import importlib
import json
import logging
import os
import queue
import sys
import threading
from typing import Any

from bridges.stretch4.link import Command
from runtime.clock import SystemClock
from tests.bridges.stretch4.fake_stretch4 import STEP_S, World

logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
CLOCK = SystemClock()


def asked() -> queue.Queue[str]:
    """Lines of the standard input, by a thread; "" at its end."""
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    return lines


def answer(**what: object) -> None:
    print(json.dumps(what, default=str), flush=True)


def serve() -> None:
    StretchBodyServer = importlib.import_module("stretch4_body.core.client_server").StretchBodyServer

    world, server, lines = World(), StretchBodyServer(), asked()
    if not server.startup():
        raise SystemExit("the maker's server does not start; does another one run?")

    def admin(message: bytes) -> bytes:
        if message in (b"pause", b"unpause"):
            world.state = "PAUSED" if message == b"pause" else "RUNNING"
        elif message == b"free_up_control":
            server.lease_holder_id = server.lease_holder_priority = None
        return message

    def dispatch(commands: dict[str, Command]) -> list[object]:
        return world.dispatch(commands)

    answer(up=True)
    begun_s = CLOCK.now_s()
    while True:
        CLOCK.block(max(0.0, begun_s + world.now_s + STEP_S - CLOCK.now_s()))
        while begun_s + world.now_s < CLOCK.now_s():
            world.step()
        server.dispatch_admin_messages(admin)
        server.dispatch_command_messages(dispatch, world.is_busy)
        lease = {
            "lease_holder": str(server.lease_holder_id), "lease_holder_priority": str(server.lease_holder_priority),
            "lease_expiry": server.lease_expiry,
        }  # fmt: skip
        server.publish_status(world.status(lease))
        if not lines.empty():
            line = lines.get()
            if not line:
                server.stop()
                return
            do(world, **json.loads(line))
            answer(base=world.base, asked=world.asked, lift=world.joints["lift"].at, **lease)


def do(world: World, what: str, value: Any = None) -> None:
    if what == "press":
        world.press(bool(value))
    elif what == "unhome":
        for joint in world.joints.values():
            joint.is_homed = False
    elif what == "touch":
        world.joints["lift"].stands_at = world.joints["lift"].at + 0.05
    elif what == "freeze":
        world.frozen.add(str(value))
    elif what == "firmware":
        world.has_firmware_watchdog = bool(value)


def take(name: str, priority: int) -> None:
    """Once told to go on, command once in 0.1 s, as a program of the maker's does, until the input ends."""
    StretchBodyClient = importlib.import_module("stretch4_body.core.client_server").StretchBodyClient

    client, lines = StretchBodyClient(name=name), asked()
    if not client.startup():
        raise SystemExit("the maker's client does not reach the server")
    answer(up=True)
    is_quiet = True
    while True:
        if not is_quiet:
            client._do_send_cmd({}, priority=priority)
        if not lines.empty():
            line = lines.get()
            if not line:
                client.stop()
                return
            what = json.loads(line)["what"]
            is_quiet = what != "go on"
            answer(admin=client.do_send_recv_admin_str(what.encode()) if what.endswith("pause") else None)
        status = client._do_recv_status()
        assert status is None or status["server"]["state"] in ("RUNNING", "PAUSED")
        CLOCK.block(0.1)


if __name__ == "__main__":
    if os.getuid() == 0:  # what the maker's classes ask of an account
        os.setgroups([*os.getgroups(), grp.getgrnam("users").gr_gid])
    if sys.argv[1] == "server":
        serve()
    else:
        take(sys.argv[2], int(sys.argv[3]))
