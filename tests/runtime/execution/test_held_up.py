"""A blocking handler that keeps the interpreter to itself is named, and not the timer that was late by it."""

from __future__ import annotations

import logging

from runtime.execution.in_process import run
from runtime.launch.graph import NodeSpec
from runtime.node import Node, every
from tests.support.sentences import sentence


class Found(logging.Handler):
    """The warnings of a node."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


class Summing(Node):
    """Its worker sums up what it keeps in one step, until somebody says that this holds up others."""

    def __init__(self) -> None:
        self.numbers = range(1 << 24)
        self.total = 0
        self.found = Found()

    def on_start(self) -> None:
        self.log.addHandler(self.found)

    def on_stop(self) -> None:
        self.log.removeHandler(self.found)

    @every(hz=4, blocking=True)
    def look(self) -> None:
        self.total = sum(self.numbers)

    @every(hz=50)
    def tick(self) -> None:
        if any("look" in line for line in list(self.found.lines)):
            self.finish(ok=True, reason="named")


def test_the_handler_its_line_and_its_attribute_are_named() -> None:
    node = Summing()
    run(NodeSpec("summing", Summing, instance=node), seconds=60)
    line = Summing.look.__code__.co_firstlineno + 2
    (told,) = node.found.lines
    assert sentence("runtime.kept_the_interpreter", line=line) in told
