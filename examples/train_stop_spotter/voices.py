"""Voices that tell when each word of alarm ends: espeak-ng by its library, flite and festival by their phones.

None of them is a voice of `bench.ears`: not espeak's plain American, not its British f3, and no voice of Piper's.
"""

from __future__ import annotations

import ctypes
import random
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from examples.train_stop_spotter.sentences import labels
from nodes.msgs import SOUND_RATE_HZ
from nodes.voice.hearing.sound_file import decode_sound

Samples = NDArray[np.float32]

LANGUAGES = (
    "en-us", "en-gb", "en-gb-scotland", "en-gb-x-rp", "en-gb-x-gbclan", "en-gb-x-gbcwmd", "en-029", "en-us-nyc",
)  # fmt: skip
VARIANTS = (
    "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "f1", "f2", "f4", "Alex", "Alicia", "Andrea", "Andy", "Annie",
    "Denis", "Diogo", "Gene", "Gene2", "Henrique", "Hugo", "Jacky", "Lee", "Marco", "Mario", "Michael", "Mike",
    "Storm", "adam", "anika", "announcer", "antonio", "aunty", "belinda", "benjamin", "boris", "caleb", "croak",
    "david", "ed", "edward", "grandma", "grandpa", "iven", "john", "klatt", "klatt2", "klatt3", "klatt4", "linda",
    "marcelo", "max", "michel", "miguel", "norbert", "pablo", "paul", "pedro", "quincy", "rob", "robert", "sandro",
    "shelby", "steph", "steph2", "travis", "victor", "whisper", "zac",
)  # fmt: skip
HELD_BACK = ("f5", "m5", "klatt5", "edward2", "steph3", "iven2")
"""Of espeak, for the validation, beside flite's rms."""
FLITE = ("awb", "slt", "kal16", "kal")
FESTIVAL = ("kal_diphone", "ked_diphone", "cmu_us_slt_arctic_hts")
PHONES = {
    1: (("s", "t", "aa|ao|o", "p"),), 2: (("hh", "ao|aa", "l", "t"),), 3: (("f", "r", "iy", "z"),),
    4: (("aw", "ch"), ("pau", "aw", "pau"), ("pau", "ow", "pau")), 5: (("hh", "er", "t"),),
    6: (("m", "uw", "v"),), 7: (("m", "er", "jh", "*", "n", "s", "iy"),), 8: (("hh", "ow", "l", "d", "ih|ax", "t"),),
    9: (("k", "eh", "r", "f", "*", "l"), ("k", "eh", "r", "f", "el")),
}  # fmt: skip
"""How the words of alarm are pronounced, in the phones of festival and flite; "*" is any."""


@dataclass(frozen=True)
class Spoken:
    """A sentence, and when its words of alarm begin and end."""

    text: str
    voice: str
    sound: Samples
    alarms: tuple[tuple[int, float, float], ...]  # place, from s, to s; place -1: teaches nothing


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int), ("ident", ctypes.c_uint), ("text_position", ctypes.c_int), ("length", ctypes.c_int),
        ("audio_position_ms", ctypes.c_int), ("sample", ctypes.c_int), ("user", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    )  # fmt: skip


class Espeak:
    """The library, which is opened once in a process."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libespeak-ng.so.1")
        self._rate_hz = self._library.espeak_Initialize(2, 0, None, 0)
        self._parts: list[bytes] = []
        self._starts: list[tuple[int, float]] = []
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(_Event))
        self._callback = kind(self._take)
        self._library.espeak_SetSynthCallback(self._callback)

    def _take(self, samples: int | None, count: int, events: ctypes._Pointer[_Event]) -> int:
        if samples and count:
            self._parts.append(ctypes.string_at(samples, 2 * count))
        number = 0
        while events[number].type:
            if events[number].type == 1:
                self._starts.append((events[number].text_position - 1, events[number].audio_position_ms / 1000))
            number += 1
        return 0

    def speak(self, text: str, voice: str, draw: random.Random) -> Spoken:
        """A sentence in a voice, as fast and as high as is drawn."""
        self._parts, self._starts = [], []
        library = self._library
        library.espeak_SetVoiceByName(voice.encode())
        for parameter, value in ((1, draw.randint(125, 225)), (3, draw.randint(25, 80)), (4, draw.randint(20, 90))):
            library.espeak_SetParameter(parameter, value, 0)
        data = text.encode("ascii", "ignore") + b"\0"
        library.espeak_Synth(data, len(data), 0, 1, 0, 1, None, None)
        library.espeak_Synchronize()
        sound = resampled(as_floats(b"".join(self._parts)), self._rate_hz)
        spans = [(found.start(), found.group()) for found in re.finditer(r"[a-z']+", text.lower())]
        starts = dict(self._starts)
        kinds = labels([word for _, word in spans])
        alarms = []
        for place, ((at, _), kind) in enumerate(zip(spans, kinds, strict=True)):
            if not kind or at not in starts:
                continue
            end = min((s for s in starts.values() if s > starts[at]), default=len(sound) / SOUND_RATE_HZ)
            begin = starts[spans[place - 1][0]] if kind in (6, 8) and spans[place - 1][0] in starts else starts[at]
            alarms.append((kind, begin, voiced_end_s(sound, starts[at], end)))
        return Spoken(text, voice, sound, tuple(alarms))


def as_floats(samples: bytes) -> Samples:
    return np.asarray(np.frombuffer(samples, np.int16) / 32768, np.float32)


def voiced_end_s(sound: Samples, from_s: float, to_s: float) -> float:
    """When the last sound of a stretch is that is not silence."""
    part = np.abs(sound[round(from_s * SOUND_RATE_HZ) : round(to_s * SOUND_RATE_HZ)])
    loud = np.flatnonzero(part > 0.04 * max(float(np.abs(sound).max()), 1e-6))
    return from_s + (float(loud[-1]) / SOUND_RATE_HZ if len(loud) else 0.0)


def resampled(sound: Samples, rate_hz: float) -> Samples:
    """At 16 kHz, by its spectrum."""
    length = round(len(sound) * SOUND_RATE_HZ / rate_hz)
    if not length or rate_hz == SOUND_RATE_HZ:
        return sound
    spectrum = np.fft.rfft(sound)
    spectrum = (
        spectrum[: length // 2 + 1] if length < len(sound) else np.pad(spectrum, (0, length // 2 + 1 - len(spectrum)))
    )
    return np.asarray(np.fft.irfft(spectrum, length) * length / len(sound), np.float32)


def by_phones(text: str, voice: str, sound: Samples, phones: list[tuple[str, float]]) -> Spoken | None:
    """The same of phones and when each of them ends, s; None where a word of alarm is not found among them."""
    alarms: list[tuple[int, float, float]] = []
    place = 0
    for kind in labels(re.findall(r"[a-z']+", text.lower())):
        if not kind:
            continue
        found = _found(phones, place, PHONES[kind]) if kind > 0 else None
        if found is None:
            return None
        first, place = found
        last = place - 1 if phones[place - 1][0] == "pau" and phones[place - 1][1] > phones[place - 2][1] else place
        begin = phones[first - 1][1] if first else 0.0
        alarms.append((kind, begin, voiced_end_s(sound, begin, phones[last - 1][1] + 0.03)))
    return Spoken(text, voice, sound, tuple(alarms))


def _found(phones: list[tuple[str, float]], place: int, ways: tuple[tuple[str, ...], ...]) -> tuple[int, int] | None:
    for first in range(place, len(phones)):
        for way in ways:
            heard = [name for name, _ in phones[first : first + len(way)]]
            if len(heard) == len(way) and all(
                want == "*" or name in want.split("|") for name, want in zip(heard, way, strict=True)
            ):
                return first, first + len(way)
    return None


def flite(text: str, voice: str, draw: random.Random) -> Spoken | None:
    """A sentence by flite."""
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        stretch = ("--setf", f"duration_stretch={draw.uniform(0.8, 1.25):.2f}")
        command = ["flite", "-voice", voice, *stretch, "-psdur", "-t", text, "-o", file.name]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        sound = as_floats(decode_sound(Path(file.name).read_bytes(), text))
    phones = [(name, float(end)) for name, _, end in (part.partition(":") for part in told.split()) if end]
    return by_phones(text, voice, sound, phones)


def festival(texts: list[str], voice: str) -> Iterator[Spoken]:
    """Sentences by festival, in one run of it."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"(voice_{voice})"]
        for number, text in enumerate(texts):
            said = re.sub(r"[^A-Za-z',.! ]", "", text)
            lines.append(
                f'(let ((u (SynthText "{said}"))) (utt.save.wave u "{folder}/{number}.wav" \'riff) '
                f'(utt.save.segs u "{folder}/{number}.segs"))'
            )
        script = Path(folder) / "all.scm"
        script.write_text("\n".join(lines))
        subprocess.run(["festival", "-b", str(script)], capture_output=True, check=False)
        for number, text in enumerate(texts):
            made = Path(folder) / f"{number}.wav"
            if not made.is_file() or not (Path(folder) / f"{number}.segs").is_file():
                continue
            sound = as_floats(decode_sound(made.read_bytes(), text))
            rows = [row.split() for row in (Path(folder) / f"{number}.segs").read_text().splitlines()]
            phones = [("pau" if row[2] in ("#", "h#") else row[2], float(row[0])) for row in rows if len(row) == 3]
            if (said_so := by_phones(text, voice, sound, phones)) is not None:
                yield said_so
