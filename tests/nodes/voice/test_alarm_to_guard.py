"""From a called word to a held robot: microphone, recogniser, reflex and guard together, on real speech."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.guard.node import Guard
from nodes.msgs import Alarm, GuardState, Saying
from nodes.voice.microphone import Microphone
from nodes.voice.recogniser import Recogniser, verdict
from runtime import Simulation
from tests.nodes.voice.test_to_guard import robot
from tests.support.models.spoken import needs_espeak, silence, spoken, write_wav
from tests.support.servers.fake_speech_server import Answer, FakeSpeech, says

BEGIN_S, LATENCY_S = 2.0, 0.4  # of the word, and of recognition
CALL = "Stop!"


def modes_of(
    path: Path, answer: Answer, *, seconds: float = 6.0, speaks: bool = False
) -> tuple[list[GuardState], list[Alarm]]:
    """What the guard does and what is told of alarms, with a recogniser that answers so."""
    with FakeSpeech(answer) as server:
        recogniser = Recogniser(base_url=server.url, model="whisper-test", latency_s=LATENCY_S)
        sim: Simulation = robot(Microphone(source=str(path), spots_alarms=True), recogniser)
        states, alarms = sim.record(Guard.guard_state), sim.record_topic("alarm", Alarm)
        if speaks:
            sim.run(seconds=0.1)
            sim.publish("saying", Saying(id="said:planner:1", text="I see a cup.", phase="begun"))
        sim.run(seconds=seconds)
        sim.close()
    return states, alarms


@pytest.fixture
def call(tmp_path: Path) -> Path:
    return write_wav(tmp_path / "a.wav", silence(BEGIN_S), spoken(CALL), silence(4.0))


def modes(states: list[GuardState]) -> list[str]:
    """One after the other."""
    return [
        now.mode
        for before, now in zip([None, *states], states, strict=False)
        if before is None or now.mode != before.mode
    ]


@needs_espeak
def test_a_called_stop_holds_the_robot_before_its_words_are_known_and_they_make_it_a_stop(call: Path) -> None:
    states, alarms = modes_of(call, says(CALL))
    spotted = alarms[0]
    assert (spotted.phase, spotted.word) == ("spotted", "stop")
    assert BEGIN_S < spotted.ended_ns * 1e-9 < BEGIN_S + len(spoken(CALL)) / 32_000 + 0.15
    assert abs(spotted.captured_ns * 1e-9 - BEGIN_S) < 0.2, "as old as the speech"
    assert modes(states)[-3:] == ["moving", "holding", "stopped"]
    assert [one.phase for one in alarms if one.phase != "spotted"] == [], "the words have said it all"


@needs_espeak
def test_a_call_of_which_the_recogniser_makes_nothing_stops_the_robot_all_the_same(call: Path) -> None:
    states, alarms = modes_of(call, says("Thank you."))
    assert alarms[-1].phase == "stands"
    assert states[-1].mode == "stopped"


@needs_espeak
def test_a_call_that_a_dead_recogniser_leaves_unheard_stops_the_robot_all_the_same(call: Path) -> None:
    states, alarms = modes_of(call, lambda _: (500, b"{}"), seconds=9.0)
    assert alarms[-1].phase == "stands"
    assert states[-1].mode == "stopped"


@needs_espeak
def test_words_that_only_mention_a_stop_let_the_robot_go_on(tmp_path: Path) -> None:
    story = "The bus stop is near the church."
    path = write_wav(tmp_path / "a.wav", silence(BEGIN_S), spoken(story), silence(3.0))
    states, alarms = modes_of(path, says(story), seconds=7.0)
    assert "stopped" not in modes(states)
    assert states[-1].mode == "moving"
    assert {one.phase for one in alarms} == {"spotted", "refuted"}


@needs_espeak
def test_while_the_robot_speaks_in_earshot_its_words_alarm_nobody(call: Path) -> None:
    _, alarms = modes_of(call, says(""), seconds=3.0, speaks=True)
    assert alarms == []


@pytest.mark.parametrize(
    ("sureness", "text", "is_over", "wanted"),
    [
        (0.99, "I stopped by the shop.", False, "refuted"),
        (0.99, "Thank you.", False, "stands"),
        (0.99, "Stopped.", False, "stands"),
        (0.99, "", True, "stands"),
        (0.99, None, True, "stands"),
        (0.85, "Thank you.", False, "refuted"),
        (0.85, "", False, None),
        (0.85, None, True, "refuted"),
    ],
)
def test_what_words_make_of_an_alarm(sureness: float, text: str | None, is_over: bool, wanted: str | None) -> None:
    assert verdict(sureness, text, is_over=is_over) == wanted
