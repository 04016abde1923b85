"""The holder of a seat is heard, the other one is not; a console that falls silent stops the robot."""

from __future__ import annotations

from bridges.web.handover import Handover
from bridges.web.messages import Occupation
from runtime import Node, Publisher, Simulation, every
from runtime.msgs import JointCommand

MODEL, PERSON = (0.0,) * 8, (0.1,) * 8


class Both(Node):
    """A model and a person who both command all the time; the person takes the seat at 1 s and falls silent at 2 s."""

    model = Publisher(JointCommand, "model/command")
    person = Publisher(JointCommand, "console/command")
    seats = Publisher(Occupation, "console/seats")

    @every(hz=20)
    def tick(self) -> None:
        self.model.publish(JointCommand(position=MODEL))
        self.person.publish(JointCommand(position=PERSON))
        seconds = self.clock.now_ns() * 1e-9
        if seconds < 2.0:
            self.seats.publish(Occupation(policy="Ada" if seconds >= 1.0 else ""))


def test_commands_change_hands_without_a_gap() -> None:
    sim = Simulation(Both(), Handover(), seed=0)
    commands = sim.record(Handover.command)
    sim.run(seconds=1.9)
    positions = [command.position for command in commands]
    assert len(positions) in (37, 38, 39)
    assert positions == sorted(positions)
    assert {MODEL, PERSON} == set(positions)


def test_the_console_s_silence_stops_the_robot_once_and_gives_the_seat_back() -> None:
    sim = Simulation(Both(), Handover(), seed=0)
    interrupts, commands = sim.record(Handover.interrupt), sim.record(Handover.command)
    sim.run(seconds=4.0)
    assert [(one.depth, one.by) for one in interrupts] == [("stop", "guard")]
    assert "Ada" in interrupts[0].text
    assert commands[-1].position == MODEL
