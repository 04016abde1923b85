"""The pages' files and the headers that go with every answer: where a page may get what from, and who may frame it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    ASGI = Callable[[Any, Any, Any], Any]

STATIC = Path(__file__).resolve().parents[1] / "static"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "content-security-policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(self), payment=(), usb=()",
    "cache-control": "no-store",
}


def read_files() -> dict[str, tuple[bytes, str]]:
    """What each file holds and is, by its name: read once, so that no request leads anywhere on the disk."""
    return {path.name: (path.read_bytes(), KINDS[path.suffix]) for path in STATIC.iterdir() if path.suffix in KINDS}


def guarded(application: ASGI, admits_host: Callable[[str | None], bool]) -> ASGI:
    """Turn away what is addressed to another host, and add the headers."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        headers = [(key.encode(), value.encode()) for key, value in HEADERS.items()]
        host = next((value.decode("latin-1") for key, value in scope["headers"] if key == b"host"), None)
        if not admits_host(host):
            await send({"type": "http.response.start", "status": 421, "headers": headers})
            await send({"type": "http.response.body", "body": b"this is not the host that you asked for\n"})
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *headers]
            await send(message)

        await application(scope, receive, send_with_headers)

    return answer
