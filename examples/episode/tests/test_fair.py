"""The episode of the launch file in virtual time: both speak, and a judge scores them."""

from pathlib import Path

from fair.talk import TalkGauge
from nodes.msgs.episode import Outcome, Scores, Turn
from runtime import Simulation
from runtime.launch.file import load


def test_both_speak_and_are_judged() -> None:
    launch = load(Path("fair.toml"))
    simulation = Simulation(*launch.graph.nodes.values(), seed=7)
    turns = simulation.record_topic("episode/turn", Turn)
    outcomes = simulation.record_topic("episode/outcome", Outcome)
    scores = simulation.record_topic("episode/scores", Scores)
    shares = simulation.record(TalkGauge.share)
    simulation.run(seconds=600.0)
    simulation.close()
    assert {turn.speaker for turn in turns} == {"Ann Ash", "Bo Birch"}
    assert outcomes[0].state == "done"
    assert scores[0].state == "done"
    assert 0.5 <= shares[-1].largest < 0.9, "both speak"
