"""`RealtimeTalk`: one conversation in OpenAI's Realtime protocol, as values: events in, what they mean out.

It decides nothing about the robot and does no I/O. Turns are ours: the server detects none, so that the robot's own
microphone and its interrupts say when somebody has ended or is to be heard. What belongs to a turn that was called off
is dropped, however late it comes.
"""

from __future__ import annotations

import base64
import binascii
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runtime.msgs import SOUND_RATE_HZ
from runtime.msgs.voice import SPOKEN_RATE_HZ

Event = dict[str, Any]
TOOL = "set_subtask"
MOST_REMEMBERED = 64
LONGEST_TEXT = 4000


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of speech: the words so far, and the next sound."""

    id: str
    text: str
    samples: NDArray[np.int16]  # (n,) at 24 kHz
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """All that was said in an answer; `sound` is the id of its pieces, "" where the server made no sound."""

    text: str
    sound: str = ""


@dataclass(frozen=True, slots=True)
class HeardWords:
    """What a person said, as the server understood it; `turn` is the number that `commit` gave."""

    text: str
    turn: int


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model calls the tool; `talk.answer_call` tells it what became of it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Ended:
    """An answer is over: what it cost, whether a word was said in it, and what went wrong."""

    prompt_tokens: int
    completion_tokens: int
    has_spoken: bool
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """The server refused something."""

    text: str


Meaning = Piece | Words | HeardWords | ToolCall | Ended | Fault


@dataclass(slots=True)
class _Answer:
    """A response of the server's in progress."""

    turn: int
    texts: dict[str, str] = field(default_factory=dict)  # by item
    sounding: set[str] = field(default_factory=set)  # items that have sound


class RealtimeTalk:
    """Collects in `outgoing` what is to be sent."""

    def __init__(self) -> None:
        self.outgoing: list[Event] = []
        self._turn = 0  # of the newest answer that was asked for
        self._void_to = 0  # answers of turns up to this one are called off
        self._is_asked = False  # an answer was asked for and has not begun
        self._answers: dict[str, _Answer] = {}
        self._said: deque[str] = deque(maxlen=MOST_REMEMBERED)  # items that were spoken
        self._commits = 0
        self._committed: deque[int] = deque()  # numbers of commits that the server has not confirmed
        self._heard: dict[str, int] = {}  # items of people's speech, and their commit
        self._seen = ""  # the item with the last image
        self._notes = 0

    @property
    def is_answering(self) -> bool:
        """Whether an answer is awaited or under way that was not called off."""
        return self._is_asked or any(answer.turn > self._void_to for answer in self._answers.values())

    def configure(self, instructions: str, schema: dict[str, object], *, voice: str, language: str) -> None:
        """Say who it is, and what it can do. Without a `voice` it answers in text."""
        audio: Event = {
            "input": {
                "format": {"type": "audio/pcm", "rate": SPOKEN_RATE_HZ},
                "turn_detection": None,
                "transcription": {"model": "gpt-4o-mini-transcribe"} | ({"language": language} if language else {}),
            }
        }
        if voice:
            audio["output"] = {"format": {"type": "audio/pcm", "rate": SPOKEN_RATE_HZ}, "voice": voice}
        tool = {
            "type": "function",
            "name": TOOL,
            "description": "Set what the robot does now, or say that it is done.",
            "parameters": schema,
        }
        session = {
            "type": "realtime",
            "instructions": instructions,
            "output_modalities": ["audio" if voice else "text"],
            "audio": audio,
            "tools": [tool],
            "tool_choice": "auto",
        }
        self._send("session.update", session=session)

    def hear(self, samples: NDArray[np.int16]) -> None:
        """More of what a person says, at 16 kHz."""
        if len(samples):
            sound = _at_server_rate(samples).astype("<i2").tobytes()
            self._send("input_audio_buffer.append", audio=base64.b64encode(sound).decode("ascii"))

    def forget_sound(self) -> None:
        """What was heard since the last commit was no person's."""
        self._send("input_audio_buffer.clear")

    def commit(self) -> int:
        """What was heard is one utterance; its number."""
        self._commits += 1
        self._committed.append(self._commits)
        self._send("input_audio_buffer.commit")
        return self._commits

    def see(self, image_url: str) -> None:
        """The newest picture, in the place of the one before."""
        if self._seen:
            self._send("conversation.item.delete", item_id=self._seen)
        self._seen = self._ident("picture")
        self._add("user", {"type": "input_image", "image_url": image_url}, ident=self._seen)

    def tell(self, text: str) -> None:
        """Something that happened, which nobody said."""
        self._add("system", {"type": "input_text", "text": text[:LONGEST_TEXT]})

    def hear_text(self, text: str) -> None:
        """What a person typed, or said elsewhere."""
        self._add("user", {"type": "input_text", "text": text[:LONGEST_TEXT]})

    def remember_said(self, text: str) -> None:
        """What the robot said by another mouth."""
        self._add("assistant", {"type": "output_text", "text": text[:LONGEST_TEXT]})

    def ask(self) -> None:
        """Ask for an answer to all this."""
        self._turn += 1
        self._is_asked = True
        self._send("response.create", response={"metadata": {"turn": str(self._turn)}})

    def call_off(self) -> bool:
        """Whatever is being answered is not wanted any more; whether there was something."""
        was_answering = self.is_answering
        for ident, answer in self._answers.items():
            if answer.turn > self._void_to:
                self._send("response.cancel", response_id=ident)
        self._void_to, self._is_asked = self._turn, False
        return was_answering

    def cut(self, sound: str, played_s: float) -> bool:
        """People heard so much of that sound and no more; False where it is none of this conversation."""
        if sound not in self._said:
            return False
        end_ms = max(0, round(played_s * 1000))
        self._send("conversation.item.truncate", item_id=sound, content_index=0, audio_end_ms=end_ms)
        return True

    def answer_call(self, call: ToolCall, text: str) -> None:
        """What became of the call."""
        item = {"type": "function_call_output", "call_id": call.id, "output": text[:LONGEST_TEXT]}
        self._send("conversation.item.create", item=item)

    def take(self, event: Event) -> list[Meaning]:
        """What an event of the server's means; events of other kinds mean nothing here."""
        kind = event.get("type", "")
        response = event.get("response")
        if kind == "response.created" and isinstance(response, dict):
            return self._created(response)
        if kind == "response.done" and isinstance(response, dict):
            return self._done(response)
        if kind == "error":
            error = event.get("error")
            told = _text(error, "message") if isinstance(error, dict) else ""
            code = _text(error, "code") if isinstance(error, dict) else ""
            is_race = code in ("response_cancel_not_active", "item_truncate_invalid_item_id")
            return [] if is_race else [Fault(told[:300] or "it told no reason")]
        if kind == "input_audio_buffer.committed":
            if self._committed:
                self._heard[_text(event, "item_id")] = self._committed.popleft()
            return []
        if kind == "conversation.item.input_audio_transcription.completed":
            turn = self._heard.pop(_text(event, "item_id"), 0)
            text = _text(event, "transcript").strip()
            return [HeardWords(text, turn)] if text and turn else []
        answer = self._answers.get(_text(event, "response_id"))
        if answer is None or answer.turn <= self._void_to:
            return []
        return self._spoken(kind, event, answer)

    def _spoken(self, kind: str, event: Event, answer: _Answer) -> list[Meaning]:
        item = _text(event, "item_id")
        text = answer.texts.get(item, "")
        match kind:
            case "response.output_audio_transcript.delta" | "response.output_text.delta":
                answer.texts[item] = (text + _text(event, "delta"))[:LONGEST_TEXT]
            case "response.output_audio.delta":
                samples = _samples(_text(event, "delta"))
                if samples is None:
                    return [Fault("a piece of sound is no base64 of 16-bit samples")]
                answer.sounding.add(item)
                if item not in self._said:
                    self._said.append(item)
                return [Piece(item, text.rstrip(), samples)]
            case "response.output_audio.done" if item in answer.sounding:
                return [Piece(item, text.rstrip(), np.zeros(0, np.int16), is_last=True)]
            case "response.output_audio_transcript.done" | "response.output_text.done":
                key = "transcript" if kind.endswith("transcript.done") else "text"
                text = answer.texts[item] = (_text(event, key) or text).strip()[:LONGEST_TEXT]
                return [Words(text, item if item in answer.sounding else "")] if text else []
            case "response.function_call_arguments.done":
                return [ToolCall(_text(event, "call_id"), _text(event, "name") or TOOL, _text(event, "arguments"))]
        return []

    def _created(self, response: Event) -> list[Meaning]:
        metadata = response.get("metadata")
        told = _text(metadata, "turn") if isinstance(metadata, dict) else ""
        turn = int(told) if told.isdigit() else self._turn
        self._answers[_text(response, "id")] = _Answer(turn)
        if turn == self._turn:
            self._is_asked = False
        if turn <= self._void_to:
            self._send("response.cancel", response_id=_text(response, "id"))
        return []

    def _done(self, response: Event) -> list[Meaning]:
        answer = self._answers.pop(_text(response, "id"), None)
        usage = response.get("usage")
        spent = usage if isinstance(usage, dict) else {}
        details = response.get("status_details")
        error = details.get("error") if isinstance(details, dict) else None
        fault = ""
        if response.get("status") == "failed":
            fault = (_text(error, "message") if isinstance(error, dict) else "")[:300] or "its answer failed"
        elif response.get("status") == "incomplete":
            fault = f"its answer was cut off ({_text(details, 'reason') if isinstance(details, dict) else ''})"
        ended = Ended(
            _count(spent.get("input_tokens")),
            _count(spent.get("output_tokens")),
            has_spoken=answer is not None and any(answer.texts.values()),
            fault=fault,
        )
        is_void = answer is not None and answer.turn <= self._void_to
        return [Ended(ended.prompt_tokens, ended.completion_tokens, has_spoken=True)] if is_void else [ended]

    def _add(self, role: str, content: Event, ident: str = "") -> None:
        item: Event = {"type": "message", "role": role, "content": [content]}
        self._send("conversation.item.create", item=item | ({"id": ident} if ident else {}))

    def _ident(self, what: str) -> str:
        self._notes += 1
        return f"{what}_{self._notes}"

    def _send(self, kind: str, **fields: object) -> None:
        self.outgoing.append({"type": kind, **fields})


def _at_server_rate(samples: NDArray[np.int16]) -> NDArray[np.int16]:
    """16 kHz as 24 kHz: three samples for two, between neighbours on a straight line."""
    count = len(samples) * SPOKEN_RATE_HZ // SOUND_RATE_HZ
    at = np.arange(count) * (SOUND_RATE_HZ / SPOKEN_RATE_HZ)
    heard: NDArray[np.int16] = np.round(np.interp(at, np.arange(len(samples)), samples)).astype(np.int16)
    return heard


def _samples(sound: str) -> NDArray[np.int16] | None:
    try:
        data = base64.b64decode(sound, validate=True)
    except (binascii.Error, ValueError):
        return None
    return None if len(data) % 2 else np.frombuffer(data, "<i2").astype(np.int16)


def _text(found: Event | None, key: str) -> str:
    value = found.get(key, "") if found is not None else ""
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 1 << 40 else 0
