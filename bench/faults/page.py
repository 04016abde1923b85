"""A console's page without a browser, as a process: `python -m bench.faults.page ADDRESS` drives until it ends.

It sits down on the policy's seat and holds the key for "ahead" down, as the page does: one message every 50 ms.
"""

from __future__ import annotations

import json
import sys
import time
from urllib.parse import urlsplit

from websockets.sync.client import connect
from websockets.typing import Origin

PERIOD_S = 0.05


def drive(address: str) -> None:
    """Until killed, or the console is gone."""
    parts = urlsplit(address)
    uri, origin = f"ws://{parts.netloc}/socket", Origin(f"http://{parts.netloc}")
    with connect(uri, origin=origin, compression=None, proxy=None) as socket:
        socket.send(json.dumps({"t": "hello", "token": parts.fragment, "name": "rig"}))
        socket.send(json.dumps({"t": "take", "seat": "policy", "force": True}))
        due = time.monotonic()
        while True:
            due += PERIOD_S
            while (left_s := due - time.monotonic()) > 0:
                try:
                    message = socket.recv(timeout=left_s)
                except TimeoutError:
                    break
                if isinstance(message, str) and (told := json.loads(message))["t"] == "state":
                    socket.send(json.dumps({"t": "seen", "n": told["n"]}))
            socket.send(json.dumps({"t": "drive", "ahead": 1.0, "scale": 1.0}))


if __name__ == "__main__":
    drive(sys.argv[1])
