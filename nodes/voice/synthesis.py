"""Words made sound: by a command that reads text and writes WAV, or by nothing at all that takes the time of it.

A text reaches a command by its standard input only, never a shell and never its arguments. What takes too long, writes
too much or is not wanted any more is killed, with all that it has started.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
from typing import Protocol

from nodes.voice.pieces import estimated_s
from nodes.voice.playing import BYTES_PER_FRAME, RATE_HZ, VoiceError

MOST_BYTES = 1 << 24
"""Of a WAV file for one sentence: a minute and a half of the best there is."""
_MOST_COMPLAINT = 2000
_REAP_S = 2.0


class Voice(Protocol):
    """Makes sound of a sentence."""

    async def sound(self, text: str) -> bytes:
        """The samples, see `nodes.voice.playing`. Raises VoiceError, or ModelError of a server."""
        ...

    async def close(self) -> None:
        """Release what it holds."""
        ...


class SilentVoice:
    """As long as somebody would speak, and not to be heard."""

    async def sound(self, text: str) -> bytes:
        return bytes(round(estimated_s(text) * RATE_HZ) * BYTES_PER_FRAME)

    async def close(self) -> None:
        """There is nothing to release."""


class CommandVoice:
    """A program such as espeak-ng or Piper, started for each sentence."""

    def __init__(self, command: str, deadline_s: float) -> None:
        self._command = shlex.split(command)
        self._deadline_s = deadline_s

    async def sound(self, text: str) -> bytes:
        program = self._command[0]
        try:
            async with asyncio.timeout(self._deadline_s):
                data = await self._wav(text)
        except TimeoutError as problem:
            raise VoiceError(f"{program} did not end within {self._deadline_s:g} s; it was killed") from problem
        return await decoded(data, program)

    async def close(self) -> None:
        """Nothing is kept from one sentence to the next."""

    async def _wav(self, text: str) -> bytes:
        program = self._command[0]
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,  # a group of its own, to be killed as one
            )
        except OSError as problem:
            raise VoiceError(f"{program} cannot be started ({problem.strerror})") from problem
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        complaint = asyncio.ensure_future(_last_of(process.stderr))
        has_ended = False
        try:
            process.stdin.write(text.encode("utf-8", errors="replace") + b"\n")
            try:
                await process.stdin.drain()
            except ConnectionError:
                pass  # it read no further; what it says for it comes below
            process.stdin.close()
            data = await _all_of(process.stdout, program)
            words = await complaint
            code = await process.wait()
            has_ended = True
        finally:
            complaint.cancel()
            if not has_ended:
                await _kill(process)
        if code != 0:
            raise VoiceError(f"{program} failed (exit code {code}){': ' if words else ''}{words}")
        return data


async def decoded(data: bytes, what: str) -> bytes:
    """The samples of a WAV file, made in another thread. Raises VoiceError, naming what gave it."""
    from nodes.voice.sound_out import decode_speech

    return await asyncio.to_thread(decode_speech, data, what)


def command_problems(command: str) -> list[str]:
    """Why this command cannot speak, in sentences."""
    try:
        words = shlex.split(command)
    except ValueError as problem:
        return [f"command is {command!r}, which is no command line ({problem})"]
    if not words:
        return ["command is empty; name a program that reads text and writes WAV, such as 'espeak-ng --stdin --stdout'"]
    if shutil.which(words[0]) is None:
        advice = "apt install espeak-ng" if words[0] == "espeak-ng" else "install it"
        return [f"the command's program {words[0]!r} is not there: {advice}, or name another that writes WAV"]
    return []


async def _all_of(stream: asyncio.StreamReader, program: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := await stream.read(1 << 16):
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise VoiceError(f"{program} wrote more than {MOST_BYTES >> 20} MiB for one sentence; it was killed")
    return b"".join(parts)


async def _last_of(stream: asyncio.StreamReader) -> str:
    """The last line of what a program complains, however much that is."""
    end = b""
    while part := await stream.read(1 << 12):
        end = (end + part)[-_MOST_COMPLAINT:]
    lines = end.decode("utf-8", errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else ""


async def _kill(process: asyncio.subprocess.Process) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it went by itself
    await asyncio.wait({asyncio.ensure_future(process.wait())}, timeout=_REAP_S)
