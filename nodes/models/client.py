"""`ModelClient`: asks a language model's server from a node of your own: deadline, retries, budget, cancel, stream.

It speaks the chat-completions API, so the server may be OpenAI's, vLLM, ollama or llama.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodes.models.answers import MOST_TOKENS, ExtraBody, settings_from
from nodes.models.budget import Budget, budget_of
from nodes.models.chat_format import Question
from nodes.models.chat_request import ChatClient
from nodes.models.http_client import load
from runtime import Node, Spending

DEFAULT_MODEL = "gpt-4.1-mini"


class ModelClient:
    """Made in `__init__` of a node, used in its async handlers, closed in its `async def on_stop`.

    `model` and `base_url` default to OPENAI_MODEL and OPENAI_BASE_URL, with another `prefix` to those; the key comes
    from OPENAI_API_KEY alone. One question takes at most `deadline_s`, its one retry included. After `max_calls`, or
    what [budgets.models.NODE] of the launch file says, nothing more is asked. In virtual time an answer takes
    `latency_s`. With `stream` the answer is read as it comes, so that a cancelled one costs what was written by then.
    `context`, `extra_body` and `fallback` are as `OpenAIPlanner` has them.
    """

    def __init__(
        self,
        *,
        model: str = "",
        base_url: str = "",
        prefix: str = "OPENAI",
        deadline_s: float = 5.0,
        latency_s: float = 1.0,
        max_calls: int = 200,
        max_tokens: int = MOST_TOKENS,
        stream: bool = False,
        context: int = 0,
        extra_body: ExtraBody | None = None,
        fallback: str = "",
    ) -> None:
        load()  # not with the first question, which would hold up the node's timers
        self.latency_s = latency_s
        self.settings = settings_from(
            prefix, model=model, base_url=base_url, default_model=DEFAULT_MODEL, deadline_s=deadline_s,
            max_calls=max_calls, max_tokens=max_tokens, stream=stream, context=context, extra_body=extra_body,
            fallback=fallback,
        )  # fmt: skip
        self._budget = Budget(max_calls=max_calls)
        self._client: ChatClient | None = None

    def problems(self) -> list[str]:
        """What it lacks, in sentences: for the node's own `problems`, so that `check` tells it."""
        return self.settings.problems()

    async def ask(self, node: Node, text: str, *, system: str = "", schema: Mapping[str, object] | None = None) -> str:
        """The model's answer to `text`, as JSON where a JSON `schema` is given; a recording keeps it.

        An interrupt that fences the node's seat cancels the handler here, and closes the request. Raises ModelError
        where there is no usable answer, and BudgetError, which is one, where nothing may be asked any more.
        """
        if self._client is None:
            self._budget = budget_of(node.name, node.run_info, self.settings.max_calls)
            self._client = ChatClient(
                self.settings, jitter=node.random.random, keep_open=not node.clock.is_virtual, budget=self._budget
            )
        question = Question(system, text, dict(schema or {}))
        return await node.clock.external(self._client.ask(question), self.latency_s)

    def spending(self) -> Spending:
        """What was spent so far: for the node's own `spending`, which `top` and the report show."""
        return self._budget.spending(self.settings.model)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
