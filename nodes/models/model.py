"""`Model.ask`: one question to a model behind chat completions: retries until the deadline, pace, breaker, budget.

All that ask the same server share what is known of it. Where it fails, all stop, one asks again after a growing pause,
and the others go on when that one was answered. Where it says 429, all ask slower, and slowly faster again. Waiting for
one's turn is no part of the deadline; an outage is.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from nodes.models.answers import ModelError
from nodes.models.budget import Budget, Prices, Reservation, estimated_tokens
from nodes.models.chat_format import AnswerReader, ModelAnswer, ModelOptions, Question, body_of
from nodes.models.dialect import Dialect
from nodes.models.http_client import HttpAnswer, HttpClient, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 8.0
FAILURES_TO_OPEN = 3
"""So many failures in a row, of whoever asks, and the server counts as down."""
OUT_OF_MONEY = {"insufficient_quota", "billing_not_active", "billing_hard_limit_reached"}
"""What a 429 calls itself, by code or type, where it means the account and not the rate."""
LONGEST_REFUSAL = 10_000
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


class RefusedError(ModelError):
    """The server does not take the request as it is; perhaps it does in another dialect."""

    def __init__(self, text: str, said: str) -> None:
        super().__init__(text)
        self.said = said  # by the server, whole: not for people, a key may be in it


class SlowDownError(ModelError):
    """The server asks for fewer calls (429)."""


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

    def __post_init__(self) -> None:
        self.pace = RequestPacer(self.calls_per_minute)

    @property
    def where(self) -> str:
        """Host and port, which is all that messages show of the address."""
        parts = urlsplit(self.base_url)
        return f"{parts.hostname or self.base_url}" + (f":{parts.port}" if parts.port else "")

    def hides_key(self, text: str) -> str:
        """The text without the key."""
        return text.replace(self.key, "***") if self.key else text


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
    ) -> None:
        self.name = name
        self.servers = tuple(servers)
        self.options = options
        self.patience = patience
        self.budget = budget
        self.retries = 0
        self._http = http
        self._jitter = jitter

    async def ask(self, question: Question) -> ModelAnswer:
        """The answer. Raises ModelError: BudgetError where no call is left."""
        loop = asyncio.get_running_loop()
        left_s = self.patience.deadline_s
        attempt = 0
        answered_before = sum(server.answers for server in self.servers)
        problem: ModelError | None = None
        dialects: dict[str, Dialect] = {}
        while True:
            server = min(self.servers, key=lambda one: (one.breaker.is_open, one.in_flight))
            dialect = dialects.get(server.base_url) or server.dialects.get(self.name, Dialect())
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
                return replace(answer, took_s=round(loop.time() - began_s, 3))
            except RefusedError as refusal:
                if refusal.is_about_images:
                    raise  # who asks may leave them out
                other = dialect.after(refusal.said)
                if other is None and self.options.stream and dialect.tells_usage:
                    other = replace(dialect, tells_usage=False)  # an older server; what it says costs is estimated
                if other is None:
                    raise
                dialects[server.base_url] = other
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
        except RefusedError:
            server.breaker.succeeded()
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
        body = body_of(self.name, question, replace(self.options, max_tokens=longest), dialect)
        reader = AnswerReader(server.where, stream=self.options.stream, told=lambda body: _told(server, body))
        headers = {"content-type": "application/json"}
        headers |= {"authorization": f"Bearer {server.key}"} if server.key else {}
        if not headers.get("authorization", "").isascii() or "\n" in server.key:
            raise ModelError(f"{server.key_name} holds characters that no key has")
        url = server.base_url.rstrip("/") + "/chat/completions"
        with self._paid(question, reader, held, server) as bill:
            try:
                got = await self._http.post(url, server.where, headers, msgspec.json.encode(body), reader.take)
            except UnreachableError:
                bill.is_free = True
                raise
            if got.status != 200:
                bill.is_free = True
                raise self._status_error(server, got)
            return reader.answer(got.body, got.headers.get("content-type", ""))

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

    def _status_error(self, server: Server, got: HttpAnswer) -> ModelError:
        where, status = server.where, got.status
        whole = got.body[:LONGEST_REFUSAL].decode("utf-8", errors="replace")
        said = server.hides_key(whole)[:200]
        told = _told(server, got.body)
        is_blind = _is_about_images(whole)
        if status in (400, 422):
            refusal = RefusedError(f"{where} refused the request ({status}): {said}", whole)
            refusal.is_about_images = is_blind
            return refusal
        if status in (401, 403):
            if not server.key:
                why = "it was sent none: name its variable in [servers.NAME] key, or set OPENAI_BASE_URL to this server"
                return ModelError(f"{where} refused the key ({status}); {why}")
            return ModelError(f"{where} refused the key ({status}); check {server.key_name}{told}")
        if status == 404:
            return ModelError(f"{where} knows no model {self.name!r} or no chat completions (404){told}")
        if 300 <= status < 400:
            return ModelError(f"{where} sends elsewhere ({status}); name the address itself")
        after_s = _seconds(got.headers.get("retry-after", ""))
        error = _error_of(whole)
        if status == 402 or (status == 429 and OUT_OF_MONEY & {str(error.get("code")), str(error.get("type"))}):
            return ModelError(f"{where} has no quota left for this key ({status}){told}")  # waiting would not help
        if status == 429:
            text = f"{where} asks for fewer calls (429){told}"
            return SlowDownError(text, may_retry=True, retry_after_s=after_s or 1.0)
        may_retry = (status >= 500 and not is_blind) or status == 408
        return ModelError(
            f"{where} failed ({status}){told}", may_retry=may_retry, retry_after_s=after_s, is_about_images=is_blind
        )


def _told(server: Server, body: bytes) -> str:
    """What a server says went wrong, without its key, as the end of an error's sentence; "" where it says nothing."""
    whole = body[:LONGEST_REFUSAL].decode("utf-8", errors="replace")
    return f"; it says: {server.hides_key(_sentence(whole))[:200]}" if whole.strip() else ""


def _sentence(body: str) -> str:
    """The server's own words: the error's message where the body is the API's, else its beginning on one line."""
    error = _error_of(body)
    return " ".join(str(error.get("message", error)).split()) if error else " ".join(body.split())


def _error_of(body: str) -> dict[str, object]:
    """The error in a body of the API's; {} where it is no such body."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return {}
    error = found.get("error", found) if isinstance(found, dict) else found
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, dict) else {}


def _is_about_images(body: str) -> bool:
    """Whether it is refused because of the images: "image input is not supported - hint: ..."."""
    said = body.lower()
    return any(word in said for word in ("image", "vision", "multimodal")) and any(
        word in said for word in ("not support", "unsupported", "not allowed", "does not accept", "only text")
    )


@dataclass(slots=True)
class _Bill:
    is_free: bool = False


def _seconds(text: str) -> float:
    """Of a Retry-After header, at most an hour; 0 where it has none or a date."""
    return min(float(text), 3600.0) if text.replace(".", "", 1).isdecimal() else 0.0
