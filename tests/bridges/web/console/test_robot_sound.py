"""What operators hear of the robot's microphone, and see of what it is about to say."""

from __future__ import annotations

import base64

import numpy as np

from bridges.web.console.robot_sound import RobotSound, RobotWords
from nodes.msgs import SOUND_RATE_HZ, Saying, Sound


def heard(number: int, samples: list[int], speaker: str = "Ann") -> Sound:
    return Sound(
        speaker=speaker,
        number=number,
        captured_ns=0,
        voiced_s=0.1,
        before_s=0.0,
        samples=np.array(samples, np.int16),
    )


def samples_of(piece: dict[str, str]) -> list[int]:
    return [int(one) for one in np.frombuffer(base64.b64decode(piece["pcm"]), "<i2")]


def test_a_sound_that_grows_is_sent_on_each_piece_once_and_to_who_came_late_from_there() -> None:
    sound = RobotSound()
    sound.take(heard(1, [1, 2]))
    sound.take(heard(1, [1, 2, 3]))
    sound.take(heard(1, [1, 2, 3]))  # the whole of it: nothing is new
    document, newest = sound.since(0)
    assert document is not None
    assert document["rate"] == SOUND_RATE_HZ
    assert [samples_of(piece) for piece in document["pieces"]] == [[1, 2], [3]]
    sound.take(heard(2, [9], "Bo"))
    document, newest = sound.since(newest)
    assert document is not None
    assert [(piece["speaker"], samples_of(piece)) for piece in document["pieces"]] == [("Bo", [9])]
    assert sound.since(newest) == (None, newest)


def test_what_waits_to_be_said_is_shown_where_a_loudspeaker_runs() -> None:
    words = RobotWords()
    words.queue("One.")
    words.queue("Two.")
    assert words.document() is None, "nothing makes sound of it"
    words.learn(Saying(id="a", text="One.", phase="begun"))
    assert words.document() == {"now": "One.", "waiting": ["Two."]}
    words.learn(Saying(id="a", text="One.", phase="cut", why="stop"))
    assert words.document() == {"now": "", "waiting": ["Two."]}
