"""What microphones and loudspeakers both need of miniaudio: which there are, which is meant, how one is freed."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, Literal

import miniaudio

from runtime.errors import PolyrhythmError

REAL_BACKENDS = [
    backend for backend in miniaudio.Backend if backend not in (miniaudio.Backend.NULL, miniaudio.Backend.CUSTOM)
]
_quiet = ctypes.CFUNCTYPE(None)(lambda: None)  # called with more arguments than it looks at

Kind = Literal["microphone", "loudspeaker"]


class DeviceError(PolyrhythmError):
    """A microphone or a loudspeaker is not there or cannot be opened; the text says why, for people."""


def device_id(kind: Kind, name: str) -> object | None:
    """Of the one with that name, or with that in its name; None, the system's own choice, for "".

    Raises DeviceError where there is none. Then nothing is to be opened: each failure of ALSA's costs memory for good.
    """
    meant = _meant(kind, name)
    return meant["id"] if name else None


def channels_of(kind: Kind, name: str, at_least: int) -> int:
    """How many it is to be opened with, so that there are so many: no more than it takes. Raises DeviceError."""
    return fewest_channels([int(one["channels"]) for one in _meant(kind, name)["formats"]], at_least)


def fewest_channels(offered: list[int], at_least: int) -> int:
    """Of the numbers that a device offers, 0 for any, the smallest that is enough. Raises DeviceError for none."""
    if not offered or 0 in offered:
        return at_least
    enough = [one for one in offered if one >= at_least]
    if not enough:
        raise DeviceError(f"it has {max(offered)} channels, and so no channel {at_least}")
    return min(enough)


def _meant(kind: Kind, name: str) -> dict[str, Any]:
    """The one with that name, or with that in its name; for "" the first, which is the system's own."""
    there = _devices(kind)
    if not there:
        raise DeviceError(f"this machine has no {kind}")
    fitting = [one for one in there if name.casefold() in str(one["name"]).casefold()]
    if not fitting:
        raise DeviceError(f"no {kind} has {name!r} in its name; there are: {_names(there)}")
    exact = [one for one in fitting if one["name"] == name]
    return (exact or fitting)[0]


def not_opened(kind: Kind, problem: miniaudio.MiniaudioError) -> DeviceError:
    """The error to raise where the library could not open one."""
    return DeviceError(f"no {kind} can be opened ({why(problem)}); there are: {_names(_devices(kind))}")


def why(problem: miniaudio.MiniaudioError) -> str:
    """In the library's words."""
    return ", ".join(str(part) for part in problem.args)


class OwnContext:
    """Beside a device class of miniaudio: frees its context at the end, also where the device could not be opened.

    The library's classes leave it behind, some kilobytes each time that a device which is not there is looked for.
    """

    _made: Any = None

    def _make_context(self, *arguments: Any) -> Any:
        self._made = super()._make_context(*arguments)  # type: ignore[misc]  # the library's
        return self._made

    def close(self) -> None:
        super().close()  # type: ignore[misc]  # the library's
        made, self._made = self._made, None
        if made is not None:
            miniaudio.lib.ma_context_uninit(made)


def _devices(kind: Kind) -> list[dict[str, Any]]:
    _quiet_alsa()
    try:
        devices = miniaudio.Devices(REAL_BACKENDS)
        found = devices.get_captures() if kind == "microphone" else devices.get_playbacks()
    except miniaudio.MiniaudioError:
        return []
    return [one for one in found if not str(one["name"]).startswith("Discard all")]  # ALSA's, of and for nobody


def _names(there: list[dict[str, Any]]) -> str:
    return ", ".join(repr(str(one["name"])) for one in there) or "none"


@cache
def _quiet_alsa() -> None:
    """Keep ALSA from writing its own words on stderr: where something is wrong, our sentence says so."""
    try:
        library = ctypes.CDLL("libasound.so.2")
        library.snd_lib_error_set_handler(_quiet)
    except (OSError, AttributeError):
        pass  # no ALSA here
