"""`RealtimeTalk`: one conversation in OpenAI's Realtime protocol, as values: events in, what they mean out.

It decides nothing about the robot and does no I/O. Turns are ours: the server detects none, so that the robot's own
microphone and its interrupts say when somebody has ended or is to be heard. What belongs to a turn that was called off
is dropped, however late it comes. One answer is asked for at a time, since servers refuse a second one. Both sets of
event names are read, those of the Beta (and of Azure's previews) and today's; the session is told in the server's form.
"""

from __future__ import annotations

import base64
import binascii
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.models.chat_format import token_count
from nodes.models.json_reading import whole_characters
from nodes.models.refusals import retry_after_s
from nodes.msgs import SOUND_RATE_HZ
from nodes.msgs.voice import SPOKEN_RATE_HZ

Event = dict[str, Any]
TOOL = "set_subtask"
MOST_REMEMBERED = 64
LONGEST_TEXT = 4000
RACES = ("response_cancel_not_active", "item_truncate_invalid_item_id")
"""Refusals of what has become needless meanwhile."""
IS_BUSY = "conversation_already_has_active_response"
REFUSES_A_COMMIT = "input_audio_buffer_commit_empty"


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
    """An answer is over: what it cost, whether a word was said in it, what went wrong, and whether that may pass.

    `is_void`: it had been called off, and nothing but its cost is of interest.
    """

    prompt_tokens: int
    completion_tokens: int
    has_spoken: bool
    fault: str = ""
    may_pass: bool = False
    is_void: bool = False


@dataclass(frozen=True, slots=True)
class NotAnswered:
    """The server refused to answer: why, and when it wants to be asked again (0: it does not say)."""

    text: str
    after_s: float = 0.0
    is_busy: bool = False  # with another answer


@dataclass(frozen=True, slots=True)
class NotTaken:
    """The server refused what a person said, or a picture: `turn` is the number of the commit, 0 for a picture."""

    turn: int
    text: str


@dataclass(frozen=True, slots=True)
class Fault:
    """The server refused something."""

    text: str


Meaning = Piece | Words | HeardWords | ToolCall | Ended | NotAnswered | NotTaken | Fault


@dataclass(slots=True)
class _Answer:
    """A response of the server's in progress."""

    turn: int
    texts: dict[str, str] = field(default_factory=dict)  # by item
    sounding: set[str] = field(default_factory=set)  # items whose sound goes on


@dataclass(slots=True)
class _Sounding:
    """An item that is spoken: the turn it is of, and how much of it has come."""

    turn: int
    samples: int = 0


class RealtimeTalk:
    """Collects in `outgoing` what is to be sent."""

    def __init__(self) -> None:
        self.outgoing: list[Event] = []
        self._turn = 0  # of the newest answer that was asked for
        self._void_to = 0  # answers of turns up to this one are called off
        self._awaited = 0  # the turn of an answer that was asked for and has not begun; 0: none
        self._answers: dict[str, _Answer] = {}
        self._said: dict[str, _Sounding] = {}  # items that were spoken, the newest last
        self._commits = 0
        self._committed: deque[int] = deque()  # numbers of commits that the server has not confirmed
        self._heard: dict[str, int] = {}  # items of people's speech, and their commit
        self._seen = ""  # the item with the last image
        self._notes = 0
        self._is_beta = False
        self._told: tuple[str, dict[str, object], str, str] | None = None  # what `configure` was given last

    @property
    def is_answering(self) -> bool:
        """Whether an answer is awaited or under way that was not called off."""
        return self._awaited > self._void_to or any(answer.turn > self._void_to for answer in self._answers.values())

    @property
    def awaits(self) -> str:
        """What the server is waited for: "begin" (or end, of what was called off), "words", "more" sound, or ""."""
        wanted = [answer for answer in self._answers.values() if answer.turn > self._void_to]
        if not wanted:
            return "begin" if self._awaited or self._answers else ""
        return "more" if any(answer.sounding for answer in wanted) else "words"

    def configure(self, instructions: str, schema: dict[str, object], *, voice: str, language: str) -> None:
        """Say who it is, and what it can do. Without a `voice` it answers in text."""
        self._told = instructions, schema, voice, language
        tool = {
            "type": "function",
            "name": TOOL,
            "description": "Set what the robot does now, or say that it is done.",
            "parameters": schema,
        }
        transcription = {"model": "gpt-4o-mini-transcribe"} | ({"language": language} if language else {})
        session: Event = {"instructions": instructions, "tools": [tool], "tool_choice": "auto"}
        if self._is_beta:
            session |= {
                "modalities": ["audio", "text"] if voice else ["text"],
                "input_audio_format": "pcm16",
                "output_audio_format": "pcm16",
                "input_audio_transcription": transcription,
                "turn_detection": None,
            } | ({"voice": voice} if voice else {})
        else:
            session |= _session_of_today(transcription, voice)
        self._send("session.update", event_id=self._ident("session"), session=session)

    def _take_beta(self) -> None:
        """Tell the session again in the older form."""
        self._is_beta = True
        if self._told is not None:
            instructions, schema, voice, language = self._told
            self.configure(instructions, schema, voice=voice, language=language)

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
        self._send("input_audio_buffer.commit", event_id=f"commit_{self._commits}")
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
        self._add("assistant", {"type": "text" if self._is_beta else "output_text", "text": text[:LONGEST_TEXT]})

    def ask(self) -> None:
        """Ask for an answer to all this."""
        self._turn += 1
        self._awaited = self._turn
        self._send("response.create", event_id=f"answer_{self._turn}", response={"metadata": {"turn": str(self._turn)}})

    def call_off(self) -> bool:
        """Whatever is being answered is not wanted any more; whether there was something."""
        was_answering = self.is_answering
        self._call_off_to(self._turn)
        return was_answering

    def give_up(self) -> list[Meaning]:
        """The server does not go on with what it was asked: nothing of that is waited for, and its sounds end here."""
        open_sounds = [
            (item, whole_characters(answer.texts.get(item, "")))
            for answer in self._answers.values()
            if answer.turn > self._void_to
            for item in answer.sounding
        ]
        self._call_off_to(self._turn)
        self._awaited = 0
        self._answers.clear()
        ends: list[Meaning] = []
        for item, text in open_sounds:
            ends += [Piece(item, text.rstrip(), np.zeros(0, np.int16), is_last=True), Words(text.rstrip(), item)]
        return ends

    def cut(self, sound: str, played_s: float) -> bool:
        """People heard so much of that sound and no more: the answer that it is of is called off, and no newer one.

        False where the sound is none of this conversation.
        """
        said = self._said.get(sound)
        if said is None:
            return False
        end_ms = max(0, round(min(played_s, said.samples / SPOKEN_RATE_HZ) * 1000))
        self._call_off_to(said.turn)
        self._send("conversation.item.truncate", item_id=sound, content_index=0, audio_end_ms=end_ms)
        return True

    def _call_off_to(self, turn: int) -> None:
        for ident, answer in self._answers.items():
            if self._void_to < answer.turn <= turn:
                self._send("response.cancel", response_id=ident)
        self._void_to = max(self._void_to, turn)

    def answer_call(self, call: ToolCall, text: str) -> None:
        """What became of the call."""
        item = {"type": "function_call_output", "call_id": call.id, "output": text[:LONGEST_TEXT]}
        self._send("conversation.item.create", item=item)

    def take(self, event: Event) -> list[Meaning]:
        """What an event of the server's means; events of other kinds mean nothing here."""
        kind = _text(event, "type").replace("response.audio", "response.output_audio", 1)
        kind = kind.replace("response.text", "response.output_text", 1)
        response, session, error = event.get("response"), event.get("session"), event.get("error")
        match kind:
            case "response.created" if isinstance(response, dict):
                return self._created(response)
            case "response.done" if isinstance(response, dict):
                return self._done(response)
            case "session.created" if isinstance(session, dict) and "modalities" in session and not self._is_beta:
                self._take_beta()
                return []
            case "error":
                return self._refused(error if isinstance(error, dict) else {})
            case "input_audio_buffer.committed" if self._committed:
                self._heard[_text(event, "item_id")] = self._committed.popleft()
                return []
            case "conversation.item.input_audio_transcription.completed":
                turn = self._heard.pop(_text(event, "item_id"), 0)
                text = _text(event, "transcript").strip()
                return [HeardWords(text, turn)] if text and turn else []
            case "conversation.item.input_audio_transcription.failed":
                self._heard.pop(_text(event, "item_id"), None)
                return []
        answer = self._answers.get(_text(event, "response_id"))
        if answer is None or answer.turn <= self._void_to:
            return []
        return self._spoken(kind, event, answer)

    def _refused(self, error: Event) -> list[Meaning]:
        """What of ours an error is about: as it names our event, or as its code tells where it names none."""
        told, code = _text(error, "message")[:300] or "it told no reason", _text(error, "code")
        if code in RACES:
            return []
        about = _text(error, "event_id")
        if not about and code in (IS_BUSY, "rate_limit_exceeded"):
            about = f"answer_{self._awaited}"
        elif not about and code == REFUSES_A_COMMIT and self._committed:
            about = f"commit_{self._committed[0]}"
        what, _, number = about.partition("_")
        count = int(number) if number.isdecimal() else 0
        if what == "answer" and count and count == self._awaited:
            self._awaited = 0
            return [NotAnswered(told, retry_after_s({}, told), code == IS_BUSY)] if count > self._void_to else []
        if what == "commit" and count in self._committed:
            self._committed.remove(count)
            return [NotTaken(count, told)]
        if what == "picture":
            self._seen = ""
            return [NotTaken(0, told)]
        if what == "session" and not self._is_beta:
            self._take_beta()
        elif what == "session":
            self._is_beta = False  # neither form is taken
        return [Fault(told)]

    def _spoken(self, kind: str, event: Event, answer: _Answer) -> list[Meaning]:
        item = _text(event, "item_id")
        text = whole_characters(answer.texts.get(item, ""))
        match kind:
            case "response.output_audio_transcript.delta" | "response.output_text.delta":
                answer.texts[item] = (answer.texts.get(item, "") + _text(event, "delta"))[:LONGEST_TEXT]
            case "response.output_audio.delta":
                samples = _samples(_text(event, "delta"))
                if samples is None:
                    return [Fault("a piece of sound is no base64 of 16-bit samples")]
                answer.sounding.add(item)
                said = self._said.setdefault(item, _Sounding(answer.turn))
                said.samples += len(samples)
                if len(self._said) > MOST_REMEMBERED:
                    del self._said[next(iter(self._said))]
                return [Piece(item, text.rstrip(), samples)]
            case "response.output_audio.done" if item in answer.sounding:
                answer.sounding.discard(item)
                return [Piece(item, text.rstrip(), np.zeros(0, np.int16), is_last=True)]
            case "response.output_audio_transcript.done" | "response.output_text.done":
                key = "transcript" if kind.endswith("transcript.done") else "text"
                text = answer.texts[item] = (_text(event, key) or text).strip()[:LONGEST_TEXT]
                return [Words(text, item if item in self._said else "")] if text else []
            case "response.function_call_arguments.done":
                return [ToolCall(_text(event, "call_id"), _text(event, "name") or TOOL, _text(event, "arguments"))]
        return []

    def _created(self, response: Event) -> list[Meaning]:
        metadata = response.get("metadata")
        told = _text(metadata, "turn") if isinstance(metadata, dict) else ""
        turn = int(told) if told.isdecimal() else self._awaited or self._turn
        self._answers[_text(response, "id")] = _Answer(turn)
        if turn == self._awaited:
            self._awaited = 0
        if turn <= self._void_to:
            self._send("response.cancel", response_id=_text(response, "id"))
        return []

    def _done(self, response: Event) -> list[Meaning]:
        answer = self._answers.pop(_text(response, "id"), None)
        usage = response.get("usage")
        spent = usage if isinstance(usage, dict) else {}
        details = response.get("status_details")
        error = details.get("error") if isinstance(details, dict) else None
        fault, may_pass = "", response.get("status") == "failed"
        if may_pass:
            fault = (_text(error, "message") if isinstance(error, dict) else "")[:300] or "its answer failed"
        elif response.get("status") == "incomplete":
            fault = f"its answer was cut off ({_text(details, 'reason') if isinstance(details, dict) else ''})"
        tokens = max(0, token_count(spent.get("input_tokens"))), max(0, token_count(spent.get("output_tokens")))
        if answer is None or answer.turn <= self._void_to:
            return [Ended(*tokens, has_spoken=True, is_void=True)]
        return [Ended(*tokens, has_spoken=any(answer.texts.values()), fault=fault, may_pass=may_pass)]

    def _add(self, role: str, content: Event, ident: str = "") -> None:
        item: Event = {"type": "message", "role": role, "content": [content]}
        if ident:
            self._send("conversation.item.create", event_id=ident, item=item | {"id": ident})
        else:
            self._send("conversation.item.create", item=item)

    def _ident(self, what: str) -> str:
        self._notes += 1
        return f"{what}_{self._notes}"

    def _send(self, kind: str, **fields: object) -> None:
        self.outgoing.append({"type": kind, **fields})


def _session_of_today(transcription: Event, voice: str) -> Event:
    pcm = {"type": "audio/pcm", "rate": SPOKEN_RATE_HZ}
    audio: Event = {"input": {"format": pcm, "turn_detection": None, "transcription": transcription}}
    if voice:
        audio["output"] = {"format": pcm, "voice": voice}
    return {"type": "realtime", "output_modalities": ["audio" if voice else "text"], "audio": audio}


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
    if not isinstance(value, str):
        return ""
    return value if key == "delta" else whole_characters(value)  # the next piece may have the other half
