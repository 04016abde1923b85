"""`Loudspeaker`: what the robot says on `said` is heard, sentence by sentence, and falls silent for people.

An utterance that was cut is told on `saying` as far as it was really heard; to whom it gives way is decided in
`speaking/floor.py`, and what waits for longer than `lifespan_s` is not spoken. In real time a command or a server makes
the sound beside the event loop, the next sentence while one is played; the device has a thread of its own and is
opened, and opened again, in another.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from importlib.util import find_spec
from typing import Any, Literal

from nodes.interrupts.intent import understand
from nodes.interrupts.phrase_matcher import load
from nodes.models.answers import ModelError
from nodes.models.budget import Budget, budget_of
from nodes.msgs import Interrupt, LoudspeakerState, Saying, Speech, SpokenSound, Utterance, VoiceOrder
from nodes.voice.program import ProgramError
from nodes.voice.speaking.pieces import LONGEST_TEXT, pieces_of
from nodes.voice.speaking.playing import BYTES_PER_FRAME, RATE_HZ, Nowhere, Player, VoiceError
from nodes.voice.speaking.synthesis import (
    PACE,
    PITCH,
    Manner,
    ProgramVoice,
    SilentVoice,
    Voice,
    give_up,
    softened,
    voice_problems,
)
from nodes.voice.speaking.turn import SpeakingTurn, SpokenUtterance
from runtime import RELIABLE, Node, ParameterError, Publisher, QoS, Spending, Subscription, every, needs_real_time, on
from runtime.extras import install

ESPEAK = f"espeak-ng --stdin --stdout -s {PACE} -p {PITCH}"
NOWHERE = "none"
LONGEST_WAIT_S = 0.25
"""How often a device is looked after while it plays."""
MOST_WAITING = 32


SHORTEST_WAIT_S = 0.001
SOUND_WITHIN_S = 5.0
"""A planner that speaks itself and sends no more of a sound for so long has broken off."""


class WakeUp:
    """For one who waits, on one loop."""

    def __init__(self) -> None:
        self._rung: asyncio.Future[None] | None = None

    def ring(self) -> None:
        """Wake the one who waits."""
        if self._rung is not None and not self._rung.done():
            self._rung.set_result(None)

    async def wait(self, seconds: float, other: asyncio.Future[Any] | None = None) -> None:
        """Return after that time (inf: never), when the bell rings, or when the other is done."""
        rung = self._rung = asyncio.get_running_loop().create_future()
        timeout_s = None if seconds == math.inf else max(seconds, SHORTEST_WAIT_S)
        await asyncio.wait(
            [rung] if other is None else [rung, other], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
        )


class Loudspeaker(Node):
    """Speaks one utterance at a time, in the order in which they were said.

    What comes on `said/sound`, as from a speech-to-speech planner, is played as it comes.

    With `by = "command"` each sentence goes through `command` (text in, WAV out); with "api" to a server: `model` and
    `base_url` also as VOICE_MODEL and VOICE_BASE_URL, the key only as VOICE_API_KEY. `device` is a part of a
    loudspeaker's name, "" for the system's own, "none" to play nowhere and take the time; there `command` may be "",
    for 2.8 words a second without any program. `barge_in_s` is how long a person speaks before the robot stops to
    (inf: it never does), `latency_s` what a sentence takes in virtual time.
    """

    said = Subscription(Utterance, "said", qos=QoS(required=False))
    interrupt = Subscription(Interrupt, "interrupt", qos=QoS(required=False))
    speech = Subscription(Speech, "speech", qos=QoS(required=False))
    heard = Subscription(Utterance, "heard", qos=QoS(required=False))
    spoken = Subscription(SpokenSound, "said/sound", qos=QoS(required=False, depth=256))
    order = Subscription(VoiceOrder, "voice/order", qos=QoS(required=False))
    saying = Publisher(Saying, "saying", qos=RELIABLE)
    state = Publisher(LoudspeakerState, "loudspeaker")

    def __init__(
        self,
        by: str = "command",
        command: str = ESPEAK,
        model: str = "",
        voice: str = "",
        base_url: str = "",
        device: str = "",
        barge_in_s: float = 0.3,
        lifespan_s: float = 10.0,
        deadline_s: float = 10.0,
        max_calls: int = 2000,
        latency_s: float = 0.2,
    ) -> None:
        if by not in ("command", "api"):
            raise ParameterError(f"loudspeaker: by is {by!r}; known: command, api")
        for name, value in (("lifespan_s", lifespan_s), ("deadline_s", deadline_s)):
            if not 0 < value < math.inf:
                raise ParameterError(f"loudspeaker: {name} is {value}; expected a positive number of seconds")
        if not 0 <= latency_s < math.inf:
            raise ParameterError(f"loudspeaker: latency_s is {latency_s}; expected 0 or more seconds")
        if not barge_in_s >= 0:
            raise ParameterError(f"loudspeaker: barge_in_s is {barge_in_s}; expected 0 or more seconds, or inf: never")
        self.by = by
        self.command = command
        self.model, self.voice_name, self.base_url = model, voice, base_url
        self.device = device
        self.floor = SpeakingTurn(barge_in_s)
        self.lifespan_s = lifespan_s
        self.deadline_s = deadline_s
        self.max_calls = max_calls
        self.latency_s = latency_s
        self.voice: Voice = SilentVoice()
        self.budget: Budget | None = None
        self.player: Player | None = None
        self.lost: Player | None = None  # a player that is gone, to be closed
        self.is_known = False  # whether there is a player was found out
        self.fault = ""  # of the player, as told
        self.voice_fault = ""
        self.volume, self.manner = 1.0, Manner()
        self.turn: SpokenUtterance | None = None
        self.waiting: deque[SpokenUtterance] = deque()
        self.sounds: deque[str] = deque(maxlen=MOST_WAITING)  # ids that were queued
        self.bell = WakeUp()
        self.closing: asyncio.Task[None] | None = None

    def problems(self) -> list[str]:
        """What its parameters and this machine lack; whether a device works is known when it runs."""
        found = []
        is_silent = self.by == "command" and self.command == "" and self.device == NOWHERE
        if not is_silent and find_spec("miniaudio") is None:
            found.append(f"a loudspeaker needs miniaudio: {install('nodes[voice]')}")
        if self.by == "api":
            from nodes.voice.speaking.speech_api import speech_settings

            found += speech_settings(self.model, self.base_url, self.deadline_s, self.max_calls).problems()
        elif not is_silent:
            found += voice_problems(self.command)
        return found

    def on_start(self) -> None:
        """Choose voice and device, and read the phrase tables. Raises ParameterError for a device in virtual time."""
        load()
        if self.device != NOWHERE:
            needs_real_time(self, f"device is {self.device!r}: a loudspeaker", f"give device = {NOWHERE!r}")
        if self.device == NOWHERE:
            self.player, self.is_known = Nowhere(self.clock), True
        if self.by == "api":
            self.voice = self._api()
        elif self.command:
            self.voice = ProgramVoice(self.command, self.deadline_s)

    def _api(self) -> Voice:
        from nodes.voice.speaking.speech_api import SpeechApi, speech_settings

        settings = speech_settings(self.model, self.base_url, self.deadline_s, self.max_calls)
        self.model = settings.model
        self.budget = budget_of(self.name, self.run_info, self.max_calls)
        keep_open = not self.clock.is_virtual
        return SpeechApi(settings, self.voice_name, jitter=self.random.random, keep_open=keep_open, budget=self.budget)

    def on_stop(self) -> None:
        for player in (self.player, self.lost):
            if player is not None:
                player.close()
        if not self.clock.is_virtual:
            self.closing = asyncio.ensure_future(self.voice.close())

    def spending(self) -> Spending | None:
        return None if self.budget is None else self.budget.spending(self.model)

    @on(said)
    def queue(self, utterance: Utterance) -> None:
        """Let it wait for its turn; what its planner speaks itself comes as sound."""
        if not utterance.sound:
            self._queue(SpokenUtterance.of(utterance.text, self.context.trigger, self.clock.now_ns()))

    @on(spoken)
    def queue_sound(self, sound: SpokenSound) -> None:
        """The first piece waits for its turn, the others follow it; those of what was cut already are dropped."""
        now_ns = self.clock.now_ns()
        known = [self.turn, *self.waiting] if self.turn is not None else list(self.waiting)
        turn = next((one for one in known if one.sound_id == sound.id), None)
        if turn is None and sound.id not in self.sounds:
            self.sounds.append(sound.id)
            turn = SpokenUtterance.of(sound.text, self.context.trigger, now_ns)
            turn.sound_id = sound.id
            self._queue(turn)
        if turn is not None:
            turn.add(sound, now_ns)
            self.bell.ring()

    def _queue(self, turn: SpokenUtterance) -> None:
        if len(self.waiting) >= MOST_WAITING:
            self._tell(self.waiting.popleft(), "cut", "too much is said at once")
        self.waiting.append(turn)
        self.bell.ring()

    @every(hz=1)
    async def serve(self) -> None:
        """Speak what waits, for as long as the node lives; after a failure of its own it is started again."""
        if self.turn is not None:
            self._fall_silent()
            self._tell(self.turn, "cut", "the loudspeaker failed")
            self.turn = None
        try:
            while True:
                self._sweep()
                if not self.waiting:
                    await self.bell.wait(math.inf)
                    continue
                turn = self.turn = self.waiting.popleft()
                why = await self._speak(turn)
                self.turn = None
                self._tell(turn, "cut" if why else "done", why)
        except asyncio.CancelledError:
            self._fall_silent()
            for turn in (*([] if self.turn is None else [self.turn]), *self.waiting):
                self._tell(turn, "cut", "the run ended")
            raise

    @on(order)
    def adjust(self, order: VoiceOrder) -> None:
        """Louder, faster, or silent: what is said after that is said again."""
        self.volume, self.manner = order.volume, Manner(order.speed, order.pitch)
        if order.is_silenced:
            self._silence(self.clock.now_ns(), f"{order.by} silenced it")

    @on(interrupt)
    def obey(self, interrupt: Interrupt) -> None:
        """A stop silences at once."""
        if interrupt.depth != "stop":
            return
        self._silence(self._published_ns(), "stop")

    @on(speech)
    def listen(self, speech: Speech) -> None:
        """Whether a person speaks."""
        self.floor.hear(speech, self.clock.now_ns())
        self.bell.ring()

    @on(heard)
    def give_way(self, utterance: Utterance) -> None:
        """What was being said when a person began to say something is theirs to interrupt; a "mhm" is no interruption.

        Where the microphone hears the robot as well, this is how it gives way: by words that are not its own.
        """
        if self.floor.barge_in_s == math.inf or understand(utterance.text).is_listening:
            return
        self._silence(utterance.captured_ns or self._published_ns(), "a person speaks")

    @every(hz=0.5)
    async def mend(self) -> None:
        """Open the device, and again where it was lost."""
        if self.device == NOWHERE:
            return
        if self.lost is not None:
            lost, self.lost = self.lost, None
            await asyncio.to_thread(lost.close)
        if self.player is not None:
            if fault := self.player.fault:
                self._lose(fault)
            return
        from nodes.voice.devices import DeviceError
        from nodes.voice.speaking.output_device import open_device

        try:
            self.player = await asyncio.to_thread(open_device, self.device, self.clock)
        except DeviceError as problem:
            self._tell_fault(str(problem))
        else:
            self._tell_fault("")
        self.is_known = True
        self.bell.ring()

    async def _speak(self, turn: SpokenUtterance) -> str:
        """Why it was not said to its end, or ""."""
        if turn.sound_id:
            return await self._may_begin(turn) or await self._play_received(turn)
        pieces, is_whole = pieces_of(turn.text)
        ahead: asyncio.Future[bytes] | None = None
        try:
            for number, piece in enumerate(pieces):
                if not turn.has_begun and (why := await self._may_begin(turn)):
                    return why
                ahead = ahead or self._make(piece)
                while not ahead.done():
                    if why := self._cut(turn):
                        return why
                    await self.bell.wait(self._to_barge_in_s(turn), ahead)
                sound = ahead.result()
                self.voice_fault = ""
                if not turn.has_begun and (why := await self._may_begin(turn)):
                    return why
                ahead = self._make(pieces[number + 1]) if number + 1 < len(pieces) else None
                if why := self._cut(turn) or await self._play(turn, piece, sound):
                    return why
        except (VoiceError, ProgramError, ModelError) as problem:
            self._tell_voice_fault(str(problem))
            return str(problem)
        finally:
            if ahead is not None:
                await give_up(ahead)
        return "" if is_whole else f"longer than {LONGEST_TEXT} characters"

    def _make(self, piece: str) -> asyncio.Future[bytes]:
        return asyncio.create_task(self._sound(piece), name=f"{self.name}.speak")

    async def _sound(self, piece: str) -> bytes:
        return await self.clock.external(self.voice.sound(piece, self.manner), self.latency_s)

    def _at_volume(self, sound: bytes) -> bytes:
        return sound if self.volume == 1.0 else softened(sound, self.volume)

    async def _may_begin(self, turn: SpokenUtterance) -> str:
        """Wait until it may begin: why it may not any more, or ""."""
        while True:
            now_ns = self.clock.now_ns()
            left_s = self.lifespan_s - self.clock.since_s(turn.said_ns)
            if why := self._void(turn):
                return why
            if not self.is_known:
                await self.bell.wait(left_s)
            elif self.player is None:
                return self.fault
            elif person_s := self.floor.taken_for_s(now_ns):
                await self.bell.wait(min(person_s, left_s))
            else:
                return ""

    def _void(self, turn: SpokenUtterance) -> str:
        """Why an utterance of which nothing was heard yet is not to be heard any more, or ""."""
        if why := self.floor.why_silent(turn.said_ns):
            return why
        if self.clock.since_s(turn.said_ns) >= self.lifespan_s:
            return f"not spoken within {self.lifespan_s:g} s"
        fence, envelope = self.said.fence, turn.envelope
        if fence is not None and envelope is not None and fence.is_behind(envelope):
            return "an interrupt made it void"
        return ""

    def _sweep(self) -> None:
        """Tell of those that wait in vain."""
        for turn in tuple(self.waiting):
            if why := self._void(turn):
                self.waiting.remove(turn)
                self._tell(turn, "cut", why)

    async def _play(self, turn: SpokenUtterance, piece: str, sound: bytes) -> str:
        """Play a piece to its end: why it was cut, or ""."""
        if self.player is None:
            return self.fault
        player = self.player
        player.begin(self._at_volume(sound))
        turn.piece, turn.frames, turn.player = piece, len(sound) // BYTES_PER_FRAME, player
        if not turn.has_begun:
            turn.has_begun = True
            self._tell(turn, "begun")
        while (left := turn.frames - player.played) > 0:
            if why := self._cut(turn):
                return why
            if fault := player.fault:
                self._lose(fault)
                return fault
            if self.player is not player:
                return self.fault
            self._sweep()
            await self.bell.wait(min(left / RATE_HZ, self._to_barge_in_s(turn), LONGEST_WAIT_S))
        turn.spoken.append(piece)
        turn.piece = ""
        return ""

    async def _play_received(self, turn: SpokenUtterance) -> str:
        """Play a sound while it comes: why it was cut, or ""."""
        while True:
            if self.player is None:
                return self.fault
            if new := self._at_volume(turn.take_received()):
                if turn.player is None:
                    turn.player = self.player
                    turn.player.begin(new)
                else:
                    turn.player.add(new)
                turn.frames += len(new) // BYTES_PER_FRAME
                if not turn.has_begun:
                    turn.has_begun = True
                    self._tell(turn, "begun")
            left = 0 if turn.player is None else turn.frames - turn.player.played
            if left <= 0 and turn.is_whole:
                return ""
            if why := self._cut(turn):
                return why
            if fault := self.player.fault:
                self._lose(fault)
                return fault
            if turn.player is not None and turn.player is not self.player:
                return self.fault
            if not turn.is_whole and self.clock.since_s(turn.received_ns) > SOUND_WITHIN_S:
                self._fall_silent()
                return "its sound broke off"
            self._sweep()
            wait_s = min(self._to_barge_in_s(turn), LONGEST_WAIT_S, left / RATE_HZ if turn.is_whole else math.inf)
            await self.bell.wait(wait_s)

    def _cut(self, turn: SpokenUtterance) -> str:
        """Why nothing more of it is said, or ""; then all is silent."""
        if turn.has_begun and self._to_barge_in_s(turn) <= 0:
            self._silence(self.clock.now_ns(), "a person speaks")
        return self.floor.why_silent(turn.said_ns)

    def _to_barge_in_s(self, turn: SpokenUtterance) -> float:
        """How long until a person interrupts it; inf where nobody speaks, or nothing of it was heard yet."""
        return self.floor.to_barge_in_s(self.clock.now_ns()) if turn.has_begun else math.inf

    def _silence(self, from_ns: int, why: str) -> None:
        self.floor.silence(min(from_ns, self.clock.now_ns()), why)  # another machine's clock silences nobody for ever
        if self.turn is not None and self.floor.why_silent(self.turn.said_ns):
            self._fall_silent()
        self.bell.ring()

    def _published_ns(self) -> int:
        """When the message was published that this handler runs for; without one: now."""
        trigger = self.context.trigger
        return self.clock.now_ns() if trigger is None else trigger.envelope.published_ns

    def _fall_silent(self) -> None:
        if self.player is not None:
            self.player.silence()

    def _tell(self, turn: SpokenUtterance, phase: Literal["begun", "done", "cut"], why: str = "") -> None:
        spoken = {"begun": "", "done": turn.text, "cut": turn.heard}[phase]
        played_s = turn.played_s if phase == "cut" else 0.0
        saying = Saying(id=turn.ident, text=turn.text, phase=phase, spoken=spoken, why=why, played_s=played_s)
        self.saying.publish(saying, stems_from=() if turn.said is None else turn.said)

    def _lose(self, fault: str) -> None:
        """The device is gone; `mend` looks for it."""
        self.lost, self.player = self.player, None
        self._tell_fault(fault)
        self.bell.ring()

    def _tell_fault(self, fault: str) -> None:
        """Once, and once when it works again."""
        if bool(fault) is bool(self.fault) and self.state.sent:
            self.fault = fault
            return
        if fault:
            self.log.warning("%s; it is tried again every 2 s", fault)
        elif self.fault:
            self.log.info("the loudspeaker works again")
        self.fault = fault
        self.state.publish(LoudspeakerState(is_live=not fault, why=fault))

    def _tell_voice_fault(self, fault: str) -> None:
        if fault != self.voice_fault:
            self.log.warning("nothing is said: %s", fault)
        self.voice_fault = fault
