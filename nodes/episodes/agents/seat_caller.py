"""`SeatCaller`: one question to one model, answered from the log where it was answered before.

An outage is never an answer: what cannot be asked raises `OutageError`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from nodes.episodes.agents.agent_spec import ACT_TOKENS, AgentSpec
from nodes.models.answers import BudgetError, ModelError
from nodes.models.chat_format import ModelAnswer, Question
from nodes.models.json_reading import UnreadableError
from nodes.models.model import Model
from nodes.models.refusals import ContextFullError
from nodes.models.servers import Servers
from runtime.errors import PolyrhythmError


class OutageError(PolyrhythmError):
    """A model could not be asked; the episode fails and can be resumed."""


class BudgetSpentError(OutageError):
    """The run may make no more calls."""


class AnswerStore(Protocol):
    """Remembers answers, so that no call is made twice."""

    def find_answer(self, seat: int, number: int, sha: str) -> ModelAnswer | None:
        """The answer stored for this call; None where there is none. Raises where it was another question."""
        return None

    def keep_answer(
        self, seat: int, number: int, what: str, model: str, prompt: str, sha: str, answer: ModelAnswer
    ) -> None:
        """Store an answer for good before it is used."""
        return


class NoStore(AnswerStore):
    """Remembers nothing."""


def sha_of(prompt: str) -> str:
    """A prompt's short name in the log."""
    return hashlib.sha256(prompt.encode("utf-8", errors="replace")).hexdigest()[:16]


Ask = Callable[[str, dict[str, object]], Awaitable[ModelAnswer]]
Read = TypeVar("Read")


def asked_again(prompt: str, problem: object) -> str:
    """What is asked after an answer that nobody can read, and why it is."""
    return f"{prompt}\n\nYour last answer could not be read ({problem}). Answer again, as asked."


class SeatCaller:
    """The calls of one seat (or judge) of one episode, numbered from 1."""

    def __init__(
        self,
        spec: AgentSpec,
        servers: Servers,
        store: AnswerStore,
        seat: int,
        ask: Ask | None = None,
        *,
        tokens: int = ACT_TOKENS,
        after: int = 0,
    ) -> None:
        """`ask` stands in for the server; `tokens` is how long an answer may be where the spec does not say.

        `after`: the number of the last call that is not to be given back from the log.
        """
        self.spec = spec
        self.calls = after
        self._after = after
        self.repeated = 0
        self._model: Model | None = None
        self._servers = servers
        self._store = store
        self._seat = seat
        self._ask = ask
        self._tokens = tokens

    @property
    def is_replay(self) -> bool:
        """Whether all that was asked so far stood in the log, so that asking on asks anew."""
        return 0 < self.calls - self._after == self.repeated

    async def ask(self, prompt: str, schema: dict[str, object], what: str, sha: str = "") -> ModelAnswer:
        """The answer; `sha` is the prompt's, where the caller has it. Raises OutageError."""
        self.calls += 1
        number, sha = self.calls, sha or sha_of(prompt)
        stored = self._store.find_answer(self._seat, number, sha)
        if stored is not None:
            self.repeated += 1
            return stored
        answer = await (self._ask(prompt, schema) if self._ask else self._from_server(prompt, schema))
        self._store.keep_answer(self._seat, number, what, answer.by or self.spec.logged, prompt, sha, answer)
        return answer

    async def ask_for(
        self, prompt: str, schema: dict[str, object], what: str, read: Callable[[ModelAnswer], Read], again: str = ""
    ) -> Read:
        """What `read` makes of the answer; one that it cannot read is asked for once more, labelled `again` in the log.

        Raises OutageError, UnreadableError.
        """
        try:
            return read(await self.ask(prompt, schema, what))
        except UnreadableError as problem:
            return read(await self.ask(asked_again(prompt, problem), schema, again or what))

    async def _from_server(self, prompt: str, schema: dict[str, object]) -> ModelAnswer:
        if self._model is None:
            options = self.spec.options_for(self._tokens)
            self._model = self._servers.model(self.spec.model, self.spec.address, options, self.spec.fallback)
        system, text = "", prompt
        if self.spec.has_system:
            system, _, text = prompt.partition("\n\n")
        try:
            return await self._model.ask(Question(system, text, schema))
        except BudgetError as problem:
            aside = "; the longest answer is set aside before each call, so less may be used"
            raise BudgetSpentError(problem.spent + ("" if problem.is_servers else aside)) from problem
        except ContextFullError as problem:
            return ModelAnswer(str(problem), ending="full")  # it stands in the log, so that nobody asks that again
        except ModelError as problem:
            raise OutageError(str(problem)) from problem
