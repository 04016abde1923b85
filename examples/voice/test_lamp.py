"""Seven seconds of talk, at once: what is heard, what is said, and when the mouth has ended."""

from pathlib import Path

from lamp import Lamp

from nodes.voice.loudspeaker import Loudspeaker
from runtime import Simulation
from runtime.launch.file import load


def test_the_lamp_obeys_and_says_so_aloud() -> None:
    sim = Simulation(*load(Path("lamp.toml")).graph.nodes.values(), seed=7)
    lights, said = sim.record(Lamp.light), sim.record(Lamp.said)
    saying = sim.record(Loudspeaker.saying)
    sim.run(seconds=8.0)
    sim.close()
    assert [one.text for one in said] == ["Here is light.", "Good night."]
    shown = [one.is_on for one in lights]
    assert [shown[0], shown[20], shown[-1]] == [False, True, False]
    assert saying, "the loudspeaker tells when it speaks, so that ears know whom they hear"
