"""Proof that an order comes from a person of this run: signed with a token that stands in a file of theirs alone.

The token itself never travels, since everything on the bus is recorded. A proof is good once and for two seconds. The
guard makes the token and checks proofs; tools and the console read it and sign.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import msgspec

from nodes.msgs.robot import GuardOrder, RobotService, SeatRequest, Utterance
from runtime.clock import to_ns
from runtime.coordination.lease import Kind
from runtime.errors import PolyrhythmError

Signed = GuardOrder | RobotService | SeatRequest | Utterance
S = TypeVar("S", GuardOrder, RobotService, SeatRequest, Utterance)

TOKEN_FILE = "guard.token"
GOOD_FOR_NS = to_ns(2.0)
MOST_PROOFS = 4096
"""Proofs remembered at a time; ten people who each renew a seat ten times a second need 400."""


def make_token(folder: Path) -> str:
    """The folder's token; made, readable by this user only, where there is none."""
    path = folder / TOKEN_FILE
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
    except FileExistsError:
        pass
    return path.read_text().strip()


def token_of(registry: Path) -> str:
    """The run's token. Raises PolyrhythmError where there is none, or it is not this user's to read."""
    try:
        return (registry / TOKEN_FILE).read_text().strip()
    except OSError as problem:
        raise PolyrhythmError(
            f"the run's token cannot be read ({problem.strerror}); does this graph have a guard, and is the run yours?"
        ) from problem


def order(token: str, do: Literal["arm", "rearm", "resume"], by: str, now_ns: int) -> GuardOrder:
    """A signed order to arm, re-arm or go on; unsigned, which the guard refuses in words, where the token is ""."""
    return _signed(GuardOrder(do=do, by=by, stamp_ns=now_ns, proof="", id=f"{by}-{now_ns}"), token)


def words(token: str, text: str, by: str, now_ns: int) -> Utterance:
    """What the holder of the token types as a person's words; unsigned, and so nobody's, where the token is ""."""
    return _signed(Utterance(speaker=by, text=text, is_typed=True, stamp_ns=now_ns), token)


def service(
    token: str, verb: Literal["home", "stow", "runstop", "release"], by: str, now_ns: int, *, ident: str = ""
) -> RobotService:
    """A signed request for something that the robot itself does; `ident` is of this request alone."""
    return _signed(RobotService(id=ident or f"{by}-{now_ns}", verb=verb, by=by, stamp_ns=now_ns), token)


def request(
    token: str,
    do: Literal["take", "give", "renew"],
    seat: str,
    holder: str,
    by: str,
    now_ns: int,
    *,
    kind: Kind = "person",
) -> SeatRequest:
    """A signed wish for a seat; to take it for another than oneself, name the holder."""
    return _signed(
        SeatRequest(seat=seat, do=do, holder=holder, kind=kind, by=by, stamp_ns=now_ns, id=f"{by}-{now_ns}"), token
    )


def prove(token: str, message: Signed) -> str:
    """The proof of what a message asks for, by whom and when; "" without a token."""
    text = msgspec.json.encode({"": type(message).__name__, **msgspec.to_builtins(message), "proof": ""})
    return hmac.new(token.encode(), text, hashlib.sha256).hexdigest() if token else ""


def _signed(message: S, token: str) -> S:
    signed: S = msgspec.structs.replace(cast(Any, message), proof=prove(token, message))
    return signed


class Signatures:
    """Checks proofs against one token; without a token nothing is ever proven."""

    def __init__(self, token: str = "", since_ns: int = 0) -> None:
        """What was signed by `since_ns` was meant for the guard before this one."""
        self.token = token
        self._since_ns = since_ns
        self._seen: dict[str, int] = {}  # proofs that were good, with their stamps; several people may sign at a time

    def holds(self, message: Signed, now_ns: int) -> bool:
        """Whether the message's proof is right, fresh and not seen before."""
        stamp_ns, proof = message.stamp_ns, message.proof
        if not self.token or abs(now_ns - stamp_ns) > GOOD_FOR_NS or stamp_ns <= self._since_ns:
            return False
        if not hmac.compare_digest(prove(self.token, message).encode(), proof.encode(errors="replace")):
            return False
        self._seen = {known: seen_ns for known, seen_ns in self._seen.items() if now_ns - seen_ns <= GOOD_FOR_NS}
        if proof in self._seen or len(self._seen) >= MOST_PROOFS:
            return False
        self._seen[proof] = stamp_ns
        return True
