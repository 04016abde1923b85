"""Words made sound by a server that speaks OpenAI's `/v1/audio/speech`: in the cloud, or at home (Kokoro, Speaches).

As for chat: one total deadline and at most one retry, both ours; cancelling closes the connection; errors are sentences
without the key; what the budget does not allow never leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nodes.models.answers import ChatSettings, ModelError, settings_from
from nodes.models.budget import Budget, estimated_tokens
from nodes.models.openai_errors import is_free, model_error, new_sdk
from nodes.voice.speaking.playing import VoiceError
from nodes.voice.speaking.synthesis import AS_EVER, MOST_BYTES, Manner, decoded

DEFAULT_MODEL = "gpt-4o-mini-tts"
DEFAULT_VOICE = "alloy"


class SpeechApi:
    """A voice on a server."""

    def __init__(
        self, settings: ChatSettings, voice: str, *, jitter: Callable[[], float], keep_open: bool, budget: Budget
    ) -> None:
        """`jitter` gives 0 to 1; without `keep_open` each sentence has a connection of its own."""
        self.settings = settings
        self.budget = budget
        self._voice = voice or DEFAULT_VOICE
        self._jitter = jitter
        self._sdk = new_sdk(settings, keep_open=keep_open)

    async def sound(self, text: str, manner: Manner = AS_EVER) -> bytes:
        """The samples. Raises VoiceError and ModelError; BudgetError where no call is left."""
        where, deadline_s = self.settings.where, self.settings.deadline_s
        try:
            async with asyncio.timeout(deadline_s):
                data = await self._with_one_retry(text, manner)
        except TimeoutError as problem:
            raise ModelError(f"{where} did not answer within {deadline_s:g} s") from problem
        return await decoded(data, where)

    async def close(self) -> None:
        await self._sdk.close()

    async def _with_one_retry(self, text: str, manner: Manner) -> bytes:
        try:
            return await self._once(text, manner)
        except ModelError as problem:
            if not problem.may_retry:
                raise
            wait_s = problem.retry_after_s or 0.2 + 0.3 * self._jitter()
            if wait_s >= self.settings.deadline_s:
                raise
        await asyncio.sleep(wait_s)
        return await self._once(text, manner)

    async def _once(self, text: str, manner: Manner) -> bytes:
        tokens = estimated_tokens(len(text))
        self.budget.take_call(self.settings.where, tokens)
        cost = tokens
        try:
            return await self._wav(text, manner)
        except (ModelError, VoiceError):
            raise
        except Exception as problem:
            cost = 0 if is_free(problem) else tokens
            raise model_error(problem, self.settings, "speech") from problem
        finally:
            if cost:
                self._pay(cost)

    async def _wav(self, text: str, manner: Manner) -> bytes:
        parts: list[bytes] = []
        size = 0
        request = self._sdk.audio.speech.with_streaming_response.create(
            model=self.settings.model,
            voice=self._voice,
            input=text,
            response_format="wav",
            extra_body=None if manner.speed == 1.0 else {"speed": manner.speed},  # not every server knows it
        )
        async with request as response:
            async for part in response.iter_bytes(1 << 16):
                parts.append(part)
                size += len(part)
                if size > MOST_BYTES:
                    raise VoiceError(f"{self.settings.where} sent more than {MOST_BYTES >> 20} MiB for one sentence")
        return b"".join(parts)

    def _pay(self, tokens: int) -> None:
        """No server tells what a sentence cost: its text is counted, at the price of what is read."""
        try:
            self.budget.count_tokens(tokens, 0, is_estimate=True)
        except OSError:
            pass  # counted in memory; the next call is refused where the disk is still full


def speech_settings(model: str, base_url: str, deadline_s: float, max_calls: int) -> ChatSettings:
    """Parameters, else VOICE_BASE_URL and VOICE_MODEL, else OpenAI's; the key only from VOICE_API_KEY."""
    return settings_from(
        "VOICE",
        model=model,
        base_url=base_url,
        default_model=DEFAULT_MODEL,
        deadline_s=deadline_s,
        max_calls=max_calls,
    )
