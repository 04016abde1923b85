"""4 KB over aact: two of its nodes, with JSON through a Redis server of their own, as its documents show it.

`python -m bench.latency_aact send|receive URL PLACE` is one node; `ages_us` starts both and Redis. Without
`pip install aact` and a `redis-server` (Debian: redis-server) aact is not measured.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.peers_python import free_port, peers_python, with_peers

COUNT, WARM_UP, HZ, SIZE = 300, 50, 200, 4096
_CHANNEL = "ages"
_STARTS_S, _LONGEST_S = 10.0, 60.0
ROOT = Path(__file__).resolve().parent.parent


def is_available() -> bool:
    """Whether the package and a Redis server are here."""
    return "aact" in with_peers("aact") and shutil.which("redis-server") is not None


def ages_us(folder: Path, size_bytes: int = SIZE) -> list[float]:
    """How old each message is when the receiving node's handler has it. Raises OSError, SubprocessError."""
    port = free_port()
    redis = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    url, place = f"redis://127.0.0.1:{port}/0", f"{folder}/ages,{size_bytes}"
    with subprocess.Popen(redis, stdout=subprocess.DEVNULL) as server:
        try:
            _wait_for(port)
            with subprocess.Popen(_command("receive", url, place), cwd=ROOT, stdout=subprocess.PIPE) as receiver:
                try:
                    assert receiver.stdout is not None
                    receiver.stdout.readline()  # it has subscribed
                    subprocess.run(_command("send", url, place), cwd=ROOT, check=True, timeout=_LONGEST_S)
                    receiver.wait(timeout=_STARTS_S)
                finally:
                    receiver.kill()
        finally:
            server.kill()
    return list(json.loads(Path(folder, "ages").read_text()))


def _wait_for(port: int) -> None:
    until = time.monotonic() + _STARTS_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def _command(*arguments: str) -> list[str]:
    return [peers_python(), "-m", "bench.latency_aact", *arguments]


def _sender(url: str, size_bytes: int) -> Any:
    aact: Any = importlib.import_module("aact")
    messages: Any = importlib.import_module("aact.messages")

    class Sender(aact.Node[messages.Zero, messages.Text]):  # type: ignore[misc]  # known only where aact is installed
        async def event_loop(self) -> None:
            body = "x" * size_bytes
            start = time.monotonic()
            for number in range(COUNT + WARM_UP):
                await asyncio.sleep(max(0.0, start + number / HZ - time.monotonic()))
                stamped = messages.Text(text=f"{time.monotonic_ns():020d}{body}")
                await self.r.publish(_CHANNEL, aact.Message[messages.Text](data=stamped).model_dump_json())

        async def event_handler(self, channel: str, message: Any) -> Any:  # nothing is heard
            yield channel, message

    return Sender([], [(_CHANNEL, messages.Text)], url)


def _receiver(url: str, place: str) -> Any:
    aact: Any = importlib.import_module("aact")
    messages: Any = importlib.import_module("aact.messages")
    ages: list[float] = []
    no_answers: list[Any] = []

    class Receiver(aact.Node[messages.Text, messages.Zero]):  # type: ignore[misc]  # as above
        async def event_loop(self) -> None:
            print("subscribed", flush=True)
            await super().event_loop()

        async def event_handler(self, channel: str, message: Any) -> Any:
            ages.append((time.monotonic_ns() - int(message.data.text[:20])) * 1e-3)
            if len(ages) == COUNT + WARM_UP:
                Path(place).write_text(json.dumps(ages[WARM_UP:]))
                sys.exit()
            for answer in no_answers:
                yield answer

    return Receiver([(_CHANNEL, messages.Text)], [], url)


async def _run(node: Any) -> None:
    async with node:
        await node.event_loop()


if __name__ == "__main__":
    _, verb, url, place = sys.argv
    path, _, size = place.partition(",")
    asyncio.run(_run(_sender(url, int(size)) if verb == "send" else _receiver(url, path)))
