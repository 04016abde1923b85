"""What people say into their browser's microphone: who may, how much and how fast, and how old it is."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pytest

from bridges.robot_ports import PagePorts
from bridges.web.http import wire as console_wire
from bridges.web.http.open_page import Session
from bridges.web.http.server import STATIC
from bridges.web.http.wire import SoundPiece, Talk, Talked
from bridges.web.speech.push_to_talk import (
    GONE_S,
    MOST_BYTES,
    SILENT_S,
    UTTERANCES_BURST,
    PushToTalk,
    has_listener,
)
from bridges.web.study import wire as study_wire
from bridges.web.study.node import Study
from nodes.msgs import MicrophoneState, RecogniserState, Sound, Utterance
from nodes.voice.speaking.turn import SpeakingTurn
from runtime import Simulation
from runtime.clock import to_ns
from runtime.run_facts import RunFacts
from tests.bridges.web.console.test_seat_requests import Sent
from tests.bridges.web.http.test_link import javascript
from tests.bridges.web.study.test_study_node import opened
from tests.support.sentences import sentence

PIECE = SoundPiece(np.arange(1600, dtype="<i2").tobytes())  # 0.1 s


class Told:
    """A port with what was told on it."""

    def __init__(self, message: Any = None) -> None:
        self.message = message

    def latest(self) -> Any:
        return self.message


class Ports:
    """What `PushToTalk` needs of a node, at a time that the test sets."""

    def __init__(self) -> None:
        self.now_ns = to_ns(100.0)
        self.clock = self
        self.sound, self.so_far, self.speaking = Sent(), Sent(), Sent()
        self.recogniser, self.microphone = Told(), Told()


class Booth:
    """People at pages, and a clock that they share."""

    def __init__(self) -> None:
        self.ports = Ports()
        ports: Any = self.ports
        ports.clock = type("Clock", (), {"now_ns": lambda _: self.ports.now_ns})()
        self.talking = PushToTalk(cast(PagePorts, ports), RunFacts())
        self.ada = Session("a", "participant", "Ada")

    def do(self, *messages: Any, session: Session | None = None, speaker: str = "Ada", after_s: float = 0.0) -> None:
        for message in messages:
            self.ports.now_ns += to_ns(after_s)
            self.talking.handle(session or self.ada, message, speaker, self.ports.now_ns)

    def told(self, session: Session | None = None) -> dict[str, Any]:
        return self.talking.document(session or self.ada, is_told_why=False)

    @property
    def sounds(self) -> list[Sound]:
        return self.ports.sound.messages

    @property
    def spoken(self) -> list[bool]:
        return [one.is_speaking for one in self.ports.speaking.messages]


def test_what_is_said_while_the_button_is_held_is_one_sound_as_old_as_its_beginning() -> None:
    booth = Booth()
    booth.do(Talk())
    booth.do(*[PIECE] * 10, after_s=0.1)
    booth.do(Talked(ago_s=1.2), after_s=0.3)
    (sound,) = booth.sounds
    assert sound.samples.tolist() == list(range(1600)) * 10
    assert (sound.speaker, sound.number, sound.voiced_s, sound.before_s) == ("Ada", 1, 1.0, 0.0)
    assert sound.captured_ns == to_ns(100.0)  # its first piece came when it began: no page makes it younger
    assert booth.spoken == [True, False]
    assert (booth.told()["count"], booth.told()["why"]) == (1, "")


@pytest.mark.parametrize(
    ("ago_s", "began_s"),
    [(0.0, 99.5), (0.6, 99.4), (3.0, 97.0), (60.0, 94.5)],
    ids=["less than its length", "what it says", "a slow link", "no more than is believed"],
)
def test_no_sound_is_of_the_future_and_how_late_it_is_is_believed_within_bounds(ago_s: float, began_s: float) -> None:
    booth = Booth()
    booth.do(Talk(), *[PIECE] * 5, Talked(ago_s=ago_s))  # all at once, as after a link that hung
    assert booth.sounds[0].captured_ns == to_ns(began_s)


def test_numbers_rise_over_all_speakers() -> None:
    booth = Booth()
    bo = Session("b", "operator", "Bo")
    for session in (booth.ada, bo, booth.ada):
        booth.do(Talk(), *[PIECE] * 3, Talked(), session=session, speaker=session.name)
    assert [(one.number, one.speaker) for one in booth.sounds] == [(1, "Ada"), (2, "Bo"), (3, "Ada")]


def test_more_than_20_s_are_passed_on_as_20_s_and_what_follows_is_not_kept() -> None:
    booth = Booth()
    long = SoundPiece(bytes(16_000))
    booth.do(Talk(), *[long] * 60, Talked())
    assert [2 * len(one.samples) for one in booth.sounds] == [MOST_BYTES]
    assert booth.told()["count"] == 1


def test_a_press_without_words_is_told_and_not_passed_on() -> None:
    booth = Booth()
    booth.do(Talk(), PIECE, Talked())
    assert booth.sounds == []
    assert booth.told()["why"] == "too_short"
    assert booth.spoken == [True, False]


def test_sound_that_nobody_began_and_an_end_without_a_beginning_are_nothing() -> None:
    booth = Booth()
    booth.do(PIECE, Talked(), PIECE)
    assert booth.sounds == []
    assert booth.spoken == []
    assert booth.told()["count"] == 0


def test_what_is_thrown_away_is_not_passed_on() -> None:
    booth = Booth()
    booth.do(Talk(), *[PIECE] * 5, Talked(is_wanted=False))
    assert booth.sounds == []
    assert booth.spoken == [True, False]


def test_many_utterances_at_once_are_refused_in_words_and_later_ones_are_heard_again() -> None:
    booth = Booth()
    for _ in range(20):
        booth.do(Talk(), *[PIECE] * 3, Talked())
    assert len(booth.sounds) == int(UTTERANCES_BURST)
    assert (booth.told()["count"], booth.told()["why"]) == (20, "too_fast")
    booth.do(Talk(), *[PIECE] * 3, Talked(), after_s=2.0)
    assert len(booth.sounds) == int(UTTERANCES_BURST) + 1


def test_a_page_that_goes_away_in_mid_sentence_leaves_nobody_speaking() -> None:
    booth = Booth()
    booth.do(Talk(), *[PIECE] * 5)
    booth.talking.left(booth.ada)
    assert booth.spoken == [True, False]
    assert booth.sounds == []


def test_a_link_that_hangs_in_mid_sentence_leaves_nobody_speaking_but_what_comes_late_still_counts() -> None:
    booth = Booth()
    booth.do(Talk(), *[PIECE] * 5)
    for _ in range(int(SILENT_S * 10) + 5):
        booth.ports.now_ns += to_ns(0.1)
        booth.talking.beat(booth.ports.now_ns)
    assert booth.spoken[0] is True
    assert booth.spoken[-1] is False
    assert booth.spoken.count(False) == 1
    assert booth.spoken.count(True) >= SILENT_S / 0.3  # repeated meanwhile, so that a loudspeaker goes on waiting
    booth.do(PIECE, Talked())
    assert [len(one.samples) for one in booth.sounds] == [9600]
    assert booth.spoken[-1] is False


def test_what_a_page_said_that_goes_on_no_more_is_forgotten_and_told() -> None:
    booth = Booth()
    booth.do(Talk(), *[PIECE] * 5)
    booth.ports.now_ns += to_ns(GONE_S + 0.1)
    booth.talking.beat(booth.ports.now_ns)
    assert booth.told()["why"] == "cut_off"
    booth.do(PIECE, Talked())
    assert booth.sounds == []
    assert booth.spoken == [True, False]


def test_a_robot_that_speaks_falls_silent_while_the_button_is_held() -> None:
    booth, floor = Booth(), SpeakingTurn(barge_in_s=0.3)

    def hear() -> None:
        for one in booth.ports.speaking.messages:
            floor.hear(one, booth.ports.now_ns)
        booth.ports.speaking.messages.clear()

    booth.do(Talk())
    hear()
    assert floor.to_barge_in_s(booth.ports.now_ns) == pytest.approx(0.3)
    for _ in range(30):
        booth.do(PIECE, after_s=0.1)
        booth.talking.beat(booth.ports.now_ns)
        hear()
        assert floor.taken_for_s(booth.ports.now_ns) > 1.0
    assert floor.to_barge_in_s(booth.ports.now_ns) < 0.0
    booth.do(Talked())
    hear()
    assert floor.taken_for_s(booth.ports.now_ns) == 0.0


def test_as_long_as_one_of_two_speaks_somebody_speaks() -> None:
    booth = Booth()
    bo = Session("b", "operator", "Bo")
    booth.do(Talk())
    booth.do(Talk(), session=bo, speaker="Bo")
    booth.do(*[PIECE] * 3, Talked())
    assert booth.spoken == [True]
    booth.talking.left(bo)
    assert booth.spoken == [True, False]


def test_who_may_not_speak_any_more_is_told_and_what_they_said_is_forgotten() -> None:
    booth = Booth()
    booth.do(Talk(), *[PIECE] * 5)
    booth.talking.refuse(booth.ada, PIECE, "not_heard")
    booth.talking.refuse(booth.ada, PIECE, "not_heard")
    booth.do(Talked())
    assert booth.sounds == []
    assert (booth.told()["count"], booth.told()["why"]) == (1, "not_heard")
    assert booth.spoken == [True, False]


def test_the_words_go_back_to_the_page_that_said_them() -> None:
    booth = Booth()
    bo = Session("b", "operator", "Ada")  # of the same name
    booth.do(Talk(), *[PIECE] * 5, Talked())
    booth.do(Talk(), *[PIECE] * 5, Talked(), session=bo, after_s=1.0)
    booth.talking.note(Utterance(speaker="Ada", text="typed meanwhile"))
    assert booth.told()["words"] == ""
    booth.talking.note(Utterance(speaker="Ada", text="Hello.", captured_ns=booth.sounds[0].captured_ns))
    assert (booth.told()["words"], booth.told(bo)["words"]) == ("Hello.", "")


def test_operators_are_told_why_nothing_is_understood_and_participants_only_that() -> None:
    booth = Booth()
    assert booth.told()["deaf"] == {}
    booth.ports.recogniser.message = RecogniserState(is_live=False, why="no server at http://here")
    booth.ports.microphone.message = MicrophoneState(is_live=False, why="unplugged")
    assert booth.told()["deaf"] == {"recogniser": "yes"}
    told = booth.talking.document(booth.ada, is_told_why=True)["deaf"]
    assert told == {"recogniser": "no server at http://here", "microphone": "unplugged"}
    booth.ports.recogniser.message = RecogniserState(is_live=True)
    assert booth.told()["deaf"] == {}


def topics(**subscribers: list[str]) -> dict[str, Any]:
    return {
        "name": "x", "supervisor_pid": 1, "started_ns": 1, "launch_file": "x.toml", "nodes": {}, "processes": {},
        "topics": {
            name.replace("_", "/"): {"type": "m:C", "kind": "event", "publishers": [], "subscribers": heard_by}
            for name, heard_by in subscribers.items()
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("run", "is_understood"),
    [
        (topics(microphone_speech=["words", "recorder"], said=["recorder"]), True),
        (topics(microphone_speech=["recorder"], said=["recorder"]), False),  # which records whatever there is
        (topics(microphone_speech=[], said=["console"]), False),
        (topics(said=["console"]), False),
    ],
)
def test_a_run_without_a_recogniser_is_known(run: dict[str, Any], is_understood: bool, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(run))
    assert has_listener(RunFacts.of({"registry": str(tmp_path)}), "microphone/speech") is is_understood


def test_a_console_that_only_listens_to_the_microphone_recognises_nothing(tmp_path: Path) -> None:
    run = topics(microphone_speech=["console", "recorder"], said=["recorder"])
    (tmp_path / "run.json").write_text(json.dumps(run))
    info = RunFacts.of({"registry": str(tmp_path)})
    assert not has_listener(info, "microphone/speech", but="console")
    assert has_listener(info, "microphone/speech", but="another")


@pytest.mark.parametrize("text", ["", "[]", '{"name": 7}'])
def test_where_nothing_is_known_of_the_run_speaking_is_tried(text: str, tmp_path: Path) -> None:
    assert has_listener(RunFacts.of({}), "microphone/speech")
    assert has_listener(RunFacts.of({"registry": str(tmp_path)}), "microphone/speech")
    (tmp_path / "run.json").write_text(text)
    assert has_listener(RunFacts.of({"registry": str(tmp_path)}), "microphone/speech")


@pytest.mark.parametrize("decode", [console_wire.decode, study_wire.decode])
@pytest.mark.parametrize(
    "garbled",
    [
        {"t": "sound"},
        {"t": "sound", "pcm": ""},
        {"t": "sound", "pcm": "%%%%"},
        {"t": "sound", "pcm": [1, 2]},
        {"t": "sound", "pcm": base64.b64encode(bytes(3)).decode()},
        {"t": "sound", "pcm": base64.b64encode(bytes(16_002)).decode()},
        {"t": "talk", "as": "robot"},
        {"t": "talked", "ago_s": -1.0},
        {"t": "talked", "ago_s": 61.0},
        {"t": "talked", "ago_s": "long"},
    ],
)
def test_garbled_sound_is_refused_like_any_other_garbage(decode: Any, garbled: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(json.dumps(garbled))
    assert decode(json.dumps({"t": "sound", "pcm": "AQD//w=="})) == SoundPiece(b"\x01\x00\xff\xff")


def test_only_in_a_trial_a_participant_is_heard_and_nobody_else_on_that_page(tmp_path: Path) -> None:
    node = Study(folder=str(tmp_path))
    sim = Simulation(node)
    sounds, spoken = sim.record(Study.sound), sim.record(Study.speaking)
    keeper, guide, person = opened(node, sim, tmp_path)
    utterance: tuple[Any, ...] = (Talk(), *[PIECE] * 5, Talked())

    def say(session: Session) -> None:
        for message in utterance:
            node.handle(session, message)

    begun: Any = ((guide, study_wire.BeginSession(1)), (person, study_wire.Agree(3)), (guide, study_wire.Skip()))
    for session, message in begun:
        node.handle(session, message)
    say(person)
    assert node.state(person, 0)["voice"]["why"] == "not_heard"
    node.handle(guide, study_wire.StartTrial())
    say(guide)
    assert set(guide.notices) == {sentence("bridges.participant_only")}
    say(person)
    for message in utterance[:-1]:
        node.handle(person, message)
    node.handle(guide, study_wire.EndTrial())
    node.handle(person, utterance[-1])  # it began in time and ended too late
    sim.run(seconds=0.1)
    assert [(one.speaker, one.number, len(one.samples)) for one in sounds] == [("collaborator", 1, 8000)]
    assert [one.is_speaking for one in spoken] == [True, False, True, False]
    assert node.state(person, 0)["voice"]["count"] == 3
    keeper.close()


def test_sound_of_one_tone_keeps_it_and_what_16_khz_cannot_hold_is_gone(tmp_path: Path) -> None:
    (tmp_path / "resample.mjs").write_bytes((STATIC / "speech" / "resample.js").read_bytes())
    (tmp_path / "story.mjs").write_text("""
const { Resampler, packed } = await import("./resample.mjs");
const told = {};
const tones = [300, 1000, 3000, 9000, 15000, 20000];
for (const rate of [48000, 44100, 96000, 16000, 8000]) for (const tone of tones.filter((one) => one < rate / 2)) {
  const resampler = new Resampler(rate), found = [], at = (place) => 0.5 * Math.sin(2 * Math.PI * tone * place / rate);
  const block = (from) => Float32Array.from({ length: 512 }, (_, place) => at(from + place));
  for (let from = 0; from < rate; from += 512) found.push(...resampler.add(block(from)));
  told[`${rate} ${tone}`] = packed(Float32Array.from(found));
}
told.loud = packed(Float32Array.from([2, -2, 0, 1 / 32767]));
console.log(JSON.stringify(told));
""")
    done = subprocess.run(
        [javascript(), "story.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
    )
    told = {name: np.frombuffer(base64.b64decode(text), "<i2") for name, text in json.loads(done.stdout).items()}
    assert told.pop("loud").tolist() == [32767, -32767, 0, 1]
    for name, samples in told.items():
        tone = int(name.split()[1])
        assert abs(len(samples) - 16_000) < 1200, name  # one second, but for what is still in the filter
        middle = samples[800:-800].astype(float)
        loud = np.sqrt((middle**2).mean()) / (0.5 * 32767 / np.sqrt(2))
        spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle))))
        heard_hz = spectrum.argmax() * 16_000 / len(middle)
        if tone < 8000:
            assert 0.97 < loud < 1.03, name
            assert abs(heard_hz - tone) < 3.0, name
        else:
            assert loud < 0.002, (name, loud)  # 54 dB
