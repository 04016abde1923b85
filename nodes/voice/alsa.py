"""Keeps ALSA, Linux's sound library, from writing pages on stderr whenever a device cannot be opened."""

from __future__ import annotations

import ctypes

_Handler = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p)
_say_nothing = _Handler(lambda *_: None)  # kept: the library calls it for as long as it is loaded


def hush() -> None:
    """What it would say is told once, in a sentence, by who opens the device; elsewhere than on Linux: nothing."""
    try:
        ctypes.CDLL("libasound.so.2").snd_lib_error_set_handler(_say_nothing)
    except (OSError, AttributeError):
        pass  # there is no ALSA here to be hushed
