"""A voice on a server: what it is asked, and what becomes of an answer that is late, wrong, endless or none."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest

from nodes.models.answers import BudgetError, ModelError
from nodes.models.budget import Budget
from nodes.msgs import Interrupt, Saying, Utterance
from nodes.voice.loudspeaker import Loudspeaker
from nodes.voice.speaking.playing import BYTES_PER_FRAME, RATE_HZ, VoiceError
from nodes.voice.speaking.speech_api import SpeechApi, speech_settings
from runtime import Simulation
from runtime.errors import PolyrhythmError
from tests.nodes.voice.speaking.fake_voice_server import (
    Answer,
    FakeVoice,
    breaks_off,
    is_silent,
    never_ends,
    refuses,
    speaks,
)
from tests.nodes.voice.voice_programs import wav
from tests.support.running import eventually
from tests.support.sentences import pattern, sentence

pytestmark = pytest.mark.processes

KEY = "sk-very-secret"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICE_API_KEY", KEY)
    monkeypatch.delenv("VOICE_BASE_URL", raising=False)
    monkeypatch.delenv("VOICE_MODEL", raising=False)


def voice(server: FakeVoice, *, deadline_s: float = 30.0, budget: Budget | None = None, name: str = "") -> SpeechApi:
    settings = speech_settings("fake", server.url, deadline_s, 10)
    return SpeechApi(settings, name, jitter=lambda: 0.0, keep_open=True, budget=budget or Budget(max_calls=10))


def spoken(server: FakeVoice, text: str = "Hello.", deadline_s: float = 30.0) -> bytes:
    async def speak() -> bytes:
        one = voice(server, deadline_s=deadline_s)
        try:
            return await one.sound(text)
        finally:
            await one.close()

    return asyncio.run(speak())


def refusal(*script: Answer, deadline_s: float = 30.0) -> tuple[str, int]:
    """What is told, and how often the server was asked."""
    with FakeVoice(*script) as server:
        with pytest.raises(PolyrhythmError) as problem:
            spoken(server, deadline_s=deadline_s)
        where = server.url.removeprefix("http://").removesuffix("/v1")
        return str(problem.value).replace(where, "SERVER"), len(server.asked)


def test_a_sentence_becomes_sound() -> None:
    with FakeVoice(speaks(wav(0.5, rate_hz=22_050))) as server:
        sound = spoken(server, "Grüezi, 你好!")
        assert len(sound) / BYTES_PER_FRAME / RATE_HZ == pytest.approx(0.5, abs=0.01)
        (asked,) = server.asked
        assert asked.body == {"model": "fake", "voice": "alloy", "input": "Grüezi, 你好!", "response_format": "wav"}
        assert asked.key == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("script", "told", "calls"),
    [
        ((refuses(401),), f"SERVER {sentence('voice.refused_the_key', status=401, variable='VOICE_API_KEY')}", 1),
        ((refuses(404),), sentence("voice.knows_no_model", where="SERVER", model="fake", what="speech"), 1),
        ((refuses(500),), "SERVER failed (500)", 2),
        ((refuses(429),), sentence("voice.fewer_calls", where="SERVER"), 2),
        (
            (speaks(b"garbage " * 10),),
            "SERVER " + sentence("voice.no_wav") + sentence("voice.begins_with", bytes="b'garbage garbage '"),
            1,
        ),
        ((speaks(b""),), sentence("voice.no_sound", what="SERVER"), 1),
        ((never_ends,), sentence("voice.sent_too_much", where="SERVER"), 1),
    ],
    ids=["key", "model", "broken", "busy", "garbage", "nothing", "endless"],
)
def test_a_server_that_fails_is_told_in_a_sentence(script: tuple[Answer, ...], told: str, calls: int) -> None:
    assert refusal(*script) == (told, calls)


def test_the_key_is_in_no_error() -> None:
    told, _ = refusal(refuses(400, f"no such voice for {KEY}"))
    assert told.startswith(f"SERVER {sentence('voice.refused_the_request', status=400)} ")
    assert KEY not in told
    assert "***" in told


def test_an_answer_that_breaks_off_is_asked_for_once_more() -> None:
    with FakeVoice(breaks_off, speaks(wav(0.5))) as server:
        assert spoken(server)
        assert len(server.asked) == 2


def test_a_server_that_is_not_there_is_told() -> None:
    with FakeVoice(speaks(b"")) as server:
        pass
    with pytest.raises(ModelError, match=pattern("voice.unreachable")):
        spoken(server)


def test_a_server_that_does_not_answer_is_given_up_at_the_deadline() -> None:
    told, _ = refusal(is_silent, deadline_s=0.5)
    assert told == sentence("voice.did_not_answer", where="SERVER", seconds=0.5)


def test_cancelling_closes_the_connection() -> None:
    with FakeVoice(is_silent) as server:

        async def cancel() -> None:
            one = voice(server)
            making = asyncio.ensure_future(one.sound("Hello."))
            async with asyncio.timeout(60):
                while not server.asked:
                    assert not making.done()
                    await asyncio.sleep(0.01)
            making.cancel()
            await asyncio.wait([making])
            await one.close()

        asyncio.run(cancel())
        eventually(server.asked[0].is_over.is_set, "the server sees that the client has gone")


def test_what_the_budget_does_not_allow_never_leaves() -> None:
    budget = Budget(max_calls=1)
    with FakeVoice(speaks(wav(0.1))) as server:

        async def twice() -> None:
            one = voice(server, budget=budget)
            try:
                await one.sound("word " * 8)
                with pytest.raises(BudgetError, match="the budget of 1 calls is spent"):
                    await one.sound("word " * 8)
            finally:
                await one.close()

        asyncio.run(twice())
        assert len(server.asked) == 1
    assert (budget.calls, budget.prompt_tokens, budget.estimated_tokens) == (1, 10, 10)


def test_a_robot_speaks_by_a_server_in_virtual_time_and_asks_ahead_no_more_than_a_sentence() -> None:
    with FakeVoice(speaks(wav(1.0))) as server:
        node = Loudspeaker(by="api", model="fake", base_url=server.url, voice="nova", device="none", latency_s=0.5)
        with closing(Simulation(node)) as sim:
            told = sim.record(Loudspeaker.saying)
            sim.publish("said", Utterance(speaker="robot", text="One two. Three four. Five six."))
            sim.run(seconds=1.75)
            assert [asked.body["input"] for asked in server.asked] == ["One two.", "Three four.", "Five six."]
            assert {asked.body["voice"] for asked in server.asked} == {"nova"}
            sim.publish("interrupt", Interrupt(id="i", depth="stop", text="Stop!", by="ann"))
            sim.run(seconds=1.0)
            spending = node.spending()
        assert [(one.phase, one.spoken) for one in told] == [("begun", ""), ("cut", "One two.")]
        assert spending is not None
        assert (spending.model, spending.calls) == ("fake", 3)


def test_words_that_no_server_makes_sound_are_told_as_cut_and_the_next_ones_are_spoken() -> None:
    with FakeVoice(refuses(401), speaks(wav(1.0))) as server:
        with closing(Simulation(Loudspeaker(by="api", base_url=server.url, model="fake", device="none"))) as sim:
            told: list[Saying] = sim.record(Loudspeaker.saying)
            sim.publish("said", Utterance(speaker="robot", text="One."))
            sim.publish("said", Utterance(speaker="robot", text="Two."))
            sim.run(seconds=5.0)
        assert [(one.phase, one.text) for one in told] == [("cut", "One."), ("begun", "Two."), ("done", "Two.")]
        assert told[0].why.endswith(sentence("voice.refused_the_key", status=401, variable="VOICE_API_KEY"))


def test_settings_come_from_the_environment_and_a_missing_key_is_known_before_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Loudspeaker(by="api", device="none").problems() == []
    monkeypatch.delenv("VOICE_API_KEY")
    (problem,) = Loudspeaker(by="api", device="none").problems()
    assert problem == sentence("voice.key_is_missing")
    monkeypatch.setenv("VOICE_BASE_URL", "http://127.0.0.1:8880/v1")
    monkeypatch.setenv("VOICE_MODEL", "kokoro")
    assert Loudspeaker(by="api", device="none").problems() == []
    assert speech_settings("", "", 5.0, 10).model == "kokoro"


def test_a_sound_too_long_is_refused_whoever_made_it() -> None:
    with FakeVoice(speaks(wav(61.0, rate_hz=8000))) as server, pytest.raises(VoiceError, match="more than 60 s"):
        spoken(server)
