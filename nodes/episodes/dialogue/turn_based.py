"""`TurnBasedDialogue`: the moderator's decisions in turn-based orders, without any bus: replies in, what to send out.

It owns the turn order, the acts, who is present, what each seat has heard, and the end. Asynchronous talk is in
`asynchronous.py`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from nodes.episodes.dialogue.ending import why_broken, why_ended
from nodes.episodes.dialogue.messages import Pause
from nodes.episodes.dialogue.rules import EpisodeRules, addressed, check, problem_of, seats_to_ask
from nodes.msgs import Interrupt
from nodes.msgs.episode import Act, Asks, Briefing, FailureKind, Fault, Observation, Outcome, Reply, Timing, Turn


@dataclass(slots=True)
class PromptRecord:
    """What one prompt of one seat really held: its own briefing and these turns."""

    seat: int
    ask: int
    turn: int
    held: tuple[int, ...]
    sha: str


@dataclass(slots=True)
class Sent:
    """What is to be published after a step."""

    observations: list[tuple[int, Observation]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    interrupts: list[Interrupt] = field(default_factory=list)
    outcome: Outcome | None = None
    pause: Pause | None = None  # asynchronous: call `waited` after it; an earlier one is void


class TurnBasedDialogue:
    """One episode from the first observation to its outcome."""

    def __init__(self, episode: str, briefings: Sequence[Briefing], rules: EpisodeRules, chance: random.Random) -> None:
        check(rules)
        self.episode = episode
        self.briefings = tuple(briefings)
        self.names = tuple(briefing.name for briefing in briefings)
        self.rules = rules
        self.turns: list[Turn] = []
        self.prompts: list[PromptRecord] = []
        self.outcome: Outcome | None = None
        self.number = 0
        self.refused = 0  # replies that nobody waited for
        self.failures = 0
        self.answer_s = 0.0  # how long a seat has for its reply; 0: for ever. Whoever has a clock enforces it
        self._chance = chance
        self._present = list(range(len(briefings)))
        self._left: list[str] = []
        self._asked = [0] * len(briefings)
        self._told = [0] * len(briefings)  # turns that the seat is known to know of
        self._sent = [0] * len(briefings)  # turns sent with its open ask; known when it replies, sent again if void
        self._has_replied = [False] * len(briefings)
        self._last = -1  # the seat that was asked last
        self._waiting: dict[int, int] = {}  # seat -> its open ask
        self._answers: dict[int, Reply] = {}
        self._was_refused: set[int] = set()

    @property
    def is_waiting_for(self) -> tuple[str, ...]:
        """Who has been asked and has not answered."""
        return tuple(self.names[seat] for seat in sorted(self._waiting))

    def expects(self, reply: Reply) -> bool:
        """Whether this answers an ask that is open."""
        return self.outcome is None and self._waiting.get(reply.seat) == reply.ask

    def begin(self, now_s: float) -> Sent:
        """The first turn's observations."""
        sent = Sent()
        if self.number == 0 and self.outcome is None:
            self._next_turn(sent, now_s)
        return sent

    def reply(self, reply: Reply, now_s: float) -> Sent:
        """Take in an answer; one that nobody waits for is refused."""
        sent = Sent()
        if self.expects(reply):
            self._take(reply, sent, now_s)
        else:
            self.refused += 1
        return sent

    def waited(self, token: int, now_s: float) -> Sent:
        """The pause that a step asked for is over; nothing to do in turn-based orders."""
        return Sent()

    def fail(self, reason: str, now_s: float, sent: Sent | None = None, kind: FailureKind = "outage") -> Sent:
        """End the episode as failed: it can be resumed."""
        sent = sent if sent is not None else Sent()
        if self.outcome is None:
            self._end("failed: " + reason, sent, now_s, failure_kind=kind)
        return sent

    def _was_asked(self, reply: Reply, sent: Sent, now_s: float) -> bool:
        """Keep what the seat was shown; False where it could not be asked, which ends the episode as failed."""
        self._answered(reply.seat)
        self.prompts.append(PromptRecord(reply.seat, reply.ask, self.number, reply.held, reply.prompt_sha))
        if reply.failure:
            reason = f"{self.names[reply.seat]} did not answer: {reply.failure}"
            self.fail(reason, now_s, sent, reply.failure_kind or "outage")
        return not reply.failure

    def _act_of(self, reply: Reply) -> tuple[Act, str]:
        """The act, to whole names, and why it cannot be played; "" where it can."""
        act, present = addressed(reply.act, self.names), [self.names[seat] for seat in self._present]
        return act, problem_of(act, self.names[reply.seat], present, self.names)

    def _take(self, reply: Reply, sent: Sent, now_s: float) -> None:
        """When all who were asked have answered, the turn is played."""
        if not self._was_asked(reply, sent, now_s):
            return
        seat, note, fault = reply.seat, reply.note, reply.fault
        act, problem = self._act_of(reply)
        if problem and seat not in self._was_refused:
            self._was_refused.add(seat)
            self._ask(seat, sent, problem=problem)
            return
        if problem:
            act, note, fault = Act(), f"refused: {problem}", "refused"
        self.failures += fault not in ("", "cut")
        self._answers[seat] = msgspec.structs.replace(cast(Any, reply), act=act, note=note, fault=fault)
        if not self._waiting:
            self._play(sent, now_s)

    def _play(self, sent: Sent, now_s: float) -> None:
        for seat, reply in sorted(self._answers.items()):
            act = reply.act
            if act.kind in ("none", "leave"):
                act = msgspec.structs.replace(cast(Any, act), argument=act.argument.strip())
            self._record(seat, act, now_s, sent, note=reply.note, fault=reply.fault, because=reply.because)
        self._answers.clear()
        self._was_refused.clear()
        present = [self.names[seat] for seat in self._present]
        reason = why_ended(self.rules, self.turns, self.number, present, self._left, self.names)
        if broken := why_broken(self.turns, self.names):
            self.fail(broken, now_s, sent, "broken")
        elif reason:
            self._end(reason, sent, now_s)
        else:
            self._next_turn(sent, now_s)

    def _record(
        self,
        seat: int,
        act: Act,
        at_s: float,
        sent: Sent,
        *,
        lasts_s: float = 0.0,
        note: str = "",
        timing: Timing = "",
        fault: Fault = "",
        because: int = -1,
    ) -> None:
        """An act has happened."""
        turn = Turn(
            index=len(self.turns),
            number=self.number,
            speaker=self.names[seat],
            kind=act.kind,
            argument=act.argument,
            to=() if act.kind == "leave" else act.to,  # that somebody is gone all can see
            at_s=round(at_s, 3),
            lasts_s=round(lasts_s, 3),
            note=note,
            timing=timing,
            fault=fault,
            because=because,
        )
        self.turns.append(turn)
        sent.turns.append(turn)
        if act.kind == "leave":
            self._present.remove(seat)
            self._left.append(self.names[seat])

    def _next_turn(self, sent: Sent, now_s: float) -> None:
        self.number += 1
        seats = seats_to_ask(self.rules, self.number, self._present, len(self.names), self._chance, self._last)
        self._last = seats[-1] if seats else self._last
        if not seats:
            self._end("the script is over", sent, now_s)
        for seat in seats:
            self._ask(seat, sent)

    def again(self, asked: Mapping[int, Observation]) -> list[tuple[int, Observation]]:
        """What all are told by a moderator that comes back: all they may know, and what of `asked` is still open."""
        found = []
        for seat, name in enumerate(self.names):
            self._told[seat], self._has_replied[seat] = 0, False
            heard = tuple(turn for turn in self.turns if turn.is_for(name))
            if seat not in self._waiting:
                found.append((seat, self._observation(seat, "nothing", heard)))
                continue
            self._sent[seat] = len(self.turns)
            old: Any = asked[seat]
            found.append((seat, msgspec.structs.replace(old, heard=heard, briefing=self.briefings[seat])))
        return found

    def telling(self, sent: Sent) -> list[tuple[int, Observation]]:
        """What those perceive at once whom a step asks nothing: for people, who want to see it as it happens."""
        asked = {seat for seat, _ in sent.observations}
        found = []
        for seat, name in enumerate(self.names):
            heard = tuple(turn for turn in sent.turns if turn.is_for(name))
            if seat not in asked and (heard or not self._asked[seat] or sent.outcome is not None):
                found.append((seat, self._observation(seat, "nothing", heard)))
        return found

    def _ask(self, seat: int, sent: Sent, *, problem: str = "") -> None:
        is_last = self.number >= self.rules.max_turns - len(self.names) + 1
        self._send_ask(seat, sent, self._observation(seat, "act", problem=problem, is_last=is_last))

    def _send_ask(self, seat: int, sent: Sent, observation: Observation) -> None:
        self._asked[seat] = self._waiting[seat] = observation.ask
        self._sent[seat] = len(self.turns)
        sent.observations.append((seat, observation))

    def _observation(
        self,
        seat: int,
        asks: Asks,
        heard: tuple[Turn, ...] | None = None,
        *,
        problem: str = "",
        speaking: str = "",
        so_far: str = "",
        silence_s: float = 0.0,
        is_last: bool = False,
        ask: int | None = None,
    ) -> Observation:
        """With all that the seat is not known to know; what an interruption kept it from answering comes again."""
        name = self.names[seat]
        if heard is None:
            heard = tuple(turn for turn in self.turns[self._told[seat] :] if turn.is_for(name))
        return Observation(
            episode=self.episode,
            ask=self._asked[seat] + (asks != "nothing") if ask is None else ask,
            turn=self.number,
            asks=asks,
            recipients=tuple(self.names[other] for other in self._present if other != seat),
            heard=heard,
            briefing=None if self._has_replied[seat] else self.briefings[seat],
            problem=problem,
            speaking=speaking,
            so_far=so_far,
            silence_s=silence_s,
            is_last=is_last,
            answer_s=self.answer_s,
        )

    def _answered(self, seat: int) -> None:
        self._waiting.pop(seat, None)
        self._told[seat] = self._sent[seat]
        self._has_replied[seat] = True

    def _end(self, reason: str, sent: Sent, now_s: float, *, failure_kind: FailureKind = "") -> None:
        self._waiting.clear()
        if not failure_kind and (broken := why_broken(self.turns, self.names, is_over=True)):
            reason, failure_kind = f"failed: {broken}", "broken"
        self.outcome = Outcome(
            episode=self.episode,
            state="failed" if failure_kind else "done",
            reason=reason,
            turns=len(self.turns),
            failures=self.failures,
            failure_kind=failure_kind,
            seconds=round(now_s, 3),
        )
        sent.outcome = self.outcome
