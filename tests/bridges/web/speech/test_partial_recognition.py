"""What somebody says at a page is looked at before they let go, at a pause and each second, and said once."""

from __future__ import annotations

import numpy as np
import pytest

from bridges.web.http.open_page import Session
from bridges.web.http.wire import SoundPiece, Talk, Talked
from bridges.web.speech.push_to_talk import EACH_S, PAUSE_S, PartialRecognition
from nodes.msgs import SOUND_RATE_HZ, Utterance
from runtime.clock import to_ns
from tests.bridges.web.speech.test_push_to_talk import Booth

PIECE_S = 0.1


def piece(loudness: float, length_s: float = PIECE_S) -> SoundPiece:
    """A tone so loud, as the root mean square of its samples."""
    moments = np.arange(round(length_s * SOUND_RATE_HZ)) / SOUND_RATE_HZ
    return SoundPiece((loudness * 2**0.5 * np.sin(moments * 2000)).astype("<i2").tobytes())


LOUD, SOFT, ROOM = piece(3000), piece(1200), piece(200)


def looks_at(*pieces: SoundPiece) -> list[float]:
    """After how many seconds of them there was a look."""
    looks, found, passed_s = PartialRecognition(), list[float](), 0.0
    for one in pieces:
        samples = np.frombuffer(one.pcm, "<i2")
        passed_s += len(samples) / SOUND_RATE_HZ
        if looks.add(samples):
            found.append(round(passed_s, 3))
    return found


def test_a_pause_after_words_is_a_look_and_the_silence_that_follows_is_none() -> None:
    assert looks_at(*[LOUD] * 4, *[ROOM] * 30) == [0.6]


def test_each_pause_is_a_look_and_words_without_one_are_looked_at_each_second() -> None:
    assert looks_at(*[LOUD] * 3, *[ROOM] * 3, *[SOFT] * 2, *[ROOM] * 3) == [0.5, 1.0]
    assert looks_at(*[LOUD] * 35) == [EACH_S, 2 * EACH_S, 3 * EACH_S]


def test_silence_alone_is_never_looked_at() -> None:
    assert looks_at(*[piece(20)] * 50) == []


@pytest.mark.parametrize("length_s", [0.02, 0.05, 0.5])
def test_the_length_of_a_piece_is_the_pages_affair(length_s: float) -> None:
    loud, room = piece(3000, length_s), piece(200, length_s)
    [first] = looks_at(*[loud] * round(0.5 / length_s), *[room] * round(2 / length_s))
    assert 0.5 + PAUSE_S - 1e-9 <= first <= 0.5 + PAUSE_S + length_s


def test_a_look_is_of_the_same_utterance_as_the_whole_and_begins_alike() -> None:
    booth = Booth()
    booth.do(Talk(), *[LOUD] * 4, *[ROOM] * 2, after_s=PIECE_S)
    (look,) = booth.ports.so_far.messages
    booth.do(*[LOUD] * 3, Talked(ago_s=1.0), after_s=PIECE_S)
    (whole,) = booth.sounds
    assert (look.speaker, look.number, look.captured_ns) == (whole.speaker, whole.number, whole.captured_ns)
    assert whole.samples[: len(look.samples)].tolist() == look.samples.tolist()
    assert look.voiced_s < whole.voiced_s  # so that what is said after it is recognised for itself


def test_after_a_link_that_hung_the_whole_is_as_old_as_the_page_says() -> None:
    booth = Booth()
    booth.do(Talk(), *[LOUD] * 4, *[ROOM] * 2)  # all at once: 0.6 s of sound
    (look,) = booth.ports.so_far.messages
    booth.do(Talked(ago_s=3.0))
    (whole,) = booth.sounds
    assert look.captured_ns == to_ns(100.0 - 0.6)
    assert whole.captured_ns == to_ns(100.0 - 3.0)


def test_a_page_that_sends_faster_than_anybody_speaks_is_looked_at_no_more_often() -> None:
    booth = Booth()
    for _ in range(4):
        booth.do(Talk(), *[LOUD, ROOM, ROOM] * 15, Talked())
    assert len(booth.ports.so_far.messages) == 1
    assert len(booth.sounds) == 4


def test_a_pause_soon_after_a_look_is_looked_at_a_little_later() -> None:
    booth = Booth()
    booth.do(Talk(), *[LOUD, LOUD, LOUD, ROOM, ROOM], *[LOUD, ROOM, ROOM], *[ROOM] * 5, after_s=PIECE_S)
    assert [round(one.voiced_s, 3) for one in booth.ports.so_far.messages] == [0.5, 1.0]


def test_each_utterance_is_looked_at_anew() -> None:
    booth = Booth()
    for _ in range(2):
        booth.do(Talk(), *[LOUD] * 4, *[ROOM] * 2, Talked(ago_s=0.7), after_s=PIECE_S)
    assert [one.number for one in booth.ports.so_far.messages] == [one.number for one in booth.sounds] == [1, 2]


def test_a_stop_that_was_understood_at_a_look_is_told_to_who_said_it() -> None:
    booth = Booth()
    booth.do(Talk(), *[LOUD] * 4, *[ROOM] * 2, after_s=PIECE_S)
    (look,) = booth.ports.so_far.messages
    booth.talking.note(Utterance(speaker="Ada", text="Ouch!", captured_ns=look.captured_ns))
    booth.do(Talked(ago_s=0.7), after_s=PIECE_S)
    assert (booth.told()["count"], booth.told()["words"]) == (1, "Ouch!")


@pytest.mark.parametrize("why", ["nobody understands", "not allowed", "thrown away"])
def test_nothing_is_looked_at_that_nobody_may_or_can_hear(why: str) -> None:
    booth = Booth()
    booth.talking.is_understood = why != "nobody understands"
    session: Session = booth.ada
    booth.do(Talk(), LOUD, LOUD, session=session)
    if why == "not allowed":
        booth.talking.refuse(session, LOUD, "not_heard")
    elif why == "thrown away":
        booth.do(Talked(is_wanted=False))
    booth.do(LOUD, ROOM, ROOM, ROOM)
    assert booth.ports.so_far.messages == []
