"""`ShadowCompare`: measures how far shadows differ from the holders of their seats."""

from __future__ import annotations

from math import hypot

from nodes.msgs import Action, Comparison, JointCommand, Subtask
from runtime import Lease, Node, Publisher, QoS, Stamped, Subscription, every, on, to_s

FRESH_S = 0.5
"""Commands that are further apart than this, s, belong to different situations and are not compared."""
MOST_SOURCES = 16
"""How many sources are remembered; of words, the one silent for longest is dropped for a new one, not the holder."""


class ShadowCompare(Node):
    """Publishes the distance between each shadow and the holder of its seat; it acts on nothing.

    It compares commands five times a second, and actions and subtasks at each one of a shadow. Joint distances are in m
    or rad, base distances in m/s, and words give 0 where they ask for the same and 1 where they do not.
    """

    command = Subscription(JointCommand, "command", qos=QoS(required=False, depth=8, candidates=True))
    action = Subscription(Action, "action", qos=QoS(required=False, candidates=True))
    subtask = Subscription(Subtask, "subtask", qos=QoS(required=False, candidates=True))
    lease = Subscription(Lease, "lease", qos=QoS(required=False))
    comparison = Publisher(Comparison, "seat/comparison")

    def __init__(self) -> None:
        self.holders: dict[str, str] = {}
        self.commands: dict[str, tuple[int, JointCommand]] = {}
        self.actions: dict[str, Action] = {}
        self.subtasks: dict[str, Subtask] = {}

    @on(lease)
    def leased(self, lease: Lease) -> None:
        """Note who holds the seat."""
        self.holders[lease.seat] = lease.holder

    @on(command)
    def commanded(self, command: Stamped[JointCommand]) -> None:
        """Keep the newest command of each source."""
        about = command.envelope
        if about.source in self.commands or len(self.commands) < MOST_SOURCES:
            self.commands[about.source] = about.published_ns, command.message

    @on(action)
    def acted(self, action: Action) -> None:
        """Compare an action with the holder's."""
        self._compare_words("vlm", self.actions, action, "same_action")

    @on(subtask)
    def planned(self, subtask: Subtask) -> None:
        """Compare a subtask with the holder's."""
        self._compare_words("planner", self.subtasks, subtask, "same_subtask")

    @every(hz=5)
    def tick(self) -> None:
        """Compare the newest commands of the shadows with the holder's."""
        holder = self.holders.get("policy", "")
        now_ns = self.clock.now_ns()
        self.commands = {name: pair for name, pair in self.commands.items() if to_s(now_ns - pair[0]) < FRESH_S}
        own = self.commands.get(holder)
        for shadow, (_, command) in self.commands.items():
            if shadow == holder:
                continue
            if own is None:
                self._tell("policy", holder, shadow, "holder_is_silent", 1.0)
                continue
            joints = zip(own[1].position, command.position, strict=False)
            self._tell("policy", holder, shadow, "joint_m_or_rad", max(abs(one - other) for one, other in joints))
            apart_mps = hypot(own[1].base_v_mps - command.base_v_mps, own[1].base_vy_mps - command.base_vy_mps)
            self._tell("policy", holder, shadow, "base_mps", apart_mps)

    def _compare_words(
        self, seat: str, known: dict[str, Action] | dict[str, Subtask], message: Action | Subtask, measure: str
    ) -> None:
        trigger = self.context.trigger
        holder = self.holders.get(seat, "")
        if trigger is None:
            return
        envelope = trigger.envelope
        known.pop(envelope.source, None)
        known[envelope.source] = message  # type: ignore[assignment]  # each seat has its own type of message
        if len(known) > MOST_SOURCES:
            del known[next(name for name in known if name != holder)]
        own = known.get(holder)
        if envelope.source == holder or own is None:
            return
        distance = 0.0 if _content(own) == _content(message) else 1.0
        self._tell(seat, holder, envelope.source, measure, distance, f"{message.text!r} against {own.text!r}")

    def _tell(self, seat: str, holder: str, shadow: str, measure: str, distance: float, text: str = "") -> None:
        self.comparison.publish(
            Comparison(seat=seat, holder=holder, shadow=shadow, measure=measure, distance=distance, text=text)
        )


def _content(message: Action | Subtask) -> tuple[object, ...]:
    """What a message asks for, without its id and its text."""
    if isinstance(message, Subtask):
        return message.state, message.skill, message.things, message.place, frozenset(message.excluding)
    target = message.target
    return message.skill, None if target is None else (target.label, target.colour)
