"""`Model.ask`: one question to a model behind chat completions: retries until the deadline, pace, breaker, budget.

All that ask the same server share what is known of it. Where it fails, all stop, one asks again after a growing pause,
and the others go on when that one was answered. Where it says 429, all ask slower, and slowly faster again. Waiting for
one's turn is no part of the deadline; an outage is.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nodes.models.address import headers_of, key_problem, url_of, where_of
from nodes.models.answers import BudgetError, ModelError
from nodes.models.budget import Budget, Prices, Reservation, estimated_tokens
from nodes.models.chat_format import AnswerReader, ModelAnswer, ModelOptions, Question, ServerFailedError, body_of
from nodes.models.dialect import LEAST_PART, Dialect
from nodes.models.http_client import HttpClient, UnreachableError
from nodes.models.pace_and_outages import FIRST_WAIT_S, LONGEST_WAIT_S, Breaker, RequestPacer
from nodes.models.refusals import OVER_S, ContextFullError, DeclinedError, RefusalReader, RefusedError, SlowDownError

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an answer may take: all attempts together, one of them, and how many there may be (0: any number)."""

    deadline_s: float = 300.0
    attempt_s: float = 60.0
    attempts: int = 0


@dataclass(slots=True)
class Server:
    """One address with its key, and what all that ask there know of it."""

    base_url: str
    key: str = field(default="", repr=False)
    key_name: str = "OPENAI_API_KEY"  # of the environment variable, for messages
    calls_per_minute: float = 0.0
    prices: Prices | None = None
    in_flight: int = 0
    answers: int = 0
    pace: RequestPacer = field(init=False)
    breaker: Breaker = field(default_factory=Breaker)
    dialects: dict[str, Dialect] = field(default_factory=dict)
    over: str = ""  # why nothing can be had there for a while
    over_until_s: float = 0.0

    def __post_init__(self) -> None:
        self.pace = RequestPacer(self.calls_per_minute)

    @property
    def where(self) -> str:
        """Host and port, which is all that messages show of the address."""
        return where_of(self.base_url)

    def dialect(self, model: str) -> Dialect:
        """How that model is asked there, as far as is known."""
        return self.dialects.get(model) or Dialect.of(self.where)


class Model:
    """One model on one server, or on several that serve it: the least busy one is asked."""

    def __init__(
        self,
        name: str,
        servers: Sequence[Server],
        http: HttpClient,
        *,
        options: ModelOptions,
        patience: Patience,
        budget: Budget,
        jitter: Callable[[], float] = random.random,
        fallback: Model | None = None,
    ) -> None:
        """`fallback` is asked where no server of this one gives an answer."""
        self.name = name
        self.servers = tuple(servers)
        self.options = options
        self.patience = patience
        self.budget = budget
        self.fallback = fallback
        self.retries = 0
        self._http = http
        self._jitter = jitter

    async def ask(self, question: Question) -> ModelAnswer:
        """The answer, by the fallback where this model cannot be asked. Raises ModelError: BudgetError where no call
        is left."""
        if self.fallback is None:
            return await self._whole(question)
        now_s = asyncio.get_running_loop().time()
        try:
            if all(server.breaker.is_resting(now_s) for server in self.servers):
                raise ModelError(f"{self.servers[0].where} is down")
            return await self._whole(question)
        except ModelError as problem:
            is_ours = isinstance(problem, BudgetError) and not problem.is_servers
            if is_ours or problem.is_about_images:
                raise
            answer = await self.fallback.ask(question)
            return replace(answer, by=answer.by or f"{self.fallback.name}@{self.fallback.servers[0].where}")

    async def _whole(self, question: Question) -> ModelAnswer:
        try:
            return await self._ask(question)
        except RefusedError as refusal:
            if not question.image_urls or refusal.is_about_images:
                raise
            await self._ask(replace(question, image_urls=()))  # whatever it says, it may be about the images
            refusal.is_about_images = True
            raise

    async def _ask(self, question: Question) -> ModelAnswer:
        loop = asyncio.get_running_loop()
        context, length = self.options.context, question.prompt_tokens
        if context and length + self.options.max_tokens // LEAST_PART > context:
            text = f"{self.name} reads at most {context} tokens, and the question is about {length} of them"
            raise ContextFullError(f"{text}; shorten it, or serve the model with a larger context", context)
        left_s = self.patience.deadline_s
        attempt = 0
        answered_before = sum(server.answers for server in self.servers)
        problem: ModelError | None = None
        dialects: dict[str, Dialect] = {}
        while True:
            server = min(self.servers, key=lambda one: (one.breaker.is_open, one.in_flight))
            if server.over and loop.time() < server.over_until_s:
                raise BudgetError(server.over, spent=server.over, is_servers=True)
            dialect = dialects.get(server.base_url) or server.dialect(self.name)
            model = f"{self.name} {server.where}"
            held = await self.budget.reserve(question.prompt_tokens, self.options.max_tokens, server.prices, model)
            server.in_flight += 1
            began_s = loop.time()
            try:
                if isinstance(problem, SlowDownError) and answered_before == sum(s.answers for s in self.servers):
                    is_in_time = await server.pace.turn(left_s)  # it says nothing but "slower": that is an outage
                    left_s -= loop.time() - began_s
                    if not is_in_time:
                        raise problem
                else:
                    await server.pace.turn(math.inf)
                began_s = loop.time()
                answer = await self._attempt(server, question, dialect, held, left_s, problem)
                return replace(answer, took_s=round(loop.time() - began_s, 6))
            except RefusedError as refusal:
                dialects[server.base_url] = self._otherwise(dialect, refusal, question)
                continue
            except ModelError as failure:
                attempt += 1
                if not failure.may_retry or attempt == self.patience.attempts:
                    raise
                problem = failure
            finally:
                self.budget.release(held)
                server.in_flight -= 1
                left_s -= loop.time() - began_s
            self.retries += 1
            left_s -= await self._pause(server, problem, attempt, left_s)

    def _otherwise(self, dialect: Dialect, refusal: RefusedError, question: Question) -> Dialect:
        """How to ask after a refusal. Raises where nothing is left to try, or an option has to go."""
        if refusal.is_about_images:
            raise refusal  # who asks may leave them out
        if refusal.room is not None:
            if shorter := dialect.with_room(refusal.room, self.options.max_tokens):
                return shorter
            raise refusal.full or refusal
        sent = body_of(self.name, question, self.options, dialect)
        named = [key for key in self.options.given if re.search(rf"\b{re.escape(key)}\b", refusal.said)]
        if named:
            raise ModelError(f"{refusal}; take {' and '.join(named)} away from what this model is asked with")
        has_system = bool(question.system) and dialect.has_system
        other = dialect.after(refusal.said, [*sent, "system"] if has_system else sent)
        if other is None:
            raise refusal
        return other

    async def _pause(self, server: Server, problem: ModelError, attempt: int, left_s: float) -> float:
        """Wait before asking again; for how long. An open breaker and a slower pace keep their own time."""
        if isinstance(problem, SlowDownError):
            if problem.retry_after_s >= left_s:
                raise problem
            return 0.0
        if server.breaker.is_open and len(self.servers) == 1:
            return 0.0
        wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (attempt - 1)) * (1 + 0.5 * self._jitter())
        wait_s = max(wait_s, problem.retry_after_s)
        if wait_s >= left_s:
            raise problem
        await asyncio.sleep(wait_s)
        return wait_s

    async def _attempt(
        self,
        server: Server,
        question: Question,
        dialect: Dialect,
        held: Reservation,
        left_s: float,
        problem: ModelError | None,
    ) -> ModelAnswer:
        loop = asyncio.get_running_loop()
        is_probe = False
        try:
            async with asyncio.timeout(max(0.0, left_s)):
                is_probe = await server.breaker.enter()
                try:
                    async with asyncio.timeout(self.patience.attempt_s):
                        answer = await self._once(server, question, dialect, held)
                except TimeoutError as slow:
                    text = f"{server.where} did not answer within {self.patience.attempt_s:g} s"
                    raise ModelError(text, may_retry=True) from slow
        except TimeoutError as late:
            if problem is not None:
                raise ModelError(f"{problem} (asked for {self.patience.deadline_s:g} s)") from late
            raise ModelError(f"{server.where} did not answer within {self.patience.deadline_s:g} s") from late
        except SlowDownError as failure:
            server.breaker.succeeded()
            server.pace.slower(loop.time(), failure.retry_after_s)
            raise
        except DeclinedError as declined:
            server.breaker.succeeded()
            return ModelAnswer(str(declined), ending="declined")
        except RefusedError:
            server.breaker.succeeded()
            raise
        except BudgetError as over:
            if over.is_servers:
                server.over, server.over_until_s = str(over), loop.time() + OVER_S
            raise
        except ModelError as failure:
            if failure.may_retry:
                server.breaker.failed(loop.time(), failure.retry_after_s, self._jitter(), is_probe=is_probe)
            raise
        else:
            server.breaker.succeeded()
            server.pace.answered(loop.time())
            server.answers += 1
            server.dialects[self.name] = dialect.remembered
            return answer
        finally:
            if is_probe:
                server.breaker.left()

    async def _once(self, server: Server, question: Question, dialect: Dialect, held: Reservation) -> ModelAnswer:
        longest = self.budget.take_call(server.where, question.prompt_tokens, longest_answer=self.options.max_tokens)
        longest = min(longest, dialect.most_tokens or longest)
        if self.options.context:
            longest = min(longest, self.options.context - question.prompt_tokens)
        options = replace(self.options, max_tokens=longest)
        reader = AnswerReader(server.where, stream=options.stream)
        refusals = RefusalReader(server.where, self.name, server.key, server.key_name)
        headers = headers_of(server.base_url, server.key)
        if problem := key_problem(server.key, server.key_name):
            raise ModelError(problem)
        url = url_of(server.base_url)
        with self._paid(question, reader, held, server) as bill:
            try:
                data = json.dumps(body_of(self.name, question, options, dialect)).encode()
                got = await self._http.post(url, server.where, headers, data, reader.take)
                if got.status != 200:
                    bill.is_free = True
                    raise refusals.error(got, question)
                answer = reader.answer(got.body, got.headers.get("content-type", ""))
            except UnreachableError:
                bill.is_free = True
                raise
            except ServerFailedError as failure:
                raise refusals.error(failure.as_answer(), question) from failure
        left_out = dialect.left_out(options.temperature, has_schema=bool(question.schema))
        return replace(answer, left_out=left_out)

    @contextmanager
    def _paid(self, question: Question, reader: AnswerReader, held: Reservation, server: Server) -> Iterator[_Bill]:
        """Count what the call did cost: what the server tells, or an estimate."""
        bill = _Bill()
        try:
            yield bill
        finally:
            if not bill.is_free:
                prompt, completion = reader.usage or (question.prompt_tokens, estimated_tokens(reader.characters))
                self.budget.cost(held, prompt + completion, self.budget.price(prompt, completion, server.prices))
                try:
                    self.budget.count_tokens(prompt, completion, is_estimate=reader.usage is None, prices=server.prices)
                except OSError:
                    pass  # counted in memory; the next call is refused where the disk is still full


@dataclass(slots=True)
class _Bill:
    is_free: bool = False
