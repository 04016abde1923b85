"""`LiveModerator`: the moderator of a launch file: names its task, starts by itself, notices a seat that is dead.

With a `log` it is killed and started again, and goes on from there.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from nodes.episodes.dialogue.messages import BeginEpisode
from nodes.episodes.dialogue.moderator import Moderator
from nodes.episodes.dialogue.planning import plan_of_task
from nodes.episodes.results.store import LiveLog
from nodes.msgs.episode import SEATS, Scores, seat_topic
from runtime import Fence, QoS, Subscription, every, on


class LiveModerator(Moderator):
    """Raises UserError where `log` is a file of other episodes, or of one that is over."""

    scores = Subscription(Scores, "episode/scores", qos=QoS(required=False))

    def __init__(
        self,
        task: str,
        order: str = "round-robin",
        mode: str = "AGENTS",
        max_turns: int = 20,
        answer_s: float = 300.0,
        has_judge: bool = True,
        wins: tuple[str, ...] = (),
        log: str = "",
        coach_s: float = 0.0,
    ) -> None:
        plan = plan_of_task(task, order=order, mode=mode, max_turns=max_turns, wins=wins)
        super().__init__(plan, answer_s, awaits_judge=has_judge, tells_all=True, coach_s=coach_s)
        self._path = log
        self._file: LiveLog | None = None
        self._asked_ns = 0
        self._asked: tuple[str, ...] = ()

    def listener_problems(self, heard: Collection[str]) -> list[str]:
        """A seat of the task that no node plays, and a node on a seat that the task does not have."""
        names = self.plan.names
        missing = [
            f"task {self.plan.task} has {len(names)} seats, and nobody plays seat {seat} ({name}); add a node with "
            f'remap = {{ "episode/seat" = "{seat_topic(seat)}" }}'
            for seat, name in enumerate(names)
            if seat_topic(seat) not in heard
        ]
        return missing + [
            f"task {self.plan.task} has {len(names)} seats, 0 to {len(names) - 1}; leave out the node on seat {seat}"
            for seat in range(len(names), SEATS)
            if seat_topic(seat) in heard
        ]

    def on_start(self) -> None:
        super().on_start()
        if self._path:
            self.log_of_steps = self._file = LiveLog(Path(self._path), self.plan)

    def on_stop(self) -> None:
        if self._file is not None:
            self._file.close()

    @every(hz=2)
    def watch(self) -> None:
        """Start when all are there; end the episode as failed where a seat does not answer at all."""
        if self.issuer.epochs:
            self.fence.publish(Fence(epochs=self.issuer.epochs))  # for whoever joined late
        if self.conduct.number == 0:
            self.start(BeginEpisode())
        waiting = self.conduct.is_waiting_for
        if waiting != self._asked:
            self._asked, self._asked_ns = waiting, self.clock.now_ns()
        elif waiting and self.clock.since_s(self._asked_ns) > self.answer_s:
            self._send(self.conduct.fail(f"{waiting[0]} did not answer within {self.answer_s:g} s", self.seconds))

    @on(scores)
    def scored(self, scores: Scores) -> None:
        self.judged(scores)
