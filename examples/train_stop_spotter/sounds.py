"""Sound to train the spotter on, as the network sees it: python -m examples.train_stop_spotter.sounds OUT.npz

Needs espeak-ng, flite, festival and its voices festvox-kallpc16k, festvox-kdlpc16k and festvox-us-slt-hts (Debian).
Each sentence is laid into a noise, a room, a loudness and a speed. `--held-back` makes the validation:
other sentences in voices that are not trained on.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.ears import kitchen
from examples.train_stop_spotter.sentences import sentences
from examples.train_stop_spotter.voices import (
    FESTIVAL,
    FLITE,
    HELD_BACK,
    LANGUAGES,
    VARIANTS,
    Espeak,
    Spoken,
    festival,
    flite,
)
from nodes.msgs import SOUND_RATE_HZ
from nodes.voice.hearing.alarm_spotter import BANDS, FIELD, HOP, STRIDE, Ear

Samples = NDArray[np.float32]

CLIP_S = 2.4
FRAMES = 237  # of a clip: (2.4 s - 25 ms) / 10 ms, in whole
STEPS = (FRAMES - FIELD) // STRIDE + 1
LOUD = 0.1
EARLY_S, LATE_S, PAST_S = 0.03, 0.18, 0.6
"""From when before a word's end it shall be told, until when after it, and until when it may be."""
NOISES = 24


def spoken(seed: int, calls: int, others: int, *, persons: float, held_back: bool) -> Iterator[Spoken]:
    """Each sentence by one voice: one of espeak's, or, so often, one that was made from a person's recordings."""
    draw, espeak = random.Random(seed), Espeak()
    waiting: dict[str, list[str]] = {}
    for text in sentences(seed, calls, others):
        if draw.random() < (0.35 if held_back else persons):
            by_flite = held_back or draw.random() < 0.6
            voice = "rms" if held_back else draw.choice(FLITE if by_flite else FESTIVAL)
            if by_flite:
                if (made := flite(text, voice, draw)) is not None:
                    yield made
            else:
                waiting.setdefault(voice, []).append(text)
            continue
        variant = draw.choice(HELD_BACK if held_back else VARIANTS)
        yield espeak.speak(text, f"{draw.choice(LANGUAGES)}+{variant}", draw)
    for voice, texts in waiting.items():
        yield from festival(texts, voice)


class Laid:
    """Lays sentences into noise and rooms."""

    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.kitchens = [kitchen(20.0, np.random.default_rng(seed + 100 + n)) for n in range(NOISES)]
        self.talk: list[Samples] = []

    def noise(self, length: int) -> Samples:
        """Root mean square 1: of a kitchen, of a motor, white to brown, or of many voices."""
        draw, kind = self.draw, self.draw.random()
        sound: Samples
        if kind < 0.5 or (kind >= 0.85 and len(self.talk) < 50):
            long = self.kitchens[int(draw.integers(NOISES))]
            at = int(draw.integers(len(long) - length))
            sound = long[at : at + length].copy()
        elif kind < 0.7:
            frequency = np.maximum(np.fft.rfftfreq(length, 1 / SOUND_RATE_HZ), 30.0)
            shape = np.exp(1j * draw.uniform(0, 2 * np.pi, len(frequency))) * frequency ** -draw.uniform(0.0, 1.0)
            sound = np.fft.irfft(shape, length).astype(np.float32)
        elif kind < 0.85:
            at_s = np.arange(length, dtype=np.float32) / SOUND_RATE_HZ
            base = draw.uniform(50, 400) * at_s * (1 + draw.uniform(-0.1, 0.1) * at_s)
            sound = draw.normal(0, draw.uniform(0.1, 1), length).astype(np.float32)
            for part in range(1, 9):
                sound += np.sin(2 * np.pi * base * part) * draw.uniform(0.1, 1) / part
        else:
            sound = np.zeros(length, np.float32)
            for _ in range(int(draw.integers(2, 7))):
                one = np.resize(self.talk[int(draw.integers(len(self.talk)))], length)
                sound += np.roll(one, int(draw.integers(length))) * draw.uniform(0.3, 1)
        return np.asarray(sound / max(float(np.sqrt(np.mean(sound**2))), 1e-6), np.float32)

    def room(self, sound: Samples) -> Samples:
        """As it sounds in a room with hard walls."""
        draw = self.draw
        length = round(draw.uniform(0.08, 0.45) * SOUND_RATE_HZ)
        echo = draw.normal(0, 1, length) * np.exp(-6.9 * np.arange(length) / length)
        echo *= draw.uniform(0.1, 0.8) / np.sqrt(np.sum(echo**2))
        echo[0] += 1.0
        total = len(sound) + length
        return np.asarray(
            np.fft.irfft(np.fft.rfft(sound, total) * np.fft.rfft(echo, total), total)[: len(sound)], np.float32
        )

    def clip(self, said: Spoken) -> tuple[NDArray[np.float16], NDArray[np.int8]]:
        """A clip as the network sees it (FRAMES, BANDS), and what it shall answer (STEPS,); -1: anything."""
        draw = self.draw
        speed = draw.uniform(0.87, 1.15)
        sound = np.interp(np.arange(0, len(said.sound) - 1, speed), np.arange(len(said.sound)), said.sound).astype(
            np.float32
        )
        alarms = [(kind, begin / speed, end / speed) for kind, begin, end in said.alarms]
        if not said.alarms and len(self.talk) < 400:
            self.talk.append(sound)
        if alarms and draw.random() < 0.3:  # as if it had begun with the word
            cut_s = max(alarms[0][1] - 0.01, 0.0)
            sound = sound[round(cut_s * SOUND_RATE_HZ) :]
            alarms = [(kind, begin - cut_s, end - cut_s) for kind, begin, end in alarms]
        if alarms and draw.random() < 0.15:  # or ended with it
            sound = sound[: round((alarms[0][2] + 0.02) * SOUND_RATE_HZ)]
            alarms = alarms[:1]
        loud = np.abs(sound) > 0.1 * np.abs(sound).max(initial=1e-6)
        sound = sound * (LOUD / max(float(np.sqrt(np.mean(sound[loud] ** 2))) if loud.any() else 1.0, 1e-6))
        if draw.random() < 0.4:
            sound = self.room(sound)
        length = round(CLIP_S * SOUND_RATE_HZ)
        if alarms:  # the word's end stands where the network can answer to it
            _, _, end_s = alarms[int(draw.integers(len(alarms)))]
            shift = round((draw.uniform(0.75, CLIP_S - 0.2) - end_s) * SOUND_RATE_HZ)
        else:
            shift = round(draw.uniform(min(0.3, CLIP_S - len(sound) / SOUND_RATE_HZ - 0.1), 0.6) * SOUND_RATE_HZ)
        whole = np.zeros(length, np.float32)
        first, last = max(shift, 0), min(shift + len(sound), length)
        if last > first:
            whole[first:last] = sound[first - shift : last - shift]
        if draw.random() < 0.8:
            whole += self.noise(length) * LOUD * 10 ** (-draw.uniform(0, 28) / 20)
        else:
            whole += draw.normal(0, 1, length).astype(np.float32) * LOUD * 10 ** (-draw.uniform(35, 80) / 20)
        if draw.random() < 0.4:  # a microphone of its own
            tilt = np.linspace(0, draw.uniform(-1.2, 1.2), length // 2 + 1) + draw.uniform(-0.3, 0.3)
            whole = np.fft.irfft(np.fft.rfft(whole) * np.exp(tilt), length).astype(np.float32)
        whole = np.clip(whole * 10 ** (draw.uniform(-16, 8) / 20), -1, 1)
        return Ear().frames(whole)[:FRAMES].astype(np.float16), answers(alarms, shift / SOUND_RATE_HZ)


def answers(alarms: list[tuple[int, float, float]], shift_s: float) -> NDArray[np.int8]:
    """What the network shall say at each of its steps."""
    end_s = ((FIELD - 1 + STRIDE * np.arange(STEPS)) * HOP + HOP) / SOUND_RATE_HZ + 0.01
    wanted = np.zeros(STEPS, np.int8)
    for kind, begin, end in alarms:
        begin, end = begin + shift_s, end + shift_s
        unsure = (end_s > begin + 0.35 * (end - begin)) & (end_s < end + PAST_S)
        wanted[unsure & (wanted == 0)] = -1
        if kind > 0:
            wanted[(end_s >= end - EARLY_S) & (end_s <= end + LATE_S)] = kind
    return wanted


def main() -> int:
    """Make a file of clips."""
    parser = argparse.ArgumentParser(prog="examples.train_stop_spotter.sounds", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--calls", type=int, default=1500)
    parser.add_argument("--others", type=int, default=1800)
    parser.add_argument("--times", type=int, default=1, help="that each sentence is laid; default: %(default)s")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--persons", type=float, default=0.5, help="share of voices that a person's recordings made")
    parser.add_argument("--held-back", action="store_true")
    asked = parser.parse_args()
    began_s = time.process_time()
    laid = Laid(asked.seed)
    clips: list[NDArray[np.float16]] = []
    wanted: list[NDArray[np.int8]] = []
    for said in spoken(asked.seed, asked.calls, asked.others, persons=asked.persons, held_back=asked.held_back):
        for _ in range(asked.times):
            clip, answer = laid.clip(said)
            clips.append(clip)
            wanted.append(answer)
    assert all(clip.shape == (FRAMES, BANDS) for clip in clips)
    np.savez(asked.out, clips=np.stack(clips), wanted=np.stack(wanted))
    print(
        f"{asked.out}: {len(clips)} clips, {time.process_time() - began_s:.0f} s of CPU beside the programs that speak"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
