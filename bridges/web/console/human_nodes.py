"""The person at the console as a candidate for each seat: what they decide leaves under the seat's name.

One node per seat, because the runtime knows by node who speaks for a seat. While the person does not hold it, what they
publish is shadow like anybody's.
"""

from __future__ import annotations

from nodes.msgs import Action, Feedback, JointCommand, SceneDescription, Subtask
from nodes.seats.seat_node import Seated
from runtime import RELIABLE, Node, Publisher, QoS, Subscription, on

PERSON = "person:console"


class HumanPlanner(Node):
    """The person on the planner's seat."""

    seat = "planner"
    provenance = PERSON

    decided = Subscription(Subtask, "console/subtask")
    subtask = Publisher(Subtask, "subtask", qos=RELIABLE)

    @on(decided)
    def pass_on(self, subtask: Subtask) -> None:
        self.subtask.publish(subtask)


class HumanVLM(Seated):
    """The person on the VLM's seat: they choose the actions, and what the model sees is told on in their name."""

    seat = "vlm"
    provenance = PERSON

    decided = Subscription(Action, "console/action")
    seen = Subscription(SceneDescription, "description", qos=QoS(required=False, candidates=True))
    feedback = Subscription(Feedback, "feedback", qos=QoS(required=False))
    action = Publisher(Action, "action", qos=RELIABLE)
    description = Publisher(SceneDescription, "description")

    def __init__(self) -> None:
        self.doing: Action | None = None
        self.how = ""

    @on(decided)
    def pass_on(self, action: Action) -> None:
        self.doing, self.how = action, "running"
        self.action.publish(action)

    @on(feedback)
    def learn(self, feedback: Feedback) -> None:
        """How the person's action goes."""
        if self.doing is not None and feedback.action_id == self.doing.id:
            self.how = feedback.status

    @on(seen)
    def tell_on(self, scene: SceneDescription) -> None:
        """Perception stays the model's; what is being done is the person's."""
        trigger = self.context.trigger
        if not self.is_seated or trigger is None or trigger.envelope.source == self.name:
            return
        text = "a person chooses what to do" if self.doing is None else f"a person: {self.doing.text} ({self.how})"
        self.description.publish(
            SceneDescription(text=text, subtask_id=scene.subtask_id, progress="working", objects=scene.objects)
        )


class HumanPolicy(Node):
    """The person on the policy's seat: each command goes on as it comes, and silence stays silence."""

    seat = "policy"
    provenance = PERSON

    decided = Subscription(JointCommand, "console/command", qos=QoS(lifespan_s=0.15))
    command = Publisher(JointCommand, "command")

    @on(decided)
    def pass_on(self, command: JointCommand) -> None:
        self.command.publish(command)
