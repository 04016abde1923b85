"""`KeptModerator`: a launch file's moderator with a results file. Killed and started again, it goes on from there."""

from __future__ import annotations

from pathlib import Path

from nodes.episodes.agents.agent_spec import agent_of
from nodes.episodes.dialogue.moderator import LiveModerator
from nodes.episodes.dialogue.turn_based import Sent
from nodes.episodes.results.live import LiveLog, LoggedStep
from runtime.msgs.episode import Observation, Outcome, Reply, Scores


class KeptModerator(LiveModerator):
    """Without `log` a `LiveModerator`. Raises UserError where `log` is a file of other episodes, or complete."""

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
    ) -> None:
        super().__init__(task, order, mode, max_turns, answer_s, has_judge, wins)
        self._log_path = log
        self._kept: LiveLog | None = None

    def on_start(self) -> None:
        super().on_start()
        if self._log_path:
            self._kept = LiveLog(Path(self._log_path), self.plan)

    def on_stop(self) -> None:
        if self._kept is not None:
            self._kept.close()

    def begin_talk(self) -> None:
        if self._kept is None or not self._kept.steps:
            super().begin_talk()
            return
        sent = self._taken_again(self._kept.steps)
        if self.conduct.turns[: len(self._kept.turns)] != self._kept.turns:
            reason = f"{self._log_path}: its turns do not follow from its answers; was it begun with another --seed?"
            self.log.error("%s", reason)
            self.finish(ok=False, reason=reason)
            return
        self.log.info("%s: goes on after %d turns", self._log_path, len(self.conduct.turns))
        self._send(sent)

    def _taken_again(self, steps: list[LoggedStep]) -> Sent:
        """Bring the conduct to where the stored steps led; what everybody is to be told then."""
        asked: dict[int, Observation] = {}
        sent = self.conduct.begin(0.0)
        pause = None
        for step in [None, *steps]:
            if step is not None and step.reply is not None:
                sent = self.conduct.reply(step.reply, step.at_s)
            elif step is not None:
                pause = None
                sent = self.conduct.waited(step.token, step.at_s)
            asked.update(sent.observations)
            pause = sent.pause or pause
        self._began_ns = self.clock.now_ns() - round(steps[-1].at_s * 1e9)
        if self.conduct.outcome is None:
            return Sent(self.conduct.again(asked), list(self.conduct.turns), pause=pause)
        return Sent(turns=list(self.conduct.turns), outcome=self.conduct.outcome)

    def happens(self, at_s: float, *, reply: Reply | None = None, token: int = 0) -> None:
        """Commit what moves the episode on; that a seat could not be asked is no answer, and it is asked again."""
        if self._kept is not None and not (reply is not None and reply.failure):
            self._kept.note(LoggedStep(at_s, reply, token))

    def plays(self, seat: int, provenance: str) -> None:
        """Write into the log who really answers, which no launch file tells the moderator."""
        if self._kept is not None:
            self._kept.note_player(seat, agent_of(provenance))

    def _send(self, sent: Sent) -> None:
        if self._kept is not None and sent.turns:
            self._kept.save_turns(sent.turns)
        super()._send(sent)

    def ended(self, outcome: Outcome) -> None:
        if self._kept is not None:
            self._kept.save_played(self.conduct.turns, self.conduct.prompts, outcome)
        super().ended(outcome)

    def judged(self, scores: Scores) -> None:
        if self._kept is not None:
            self._kept.save_scores(scores)
        super().judged(scores)
