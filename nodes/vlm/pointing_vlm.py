"""`PointingVLM`: eyes from a vision-language model that names and points at what it sees.

How the model is asked is a subclass's affair. It chooses what to take next; depth and the camera's pose turn its pixels
into places. Memory, conversation and the choice of skills are `LocalVLM`'s: a model that obeys a sign in the picture
can name a wrong thing, and nothing more.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from nodes.models.answers import ModelError
from nodes.models.request import ModelRequest
from nodes.policy.sight import state_at
from nodes.stretch.body import head_pose, own_parts
from nodes.vlm.local import LocalVLM
from nodes.vlm.memory import update, with_ids
from nodes.vlm.next_action import Decision, Situation
from nodes.vlm.pointing import place_thing, point_at
from nodes.vlm.question_and_answer import (
    COORDINATES,
    Coordinates,
    Pointed,
    answer_schema,
    parse,
    question_text,
    system_prompt,
    words,
)
from runtime import RELIABLE, Fence, ParameterError, Publisher, QoS, Spending, Subscription, every, on
from runtime.msgs import Image, OutOfBudget, RobotState, SeenObject, Utterance

SAID_KEPT = 5
FAILURES_TO_BLIND = 3


class PointingVLM(LocalVLM):
    """Looks as often as the model answers, twice a second at most; decides at 5 Hz from what is remembered.

    A model that fails three times in a row is taken for blind: the action under way is finished, then the robot holds
    and the planner is told. `coordinates="thousandth"` is for models that point in thousandths of the image.
    """

    again = Subscription(Fence, "fence", qos=QoS(required=False))
    out_of_budget = Publisher(OutOfBudget, "seat/out_of_budget", qos=RELIABLE)

    def __init__(self, request: ModelRequest, coordinates: Coordinates, speaker: str) -> None:
        super().__init__(speaker)
        if coordinates not in COORDINATES:
            raise ParameterError(f"vlm: coordinates is {coordinates!r}; known: {', '.join(COORDINATES)}")
        self.request = request
        self.coordinates: Coordinates = coordinates
        self.heard_lately: deque[str] = deque(maxlen=SAID_KEPT)
        self.has_told_spent = False
        self.chosen = ""  # colour of what the model would take next
        self.asked_image_ns = 0

    def _name_model(self, model: str) -> None:
        """Whose word it is that this node publishes."""
        for port in (self.action, self.description, self.said):
            port.provenance = f"model:{model}"

    def on_stop(self) -> None:
        self.log.info("%s", self.request.close())

    @on(LocalVLM.heard)
    def listen(self, utterance: Utterance) -> None:
        self.heard_lately.append(utterance.text)
        super().listen(utterance)

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
            self.said.publish(Utterance(speaker=self.speaker, text=words().say.spent))

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
        try:
            text = await self.request.ask(
                system=system_prompt(self.coordinates),
                text=question_text(self.task, tuple(self.heard_lately), width_px, height_px),
                schema=answer_schema(),
                image=image,
            )
            if text is None:
                self.log.info("request cancelled by an interrupt")
                return False
            pointed, target = parse(text, self.coordinates, width_px, height_px)
        except (ModelError, ValueError) as problem:
            self.request.failed(problem)
            self.log.warning("cannot see (%d in a row): %s", self.request.failures, problem)
            return True
        self.request.succeeded()
        self.asked_image_ns = image.captured_ns
        self.seen = stamped
        self.chosen = pointed[target].colour if target >= 0 else ""
        self.unplaced = () if image.depth_m is not None else tuple(f"{one.colour} {one.label}" for one in pointed)
        if state is not None and image.depth_m is not None:
            self._remember(image, state, pointed)
        return True

    def _remember(self, image: Image, state: RobotState, pointed: tuple[Pointed, ...]) -> None:
        from nodes.perception.objects import find_objects, place_is_empty

        depth = image.depth_m
        assert depth is not None
        rotation, position = head_pose(state)
        camera = (float(position[0]), float(position[1]), float(position[2]))
        shapes = find_objects(
            image.rgb, depth, image.focal_px, rotation, position, own=own_parts(state), table_z_m=self.table_z_m
        )
        seen: list[SeenObject] = []
        for thing in pointed:
            point = point_at(thing.u, thing.v, depth, image.focal_px, rotation, position)
            if point is not None:
                size = words().sizes_m[thing.label]
                seen.append(
                    place_thing(thing.label, thing.colour, thing.u, thing.v, point, camera, size, shapes, self.places)
                )

        def is_empty(thing: SeenObject) -> bool:
            place = (thing.x_m, thing.y_m, thing.z_m)
            return not thing.is_place and place_is_empty(depth, image.focal_px, rotation, position, place)

        self.known, self.numbered = with_ids(update(self.known, seen, is_empty), self.numbered)
        self.images_since_gaze += 1

    def _look(self) -> None:
        """Looking is the model's work, in `see`."""

    def _situation(self) -> Situation:
        """The model's choice counts where nobody said what they prefer, and not while something else is picked."""
        now = super()._situation()
        is_picking = now.doing is not None and now.doing.skill == "pick" and now.outcome == "running"
        if now.preferred or is_picking:
            return now
        return replace(now, preferred=self.chosen)

    def _act(self) -> Decision:
        if self.is_blind and (self.doing is None or self.outcome != "running"):
            return Decision("keep", "failed", "unable to see: the vision model does not answer")
        return super()._act()
