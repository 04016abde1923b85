"""The robot's own voice lifts no stop, and a person who answers it does: from sound to the interrupt."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from nodes.interrupts.intent import understand
from nodes.interrupts.reflex import AGAIN, REFUSALS, Reflex
from nodes.msgs import GuardState, Interrupt, Saying, Utterance
from nodes.policy.confirmations import PLEASE
from nodes.voice.hearing import whisper
from nodes.voice.microphone import Microphone
from nodes.voice.recogniser import Recogniser
from runtime import Simulation
from tests.support.models.spoken import needs_espeak, silence, spoken, write_wav
from tests.support.sentences import sentence
from tests.support.servers.fake_speech_server import FakeSpeech

BYTES_PER_S = 32_000
BETWEEN_S = 2.0
LIFTING = [
    "Go on.", "Please continue.", "Okay, go on.", "You can go on.", "Carry on.", "Keep going.", "Go ahead.", "Proceed.",
    "Continue.", "Go on again.", "Say go on.", "Never mind.", "False alarm.", "My mistake.", "Resume.", "Move again.",
    "Keep working.", "Yes.", "Yes, please.", "Say go on again.", "I said go on.", "You may continue.",
    "It's safe, go on.", "Go on, please.", "Okay. Continue.",
]  # fmt: skip
PROMPTS = [*REFUSALS.values(), AGAIN, f"Shall I pick the red bottle? {PLEASE}", sentence("voice.sorry_stopped")]
ANSWERS = ["Please continue.", "Continue, please.", "Please go on."]
"""What the shipped recogniser gets right of these voices. "You may go on now" it hears as "you make long"."""
VOICES = ["en-us", "en-us+f3", "en-gb", "en-gb-scotland"]


@dataclass(frozen=True)
class Told:
    """One thing that was heard: the robot's words from `from_s` to `until_s`, and a person's after them, or none."""

    robot: str
    answer: str
    from_s: float
    until_s: float
    answer_s: float
    end_s: float


def room_of(cases: list[tuple[str, str]], path: Path, pause_s: float = 0.7) -> list[Told]:
    """All of them as one sound; the loudspeaker's are as loud as a person's."""
    parts, told, at_s = [silence(1.0)], [], 1.0
    for number, (robot, answer) in enumerate(cases):
        words = spoken(robot, voice=VOICES[number % len(VOICES)])
        until_s = at_s + len(words) / BYTES_PER_S
        reply = spoken(answer, voice=VOICES[(number + 1) % len(VOICES)]) if answer else b""
        end_s = until_s + (pause_s if answer else 0.0) + len(reply) / BYTES_PER_S + BETWEEN_S
        told.append(Told(robot, answer, at_s, until_s, until_s + pause_s, end_s))
        parts += [words, silence(pause_s) if answer else b"", reply, silence(BETWEEN_S)]
        at_s = end_s
    write_wav(path, *parts)
    return told


def lifted(cases: list[tuple[str, str]], path: Path, recogniser: Recogniser) -> tuple[list[bool], list[bool], int]:
    """Which of them lifted the stop that stood, in which the recogniser wrote down a word that does, and how often the
    robot asked to say it again.
    """
    told = room_of(cases, path)
    sim = Simulation(Microphone(source=str(path)), recogniser, Reflex())
    raised: list[Interrupt] = sim.record_topic("interrupt", Interrupt)
    said: list[Utterance] = sim.record_topic("said", Utterance)
    heard: list[Utterance] = sim.record_topic("heard", Utterance)
    found, written = [], []

    def until(at_s: float) -> None:
        if (left_s := at_s - sim.clock.now_s()) > 0:
            sim.run(seconds=left_s)

    for number, one in enumerate(told):
        raised.clear()
        heard.clear()
        sim.publish("guard/state", GuardState(mode="stopped", reason="stopped by Ana"))
        until(one.from_s)
        ident = f"said:planner:{number}"
        sim.publish("saying", Saying(id=ident, text=one.robot, phase="begun"))
        until(one.until_s)
        sim.publish("saying", Saying(id=ident, text=one.robot, phase="done", spoken=one.robot))
        until(one.end_s)
        found.append(any(interrupt.depth == "resume" for interrupt in raised))
        written.append(any(understand(one.text).lifts_stop for one in heard))
    sim.close()
    return found, written, sum(one.text == AGAIN for one in said)


@needs_espeak
def test_the_robots_own_words_lift_nothing_and_a_persons_soon_after_them_do(tmp_path: Path) -> None:
    with FakeSpeech(lambda asked: (200, b'{"text": "Go on."}')) as server:

        def ears() -> Recogniser:
            return Recogniser(base_url=server.url, model="whisper-test", looks_ahead=False)

        own, _, asked_again = lifted([(text, "") for text in LIFTING[:8]], tmp_path / "own.wav", ears())
        assert own == [False] * 8
        assert asked_again >= 8, "what was not counted is answered"
        answered, _, _ = lifted([(text, "Go on.") for text in PROMPTS[:8]], tmp_path / "answers.wav", ears())
    assert answered == [True] * 8


@pytest.mark.long
@needs_espeak
@pytest.mark.skipif(not whisper.is_installed(), reason=whisper.INSTALL)
def test_by_the_shipped_recogniser_the_robots_own_words_lift_0_of_100_and_a_person_is_taken_95_times(
    tmp_path: Path,
) -> None:
    def ears() -> Recogniser:
        return Recogniser(by="whisper", language="en", looks_ahead=False)

    own, _, _ = lifted([(LIFTING[number % len(LIFTING)], "") for number in range(100)], tmp_path / "own.wav", ears())
    assert sum(own) == 0, own
    answers = [(PROMPTS[number % len(PROMPTS)], ANSWERS[number % len(ANSWERS)]) for number in range(100)]
    taken, written, _ = lifted(answers, tmp_path / "answers.wav", ears())
    lost = [answers[number] for number, is_written in enumerate(written) if is_written and not taken[number]]
    assert not lost, "what the recogniser gets right is taken"
    assert sum(taken) >= 95, [answers[number] for number, one in enumerate(taken) if not one]
