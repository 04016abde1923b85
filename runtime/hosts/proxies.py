"""Whether a proxy of the environment stands before an address: never before one on this machine.

`http_proxy` leads to the proxy's own 127.0.0.1, and what is meant for a program here would go there.
"""

from __future__ import annotations

import ipaddress
import socket
import urllib.request
from http.client import HTTPResponse
from urllib.parse import urlsplit


def is_here(url: str) -> bool:
    """Whether the address is on this machine: a loopback address, `localhost`, or the machine's own name."""
    host = ""
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost") or host == socket.gethostname().lower()
    return address.is_loopback or address.is_unspecified


def open_url(request: urllib.request.Request, timeout_s: float) -> HTTPResponse:
    """The answer over HTTP, through the environment's proxy where that may stand before the address. Raises OSError."""
    handlers = [urllib.request.ProxyHandler({})] if is_here(request.full_url) else []
    answer: HTTPResponse = urllib.request.build_opener(*handlers).open(request, timeout=timeout_s)
    return answer
