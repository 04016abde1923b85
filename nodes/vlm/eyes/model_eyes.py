"""`ModelEyes`: eyes from a vision-language model that names and points at what it sees, and may advise what to do.

Depth and the camera's pose turn its pixels into places; a hand is what the robot's own eyes see of it.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Sequence

from nodes.models.answers import ModelError
from nodes.models.request import ModelRequest
from nodes.msgs import Image, RobotState, SeenObject, SeenPerson, Utterance
from nodes.planner.talk.questions import ANSWER_WITHIN_S
from nodes.policy.sight import state_at
from nodes.robot.protocol import Body
from nodes.vlm.belief import TableBelief
from nodes.vlm.choice.advised import Counsel
from nodes.vlm.choice.situation import Situation
from nodes.vlm.eyes.geometry_eyes import GeometryEyes
from nodes.vlm.eyes.model_prompt import (
    COORDINATES,
    Advice,
    Coordinates,
    Pointed,
    VLMTexts,
    answer_schema,
    facts_of,
    parse,
    question_text,
    system_prompt,
)
from nodes.vlm.eyes.pointing import place_thing, point_at
from nodes.vlm.parts import EyesAsk, Moment, VLMEyes
from runtime import ParameterError, Stamped, to_s

SAID_KEPT = 5
IN_HAND_M = 0.15
"""What is pointed at so near to a hand that has grasped something is that, and stands nowhere."""
FAILURES_TO_BLIND = 3
ASKED_AGAIN = 2
"""How often a model is told why its answer cannot be used; then that is said aloud."""


class ModelEyes(VLMEyes):
    """Look as often as the model answers. One that fails three times in a row is taken for blind, and still asked.

    `has_ids`: an answer may name what is remembered by its id.
    """

    def __init__(
        self,
        request: ModelRequest,
        belief: TableBelief,
        coordinates: Coordinates,
        texts: VLMTexts,
        clock_ns: Callable[[], int],
        *,
        has_ids: bool,
        rules: bool,
    ) -> None:
        if coordinates not in COORDINATES:
            raise ParameterError(f"vlm: coordinates is {coordinates!r}; known: {', '.join(COORDINATES)}")
        self.request, self.belief, self.texts = request, belief, texts
        self.coordinates: Coordinates = coordinates
        self._clock_ns, self.has_ids, self.rules = clock_ns, has_ids, rules
        self.log = logging.getLogger("node.vlm")
        self._geometry = GeometryEyes(belief)
        self._heard: deque[str] = deque(maxlen=SAID_KEPT)
        self._asked_image_ns = 0
        self._advice = Advice()
        self._advised: tuple[SeenObject | None, SeenObject | None] = (None, None)  # target and place
        self._asked_ns = 0  # when the newest answer was asked for
        self._advised_for = ""  # the subtask that the model was asked about
        self._last_said = ""
        self._question_ns = 0  # the model's question waits for an answer since; 0: none does

    def look(self, now: Moment) -> EyesAsk:
        """A hand that is held out; whatever else there is, the model tells. And that its question has no answer."""
        posed = self._geometry.images.posed(now.image, now.states, now.body)
        if posed is not None and posed[0].message.depth_m is not None:
            self._geometry.find_person(posed[0].message, posed[1], now)
        is_late = self._question_ns > 0 and to_s(now.now_ns - self._question_ns) >= ANSWER_WITHIN_S
        if not is_late or now.is_held or now.task is None or now.task.state != "work":
            return EyesAsk()
        self._question_ns = 0
        return EyesAsk(say=self.texts.say.unanswered)

    def hear(self, utterance: Utterance) -> bool:
        """Whether it answers what the model has asked, which hears it too."""
        self._heard.append(utterance.text)
        is_answer, self._question_ns = self._question_ns > 0, 0
        return is_answer

    def void(self) -> bool:
        """The answer under way is about what was before, and so is what the last one advised."""
        was_asking, self._advice = self.request.is_asking, Advice()
        self.request.void()
        return was_asking

    @property
    def is_blind(self) -> bool:
        """Whether the model is given up for now; it is still asked, more and more rarely."""
        return self.request.failures >= FAILURES_TO_BLIND or self.request.is_spent

    @property
    def counsel(self) -> Counsel:
        """What the newest answer advises; it counts until the next one."""
        advice, number = self._advice, self._advice.target
        target, place = self._advised
        return Counsel(
            advice.skill, target, place, advice.done, advice.things[number].colour if number >= 0 else "",
            self._advised_for, self._asked_ns, self.is_blind, self._question_ns > 0, self.rules,
        )  # fmt: skip

    def has_reason_to_ask(self, image: Image | None) -> bool:
        """Whether an image is new, and the model can be asked now."""
        is_new = image is not None and image.captured_ns != self._asked_image_ns
        return is_new and not self.request.is_asking and not self.request.is_paused and not self.request.is_spent

    async def ask(self, now: Moment, situation: Situation) -> str | None:
        """One look at the newest image: what to say; None where an interrupt voided it. No failure is raised."""
        stamped = now.image
        state = state_at(now.states, stamped.message.captured_ns) if stamped is not None else None
        if stamped is None or (state is None and stamped.message.depth_m is not None):
            return ""
        image, skills = stamped.message, tuple((now.skills or {}).values())
        height_px, width_px = image.rgb.shape[:2]
        doing = (
            "" if situation.doing is None else f"{situation.doing.text}: {situation.outcome} {situation.why}".strip()
        )
        question = question_text(
            situation.subtask,
            tuple(self._heard),
            width_px,
            height_px,
            skills,
            doing,
            facts_of(situation, has_ids=self.has_ids),
        )
        known = {one.id for one in situation.objects}
        why, advice = "", None
        for _ in range(1 + ASKED_AGAIN):
            again = f"\n\n{self.texts.again.replace('{why}', why)}" if why else ""
            try:
                text = await self.request.ask(
                    system=system_prompt(self.coordinates, self.texts) + self.texts.people.rstrip(),
                    text=question + again,
                    schema=answer_schema(skills),
                    image=image,
                )
            except (ModelError, ValueError) as problem:
                self._fail(problem)
                if isinstance(problem, ModelError) and problem.is_unusable and not self.request.is_spent:
                    why = str(problem)
                    continue
                return ""
            if text is None:
                self.log.info("request cancelled by an interrupt")
                return None
            try:
                advice = parse(text, self.coordinates, width_px, height_px, skills, known)
                break
            except ModelError as problem:
                why = str(problem)
                self._fail(problem)
        if advice is None:
            return self.texts.say.unusable
        self.request.succeeded()
        self._take_in(advice, stamped, state, now)
        return self._take_advice(advice, now.now_ns, situation)

    def _fail(self, problem: Exception) -> None:
        self.request.failed(problem)
        self.belief.seen_people = ()  # what they did is over by the time that the model sees again
        self.log.warning("cannot see (%d in a row): %s", self.request.failures, problem)

    def _take_in(self, advice: Advice, stamped: Stamped[Image], state: RobotState | None, now: Moment) -> None:
        """What the model points at stands where the depth says."""
        image, pointed = stamped.message, advice.things
        self._asked_image_ns, self.seen = image.captured_ns, stamped
        is_deep = image.depth_m is not None
        self.belief.unplaced = () if is_deep else tuple(f"{one.colour} {one.label}" for one in pointed)
        if state is not None and is_deep:
            placed = self._placed([one for one in pointed if not one.id], image, state, now.body)
            self._geometry.remember(placed, image, state, now)
            self.shown_ns = image.captured_ns
            self.belief.seen_people = self._people_in(advice, image, state, now.body)

    def _take_advice(self, advice: Advice, asked_ns: int, situation: Situation) -> str:
        """What the model chose counts from now until the next answer; what it says is said once."""
        self._advice, self._asked_ns = advice, asked_ns
        self._advised = (self._named(advice, advice.target), self._named(advice, advice.place))
        self._advised_for = situation.subtask.id if situation.subtask is not None else ""
        is_claim = advice.done and not situation.did  # of a deed that nobody has measured: the planner says how it is
        said, self._last_said = self._last_said, advice.say
        if not advice.say or advice.say == said or is_claim:
            return ""
        self._question_ns = self._clock_ns() if advice.asks else 0
        return advice.say

    def _named(self, advice: Advice, number: int) -> SeenObject | None:
        """What is remembered of what the model points at: of its id, or of its name and nearest in the image."""
        if number < 0:
            return None
        meant, things = advice.things[number], self.belief.things()
        if meant.id:
            return next((one for one in things if one.id == meant.id), None)
        same = [one for one in things if (one.label, one.colour) == (meant.label, meant.colour)]
        return min(same, key=lambda one: (one.u_px - meant.u) ** 2 + (one.v_px - meant.v) ** 2, default=None)

    def _placed(self, pointed: Sequence[Pointed], image: Image, state: RobotState, body: Body) -> list[SeenObject]:
        depth = image.depth_m
        assert depth is not None
        rotation, position = body.head_camera(state)
        camera = (float(position[0]), float(position[1]), float(position[2]))
        hand = body.hand_point(state)
        shapes = self._geometry.shapes_in(image, state, body)
        seen: list[SeenObject] = []
        for thing in pointed:
            point = point_at(thing.u, thing.v, depth, image.focal_px, rotation, position)
            is_held = state.is_grasping and point is not None and math.dist(point, hand) < IN_HAND_M
            if point is not None and not is_held:
                known = self.belief.places
                places = (*known, thing.label) if thing.is_place else known
                size = self.texts.size_m(thing.label, is_place=thing.label in places)
                seen.append(
                    place_thing(thing.label, thing.colour, thing.u, thing.v, point, camera, size, shapes, places)
                )
        return seen

    def _people_in(self, advice: Advice, image: Image, state: RobotState, body: Body) -> tuple[SeenPerson, ...]:
        """Whom the model points at, where the depth there is known; what they point at and hold by its id."""
        pose = body.head_camera(state)
        found: list[SeenPerson] = []
        for one in advice.people:
            assert image.depth_m is not None
            at_m = point_at(one.u, one.v, image.depth_m, image.focal_px, *pose)
            aim, held = self._named(advice, one.points_at), self._named(advice, one.holds)
            if at_m is not None:
                found.append(
                    SeenPerson(
                        id="person" if not found else f"person-{len(found) + 1}", x_m=at_m[0], y_m=at_m[1],
                        holds=held.id if held is not None else "", points_at=aim.id if aim is not None else "",
                        hand_m=at_m if one.hand else None, hand=one.hand, gesture=one.gesture,
                    )
                )  # fmt: skip
        return tuple(found)
