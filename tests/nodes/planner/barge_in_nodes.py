"""A person who speaks over the robot, in a process of its own: "tests.nodes.planner.barge_in_nodes:Interjector"."""

from __future__ import annotations

from typing import Any

import numpy as np

from nodes.msgs import Saying, Scene, SkillCatalogue, Sound, SoundSoFar, Speech, Utterance
from runtime import RELIABLE, Node, Publisher, Subscription, every, on

LONG = " ".join(["and so on"] * 20)
ANSWER = "The blue one."
SPEECH_TICKS = 12
"""It speaks for 0.6 s."""


class Interjector(Node):
    """Asks for a story, speaks over its beginning, and ends well when its own words were answered, aloud."""

    heard = Publisher(Utterance, "heard", qos=RELIABLE)
    speech = Publisher(Sound, "microphone/speech", qos=RELIABLE)
    so_far = Publisher(SoundSoFar, "microphone/so_far")
    activity = Publisher(Speech, "speech")
    scene = Publisher(Scene, "scene")
    skills = Publisher(SkillCatalogue, "skills")
    saying = Subscription(Saying, "saying")

    def __init__(self) -> None:
        self.ticks = -1  # of its own speech; -1: it has not begun
        self.began_ns = 0
        self.phases: list[str] = []

    @every(hz=20)
    def talk(self) -> None:
        self.scene.publish(Scene())
        self.skills.publish(SkillCatalogue())
        if not self.began_ns:
            if self.ticks == -1:
                self.ticks = 0
                self.heard.publish(Utterance(speaker="ann", text="Tell me a story"))
            return
        self.ticks += 1
        if self.ticks > SPEECH_TICKS:
            return
        is_over = self.ticks == SPEECH_TICKS
        samples = np.full(self.ticks * 800, 500, np.int16)
        told: dict[str, Any] = {
            "speaker": "ann",
            "number": 1,
            "captured_ns": self.began_ns,
            "voiced_s": len(samples) / 16_000,
        }
        self.activity.publish(Speech(speaker="ann", is_speaking=not is_over, begun_ns=self.began_ns))
        if is_over:
            self.heard.publish(Utterance(speaker="ann", text="No, the blue one", captured_ns=self.began_ns))
            self.speech.publish(Sound(**told, before_s=0.0, samples=samples))
        else:
            self.so_far.publish(SoundSoFar(**told, before_s=0.0, samples=samples))

    @on(saying)
    def follow(self, saying: Saying) -> None:
        self.phases.append(saying.phase)
        if saying.text.startswith("and") and saying.phase == "begun" and not self.began_ns:
            self.began_ns, self.ticks = self.clock.now_ns(), 0
        elif saying.text == ANSWER and saying.phase == "done":
            self.finish(ok="cut" in self.phases, reason=f"told: {', '.join(self.phases)}")
