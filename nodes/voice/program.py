"""A program that turns one thing into another, speech into text or text into speech: by its standard input and output.

What people say reaches it by that input only, never a shell and never its arguments. A program that takes too long,
writes too much or is not wanted any more is killed, with all that it has started.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal

from runtime.errors import PolyrhythmError

_MOST_COMPLAINT = 2000
_REAP_S = 2.0


class ProgramError(PolyrhythmError):
    """The program did not do what it was asked."""


def command_problems(command: str, does: str, advice: str = "install it") -> list[str]:
    """Why this command cannot be used, in sentences; `does` and `advice` go into them."""
    try:
        words = shlex.split(command)
    except ValueError as problem:
        return [f"command is {command!r}, which is no command line ({problem})"]
    if not words:
        return [f"command is empty; name a program that {does}"]
    if shutil.which(words[0]) is None:
        return [f"the command's program {words[0]!r} is not there: {advice}, or name another that {does}"]
    return []


async def run_program(command: str, data: bytes, *, deadline_s: float, most_bytes: int) -> bytes:
    """What the command writes when it reads this. Raises ProgramError."""
    words = shlex.split(command)
    try:
        async with asyncio.timeout(deadline_s):
            return await _run(words, data, most_bytes)
    except TimeoutError as problem:
        raise ProgramError(f"{words[0]} did not end within {deadline_s:g} s; it was killed") from problem


async def _run(words: list[str], data: bytes, most_bytes: int) -> bytes:
    program = words[0]
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # a group of its own, to be killed as one
        )
    except OSError as problem:
        raise ProgramError(f"{program} cannot be started ({problem.strerror})") from problem
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    complaint = asyncio.ensure_future(_last_of(process.stderr))
    writing = asyncio.ensure_future(_write(process.stdin, data))
    has_ended = False
    try:
        written = await _all_of(process.stdout, program, most_bytes)
        said = await complaint
        code = await process.wait()
        has_ended = True
    finally:
        for task in (complaint, writing):
            task.cancel()
        if not has_ended:
            await _kill(process)
    if code != 0:
        raise ProgramError(f"{program} failed (exit code {code}){': ' if said else ''}{said}")
    return written


async def _write(stream: asyncio.StreamWriter, data: bytes) -> None:
    """Beside the reading: a program may begin to write before it has read all."""
    stream.write(data)
    try:
        await stream.drain()
    except ConnectionError:
        pass  # it read no further; what it says for it is its exit code
    stream.close()


async def _all_of(stream: asyncio.StreamReader, program: str, most_bytes: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := await stream.read(1 << 16):
        parts.append(part)
        size += len(part)
        if size > most_bytes:
            raise ProgramError(f"{program} wrote more than {most_bytes} bytes; it was killed")
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
