"""`ChatRequest`: a robot's questions to a model behind the chat-completions API, one at a time."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Literal

from nodes.models.answers import ChatSettings, ModelError
from nodes.models.budget import Budget
from nodes.models.chat_format import ModelOptions, Question
from nodes.models.http_client import HttpClient, load
from nodes.models.json_reading import ONLY_THOUGHT, UnreadableError, read_json, without_thoughts
from nodes.models.model import Model, Patience, Server
from nodes.models.request import ModelRequest
from nodes.msgs import Image
from runtime.clock import Clock

ATTEMPTS = 2
"""A robot's question is asked once more and no oftener: the next one is about a newer world."""


def data_url(image: Image, *, quality: int = 85) -> str:
    """The colours of the image as "data:image/jpeg;base64,...". Raises ValueError where they cannot be encoded."""
    import cv2
    import numpy as np

    is_encoded, data = cv2.imencode(
        ".jpg", np.ascontiguousarray(image.rgb[:, :, ::-1]), [cv2.IMWRITE_JPEG_QUALITY, quality]
    )
    if not is_encoded:
        raise ValueError(f"an image of shape {image.rgb.shape} cannot be encoded as JPEG")
    return "data:image/jpeg;base64," + base64.b64encode(data.tobytes()).decode("ascii")


class ChatClient:
    """Asks one model within one deadline, and counts what that costs."""

    def __init__(
        self,
        settings: ChatSettings,
        *,
        jitter: Callable[[], float],
        keep_open: bool = True,
        budget: Budget | None = None,
    ) -> None:
        """`jitter` gives 0 to 1; without `keep_open` each question has a connection of its own."""
        load()
        self.settings = settings
        self.budget = budget or Budget(max_calls=settings.max_calls)
        self._http = HttpClient(keep_open=keep_open)
        self._keep_open = keep_open
        self._jitter = jitter
        self._servers: dict[str, Server] = {}  # by address
        self.left_out: tuple[str, ...] = ()  # of the last question, since the server refuses it

    async def ask(self, question: Question) -> str:
        """The model's text. Raises ModelError; BudgetError where no call is left."""
        settings = self.settings
        answer = await self._model(settings).ask(question)
        self.left_out = answer.left_out
        if answer.ending == "declined":
            raise ModelError(f"{settings.where} declines to answer: {answer.text[:200]}", is_unusable=True)
        said = without_thoughts(answer.text)
        if not said.strip():
            why = ONLY_THOUGHT if answer.text.strip() else "it holds no text"
            raise ModelError(f"{settings.where} sent no answer: {why}", is_unusable=True)
        if answer.ending == "cut" and not (question.schema and _is_whole(answer.text)):
            raise ModelError(
                f"{settings.where} cut its answer off at max_tokens = {settings.max_tokens} or what is left",
                is_unusable=True,
            )
        return answer.text if question.schema else said

    def _model(self, settings: ChatSettings) -> Model:
        server = self._servers.get(settings.base_url)
        if server is None or not self._keep_open:  # another loop, another day
            dialects = server.dialects if server is not None else {}
            server = Server(settings.base_url, settings.api_key, f"{settings.prefix}_API_KEY", dialects=dialects)
            self._servers[settings.base_url] = server
        return Model(
            settings.model,
            (server,),
            self._http,
            options=ModelOptions(
                max_tokens=settings.max_tokens,
                stream=settings.stream,
                context=settings.context,
                extra_body=settings.extra_body,
            ),
            patience=Patience(settings.deadline_s, settings.deadline_s + 1.0, ATTEMPTS),
            budget=self.budget,
            jitter=self._jitter,
            fallback=None if settings.fallback is None else self._model(settings.fallback),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


class ChatRequest(ModelRequest):
    """Keeps the client; cancelling a request closes its connection."""

    def __init__(self, settings: ChatSettings, *, latency_s: float) -> None:
        super().__init__(settings.model, latency_s=latency_s, max_calls=settings.max_calls)
        self.settings = settings
        self.client: ChatClient | None = None
        self._closing: asyncio.Task[None] | None = None

    def start(self, clock: Clock, jitter: Callable[[], float], budget: Budget | None = None) -> None:
        """Create the client."""
        self._begin(clock, budget)
        self.client = ChatClient(self.settings, jitter=jitter, keep_open=not clock.is_virtual, budget=self.budget)

    def _answer(self, *, system: str, text: str, schema: dict[str, object], image: Image | None) -> Awaitable[str]:
        assert self.client is not None
        return self.client.ask(Question(system, text, schema, () if image is None else (data_url(image),)))

    def findings(self, *, is_asked: bool) -> list[tuple[Literal["ok", "note", "problem"], str]]:
        """For `doctor`: how the server answers one small question, where it is asked."""
        if not is_asked:
            return []
        return asyncio.run(_findings(self.settings))

    def close(self) -> str:
        """Close the connections; what the requests have cost, and what had to be left out of them."""
        left_out = self.client.left_out if self.client is not None else ()
        if self.client is not None and self._clock is not None and not self._clock.is_virtual:
            self._closing = asyncio.ensure_future(self.client.close())
        return super().close() + (f"; asked without {', '.join(left_out)}, which it refuses" if left_out else "")


async def _findings(settings: ChatSettings) -> list[tuple[Literal["ok", "note", "problem"], str]]:
    client = ChatClient(settings, jitter=lambda: 0.0)
    form = {"type": "object", "properties": {"ready": {"type": "boolean"}}, "required": ["ready"]}
    schema: dict[str, object] = {**form, "additionalProperties": False}
    try:
        began_s = asyncio.get_running_loop().time()
        await client.ask(Question("", 'Are you ready? Answer with one JSON object: {"ready": true}', schema))
        took_s = asyncio.get_running_loop().time() - began_s
    except ModelError as problem:
        return [("problem", f"model {settings.model!r}: {problem}")]
    finally:
        await client.close()
    url = f"{settings.model}@{settings.base_url}"
    text = f"model {settings.model!r} at {settings.where} answered in {took_s:.2f} s; more: polyrhythm models try {url}"
    return [("ok", text), *(("note", f"it is asked without {one}, which it refuses") for one in client.left_out)]


def _is_whole(text: str) -> bool:
    """Whether an answer holds all of an object, although it was cut off: behind that."""
    try:
        return not read_json(text).is_cut
    except UnreadableError:
        return False
