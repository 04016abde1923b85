"""Programs that make sound of text: real ones, and those that hang, fail, talk nonsense or never end."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nodes.msgs import Interrupt, Saying, Utterance
from nodes.voice.loudspeaker import ESPEAK, Loudspeaker
from nodes.voice.program import ProgramError
from nodes.voice.speaking.playing import BYTES_PER_FRAME, RATE_HZ, VoiceError
from nodes.voice.speaking.synthesis import ProgramVoice, decode_speech
from runtime import Simulation, Stamped
from tests.nodes.voice.voice_programs import plays, program, wav
from tests.support.models.spoken import needs_espeak
from tests.support.running import eventually
from tests.support.sentences import sentence

pytestmark = pytest.mark.processes

PATIENT_S = 60.0


def made(command: str, text: str = "Hello.", deadline_s: float = PATIENT_S) -> bytes:
    return asyncio.run(ProgramVoice(command, deadline_s).sound(text))


def refusal(command: str, text: str = "Hello.", deadline_s: float = PATIENT_S) -> str:
    with pytest.raises((VoiceError, ProgramError)) as problem:
        made(command, text, deadline_s)
    return str(problem.value)


def seconds(sound: bytes) -> float:
    return len(sound) / BYTES_PER_FRAME / RATE_HZ


@needs_espeak
def test_espeak_speaks_longer_texts_longer() -> None:
    short, long = made(ESPEAK, "Hello."), made(ESPEAK, "Hello, I put the blue cup in the bin.")
    assert 0.2 < seconds(short) < seconds(long) < 10
    assert max(long) > 0


@needs_espeak
@pytest.mark.parametrize(
    "text", ["$(touch here); `touch here` | touch here", "-w here", "--help", "'\"\\", "🤖", "..."]
)
def test_no_text_is_a_command_or_an_option(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made(ESPEAK, text)
    assert list(tmp_path.iterdir()) == []


def test_the_text_comes_whole_by_standard_input_and_nowhere_else() -> None:
    text = "Zäh\u2009\U0001f916 " * 20
    reads = program(f"assert text.decode() == {text!r} + '\\n' and len(sys.argv) == 1\nout.write({wav(0.1)!r})")
    assert seconds(made(reads, text)) == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("rate_hz", [16_000, 22_050, 24_000, 48_000])
@pytest.mark.parametrize("channels", [1, 2])
def test_any_rate_and_number_of_channels_keeps_its_length(rate_hz: int, channels: int) -> None:
    sound = decode_speech(wav(0.5, rate_hz=rate_hz, channels=channels), "it")
    assert seconds(sound) == pytest.approx(0.5, abs=0.01)


def test_a_stream_that_does_not_say_its_length_is_read_to_its_end() -> None:
    data = bytearray(wav(0.5))
    data[4:8] = data[40:44] = b"\xff\xff\xff\xff"
    assert seconds(decode_speech(bytes(data), "it")) == pytest.approx(0.5, abs=0.01)


def test_a_sound_without_samples_is_silence() -> None:
    assert decode_speech(wav(0.0), "it") == b""


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", sentence("voice.no_sound", what="espeak")),
        (b"ID3\x04 mp3", "espeak " + sentence("voice.no_wav") + sentence("voice.begins_with", bytes="b'ID3\\x04 mp3'")),
        (wav(0.1)[:20], "espeak gave a WAV file that cannot be read"),
        (wav(61.0, rate_hz=8000), sentence("voice.gave_too_much", what="espeak", seconds=60)),
    ],
    ids=["nothing", "another format", "torn", "too long"],
)
def test_what_is_no_sound_is_refused_in_a_sentence(data: bytes, why: str) -> None:
    with pytest.raises(VoiceError) as problem:
        decode_speech(data, "espeak")
    assert str(problem.value).startswith(why)


def test_a_program_that_fails_is_told_with_its_last_words() -> None:
    body = "sys.stderr.write('x' * 300_000 + '\\nno such voice: klingon\\n')\nsys.exit(1)"
    assert refusal(program(body)).endswith("failed (exit code 1): no such voice: klingon")


def test_a_program_that_reads_nothing_and_fails_is_told() -> None:
    assert refusal(program("os._exit(3)", reads=False), "word " * 50_000).endswith("failed (exit code 3)")


def test_a_program_that_is_gone_since_the_start_is_told() -> None:
    assert refusal("/nowhere/piper") == "/nowhere/piper cannot be started (No such file or directory)"


def test_garbage_is_no_sound() -> None:
    assert sentence("voice.no_wav") in refusal(program("out.write(b'garbage ' * 1000)"))


def test_output_without_end_is_stopped() -> None:
    endless = program(f"out.write({wav(0.1)!r})\nwhile True: out.write(bytes(1 << 16))")
    assert sentence("voice.was_killed", bytes=16777216) in refusal(endless)


def is_alive(pid: int) -> bool:
    """Whether it runs; a dead one that nobody has reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_program_that_hangs_is_killed_with_what_it_has_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    body = (
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nchild = os.fork()\n"
        f"open({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\ntime.sleep(600)"
    )

    async def hang() -> None:
        making = asyncio.ensure_future(ProgramVoice(program(body), PATIENT_S).sound("Hello."))
        async with asyncio.timeout(60):
            while not pids.exists() or len(pids.read_text().split()) < 2:
                assert not making.done()
                await asyncio.sleep(0.02)
        making.cancel()
        await asyncio.wait([making])

    asyncio.run(hang())
    for pid in pids.read_text().split():
        eventually(lambda pid=pid: not is_alive(int(pid)), f"{pid} is gone")  # type: ignore[misc]


def test_a_program_that_takes_too_long_is_told() -> None:
    assert refusal(program("time.sleep(600)"), deadline_s=0.5).endswith(sentence("voice.did_not_end", seconds=0.5))


def test_in_virtual_time_the_sound_of_a_program_takes_the_time_it_plays() -> None:
    told: list[tuple[int, str, str]] = []

    def observe(stamped: Stamped[Any]) -> None:
        if isinstance(stamped.message, Saying):
            told.append((stamped.envelope.published_ns, stamped.message.phase, stamped.message.spoken))

    with closing(Simulation(Loudspeaker(command=plays(1.5), device="none", latency_s=0.5))) as sim:
        sim.observe(observe)
        sim.publish("said", Utterance(speaker="robot", text="One two three four."))
        sim.run(seconds=5.0)
        assert told == [(500_000_000, "begun", ""), (2_000_000_000, "done", "One two three four.")]
        sim.publish("said", Utterance(speaker="robot", text="One two three four."))
        sim.run(seconds=1.5)
        sim.publish("interrupt", Interrupt(id="i", depth="stop", text="Stop!", by="ann"))
        sim.run(seconds=0.1)
        assert told[-1] == (6_500_000_000, "cut", "One two")


@needs_espeak
def test_a_robot_speaks_by_espeak_in_virtual_time_the_same_each_time() -> None:
    def story() -> list[Saying]:
        with closing(Simulation(Loudspeaker(device="none"))) as sim:
            told = sim.record(Loudspeaker.saying)
            sim.publish("said", Utterance(speaker="robot", text="Sorry! I have stopped."))
            sim.run(seconds=10.0)
        return told

    assert [one.phase for one in story()] == ["begun", "done"]
    assert story() == story()
