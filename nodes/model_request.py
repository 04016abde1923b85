"""`ModelRequest`: one question at a time to a model, which an interrupt voids, and a growing pause after failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from nodes.model_answers import ChatSettings
from nodes.model_budget import Budget
from runtime.clock import Clock, to_ns
from runtime.health import Spending
from runtime.msgs import Image

if TYPE_CHECKING:
    from nodes.openai_client import ChatClient

LONGEST_PAUSE_S = 20.0


class ModelRequest:
    """Keeps the client, the request in flight and the count of failures for a node."""

    def __init__(self, settings: ChatSettings, *, latency_s: float) -> None:
        """`latency_s` is how long an answer takes in virtual time."""
        self.settings = settings
        self.latency_s = latency_s
        self.failures = 0  # in a row
        self.budget = Budget(max_calls=settings.max_calls)
        self.is_voided = False
        self.client: ChatClient | None = None
        self._clock: Clock | None = None
        self._pause_until_ns = 0
        self._flight: asyncio.Future[str] | None = None
        self._closing: asyncio.Task[None] | None = None

    def start(self, clock: Clock, jitter: Callable[[], float], budget: Budget | None = None) -> None:
        """Create the client; imports the SDK."""
        from nodes.openai_client import ChatClient

        self._clock = clock
        self.budget = budget or self.budget
        self.client = ChatClient(self.settings, jitter=jitter, keep_open=not clock.is_virtual, budget=self.budget)

    def spending(self) -> Spending:
        """What was spent so far, and on what."""
        return self.budget.spending(self.settings.model)

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
        from nodes.jpeg import data_url
        from nodes.openai_client import Question

        assert self.client is not None
        assert self._clock is not None
        self.is_voided = False
        question = Question(system, text, schema, () if image is None else (data_url(image),))
        flight = asyncio.ensure_future(self._clock.external(self.client.ask(question), self.latency_s))
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
        """Cancel the request in flight, which closes its connection; its answer would be about a world that is gone."""
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
        """Close the connections; what the requests have cost."""
        if self.client is None:
            return "no calls"
        if self._clock is not None and not self._clock.is_virtual:
            self._closing = asyncio.ensure_future(self.client.close())
        budget = self.budget
        money = f", {budget.money:.4f} of money" if budget.money else ""
        return f"{budget.calls} calls, {budget.prompt_tokens} + {budget.completion_tokens} tokens{money}"
