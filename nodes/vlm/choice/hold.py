"""`Hold`: why nothing may be begun now: a stop, or a plan or a yes is waited for. `LookRound`: when a head may turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from runtime import ParameterError, to_ns, to_s

PLAN_WAIT_S = 6.0
"""After a new order, how long to wait for the planner before going on with the old subtask; a slow one needs more."""
STILL_WAITS = "I hold still until somebody tells me how to go on."
YES_WITHIN_S = 20.0
"""For how long a person may think about what the policy asked; then it counts as a failure, and may be asked again."""
YES_TO_POLICY_S = 0.4
"""After a yes: until the policy, which hears it too, has surely done so."""

State = Literal["free", "told", "held", "not asked", "asked", "given"]
"""Free to act; told to stop by an interrupt; held by the guard. The yes of a person, whom the policy asks before an
action: nobody is asked; it is waited for; it was said."""
Event = Literal[
    "stop", "resume", "guard stops", "guard moves",
    "policy asks", "person says yes", "something else is to be done", "time is over",
]  # fmt: skip
CHANGES: Mapping[tuple[State, Event], State] = {
    ("free", "stop"): "told",
    ("held", "stop"): "told",
    ("told", "resume"): "free",
    ("held", "resume"): "free",
    ("free", "guard stops"): "held",
    ("told", "guard stops"): "held",
    ("held", "guard moves"): "free",
    ("not asked", "policy asks"): "asked",
    ("given", "policy asks"): "asked",
    ("asked", "person says yes"): "given",
    ("asked", "something else is to be done"): "not asked",
    ("given", "something else is to be done"): "not asked",
    ("asked", "time is over"): "not asked",
    ("given", "time is over"): "not asked",
}
"""What is not listed changes nothing: a guard that still moves has not heard of the interrupt yet."""
YES_LASTS_S: Mapping[State, float] = {"asked": YES_WITHIN_S, "given": YES_TO_POLICY_S}


class Hold:
    """Three waits. `plan_wait_s` ends that for a new order; that for words which may object has no end of its own."""

    def __init__(self, plan_wait_s: float = PLAN_WAIT_S) -> None:
        if not plan_wait_s > 0.0:
            raise ParameterError(f"vlm: plan_wait_s is {plan_wait_s:g}; expected a number above 0")
        self.plan_wait_s = plan_wait_s
        self.stop_state: State = "free"
        self.is_taken_back = False  # the last stop, as a false alarm
        self.yes_state: State = "not asked"
        self._yes_until_ns = 0
        self._waiting_ns = 0  # for a plan since then; 0: it does not
        self.objected_ns = 0  # somebody may have objected then, and nobody has said yet how it goes on
        self._is_wait_told = False

    @property
    def is_stopped(self) -> bool:
        """Whether the robot may not act."""
        return self.stop_state != "free"

    @property
    def is_waiting(self) -> bool:
        """Whether a plan is waited for."""
        return self._waiting_ns > 0

    def stop_or_go(self, event: Event) -> bool:
        """Whether the robot may act again."""
        was_stopped, self.stop_state = self.is_stopped, CHANGES.get((self.stop_state, event), self.stop_state)
        return was_stopped and not self.is_stopped

    def hear_of_yes(self, event: Event, now_ns: int) -> None:
        """Each event that is listed, and a yes or a question said again, begins a new wait."""
        self.yes_state = CHANGES.get((self.yes_state, event), self.yes_state)
        self._yes_until_ns = now_ns + to_ns(YES_LASTS_S.get(self.yes_state, 0.0))

    def has_no_yes(self, now_ns: int) -> bool:
        """Whether a question was answered by nobody, now that its time is over."""
        if self.yes_state == "not asked" or now_ns <= self._yes_until_ns:
            return False
        was_asked = self.yes_state == "asked"
        self.hear_of_yes("time is over", now_ns)
        return was_asked

    def wait(self, now_ns: int, objected_ns: int = 0) -> None:
        """Wait for a plan: of a new order, or of words that may object to what is done and were said at that time."""
        self._waiting_ns = now_ns
        if objected_ns:
            self.objected_ns, self._is_wait_told = objected_ns, False

    def told_how(self, listened_ns: int | None = None) -> None:
        """Somebody has said how it goes on: a person, or a plan of who listened until then: no younger objection."""
        if listened_ns is None or listened_ns >= self.objected_ns:
            self._waiting_ns = self.objected_ns = 0

    def lose_patience(self, now_ns: int) -> str:
        """Go on where nobody may have objected; else what to say, once."""
        if not self._waiting_ns or to_s(now_ns - self._waiting_ns) <= self.plan_wait_s:
            return ""
        if not self.objected_ns:
            self._waiting_ns = 0
            return ""
        said, self._is_wait_told = self._is_wait_told, True
        return "" if said else STILL_WAITS


LooksRound = Literal["armed", "asked", "never"]


class LookRound:
    """When the head may turn before anything is known: never before the robot is armed; `mode` "asked": nor before a
    person has spoken to it since.
    """

    def __init__(self, mode: LooksRound) -> None:
        if mode not in get_args(LooksRound):
            raise ParameterError(f"vlm: looks_round is {mode!r}; known: {', '.join(get_args(LooksRound))}")
        self.mode: LooksRound = mode
        self.is_armed = self.is_spoken_to = False

    @property
    def may_turn(self) -> bool:
        """Whether it may now."""
        return self.is_armed and (self.mode == "armed" or (self.mode == "asked" and self.is_spoken_to))
