"""`PointingVLM`: eyes from a vision-language model that names and points at what it sees.

How the model is asked is a subclass's affair. It may choose a declared skill and what it is about, say that the subtask
is done, speak, and ask; depth and the camera's pose turn its pixels into places. Where it chooses nothing, `LocalVLM`'s
rules do, unless `rules` is False. What a person wants left alone is left alone, whatever a model chooses.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

from nodes.models.answers import ModelError
from nodes.models.request import ModelRequest
from nodes.msgs import Argument, Image, OutOfBudget, RobotState, SeenObject, SeenPerson, Subtask, Utterance
from nodes.planner.orders import ANSWER_WITHIN_S
from nodes.policy.sight import state_at
from nodes.vlm.local import LocalVLM
from nodes.vlm.model_prompt import (
    COORDINATES,
    Advice,
    Coordinates,
    Pointed,
    answer_schema,
    facts_of,
    parse,
    question_text,
    system_prompt,
    words,
)
from nodes.vlm.next_action import MOST_TRIES, Decision, Situation, await_hand, held_up, is_excluded, measured, spare
from nodes.vlm.pointing import place_thing, point_at
from nodes.vlm.talk import HoldStill
from runtime import RELIABLE, Fence, ParameterError, Publisher, QoS, Spending, Subscription, every, on

SAID_KEPT = 5
IN_HAND_M = 0.15
"""What is pointed at so near to a hand that has grasped something is that, and stands nowhere."""
FAILURES_TO_BLIND = 3
ASKED_AGAIN = 2
"""How often a model is told why its answer cannot be used; then that is said aloud."""


class PointingVLM(LocalVLM):
    """Looks as often as the model answers, twice a second at most; decides at 5 Hz from what is remembered.

    A model that fails three times in a row is taken for blind: the action under way is finished, then the robot holds
    and the planner is told. `coordinates="thousandth"` is for models that point in thousandths of the image.
    """

    has_ids = True  # an answer may name what is remembered by its id

    again = Subscription(Fence, "fence", qos=QoS(required=False))
    out_of_budget = Publisher(OutOfBudget, "seat/out_of_budget", qos=RELIABLE)

    def __init__(
        self,
        request: ModelRequest,
        coordinates: Coordinates,
        speaker: str,
        limits: str = "",
        *,
        prompt: str = "",
        places: tuple[str, ...] = (),
        rules: bool = True,
    ) -> None:
        super().__init__(speaker, limits)
        self.rules = rules
        self.texts = words(prompt)
        self.places = tuple(places) or self.places
        if coordinates not in COORDINATES:
            raise ParameterError(f"vlm: coordinates is {coordinates!r}; known: {', '.join(COORDINATES)}")
        self.request = request
        self.coordinates: Coordinates = coordinates
        self.heard_lately: deque[str] = deque(maxlen=SAID_KEPT)
        self.has_told_spent = False
        self.chosen = ""  # colour of what the model would take next
        self.asked_image_ns = 0
        self.advice = Advice()
        self.advised: tuple[SeenObject | None, SeenObject | None] = (None, None)  # target and place
        self.asked_about_ns = 0  # when the newest answer was asked for: it knows nothing of what came after
        self.advised_for = ""  # the subtask that the model was asked about
        self.last_said = ""
        self.question_ns = 0  # the model's question waits for an answer since; 0: none does

    def make_talk(self) -> HoldStill:
        return HoldStill()

    def _name_model(self, model: str) -> None:
        """Whose word it is that this node publishes."""
        for port in (self.action, self.description, self.said):
            port.provenance = f"model:{model}"

    def on_stop(self) -> None:
        self.log.info("%s", self.request.close())

    @on(LocalVLM.heard)
    def listen(self, utterance: Utterance) -> None:
        self.heard_lately.append(utterance.text)
        is_answer, self.question_ns = self.question_ns > 0, 0
        super().listen(utterance)
        if is_answer:
            self.waiting_since_ns = self.objected_ns = 0  # the model hears it too, and has asked for it

    @on(LocalVLM.fence)
    def fenced(self, fence: Fence) -> None:
        """The answer under way is about what was before: the runtime closed its request, and it is asked again."""
        if fence.depth in ("amend", "stop"):
            self.was_asking = self.request.is_asking
            self.request.void()
        super().fenced(fence)

    @on(again)
    async def see_again(self, fence: Fence) -> None:
        """Ask at once what the cancelled request had asked."""
        if fence.depth in ("amend", "stop"):
            await self.see()

    @every(hz=2)
    async def see(self) -> None:
        """Ask the model about the newest image, and again at once where an interrupt voided the answer."""
        if self.request.is_spent:
            self._tell_spent()
        while self._has_reason_to_ask() and not await self._ask():
            pass

    def spending(self) -> Spending:
        return self.request.spending()

    def _tell_spent(self) -> None:
        """Leave the seat to its ladder, or where it has none, to what a robot does that cannot see."""
        self.out_of_budget.publish(OutOfBudget(seat="vlm", why=self.request.budget.spent))
        if not self.has_told_spent:
            self.has_told_spent = True
            self.log.error("nothing more is looked at: %s", self.request.budget.spent)
            self.said.publish(Utterance(speaker=self.speaker, text=self.texts.say.spent))

    @property
    def is_blind(self) -> bool:
        """Whether the model is given up for now; it is still asked, more and more rarely."""
        return self.request.failures >= FAILURES_TO_BLIND or self.request.is_spent

    def _has_reason_to_ask(self) -> bool:
        image = self.image.latest()
        is_new = image is not None and image.captured_ns != self.asked_image_ns
        return is_new and not self.request.is_asking and not self.request.is_paused and not self.request.is_spent

    async def _ask(self) -> bool:
        """One look; False where an interrupt voided it. No failure is raised."""
        stamped = self.image.stamped()
        state = state_at(self.states, stamped.message.captured_ns) if stamped is not None else None
        if stamped is None or (state is None and stamped.message.depth_m is not None):
            return True
        image = stamped.message
        height_px, width_px = image.rgb.shape[:2]
        catalogue = self.skills.latest()
        skills = catalogue.skills if catalogue is not None else ()
        doing = "" if self.doing is None else f"{self.doing.text}: {self.outcome} {self.why}".strip()
        now, task, asked_ns = self._situation(), self.task, self.clock.now_ns()
        known = {one.id for one in now.objects}
        question = question_text(
            task, tuple(self.heard_lately), width_px, height_px, skills, doing, facts_of(now, has_ids=self.has_ids)
        )
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
                return True
            if text is None:
                self.log.info("request cancelled by an interrupt")
                return False
            try:
                advice = parse(text, self.coordinates, width_px, height_px, skills, known)
                break
            except ModelError as problem:
                why = str(problem)
                self._fail(problem)
        if advice is None:
            self._say(self.texts.say.unusable)
            return True
        self.request.succeeded()
        self.asked_image_ns = image.captured_ns
        self.seen = stamped
        pointed = advice.things
        self.chosen = pointed[advice.target].colour if advice.target >= 0 else ""
        self.unplaced = () if image.depth_m is not None else tuple(f"{one.colour} {one.label}" for one in pointed)
        if state is not None and image.depth_m is not None:
            self._remember(image, state, tuple(one for one in pointed if not one.id))
            self.seen_people = self._people_in(advice, image, state)
        self.advised_for = task.id if task is not None else ""
        self._take_advice(advice, asked_ns)
        return True

    def _fail(self, problem: Exception) -> None:
        self.request.failed(problem)
        self.seen_people = ()  # what they did is over by the time that the model sees again
        self.log.warning("cannot see (%d in a row): %s", self.request.failures, problem)

    def _take_advice(self, advice: Advice, asked_ns: int) -> None:
        """What the model chose counts from now until the next answer; what it says is said once."""
        self.advice, self.asked_about_ns = advice, asked_ns
        self.advised = (self._named(advice, advice.target), self._named(advice, advice.place))
        is_claim = advice.done and not self.did  # of a deed that nobody has measured: the planner says how it is
        if advice.say and advice.say != self.last_said and not is_claim:
            self.question_ns = self.clock.now_ns() if advice.asks else 0
            self._say(advice.say)
        self.last_said = advice.say

    def _named(self, advice: Advice, number: int) -> SeenObject | None:
        """What is remembered of what the model points at: of its id, or of its name and nearest in the image."""
        if number < 0:
            return None
        meant = advice.things[number]
        if meant.id:
            return next((one for one in self._things() if one.id == meant.id), None)
        same = [one for one in self._things() if (one.label, one.colour) == (meant.label, meant.colour)]
        return min(same, key=lambda one: (one.u_px - meant.u) ** 2 + (one.v_px - meant.v) ** 2, default=None)

    def _remember(self, image: Image, state: RobotState, pointed: tuple[Pointed, ...]) -> None:
        depth = image.depth_m
        assert depth is not None
        rotation, position = self.body.head_camera(state)
        camera = (float(position[0]), float(position[1]), float(position[2]))
        hand = self.body.hand_point(state)
        shapes = self._shapes_in(image, state)
        seen: list[SeenObject] = []
        for thing in pointed:
            point = point_at(thing.u, thing.v, depth, image.focal_px, rotation, position)
            is_held = state.is_grasping and point is not None and math.dist(point, hand) < IN_HAND_M
            if point is not None and not is_held:
                places = (*self.places, thing.label) if thing.is_place else self.places
                size = self.texts.size_m(thing.label, is_place=thing.label in places)
                seen.append(
                    place_thing(thing.label, thing.colour, thing.u, thing.v, point, camera, size, shapes, places)
                )
        self._remember_things(seen, image, state)

    def _people_in(self, advice: Advice, image: Image, state: RobotState) -> tuple[SeenPerson, ...]:
        """Whom the model points at, where the depth there is known; what they point at and hold by its id."""
        pose = self.body.head_camera(state)
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

    def _look(self) -> None:
        """Looking for things is the model's work, in `see`; a hand is what the robot's own eyes see of it."""
        posed = self._posed_image()
        if posed is not None and posed[0].message.depth_m is not None:
            self.looked_ns = posed[0].message.captured_ns
            self._look_for_person(posed[0].message, posed[1])

    def _situation(self) -> Situation:
        """The model's choice counts where nobody said what they prefer, and not while something else is picked."""
        now = super()._situation()
        is_picking = now.doing is not None and now.doing.skill == "pick" and now.outcome == "running"
        if now.preferred or is_picking:
            return now
        return replace(now, preferred=self.chosen)

    def _decide(self, now: Situation) -> Decision:
        if self.is_blind and (self.doing is None or self.outcome != "running"):
            return Decision("keep", "failed", "unable to see: the vision model does not answer")
        task = now.subtask
        if (held := held_up(now)) is not None or task is None:
            return held or super()._decide(now)
        if self.question_ns:
            if self.clock.since_s(self.question_ns) < ANSWER_WITHIN_S:
                return Decision("keep", "held", "waiting for an answer")
            self.question_ns = 0
            self._say(self.texts.say.unanswered)
        is_running = self.doing is not None and self.outcome == "running"
        is_advised = self.advised_for == task.id  # and not about the subtask before
        if is_advised and self.advice.done and not is_running:
            return self._measured(now, task)
        if is_advised and self.advice.skill:
            return self._as_advised(now, is_running=is_running)
        if self.rules and task.skill:
            return super()._decide(now)
        text = self.doing.text if self.doing is not None and is_running else "choosing what to do"
        return spare(now) or Decision("keep", "working", text)

    def _measured(self, now: Situation, task: Subtask) -> Decision:
        """What became of a subtask that the model calls done: by what the robot did and sees, never by its word."""
        if task.place and task.skill in ("", "place"):
            return measured(now)
        if not self.did and self.failures:
            return Decision("keep", "failed", self.why or "nothing that was tried succeeded")
        did = f"the robot did: {', '.join(self.did)}" if self.did else "the robot itself did nothing for it"
        return Decision("keep", "finished", f"done, as the vision model sees it; {did}")

    def _as_advised(self, now: Situation, *, is_running: bool) -> Decision:
        """The skill that the model chose, once for each answer; nothing that is to be left alone."""
        target, place = self.advised
        skill, doing = self.advice.skill, self.doing
        if (spared := spare(now)) is not None:
            return spared
        if is_running and doing is not None:
            return Decision("keep", "working", doing.text)
        if self.outcome_ns >= self.asked_about_ns:
            return Decision("keep", "working", "choosing what to do next")
        if target is not None and now.failures.get(target.name, 0) >= MOST_TRIES:
            return measured(now)
        if target is not None and is_excluded(now, target):
            return Decision("keep", "working", f"leaving the {target.name} alone")
        spec = now.skills.get(skill)
        arguments: list[Argument] = []
        for argument in spec.arguments if spec is not None else ():
            thing = {"place": place, "thing": target or place, "person": now.hand}.get(argument.type)
            if argument.type == "person" and thing is None and now.holding is not None:
                return await_hand(now.holding)
            if thing is not None:
                arguments.append(Argument(name=argument.name, thing=thing))
            elif argument.is_needed and argument.type in ("thing", "place"):
                return Decision("keep", "working", "looking again: nobody knows where that is")
        thing = target or now.holding
        what = f" the {thing.name}" if thing is not None else ""
        text = f"{skill.replace('_', ' ')}{what}{f' at the {place.name}' if place is not None else ''}"
        return Decision(skill, "working", text, target or place, arguments=tuple(arguments))
