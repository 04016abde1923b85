"""`Deeds`: the action under way, and what became of those before it for the same subtask."""

from __future__ import annotations

from typing import Literal

from nodes.msgs import Action, Feedback, FeedbackCode, SeenObject, aimed_at
from nodes.vlm.choice.giving_up import HAND_WITHIN_S, MOST_TRIES
from nodes.vlm.choice.next_action import LOOK_ROUND
from nodes.vlm.choice.situation import Decision, Outcome
from nodes.vlm.choice.things import HAND
from runtime import to_s

SILENCE_S = 4.0
"""An action without any feedback for so long never arrived, or its policy was restarted: it is sent again."""

Ending = Literal["", "looked", "succeeded", "asks", "failed"]
"""What a feedback means for the action under way: it goes on, or how it has ended."""


class Deeds:
    """What the robot does, did and tried."""

    def __init__(self) -> None:
        self.doing: Action | None = None
        self.done_for = ""  # the subtask that it was chosen for
        self.outcome: Outcome = "running"
        self.why = ""  # it failed
        self.code: FeedbackCode = ""  # and what programs ask of that
        self.ended_ns = self.succeeded_ns = 0
        self.is_answered = False
        self._step = ""  # as what its failure counts
        self.did: tuple[str, ...] = ()  # what succeeded for the subtask
        self.failures: dict[str, int] = {}  # by the name of the thing
        self.reasons: dict[str, str] = {}  # of the last one
        self.steps: dict[str, int] = {}  # failures by skill and thing, in this subtask
        self.looks = self.rounds = 0  # since the scene was changed; that it began to look round
        self.is_let_run = False  # what was dropped: the policy is at it until it hears of another action
        self._count = 0
        self._asked_ns = 0
        self._hand_since_ns = 0  # one is waited for

    @property
    def is_running(self) -> bool:
        """Whether an action is under way."""
        return self.doing is not None and self.outcome == "running"

    @property
    def is_unheard(self) -> bool:
        """Whether an action is on its way that nobody has answered yet."""
        return self.doing is not None and not self.is_answered

    def new_work(self) -> None:
        """Another subtask: what was tried before counts no more."""
        self.failures.clear()
        self.looks, self.did = 0, ()

    def new_id(self) -> None:
        """The same work under another name."""
        self.steps.clear()

    def begin(self, decision: Decision, task_id: str, name: str, now_ns: int) -> Action:
        """The action that was decided on."""
        self._count += 1
        self.doing = Action(
            id=f"{name}-{self._count}",
            skill=decision.skill,
            arguments=decision.arguments or aimed_at(decision.target),
            text=decision.text,
        )
        self.done_for, self.is_let_run = task_id, False
        self.rounds += decision.skill == LOOK_ROUND
        self.outcome, self._step = "running", decision.step
        self.ask(now_ns)
        return self.doing

    def ask(self, now_ns: int) -> None:
        """The action is sent, or somebody else is asked for it."""
        self.is_answered, self._asked_ns = False, now_ns

    def drop(self, *, is_let_run: bool = False) -> None:
        """Decide afresh; nothing is under way any more, unless the policy is let run until then."""
        self.is_let_run = is_let_run and (self.is_let_run or self.is_running)
        self.doing = None

    def drop_unanswered(self, now_ns: int) -> None:
        """An action that nobody has answered for long never arrived."""
        if self.is_unheard and to_s(now_ns - self._asked_ns) > SILENCE_S:
            self.drop()

    def learn(self, feedback: Feedback, task_id: str, now_ns: int) -> Ending:
        """How the action under way fares."""
        action = self.doing
        if action is None or feedback.action_id != action.id:
            return ""
        self.is_answered = True
        if feedback.status == "running":
            return ""
        self.outcome, self.why, self.code, self.ended_ns = feedback.status, feedback.why, feedback.code, now_ns
        if feedback.status == "failure" and self.done_for == task_id:
            self.steps[self._step] = self.steps.get(self._step, 0) + 1
        if action.skill in ("look", LOOK_ROUND):
            self.looks += action.skill == "look"
            return "looked"
        if feedback.status == "success":
            if action.skill != "hold" and self.done_for == task_id != "":
                self.did += (action.text or action.skill,)
            return "succeeded"
        return "asks" if feedback.code == "consent" else "failed"

    def succeeded(self, action: Action, held: SeenObject | None, now_ns: int) -> None:
        """It did, while that was held: the scene is another one now."""
        self.succeeded_ns = now_ns
        if action.skill in ("place", "put_back") and held is not None:
            for one in (held, *((action.target,) if action.target is not None else ())):
                self.failures.pop(one.name, None)
            self.looks = 0

    def failed(self, action: Action, why: str) -> None:
        """It did, for this reason."""
        self.looks = 0
        if action.target is not None and action.skill in ("pick", "place", "hand_over"):
            name = action.target.name
            self.failures[name] = self.failures.get(name, 0) + 1
            self.reasons[name] = why

    def await_hand(self, now_ns: int, *, is_awaited: bool) -> None:
        """Give up after a while where nobody holds out a hand."""
        if not is_awaited:
            self._hand_since_ns = 0
        elif not self._hand_since_ns:
            self._hand_since_ns = now_ns
        elif to_s(now_ns - self._hand_since_ns) > HAND_WITHIN_S:
            self.failures[HAND] = MOST_TRIES
