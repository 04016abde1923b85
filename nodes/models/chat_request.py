"""`ChatRequest`: questions to a model behind the chat-completions API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from nodes.models.answers import ChatSettings
from nodes.models.budget import Budget
from nodes.models.request import ModelRequest
from runtime.clock import Clock
from runtime.msgs import Image

if TYPE_CHECKING:
    from nodes.models.openai_client import ChatClient


class ChatRequest(ModelRequest):
    """Keeps the client; cancelling a request closes its connection."""

    def __init__(self, settings: ChatSettings, *, latency_s: float) -> None:
        super().__init__(settings.model, latency_s=latency_s, max_calls=settings.max_calls)
        self.settings = settings
        self.client: ChatClient | None = None
        self._closing: asyncio.Task[None] | None = None

    def start(self, clock: Clock, jitter: Callable[[], float], budget: Budget | None = None) -> None:
        """Create the client; imports the SDK."""
        from nodes.models.openai_client import ChatClient

        self._begin(clock, budget)
        self.client = ChatClient(self.settings, jitter=jitter, keep_open=not clock.is_virtual, budget=self.budget)

    def _answer(self, *, system: str, text: str, schema: dict[str, object], image: Image | None) -> Awaitable[str]:
        from nodes.models.data_url import data_url
        from nodes.models.openai_client import Question

        assert self.client is not None
        return self.client.ask(Question(system, text, schema, () if image is None else (data_url(image),)))

    def close(self) -> str:
        """Close the connections; what the requests have cost."""
        if self.client is not None and self._clock is not None and not self._clock.is_virtual:
            self._closing = asyncio.ensure_future(self.client.close())
        return super().close()
