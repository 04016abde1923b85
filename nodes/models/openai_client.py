"""`ChatClient`: one question to a server that speaks OpenAI's chat-completions API.

A question has one total deadline and at most one retry, both ours: the SDK's own are made for web pages (10 minutes,
two retries). Cancelling the task that asks closes the HTTP connection. Errors are sentences without the key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import openai
from openai.types.chat import ChatCompletionMessageParam

from nodes.models.answers import LONGEST_ANSWER, ChatSettings, ModelError
from nodes.models.budget import Budget, estimated_tokens
from nodes.models.dialect import Dialect, Format
from nodes.models.openai_errors import is_free, model_error, new_sdk


@dataclass(frozen=True, slots=True)
class Question:
    """What the model is told, what it sees, and the JSON schema of the answer."""

    system: str
    text: str
    schema: dict[str, object]
    image_urls: tuple[str, ...] = ()

    @property
    def prompt_tokens(self) -> int:
        """About how many tokens it is."""
        return estimated_tokens(len(self.system) + len(self.text), len(self.image_urls))


class ChatClient:
    """Asks one model, and counts what that costs; what the budget does not allow never leaves."""

    def __init__(
        self,
        settings: ChatSettings,
        *,
        jitter: Callable[[], float],
        keep_open: bool = True,
        budget: Budget | None = None,
    ) -> None:
        """`jitter` gives 0 to 1; without `keep_open` each question has a connection of its own."""
        self.settings = settings
        self.budget = budget or Budget(max_calls=settings.max_calls)
        self._jitter = jitter
        self._dialect = Dialect()
        self._tells_usage = True  # until a server refuses to
        self._sdk = new_sdk(settings, keep_open=keep_open)

    async def ask(self, question: Question) -> str:
        """The model's text. Raises ModelError; BudgetError where no call is left."""
        try:
            async with asyncio.timeout(self.settings.deadline_s):
                return await self._with_one_retry(question)
        except TimeoutError as problem:
            raise ModelError(f"{self.settings.where} did not answer within {self.settings.deadline_s:g} s") from problem

    async def close(self) -> None:
        """Close the connections."""
        await self._sdk.close()

    async def _with_one_retry(self, question: Question) -> str:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self.settings.deadline_s
        try:
            return await self._as_it_is_known(question)
        except ModelError as problem:
            wait_s = problem.retry_after_s or 0.2 + 0.3 * self._jitter()
            if not problem.may_retry or loop.time() + wait_s >= end_s:
                raise
        await asyncio.sleep(wait_s)
        return await self._as_it_is_known(question)

    async def _as_it_is_known(self, question: Question) -> str:
        """Ask otherwise where the server does not know what is asked for; it is asked so from then on."""
        dialect = self._dialect
        while True:
            try:
                text = await self._once(question, dialect)
            except _RequestRefused as refusal:
                is_plain = dialect.format == "text"
                if (
                    self._tells_usage
                    and self.settings.stream
                    and ("stream_options" in refusal.said or (is_plain and dialect.limit not in refusal.said))
                ):
                    self._tells_usage = False  # an older server; what it says costs is estimated
                elif (other := dialect.after(refusal.said)) is not None:
                    dialect = other
                else:
                    raise ModelError(str(refusal)) from refusal
            else:
                self._dialect = dialect.remembered
                return text

    async def _once(self, question: Question, dialect: Dialect) -> str:
        where = self.settings.where
        longest = self.budget.take_call(where, question.prompt_tokens, longest_answer=self.settings.max_tokens)
        bill = _Bill(question, longest)
        try:
            if self.settings.stream:
                text, why_ended = await self._streamed(question, dialect, bill)
            else:
                text, why_ended = await self._whole(question, dialect, bill)
        except (openai.BadRequestError, openai.UnprocessableEntityError) as problem:
            bill.is_free = True
            raise _RequestRefused(str(self._error(problem)), problem.message) from problem
        except ModelError:
            raise
        except Exception as problem:
            bill.is_free = is_free(problem)
            raise self._error(problem) from problem
        finally:
            self._pay(bill)
        if why_ended == "length":
            raise ModelError(f"{where} cut its answer off at max_tokens = {bill.longest}")
        if why_ended is None:
            raise ModelError(f"{where} hung up in the middle of its answer", may_retry=True)
        if not text:
            raise ModelError(f"{where} answered without text ({why_ended})")
        return text

    def _pay(self, bill: _Bill) -> None:
        """Count the tokens: those that the server tells of, or an estimate where it does not, as when it is cut off."""
        if bill.is_free:
            return
        prompt, completion = bill.told or bill.estimate
        try:
            self.budget.count_tokens(prompt, completion, is_estimate=bill.told is None)
        except OSError:
            pass  # counted in memory; the next call is refused where the disk is still full

    async def _whole(self, question: Question, dialect: Dialect, bill: _Bill) -> tuple[str, str | None]:
        completion = await self._sdk.chat.completions.create(
            model=self.settings.model,
            messages=_messages(question),
            **_limit(dialect, bill.longest),
            response_format=_response_format(question, dialect.format),
        )
        bill.take(completion.usage)
        choice = completion.choices[0]
        bill.characters = len(choice.message.content or "")
        return choice.message.content or "", choice.finish_reason

    async def _streamed(self, question: Question, dialect: Dialect, bill: _Bill) -> tuple[str, str | None]:
        parts: list[str] = []
        why_ended: str | None = None
        stream = await self._sdk.chat.completions.create(
            model=self.settings.model,
            messages=_messages(question),
            **_limit(dialect, bill.longest),
            response_format=_response_format(question, dialect.format),
            stream=True,
            stream_options={"include_usage": True} if self._tells_usage else openai.omit,
        )
        async with stream:
            async for chunk in stream:
                bill.take(chunk.usage)
                if not chunk.choices:
                    continue
                choice = chunk.choices[0]
                parts.append(choice.delta.content or "")
                bill.characters += len(parts[-1])
                if bill.characters > LONGEST_ANSWER:
                    raise ModelError(f"{self.settings.where} does not stop talking; at most {LONGEST_ANSWER} are read")
                why_ended = choice.finish_reason or why_ended
        return "".join(parts), why_ended

    def _error(self, problem: Exception) -> ModelError:
        return model_error(problem, self.settings, "chat completions")


class _Bill:
    """What one request costs: as the server tells, or as far as it can be estimated."""

    def __init__(self, question: Question, longest: int) -> None:
        self.longest = longest  # answer that may be asked for, in tokens
        self.told: tuple[int, int] | None = None  # prompt, completion
        self.characters = 0  # of the answer, as far as it came
        self.is_free = False
        self._question = question

    def take(self, usage: Any) -> None:
        """What the server says; the last word counts."""
        prompt, completion = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
        if isinstance(prompt, int) and isinstance(completion, int) and min(prompt, completion) >= 0:
            self.told = (prompt, completion)

    @property
    def estimate(self) -> tuple[int, int]:
        """Prompt and completion, by the length of both."""
        return self._question.prompt_tokens, estimated_tokens(self.characters)


class _RequestRefused(Exception):
    """The server does not take the request as it is; perhaps it does in another dialect."""

    def __init__(self, text: str, said: str) -> None:
        super().__init__(text)
        self.said = said  # by the server, whole: not for people, a key may be in it


def _messages(question: Question) -> list[ChatCompletionMessageParam]:
    content: list[dict[str, object]] = [{"type": "text", "text": question.text}]
    content += [{"type": "image_url", "image_url": {"url": url}} for url in question.image_urls]
    messages = [{"role": "system", "content": question.system}, {"role": "user", "content": content}]
    return cast(list[ChatCompletionMessageParam], messages)


def _limit(dialect: Dialect, tokens: int) -> dict[str, Any]:
    return {dialect.limit: tokens}


def _response_format(question: Question, form: Format) -> Any:
    if form == "json_schema":
        return {"type": form, "json_schema": {"name": "answer", "strict": True, "schema": question.schema}}
    return {"type": form} if form == "json_object" else openai.omit
