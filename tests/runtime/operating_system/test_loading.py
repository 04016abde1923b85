"""Who interrupts a command while it loads interrupts no compiled module, and is heard after it."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress

import pytest

from runtime.operating_system.loading import WholeImports


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def interrupted(times: int) -> int:
    """How many of the interrupts came before the end of what is loaded."""
    came = 0
    with suppress(KeyboardInterrupt), WholeImports(), WholeImports():  # one in the other, as imports are
        for _ in range(times):
            interrupt()
            came += 1
        return -1  # which is passed over: the end raises
    return came


def test_an_interrupt_takes_effect_after_what_is_loaded() -> None:
    assert interrupted(1) == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_one_takes_effect_at_once() -> None:
    assert interrupted(3) == 1, "the second one came through"


def test_handlers_of_others_and_other_threads_are_left_alone() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        with WholeImports():
            interrupt()
            assert heard == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.MonkeyPatch.context() as patch:
        problems: list[BaseException] = []
        patch.setattr(threading, "excepthook", lambda args: problems.append(args.exc_value))

        def load() -> None:
            with WholeImports():
                pass

        thread = threading.Thread(target=load)
        thread.start()
        thread.join(10)
        assert problems == []
