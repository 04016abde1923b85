"""`ModelRequest`: one question at a time to a model, which an interrupt voids, and a growing pause after failures."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable
from functools import partial

from nodes.models.budget import Budget
from nodes.models.pace_and_outages import LONGEST_PAUSE_S
from nodes.msgs import Image
from runtime.clock import Clock, to_ns
from runtime.coordination.health import Spending


class ModelRequest(ABC):
    """Keeps the request in flight and the count of failures for a node; how the model is asked is a subclass's."""

    def __init__(self, model: str, *, latency_s: float, max_calls: int) -> None:
        """`latency_s` is how long an answer takes in virtual time."""
        self.model = model
        self.latency_s = latency_s
        self.failures = 0  # in a row
        self.budget = Budget(max_calls=max_calls)
        self.is_voided = False
        self._clock: Clock | None = None
        self._pause_until_ns = 0
        self._flight: asyncio.Future[str] | None = None

    @abstractmethod
    def _answer(self, *, system: str, text: str, schema: dict[str, object], image: Image | None) -> Awaitable[str]:
        """The model's text; cancelled, it ends the model's work. Raises ModelError, and ValueError for a bad image."""

    def _begin(self, clock: Clock, budget: Budget | None) -> None:
        self._clock = clock
        self.budget = budget or self.budget

    def spending(self) -> Spending:
        """What was spent so far, and on what."""
        return self.budget.spending(self.model)

    @property
    def is_spent(self) -> bool:
        """Whether nothing more may be asked in this run."""
        return self.budget.spent != ""

    @property
    def is_asking(self) -> bool:
        """Whether a request is in flight."""
        return self._flight is not None

    @property
    def is_paused(self) -> bool:
        """True for a while after a failure."""
        return self._clock is not None and self._clock.now_ns() < self._pause_until_ns

    async def ask(self, *, system: str, text: str, schema: dict[str, object], image: Image | None) -> str | None:
        """The model's text; None where an interrupt voided it. Raises ModelError, and ValueError for a bad image."""
        assert self._clock is not None
        self.is_voided = False
        # A call, not its coroutine: a flight that is cancelled before it begins would leave that unawaited.
        answering = partial(self._answer, system=system, text=text, schema=schema, image=image)
        flight = asyncio.ensure_future(self._clock.external(answering, self.latency_s))
        self._flight = flight
        try:
            answer = await flight
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise  # not an interrupt: the runtime stops the handler
            return None
        finally:
            if self._flight is flight:  # a cancelled handler may wind up after the next one has asked
                self._flight = None
        return None if self.is_voided else answer

    def void(self) -> None:
        """Cancel the request in flight, which ends the model's work; its answer would be about a world that is gone."""
        if self._flight is not None:
            self.is_voided = True
            self._flight.cancel()
            self._flight = None

    def succeeded(self) -> None:
        """Forget the failures before."""
        self.failures = 0

    def failed(self, problem: Exception) -> None:
        """Count a failure and pause, longer each time."""
        assert self._clock is not None
        self.failures += 1
        pause_s = min(2.0**self.failures, LONGEST_PAUSE_S) - 0.5
        self._pause_until_ns = self._clock.now_ns() + to_ns(pause_s)

    def close(self) -> str:
        """Let go of the model; what the requests have cost."""
        if self._clock is None:
            return "no calls"
        budget = self.budget
        money = f", {budget.money:.4f} of money" if budget.money else ""
        return f"{budget.calls} calls, {budget.prompt_tokens} + {budget.completion_tokens} tokens{money}"
