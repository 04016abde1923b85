"""Calls to the world outside, which `clock.external` awaits: what can be awaited, and for how long."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

ANSWER_TIMEOUT_S = 300.0
"""A call to the outside world is given up after so long, s of real time, where nothing else is said."""
CLOSING_S = 1.0  # for a call that was given up, to close what it has opened


def as_awaitable(
    call: Awaitable[T] | Callable[[], Awaitable[T]], latency_s: float = 0.0, timeout_s: float = ANSWER_TIMEOUT_S
) -> Awaitable[T]:
    """What `Clock.external` was given, as something to await. Raises UserError where it is nothing of the kind."""
    import inspect  # not at the top, likewise for `threading`: an emergency stop at a terminal does without

    from runtime.errors import UserError

    for name, value_s, is_enough in (("latency_s", latency_s, "0 or more"), ("timeout_s", timeout_s, "more than 0")):
        is_number = isinstance(value_s, int | float) and not isinstance(value_s, bool)
        if not is_number or not 0 <= value_s < float("inf") or (name == "timeout_s" and not value_s):
            if inspect.iscoroutine(call):
                call.close()
            raise UserError(f"clock.external: {name} is {value_s!r}; expected seconds, {is_enough}")
    if inspect.iscoroutine(call) and inspect.getcoroutinestate(call) != inspect.CORO_CREATED:
        raise UserError(
            f"clock.external: {call.__qualname__}(...) was awaited before, and is answered once; call it again"
        )
    made: object = call() if callable(call) and not inspect.isawaitable(call) else call
    if inspect.isawaitable(made):
        return made
    if made is not call:
        name = getattr(call, "__qualname__", repr(call))
        raise UserError(
            f"clock.external takes a call that can be awaited, and {name} is a plain function: make it `async def`, or "
            "call it in a handler that is marked blocking=True"
        )
    raise UserError(
        f"clock.external takes a call that can be awaited, and was given a {type(made).__name__}: the call is over "
        "already; write `await self.clock.external(client.ask(...), latency_s=1.0)` with an async client"
    )


def close_call(call: Awaitable[object]) -> None:
    """Let go of a call that is not made."""
    if hasattr(call, "close"):
        call.close()


async def answer_of(call: Awaitable[T], timeout_s: float) -> T:
    """What the call answers. It is cancelled after so long, and where its caller is; what it returns then is dropped.

    Raises NoAnswerError.
    """
    import asyncio

    task = asyncio.ensure_future(call)
    try:
        await asyncio.wait((task,), timeout=timeout_s)
        if task.done():
            return task.result()
    finally:
        if not task.done():
            task.cancel()
            task.add_done_callback(lambda over: over.cancelled() or over.exception())  # nobody asks for it any more
            await asyncio.wait((task,), timeout=CLOSING_S)
    raise no_answer(timeout_s)


def no_answer(timeout_s: float) -> Exception:
    """What a call raises to which nobody answers."""
    from runtime.errors import NoAnswerError

    return NoAnswerError(
        f"no answer from the world outside within {timeout_s:g} s; the call was cancelled; give clock.external another "
        "timeout_s where answers take longer",
        waited_s=timeout_s,
    )
