"""Proof that an order comes from a person of this run: signed with a token that stands in a file of theirs alone.

The token itself never travels, since everything on the bus is recorded. A proof is good once and for two seconds.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from runtime.clock import to_ns

TOKEN_FILE = "guard.token"
GOOD_FOR_NS = to_ns(2.0)


def make_token(folder: Path) -> str:
    """The folder's token; made, readable by this user only, where there is none."""
    path = folder / TOKEN_FILE
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
    except FileExistsError:
        pass
    return path.read_text().strip()


def prove(token: str, *parts: str | int) -> str:
    """The proof of an order's parts; the last one is its stamp in monotonic ns."""
    text = "\n".join(str(part) for part in parts)
    return hmac.new(token.encode(), text.encode(), hashlib.sha256).hexdigest()


class Proofs:
    """Checks proofs against one token; without a token nothing is ever proven."""

    def __init__(self, token: str = "") -> None:
        self.token = token
        self._last_ns = 0

    def holds(self, proof: str, now_ns: int, stamp_ns: int, *parts: str | int) -> bool:
        """Whether the proof is right, fresh and not seen before."""
        if not self.token or not stamp_ns or not self._last_ns < stamp_ns:
            return False
        if abs(now_ns - stamp_ns) > GOOD_FOR_NS:
            return False
        if not hmac.compare_digest(prove(self.token, *parts, stamp_ns).encode(), proof.encode(errors="replace")):
            return False
        self._last_ns = stamp_ns
        return True
