"""Words of alarm in real sound: what the network that ships spots, what it lets pass, and the files it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nodes.interrupts import stop_classifier
from nodes.msgs import SOUND_RATE_HZ
from nodes.voice.hearing.alarm_spotter import HOLD_FROM, MODEL, SHA256, AlarmSpotter, Spotted
from nodes.voice.hearing.blocks import BLOCK_BYTES, BLOCK_NS
from nodes.voice.microphone import Microphone
from runtime.errors import PolyrhythmError, UserError
from tests.support.models.spoken import needs_espeak, silence, spoken
from tests.support.sentences import sentence

BEFORE_S, VOICE = 1.0, "en-us"  # no voice that it was trained on


def spot(*sounds: bytes, spotter: AlarmSpotter | None = None) -> list[Spotted]:
    """What it tells of sound that is said to be speech."""
    sound, listens = b"".join(sounds), spotter or AlarmSpotter()
    blocks = [sound[at : at + BLOCK_BYTES] for at in range(0, len(sound) - BLOCK_BYTES + 1, BLOCK_BYTES)]
    told = (listens.add(block, (number + 1) * BLOCK_NS, is_speech=True) for number, block in enumerate(blocks))
    return [one for one in told if one is not None]


@needs_espeak
@pytest.mark.parametrize(("text", "word"), [("Stop!", "stop"), ("Ouch!", "ouch"), ("Robot, stop.", "stop")])
def test_a_called_word_is_spotted_as_it_ends(text: str, word: str) -> None:
    said = spoken(text, voice=VOICE)
    first, *_ = spot(silence(BEFORE_S), said, silence(1.0))
    assert first.word == word
    assert first.sureness >= HOLD_FROM
    assert BEFORE_S < first.ended_ns * 1e-9 < BEFORE_S + len(said) / 32_000 + 0.15


@needs_espeak
@pytest.mark.parametrize("text", ["Put the red cup on the table.", "The coffee is almost ready.", "How was your day?"])
def test_other_words_are_let_pass(text: str) -> None:
    assert spot(silence(BEFORE_S), spoken(text, voice=VOICE), silence(1.0)) == []


@pytest.mark.parametrize("level", [0, 300, 20_000])
def test_silence_and_noise_are_no_word(level: int) -> None:
    noise = np.random.default_rng(3).normal(0, 1, 16_000 * 6) * level
    assert spot(np.clip(noise, -32768, 32767).astype(np.int16).tobytes()) == []


@needs_espeak
def test_a_word_is_told_once_and_again_where_it_is_said_again() -> None:
    said = silence(BEFORE_S) + spoken("Stop!", voice=VOICE) + silence(1.5) + spoken("Stop!", voice=VOICE) + silence(1.0)
    told = spot(said)
    firsts = [one for one, before in zip(told, [None, *told], strict=False) if _is_new(one, before)]
    assert len(firsts) == 2
    assert len(told) <= 4, "once more at most, where it became sure"


def _is_new(one: Spotted, before: Spotted | None) -> bool:
    return before is None or one.ended_ns - before.ended_ns > 1_000_000_000


@needs_espeak
def test_what_was_heard_before_sound_went_missing_is_no_part_of_a_word() -> None:
    """As where a microphone vanishes in the middle of a word and comes back."""
    said, cut = spoken("Stop!", voice=VOICE), 2 * round(0.2 * SOUND_RATE_HZ)
    begun = silence(BEFORE_S) + said[:cut]
    whole, lost = AlarmSpotter(), AlarmSpotter()
    assert spot(begun, spotter=whole) == spot(begun, spotter=lost) == []
    lost.forget()
    assert spot(said[cut:], silence(1.0), spotter=whole)
    assert spot(silence(2.0), spotter=lost) == []


def test_nothing_is_looked_at_while_nobody_speaks() -> None:
    spotter = AlarmSpotter()
    assert all(spotter.add(bytes(BLOCK_BYTES), n * BLOCK_NS, is_speech=False) is None for n in range(1, 60))


def test_a_network_that_was_cut_or_swapped_is_refused_in_a_sentence(tmp_path: Path) -> None:
    cut = tmp_path / MODEL.name
    cut.write_bytes(MODEL.read_bytes()[:-100])
    with pytest.raises(UserError, match=f"expected {SHA256}"):
        AlarmSpotter(cut)
    with pytest.raises(PolyrhythmError, match="cannot be loaded"):
        AlarmSpotter(cut, "")
    with pytest.raises(UserError, match=r"expected \(1, frames, 40\)"):
        AlarmSpotter(stop_classifier.MODEL, "")
    with pytest.raises(UserError, match="cannot be read: No such file"):
        AlarmSpotter(tmp_path / "none.onnx")


def test_the_microphone_tells_of_it_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodes.voice.hearing.alarm_spotter.MODEL", tmp_path / "none.onnx")
    assert Microphone().problems() == []
    (problem,) = Microphone(spots_alarms=True).problems()
    assert sentence("voice.no_spotter") in problem


def test_the_network_that_ships_is_small() -> None:
    assert MODEL.stat().st_size < 1_000_000
