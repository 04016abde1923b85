"""From a spoken word to a braking robot: microphone, recogniser, reflex and guard together, on real speech."""

from __future__ import annotations

from pathlib import Path

from nodes.guard.node import Guard
from nodes.interrupts.reflex import Reflex
from nodes.msgs import Interrupt, JointCommand, RobotState
from nodes.robot.driver import Driver
from nodes.voice.microphone import Microphone
from nodes.voice.recogniser import Recogniser
from runtime import Node, Publisher, Simulation, Subscription, every
from tests.support.models.spoken import needs_espeak, silence, spoken, write_wav
from tests.support.servers.fake_speech_server import FakeSpeech, says

LATENCY_S = 0.4  # of recognition


class Forward(Node):
    """Asks for a slow drive ahead, for ever."""

    state = Subscription(RobotState, "robot/state")
    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        if (state := self.state.latest()) is not None:
            self.command.publish(JointCommand(position=state.position, base_v_mps=0.1))


def robot(*others: Node) -> Simulation:
    return Simulation(
        *others,
        Forward(),
        Reflex(),
        Driver(robot="nodes.sim.kinematic:KinematicRobot"),
        Guard(arm="auto", memory="run"),
    )


@needs_espeak
def test_ouch_brakes_before_its_sentence_has_ended(tmp_path: Path) -> None:
    begin_s, words = 2.0, spoken("Ouch! That's my toe, and my foot, and I do not like it at all.")
    path = write_wav(tmp_path / "a.wav", silence(begin_s), words, silence(1.0))
    with FakeSpeech(says("Ouch!", "Ouch! That's my toe")) as server:
        ears = Microphone(source=str(path)), Recogniser(base_url=server.url, model="whisper-test", latency_s=LATENCY_S)
        sim = robot(*ears)
        states = sim.record(Guard.guard_state)
        sim.run(seconds=6.0)
        sim.close()
    stopped = next(state for state in states if state.mode == "stopped")
    heard_s, held_s = stopped.stop_heard_ns * 1e-9, stopped.held_ns * 1e-9
    assert abs(heard_s - begin_s) < 0.2  # the stop is as old as the word, not as its recognition
    assert held_s < begin_s + len(words) / 32_000  # while they still speak
    assert held_s - heard_s < 0.7 + LATENCY_S


def modes_after(path: Path, *texts: str, felt_at_s: float = 0.0) -> list[str]:
    """What the guard does; at `felt_at_s` something else stops the robot."""
    with FakeSpeech(says(*texts)) as server:
        recogniser = Recogniser(base_url=server.url, model="whisper-test", looks_ahead=False, latency_s=LATENCY_S)
        sim = robot(Microphone(source=str(path)), recogniser)
        states = sim.record(Guard.guard_state)
        if felt_at_s:
            sim.run(seconds=felt_at_s)
            sim.publish(
                "interrupt", Interrupt(id="touch-1", depth="stop", text="nothing is heard", by="ladder", cause="ladder")
            )
        sim.run(seconds=8.0)
        sim.close()
    return [state.mode for state in states]


@needs_espeak
def test_go_on_lifts_a_stop_that_was_heard_before_it(tmp_path: Path) -> None:
    words = spoken("Stop!"), silence(2.0), spoken("Go on, please.")
    modes = modes_after(write_wav(tmp_path / "a.wav", silence(1.0), *words, silence(1.0)), "Stop!", "Go on, please.")
    assert "stopped" in modes
    assert modes[-1] == "moving"


@needs_espeak
def test_go_on_that_was_said_before_the_stop_and_understood_after_it_lifts_nothing(tmp_path: Path) -> None:
    """Its speaker did not know yet what was to happen."""
    words = spoken("Go on, please.")
    path = write_wav(tmp_path / "a.wav", silence(2.0), words, silence(1.0))
    modes = modes_after(path, "Go on, please.", felt_at_s=2.0 + len(words) / 32_000)
    assert modes[-1] == "stopped"
