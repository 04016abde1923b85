"""`SideProgram`: a program beside a run; the supervisor starts it, starts it again, and tells what it says."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from runtime.supervision.child_process import lines_of

AGAIN_S, LONGEST_AGAIN_S, LIVES_S = 0.2, 3.0, 10.0
"""The wait before the next start, doubled up to the longest; one that has lived for `LIVES_S` begins anew."""


class SideProgram:
    """One process after another while the run goes on."""

    def __init__(
        self,
        command: tuple[str, ...],
        heard: Callable[[], None],
        tell: Callable[[str], None],
    ) -> None:
        self._command = (sys.executable, "-I", "-S", *command)
        self._heard, self._tell = heard, tell
        self.pid = 0

    async def keep(self) -> None:
        """Until it is cancelled; then the program is ended."""
        wait_s, loop = AGAIN_S, asyncio.get_running_loop()
        while True:
            began_s = loop.time()
            code = await self._live()
            wait_s = AGAIN_S if loop.time() - began_s > LIVES_S else min(2 * wait_s, LONGEST_AGAIN_S)
            self._tell(f"it ended ({code}) and is started again")
            await asyncio.sleep(wait_s)

    async def _live(self) -> int:
        output_read, output_write = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output_write,
                stderr=output_write,
                start_new_session=True,  # Ctrl-C is the run's
            )
        finally:
            os.close(output_write)
        self.pid = process.pid
        try:
            async for line in await lines_of(output_read):
                self._heard()
                if text := line.decode(errors="replace").rstrip():
                    self._tell(text)
            return await process.wait()
        finally:
            with suppress(ProcessLookupError):
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)  # it holds nothing
            await process.wait()

    def kill(self) -> None:
        """End it where it is frozen."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
