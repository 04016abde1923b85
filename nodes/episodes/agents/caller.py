"""`SeatCaller`: one question to one model, answered from the log where it was answered before; retries, limits, budget.

An outage is never an answer: a call is retried with back-off until its deadline and then raises `OutageError`.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from nodes.episodes.agents.chat_wire import ChatWire, ModelAnswer, RefusedError, url_problem
from nodes.models.answers import OPENAI_URL, BudgetError, ModelError
from nodes.models.budget import Budget
from nodes.models.dialect import Dialect
from runtime.errors import PolyrhythmError, UserError

FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 8.0


class OutageError(PolyrhythmError):
    """A model could not be asked; the episode fails and can be resumed."""


class BudgetSpentError(OutageError):
    """The run may make no more calls."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Where a model is: from "MODEL", "MODEL@URL"; the URL's default is OPENAI_BASE_URL, the key OPENAI_API_KEY."""

    model: str
    base_url: str
    key: str = field(default="", repr=False)
    temperature: float = 0.7
    max_tokens: int = 1000
    stream: bool = False

    @classmethod
    def parse(cls, text: str, *, temperature: float = 0.7, stream: bool = False) -> ModelSpec:
        """Raises UserError for a text without a model, or an API without a key."""
        model, _, url = text.partition("@")
        model = model.removeprefix("openai:")
        if url and "#t=" in url:
            url, _, given = url.partition("#t=")
            temperature = _temperature(given, text)
        base_url = url or os.environ.get("OPENAI_BASE_URL", OPENAI_URL)
        key = os.environ.get("OPENAI_API_KEY", "")
        if not model:
            raise UserError(f"agent {text!r} names no model; expected MODEL or MODEL@http://host:port/v1")
        if problem := url_problem(base_url):
            raise UserError(f"agent {text!r}: {problem}")
        if base_url.rstrip("/") == OPENAI_URL and not key:
            raise UserError(
                f"agent {text!r} is a model at {OPENAI_URL} and OPENAI_API_KEY is not set; set it, name a server "
                "with MODEL@URL, or use the offline agent: rules"
            )
        return cls(model=model, base_url=base_url, key=key, temperature=temperature, stream=stream)


def _temperature(given: str, text: str) -> float:
    try:
        value = float(given)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 2.0:
        raise UserError(f"agent {text!r}: temperature is {given!r}; expected 0 to 2")
    return value


class AnswerStore(Protocol):
    """Remembers answers, so that no call is made twice."""

    def find_answer(self, seat: int, number: int, sha: str) -> str | None:
        """The answer stored for this call; None where there is none. Raises where it was another question."""
        ...

    def keep_answer(
        self, seat: int, number: int, what: str, model: str, prompt: str, sha: str, answer: ModelAnswer
    ) -> None:
        """Store an answer for good before it is used."""
        ...


class NoStore:
    """Remembers nothing."""

    def find_answer(self, seat: int, number: int, sha: str) -> str | None:
        return None

    def keep_answer(
        self, seat: int, number: int, what: str, model: str, prompt: str, sha: str, answer: ModelAnswer
    ) -> None:
        """Nothing is kept."""


class RateLimit:
    """At most so many calls a minute to one server, evenly spaced; 0: as many as one likes."""

    def __init__(self, calls_per_minute: float = 0.0) -> None:
        self._gap_s = 60.0 / calls_per_minute if calls_per_minute else 0.0
        self._next_s = 0.0

    async def wait(self) -> None:
        """Return when the next call may be made."""
        if not self._gap_s:
            return
        now_s = asyncio.get_running_loop().time()
        at_s = max(now_s, self._next_s)
        self._next_s = at_s + self._gap_s
        if at_s > now_s:
            await asyncio.sleep(at_s - now_s)


class Servers:
    """The connections, limits and the budget that all callers of a run share."""

    def __init__(
        self,
        *,
        budget: Budget | None = None,
        calls_per_minute: float = 0.0,
        deadline_s: float = 60.0,
        attempts: int = 4,
    ) -> None:
        self.budget = budget or Budget()
        self.deadline_s = deadline_s
        self.attempts = attempts
        self.retries = 0
        self._rate = calls_per_minute
        self._wires: dict[tuple[str, str], ChatWire] = {}
        self._limits: dict[str, RateLimit] = {}
        self._dialects: dict[tuple[str, str], Dialect] = {}
        self._jitter = random.Random(0)

    async def ask(self, spec: ModelSpec, prompt: str, schema: dict[str, object]) -> ModelAnswer:
        """One answer within the deadline. Raises OutageError; UserError where the key or the model is wrong."""
        wire = self._wires.setdefault((spec.base_url, spec.key), ChatWire(spec.base_url, key=spec.key))
        try:
            async with asyncio.timeout(self.deadline_s):
                return await self._with_retries(wire, spec, prompt, schema)
        except TimeoutError as problem:
            raise OutageError(f"{wire.where} did not answer within {self.deadline_s:g} s") from problem
        except BudgetError as problem:
            raise BudgetSpentError(problem.spent) from problem
        except ModelError as problem:
            raise OutageError(str(problem)) from problem

    async def _with_retries(
        self, wire: ChatWire, spec: ModelSpec, prompt: str, schema: dict[str, object]
    ) -> ModelAnswer:
        limit = self._limits.setdefault(spec.base_url, RateLimit(self._rate))
        attempt = 0
        known = (spec.base_url, spec.model)
        dialect = self._dialects.get(known, Dialect())
        while True:
            await limit.wait()
            self.budget.take_call(wire.where)
            try:
                answer = await wire.ask(body_of(spec, prompt, schema, dialect))
            except RefusedError as problem:
                other = dialect.after(problem.said)
                if other is None:
                    raise
                dialect = other
            except ModelError as problem:
                attempt += 1
                if not problem.may_retry or attempt >= self.attempts:
                    raise
                self.retries += 1
                wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (attempt - 1)) * (1 + 0.5 * self._jitter.random())
                await asyncio.sleep(max(wait_s, problem.retry_after_s))
            else:
                self._dialects[known] = dialect.remembered
                self.budget.count_tokens(answer.prompt_tokens, answer.completion_tokens)
                return answer

    async def close(self) -> None:
        """Close all connections."""
        for wire in self._wires.values():
            await wire.close()


def body_of(spec: ModelSpec, prompt: str, schema: dict[str, object], dialect: Dialect) -> dict[str, object]:
    """The request."""
    body: dict[str, object] = {
        "model": spec.model,
        "messages": [{"role": "user", "content": [{"type": "text", "text": prompt}]}],
        "temperature": spec.temperature,
        dialect.limit: spec.max_tokens,
    }
    if spec.stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    if dialect.format == "json_schema":
        body["response_format"] = {
            "type": dialect.format,
            "json_schema": {"name": "answer", "strict": True, "schema": schema},
        }
    elif dialect.format == "json_object":
        body["response_format"] = {"type": dialect.format}
    return body


def sha_of(prompt: str) -> str:
    """A prompt's short name in the log."""
    return hashlib.sha256(prompt.encode("utf-8", errors="replace")).hexdigest()[:16]


Ask = Callable[[str, dict[str, object]], Awaitable[ModelAnswer]]


class SeatCaller:
    """The calls of one seat (or judge) of one episode, numbered from 1."""

    def __init__(
        self, spec: ModelSpec, servers: Servers, store: AnswerStore, seat: int, ask: Ask | None = None
    ) -> None:
        self.spec = spec
        self.calls = 0
        self.repeated = 0
        self._servers = servers
        self._store = store
        self._seat = seat
        self._ask = ask

    async def ask(self, prompt: str, schema: dict[str, object], what: str, sha: str = "") -> str:
        """The answer's text; `sha` is the prompt's, where the caller has it. Raises OutageError."""
        self.calls += 1
        number, sha = self.calls, sha or sha_of(prompt)
        stored = self._store.find_answer(self._seat, number, sha)
        if stored is not None:
            self.repeated += 1
            return stored
        asking = self._ask(prompt, schema) if self._ask else self._servers.ask(self.spec, prompt, schema)
        answer = await asking
        self._store.keep_answer(self._seat, number, what, self.spec.model, prompt, sha, answer)
        return answer.text
