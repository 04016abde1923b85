"""`AlarmSpotter`: a small network that hears words of alarm in the sound itself, before any recogniser has an answer.

`examples/train_stop_spotter` trains it. It knows ten words and how they sound; what they mean is for others to judge.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nodes.msgs import SOUND_RATE_HZ
from runtime.clock import to_ns
from runtime.errors import UserError
from runtime.extras import install

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

MODEL = Path(__file__).with_name("alarm_spotter.onnx")
SHA256 = "89cc928e61b842330374685438444d317038b825d3f1874e840961a3125b6413"
WORDS = ("", "stop", "halt", "freeze", "ouch", "hurt", "don't move", "emergency", "hold it", "careful")
"""What the network's answers are; the first is none of them."""

HOP = 160
WINDOW = 400
BANDS = 40
_LOWEST_HZ, _HIGHEST_HZ = 60.0, 7600.0
_FFT = 512
_FLOOR = 1e-6
_PACE = 0.01  # of a frame in what is usual: it follows in a second
STRIDE = 3  # frames of one answer
FIELD = 89  # frames that the network needs for its first answer, 0.9 s
RUN_BLOCKS = 2  # it looks every 64 ms
SMOOTHED = 3  # answers whose mean counts, 0.09 s
ANSWERS = SMOOTHED + 2  # of one look, so that none between two looks is missed

HOLD_FROM = 0.65
"""How sure it must be for a soft hold, which lifts itself: of words that sound alike, one in ten is taken for one."""
SURE_FROM = 0.95
"""From where it stands against a recogniser that heard nothing of the kind: one in fifty of them."""
AGAIN_NS = to_ns(1.0)
"""So soon after a word the next is the same one."""


def _filters() -> NDArray[np.float32]:
    """Triangles, evenly spaced in mel; (_FFT // 2 + 1, BANDS)."""
    low_mel, high_mel = (2595 * np.log10(1 + hz / 700) for hz in (_LOWEST_HZ, _HIGHEST_HZ))
    edges_mel = np.linspace(low_mel, high_mel, BANDS + 2)
    edges_hz = 700 * (10 ** (edges_mel / 2595) - 1)
    at_hz = np.fft.rfftfreq(_FFT, 1 / SOUND_RATE_HZ)[:, np.newaxis]
    low, middle, high = edges_hz[:-2], edges_hz[1:-1], edges_hz[2:]
    rising, falling = (at_hz - low) / (middle - low), (high - at_hz) / (high - middle)
    return np.asarray(np.maximum(np.minimum(rising, falling), 0.0), np.float32)


_FILTERS = _filters()
_TAPER = np.hanning(WINDOW).astype(np.float32)


def log_mel(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """How loud each band is every 10 ms, as a logarithm, of samples between -1 and 1; (frames, BANDS)."""
    if len(samples) < WINDOW:
        return np.zeros((0, BANDS), np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(samples, WINDOW)[::HOP]
    spectrum = np.fft.rfft(windows * _TAPER, _FFT)
    power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32)
    bands = np.einsum("fb,bm->fm", power, _FILTERS)  # not by BLAS, whose kernels differ from machine to machine
    return np.asarray(np.log(bands / WINDOW + _FLOOR), np.float32)


class Ear:
    """What the network is given: how much louder each band is than it was of late.

    So a microphone's colour, its gain and a fan that hums on are nothing to it.
    """

    def __init__(self) -> None:
        self._rest = np.zeros(0, np.float32)
        self._usual: NDArray[np.float32] | None = None  # (BANDS,)

    def frames(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """The frames that the next samples, between -1 and 1, complete; (frames, BANDS)."""
        sound = np.concatenate([self._rest, samples])
        loud = log_mel(sound)
        self._rest = sound[HOP * len(loud) :]
        told = np.empty_like(loud)
        for place, frame in enumerate(loud):
            usual = frame if self._usual is None else self._usual
            told[place] = (frame - usual) * 0.3
            self._usual = np.asarray(usual + _PACE * (frame - usual), np.float32)
        return told


@dataclass(frozen=True, slots=True)
class Spotted:
    """A word that was heard, and how surely."""

    word: str
    sureness: float  # 0 to 1
    ended_ns: int


class AlarmSpotter:
    """Listens block by block; it looks at the last 0.9 s of them while somebody speaks."""

    def __init__(self, model: Path | None = None, sha256: str | None = None) -> None:
        """The network that ships, or another; `sha256`: "" where it is not compared.

        Raises PolyrhythmError for a file that is not there, not the one that `sha256` names, or no such network.
        """
        self._session = _opened(model or MODEL, SHA256 if sha256 is None else sha256)
        self._ear = Ear()
        self._frames = np.zeros((0, BANDS), np.float32)
        self._waiting = 0  # blocks since the last look
        self._told: Spotted | None = None

    def add(self, block: bytes, end_ns: int, *, is_speech: bool) -> Spotted | None:
        """The next block; a word of alarm where one is heard now, and once more where it became sure."""
        new = self._ear.frames(np.asarray(np.frombuffer(block, np.int16) / 32768, np.float32))
        self._frames = np.concatenate([self._frames, new])[-(FIELD + STRIDE * (ANSWERS - 1)) :]
        self._waiting += 1
        if not is_speech or self._waiting < RUN_BLOCKS or len(self._frames) < FIELD:
            return None
        self._waiting = 0
        heard = self._look(end_ns)
        if heard.sureness < HOLD_FROM:
            return None
        told = self._told
        if told is not None and end_ns - told.ended_ns < AGAIN_NS and not told.sureness < SURE_FROM <= heard.sureness:
            return None
        self._told = heard
        return heard

    def forget(self) -> None:
        """What follows has nothing to do with what was before."""
        self._ear, self._frames = Ear(), self._frames[:0]
        self._told = None

    def _look(self, end_ns: int) -> Spotted:
        answers: NDArray[np.float32] = self._session.run(None, {"frames": self._frames[np.newaxis]})[0][0]
        at_once = min(SMOOTHED, len(answers))
        means = np.lib.stride_tricks.sliding_window_view(answers, at_once, axis=0).mean(axis=2)
        best = means[np.argmin(means[:, 0])]
        return Spotted(WORDS[1 + int(np.argmax(best[1:]))], float(np.clip(1.0 - best[0], 0.0, 1.0)), end_ns)


def _opened(model: Path, sha256: str) -> InferenceSession:
    try:
        from nodes.models.onnx_runtime import open_session
    except ImportError as problem:
        raise UserError(f"{problem.name} is not installed: {install('nodes[voice]')}") from problem
    try:
        data = model.read_bytes()
    except OSError as problem:
        raise UserError(
            f"the network that spots words of alarm, {model}, cannot be read: {problem.strerror}"
        ) from problem
    if sha256 and (found := hashlib.sha256(data).hexdigest()) != sha256:
        raise UserError(
            f"{model} has sha256 {found}, expected {sha256}: install Polyrhythm again, or set spots_alarms = false"
        )
    session, _ = open_session(data, name=model.name, providers=("CPUExecutionProvider",))
    (given,), (told,) = session.get_inputs(), session.get_outputs()
    if given.shape[-1] != BANDS or told.shape[-1] != len(WORDS):
        expected = f"(1, frames, {BANDS}) and (1, steps, {len(WORDS)})"
        raise UserError(f"{model} takes {given.shape} and gives {told.shape}; expected {expected}")
    return session
