"""`Moderator`: holds the turn order on the bus; with a log it is killed and started again and goes on.

The decisions are `turn_based.py`'s and `asynchronous.py`'s; this is their shell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, Protocol, cast

import msgspec

from nodes.episodes.dialogue.asynchronous import AsynchronousDialogue
from nodes.episodes.dialogue.messages import BeginEpisode, GuidanceRequest, Pause
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.turn_based import PromptRecord, Sent, TurnBasedDialogue
from nodes.interrupts.fence_issuer import FenceIssuer
from nodes.msgs import Interrupt
from nodes.msgs.episode import Guidance, Observation, Outcome, Reply, Scores, Turn
from runtime import ALONE, FENCE_TOPIC, RELIABLE, URGENT, Fence, Node, Publisher, QoS, Subscription, on


class LoggedStep(msgspec.Struct, frozen=True):
    """What moved the episode on: a reply, or the pause of that token that was over."""

    at_s: float
    reply: Reply | None = None
    token: int = 0


class StepLog(Protocol):
    """Keeps an episode as it happens: each step is committed before anything follows from it."""

    steps: list[LoggedStep]
    turns: list[Turn]

    def note(self, step: LoggedStep) -> None:
        """Commit a step."""

    def note_player(self, seat: int, provenance: str) -> None:
        """Keep who really answers for a seat, as the envelope says."""

    def save_turns(self, turns: Sequence[Turn]) -> None:
        """Keep turns as they happen."""

    def save_played(self, turns: Sequence[Turn], prompts: Sequence[PromptRecord], outcome: Outcome) -> None:
        """Keep the whole episode."""

    def save_scores(self, scores: Scores) -> None:
        """Keep what the judge says."""


class Moderator(Node):
    """Plays one episode: asks seats, plays their acts, ends it for an exact reason."""

    begin = Subscription(BeginEpisode, "episode/begin", qos=QoS(required=False))
    reply = Subscription(Reply, "episode/reply")
    pause = Subscription(Pause, "episode/pause")
    guidance = Subscription(Guidance, "episode/guidance", qos=QoS(required=False))
    guidance_due = Subscription(GuidanceRequest, "episode/guidance_request")
    guidance_request = Publisher(GuidanceRequest, "episode/guidance_request", qos=RELIABLE)
    pause_out = Publisher(Pause, "episode/pause", qos=RELIABLE)
    turn = Publisher(Turn, "episode/turn", qos=RELIABLE)
    interrupt = Publisher(Interrupt, "interrupt", qos=URGENT)
    fence = Publisher(Fence, FENCE_TOPIC, qos=ALONE)
    outcome = Publisher(Outcome, "episode/outcome", qos=RELIABLE)
    seat0 = Publisher(Observation, "episode/seat0", qos=RELIABLE)
    seat1 = Publisher(Observation, "episode/seat1", qos=RELIABLE)
    seat2 = Publisher(Observation, "episode/seat2", qos=RELIABLE)
    seat3 = Publisher(Observation, "episode/seat3", qos=RELIABLE)
    seat4 = Publisher(Observation, "episode/seat4", qos=RELIABLE)
    seat5 = Publisher(Observation, "episode/seat5", qos=RELIABLE)
    seat6 = Publisher(Observation, "episode/seat6", qos=RELIABLE)
    seat7 = Publisher(Observation, "episode/seat7", qos=RELIABLE)
    seat8 = Publisher(Observation, "episode/seat8", qos=RELIABLE)
    seat9 = Publisher(Observation, "episode/seat9", qos=RELIABLE)
    seat10 = Publisher(Observation, "episode/seat10", qos=RELIABLE)
    seat11 = Publisher(Observation, "episode/seat11", qos=RELIABLE)
    seat12 = Publisher(Observation, "episode/seat12", qos=RELIABLE)
    seat13 = Publisher(Observation, "episode/seat13", qos=RELIABLE)
    seat14 = Publisher(Observation, "episode/seat14", qos=RELIABLE)
    seat15 = Publisher(Observation, "episode/seat15", qos=RELIABLE)

    def __init__(
        self,
        plan: EpisodePlan,
        answer_s: float = 0.0,
        *,
        awaits_judge: bool = False,
        tells_all: bool = False,
        coach_s: float = 0.0,
    ) -> None:
        """`answer_s` is how long a seat has for its answer; 0: for ever. With a judge its scores end the run; with
        `tells_all` each seat hears at once what it is not asked about, as people want to. `coach_s` is how long a coach
        has for its guidance; 0: there is none."""
        self.plan = plan
        self.answer_s = answer_s
        self.log_of_steps: StepLog | None = None
        self._awaits_judge = awaits_judge
        self._tells_all = tells_all
        self._coach_s = coach_s
        self._held: dict[int, Observation] = {}  # seat -> what it is asked once the coach has spoken
        self._guided = asyncio.Event()
        self._newest: dict[int, Guidance] = {}  # in asynchronous talk nobody waits for the coach
        self._ended: Outcome | None = None
        self.conduct: TurnBasedDialogue = TurnBasedDialogue(plan.id, plan.briefings, plan.rules, Random(0))
        self._began_ns = 0
        self._pause_token = 0
        self._voided: asyncio.Event | None = None
        self.issuer = FenceIssuer()

    def on_start(self) -> None:
        kind = AsynchronousDialogue if self.plan.rules.order == "asynchronous" else TurnBasedDialogue
        self.conduct = kind(self.plan.id, self.plan.briefings, self.plan.rules, self.random)
        self.conduct.answer_s = self.answer_s
        self._seats = [getattr(self, f"seat{seat}") for seat in range(len(self.plan.briefings))]

    @property
    def seconds(self) -> float:
        """Since the episode began."""
        return self.clock.since_s(self._began_ns)

    @on(begin)
    def start(self, begin: BeginEpisode) -> None:
        """The first observations go out; where the log holds steps already, those that follow from them."""
        if self.conduct.number != 0:
            return
        log = self.log_of_steps
        if log is None or not log.steps:
            self._began_ns = self.clock.now_ns()
            self._send(self.conduct.begin(0.0))
            return
        sent = self._taken_again(log.steps)
        if self.conduct.turns[: len(log.turns)] != log.turns:
            reason = "the log's turns do not follow from its answers; was it begun with another --seed?"
            self.log.error("%s", reason)
            self.finish(ok=False, reason=reason)
            return
        self.log.info("goes on after %d turns", len(self.conduct.turns))
        self._send(sent)

    def _taken_again(self, steps: Sequence[LoggedStep]) -> Sent:
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

    @on(reply)
    def answered(self, reply: Reply) -> None:
        at_s = self.seconds
        if self.log_of_steps is not None and self.conduct.expects(reply):
            if self.context.trigger is not None:
                self.log_of_steps.note_player(reply.seat, self.context.trigger.envelope.provenance)
            if not reply.failure:  # that a seat could not be asked is no answer, and it is asked again
                self.log_of_steps.note(LoggedStep(at_s, reply))
        self._send(self.conduct.reply(reply, at_s))

    @on(pause)
    async def wait(self, pause: Pause) -> None:
        """Asynchronous talk waits here while somebody speaks or nobody does; a newer pause ends an older one."""
        if pause.token != self._pause_token:
            return
        self._voided = asyncio.Event()
        try:
            async with asyncio.timeout(pause.seconds):
                await self._voided.wait()
        except TimeoutError:
            at_s = self.seconds
            if self.log_of_steps is not None:
                self.log_of_steps.note(LoggedStep(at_s, token=pause.token))
            self._send(self.conduct.waited(pause.token, at_s))

    def _send(self, sent: Sent) -> None:
        if self.log_of_steps is not None and sent.turns:
            self.log_of_steps.save_turns(sent.turns)
        for turn in sent.turns:
            self.turn.publish(turn)
        for interrupt in sent.interrupts:
            self._raise(interrupt)
        self._publish_to_seats(sent.observations)
        if sent.pause is not None:
            self._pause_token = sent.pause.token
            if self._voided is not None:
                self._voided.set()
            self.pause_out.publish(sent.pause)
        if sent.outcome is not None:
            self.outcome.publish(sent.outcome)
            self._end(sent.outcome)
        if self._tells_all:
            self._publish_to_seats(self.conduct.telling(sent))

    def _raise(self, interrupt: Interrupt) -> None:
        """Void what all others are about to say: whoever answered the ask behind this interrupt knows of it."""
        self.interrupt.publish(interrupt)
        self.fence.publish(self.issuer.fence(interrupt))

    def _publish_to_seats(self, observations: Iterable[tuple[int, Observation]]) -> None:
        # Each observation begins a chain of its own: a fence voids the answers to all but one.
        self.context.cause = ""
        for seat, observation in observations:
            guidance = self._newest.get(seat)
            if not self._coach_s or observation.asks == "nothing":
                self._seats[seat].publish(observation)
                continue
            request = GuidanceRequest(seat=seat, ask=observation.ask, turns=len(self.conduct.turns))
            if observation.asks == "act":
                self._held[seat] = observation
            else:
                self._seats[seat].publish(msgspec.structs.replace(cast(Any, observation), guidance=guidance))
            self.guidance_request.publish(request)

    @on(guidance)
    def guided(self, guidance: Guidance) -> None:
        """The coach has spoken: its seat is asked, with what it says."""
        self._newest[guidance.seat] = guidance
        held = self._held.get(guidance.seat)
        if held is not None and held.ask == guidance.ask:
            del self._held[guidance.seat]
            self.context.cause = ""
            self._seats[guidance.seat].publish(msgspec.structs.replace(cast(Any, held), guidance=guidance))
        self._guided.set()

    @on(guidance_due)
    async def wait_for_coach(self, request: GuidanceRequest) -> None:
        """A coach that is dead ends nothing: its seat is asked without it, from now on, and the turn's note says so."""
        try:
            async with asyncio.timeout(self._coach_s or None):
                while (held := self._held.get(request.seat)) is not None and held.ask == request.ask:
                    self._guided.clear()
                    await self._guided.wait()
        except TimeoutError:
            why = f"the coach did not answer within {self._coach_s:g} s; the talk goes on without it"
            self.log.warning("turn %d: %s", self.conduct.number, why)
            self._coach_s = 0.0
            self.context.cause = ""
            for seat, held in self._held.items():
                guidance = Guidance(episode=self.plan.id, seat=seat, ask=held.ask, failure=why)
                self._seats[seat].publish(msgspec.structs.replace(cast(Any, held), guidance=guidance))
            self._held.clear()
            self._guided.set()

    def _end(self, outcome: Outcome) -> None:
        """The episode is over, and so is the run where no judge is awaited."""
        self._ended = outcome
        if self.log_of_steps is not None:
            self.log_of_steps.save_played(self.conduct.turns, self.conduct.prompts, outcome)
        if not self._awaits_judge:
            self.finish(ok=outcome.state == "done", reason=outcome.reason)

    def judged(self, scores: Scores) -> None:
        """The judge has spoken, and the run is over."""
        if self._ended is None:
            return
        if self.log_of_steps is not None:
            self.log_of_steps.save_scores(scores)
        self.finish(ok=self._ended.state == "done" and scores.state == "done", reason=self._ended.reason)
