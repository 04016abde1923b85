"""`BaseLesson`: what all lessons share: whose an action is, how long it goes on, and how the teacher is pushed off."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import ClassVar

from nodes.msgs import JointCommand

CHANGES_MIND = 0.2
"""Of the actions so many are replaced by another before they are over."""
SHAKES, PUSHED_S = 0.25, 2.0
"""In so many of the teacher's own the robot is pushed off course, for about so long: the way back is seen, too."""
NEAR = (0.03, 0.03, 0.2, 0.1, 0.05, 0.01, 0.1, 0.1, 0.03, 0.0)
"""How far it is pushed, one standard deviation: eight joints and the base's v and w, in rad, m, m/s and rad/s."""
UNMOVED = (0.0,) * len(NEAR)


class BaseLesson:
    """`share` of the actions are the pupil's, with whatever it does; the rest are the teacher's own."""

    rate_hz: ClassVar[float]

    def __init__(self, seed: int, share: float, outcomes: list[tuple[str, str, str]], *, has_pupil: bool) -> None:
        """`outcomes` is where it notes how each action ended: skill, who, and how."""
        self.dice = random.Random(seed)
        self.share, self.has_pupil = share, has_pupil
        self.outcomes = outcomes
        self.ends_s = 0.0  # of an action that goes on
        self.is_pupil = self.is_over = False
        self.push: tuple[float, ...] = UNMOVED

    def choose_who(self) -> None:
        """Whether the next action is the pupil's."""
        self.is_pupil = self.has_pupil and self.dice.random() < self.share

    def begin(self, longest_s: float, *, is_grasping: bool) -> None:
        """How long the action goes on, and how far off the teacher is pushed."""
        self.ends_s = longest_s
        if not is_grasping and self.dice.random() < CHANGES_MIND:
            self.ends_s = self.dice.uniform(0.3, 8.0)
        self.push = UNMOVED
        if not self.is_pupil and self.dice.random() < SHAKES:
            self.push = tuple(self.dice.gauss(0.0, off) for off in NEAR)

    def pushed(self, wanted: Sequence[float]) -> JointCommand:
        """What the teacher sends in place of the ten columns that it wants."""
        if any(self.push) and self.dice.random() < 1 / (self.rate_hz * PUSHED_S):
            self.push = UNMOVED
        sent = [value + off for value, off in zip(wanted, self.push, strict=True)]
        return JointCommand(position=tuple(sent[:8]), base_v_mps=sent[8], base_w_radps=sent[9])

    def over(self, skill: str, outcome: str, elapsed_s: float, more_s: float) -> None:
        """Note how an action ended, once; it goes on for so long at most."""
        if not self.is_over:
            self.is_over = True
            self.outcomes.append((skill, "pupil" if self.is_pupil else "teacher", outcome))
            self.ends_s = min(self.ends_s, elapsed_s + more_s)
