"""`Transcriber`: what is said in a sound, asked of a server with OpenAI's audio API: in the cloud, or Whisper here.

One deadline, no retry: by the time of a second answer the person has said something else. Errors are sentences without
the key.
"""

from __future__ import annotations

import asyncio

import openai

from nodes.models.answers import ChatSettings, ModelError
from nodes.models.budget import Budget
from nodes.models.openai_errors import model_error, new_sdk
from nodes.voice.hearing.recognition import clean
from nodes.voice.wav import as_wav


class Transcriber:
    """Asks one model, and counts its calls; what the budget does not allow never leaves."""

    def __init__(
        self, settings: ChatSettings, *, language: str = "", keep_open: bool = True, budget: Budget | None = None
    ) -> None:
        """`language` as in "en"; "" leaves it to the model. Without `keep_open` each call has its own connection."""
        self.settings = settings
        self.budget = budget or Budget(max_calls=settings.max_calls)
        self._language = language or openai.omit
        self._sdk = new_sdk(settings, keep_open=keep_open)

    async def text_of(self, samples: bytes) -> str:
        """The words in 16-bit samples at 16 kHz, "" for none. Raises ModelError; BudgetError where no call is left."""
        where = self.settings.where
        self.budget.take_call(where)
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
        except Exception as problem:
            raise model_error(problem, self.settings, "transcriptions") from problem
        text = getattr(answer, "text", None)
        if not isinstance(text, str):
            raise ModelError(f"{where} sent no transcriptions")
        return clean(text)

    @property
    def is_closed(self) -> bool:
        """Whether its connections are closed."""
        return bool(self._sdk.is_closed())

    async def close(self) -> None:
        """Close the connections."""
        await self._sdk.close()
