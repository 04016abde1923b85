"""The conversation with a speech-to-speech server, as values: no answer that was called off is ever spoken."""

from __future__ import annotations

import base64

import numpy as np
from openai.types.realtime import RealtimeClientEvent
from pydantic import TypeAdapter

from nodes.planner.realtime_talk import (
    Ended,
    Event,
    Fault,
    HeardWords,
    NotAnswered,
    NotTaken,
    Piece,
    RealtimeTalk,
    ToolCall,
    Words,
)
from tests.support.servers.realtime_server import sound

WHERE: Event = {"response_id": "r1", "item_id": "i1", "output_index": 0, "content_index": 0}


def created(ident: str, turn: int) -> Event:
    return {"type": "response.created", "response": {"id": ident, "metadata": {"turn": str(turn)}}}


def piece(seconds: float, where: Event = WHERE) -> Event:
    return {"type": "response.output_audio.delta", "delta": base64.b64encode(sound(seconds)).decode(), **where}


def words(text: str, where: Event = WHERE) -> Event:
    return {"type": "response.output_audio_transcript.done", "transcript": text, **where}


def done(ident: str, status: str = "completed", **more: object) -> Event:
    usage = {"input_tokens": 7, "output_tokens": 3}
    return {"type": "response.done", "response": {"id": ident, "status": status, "usage": usage, **more}}


def asked() -> RealtimeTalk:
    talk = RealtimeTalk()
    talk.ask()
    talk.take(created("r1", 1))
    return talk


def answers(talk: RealtimeTalk) -> bool:
    return talk.is_answering


def kinds(talk: RealtimeTalk) -> list[str]:
    return [event["type"] for event in talk.outgoing]


def test_an_answer_is_pieces_of_sound_with_the_words_so_far_then_its_words_then_its_cost() -> None:
    talk = asked()
    talk.take({"type": "response.output_audio_transcript.delta", "delta": "Good ", **WHERE})
    (first,) = talk.take(piece(0.1))
    assert isinstance(first, Piece)
    assert (first.id, first.text, len(first.samples)) == ("i1", "Good", 2400)
    (last,) = talk.take({"type": "response.output_audio.done", **WHERE})
    assert isinstance(last, Piece)
    assert last.is_last
    assert not len(last.samples)
    assert talk.take(words("Good morning.")) == [Words("Good morning.", "i1")]
    assert talk.take(done("r1")) == [Ended(7, 3, has_spoken=True)]
    assert not talk.is_answering


def test_what_was_called_off_is_cancelled_and_nothing_more_of_it_is_heard() -> None:
    talk = asked()
    assert talk.call_off()
    assert talk.outgoing[-1] == {"type": "response.cancel", "response_id": "r1"}
    assert talk.take(piece(0.1)) == []
    assert talk.take(words("Too late.")) == []
    late = {"type": "response.function_call_arguments.done", "call_id": "c", "arguments": "{}", **WHERE}
    assert talk.take(late) == []
    assert talk.take(done("r1", "cancelled")) == [Ended(7, 3, has_spoken=True, is_void=True)]
    assert not talk.call_off()


def test_an_answer_that_begins_after_it_was_called_off_is_cancelled_then() -> None:
    talk = RealtimeTalk()
    talk.ask()
    talk.call_off()
    talk.ask()
    talk.outgoing.clear()
    talk.take(created("old", 1))
    assert talk.outgoing == [{"type": "response.cancel", "response_id": "old"}]
    assert talk.take(piece(0.1, {**WHERE, "response_id": "old"})) == []
    talk.take(created("new", 2))
    assert [type(one) for one in talk.take(piece(0.1, {**WHERE, "response_id": "new"}))] == [Piece]


def test_what_a_person_said_comes_with_the_number_of_its_commit() -> None:
    talk = RealtimeTalk()
    first, second = talk.commit(), talk.commit()
    for item in ("a", "b"):
        talk.take({"type": "input_audio_buffer.committed", "item_id": item})
    told = "conversation.item.input_audio_transcription.completed"
    assert talk.take({"type": told, "item_id": "b", "transcript": "Second"}) == [HeardWords("Second", second)]
    assert talk.take({"type": told, "item_id": "a", "transcript": " First "}) == [HeardWords("First", first)]
    assert talk.take({"type": told, "item_id": "a", "transcript": "Again"}) == []


def test_only_sound_of_this_conversation_is_cut_where_people_stopped_hearing_it() -> None:
    talk = asked()
    talk.take(piece(0.5))
    assert not talk.cut("somebody-else", 0.2)
    assert talk.cut("i1", 0.2)
    assert talk.outgoing[-1] == {
        "type": "conversation.item.truncate", "item_id": "i1", "content_index": 0, "audio_end_ms": 200,
    }  # fmt: skip


def test_a_cut_calls_off_the_answer_whose_sound_it_is_and_no_newer_one() -> None:
    talk = asked()
    talk.take(piece(0.5))
    talk.call_off()
    talk.ask()
    assert talk.cut("i1", 9.0)
    assert talk.outgoing[-1]["audio_end_ms"] == 500, "no server cuts where nothing was"
    assert talk.is_answering
    talk.take(done("r1", "cancelled"))
    talk.take(created("r2", 2))
    assert [type(one) for one in talk.take(piece(0.1, {**WHERE, "response_id": "r2", "item_id": "i2"}))] == [Piece]
    assert talk.cut("i2", 0.05)
    assert not answers(talk)
    assert talk.outgoing[-2] == {"type": "response.cancel", "response_id": "r2"}


def refusal(code: str, about: str | None = None, text: str = "Rate limit reached. Try again in 6s.") -> Event:
    return {"type": "error", "error": {"code": code, "message": text, "event_id": about}}


def test_a_refused_answer_is_told_as_such_and_nothing_more_is_awaited() -> None:
    for about in ("answer_1", None):
        talk = RealtimeTalk()
        talk.ask()
        assert talk.awaits == "begin"
        assert talk.outgoing[-1]["event_id"] == "answer_1"
        (told,) = talk.take(refusal("rate_limit_exceeded", about))
        assert isinstance(told, NotAnswered)
        assert (told.after_s, told.is_busy) == (6.0, False)
        assert talk.awaits == ""
    talk.ask()
    (told,) = talk.take(refusal("conversation_already_has_active_response", "answer_2", "busy"))
    assert told == NotAnswered("busy", is_busy=True)


def test_what_was_called_off_is_awaited_until_the_server_has_ended_it() -> None:
    talk = asked()
    talk.call_off()
    assert (talk.is_answering, talk.awaits) == (False, "begin")
    talk.take(done("r1", "cancelled"))
    assert talk.awaits == ""
    talk.ask()
    talk.call_off()
    assert talk.awaits == "begin", "it may begin yet"
    talk.take(created("r2", 2))
    talk.take(done("r2", "cancelled"))
    assert talk.awaits == ""


def test_an_answer_that_breaks_off_is_given_up_and_its_sound_is_ended() -> None:
    talk = asked()
    assert talk.awaits == "words"
    talk.take({"type": "response.output_audio_transcript.delta", "delta": "Good ", **WHERE})
    talk.take(piece(0.1))
    assert talk.awaits == "more"
    end, words_ = talk.give_up()
    assert isinstance(end, Piece)
    assert end.is_last
    assert words_ == Words("Good", "i1")
    assert talk.awaits == ""
    assert talk.take(done("r1")) == [Ended(7, 3, has_spoken=True, is_void=True)]


def test_a_refused_commit_shifts_nobodys_words() -> None:
    for about in ("commit_1", None):
        talk = RealtimeTalk()
        first, second = talk.commit(), talk.commit()
        (told,) = talk.take(refusal("input_audio_buffer_commit_empty", about))
        assert isinstance(told, NotTaken)
        assert told.turn == first
        talk.take({"type": "input_audio_buffer.committed", "item_id": "b"})
        words_ = {"type": "conversation.item.input_audio_transcription.completed", "item_id": "b", "transcript": "Hi"}
        assert talk.take(words_) == [HeardWords("Hi", second)]


def test_the_names_of_the_beta_are_read_and_its_session_is_told_in_its_form() -> None:
    talk = RealtimeTalk()
    talk.configure("Be a robot.", {"type": "object"}, voice="marin", language="en")
    talk.take({"type": "session.created", "session": {"modalities": ["audio", "text"], "voice": "alloy"}})
    session = talk.outgoing[-1]["session"]
    assert "type" not in session
    assert (session["input_audio_format"], session["turn_detection"], session["voice"]) == ("pcm16", None, "marin")
    talk.remember_said("Sorry!")
    assert talk.outgoing[-1]["item"]["content"][0]["type"] == "text"
    talk.ask()
    talk.take(created("r1", 1))
    talk.take({"type": "response.audio_transcript.delta", "delta": "Good ", **WHERE})
    assert [type(one) for one in talk.take({**piece(0.1), "type": "response.audio.delta"})] == [Piece]
    (last,) = talk.take({"type": "response.audio.done", **WHERE})
    assert isinstance(last, Piece)
    assert talk.take({**words("Good."), "type": "response.audio_transcript.done"}) == [Words("Good.", "i1")]
    told = {"response_id": "r1", "item_id": "i2", "text": "Fine."}
    assert talk.take({"type": "response.text.done", **told}) == [Words("Fine.")]


def test_a_server_that_refuses_the_session_is_told_it_in_the_older_form_and_then_left() -> None:
    talk = RealtimeTalk()
    for is_old in (False, True):
        if not is_old:
            talk.configure("Be a robot.", {"type": "object"}, voice="", language="")
        about = talk.outgoing[-1]["event_id"]
        assert ("type" not in talk.outgoing[-1]["session"]) is is_old
        assert talk.take(refusal("unknown_parameter", about, "no")) == [Fault("no")]
    assert len(talk.outgoing) == 2


def test_a_refused_picture_is_told_as_such() -> None:
    talk = RealtimeTalk()
    talk.see("data:image/jpeg;base64,AAAA")
    assert talk.take(refusal("invalid_value", talk.outgoing[-1]["event_id"], "no")) == [NotTaken(0, "no")]
    talk.see("data:image/jpeg;base64,BBBB")
    assert kinds(talk) == ["conversation.item.create"] * 2, "what is not there is not deleted"


def test_sound_goes_out_at_the_servers_rate_and_keeps_its_length_and_form() -> None:
    talk = RealtimeTalk()
    tone = (np.sin(np.arange(1600) / 16_000 * 300 * 2 * np.pi) * 9000).astype(np.int16)
    talk.hear(tone)
    sent = np.frombuffer(base64.b64decode(talk.outgoing[0]["audio"]), "<i2")
    wanted = np.sin(np.arange(2400) / 24_000 * 300 * 2 * np.pi) * 9000
    assert len(sent) == 2400
    assert np.abs(sent[:-2] - wanted[:-2]).max() < 60


def test_only_the_newest_picture_stays_in_the_conversation() -> None:
    talk = RealtimeTalk()
    talk.see("data:image/jpeg;base64,AAAA")
    talk.see("data:image/jpeg;base64,BBBB")
    assert kinds(talk) == ["conversation.item.create", "conversation.item.delete", "conversation.item.create"]
    assert talk.outgoing[1]["item_id"] == talk.outgoing[0]["item"]["id"]


def test_every_event_that_is_sent_is_one_of_openais_own_types() -> None:
    talk = asked()
    talk.configure("Be a robot.", {"type": "object", "properties": {}}, voice="marin", language="en")
    talk.configure("Be a robot.", {"type": "object", "properties": {}}, voice="", language="")
    talk.hear(np.zeros(160, np.int16))
    talk.forget_sound()
    talk.commit()
    talk.see("data:image/jpeg;base64,AAAA")
    talk.tell("[done]")
    talk.hear_text("ann: hello")
    talk.remember_said("Sorry!")
    talk.take(piece(0.1))
    talk.cut("i1", 0.05)
    talk.answer_call(ToolCall("c1", "set_subtask", "{}"), "Done.")
    talk.call_off()
    types: TypeAdapter[object] = TypeAdapter(RealtimeClientEvent)
    for event in talk.outgoing:
        checked = types.validate_python(event)
        assert getattr(checked, "type", None) == event["type"]
    assert len(set(kinds(talk))) == 8


def test_hostile_events_raise_nothing_and_mean_nothing_or_a_fault() -> None:
    talk = asked()
    odd: list[Event] = [
        {}, {"type": 7}, {"type": "response.created", "response": {}},
        {"type": "response.done", "response": {"id": []}},
        {"type": "error"}, {"type": "error", "error": {"message": ["x"]}},
        {"type": "response.output_audio.delta", **WHERE, "delta": "not base64!"},
        {"type": "response.output_audio.delta", **WHERE, "delta": "AAAA"},
        {"type": "response.output_audio_transcript.delta", **WHERE, "delta": None},
        {"type": "input_audio_buffer.committed"},
        {"type": "conversation.item.input_audio_transcription.completed", "item_id": "nobody", "transcript": "Go on"},
        {"type": "response.function_call_arguments.done", "response_id": "r9", "arguments": "x"},
    ]  # fmt: skip
    for event in odd:
        for meaning in talk.take(event):
            assert isinstance(meaning, Fault | Ended | NotAnswered), (event, meaning)
