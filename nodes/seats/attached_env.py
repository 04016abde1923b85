"""`AttachedEnv`: a running graph, also of a real robot, as an environment that somebody else's loop steps.

The loop holds the policy's seat under a lease, as a person at a terminal does. A step takes as long as it says.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import suppress
from typing import Any

from nodes.msgs import Image, JointCommand, RobotState, Utterance
from nodes.msgs.signature import request, token_of, words
from nodes.robot.protocol import RobotLimits
from nodes.robot.robot_from_launch import DEFAULT, load_limits
from nodes.sim.guarded_env import STEP_S, Stepped, check_command, stepped
from runtime.clock import SystemClock, to_ns, to_s
from runtime.command_line.attach import Arrival, Sender, StopSignal, attach, hear, user_name
from runtime.coordination.lease import Lease
from runtime.errors import PolyrhythmError, UserError
from runtime.launch.process_plan import load_type
from runtime.message import Stamped
from runtime.serialization.codec import decode

log = logging.getLogger(__name__)
SEAT = "policy"
COMMAND = "command"
ANSWER_S = 3.0
RENEW_S = 0.1


class AttachedEnv:
    """The run of this name or pid; None where only one goes on. `by` names who commands.

    Nothing here arms the robot or puts the scene back: people do. Raises PolyrhythmError where no graph runs, and where
    the guard does not give the seat.
    """

    def __init__(self, run: str | None = None, *, by: str = "", say: str = "", step_s: float = STEP_S) -> None:
        self._run = attach(run, "laptop", acts=True)
        info = self._run.info
        if COMMAND not in info.topics:
            raise UserError(
                f"{self._run.title}: has no guard that takes commands; its topics: {', '.join(info.topics)}"
            )
        self.step_s = step_s
        self.instruction = say
        self.limits: RobotLimits = load_limits(info.shared.get("robot", DEFAULT))
        images = {name: topic for name, topic in info.topics.items() if load_type(topic.type) is Image}
        self.cameras = tuple(sorted(images))
        self._clock = SystemClock()
        self._by = by or user_name()
        self._source = f"loop-{self._by}"
        self._token = token_of(self._run.folder)
        wanted = ("robot/state", "guard/state", "robot/command", "said", "sim/truth", "lease", *self.cameras)
        self._types = {name: load_type(info.topics[name].type) for name in wanted if name in info.topics}
        self._stop = StopSignal()
        self._arrivals: Generator[Arrival | None] | None = None
        self._newest: dict[str, Stamped[Any]] = {}
        self._said: list[str] = []
        self._holder = ""
        self._renewed_ns = 0
        self._senders: dict[str, Sender] = {}

    def reset(self, seed: int = 0) -> Stepped:
        """Take the seat, where it is not held yet, and look. The seed is not used: people lay the table."""
        if self._arrivals is None:
            self._arrivals = hear(self._run, self._types, self._stop, turn_s=0.005)
            self._listen(0.2)  # what is asked now is answered where it is heard
        if self._holder != self._source:
            self._ask("take")
            end_ns = self._clock.now_ns() + to_ns(ANSWER_S)
            while self._holder != self._source and self._clock.now_ns() < end_ns:
                self._listen(0.05)
            if self._holder != self._source:
                raise PolyrhythmError(f"{SEAT}: not handed over to {self._source}; the run's log says why")
        end_ns = self._clock.now_ns() + to_ns(ANSWER_S)
        while "robot/state" not in self._newest and self._clock.now_ns() < end_ns:
            self._listen(0.05)
        if self.instruction and "heard" in self._run.info.topics:
            self.say(self.instruction)
        return self._look()

    def say(self, text: str, *, speaker: str = "") -> None:
        """Say it to the robot, as the person who holds the seat."""
        self._sender("heard").publish(words(self._token, text, speaker or self._by, self._clock.now_ns()))

    def step(self, command: JointCommand | None = None) -> Stepped:
        """Command, or nothing, and let `step_s` pass.

        Raises UserError for a command with another number of joints or one that is not finite, and PolyrhythmError
        where somebody else has taken the seat or the run is over.
        """
        if self._arrivals is None:
            raise UserError("the seat is not taken yet; call reset() first")
        if self._holder != self._source:
            raise PolyrhythmError(f"{SEAT}: now {self._holder or 'nobody'} holds it, so nothing was commanded")
        if command is not None:
            check_command(command, self.limits)
            looked = [self._newest[topic] for topic in ("robot/state", *self.cameras) if topic in self._newest]
            self._sender(COMMAND).publish(command, stems_from=looked)
        self._listen(self.step_s)
        return self._look()

    def close(self) -> None:
        """Give the seat back, and wait `ANSWER_S` at most until it is somebody else's; a warning tells if it is not."""
        try:
            if self._holder == self._source and self._run.is_alive:
                self._give_back()
        finally:
            if self._arrivals is not None:
                self._arrivals.close()
            for sender in self._senders.values():
                sender.close()
            self._arrivals, self._senders, self._holder = None, {}, ""

    def _give_back(self) -> None:
        self._ask("give")
        end_ns = self._clock.now_ns() + to_ns(ANSWER_S)
        with suppress(PolyrhythmError):  # a run that is over has no seats
            while self._holder == self._source and self._clock.now_ns() < end_ns:
                self._listen(0.05, renews=False)
            if self._holder == self._source:
                log.warning(
                    "%s: nobody has answered within %g s that %s has given it back; it falls back once its lease ends",
                    SEAT, ANSWER_S, self._source,
                )  # fmt: skip

    def _sender(self, topic: str) -> Sender:
        if topic not in self._senders:
            kind = "person" if topic != COMMAND else f"model:{self._source}"
            self._senders[topic] = Sender(self._run, topic, provenance=kind, source=self._source)
        return self._senders[topic]

    def _ask(self, do: str) -> None:
        now_ns = self._clock.now_ns()
        holder = "" if do == "give" else self._source
        asked = request(self._token, do, SEAT, holder, self._by, now_ns, kind="model")  # type: ignore[arg-type]  # one of three words
        self._sender("seat/request").publish(asked)

    def _listen(self, for_s: float, *, renews: bool = True) -> None:
        """Take in what comes for so long, and keep the lease."""
        arrivals = self._arrivals
        assert arrivals is not None, "reset has begun to listen"
        end_ns = self._clock.now_ns() + to_ns(for_s)
        while self._clock.now_ns() < end_ns:
            now_ns = self._clock.now_ns()
            if renews and self._holder == self._source and to_s(now_ns - self._renewed_ns) > RENEW_S:
                self._renewed_ns = now_ns
                self._ask("renew")
            try:
                arrival = next(arrivals)
            except StopIteration:
                raise PolyrhythmError(f"{self._run.title} is over") from None
            if arrival is not None:
                self._take(decode(arrival.frames, self._types[arrival.topic]))

    def _take(self, stamped: Stamped[Any]) -> None:
        message = stamped.message
        if isinstance(message, Lease):
            if message.seat == SEAT:
                self._holder = message.holder
        elif isinstance(message, Utterance):
            self._said.append(message.text)
        else:
            self._newest[stamped.envelope.topic] = stamped

    def _look(self) -> Stepped:
        newest = {topic: stamped.message for topic, stamped in self._newest.items()}
        state = newest.get("robot/state")
        if not isinstance(state, RobotState):
            raise PolyrhythmError(f"{self._run.title}: nobody tells the robot's state")
        said = tuple(self._said)
        self._said = []
        images = {topic: newest[topic].rgb for topic in self.cameras if topic in newest}
        return stepped(newest.get, state, images, to_s(self._clock.now_ns()), said)
