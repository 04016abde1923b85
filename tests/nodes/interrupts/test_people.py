"""Who counts as a person: the rows of docs/guard.md, for a stop's name, a go on, a take-back and a yes alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.interrupts.intent import says_yes, understand
from nodes.interrupts.people import Judged, People, RobotVoice, is_echo
from nodes.interrupts.reflex import AGAIN, KEPT, LETS_GO, ONLY_GO_ON, REFUSALS, Reflex
from nodes.msgs import Saying, Utterance
from nodes.msgs.signature import make_token, words
from nodes.policy.confirmations import PLEASE
from nodes.seats.ladder import DRIVER_BACK, DRIVER_GONE, GO_ON
from runtime import Simulation
from runtime.clock import to_ns
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.handler_latency import Latency
from runtime.message import Envelope, Stamped
from runtime.run_facts import RunFacts

NOW_NS = to_ns(100.0)


def people(registry: Path | None = None) -> People:
    return People(RunFacts(roles={"ears": ("microphone", "console")}, registry=str(registry or "")))


def heard(utterance: Utterance, source: str = "microphone", seat: str = "", at_ns: int = NOW_NS) -> Stamped[Utterance]:
    return Stamped(utterance, Envelope(topic="heard", source=source, seq=1, published_ns=at_ns, seat=seat))


def said(text: str = "Go on.", speaker: str = "Ana", captured_ns: int | None = None, person: str = "") -> Utterance:
    return Utterance(speaker=speaker, text=text, captured_ns=captured_ns, person=person)


def saying(phase: str, text: str = "The cups are in the bin now.") -> Saying:
    return Saying(id="said:planner:1", text=text, phase=phase)  # type: ignore[arg-type]  # from a test's table


@pytest.mark.parametrize(
    ("who", "utterance", "source", "seat", "person", "doubt"),
    [
        ("ears", said(), "microphone", "", "microphone/Ana", ""),
        ("ears that tell people apart", said(person="console/7"), "console", "", "console/7", ""),
        ("ears on a seat", said(), "microphone", "planner", "", "not_ears"),
        ("a planner", said(), "planner", "planner", "", "not_ears"),
        ("a tool: polyrhythm pub", said(), "pub-4711", "", "", "not_ears"),
        ("the MQTT bridge", said(speaker="mqtt"), "mqtt", "", "", "not_ears"),
        ("nobody", said(), "", "", "", "not_ears"),
        ("ears whose speaker is the robot", said(speaker="Robot"), "microphone", "", "", "robot"),
        ("a stranger", said(speaker="unknown"), "microphone", "", "microphone/unknown", ""),
        ("one who is called like a cause", said(speaker="contact"), "microphone", "", "microphone/contact", ""),
        ("a forged proof", Utterance(speaker="Ana", text="Go on.", proof="00"), "say-1", "", "", "not_ears"),
    ],
)  # fmt: skip
def test_each_row_of_who_counts(
    who: str, utterance: Utterance, source: str, seat: str, person: str, doubt: str
) -> None:
    judged = people().judge(heard(utterance, source, seat), NOW_NS)
    assert (judged.person, judged.doubt) == (person, doubt), who
    assert judged.counts is (person != "" and doubt == "")


def test_who_signs_with_the_runs_token_counts_once_and_not_again(tmp_path: Path) -> None:
    token, listener = make_token(tmp_path), people(tmp_path)
    signed = heard(words(token, "Go on.", "Ann", NOW_NS), "say-1")
    assert listener.judge(signed, NOW_NS).person == "terminal/Ann"
    assert not listener.judge(signed, NOW_NS + 1).counts, "a signature is good once"
    other = heard(words("guess", "Go on.", "Ann", NOW_NS), "say-1")
    assert not listener.judge(other, NOW_NS).counts
    assert not people().judge(signed, NOW_NS).counts, "a graph without a guard has no token"
    assert not people(tmp_path / "other").judge(signed, NOW_NS).counts, "nor has its folder"


def test_words_that_came_as_text_are_their_persons_also_while_the_loudspeaker_plays_and_of_nobody_from_no_ears() -> (
    None
):
    listener = people()
    listener.voice.speaking(saying("begun"), NOW_NS)
    typed = Utterance(speaker="Ana", text="Go on.", is_typed=True)
    assert listener.judge(heard(typed), NOW_NS + 1) == Judged("microphone/Ana", "")
    assert listener.judge(heard(typed, "pub-4711"), NOW_NS + 1) == Judged("", "not_ears")


@pytest.mark.parametrize(
    ("begun_s", "is_counted"), [(-0.3, True), (-0.05, False), (0.0, False), (1.9, False), (2.4, False), (2.55, True)]
)
def test_speech_that_begins_while_the_loudspeaker_plays_or_within_half_a_second_is_nobodys(
    begun_s: float, is_counted: bool
) -> None:
    listener = people()
    listener.voice.speaking(saying("begun"), NOW_NS)
    listener.voice.speaking(saying("done"), NOW_NS + to_ns(2.0))
    began_ns = NOW_NS + to_ns(begun_s)
    for utterance, at_ns in ((said(captured_ns=began_ns), NOW_NS + to_ns(4.0)), (said(), began_ns)):
        judged = listener.judge(heard(utterance, at_ns=at_ns), at_ns)
        assert judged.doubt == ("" if is_counted else "robot_speaks")
    typed = Utterance(speaker="Ana", text="Go on.", is_typed=True)
    assert listener.judge(heard(typed, "console", at_ns=began_ns), began_ns).counts, (
        "no loudspeaker is in what is typed"
    )


@pytest.mark.parametrize("text", ["Go on.", "go on", "Go on again", "on again"])
def test_the_robots_own_words_are_nobodys_for_two_seconds(text: str) -> None:
    listener = people()
    listener.voice.speaking(saying("begun", "Say 'go on' again."), NOW_NS)
    listener.voice.speaking(saying("done", "Say 'go on' again."), NOW_NS + to_ns(1.0))
    for after_s, doubt in ((0.6, "robot_said"), (1.9, "robot_said"), (2.1, "")):
        at_ns = NOW_NS + to_ns(1.0 + after_s)
        assert listener.judge(heard(said(text, captured_ns=at_ns), at_ns=at_ns), at_ns).doubt == doubt
    at_ns = NOW_NS + to_ns(1.7)
    assert listener.judge(heard(said("Continue", captured_ns=at_ns), at_ns=at_ns), at_ns).counts, "other words are free"


def test_without_a_loudspeaker_that_tells_its_words_last_as_long_as_they_take() -> None:
    listener = people()
    listener.voice.said(said("Please continue.", speaker="Rosie"), NOW_NS)
    assert listener.judge(heard(said("Continue")), NOW_NS + to_ns(2.7)).doubt == "robot_said"
    assert listener.judge(heard(said("Continue")), NOW_NS + to_ns(2.9)).counts
    assert listener.judge(heard(said("Go on", speaker="rosie")), NOW_NS).doubt == "robot", "it speaks as Rosie"


def test_a_loudspeaker_that_tells_no_end_makes_nobody_unheard_for_ever() -> None:
    listener = people()
    listener.voice.speaking(saying("begun"), NOW_NS)
    for after_s, is_counted in ((29.0, False), (31.0, True)):
        at_ns = NOW_NS + to_ns(after_s)
        assert listener.judge(heard(said(captured_ns=at_ns), at_ns=at_ns), at_ns).counts is is_counted


def test_a_loudspeaker_may_be_heard_from_exactly_when_until_exactly_when() -> None:
    voice = RobotVoice()
    voice.speaking(saying("begun"), NOW_NS)
    voice.speaking(saying("done"), NOW_NS + to_ns(1.0))
    first_ns, last_ns = NOW_NS - to_ns(0.1), NOW_NS + to_ns(1.5)
    found = [voice.plays_at(at_ns) for at_ns in (first_ns - 1, first_ns, last_ns - 1, last_ns)]
    assert found == [False, True, True, False]
    until_ns = NOW_NS + to_ns(3.0)
    words = saying("begun").text
    assert [voice.has_just_said(words, at_ns) for at_ns in (until_ns - 1, until_ns)] == [True, False]


def test_the_end_of_a_saying_whose_beginning_nobody_heard_counts_from_there_once() -> None:
    voice = RobotVoice()
    ended = Saying(id="said:planner:1", text="Say go on again now.", spoken="Say go on", phase="cut")
    for at_s in (0.0, 0.4):
        voice.speaking(ended, NOW_NS + to_ns(at_s))
    found = [voice.plays_at(NOW_NS + to_ns(at_s)) for at_s in (-0.2, 0.0, 0.4, 0.6)]
    assert found == [False, True, True, False]
    assert voice.has_just_said("go on", NOW_NS)
    assert not voice.has_just_said("again now", NOW_NS), "that was not spoken any more"
    assert not voice.has_just_said("go on", NOW_NS + to_ns(2.1))


def test_the_end_of_one_saying_is_not_the_end_of_another() -> None:
    voice = RobotVoice()
    voice.speaking(saying("begun"), NOW_NS)
    voice.speaking(Saying(id="said:vlm:1", text="Look.", phase="done"), NOW_NS + to_ns(1.0))
    assert voice.plays_at(NOW_NS + to_ns(5.0))
    voice.speaking(saying("done"), NOW_NS + to_ns(6.0))
    voice.speaking(saying("done"), NOW_NS + to_ns(9.0))
    assert not voice.plays_at(NOW_NS + to_ns(8.0)), "what has ended is not longer for being told again"


def test_a_loudspeaker_that_begins_ends_the_guess_of_when_its_words_end() -> None:
    voice, text = RobotVoice(), "One two three four five six seven eight nine ten"
    voice.said(said(text), NOW_NS)
    voice.said(said("Alpha beta gamma"), NOW_NS)
    voice.speaking(saying("begun", text), NOW_NS + to_ns(0.5))
    voice.speaking(saying("done", text), NOW_NS + to_ns(1.0))
    assert voice.has_just_said("one two three", NOW_NS + to_ns(2.9))
    assert not voice.has_just_said("one two three", NOW_NS + to_ns(3.1)), "its ten words would have taken 4 s"
    assert voice.has_just_said("alpha beta", NOW_NS + to_ns(3.1)), "of other words it tells nothing"


def test_names_and_words_are_kept_within_a_bound_and_the_oldest_go() -> None:
    voice = RobotVoice()
    for number in range(31):
        voice.said(said(f"word{number} here", speaker=f"Robot{number}"), NOW_NS)
        voice.said(said(f"again{number} here", speaker=f"ROBOT{number}"), NOW_NS)
    assert voice.is_name("robot")
    assert voice.is_name("robot30")
    voice.said(said("more", speaker="Rosie"), NOW_NS)
    assert not voice.is_name("robot")
    assert voice.is_name("Robot0")
    assert [voice.has_just_said(f"word{number} here", NOW_NS) for number in (15, 16, 30)] == [False, True, True]


@pytest.mark.parametrize(
    ("heard", "spoken", "is_it"),
    [
        ("go on", "Please go on now.", True),
        ("go on", "Please go right on.", False),  # of two words, one behind the other
        ("on go", "Please go on now.", False),
        ("oni", "Please go on now.", False),
        ("", "Please go on now.", False),
        ("...", "Please go on now.", False),
        ("go on", "", False),
        ("please go on", "Please go right on now.", True),  # of three, all in their order
        ("please stop on", "Please go on.", False),  # two of three
        ("one two three four five six seven x y z", "One two three four five six seven eight.", True),  # 7 of 10
        ("one two three four five six x y z w", "One two three four five six seven eight.", False),
        ("three two one", "One two three.", False),
        ("\u7ee7\u7eed", "\u8bf7\u7ee7\u7eed\u5427", True),
        ("\u7ee7\u7eed\u8bf7\u5427", "\u8bf7\u7ee7\u7eed\u5427", False),  # four characters, in another order
        ("\u4e00\u4e8c\u4e09\u56db\u4e94\u516d", "\u4e00\u4e8c\u4e09\u56db\u4e94\u516d", True),
        ("\u4e00\u4e8c\u4e09\u56db\u4e94\u4e03", "\u4e00\u4e8c\u4e09\u56db\u4e94\u516d", False),
        ("\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03", "\u4e00\u4e8c\u4e09\u56db\u4e94\u516d", True),
    ],
)
def test_what_is_an_echo_of_what(heard: str, spoken: str, is_it: bool) -> None:
    assert is_echo(heard, [spoken]) is is_it
    assert is_echo(heard, ["Something else.", spoken, "And more."]) is is_it
    assert not is_echo(heard, [])


def test_what_the_robot_says_counts_from_when_it_was_told_and_not_from_when_it_was_read() -> None:
    reflex = Reflex()
    sim = Simulation(NodeSpec("reflex", Reflex, instance=reflex, latency={"listen": Latency.parse(1.0, "reflex")}))
    sim.publish("heard", said("Hm."))
    sim.publish("said", said("Please continue.", speaker="robot"))
    sim.publish("saying", saying("begun"))
    sim.publish("saying", saying("done"))
    told_ns = sim.clock.now_ns()
    sim.run(seconds=2.0)
    voice = reflex.people.voice
    assert voice.has_just_said("continue", told_ns + to_ns(2.7))
    assert not voice.has_just_said("continue", told_ns + to_ns(2.9))
    assert voice.plays_at(told_ns)
    assert not voice.plays_at(told_ns + to_ns(0.6))


def test_words_that_no_handler_has_before_it_are_nobodys() -> None:
    assert Reflex().judge(said()) == Judged("", "not_ears")


@pytest.mark.parametrize(
    "prompt",
    [AGAIN, PLEASE, LETS_GO, ONLY_GO_ON, KEPT.format(""), DRIVER_GONE, DRIVER_BACK + GO_ON, *REFUSALS.values(),
     "I wait until you tell me.", "I am stopped, and have nothing to do.",
     "I am stopped. Once you tell me, I put the red cup in the bin, then put the ball in the bin."],
)  # fmt: skip
def test_no_prompt_of_the_robot_says_a_word_that_lifts_a_stop(prompt: str) -> None:
    spoken = prompt.split()
    for first in range(len(spoken)):
        for last in range(first + 1, len(spoken) + 1):
            part = " ".join(spoken[first:last])
            meaning = understand(part)
            assert not any((meaning.lifts_stop, meaning.takes_back, says_yes(part))), part
