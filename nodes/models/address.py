"""Addresses of model servers: what is wrong with one, where its chat completions are, how its key is sent.

Azure's form is known: `https://NAME.openai.azure.com/openai/deployments/MODEL?api-version=DATE`, with a header of its
own for the key.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit, urlunsplit

COMPLETIONS = "/chat/completions"


def where_of(url: str) -> str:
    """Host and port, which is all that messages show of an address."""
    parts = urlsplit(url)
    return f"{parts.hostname or url}" + (f":{parts.port}" if parts.port else "")


def is_azure(url: str) -> bool:
    """Whether it is an address of Azure's form, or on Azure's hosts."""
    parts = urlsplit(url)
    return (parts.hostname or "").endswith(".azure.com") or "/openai/deployments/" in parts.path


def url_problem(url: str) -> str:
    """What is wrong with a server's address, in a sentence; "" where nothing is."""
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, or none there is
        is_good = False
    if not is_good or url != url.strip() or not url.isprintable():
        return f"base URL is {url!r}; expected http://host:port/v1 or https://..."
    if parts.path.rstrip("/").endswith(COMPLETIONS):
        return f"base URL is {url!r}; leave out {COMPLETIONS}, which is added to each base URL"
    if not parts.path.strip("/"):
        return f"base URL is {url!r}; expected a path, which is /v1 with nearly all servers: {url.rstrip('/')}/v1"
    if (parts.query or parts.fragment) and not is_azure(url):
        return f"base URL is {url!r}; only Azure's form has a query: .../openai/deployments/MODEL?api-version=DATE"
    return ""


def url_of(base_url: str) -> str:
    """Where chat completions are asked for; a query stays at the end."""
    parts = urlsplit(base_url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + COMPLETIONS))


def realtime_of(base_url: str, model: str) -> tuple[str, dict[str, str]]:
    """Where a WebSocket of the Realtime protocol is opened, and its query; Azure's older form has a path of its own."""
    parts = urlsplit(base_url)
    before, found, deployment = parts.path.rstrip("/").partition("/openai/deployments/")
    query = dict(parse_qsl(parts.query)) | ({"deployment": deployment.split("/")[0]} if found else {"model": model})
    path = f"{before}/openai/realtime" if found else f"{before}/realtime"
    return urlunsplit(parts._replace(path=path, query="")), query


def headers_of(base_url: str, key: str) -> dict[str, str]:
    """The headers of a request."""
    headers = {"content-type": "application/json"}
    if key:
        headers |= {"api-key": key} if is_azure(base_url) else {"authorization": f"Bearer {key}"}
    return headers


def key_problem(key: str, name: str) -> str:
    """What is wrong with a key, in a sentence without it; "" where nothing is."""
    if key.isascii() and key.isprintable() and key == key.strip():
        return ""
    kind = "a line's end (a file with Windows line ends?)" if set(key) & set("\r\n") else "characters that no key has"
    return f"{name} holds {kind}; set it anew"
