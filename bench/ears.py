"""How soon a spoken stop is understood, by which recogniser: `python -m bench.ears`, minutes of CPU.

Sixty sentences, of which 24 call a stop, are spoken by synthetic voices, and noise like a kitchen's is mixed in. The
sound goes block by block through the microphone's own detector and segmenter. What these hand on is recognised for
real, one after the other as in the node, and the intent of the words is taken as the reflex takes it. Time is counted
from the first sound of a sentence to the stop; the way from there to the guard (20 ms) is not in it.
A stop that is missed counts as never. "core" is what it would take on a core of its own: the time of the sound, and of
the processor where it recognises; "here" is what it took beside whatever else this machine did.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodes.interrupts.intent import understand
from nodes.voice.hearing import whisper
from nodes.voice.hearing.activity import Activity
from nodes.voice.hearing.blocks import BLOCK_BYTES, BLOCK_NS
from nodes.voice.hearing.recognition import ProgramRecognition, Recognition
from nodes.voice.hearing.segments import Segmenter, SpeechSegment
from nodes.voice.hearing.sound_file import decode_sound
from nodes.voice.program import run_program
from runtime.clock import NS_PER_S
from runtime.msgs import SOUND_RATE_HZ

Samples = NDArray[np.float32]

STOPS = (
    "Stop!", "Ouch!", "Stop it, please.", "Wait, stop that.", "Hey, stop right now.", "No, stop moving.",
    "Stop, you are hurting me.", "Ouch, that was my foot.", "Please stop the arm.", "Halt!", "Freeze!",
    "Stop, there is a child behind you.", "Ow, my hand!", "Careful, stop!", "You are hurting me.", "Emergency stop!",
    "Robot, stop.", "Stop driving.", "Don't move!", "Hold it, stop.", "Ouch, you ran over my toe.", "Stop the robot.",
    "Stop, stop, stop!", "That hurts!",
)  # fmt: skip
OTHERS = (
    "Put the red cup on the table.", "Could you bring me the blue bottle?", "What are you doing over there?",
    "The coffee is almost ready.", "Please clear the table.", "Look at the green cup.", "How was your day?",
    "I will be back in ten minutes.", "Put all the cups in the bin.", "Where did you put my keys?",
    "The bus station is around the corner.", "We should wash the dishes tonight.", "Pick up the yellow cup.",
    "That is a very nice kitchen.", "Can you see the bowl on the shelf?", "It is going to rain tomorrow.",
    "Thank you, that was great.", "Turn a little to the left.", "The music is too loud for me.", "Take the plate away.",
    "Hand me the spoon, please.", "My sister is coming for dinner.", "Show me what you can do.", "Point at the bottle.",
    "Did you read the newspaper today?", "Leave the glass where it is.", "The soup needs a bit more salt.",
    "Open the door for the cat.", "I think we need some more bread.", "The train was late again this morning.",
    "Nod if you understand me.", "Which of the cups is yours?", "Let us begin with the small ones.",
    "There is some milk in the fridge.", "The shop closes at half past six.", "Tell me about your favourite book.",
)  # fmt: skip
VOICES = ("espeak-ng -v en-us --stdin --stdout", "espeak-ng -v en-gb+f3 -s 150 --stdin --stdout")
NOISES_DB = (math.inf, 20.0, 10.0, 0.0)
LEAD_S, TAIL_S = 0.6, 1.2
LOUD = 0.1
"""Root mean square of a sentence, of 1."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One sentence in one noise."""

    text: str
    heard: str
    core_s: float  # from the first sound to the stop; infinite where there was none
    here_s: float

    @property
    def is_stop(self) -> bool:
        return math.isfinite(self.core_s)


class Ears:
    """The microphone's and the recogniser's decisions, with time as a value."""

    def __init__(self, recognition: Recognition) -> None:
        self._recognition = recognition

    async def hear(self, sound: Samples, first_s: float, text: str = "") -> Trial:
        """What comes of a stretch of sound, which is understood as one speaker's."""
        stops = [math.inf, math.inf]
        free = [0.0, 0.0]
        looked: tuple[int, float, str, float, float] | None = None
        words: list[str] = []
        for at_s, heard in segments(sound):
            if heard.is_over and looked is not None and looked[:2] == (heard.number, heard.voiced_s):
                said, ready = looked[2], [max(at_s, looked[3]), max(at_s, looked[4])]
            else:
                began_core, began_here = processor_s(), time.perf_counter()
                said = await self._recognition.text_of(heard.sound)
                took = processor_s() - began_core, time.perf_counter() - began_here
                ready = free = [max(at_s, free[one]) + took[one] for one in (0, 1)]
            if not heard.is_over:
                looked = heard.number, heard.voiced_s, said, ready[0], ready[1]
            else:
                words.append(said)
            if said and understand(said).wants == "stop":
                stops = [min(stops[one], ready[one] - first_s) for one in (0, 1)]
        return Trial(text, " ".join(words), *stops)


def processor_s() -> float:
    """Of this process and of the programs that it has waited for."""
    return sum(os.times()[:4])


def segments(sound: Samples) -> list[tuple[float, SpeechSegment]]:
    """What the microphone hands on of it, and when."""
    data = np.asarray(np.clip(sound, -1, 1) * 32767, np.int16).tobytes()
    detector, segmenter, found = Activity(), Segmenter(), []
    for number in range(len(data) // BLOCK_BYTES):
        block, end_ns = data[number * BLOCK_BYTES : (number + 1) * BLOCK_BYTES], (number + 1) * BLOCK_NS
        heard = segmenter.add(detector.probability(block), block, end_ns)
        if heard is not None:
            found.append((end_ns / NS_PER_S, heard))
    return found


async def spoken(voice: str, text: str) -> Samples:
    """A sentence by a program that reads text and writes WAV, as loud as every other."""
    sound = await run_program(voice, text.encode(), deadline_s=60.0, most_bytes=1 << 24)
    samples = np.frombuffer(decode_sound(sound, voice), np.int16).astype(np.float32) / 32768
    loud = np.abs(samples) > 0.1 * np.abs(samples).max()
    return np.asarray(samples * (LOUD / np.sqrt(np.mean(samples[loud] ** 2))), np.float32)


def kitchen(seconds: float, generator: np.random.Generator) -> Samples:
    """A fan, and dishes that clatter one or two times a second; root mean square 1. Made here, not recorded."""
    length = round(seconds * SOUND_RATE_HZ)
    frequency = np.maximum(np.fft.rfftfreq(length, 1 / SOUND_RATE_HZ), 20.0)
    spectrum = np.fft.rfft(generator.standard_normal(length)) / np.sqrt(frequency)
    sound = np.fft.irfft(spectrum, length)
    sound /= np.sqrt(np.mean(sound**2))
    at = np.arange(round(0.25 * SOUND_RATE_HZ)) / SOUND_RATE_HZ
    for start in map(int, np.flatnonzero(generator.random(length) < 1.5 / SOUND_RATE_HZ)):
        partials = generator.uniform(900, 7000, (6, 1)) * at + generator.uniform(0, 1, (6, 1))
        ring = np.sin(2 * np.pi * partials).sum(axis=0) * np.exp(-at / 0.05)
        end = min(start + len(at), length)
        sound[start:end] += generator.uniform(0.5, 2.0) * ring[: end - start]
    return np.asarray(sound / np.sqrt(np.mean(sound**2)), np.float32)


def mixed(speech: Samples, level_db: float, generator: np.random.Generator) -> tuple[Samples, float]:
    """The sentence with silence or noise around and over it, and when its first sound is."""
    lead, tail = (np.zeros(round(one * SOUND_RATE_HZ), np.float32) for one in (LEAD_S, TAIL_S))
    sound = np.concatenate([lead, speech, tail])
    first_s = LEAD_S + float(np.argmax(np.abs(speech) > 0.02 * np.abs(speech).max())) / SOUND_RATE_HZ
    if math.isfinite(level_db):
        sound += kitchen(len(sound) / SOUND_RATE_HZ, generator)[: len(sound)] * LOUD * 10 ** (-level_db / 20)
    return sound, first_s


def word_errors(said: str, heard: str) -> tuple[int, int]:
    """Substituted, inserted and lost words, and how many were said."""
    one, other = (
        "".join(letter if letter.isalnum() or letter == "'" else " " for letter in text.lower()).split()
        for text in (said, heard)
    )
    row = list(range(len(other) + 1))
    for number, word in enumerate(one, 1):
        before, row[0] = row[0], number
        for place, candidate in enumerate(other, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (word != candidate))
    return row[-1], len(one)


def quantile_s(times_s: Sequence[float], share: float) -> float:
    """The smallest time within which that share of all is."""
    return sorted(times_s)[max(math.ceil(share * len(times_s)), 1) - 1] if times_s else math.nan


async def measured(recognition: Recognition, voices: Sequence[str], most: int, noise_s: float) -> None:
    """Print a row for each noise, and what is called in other speech and in noise alone."""
    ears = Ears(recognition)
    stops, others = STOPS[: max(most * len(STOPS) // 60, 1)], OTHERS[: max(most * len(OTHERS) // 60, 1)]
    sounds = {(voice, text): await spoken(voice, text) for voice in voices for text in (*stops, *others)}
    await recognition.text_of(bytes(2 * SOUND_RATE_HZ))  # loads the model
    print(
        "| speech over noise | stops found | core p50 | p99 | here p50 | p99 "
        "| false stops per hour of speech | words wrong |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for level_db in NOISES_DB:
        generator = np.random.default_rng(1)
        called, wrong, words, others_s, false = [], 0, 0, 0.0, 0
        for (_, text), speech in sounds.items():
            sound, first_s = mixed(speech, level_db, generator)
            trial = await ears.hear(sound, first_s, text)
            errors = word_errors(text, trial.heard)
            wrong, words = wrong + errors[0], words + errors[1]
            if text in stops:
                called.append(trial)
            else:
                others_s += len(speech) / SOUND_RATE_HZ
                false += trial.is_stop
        core, here = [one.core_s for one in called], [one.here_s for one in called]
        level = "clean" if math.isinf(level_db) else f"{level_db:.0f} dB"
        print(
            f"| {level} | {sum(one.is_stop for one in called)} of {len(called)} | {quantile_s(core, 0.5):.2f} s "
            f"| {quantile_s(core, 0.99):.2f} s | {quantile_s(here, 0.5):.2f} s | {quantile_s(here, 0.99):.2f} s "
            f"| {3600 * false / others_s:.0f} ({false} in {others_s:.0f} s) | {wrong / words:.0%} |",
            flush=True,
        )
    alone = await ears.hear(LOUD * kitchen(noise_s, np.random.default_rng(2)), 0.0)
    print(f"\nIn {noise_s:.0f} s of noise alone, as loud as speech: {'a' if alone.is_stop else 'no'} false stop.")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="bench.ears", description=__doc__)
    parser.add_argument(
        "--model", default="", help="folder of a CTranslate2 Whisper; default: that of the extra models"
    )
    parser.add_argument("--command", default="", help="a program that reads WAV and writes text, in place of Whisper")
    parser.add_argument(
        "--voice", action="append", help="a program that reads text and writes WAV; default: two of espeak"
    )
    parser.add_argument("--sentences", type=int, default=60, help="how many of the sixty; default: %(default)s")
    parser.add_argument("--noise-s", type=float, default=300.0, help="of noise alone; default: %(default)s")
    parser.add_argument("--busy", type=int, default=0, help="processes that compute all the time beside it")
    asked = parser.parse_args()
    recognition: Recognition
    if asked.command:
        recognition = ProgramRecognition(asked.command, 60.0)
    else:
        recognition = whisper.Whisper(asked.model, language="en", deadline_s=60.0)
    beside = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(asked.busy)]
    try:
        asyncio.run(measured(recognition, asked.voice or VOICES, asked.sentences, asked.noise_s))
    finally:
        for process in beside:
            process.kill()
        if isinstance(recognition, whisper.Whisper):
            recognition.end()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
