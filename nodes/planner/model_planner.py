"""`ModelPlanner`: what planners on a model have in common: what they hear, their history, the subtask that stands."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import msgspec

from nodes.models.answers import ChatSettings
from nodes.msgs import (
    Feedback,
    Image,
    Interrupt,
    OutOfBudget,
    Saying,
    Scene,
    SceneDescription,
    SkillCatalogue,
    Subtask,
    Utterance,
)
from nodes.perception.marked_image import marked
from nodes.planner.memory import keep, remembered
from nodes.planner.model_prompt import History, PlannerAnswer, words
from nodes.planner.orders import Surroundings
from nodes.seats.seat_node import SeatNode
from runtime import RELIABLE, Publisher, QoS, Subscription, on

ASKED_AGAIN = 2
"""How often a model is told why its answer cannot be used; then a person is asked to say it otherwise."""
IMAGES_KEPT = 64
"""So many images are kept until the VLM has told what they show: 6 s at 10 Hz, 60 MB at 640 x 480."""


class ModelPlanner(SeatNode):
    """Keeps the history of a run and its subtask; how the model is asked is a subclass's."""

    seat = "planner"
    effect_name = "planner cancelled"

    heard = Subscription(Utterance, "heard", qos=QoS(required=False))
    description = Subscription(SceneDescription, "description", qos=QoS(required=False))
    scene = Subscription(Scene, "scene", qos=QoS(required=False))
    skills = Subscription(SkillCatalogue, "skills", qos=QoS(required=False))
    image = Subscription(Image, "head/image", qos=QoS(required=False, lifespan_s=5.0))
    interrupts = Subscription(Interrupt, "interrupt", qos=QoS(required=False))
    feedback = Subscription(Feedback, "feedback", qos=QoS(required=False))
    robot_said = Subscription(Utterance, "said", qos=QoS(required=False))
    saying = Subscription(Saying, "saying", qos=QoS(required=False))

    subtask = Publisher(Subtask, "subtask", qos=RELIABLE)
    said = Publisher(Utterance, "said", qos=RELIABLE)
    out_of_budget = Publisher(OutOfBudget, "seat/out_of_budget", qos=RELIABLE)

    def __init__(
        self, settings: ChatSettings, speaker: str, sees: bool, persona: str, memory: str = "", prompt: str = ""
    ) -> None:
        """`memory` is a file that keeps where people taught things to belong, `prompt` one whose texts replace ours."""
        self.settings = settings
        self.texts = words(prompt)
        self.memory = Path(memory) if memory else None
        self.taught = remembered(self.memory) if self.memory is not None else {}
        self.speaker = speaker
        self.sees = sees
        self.persona = persona
        self.history = History()
        self.current: Subtask | None = None
        self.count = 0
        self.images: deque[Image] = deque(maxlen=IMAGES_KEPT)

    def problems(self) -> list[str]:
        """What its parameters and this environment lack, in sentences."""
        return self.settings.problems()

    def on_start(self) -> None:
        for port in (self.subtask, self.said):
            port.provenance = f"model:{self.settings.model}"

    @on(feedback)
    def notice(self, feedback: Feedback) -> None:
        if feedback.status == "failure":
            self.history.failed(feedback.why)
        elif feedback.status == "success":
            self.history.done(feedback.why)

    @on(interrupts)
    def interrupted(self, interrupt: Interrupt) -> None:
        """What happened is history; that a request in flight is cancelled is the runtime's affair, by the fence."""
        self.history.interrupted(interrupt)

    @on(image)
    def keep_image(self, image: Image) -> None:
        """A scene tells of an image that is older by the time that the VLM took to look at it."""
        if self.sees:
            self.images.append(Image(camera=image.camera, captured_ns=image.captured_ns, rgb=image.rgb.copy()))

    def _shown(self) -> tuple[Image | None, Scene | None]:
        """The image for the model, with the ids of what the scene says that it shows, and that scene."""
        scene, newest = self.scene.latest(), self.image.latest() if self.sees else None
        return (newest, None) if scene is None else marked(newest, self.images if self.sees else (), scene)

    def _around(self) -> Surroundings:
        scene, skills = self.scene.latest(), self.skills.latest()
        return Surroundings(scene or Scene(), skills.skills if skills is not None else ())

    def _set(self, wanted: Subtask) -> None:
        """Publish a subtask that differs from the one that stands, under a new id; else that one again."""
        if self.current is None or _matter(self.current) != _matter(wanted):
            self.count += 1
            current: Subtask = msgspec.structs.replace(wanted, id=f"{self.name}-{self.count}")  # type: ignore[type-var]  # a Struct, but not to type checkers
            self.current = current
            self.history.planned(current)
        self._stand()

    def _learn(self, answer: PlannerAnswer) -> None:
        """Keep where people taught things to belong, of places that there are."""
        places = self._around().world.places
        new = {one.label.strip().lower(): one.place for one in answer.learned if one.place in places}
        self.taught = {**self.taught, **new}
        if self.memory is not None and new:
            keep(self.memory, self.taught)

    def _stand(self) -> None:
        """Publish the subtask that stands, if there is one."""
        if self.current is not None:
            self.subtask.publish(self.current)


def _matter(subtask: Subtask) -> tuple[object, ...]:
    return (
        subtask.state, subtask.skill, subtask.things, subtask.place, subtask.relation, frozenset(subtask.excluding),
        subtask.text if not subtask.skill else "",
    )  # fmt: skip
