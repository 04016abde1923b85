"""`PointingVLM`: a VLM with `ModelEyes`, whose model may also choose what to do; how it is asked is its `request`."""

from __future__ import annotations

from nodes.models.request import ModelRequest
from nodes.msgs import OutOfBudget, Utterance
from nodes.perception.shapes import shape_names
from nodes.vlm.belief import TableBelief
from nodes.vlm.choice.advised import decide_as_advised
from nodes.vlm.eyes.model_eyes import ModelEyes
from nodes.vlm.eyes.model_prompt import Coordinates, words
from nodes.vlm.node import VLM
from nodes.vlm.talk import HoldStill
from runtime import RELIABLE, Fence, Publisher, QoS, Spending, Subscription, every, on


class PointingVLM(VLM):
    """Looks as often as the model answers, twice a second at most; decides at 5 Hz from what is remembered.

    A model that fails three times in a row is taken for blind: the action under way is finished, then the robot holds
    and the planner is told. `coordinates="thousandth"` is for models that point in thousandths of the image. Where the
    model chooses nothing, rules do, unless `rules` is False.
    """

    robot_parameter = "limits"

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
        has_ids: bool = True,
    ) -> None:
        belief = TableBelief(shape_names(), places=tuple(places))
        self.request, self.texts = request, words(prompt)
        self.model = ModelEyes(
            request, belief, coordinates, self.texts, lambda: self.clock.now_ns(), has_ids=has_ids, rules=rules
        )
        super().__init__(
            self.model, belief, HoldStill(), lambda now: decide_as_advised(now, self.model.counsel), speaker=speaker,
            limits=limits,
        )  # fmt: skip
        self.has_told_spent = False

    def of_model(self, model: str) -> None:
        """Whose word it is that this node publishes."""
        self.model.log = self.log
        for port in (self.action, self.description, self.said):
            port.provenance = f"model:{model}"

    def on_stop(self) -> None:
        self.log.info("%s", self.request.close())

    @on(again)
    async def see_again(self, fence: Fence) -> None:
        """Ask at once what the cancelled request had asked."""
        if fence.depth in self.preempted_at:
            await self.see()

    @every(hz=2)
    async def see(self) -> None:
        """Ask the model about the newest image, and again at once where an interrupt voided the answer."""
        if self.request.is_spent:
            self._tell_spent()
        while self.model.has_reason_to_ask(self.image.latest()):
            now = self.now(looks=True)
            said = await self.model.ask(now, self.work.situation(now))
            if said is not None:
                self.say(said)
                return

    def spending(self) -> Spending:
        return self.request.spending()

    def _tell_spent(self) -> None:
        """Leave the seat to its ladder, or where it has none, to what a robot does that cannot see."""
        self.out_of_budget.publish(OutOfBudget(seat="vlm", why=self.request.budget.spent))
        if not self.has_told_spent:
            self.has_told_spent = True
            self.log.error("nothing more is looked at: %s", self.request.budget.spent)
            self.said.publish(Utterance(speaker=self.speaker, text=self.texts.say.spent))
