"""The pipes to a supervisor: what is told arrives, and nobody waits for one that does not listen.

The pipe of orders stays open: its end would mean that the supervisor has died, and end this process.
"""

from __future__ import annotations

import json
import os
from typing import Any

from runtime.supervision.control_pipe import Control
from tests.support.sentences import sentence


def test_what_is_told_arrives_in_order() -> None:
    orders_read, _ = os.pipe()
    events_read, events_write = os.pipe()
    control = Control(orders_read, events_write, lambda order: None)
    control.start()
    control.tell("ready")
    control.tell("finish", ok=True, reason="done")
    control.close()
    lines = [json.loads(line) for line in os.read(events_read, 4096).splitlines()]
    assert lines == [{"event": "ready"}, {"event": "finish", "ok": True, "reason": "done"}]
    for fd in (events_read, events_write):
        os.close(fd)


def test_a_supervisor_that_does_not_listen_makes_nobody_wait_and_is_told_what_it_missed() -> None:
    orders_read, _ = os.pipe()
    events_read, events_write = os.pipe()
    orders: list[dict[str, Any]] = []
    control = Control(orders_read, events_write, orders.append)
    control.start()
    for number in range(20_000):  # far more than pipe and queue hold: returns all the same
        control.tell("log", text=f"line {number:06d}" + "." * 100)
    told = 0
    missed = ""
    with os.fdopen(events_read, "rb") as pipe:
        while not missed:
            event = json.loads(pipe.readline())
            if "were not told" in event["text"]:
                missed = event["text"]
            else:
                told += 1
            control.tell("log", text="more")
        assert not orders  # nobody took the full pipe for a dead supervisor
    assert told < 20_000
    assert missed.endswith(sentence("runtime.lines_not_told"))
