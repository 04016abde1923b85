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
from collections import deque
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
from nodes.models.refusals import OVER_S, ContextFullError, DeclinedError, RefusalReader, RefusedError, SlowDownError

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 8.0
FAILURES_TO_OPEN = 3
"""So many failures in a row, of whoever asks, and the server counts as down."""
LONGEST_HOLD_S = 60.0
"""So long does one 429 hold the others back, whatever it asks for; then one of them hears it for itself."""
REFUSED_IS_DOWN = 6
"""So many times asked for fewer calls, a second or more apart and with no answer in between, is an outage."""
PROBE_S = 4.0
"""So often is a server asked then."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an answer may take: all attempts together, one of them, and how many there may be (0: any number)."""

    deadline_s: float = 300.0
    attempt_s: float = 60.0
    attempts: int = 0


class RequestPacer:
    """When the next call may leave: at a given rate, slower after a 429, slowly faster again. Times are the loop's.

    It is not slower than half the best rate of answers so far, while a tenth of the calls is answered: 429s
    that come whatever the rate is do not end in a halt. Where nothing at all was answered for a while, that was an
    outage and tells nothing of the rate: it is asked every few seconds, and after the first answer as fast as before.
    """

    def __init__(self, calls_per_minute: float = 0.0) -> None:
        self._given_gap_s = 60.0 / calls_per_minute if calls_per_minute else 0.0
        self._gap_s = self._given_gap_s
        self._next_s = 0.0
        self._slowed_s = -1e9
        self._answered: deque[float] = deque(maxlen=200)
        self._lately: deque[bool] = deque(maxlen=20)  # was the call answered, and no 429?
        self._best = 0.0  # answers a second, over ten of them
        self._refused = 0  # times in a row that it asked for fewer calls, with no answer in between
        self._before = (0.0, 0.0)  # gap and best rate before the first of them
        self._faster = asyncio.Event()

    async def turn(self, longest_s: float) -> bool:
        """Wait for the time at which a call may leave; False where that is not within so many seconds."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + longest_s
        while (at_s := self.next_s(now_s := loop.time())) > now_s:
            faster = self._faster
            try:
                async with asyncio.timeout_at(min(at_s, until_s)):
                    await faster.wait()  # then all places are given anew
            except TimeoutError:
                return at_s <= until_s
        return True

    def next_s(self, now_s: float) -> float:
        """The time at which the call that asks now may leave; it has that place."""
        at_s = max(now_s, self._next_s)
        self._next_s = at_s + self._gap_s
        return at_s

    def slower(self, now_s: float, after_s: float) -> None:
        """The server asks for fewer calls, and for none before `after_s` seconds have passed."""
        self._lately.append(False)
        if now_s - self._slowed_s > 1.0:  # those that were under way together are told the same thing
            if not self._refused:
                self._before = (self._gap_s, self._best)
            self._refused += 1
            if 10 * sum(self._lately) < len(self._lately):
                self._best /= 1.5  # the server can do less than it could
            lately = sum(at_s > now_s - 2.0 for at_s in self._answered) / 2.0
            known_s = 1.25 / lately if lately else 0.1
            slower_s = max(1.5 * self._gap_s, known_s if not self._gap_s else 0.0)
            self._gap_s = max(self._gap_s, min(slower_s, 2.0 / self._best if self._best else 30.0, 30.0))
            if self._refused >= REFUSED_IS_DOWN:
                self._gap_s = min(self._gap_s, max(PROBE_S, self._given_gap_s))
            self._slowed_s = now_s
        self._next_s = max(self._next_s, now_s + min(after_s, LONGEST_HOLD_S))

    def answered(self, now_s: float) -> None:
        """A call was answered: a little faster, down to the given rate.

        By 15 % up to 0.7 of the best rate so far, and then by a fiftieth, or by 0.1 calls/s (at most by 15 %).
        """
        if self._refused >= REFUSED_IS_DOWN:
            gap_s, self._best = self._before
            self._gap_s = min(self._gap_s, max(gap_s, self._given_gap_s))
            self._lately.clear()
            self._next_s = now_s + self._gap_s
            self._faster.set()
            self._faster = asyncio.Event()
        self._refused = 0
        self._answered.append(now_s)
        self._lately.append(True)
        if len(self._answered) >= 10:
            self._best = max(self._best, 9.0 / max(2.0, now_s - self._answered[-10]))
        if self._gap_s > self._given_gap_s:
            rate = 1.0 / self._gap_s
            rate += 0.15 * rate if rate < 0.7 * self._best else max(0.02 * rate, min(0.1, 0.15 * rate))
            self._gap_s = max(self._given_gap_s, 1.0 / rate if rate < 1e4 else 0.0)


class Breaker:
    """Whether a server is up, by what became of the calls to it. Times are the loop's."""

    def __init__(self) -> None:
        self.failures = 0  # in a row
        self._until_s = 0.0
        self._pauses = 0
        self._is_probing = False
        self._changed = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether nobody but one prober asks."""
        return self.failures >= FAILURES_TO_OPEN

    def is_resting(self, now_s: float) -> bool:
        """Whether nobody at all asks now."""
        return self.is_open and now_s < self._until_s

    async def enter(self) -> bool:
        """Return when a call may start; True for the one that finds out whether the server is back."""
        while self.is_open:
            wait_s = self._until_s - asyncio.get_running_loop().time()
            if wait_s <= 0 and not self._is_probing:
                self._is_probing = True
                return True
            changed = self._changed
            try:
                async with asyncio.timeout(wait_s if wait_s > 0 else None):
                    await changed.wait()
            except TimeoutError:
                pass
        return False

    def succeeded(self) -> None:
        """The server answers; everybody goes on."""
        self.failures = self._pauses = 0
        self._wake()

    def failed(self, now_s: float, after_s: float, jitter: float, *, is_probe: bool) -> None:
        """A call came to nothing: the next pause is twice as long, if this one was not under way since before it."""
        self.failures += 1
        if self.is_open and (is_probe or now_s >= self._until_s):
            wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0**self._pauses) * (1 + 0.5 * jitter)
            self._pauses = min(self._pauses + 1, 20)
            self._until_s = now_s + max(wait_s, after_s)

    def left(self) -> None:
        """The prober is gone, whatever it found."""
        self._is_probing = False
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


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
