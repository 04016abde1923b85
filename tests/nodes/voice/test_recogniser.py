"""What is said becomes text, by a real HTTP server: early where it may be a stop, once, and never the robot's own."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from nodes.msgs import RecogniserState, Saying, Sound, SoundSoFar, Utterance
from nodes.voice.hearing.transcription_api import Transcriber
from nodes.voice.recogniser import Recogniser
from runtime import Simulation
from runtime.errors import ParameterError
from tests.support.sentences import pattern, sentence
from tests.support.servers.fake_speech_server import Asked, FakeSpeech, says

PATIENCE_S = 60.0
"""For a program that ends by itself, on a busy machine."""
SAMPLES = np.arange(16_000, dtype=np.int16)


def sound(
    kind: type[Sound],
    number: int = 1,
    *,
    voiced_s: float = 0.5,
    samples: int = 16_000,
    speaker: str = "person",
    captured_ns: int = 0,
) -> Sound:
    return kind(
        speaker=speaker,
        number=number,
        captured_ns=captured_ns or number * 1_000_000_000,
        voiced_s=voiced_s,
        before_s=0.1,
        samples=SAMPLES[:samples],
    )


def heard_of(
    server: FakeSpeech,
    *sounds: tuple[float, Sound] | tuple[float, Sound, str],
    saying: Saying | None = None,
    **params: object,
) -> list[tuple[float, Utterance]]:
    """What is passed on, with the second in which it is; the sounds come in the seconds given (by `ears`)."""
    recogniser = Recogniser(base_url=server.url, model="whisper-test", **params)  # type: ignore[arg-type]  # the test's
    sim = Simulation(recogniser)
    found: list[tuple[float, Utterance]] = []
    sim.observe(
        lambda stamped: (
            found.append((round(stamped.envelope.published_ns * 1e-9, 2), stamped.message))
            if isinstance(stamped.message, Utterance)
            else None
        )
    )
    sim.run(seconds=1.9)
    if saying is not None:
        sim.publish("saying", saying)
    at_s = 1.9
    for second, one, *source in sounds:
        sim.run(seconds=second - at_s)
        at_s = second
        topic = "microphone/so_far" if isinstance(one, SoundSoFar) else "microphone/speech"
        sim.publish(topic, one, source=str(source[0]) if source else "ears")
    sim.run(seconds=6.0)
    sim.close()
    return found


def test_what_is_said_is_text_that_is_as_old_as_its_first_word() -> None:
    with FakeSpeech(says(" Make me a coffee. ")) as server:
        ((second, utterance),) = heard_of(server, (2.0, sound(Sound)), language="en")
    assert second == 2.4  # 0.4 s of latency
    assert (utterance.text, utterance.speaker) == ("Make me a coffee.", "person")
    assert utterance.captured_ns == 1_000_000_000
    (asked,) = server.asked
    assert asked.samples == SAMPLES.tobytes()
    assert asked.fields == {"model": "whisper-test", "language": "en", "response_format": "json"}


def test_a_stop_is_passed_on_before_its_speaker_has_ended_and_not_twice() -> None:
    with FakeSpeech(says("Ouch!")) as server:
        heard = heard_of(server, (2.0, sound(SoundSoFar)), (2.5, sound(Sound)))
    assert [(second, one.text) for second, one in heard] == [(2.4, "Ouch!")]
    assert len(server.asked) == 1  # nothing was added but silence


def test_each_microphone_counts_for_itself() -> None:
    with FakeSpeech(says("Hello.", "Ouch!")) as server:
        page = sound(Sound, 7, voiced_s=0.5)
        heard = heard_of(server, (2.0, page, "console"), (3.0, sound(SoundSoFar, 7)), (3.5, sound(Sound, 7)))
    assert [(second, one.text) for second, one in heard] == [(2.4, "Hello."), (3.4, "Ouch!")]


def test_what_follows_an_early_stop_is_heard_as_well() -> None:
    with FakeSpeech(says("Ouch!", "Ouch! That's my toe!")) as server:
        heard = heard_of(server, (2.0, sound(SoundSoFar, voiced_s=0.3)), (3.0, sound(Sound, voiced_s=1.1)))
    assert [(second, one.text) for second, one in heard] == [(2.4, "Ouch!"), (3.4, sentence("voice.hurts"))]


def test_half_a_sentence_that_is_no_stop_waits_for_its_end_and_then_takes_no_time() -> None:
    with FakeSpeech(says("Put the cup in the bin.")) as server:
        heard = heard_of(server, (2.0, sound(SoundSoFar)), (2.5, sound(Sound)))
        assert [(second, one.text) for second, one in heard] == [(2.5, "Put the cup in the bin.")]
        assert len(server.asked) == 1


def test_an_end_that_comes_before_the_early_answer_waits_for_that_and_asks_no_second_time() -> None:
    with FakeSpeech(says("Put the cup in the bin.")) as server:
        heard = heard_of(server, (2.0, sound(SoundSoFar)), (2.2, sound(Sound)))
        assert [(second, one.text) for second, one in heard] == [(2.4, "Put the cup in the bin.")]
        assert len(server.asked) == 1


def test_two_people_at_two_microphones_are_two_whatever_their_numbers_are() -> None:
    """Each microphone counts from 1 on."""
    with FakeSpeech(says("Ouch!", "Ouch!", "Put the cup in the bin.", "Stop!")) as server:
        heard = heard_of(
            server,
            (2.0, sound(SoundSoFar, speaker="ann"), "ears-of-ann"),
            (2.5, sound(SoundSoFar, speaker="ben"), "ears-of-ben"),
            (3.0, sound(Sound, speaker="ann", voiced_s=0.6), "ears-of-ann"),
            (4.0, sound(SoundSoFar, speaker="ben", captured_ns=3_500_000_000), "ears-of-ben"),
        )
    assert [(one.speaker, one.text) for _, one in heard] == [
        ("ann", "Ouch!"), ("ben", "Ouch!"), ("ann", "Put the cup in the bin."), ("ben", "Stop!"),
    ]  # fmt: skip


def test_a_microphone_that_was_started_again_is_looked_at_ahead_from_its_first_word_on() -> None:
    with FakeSpeech(says("Go on.", "Ouch!")) as server:
        heard = heard_of(
            server, (2.0, sound(Sound, 7)), (3.0, sound(SoundSoFar, 1, captured_ns=8_000_000_000)), latency_s=0.4
        )
    assert [(second, one.text) for second, one in heard] == [(2.4, "Go on."), (3.4, "Ouch!")]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Go\x1b[2J on.\r\n\x00Please.", "Go [2J on. Please."),
        ("Go \ud800 on.", "Go on."),  # no text that could be sent or kept
        ("caf\u00e9 \U0001f600\u2028please", "caf\u00e9 \U0001f600 please"),
        ("\x07\n ", ""),
        ("la " * 400_000, ("la " * 1334)[:4000].strip()),
    ],
)
def test_whatever_a_server_answers_is_one_line_of_words(answer: str, text: str) -> None:
    with FakeSpeech(says(answer)) as server:
        heard = heard_of(server, (2.0, sound(Sound)))
    assert [one.text for _, one in heard] == ([text] if text else [])


def test_the_connections_are_closed_at_the_end() -> None:
    async def whole() -> bool:
        recogniser = Recogniser(base_url="http://127.0.0.1:9/v1", model="whisper-test")
        recogniser.on_start()
        recogniser.on_stop()
        assert recogniser.closing is not None
        await recogniser.closing
        assert isinstance(recogniser.recognition, Transcriber)
        return recogniser.recognition.is_closed

    assert asyncio.run(whole())


def test_an_end_that_nobody_waits_for_any_more_leaves_the_early_look_alone() -> None:
    """As at the end of a run: both handlers are cancelled, the one that waits first."""

    async def both() -> tuple[object, object]:
        recogniser = Recogniser(base_url="http://127.0.0.1:9/v1", model="whisper-test")
        asked = asyncio.Event()

        async def never(_: Sound) -> str | None:
            asked.set()
            await asyncio.Event().wait()
            return None

        recogniser.text_of = never  # type: ignore[method-assign, assignment]  # a server that hangs
        early = asyncio.ensure_future(recogniser.look(sound(SoundSoFar)))  # type: ignore[arg-type]  # it is one
        await asked.wait()
        whole = asyncio.ensure_future(recogniser.understand_speech(sound(Sound)))
        await asyncio.sleep(0)
        whole.cancel()
        await asyncio.wait({whole})
        early.cancel()
        return await asyncio.gather(early, whole, return_exceptions=True)

    assert [type(one) for one in asyncio.run(both())] == [asyncio.CancelledError] * 2


def test_an_early_answer_that_is_later_than_that_of_the_whole_is_not_passed_on_after_it() -> None:
    """A stop that was taken back in the same breath would stop the robot again."""

    async def both() -> list[str]:
        recogniser = Recogniser(base_url="http://127.0.0.1:9/v1", model="whisper-test")
        passed_on: list[str] = []
        recogniser.heard.sink = lambda _, message, __: passed_on.append(str(getattr(message, "text", "")))
        slow, asked = asyncio.Event(), asyncio.Event()

        async def answer(one: Sound) -> str | None:
            asked.set()
            if not isinstance(one, SoundSoFar):
                return "Stop. No, go on."
            await slow.wait()
            return "Stop."

        recogniser.text_of = answer  # type: ignore[method-assign, assignment]  # a server whose answers overtake each other
        early = asyncio.ensure_future(recogniser.look(sound(SoundSoFar)))  # type: ignore[arg-type]  # it is one
        await asked.wait()
        await recogniser.understand_speech(sound(Sound, voiced_s=1.5))
        slow.set()
        await early
        return passed_on

    assert asyncio.run(both()) == ["Stop. No, go on."]


def test_without_looking_ahead_only_whole_speech_is_asked_for() -> None:
    with FakeSpeech(says("Ouch!")) as server:
        heard = heard_of(server, (2.0, sound(SoundSoFar)), (2.5, sound(Sound)), looks_ahead=False)
    assert [second for second, _ in heard] == [2.9]
    assert len(server.asked) == 1


def test_no_words_are_no_utterance() -> None:
    with FakeSpeech(says("  ")) as server:
        assert heard_of(server, (2.0, sound(Sound))) == []


def test_what_the_robot_says_itself_is_not_heard_but_a_stop_beside_it_is() -> None:
    saying = Saying(id="said:planner:1", text="I will stop at the table and wait for you", phase="begun")
    with FakeSpeech(says("i will stop at the table", "Stop!")) as server:
        heard = heard_of(server, (2.0, sound(Sound)), (3.0, sound(Sound, 2)), saying=saying)
    assert [one.text for _, one in heard] == ["Stop!"]


def test_what_the_robot_wanted_to_say_and_nobody_heard_is_a_persons_when_it_is_heard() -> None:
    saying = Saying(id="said:planner:1", text="Put the cup in the bin", phase="cut", why="a person speaks")
    with FakeSpeech(says("Put the cup in the bin")) as server:
        heard = heard_of(server, (2.5, sound(Sound)), saying=saying)
    assert [one.text for _, one in heard] == ["Put the cup in the bin"]


def test_long_after_the_robot_has_said_it_the_same_words_are_a_persons() -> None:
    saying = Saying(id="said:planner:1", text="Put the cup in the bin", phase="done", spoken="Put the cup in the bin")
    with FakeSpeech(says("Put the cup in the bin")) as server:
        heard = heard_of(server, (2.5, sound(Sound)), (8.0, sound(Sound, 2)), saying=saying)
    assert [second for second, _ in heard] == [8.4]


def broken(asked: Asked) -> tuple[int, bytes]:
    return 200, b'{"text": 7}'


def denied(asked: Asked) -> tuple[int, bytes]:
    return 401, json.dumps({"error": {"message": f"no: {asked.key}"}}).encode()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (broken, sentence("voice.no_transcriptions")),
        (denied, sentence("voice.refused_the_key", status=401, variable="SPEECH_API_KEY")),
        (None, "cannot be reached"),
    ],
)
def test_a_server_that_fails_is_told_once_and_again_when_it_works(
    answer: object, words: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SPEECH_API_KEY", "sk-secret")
    with FakeSpeech(says("Go on.")) as server:
        works = server.answer
        url = server.url
        server.answer = answer if callable(answer) else works
        recogniser = Recogniser(base_url=url if answer else "http://127.0.0.1:9/v1", model="whisper-test")
        sim = Simulation(recogniser)
        states, heard = sim.record(Recogniser.state), sim.record(Recogniser.heard)
        with caplog.at_level("INFO"):
            for number in range(3):
                sim.publish("microphone/speech", sound(Sound, number + 1))
                sim.run(seconds=2.0)
            assert [state.is_live for state in states] == [False]
            assert words in states[0].why
            if answer is not None:
                server.answer = works
                sim.publish("microphone/speech", sound(Sound, 9))
                sim.run(seconds=2.0)
                assert [state.is_live for state in states] == [False, True]
                assert [one.text for one in heard] == ["Go on."]
        sim.close()
    told = [record.getMessage() for record in caplog.records if "does not understand" in record.getMessage()]
    assert len(told) == 1
    assert "sk-secret" not in caplog.text


def test_no_more_is_asked_than_the_budget_allows(caplog: pytest.LogCaptureFixture) -> None:
    with FakeSpeech(says("Go on.")) as server:
        heard = heard_of(server, *((2.0 + number, sound(Sound, number)) for number in range(4)), max_calls=2)
        assert len(heard) == len(server.asked) == 2
    assert sentence("voice.asked_no_more") in caplog.text


def test_the_last_calls_are_for_whole_speech(caplog: pytest.LogCaptureFixture) -> None:
    with FakeSpeech(says("Well, I think")) as server:
        looks = [(2.0 + number, sound(SoundSoFar, voiced_s=number)) for number in range(1, 7)]
        heard = heard_of(server, *looks, (9.0, sound(Sound, voiced_s=7.0)), max_calls=5)
    assert [words.text for _, words in heard] == ["Well, I think"]
    assert len(server.asked) == 5
    assert caplog.text.count("most of the 5 calls are made: from now on a stop is understood at its end only") == 1


def test_what_is_lacking_is_known_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPEECH_API_KEY", raising=False)
    monkeypatch.delenv("SPEECH_BASE_URL", raising=False)
    assert "SPEECH_API_KEY is not set" in Recogniser().problems()[0]
    assert Recogniser(base_url="http://127.0.0.1:8000/v1").problems() == []
    with pytest.raises(ParameterError, match=pattern("voice.wrong_ear", by="ear")):
        Recogniser(by="ear")  # type: ignore[arg-type]  # the mistake


def by_program(command: str, **params: object) -> tuple[list[Utterance], list[RecogniserState]]:
    sim = Simulation(Recogniser(by="command", command=command, **params))  # type: ignore[arg-type]  # the test's
    heard, states = sim.record(Recogniser.heard), sim.record(Recogniser.state)
    sim.publish("microphone/speech", sound(Sound))
    sim.run(seconds=2.0)
    sim.close()
    return heard, states


def program(path: Path, body: str) -> str:
    path.write_text(body)
    return f"{sys.executable} {path}"


def test_a_program_reads_wav_and_writes_text(tmp_path: Path) -> None:
    """As a script around whisper.cpp would; this one tells how long the sound is."""
    body = "import sys, wave; file = wave.open(sys.stdin.buffer); print(file.getnframes(),\n 'samples')"
    heard, states = by_program(program(tmp_path / "ear.py", body))
    assert [one.text for one in heard] == ["16000 samples"]
    assert [state.is_live for state in states] == [True]


@pytest.mark.parametrize(
    ("body", "deadline_s", "words"),
    [
        ("import sys; sys.exit('no model at m.bin')", PATIENCE_S, "failed (exit code 1): no model at m.bin"),
        (
            "import sys\nwhile True: sys.stdout.write('la ' * 1000)",
            PATIENCE_S,
            sentence("voice.was_killed", bytes=16000),
        ),
        ("import signal; signal.pause()", 0.5, sentence("voice.did_not_end", seconds=0.5)),
    ],
)
def test_a_program_that_fails_is_told_and_nothing_is_heard(
    tmp_path: Path, body: str, deadline_s: float, words: str
) -> None:
    heard, states = by_program(program(tmp_path / "ear.py", body), deadline_s=deadline_s)
    assert heard == []
    assert words in states[-1].why


def test_a_program_that_is_not_there_is_known_before_the_start() -> None:
    (problem,) = Recogniser(by="command", command="no-such-ear --model x").problems()
    assert problem.startswith(sentence("voice.is_not_there", program="no-such-ear"))
    assert "command is empty" in Recogniser(by="command").problems()[0]
    assert "no command line" in Recogniser(by="command", command="ear 'open").problems()[0]


def part(number: int, *, goes_on: bool, voiced_s: float = 5.0) -> Sound:
    return msgspec.structs.replace(sound(Sound, number, voiced_s=voiced_s), goes_on=goes_on)  # type: ignore[type-var]  # a Struct at run time


def test_the_words_of_speech_that_was_cut_are_joined_and_as_old_as_its_first() -> None:
    with FakeSpeech(says("Put the red cup", "into the bin.", "And then?")) as server:
        heard = heard_of(server, (2.0, part(1, goes_on=True)), (4.0, part(2, goes_on=False)), (6.0, sound(Sound, 3)))
    assert [one.text for _, one in heard] == ["Put the red cup into the bin.", "And then?"]
    assert heard[0][1].captured_ns == 1_000_000_000
    assert heard[0][0] > 4.0


def test_a_stop_does_not_wait_for_the_rest_and_neither_does_a_minute_of_talk() -> None:
    with FakeSpeech(says("Put it there. Stop!", "one", "two", "three", "four")) as server:
        parts = [(2.0 * number, part(number, goes_on=True)) for number in range(1, 5)]
        heard = heard_of(server, *parts, (12.0, part(5, goes_on=False, voiced_s=0.0)))
    assert [one.text for _, one in heard] == ["Put it there. Stop!", "one two three"]
    assert heard[0][0] < 3.0


def test_where_only_silence_follows_a_cut_its_words_are_passed_on() -> None:
    with FakeSpeech(says("Put the red cup", "hallucinated")) as server:
        rest = part(2, goes_on=False, voiced_s=0.0)
        heard = heard_of(server, (2.0, part(1, goes_on=True)), (4.0, rest))
    assert [one.text for _, one in heard] == ["Put the red cup"]
