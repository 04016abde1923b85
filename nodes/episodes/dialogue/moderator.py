"""`Moderator`: holds the turn order on the bus. `LiveModerator` also starts by itself and notices a seat that is dead.

The decisions are `conduct.py`'s (turn-based) and `floor.py`'s (asynchronous); this is their shell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from nodes.episodes.dialogue.asynchronous import AsynchronousDialogue
from nodes.episodes.dialogue.messages import BeginEpisode, Pause
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.turn_based import Sent, TurnBasedDialogue
from runtime import Node, Publisher, QoS, Subscription, every, on
from runtime.control_messages.fence import FENCE_TOPIC, Fence, raised
from runtime.message import Epochs
from runtime.msgs import Interrupt
from runtime.msgs.episode import Observation, Outcome, Reply, Scores, Turn
from runtime.msgs.interrupt import PREEMPTS
from runtime.qos import RELIABLE, URGENT


class Moderator(Node):
    """Plays one episode: asks seats, plays their acts, ends it for an exact reason."""

    begin = Subscription(BeginEpisode, "episode/begin", qos=QoS(required=False))
    reply = Subscription(Reply, "episode/reply")
    pause = Subscription(Pause, "episode/pause")
    pause_out = Publisher(Pause, "episode/pause", qos=RELIABLE)
    turn = Publisher(Turn, "episode/turn", qos=RELIABLE)
    interrupt = Publisher(Interrupt, "interrupt", qos=URGENT)
    fence = Publisher(Fence, FENCE_TOPIC)
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

    def __init__(self, plan: EpisodePlan, answer_s: float = 0.0) -> None:
        """`answer_s` is how long a seat has for its answer; 0: for ever."""
        self.plan = plan
        self.answer_s = answer_s
        self.conduct: TurnBasedDialogue = TurnBasedDialogue(plan.id, plan.briefings, plan.rules, self.random)
        self._began_ns = 0
        self._pause_token = 0
        self._voided: asyncio.Event | None = None
        self._epochs: Epochs = {}

    def on_start(self) -> None:
        kind = AsynchronousDialogue if self.plan.rules.order == "asynchronous" else TurnBasedDialogue
        self.conduct = kind(self.plan.id, self.plan.briefings, self.plan.rules, self.random)
        self.conduct.answer_s = self.answer_s
        self._seats = [getattr(self, f"seat{seat}") for seat in range(len(self.plan.briefings))]

    @property
    def seconds(self) -> float:
        """Since the episode began."""
        return (self.clock.now_ns() - self._began_ns) * 1e-9

    @on(begin)
    def start(self, begin: BeginEpisode) -> None:
        if self.conduct.number == 0:
            self.begin_talk()

    def begin_talk(self) -> None:
        """The first observations go out."""
        self._began_ns = self.clock.now_ns()
        self._send(self.conduct.begin(0.0))

    def happens(self, at_s: float, *, reply: Reply | None = None, token: int = 0) -> None:
        """Called before a reply, or the end of a pause, has any effect."""

    def plays(self, seat: int, provenance: str) -> None:
        """Called with who answers for a seat, before the answer has any effect."""

    @on(reply)
    def answered(self, reply: Reply) -> None:
        at_s = self.seconds
        if self.conduct.expects(reply):
            if self.context.trigger is not None:
                self.plays(reply.seat, self.context.trigger.envelope.provenance)
            self.happens(at_s, reply=reply)
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
            self.happens(at_s, token=pause.token)
            self._send(self.conduct.waited(pause.token, at_s))

    def _send(self, sent: Sent) -> None:
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
            self.ended(sent.outcome)

    def _raise(self, interrupt: Interrupt) -> None:
        """Void what all others are about to say: whoever answered the ask behind this interrupt knows of it."""
        self.interrupt.publish(interrupt)
        self._epochs = raised(self._epochs, PREEMPTS[interrupt.depth])
        self.fence.publish(
            Fence(
                epochs=self._epochs,
                interrupt_id=interrupt.id,
                depth=interrupt.depth,
                text=interrupt.text,
                by=interrupt.by,
            )
        )

    def _publish_to_seats(self, observations: Iterable[tuple[int, Observation]]) -> None:
        # Each observation begins a chain of its own: a fence voids the answers to all but one.
        self.context.cause = ""
        for seat, observation in observations:
            self._seats[seat].publish(observation)

    def ended(self, outcome: Outcome) -> None:
        """The episode is over, and so is the run."""
        self.finish(ok=outcome.state == "done", reason=outcome.reason)


class LiveModerator(Moderator):
    """The moderator of a launch file: names its task, starts when the graph runs, waits for the judge."""

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
    ) -> None:
        from nodes.episodes.dialogue.planning import plan_of_task

        super().__init__(plan_of_task(task, order=order, mode=mode, max_turns=max_turns, wins=wins), answer_s)
        self._has_judge = has_judge
        self._asked_ns = 0
        self._asked: tuple[str, ...] = ()
        self._ended: Outcome | None = None

    @every(hz=2)
    def watch(self) -> None:
        """Start when all are there; end the episode as failed where a seat does not answer at all."""
        if any(self._epochs):
            self.fence.publish(Fence(epochs=self._epochs))  # for whoever joined late
        if self.conduct.number == 0:
            self.start(BeginEpisode())
        waiting = self.conduct.is_waiting_for
        if waiting != self._asked:
            self._asked, self._asked_ns = waiting, self.clock.now_ns()
        elif waiting and (self.clock.now_ns() - self._asked_ns) * 1e-9 > self.answer_s:
            self._send(self.conduct.fail(f"{waiting[0]} did not answer within {self.answer_s:g} s", self.seconds))

    def _send(self, sent: Sent) -> None:
        super()._send(sent)
        self._publish_to_seats(self.conduct.telling(sent))

    @on(scores)
    def scored(self, scores: Scores) -> None:
        if self._ended is not None:
            self.judged(scores)

    def judged(self, scores: Scores) -> None:
        """The judge has spoken, and the run is over."""
        assert self._ended is not None
        self.finish(ok=self._ended.state == "done" and scores.state == "done", reason=self._ended.reason)

    def ended(self, outcome: Outcome) -> None:
        self._ended = outcome
        if not self._has_judge:
            super().ended(outcome)
