"""`KitchenPlanner`: the scripted planner of a kitchen, on the topics and at the rate of the others."""

from __future__ import annotations

from pathlib import Path

from nodes.kitchen.mind.mind import Mind
from nodes.msgs import Scene, SceneDescription
from nodes.planner.memory import keep, remembered
from nodes.planner.orders import Surroundings
from nodes.planner.scripted import ScriptedPlanner
from runtime import every, on


class KitchenPlanner(ScriptedPlanner):
    """`memory` is a file that keeps what people taught ("": until the run ends): JSON, a place for each kind."""

    provenance = "script:kitchen-planner-1"

    def __init__(self, speaker: str = "robot", memory: str = "") -> None:
        super().__init__(speaker)
        self.memory = Path(memory) if memory else None
        self.mind = Mind(habits=remembered(self.memory) if self.memory is not None else {}, speaker=speaker)
        self.kept = dict(self.mind.habits)

    def _hear(self, text: str, speaker: str = "", *, may_wait: bool = False) -> None:
        self._look_around()
        self._say_all(self.mind.hear(text, speaker, self.clock.now_ns()))
        self._publish()

    @on(ScriptedPlanner.scene)
    def see(self, scene: Scene) -> None:
        """What people do without a word counts too."""
        super().see(scene)
        self._look_around()
        before = self.mind.number
        self._say_all(self.mind.see(scene, self.clock.now_ns()))
        if self.mind.number != before:
            self._publish()

    @on(ScriptedPlanner.description)
    def follow(self, told: SceneDescription) -> None:
        """What the VLM has finished, or cannot do."""
        before = self.mind.number
        self._say_all(self.mind.report(told, self.clock.now_ns()))
        if self.mind.number != before:
            self._publish()

    @every(hz=0.5)
    def tick(self) -> None:
        """Questions that wait, and what is to be done, said again."""
        if self.unheard and self._knows():
            self._catch_up()
        self._say_all(self.mind.tick(self.clock.now_ns()))
        self._publish()

    def _look_around(self) -> None:
        scene, skills = self.scene.latest(), self.skills.latest()
        self.mind.world = Surroundings(scene or Scene(), skills.skills if skills is not None else ())

    def _say_all(self, texts: list[str]) -> None:
        self._answer(" ".join(text for text in texts if text))
        if self.memory is not None and self.mind.habits != self.kept:
            self.kept = dict(self.mind.habits)
            keep(self.memory, self.kept)

    def _publish(self) -> None:
        subtask = self.mind.subtask
        if subtask is not None:
            self.subtask.publish(subtask)
