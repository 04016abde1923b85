"""The microphone on sound files and on a device of silence: when somebody speaks, since when, and what goes on."""

from __future__ import annotations

import subprocess
import sys
import wave
from pathlib import Path

import miniaudio
import numpy as np
import pytest

from nodes.msgs import MicrophoneState, Saying, Sound, Speech
from nodes.voice import devices
from nodes.voice.devices import DeviceError, fewest_channels
from nodes.voice.hearing.blocks import Block, one_channel
from nodes.voice.hearing.input_device import CaptureClock, DeviceSound
from nodes.voice.hearing.sound_file import FileSound, decode_sound
from nodes.voice.microphone import Microphone
from runtime import Simulation
from runtime.clock import Clock, SystemClock
from runtime.errors import ParameterError, UserError
from tests.support.models.spoken import needs_espeak, silence, spoken, write_wav
from tests.support.sentences import sentence


def motor(seconds: float) -> bytes:
    """A loud hum with harmonics, and noise upon it."""
    time_s = np.arange(int(seconds * 16_000)) / 16_000
    hum = sum(np.sin(2 * np.pi * 110 * part * time_s) / part for part in range(1, 8))
    noise = np.random.default_rng(1).normal(0, 0.3, time_s.size)
    return (6000 * (hum + noise)).clip(-32768, 32767).astype(np.int16).tobytes()


def listen(path: Path, seconds: float, **params: object) -> tuple[list[Sound], list[Speech], list[MicrophoneState]]:
    sim = Simulation(Microphone(source=str(path), **params))  # type: ignore[arg-type]  # of the test's choice
    recorded = sim.record(Microphone.speech), sim.record(Microphone.activity), sim.record(Microphone.state)
    sim.run(seconds=seconds)
    sim.close()
    return recorded


@needs_espeak
def test_words_are_handed_on_with_the_time_at_which_they_began(tmp_path: Path) -> None:
    words = spoken("Ouch! That's my toe!")
    path = write_wav(tmp_path / "a.wav", silence(1.0), words, silence(1.5), spoken("Make me a coffee."), silence(1.0))
    sounds, activity, _ = listen(path, 8.0)
    assert [sound.number for sound in sounds] == [1, 2]
    assert abs(sounds[0].captured_ns - 1.0e9) < 0.2e9
    assert abs(sounds[1].captured_ns - (2.5e9 + len(words) / 32_000 * 1e9)) < 0.2e9
    edges = [now.is_speaking for before, now in zip([None, *activity], activity, strict=False) if now != before]
    assert edges == [True, False, True, False]
    assert all(one.begun_ns == sounds[0].captured_ns for one in activity[:3])


@needs_espeak
def test_what_is_said_is_as_old_as_its_beginning(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "a.wav", silence(0.5), spoken("Please put the blue cup in the bin."), silence(1.0))
    sim = Simulation(Microphone(source=str(path)))
    sim.run(seconds=5.0)
    stamped = sim.latest_stamped("microphone/speech")
    assert stamped is not None
    assert isinstance(stamped.message, Sound)
    assert stamped.envelope.begun_ns("utterance") == stamped.message.captured_ns
    assert stamped.envelope.published_ns - stamped.envelope.begun_ns("utterance") > 1.5e9


def test_motors_and_silence_are_nobody(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "a.wav", silence(1.0), motor(3.0), silence(1.0))
    sounds, activity, states = listen(path, 7.0)
    assert sounds == []
    assert not any(one.is_speaking for one in activity)
    assert [state.is_live for state in states] == [True, False]
    assert sentence("voice.file_has_ended") in states[1].why


@needs_espeak
def test_while_the_robot_speaks_in_earshot_nobody_is_told_to_speak_but_words_are_handed_on(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "a.wav", silence(0.5), spoken("Put the cup in the bin."), silence(1.5))
    for hears_robot in (True, False):
        sim = Simulation(Microphone(source=str(path), hears_robot=hears_robot))
        sounds, activity = sim.record(Microphone.speech), sim.record(Microphone.activity)
        sim.run(seconds=0.1)
        sim.publish("saying", Saying(id="said:planner:1", text="I see a cup.", phase="begun"))
        sim.publish("saying", Saying(id="said:planner:2", text="Dropped meanwhile.", phase="cut", why="stop"))
        sim.run(seconds=4.0)
        assert len(sounds) == 1
        assert any(one.is_speaking for one in activity) is not hears_robot
        sim.close()


@needs_espeak
def test_the_end_of_the_robots_own_words_is_nobody_who_speaks_but_who_speaks_after_it_is(tmp_path: Path) -> None:
    path = write_wav(
        tmp_path / "a.wav",
        silence(0.5),
        spoken("Put the cup in the bin."),
        silence(2.0),
        spoken("Thank you very much."),
    )
    sim = Simulation(Microphone(source=str(path)))
    activity = sim.record(Microphone.activity)
    sim.run(seconds=0.4)
    sim.publish("saying", Saying(id="said:planner:1", text="I see a cup.", phase="begun"))
    sim.run(seconds=0.8)
    sim.publish("saying", Saying(id="said:planner:1", text="I see a cup.", phase="done"))
    sim.run(seconds=2.0)
    assert not any(one.is_speaking for one in activity)
    sim.run(seconds=4.0)
    assert any(one.is_speaking for one in activity)
    sim.close()


@needs_espeak
def test_the_same_file_gives_the_same_messages(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "a.wav", silence(0.5), spoken("Go on."), silence(1.0))
    first, again = (listen(path, 4.0)[0] for _ in range(2))
    assert [sound.samples.tobytes() for sound in first] == [sound.samples.tobytes() for sound in again]
    assert [sound.captured_ns for sound in first] == [sound.captured_ns for sound in again]


def test_a_device_is_read_by_its_own_thread_with_rising_times() -> None:
    clock = SystemClock()
    source = DeviceSound("null", clock)
    try:
        blocks: list[Block] = []
        end_ns = clock.now_ns() + 60_000_000_000
        while len(blocks) < 20 and clock.now_ns() < end_ns:
            blocks += source.blocks()
        assert len(blocks) >= 20
        times = [end_ns for _, end_ns in blocks]
        assert times == sorted(times)
        assert {len(block) for block, _ in blocks} == {1024}
        assert source.lost == ""
    finally:
        source.close()


def test_sound_that_waited_while_the_process_stood_still_is_as_old_as_it_is() -> None:
    """A sound server hands over seconds at once; a "go on" among them was said before what happened since."""
    pace = CaptureClock()
    block_ns = 32_000_000
    steady = [pace.end_ns(now_ns, block_ns) for now_ns in range(block_ns, 10 * block_ns, block_ns)]
    assert steady == list(range(block_ns, 10 * block_ns, block_ns))
    back_ns = steady[-1] + 10_000_000_000
    burst = [pace.end_ns(back_ns + number, block_ns) for number in range(300)]
    assert burst == [steady[-1] + (number + 1) * block_ns for number in range(300)]
    assert pace.end_ns(back_ns + 300 + block_ns, block_ns) == back_ns + 300 + block_ns  # as it comes again
    jitter = [pace.end_ns(back_ns + 300 + late_ns, block_ns) for late_ns in (90_000_000, 95_000_000, 127_000_000)]
    assert jitter == [back_ns + 300 + late_ns for late_ns in (90_000_000, 95_000_000, 127_000_000)]


class Ears:
    """A microphone that hears these sounds from these times on, and goes away in between where there is no sound."""

    def __init__(self, clock: Clock, *said: tuple[float, bytes], ends_s: float) -> None:
        self.clock = clock
        self.left = [
            (sound[begin : begin + 1024], round(at_s * 1e9) + (number + 1) * 32_000_000)
            for at_s, sound in said
            for number, begin in enumerate(range(0, len(sound) - 1023, 1024))
        ]
        self.ends_ns = round(ends_s * 1e9)
        self.lost = ""

    def blocks(self) -> list[Block]:
        now_ns = self.clock.now_ns()
        found = [one for one in self.left if one[1] <= now_ns]
        self.left = self.left[len(found) :]
        if now_ns > self.ends_ns:
            self.lost = "it was pulled out"
        return found

    def close(self) -> None:
        self.lost = self.lost or "closed"


def with_ears(*said: tuple[float, bytes], ends_s: float) -> tuple[list[Sound], list[Speech]]:
    microphone = Microphone(source="any.wav")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Microphone, "problems", lambda *_: [])
        patch.setattr(Microphone, "try_open", lambda self: None)
        sim = Simulation(microphone)
        recorded = sim.record(Microphone.speech), sim.record(Microphone.activity)
        microphone.opened = Ears(microphone.clock, *said, ends_s=ends_s)
        sim.run(seconds=1e-6)
        microphone.opened.clock = microphone.clock
        sim.run(seconds=10.0)
        sim.close()
    return recorded


@needs_espeak
def test_what_was_said_when_a_microphone_goes_away_is_handed_on_and_nobody_speaks_any_more() -> None:
    words = spoken("Please put the blue cup in the bin.")[:32_000]
    sounds, activity = with_ears((1.0, words), ends_s=2.0)
    assert len(sounds) == 1
    assert activity[-2].is_speaking
    assert not activity[-1].is_speaking


@needs_espeak
def test_what_is_said_after_a_gap_is_no_older_than_it_is(caplog: pytest.LogCaptureFixture) -> None:
    words = spoken("Please put the blue cup in the bin.")[:32_000]
    sounds, _ = with_ears((1.0, words), (6.0, words + silence(1.0)), ends_s=9.0)
    assert len(sounds) == 2
    assert abs(sounds[0].captured_ns - 1.0e9) < 0.3e9
    assert abs(sounds[1].captured_ns - 6.0e9) < 0.3e9
    assert "4.0 s of sound are missing" in caplog.text


@needs_espeak
def test_the_last_words_of_a_file_are_heard_however_long_the_silence_that_ends_them(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "a.wav", silence(0.5), spoken("Put the cup in the bin."))
    sounds, activity, _ = listen(path, 8.0, silence_s=5.0)
    assert len(sounds) == 1
    assert not activity[-1].is_speaking


def wav(path: Path, samples: bytes, *, channels: int = 1, width: int = 2, rate_hz: int = 16_000) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate_hz)
        file.writeframes(samples)
    return path


class ByHand(SystemClock):
    """Shows the time that it is set to."""

    shown_ns = 0

    def now_ns(self) -> int:
        return self.shown_ns


def heard_in(path: Path, seconds: float, *, loop: bool = False) -> tuple[bytes, str]:
    clock = ByHand()
    source = FileSound(path, clock, loop=loop)
    clock.shown_ns = round(seconds * 1e9)
    sound = b"".join(block for block, _ in source.blocks())
    return sound, source.lost


@pytest.mark.parametrize(
    ("form", "samples", "seconds"),
    [
        ({}, b"", 0.0),
        ({}, b"\1\2", 0.032),
        ({"channels": 2, "rate_hz": 44_100}, bytes(4 * 44_100), 1.0),
        ({"width": 1, "rate_hz": 8_000}, b"\x80" * 8_000, 1.0),
        ({"width": 3, "rate_hz": 48_000}, bytes(3 * 48_000), 1.0),
    ],
)
def test_any_form_of_file_is_heard_at_its_own_pace(
    form: dict[str, int], samples: bytes, seconds: float, tmp_path: Path
) -> None:
    path = wav(tmp_path / "a.wav", samples, **form)
    sound, lost = heard_in(path, 10.0)
    assert abs(len(sound) / 32_000 - seconds - 1.0) < 0.07  # and a second of silence behind it
    assert lost == sentence("voice.file_has_ended")
    again, lost = heard_in(path, 10.0, loop=True)
    assert len(again) == 312 * 1024
    assert again.startswith(sound)
    assert lost == ""


@pytest.mark.parametrize("channels", range(1, 9))
def test_a_file_of_any_number_of_channels_is_heard_mixed_or_by_one_of_them(channels: int, tmp_path: Path) -> None:
    tone = (np.sin(np.arange(16_000) / 16_000 * 440 * 2 * np.pi) * 8000).astype(np.int16)
    all_of_them = np.zeros((len(tone), channels), np.int16)
    all_of_them[:, channels - 1] = tone
    path = wav(tmp_path / "a.wav", all_of_them.tobytes(), channels=channels)
    for channel, expected in ((0, tone / channels), (channels, tone), (1, tone if channels == 1 else 0 * tone)):
        clock = ByHand()
        source = FileSound(path, clock, channel=channel)
        clock.shown_ns = 990_000_000
        heard = np.frombuffer(b"".join(block for block, _ in source.blocks()), np.int16)
        assert len(heard) > 15_000
        assert np.abs(heard - expected[: len(heard)]).max() <= 1
    mixed = np.frombuffer(decode_sound(path.read_bytes(), "a.wav"), np.int16)
    assert np.abs(mixed - tone / channels).max() <= 1
    with pytest.raises(UserError, match=sentence("voice.no_channel", channel=channels + 1)):
        FileSound(path, ByHand(), channel=channels + 1)


def test_of_a_device_no_more_channels_are_opened_than_needed() -> None:
    assert fewest_channels([], 1) == 1
    assert fewest_channels([0], 4) == 4
    assert fewest_channels([6], 1) == 6
    assert fewest_channels([1, 2, 8], 3) == 8
    with pytest.raises(DeviceError, match=sentence("voice.no_channel", channel=7)):
        fewest_channels([6], 7)


def test_one_channel_of_six_is_heard() -> None:
    six = np.tile(np.arange(6, dtype=np.int16) * 60, (100, 1))
    assert set(np.frombuffer(one_channel(six.tobytes(), 6, 2), np.int16)) == {60}
    assert set(np.frombuffer(one_channel(six.tobytes(), 6, 0), np.int16)) == {150}


def test_a_file_is_read_as_it_is_heard(tmp_path: Path) -> None:
    """Two hours of it would be 230 MB, and many seconds before the first word."""
    path = wav(tmp_path / "a.wav", bytes(60 * 32_000))
    clock = ByHand()
    source = FileSound(path, clock)
    path.write_bytes(path.read_bytes()[: 20 * 32_000])
    clock.shown_ns = 100_000_000_000
    assert len(source.blocks()) < 40 * 32_000 / 1024


def test_a_device_that_delivers_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock()
    source = DeviceSound("null", clock, stall_s=1e-9)
    source.device.stop()
    source.blocks()
    source.blocks()
    assert sentence("voice.delivers_nothing") in source.lost
    source.close()


def test_a_microphone_that_is_not_there_is_named_with_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "REAL_BACKENDS", [miniaudio.Backend.NULL])
    with pytest.raises(DeviceError) as problem:
        DeviceSound("no such thing", SystemClock())
    assert str(problem.value) == sentence(
        "voice.no_device", kind="microphone", name="no such thing", names="'NULL Capture Device'"
    )
    DeviceSound("null capture", SystemClock()).close()


def test_a_machine_without_a_microphone_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "REAL_BACKENDS", [miniaudio.Backend.WASAPI])  # of another system
    for name in ("", "Yeti"):
        with pytest.raises(DeviceError, match=r"^this machine has no microphone$"):
            DeviceSound(name, SystemClock())


def test_opening_a_microphone_where_there_is_none_writes_nothing_of_its_own(tmp_path: Path) -> None:
    """ALSA would print a page for each try."""
    code = """
from nodes.voice.hearing.input_device import DeviceSound
from runtime.clock import SystemClock
from nodes.voice.devices import DeviceError
try:
    DeviceSound("", SystemClock()).close()
except DeviceError:
    pass
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "ALSA" not in done.stderr


@pytest.mark.parametrize("data", [b"", b"no sound", b"RIFF\x00\x00\x00\x00WAVE", bytes(5000)])
def test_what_is_no_sound_is_named(data: bytes) -> None:
    with pytest.raises(UserError, match=r"talk\.wav is no sound that can be read"):
        decode_sound(data, "talk.wav")


def test_a_file_that_is_not_there_is_known_before_the_start() -> None:
    assert sentence("voice.no_sound_file") in Microphone(source="none.wav").problems()[0]
    assert Microphone(source="Yeti").problems() == []


def test_a_device_is_refused_in_virtual_time() -> None:
    with pytest.raises(UserError, match=r"does not wait for virtual time.*--set microphone.source=FILE.wav"):
        Simulation(Microphone()).run(seconds=1.0)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"threshold": 1.5}, "threshold is 1.5"),
        ({"silence_s": 0.0}, "silence_s is"),
        ({"longest_s": 1e9}, "longest_s is"),
    ],
)
def test_parameters_out_of_range_are_refused(params: dict[str, float], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        Microphone(**params)  # type: ignore[arg-type]  # of the test's choice
