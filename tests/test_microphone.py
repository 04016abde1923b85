"""The microphone on sound files and on a device of silence: when somebody speaks, since when, and what goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nodes.voice.microphone import Microphone
from nodes.voice.sound_in import Block, DeviceSound, decode_sound, microphones
from runtime import Simulation
from runtime.clock import SystemClock
from runtime.errors import ParameterError, UserError
from runtime.voice_msgs import MicrophoneState, Saying, Sound, Speech
from tests.spoken import needs_espeak, silence, spoken, write_wav


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
    assert stamped.envelope.utterance_ns == stamped.message.captured_ns
    assert stamped.envelope.published_ns - stamped.envelope.utterance_ns > 1.5e9


def test_motors_and_silence_are_nobody(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "a.wav", silence(1.0), motor(3.0), silence(1.0))
    sounds, activity, states = listen(path, 7.0)
    assert sounds == []
    assert not any(one.is_speaking for one in activity)
    assert [state.is_live for state in states] == [True, False]
    assert "the file is at its end" in states[1].why


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


def test_a_device_that_delivers_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock()
    source = DeviceSound("null", clock, stall_s=1e-9)
    source._device.stop()
    source.blocks()
    source.blocks()
    assert "has delivered nothing" in source.lost
    source.close()


def test_a_microphone_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(UserError, match="none has 'no such thing' in its name; there are: "):
        DeviceSound("no such thing", SystemClock())
    assert not any("Discard all" in name for name in microphones())


def test_opening_a_microphone_where_there_is_none_writes_nothing_of_its_own(tmp_path: Path) -> None:
    """ALSA would print a page for each try."""
    code = """
from nodes.voice.sound_in import DeviceSound
from runtime.clock import SystemClock
from runtime.errors import UserError
try:
    DeviceSound("", SystemClock()).close()
except UserError:
    pass
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "ALSA" not in done.stderr


@pytest.mark.parametrize("data", [b"", b"no sound", b"RIFF\x00\x00\x00\x00WAVE", bytes(5000)])
def test_what_is_no_sound_is_named(data: bytes) -> None:
    with pytest.raises(UserError, match=r"talk\.wav is no sound that can be read"):
        decode_sound(data, "talk.wav")


def test_a_file_that_is_not_there_is_known_before_the_start() -> None:
    assert "there is no such sound file" in Microphone.check_parameters(source="none.wav")[0]
    assert Microphone.check_parameters(source="Yeti") == []


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
