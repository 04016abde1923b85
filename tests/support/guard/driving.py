"""A policy that drives ahead, for tests of what stops it."""

from __future__ import annotations

from nodes.msgs import JointCommand
from nodes.stretch.limits import STOW
from runtime import Node, Publisher, every


class Ahead(Node):
    """Asks for 0.2 m/s, 20 times a second."""

    seat = "policy"
    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def drive(self) -> None:
        self.command.publish(JointCommand(position=STOW, base_v_mps=0.2))
