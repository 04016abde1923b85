"""The loudspeaker in virtual time: what is said in turn, what is cut, what waits, and how far each was really heard."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from nodes.msgs import Interrupt, Saying, Speech, SpokenSound, Utterance, VoiceOrder
from nodes.voice.loudspeaker import Loudspeaker
from nodes.voice.speaking.playing import RATE_HZ, VoiceError
from nodes.voice.speaking.synthesis import AS_EVER, Manner, command_at, softened
from runtime import Node, Publisher, Simulation, Stamped, Subscription, on
from runtime.coordination.fence import Fence
from runtime.qos import RELIABLE
from tests.support.sentences import sentence

LONG = "I put the blue cup in the bin now. Then I take the red one, and after that the green one."


class Stage:
    """A loudspeaker that plays nowhere, at 2.8 words a second, and people beside it."""

    def __init__(self, **parameters: object) -> None:
        self.node = Loudspeaker(**{"command": "", "device": "none", **parameters})  # type: ignore[arg-type]
        self.sim = Simulation(self.node)
        self.told: list[tuple[float, Saying]] = []
        self.causes: list[str] = []
        self.sim.observe(self._observe)

    def _observe(self, stamped: Stamped[Any]) -> None:
        message, envelope = stamped.message, stamped.envelope
        if isinstance(message, Saying):
            self.told.append((round(envelope.published_ns * 1e-9, 3), message))
            self.causes.append(envelope.cause)

    def say(self, text: str) -> None:
        self.sim.publish("said", Utterance(speaker="robot", text=text))

    def person(self, is_speaking: bool) -> None:
        begun_ns = self.sim.clock.now_ns() if is_speaking else 0
        self.sim.publish("speech", Speech(speaker="ann", is_speaking=is_speaking, begun_ns=begun_ns))

    def stop(self) -> None:
        self.sim.publish("interrupt", Interrupt(id="i-1", depth="stop", text="Ouch!", by="ann"))

    def run(self, seconds: float) -> None:
        self.sim.run(seconds=seconds)

    @property
    def ends(self) -> list[tuple[str, str, str]]:
        """What was told of each utterance at its end: phase, words heard, why."""
        return [(one.phase, one.spoken, one.why) for _, one in self.told if one.phase != "begun"]

    @property
    def begun(self) -> list[tuple[float, str]]:
        return [(time_s, one.text) for time_s, one in self.told if one.phase == "begun"]


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.sim.close()


def test_utterances_are_spoken_whole_and_in_their_order(stage: Stage) -> None:
    stage.say("Hello there.")
    stage.say("I am ready.")
    stage.run(5.0)
    assert stage.begun == [(0.2, "Hello there."), (1.114, "I am ready.")]  # 0.2 s to make it, 2 words at 2.8 a second
    assert stage.ends == [("done", "Hello there.", ""), ("done", "I am ready.", "")]


def test_each_utterance_is_named_and_is_the_cause_of_what_is_told_of_it(stage: Stage) -> None:
    stage.say("Hello.")
    stage.run(2.0)
    assert [one.id for _, one in stage.told] == ["said:test:1", "said:test:1"]
    assert stage.causes == ["said:test:1", "said:test:1"]


def test_the_next_sentence_is_made_while_one_is_played(stage: Stage) -> None:
    stage.say("One two three. Four five six.")
    stage.run(5.0)
    assert stage.told[-1][0] == round(0.2 + 6 / 2.8, 3)  # no pause between them


def test_a_person_who_speaks_cuts_the_robot_after_the_barge_in_time_at_the_words_that_were_heard(stage: Stage) -> None:
    stage.say(LONG)
    stage.run(2.0)
    stage.person(True)
    stage.run(0.29)
    assert stage.ends == []
    stage.run(0.5)
    assert stage.told[-1][0] == 2.3
    assert stage.ends == [("cut", "I put the blue cup in", "a person speaks")]


def test_words_of_sentences_before_stand_before_those_of_the_one_that_was_cut(stage: Stage) -> None:
    stage.say(LONG)
    stage.run(5.0)
    stage.stop()
    stage.run(0.1)
    assert stage.ends == [("cut", "I put the blue cup in the bin now. Then I take the red", "stop")]


def test_a_short_sound_does_not_cut_the_robot(stage: Stage) -> None:
    stage.say(LONG)
    stage.run(1.0)
    stage.person(True)
    stage.run(0.25)
    stage.person(False)
    stage.run(10.0)
    assert stage.ends == [("done", LONG, "")]


def test_what_was_said_before_an_interruption_goes_with_it_and_what_comes_after_waits_for_the_person(
    stage: Stage,
) -> None:
    stage.say(LONG)
    stage.say("This was said before.")
    stage.run(2.0)
    stage.person(True)
    stage.run(1.0)
    stage.say("I am listening.")
    stage.run(1.0)
    assert [one[2] for one in stage.ends] == ["a person speaks", "a person speaks"]
    assert stage.ends[1][:2] == ("cut", "")
    stage.person(False)
    stage.run(3.0)
    assert stage.begun[-1] == (4.2, "I am listening.")
    assert stage.ends[-1] == ("done", "I am listening.", "")


def test_an_utterance_of_which_nothing_was_heard_yet_waits_and_is_not_lost(stage: Stage) -> None:
    stage.say("Here I am.")
    stage.run(0.1)  # it is being made
    stage.person(True)
    stage.run(1.5)
    assert stage.told == []
    stage.person(False)
    stage.run(3.0)
    assert stage.begun == [(1.6, "Here I am.")]
    assert stage.ends == [("done", "Here I am.", "")]


def test_what_waits_for_longer_than_its_lifespan_is_told_and_not_spoken(stage: Stage) -> None:
    stage.person(True)
    stage.say("Mind your feet.")
    for _ in range(11):
        stage.run(1.0)
        stage.sim.publish("speech", Speech(speaker="ann", is_speaking=True, begun_ns=1))
    assert stage.told[0][0] == 10.0
    assert stage.ends == [("cut", "", "not spoken within 10 s")]


def test_what_stands_behind_a_long_utterance_for_too_long_is_told_too() -> None:
    stage = Stage(lifespan_s=2.0)
    stage.say(LONG)
    stage.say("Too late.")
    stage.run(20.0)
    assert stage.ends == [("cut", "", "not spoken within 2 s"), ("done", LONG, "")]
    assert 2.0 <= stage.told[1][0] <= 2.25
    stage.sim.close()


def test_a_microphone_that_falls_silent_itself_is_not_waited_for(stage: Stage) -> None:
    stage.person(True)
    stage.run(0.5)
    stage.say("Hello.")
    stage.run(5.0)
    assert stage.begun == [(2.2, "Hello.")]


def test_a_stop_silences_at_once_and_empties_the_queue_but_not_what_is_said_after_it(stage: Stage) -> None:
    stage.say(LONG)
    stage.say("This was said before.")
    stage.run(1.0)
    stage.stop()
    stage.say("Sorry! I have stopped.")  # of the same instant
    stage.run(5.0)
    assert stage.told[1][0] == 1.0
    assert stage.ends == [
        ("cut", "I put", "stop"),
        ("cut", "", "stop"),
        ("done", sentence("voice.sorry"), ""),
    ]


class Eyes(Node):
    """A VLM that says something."""

    seat = "vlm"
    cue = Subscription(Utterance, "cue")
    said = Publisher(Utterance, "said", qos=RELIABLE)

    @on(cue)
    def answer(self, cue: Utterance) -> None:
        self.said.publish(Utterance(speaker="robot", text=cue.text))


def test_what_an_interrupt_made_void_before_anybody_heard_it_is_told_and_what_is_being_said_goes_on() -> None:
    sim = Simulation(Eyes(), Loudspeaker(command="", device="none"))
    told = sim.record(Loudspeaker.saying)
    for text in ("I take the blue one.", "Now I take the blue one.", "It is mine."):
        sim.publish("cue", Utterance(speaker="ann", text=text))
    sim.run(seconds=1.0)
    sim.publish("fence", Fence(epochs={"vlm": 1}, interrupt_id="i-1", depth="amend"))
    sim.publish("cue", Utterance(speaker="ann", text="Yes, not the blue one."))
    sim.run(seconds=10.0)
    sim.close()
    assert [(one.text, one.phase, one.why) for one in told if one.phase != "begun"] == [
        ("Now I take the blue one.", "cut", sentence("voice.void")),
        ("It is mine.", "cut", sentence("voice.void")),
        ("I take the blue one.", "done", ""),
        ("Yes, not the blue one.", "done", ""),
    ]


def test_a_clock_that_goes_ahead_silences_nobody_for_ever(stage: Stage) -> None:
    stage.sim.publish("heard", Utterance(speaker="ann", text="No, not that one", captured_ns=1 << 60))
    stage.run(1.0)
    stage.say("Which one?")
    stage.run(3.0)
    assert stage.ends == [("done", "Which one?", "")]


def test_of_too_much_that_is_said_at_once_the_oldest_is_dropped_and_told(stage: Stage) -> None:
    stage.say("Now.")
    stage.run(0.1)
    for number in range(40):
        stage.say(f"{number}.")
    stage.run(0.1)
    assert stage.ends == [("cut", "", sentence("voice.too_much_at_once"))] * 8
    assert [one.text for _, one in stage.told][:8] == [f"{number}." for number in range(8)]


@pytest.mark.parametrize("depth", ["amend", "replan", "resume"])
def test_other_interrupts_do_not_silence_the_robot(stage: Stage, depth: str) -> None:
    stage.say("Hello there.")
    stage.run(0.5)
    stage.sim.publish("interrupt", Interrupt(id="i-1", depth=depth, text="No", by="ann"))  # type: ignore[arg-type]
    stage.run(2.0)
    assert stage.ends == [("done", "Hello there.", "")]


def test_words_of_a_person_cut_what_was_being_said_when_they_began(stage: Stage) -> None:
    """As where the microphone hears the robot too, and nobody is told to speak while it does."""
    stage.say(LONG)
    stage.run(2.0)
    began_ns = stage.sim.clock.now_ns()
    stage.run(0.5)
    stage.say("Sorry!")  # an answer to what was understood early
    stage.sim.publish("heard", Utterance(speaker="ann", text="No, the other one, please.", captured_ns=began_ns))
    stage.run(3.0)
    (cut, done) = stage.ends
    assert (cut[0], cut[2]) == ("cut", "a person speaks")
    assert LONG.startswith(cut[1])
    assert done == ("done", "Sorry!", "")


def test_who_only_listens_does_not_interrupt(stage: Stage) -> None:
    stage.say("I put the cup in the bin.")
    stage.run(1.0)
    stage.sim.publish("heard", Utterance(speaker="ann", text="mhm"))
    stage.run(5.0)
    assert [phase for phase, *_ in stage.ends] == ["done"]


def test_a_loudspeaker_that_is_never_to_be_interrupted_speaks_on() -> None:
    stage = Stage(barge_in_s=math.inf)
    stage.person(True)
    stage.say("The kitchen is on fire.")
    stage.run(3.0)
    assert stage.begun == [(0.2, "The kitchen is on fire.")]
    assert stage.ends == [("done", "The kitchen is on fire.", "")]
    stage.sim.close()


@pytest.mark.parametrize("begun_ns", [0, -5, 1 << 60])
def test_a_beginning_of_another_clock_counts_from_when_it_was_told(stage: Stage, begun_ns: int) -> None:
    stage.say(LONG)
    stage.run(2.0)
    stage.sim.publish("speech", Speech(speaker="ann", is_speaking=True, begun_ns=begun_ns))
    stage.run(0.1)
    stage.sim.publish("speech", Speech(speaker="ann", is_speaking=True, begun_ns=begun_ns))
    stage.run(1.0)
    assert stage.told[-1][0] == 2.3


@pytest.mark.parametrize("text", ["", " \n\t", "\x00\x07\x1b\x7f"], ids=["empty", "blank", "control"])
def test_where_there_is_nothing_to_say_nothing_begins(stage: Stage, text: str) -> None:
    stage.say(text)
    stage.run(1.0)
    assert [one.phase for _, one in stage.told] == ["done"]


def test_a_text_of_a_megabyte_is_cut_after_its_first_two_minutes(stage: Stage) -> None:
    stage.say("word " * 200_000)
    stage.run(200.0)
    (end,) = stage.ends
    assert end[0] == "cut"
    assert end[1] == " ".join(["word"] * 400)
    assert end[2] == "longer than 2000 characters"


def test_an_utterance_that_the_end_of_the_run_cuts_is_told(stage: Stage) -> None:
    stage.say(LONG)
    stage.run(1.0)
    stage.sim.close()
    assert stage.ends == [("cut", "I put", "the run ended")]


def test_a_sentence_that_cannot_be_made_cuts_the_utterance_after_what_was_heard_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage()
    made = stage.node.voice.sound

    class Hoarse:
        async def sound(self, text: str, manner: Manner = AS_EVER) -> bytes:
            if "oh" in text:
                raise VoiceError("espeak-ng failed (exit code 1)")
            return await made(text)

        async def close(self) -> None:
            pass

    stage.run(0.0)
    stage.node.voice = Hoarse()
    stage.say("Well. And oh.")
    stage.say("Just oh.")
    stage.run(3.0)
    why = "espeak-ng failed (exit code 1)"
    assert stage.ends == [("cut", "Well.", why), ("cut", "", why)]
    assert caplog.text.count(why) == 2 - 1
    stage.sim.close()


def test_a_seeded_run_tells_the_same_each_time() -> None:
    def story() -> list[tuple[float, Saying]]:
        stage = Stage()
        stage.say(LONG)
        stage.run(1.7)
        stage.person(True)
        stage.run(1.0)
        stage.say("Go on.")
        stage.person(False)
        stage.run(3.0)
        stage.sim.close()
        return stage.told

    assert story() == story()


def piece(seconds: float, text: str, *, is_last: bool = False, ident: str = "item-1") -> SpokenSound:
    return SpokenSound(id=ident, text=text, samples=np.ones(round(seconds * RATE_HZ), np.int16), is_last=is_last)


def test_sound_of_its_planner_is_played_as_it_comes_and_its_words_are_not_spoken_twice(stage: Stage) -> None:
    stage.sim.publish("said/sound", piece(0.5, "Good morning."))
    stage.sim.publish("said", Utterance(speaker="robot", text="Good morning. How are you?", sound="item-1"))
    stage.run(0.4)
    stage.sim.publish("said/sound", piece(0.5, "Good morning. How are you?", is_last=True))
    stage.run(2.0)
    assert [(at, one.phase, one.id) for at, one in stage.told] == [(0.0, "begun", "item-1"), (1.0, "done", "item-1")]
    assert stage.told[-1][1].spoken == "Good morning. How are you?"


def test_a_gap_in_the_sound_is_silence_and_not_counted_as_played(stage: Stage) -> None:
    stage.sim.publish("said/sound", piece(0.5, "Good"))
    stage.run(1.5)
    stage.sim.publish("said/sound", piece(0.5, "Good morning", is_last=True))
    stage.run(2.0)
    assert [(at, one.phase) for at, one in stage.told] == [(0.0, "begun"), (2.0, "done")]


def test_sound_that_is_cut_is_told_with_the_time_that_was_heard_and_what_comes_late_of_it_is_dropped(
    stage: Stage,
) -> None:
    stage.sim.publish("said/sound", piece(4.0, "one two three four five six seven eight"))
    stage.run(1.0)
    stage.stop()
    stage.run(0.1)
    stage.sim.publish("said/sound", piece(4.0, "one two three four five six seven eight nine", is_last=True))
    stage.run(3.0)
    (_, begun), (at, cut) = stage.told
    assert (begun.phase, cut.phase, cut.why, at) == ("begun", "cut", "stop", 1.0)
    assert cut.played_s == pytest.approx(1.0, abs=0.01)
    assert cut.spoken == "one two"


def test_sound_that_breaks_off_gives_the_turn_to_the_next(stage: Stage) -> None:
    stage.sim.publish("said/sound", piece(0.5, "I was going to"))
    stage.say("Well.")
    stage.run(7.0)
    assert [(one.phase, one.why) for _, one in stage.told] == [
        ("begun", ""), ("cut", "its sound broke off"), ("begun", ""), ("done", ""),
    ]  # fmt: skip


def test_a_person_silences_the_robot_with_all_that_waits_and_what_is_said_then_is_said(stage: Stage) -> None:
    stage.say(LONG)
    stage.say("And this.")
    stage.run(1.5)
    stage.sim.publish("voice/order", VoiceOrder(by="Wiz", is_silenced=True))
    stage.run(0.5)
    stage.say("Hello there.")
    stage.run(3.0)
    assert [(phase, why) for phase, _, why in stage.ends] == [
        ("cut", "Wiz silenced it"),
        ("cut", "Wiz silenced it"),
        ("done", ""),
    ]


def test_a_faster_voice_takes_less_time(stage: Stage) -> None:
    stage.sim.publish("voice/order", VoiceOrder(by="Wiz", speed=2.0))
    stage.say("Hello there.")
    stage.say("I am ready.")
    stage.run(5.0)
    assert stage.begun == [(0.2, "Hello there."), (pytest.approx(0.757, abs=0.002), "I am ready.")]


def test_a_softer_voice_is_softer_and_a_program_is_told_how_fast_to_speak() -> None:
    assert softened(b"\x10\x00\xf0\xff", 0.5) == b"\x08\x00\xf8\xff"
    brisk = Manner(1.2, 0.8)
    assert command_at("espeak-ng -s {words_a_minute} -p {pitch}", brisk) == "espeak-ng -s 210 -p 40"
    assert command_at("piper", brisk) == "piper"
