"""What `polyrhythm bringup stretch4` knows of a Stretch 4 and of the computer that it runs on."""

from __future__ import annotations

import socket

from bridges.stretch.bringup import Bringup, Refused
from bridges.stretch4.link import endpoints
from bridges.stretch4.robot import LIMITS, Stretch4Robot
from bridges.stretch4.status import WRITTEN_FOR, gripper_words


class Stretch4Bringup(Bringup[Stretch4Robot]):
    """The steps of any robot, and a ruler between the fingertips."""

    claim = LIMITS

    @classmethod
    def make(cls) -> Stretch4Robot:
        return Stretch4Robot("default")

    @classmethod
    def name(cls) -> str:
        return socket.gethostname()

    def reach(self) -> None:
        self.tell(f"the maker's server: {endpoints()['command']}")

    def who(self) -> str:
        reading = self.robot.reading
        if reading.server != "RUNNING":
            raise Refused(f"its server is {reading.server}; expected RUNNING: stretch_body_server --status says more")
        software = f"the maker's server, read as stretch4_body {WRITTEN_FOR} writes it"
        self.tell(software)
        return software

    def measured_ns(self, name: str) -> int:
        return self.robot.reading.read_ns[{"base": "wheel_0", "sideways": "wheel_0"}.get(name, name)]

    def look_at(self, name: str) -> str:
        return gripper_words(self.robot.reading) if name == "gripper" else super().look_at(name)
