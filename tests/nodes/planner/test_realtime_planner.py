"""A planner that speaks itself, over a real WebSocket: it is heard, its calls are subtasks, people cut it short."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from nodes.models.address import realtime_of
from nodes.msgs import (
    Interrupt,
    Saying,
    Scene,
    SeenObject,
    SkillArgument,
    SkillCatalogue,
    SkillSpec,
    Sound,
    SoundSoFar,
    Speech,
    SpokenSound,
    Subtask,
    Utterance,
)
from nodes.planner.realtime_api import RealtimePlanner
from nodes.voice.loudspeaker import Loudspeaker
from runtime import RELIABLE, Fence, Node, Publisher, Simulation, Subscription, every, on, run
from runtime.errors import PolyrhythmError
from tests.support.sentences import pattern, sentence
from tests.support.servers.realtime_server import Answer, Event, RealtimeServer, Session

pytestmark = pytest.mark.processes

WITHIN_S = 20.0
FAILING = sentence("planner.failing")
PLACE = SkillSpec(
    name="place",
    sentence="put a thing at a place",
    arguments=(SkillArgument(name="thing", type="thing"), SkillArgument(name="place", type="place")),
)
CALL: Event = {
    "do": "work", "skill": "place", "things": [{"label": "cup", "colour": "red", "count": 1, "id": ""}],
    "excluding": [], "place": "bin", "relation": "in", "text": "Put the red cup in the bin",
}  # fmt: skip
CUP = SeenObject(
    id="cup-1", label="cup", colour="red",
    x_m=0.5, y_m=0.0, z_m=0.8, width_m=0.08, height_m=0.1, u_px=80.0, v_px=60.0,
)  # fmt: skip
BIN = SeenObject(
    id="bin-1", label="bin", colour="", is_place=True,
    x_m=0.5, y_m=0.4, z_m=0.7, width_m=0.3, height_m=0.3, u_px=20.0, v_px=60.0,
)  # fmt: skip
Step = Callable[["Person"], Iterator[bool]]


class Person(Node):
    """Plays a story, one step whenever the fact that it waits for is there."""

    speech = Publisher(Sound, "microphone/speech", qos=RELIABLE)
    so_far = Publisher(SoundSoFar, "microphone/so_far")
    activity = Publisher(Speech, "speech")
    heard = Publisher(Utterance, "heard", qos=RELIABLE)
    scene = Publisher(Scene, "scene")
    skills = Publisher(SkillCatalogue, "skills")
    interrupt = Publisher(Interrupt, "interrupt", qos=RELIABLE)
    fence = Publisher(Fence, "fence", qos=RELIABLE)
    said = Subscription(Utterance, "said")
    spoken = Subscription(SpokenSound, "said/sound")
    saying = Subscription(Saying, "saying")
    dropped = Publisher(Saying, "saying", qos=RELIABLE)
    subtask = Subscription(Subtask, "subtask")
    understood = Subscription(Utterance, "planner/understood")

    def __init__(self, story: Step) -> None:
        self.story = story(self)
        self.words: list[Utterance] = []
        self.sounds: list[SpokenSound] = []
        self.sayings: list[Saying] = []
        self.subtasks: list[Subtask] = []
        self.understandings: list[Utterance] = []

    @every(hz=20)
    def play(self) -> None:
        self.scene.publish(Scene(things=(CUP, BIN)))
        self.skills.publish(SkillCatalogue(skills=(PLACE,)))
        try:
            next(self.story)
        except StopIteration:
            self.finish(ok=True, reason="")

    @on(said)
    def note_words(self, utterance: Utterance) -> None:
        self.words.append(utterance)

    @on(spoken)
    def note_sound(self, sound: SpokenSound) -> None:
        self.sounds.append(sound)

    @on(saying)
    def note_saying(self, saying: Saying) -> None:
        self.sayings.append(saying)

    @on(subtask)
    def note_subtask(self, subtask: Subtask) -> None:
        self.subtasks.append(subtask)

    @on(understood)
    def note_understood(self, utterance: Utterance) -> None:
        self.understandings.append(utterance)

    def talk(self, seconds: float, *, is_over: bool = True, captured_ns: int = 1) -> None:
        """Say something of that length, in one sound or the beginning of one."""
        samples = np.full(round(seconds * 16_000), 500, np.int16)
        if is_over:
            self.speech.publish(
                Sound(speaker="ann", number=1, captured_ns=captured_ns, voiced_s=seconds, before_s=0.0, samples=samples)
            )
        else:
            self.so_far.publish(
                SoundSoFar(
                    speaker="ann", number=1, captured_ns=captured_ns, voiced_s=seconds, before_s=0.0, samples=samples
                )
            )

    def phases(self) -> list[str]:
        return [one.phase for one in self.sayings]


def play(server: RealtimeServer, story: Step, **parameters: Any) -> Person:
    """The story to its end; a fact that never comes ends it as failed."""
    person = Person(story)
    planner = RealtimePlanner(base_url=server.url, model="a-voice", **parameters)
    outcome = run(planner, Loudspeaker(command="", device="none"), person, seconds=WITHIN_S)
    assert server.problems == []
    assert outcome == (True, ""), (outcome, person.words, person.sayings, [s.events for s in server.sessions])
    return person


def waiting(is_so: Callable[[], object]) -> Iterator[bool]:
    while not is_so():
        yield False


def is_open(server: RealtimeServer, number: int = 1) -> Callable[[], bool]:
    return lambda: len(server.sessions) >= number and bool(server.sessions[number - 1].of("session.update"))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REALTIME_API_KEY", "key-of-a-test")
    monkeypatch.setenv("OPENAI_API_KEY", "key-for-somebody-else")


def test_speech_goes_in_and_comes_out_as_sound_and_a_call_is_a_subtask() -> None:
    def answer(_: Session, number: int) -> Answer:
        return Answer("I put the red cup in the bin.", 0.8, (CALL,)) if number == 0 else Answer()

    with RealtimeServer(answer, transcript="Put the red cup in the bin") as server:

        def story(person: Person) -> Iterator[bool]:
            yield from waiting(is_open(server))
            person.talk(0.5, is_over=False)
            yield from waiting(lambda: server.sessions[0].samples == 12_000)
            person.talk(1.0)
            yield from waiting(lambda: person.subtasks and "done" in person.phases() and person.understandings)

        person = play(server, story)
        session = server.sessions[0]
    assert session.samples == 24_000  # of one second, each sent once
    assert session.path == "/v1/realtime?model=a-voice"
    assert {name.lower(): value for name, value in session.headers.items()}["authorization"] == "Bearer key-of-a-test"
    assert session.events[0]["type"] == "session.update"
    assert "key-for-somebody-else" not in str(session)
    assert sum(len(sound.samples) for sound in person.sounds) == 19_200  # 0.8 s at 24 kHz
    (words,) = person.words
    assert (words.text, words.sound) == ("I put the red cup in the bin.", person.sounds[0].id)
    assert person.sayings[-1].spoken == words.text
    assert (person.subtasks[0].text, person.subtasks[0].place) == ("Put the red cup in the bin", "bin")
    assert [one.text for one in person.understandings] == ["Put the red cup in the bin"]


def test_who_speaks_over_it_cuts_it_off_and_the_server_learns_how_far_it_was_heard() -> None:
    long = " ".join(["and so on"] * 20)

    with RealtimeServer(
        lambda _, number: Answer(long, 20.0, ends=False) if number == 0 else Answer("Yes?", 0.1)
    ) as server:

        def story(person: Person) -> Iterator[bool]:
            yield from waiting(is_open(server))
            person.talk(1.0)
            yield from waiting(lambda: "begun" in person.phases())
            while "cut" not in person.phases():
                person.activity.publish(Speech(speaker="ann", is_speaking=True, begun_ns=1))
                yield False
            person.activity.publish(Speech(speaker="ann", is_speaking=False))
            yield from waiting(lambda: server.sessions[0].of("conversation.item.truncate"))
            yield from waiting(lambda: server.sessions[0].of("response.cancel"))

        person = play(server, story, hears_robot=False)
        (cut,) = server.sessions[0].of("conversation.item.truncate")
    heard = next(one for one in person.sayings if one.phase == "cut")
    assert heard.why == "a person speaks"
    assert cut["item_id"] == heard.id
    assert cut["audio_end_ms"] == round(heard.played_s * 1000) < 10_000
    assert long.startswith(heard.spoken)
    assert heard.spoken != long


def test_what_may_be_its_own_voice_is_no_turn_until_a_recogniser_heard_a_persons_words() -> None:
    with RealtimeServer(lambda _, number: Answer("One moment, I am looking.", 0.6 if number else 5.0)) as server:

        def story(person: Person) -> Iterator[bool]:
            yield from waiting(is_open(server))
            person.talk(0.4)
            yield from waiting(lambda: "begun" in person.phases())
            person.dropped.publish(Saying(id="said:vlm:1", text="Sorry.", phase="cut"))  # ends nothing that is played
            dropped_ns = person.clock.now_ns()
            yield from waiting(lambda: person.clock.since_s(dropped_ns) > 0.6)
            began_ns = person.clock.now_ns()
            person.talk(0.4, captured_ns=began_ns)
            person.talk(0.4, captured_ns=began_ns + 1)
            yield from waiting(lambda: person.sayings and person.sayings[0].phase == "begun")
            assert len(server.sessions[0].of("input_audio_buffer.commit")) == 1
            person.heard.publish(Utterance(speaker="ann", text="Wait", captured_ns=began_ns + 1))
            yield from waiting(lambda: len(server.sessions[0].of("input_audio_buffer.commit")) == 2)

        play(server, story)
        assert server.sessions[0].samples in (2 * 9_600, 9_600)


def test_a_call_that_does_not_fit_is_refused_with_the_reason_and_after_three_a_person_is_told() -> None:
    wrong = {**CALL, "place": "countertop"}

    with RealtimeServer(lambda _, number: Answer("", 0.0, (wrong,))) as server:

        def story(person: Person) -> Iterator[bool]:
            yield from waiting(is_open(server))
            person.heard.publish(Utterance(speaker="ann", text="Put the red cup on the countertop"))
            yield from waiting(lambda: any(one.text.startswith("I could not make a plan") for one in person.words))

        person = play(server, story)
        told = [event["item"] for event in server.sessions[0].of("conversation.item.create")]
    outputs = [item["output"] for item in told if item["type"] == "function_call_output"]
    assert len(outputs) == 3
    assert all("countertop" in one and "known: bin" in one for one in outputs)
    assert person.subtasks == []
    typed = [item for item in told if item.get("role") == "user"]
    assert typed[0]["content"][0]["text"] == "ann: Put the red cup on the countertop"


def test_an_interrupt_calls_off_the_answer_and_nothing_of_it_is_done_or_said_afterwards() -> None:
    with RealtimeServer(lambda _, number: Answer("Now I begin", 0.0, ends=number > 0)) as server:

        def story(person: Person) -> Iterator[bool]:
            yield from waiting(is_open(server))
            person.heard.publish(Utterance(speaker="ann", text="Put the red cup in the bin"))
            yield from waiting(lambda: server.sessions[0].of("response.create"))
            person.interrupt.publish(Interrupt(id="i-1", depth="stop", text="Ouch!", by="ann"))
            person.fence.publish(Fence(epochs={"planner": 1}, interrupt_id="i-1", depth="stop", text="Ouch!", by="ann"))
            yield from waiting(lambda: server.sessions[0].of("response.cancel"))

        person = play(server, story)
    assert person.words == []


def test_a_session_that_ends_is_opened_anew_and_told_what_was_said() -> None:
    with RealtimeServer(lambda _, number: Answer("As you like.", 0.1)) as server:

        def story(person: Person) -> Iterator[bool]:
            yield from waiting(is_open(server))
            person.heard.publish(Utterance(speaker="ann", text="My name is Ann"))
            yield from waiting(lambda: any(one.text == "As you like." for one in person.words))
            server.hang_up()
            yield from waiting(is_open(server, 2))
            person.heard.publish(Utterance(speaker="ann", text="What is my name?"))
            yield from waiting(lambda: server.sessions[1].of("response.create"))

        person = play(server, story)
        told = str(server.sessions[1].of("conversation.item.create"))
    assert "My name is Ann" in told
    assert sum(one.text == FAILING for one in person.words) == 1


def test_garbage_of_a_server_is_told_and_the_planner_tries_again(caplog: pytest.LogCaptureFixture) -> None:
    def answer(_: Session, number: int) -> Answer:
        return Answer(fails="the model is overloaded") if number == 0 else Answer("Here I am.", 0.1)

    with RealtimeServer(answer) as server:

        def story(person: Person) -> Iterator[bool]:
            yield from waiting(is_open(server))
            person.heard.publish(Utterance(speaker="ann", text="Hello"))
            yield from waiting(lambda: any(one.text == "Here I am." for one in person.words))

        person = play(server, story)
    assert "the model is overloaded" in caplog.text
    assert FAILING in [one.text for one in person.words]


def said(person: Person, text: str) -> Callable[[], bool]:
    return lambda: any(one.text == text for one in person.words)


def hears(person: Person, server: RealtimeServer, text: str = "Hello") -> Iterator[bool]:
    yield from waiting(is_open(server))
    person.heard.publish(Utterance(speaker="ann", text=text))


@pytest.mark.parametrize("refused", ["rate_limit_exceeded", "silence", "conversation_already_has_active_response"])
def test_an_answer_that_is_refused_or_never_begins_is_told_and_asked_for_again(
    refused: str, caplog: pytest.LogCaptureFixture
) -> None:
    times = 3 if refused.endswith("response") else 1  # whoever is busy is asked again before it is told

    def answer(_: Session, number: int) -> Answer:
        return Answer(refused=refused) if number < times else Answer("Here I am.", 0.1)

    with RealtimeServer(answer) as server:

        def story(person: Person) -> Iterator[bool]:
            yield from hears(person, server)
            yield from waiting(said(person, "Here I am."))

        person = play(server, story)
    assert FAILING in [one.text for one in person.words]
    assert "it is asked again" in caplog.text


def test_a_barge_in_is_answered_although_the_cut_is_told_after_it(caplog: pytest.LogCaptureFixture) -> None:
    """The server answers one at a time, and takes a while to cancel one."""
    long = " ".join(["and so on"] * 20)

    def answer(_: Session, number: int) -> Answer:
        return Answer(long, 20.0, ends=False) if number == 0 else Answer("The blue one.", 0.1)

    with RealtimeServer(answer, cancels_in_s=0.3) as server:

        def story(person: Person) -> Iterator[bool]:
            yield from waiting(is_open(server))
            person.talk(1.0)
            yield from waiting(lambda: "begun" in person.phases())
            began_ns = person.clock.now_ns()
            person.heard.publish(Utterance(speaker="ann", text="No, take the blue one", captured_ns=began_ns))
            person.talk(0.6, captured_ns=began_ns)
            yield from waiting(said(person, "The blue one."))
            yield from waiting(lambda: person.phases()[-1] == "done")

        person = play(server, story)
        kinds = [event["type"] for event in server.sessions[0].events]
    assert "cut" in person.phases()
    assert "asked again" not in caplog.text
    assert kinds.count("response.cancel") == 1
    assert FAILING not in [one.text for one in person.words]


def test_a_server_of_the_beta_hears_speaks_and_plans() -> None:
    def answer(_: Session, number: int) -> Answer:
        return Answer("I put it in the bin.", 0.3, (CALL,)) if number == 0 else Answer()

    with RealtimeServer(answer, transcript="Put the red cup in the bin", is_beta=True) as server:

        def story(person: Person) -> Iterator[bool]:
            yield from waiting(is_open(server))
            person.talk(1.0)
            yield from waiting(lambda: person.subtasks and "done" in person.phases() and person.understandings)

        person = play(server, story)
        last = server.sessions[0].of("session.update")[-1]["session"]
    assert [one.text for one in person.words] == ["I put it in the bin."]
    assert last["tools"]
    assert last["turn_detection"] is None


def test_a_session_is_renewed_before_its_end_in_no_bodys_sentence_and_told_what_was_said() -> None:
    with RealtimeServer(lambda _, number: Answer("As you like.", 0.1)) as server:

        def story(person: Person) -> Iterator[bool]:
            yield from hears(person, server, "My name is Ann")
            yield from waiting(said(person, "As you like."))
            person.talk(0.4, is_over=False, captured_ns=5)
            yield from waiting(lambda: any(session.samples for session in server.sessions))
            begun = person.clock.now_s()
            yield from waiting(lambda: person.clock.now_s() > begun + 1.5)
            person.talk(0.8, captured_ns=5)
            now = len(server.sessions)
            yield from waiting(lambda: len(server.sessions) > now and server.sessions[now].of("session.update"))

        person = play(server, story, session_s=1.0, hears_robot=False)
        (heard,) = [session for session in server.sessions if session.of("input_audio_buffer.commit")]
    assert heard.samples == 19_200, "all of it, in one session"
    assert heard.of("response.create")
    assert "My name is Ann" in str(server.sessions[-1].of("conversation.item.create"))
    assert FAILING not in [one.text for one in person.words]


@pytest.mark.long
def test_a_session_without_a_quiet_moment_is_renewed_all_the_same_and_hears_the_sentence_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nodes.planner.realtime_api.RENEWED_WITHIN_S", 0.5)
    with RealtimeServer(lambda _, number: Answer("As you like.", 0.1)) as server:

        def story(person: Person) -> Iterator[bool]:
            yield from waiting(is_open(server))
            person.talk(0.4, is_over=False, captured_ns=5)
            yield from waiting(lambda: server.sessions[0].samples)
            yield from waiting(is_open(server, 2))
            person.talk(0.8, captured_ns=5)
            yield from waiting(said(person, "As you like."))

        play(server, story, session_s=1.0, hears_robot=False)
        heard = next(session for session in server.sessions[1:] if session.of("input_audio_buffer.commit"))
    assert heard.samples == 19_200, "all of it, although its beginning was sent to the one before"
    assert not server.sessions[0].of("input_audio_buffer.commit")


def test_what_was_said_and_not_answered_when_a_session_breaks_is_sent_to_the_next() -> None:
    def answer(session: Session, number: int) -> Answer:
        return Answer("Here you are.", 0.1) if session is not server.sessions[0] else Answer(refused="silence")

    with RealtimeServer(answer) as server:

        def story(person: Person) -> Iterator[bool]:
            yield from waiting(is_open(server))
            person.talk(0.5)
            yield from waiting(lambda: server.sessions[0].of("response.create"))
            server.hang_up()
            yield from waiting(said(person, "Here you are."))

        play(server, story)
        assert server.sessions[1].samples == 12_000
        assert server.sessions[1].of("input_audio_buffer.commit")


def test_a_refused_commit_leaves_the_next_speakers_words_and_its_own_are_told_as_text() -> None:
    with RealtimeServer(lambda _, number: Answer("Yes.", 0.1), transcript="words {}", refused_commits=1) as server:

        def story(person: Person) -> Iterator[bool]:
            yield from waiting(is_open(server))
            person.talk(0.5, captured_ns=11)
            yield from waiting(said(person, "Yes."))
            person.heard.publish(Utterance(speaker="ann", text="The first words", captured_ns=11))
            yield from waiting(lambda: "The first words" in str(server.sessions[0].of("conversation.item.create")))
            yield from waiting(lambda: person.phases().count("done") >= 2)
            person.talk(0.5, captured_ns=person.clock.now_ns())
            yield from waiting(lambda: person.understandings)

        person = play(server, story, hears_robot=False)
    (understood,) = person.understandings
    assert understood.text == "words 2"
    assert understood.captured_ns != 11


def test_azures_older_address_and_its_key_are_known() -> None:
    url, query = realtime_of("https://x.openai.azure.com/openai/deployments/voice?api-version=2025-04-01", "m")
    assert url == "https://x.openai.azure.com/openai/realtime"
    assert query == {"api-version": "2025-04-01", "deployment": "voice"}
    assert realtime_of("https://x.openai.azure.com/openai/v1/", "m")[1] == {"model": "m"}


def test_virtual_time_and_a_missing_key_are_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PolyrhythmError, match=pattern("planner.real_robot")):
        Simulation(RealtimePlanner(base_url="http://127.0.0.1:9/v1")).run(0.1)
    monkeypatch.delenv("REALTIME_API_KEY")
    assert "REALTIME_API_KEY is not set" in RealtimePlanner().problems()[0]
