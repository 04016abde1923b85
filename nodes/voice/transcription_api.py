"""`Transcriber`: what is said in a sound, asked of a server with OpenAI's audio API: in the cloud, or Whisper here.

One deadline, no retry: by the time of a second answer the person has said something else. Errors are sentences without
the key.
"""

from __future__ import annotations

import asyncio

import openai

from nodes.model_answers import BudgetError, ChatSettings, ModelError
from nodes.model_budget import Budget
from nodes.voice.wav import as_wav

LONGEST_TEXT = 4000


class Transcriber:
    """Asks one model, and counts its calls; what the budget does not allow never leaves."""

    def __init__(
        self, settings: ChatSettings, *, language: str = "", keep_open: bool = True, budget: Budget | None = None
    ) -> None:
        """`language` as in "en"; "" leaves it to the model. Without `keep_open` each call has its own connection."""
        self.settings = settings
        self.budget = budget or Budget(max_calls=settings.max_calls)
        self._language = language or openai.omit
        self._sdk = openai.AsyncOpenAI(
            api_key=settings.api_key or "none",  # the SDK insists on one; local servers do not look at it
            base_url=settings.base_url,
            timeout=settings.deadline_s + 1.0,  # ours comes first
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(),
            default_headers=None if keep_open else {"Connection": "close"},
        )

    async def text_of(self, samples: bytes) -> str:
        """The words in 16-bit samples at 16 kHz, "" for none. Raises ModelError; BudgetError where no call is left."""
        where = self.settings.where
        try:
            if spent := self.budget.refusal():
                raise BudgetError(f"{where} is not asked any more: {spent}")
            self.budget.count_call()
        except OSError as problem:
            raise ModelError(f"{where} is not asked: the call cannot be noted ({problem.strerror})") from problem
        try:
            async with asyncio.timeout(self.settings.deadline_s):
                answer = await self._sdk.audio.transcriptions.create(
                    model=self.settings.model,
                    file=("speech.wav", as_wav(samples), "audio/wav"),
                    language=self._language,
                    response_format="json",
                )
        except TimeoutError as problem:
            raise ModelError(f"{where} did not answer within {self.settings.deadline_s:g} s") from problem
        except openai.APIStatusError as problem:
            raise self._status_error(problem) from problem
        except openai.APIConnectionError as problem:
            why = str(problem.__cause__ or problem).partition("\n")[0]
            raise ModelError(f"{where} cannot be reached or hung up: {self._clean(why)}") from problem
        except Exception as problem:  # the SDK lets through what its HTTP library and its decoder raise on nonsense
            raise ModelError(f"{where} sent no transcription ({type(problem).__name__})") from problem
        text = getattr(answer, "text", None)
        if not isinstance(text, str):
            raise ModelError(f"{where} sent no transcription")
        return text.strip()[:LONGEST_TEXT]

    async def close(self) -> None:
        """Close the connections."""
        await self._sdk.close()

    def _status_error(self, problem: openai.APIStatusError) -> ModelError:
        where, status = self.settings.where, problem.status_code
        if status in (401, 403):
            return ModelError(f"{where} refused the key ({status}); check {self.settings.prefix}_API_KEY")
        if status == 404:
            return ModelError(f"{where} knows no model {self.settings.model!r} or no /audio/transcriptions (404)")
        if status == 429:
            return ModelError(f"{where} asks for fewer calls (429)")
        return ModelError(f"{where} failed ({status}): {self._clean(problem.message)[:200]}")

    def _clean(self, text: str) -> str:
        return text.replace(self.settings.api_key, "***") if self.settings.api_key else text
