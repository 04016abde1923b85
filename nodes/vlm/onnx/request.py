"""`OnnxRequest`: questions to a model in this process, each in a thread, so that nothing waits for an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from nodes.models.answers import ModelError
from nodes.models.budget import Budget
from nodes.models.request import ModelRequest
from nodes.msgs import Image
from nodes.vlm.eyes.model_prompt import skills_of
from runtime.clock import Clock, to_ns, to_s
from runtime.errors import PolyrhythmError

if TYPE_CHECKING:
    from nodes.vlm.onnx.eyes import LocalVisionModel, Look

LATE = 0.7
"""After this part of its time an answer is brought to its end."""


class OnnxRequest(ModelRequest):
    """Cancelling a request stops the model in the middle of a token; its thread ends by itself, soon after.

    In virtual time an answer has all the time that it takes: what the clock on the wall says decides nothing.
    """

    def __init__(
        self, *, latency_s: float, deadline_s: float, max_calls: int, max_tokens: int, max_objects: int
    ) -> None:
        super().__init__("", latency_s=latency_s, max_calls=max_calls)
        self.deadline_s = deadline_s
        self.max_tokens = max_tokens
        self.max_objects = max_objects
        self.answers = 0  # complete ones, and in how much time
        self.answering_ns = 0
        self.answer_tokens = 0
        self._eyes: LocalVisionModel | None = None
        self._last_prompt = 0

    def start(self, clock: Clock, eyes: LocalVisionModel, budget: Budget) -> None:
        """From now on these eyes are asked."""
        self._begin(clock, budget)
        self._eyes = eyes
        self.model = eyes.name

    def _answer(self, *, system: str, text: str, schema: dict[str, object], image: Image | None) -> Awaitable[str]:
        """The instructions and the form of the answer but its skills are known to the eyes since they were opened."""
        if image is None:
            raise ValueError("there is no image to look at")
        return self._look(text, image, skills_of(schema))

    async def _look(self, text: str, image: Image, skills: tuple[str, ...]) -> str:
        from nodes.vlm.onnx.eyes import Look

        assert self._eyes is not None
        assert self._clock is not None
        where = f"model {self.model!r}"
        longest = self.budget.take_call(where, self._last_prompt, longest_answer=self.max_tokens)
        now_ns, begun_ns = self._clock.now_ns, self._clock.now_ns()
        is_timed = not self._clock.is_virtual
        late_ns = begun_ns + to_ns(self.deadline_s * LATE)
        look = Look(longest, self.max_objects, lambda: is_timed and now_ns() > late_ns, skills)
        try:
            async with asyncio.timeout(self.deadline_s if is_timed else None):
                answer = await asyncio.to_thread(self._eyes.answer, text, image.rgb, look)
        except TimeoutError as problem:
            raise ModelError(f"{where} did not answer within {self.deadline_s:g} s") from problem
        except PolyrhythmError as problem:
            raise ModelError(str(problem)) from problem
        finally:
            look.stop.set()
            self._count(look)
        self.answers += 1
        self.answering_ns += now_ns() - begun_ns if is_timed else 0
        self.answer_tokens += look.answer_tokens
        return answer

    def _count(self, look: Look) -> None:
        self._last_prompt = look.prompt_tokens or self._last_prompt
        try:
            self.budget.count_tokens(look.prompt_tokens, look.answer_tokens)
        except OSError:
            pass  # counted in memory; the next call is refused where the disk is still full

    def close(self) -> str:
        """What was asked, and how fast it was answered."""
        told = super().close()
        if not self.answering_ns:
            return told
        took_s = to_s(self.answering_ns)
        return f"{told}; {took_s / self.answers:.2f} s an answer, {self.answer_tokens / took_s:.1f} tokens/s"
