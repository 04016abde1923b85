"""OpenAI's SDK as we use it: a client without its own patience, and its errors as sentences without the key."""

from __future__ import annotations

import openai

from nodes.models.answers import ChatSettings, ModelError
from nodes.models.refusals import retry_after_s
from runtime.hosts.proxies import is_here


def new_sdk(settings: ChatSettings, *, keep_open: bool) -> openai.AsyncOpenAI:
    """A client for one server; without `keep_open` each call has a connection of its own."""
    return openai.AsyncOpenAI(
        api_key=settings.api_key or "none",  # the SDK insists on one; local servers do not look at it
        base_url=settings.base_url,
        timeout=settings.deadline_s + 1.0,  # ours comes first
        max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(
            trust_env=not is_here(settings.base_url)
        ),  # the SDK's own starts tasks
        default_headers=None if keep_open else {"Connection": "close"},
    )


def model_error(problem: Exception, settings: ChatSettings, offers: str) -> ModelError:
    """The error to raise; `offers` is what was asked of the server: "chat completions"."""
    where = settings.where
    if isinstance(problem, openai.BadRequestError | openai.UnprocessableEntityError):
        return ModelError(f"{where} refused the request ({problem.status_code}): {_clean(problem.message, settings)}")
    if isinstance(problem, openai.APIStatusError):
        return _status_error(problem, settings, offers)
    if isinstance(problem, openai.APITimeoutError):
        return ModelError(f"{where} did not answer in time", may_retry=True)
    if isinstance(problem, openai.APIConnectionError):
        why = str(problem.__cause__ or problem).partition("\n")[0]
        return ModelError(f"{where} cannot be reached or hung up: {_clean(why, settings)}", may_retry=True)
    # The SDK lets through what its HTTP library and its decoder raise on nonsense.
    return ModelError(f"{where} sent no {offers} ({type(problem).__name__})", may_retry=True)


def is_free(problem: Exception) -> bool:
    """Whether a call that ended so costs nothing: the server refused it, or it did not get as far as the server."""
    if isinstance(problem, openai.APIConnectionError):
        return type(problem.__cause__).__name__ in ("ConnectError", "ConnectTimeout")
    return isinstance(problem, openai.APIStatusError)


def _status_error(problem: openai.APIStatusError, settings: ChatSettings, offers: str) -> ModelError:
    where, status = settings.where, problem.status_code
    if status in (401, 403):
        return ModelError(f"{where} refused the key ({status}); check {settings.prefix}_API_KEY")
    if status == 404:
        return ModelError(f"{where} knows no model {settings.model!r} or no {offers} (404)")
    if status == 429:
        after_s = retry_after_s(problem.response.headers, problem.message)
        return ModelError(f"{where} asks for fewer calls (429)", may_retry=True, retry_after_s=after_s)
    return ModelError(f"{where} failed ({status})", may_retry=status >= 500)


def _clean(text: str, settings: ChatSettings) -> str:
    return (text.replace(settings.api_key, "***") if settings.api_key else text)[:200]
