"""Who may come in: tokens for three roles, exact Host and Origin, and how fast a client may talk."""

from __future__ import annotations

import hmac
import secrets
import ssl
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from bridges.web.http.lan import LAN, own_names
from runtime.clock import to_s
from runtime.errors import ParameterError, UserError

Role = str
"""What a token stands for: one of `ROLES` at the console; the other pages have roles of their own."""
ROLES: tuple[Role, ...] = ("operator", "viewer", "participant")
RESERVED = ("robot", "guard", "policy", "planner", "vlm", "you")
"""Names that are no person's: what one of them says would be taken for the robot's own."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")
TOKEN_BYTES = 16
MOST_TAKEN_BACK = 64
MOST_INVITES = 32


def check_bind(host: str, certificate: str, key: str) -> None:
    """Raise ParameterError where others than this machine could listen in: outside loopback only with TLS."""
    if bool(certificate) != bool(key):
        raise ParameterError("console: certificate and key come together; give both or neither")
    if host not in (*LOOPBACK, LAN) and not certificate:
        raise ParameterError(
            f"console: address {host!r} is not this machine alone, and there is no TLS; "
            f"use one of {', '.join(LOOPBACK)}, {LAN} for the machines of this network, or give certificate and key"
        )


def check_certificate(certificate: str, key: str) -> None:
    """Raise UserError where certificate and key cannot be used; no certificate is none."""
    if not certificate:
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
    except OSError as problem:  # ssl.SSLError is one
        raise UserError(
            f"console: certificate {certificate} and key {key} cannot be used ({problem.strerror or problem}); "
            "expected two PEM files that belong together"
        ) from problem


def check_origins(origins: Iterable[str]) -> None:
    """Raise ParameterError for what is no origin, like http://localhost:9000."""
    for origin in origins:
        parts = urlsplit(origin)
        if parts.scheme not in ("http", "https") or f"{parts.scheme}://{parts.netloc}" != origin or not parts.hostname:
            raise ParameterError(
                f"console: reached_as has {origin!r}; expected scheme, host and port alone, like http://localhost:9000"
            )


class Invite(msgspec.Struct, frozen=True):
    """One person's own way in, which somebody else has named."""

    number: int
    role: Role
    name: str
    by: str


class Tokens(msgspec.Struct, frozen=True):
    """A random code per role and per person invited, for as long as the run lives or until it is taken back.

    A code stands in an address. Whoever brings one is given a key to a session of their own, made from the code; so
    that it is good for as long as the code, and tells nobody the code.
    """

    by_role: dict[Role, str] = {}
    taken_back: tuple[str, ...] = ()  # the last of them, so that who brings one is told
    parting: dict[str, Role] = {}  # taken back; who is in by one of these may still read how it ended
    invites: dict[str, Invite] = {}  # by code
    count: int = 0  # of all invites ever
    reserved: tuple[str, ...] = ()  # names that nobody may go by

    def with_roles(self, roles: Iterable[Role]) -> Tokens:
        """With a new code for each of these roles that has none."""
        new = {role: secrets.token_hex(TOKEN_BYTES) for role in roles if role not in self.by_role}
        return replace(self, by_role={**self.by_role, **new})

    def reserving(self, names: Iterable[str]) -> Tokens:
        """With more names that are the robot's, or of parts of it, and nobody else's."""
        return replace(self, reserved=tuple(sorted({*self.reserved, *map(_plain, names)} - {""})))

    def inviting(self, role: Role, name: str, by: str) -> tuple[Tokens, str]:
        """With one more person's code, and that code. Raises ValueError in words where that cannot be."""
        if role not in self.by_role:
            raise ValueError(f"there is no role {role!r} here; known: {', '.join(self.by_role)}")
        if not self.is_free(name):
            raise ValueError(f"the name {name!r} is taken, or none; give each person a name of their own")
        if len(self.invites) >= MOST_INVITES:
            raise ValueError(f"{MOST_INVITES} people are invited already; revoke one of them first")
        code, number = secrets.token_hex(TOKEN_BYTES), self.count + 1
        invites = {**self.invites, code: Invite(number, role, name, by)}
        return replace(self, invites=invites, count=number), code

    def is_free(self, name: str) -> bool:
        """Whether a person may be called so: not as another one, a role, or the robot itself."""
        taken = {*map(_plain, self.by_role), *self.reserved, *(_plain(one.name) for one in self.invites.values()), ""}
        return _plain(name) not in taken

    def revoking(self, number: int) -> Tokens:
        """Without that person's code, which opens no page any more."""
        old = tuple(code for code, one in self.invites.items() if one.number == number)
        invites = {code: one for code, one in self.invites.items() if one.number != number}
        return replace(self, invites=invites, taken_back=(*self.taken_back, *old)[-MOST_TAKEN_BACK:])

    def name_for(self, code: str, wanted: str, role: Role) -> str:
        """What whoever has that code is called: as they were invited, or as they like where that is nobody else."""
        if invite := self.invites.get(code):
            return invite.name
        return wanted if self.is_free(wanted) else role

    def renewed(self, role: Role) -> Tokens:
        """With another code for that role; the one that it had lets nobody in any more who is not there already."""
        old = self.by_role.get(role)
        return replace(
            self,
            by_role={**self.by_role, role: secrets.token_hex(TOKEN_BYTES)},
            taken_back=(*self.taken_back, *([old] if old else []))[-MOST_TAKEN_BACK:],
            parting={**self.parting, **({old: role} if old else {})},
        )

    def parted(self) -> Tokens:
        """Those who were in by a code that was taken back are not let in again."""
        return replace(self, parting={})

    def key_of(self, code: str, ident: str) -> str:
        """What a page keeps in place of the code: it opens that session alone."""
        return f"{ident}.{_proof(code, ident)}"

    def open(self, given: str) -> Opened | None:
        """What a code or a key opens; looks at every code, so that time tells nothing."""
        ident, dot, proof = given.rpartition(".")
        found: Opened | None = None
        known = [
            *self.by_role.items(),
            *((role, code) for code, role in self.parting.items()),
            *((one.role, code) for code, one in self.invites.items()),
        ]
        for role, code in known:
            is_it = _is_same(_proof(code, ident), proof) if dot else _is_same(code, given) and code not in self.parting
            if is_it:
                found = Opened(role, code, ident)
        return found

    def was_taken_back(self, given: str) -> bool:
        """Whether this code, or the one that this key was made from, was good once."""
        ident, dot, proof = given.rpartition(".")
        same = [_is_same(_proof(old, ident), proof) if dot else _is_same(old, given) for old in self.taken_back]
        return any(same)  # all of them were looked at


class Opened(NamedTuple):
    """Who has come in: in which role, by which code, and with which session of theirs; "" where it is to begin."""

    role: Role
    code: str
    ident: str


def _is_same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode(errors="replace"))


def _proof(code: str, ident: str) -> str:
    return hmac.new(code.encode(), ident.encode(errors="replace"), "sha256").hexdigest()[: 2 * TOKEN_BYTES]


def _plain(name: str) -> str:
    """What two names have in common that a person would take for one."""
    seen = (one for one in unicodedata.normalize("NFKC", name) if unicodedata.category(one) != "Cf")
    return "".join("".join(seen).casefold().split())


@dataclass(frozen=True, slots=True)
class AllowedOrigins:
    """The names under which the page may be asked for. A page from anywhere else is another origin, and refused."""

    names: frozenset[str]  # exact values of the Host header
    scheme: str = "http"
    also: frozenset[str] = frozenset()  # origins behind which a tunnel or a proxy leads here

    @classmethod
    def of(cls, host: str, port: int, *, has_tls: bool, also: Iterable[str] = ()) -> AllowedOrigins:
        names = LOOPBACK if host in LOOPBACK else own_names() if host == LAN else (host,)
        return cls(
            frozenset(f"[{name}]:{port}" if ":" in name else f"{name}:{port}" for name in names),
            "https" if has_tls else "http",
            frozenset(also),
        )

    def admits_host(self, host: str | None) -> bool:
        """Whether a request is addressed to us by a name of ours (not by one that somebody made point here)."""
        return host in self.names or any(urlsplit(origin).netloc == host for origin in self.also)

    def admits_origin(self, host: str | None, origin: str | None) -> bool:
        """Whether a WebSocket comes from the page that this server gave out under the same name."""
        if host in self.names and origin == f"{self.scheme}://{host}":
            return True
        return origin is not None and origin in self.also and urlsplit(origin).netloc == host


class TokenBucket:
    """A bucket of permissions that fills at a rate; empty means: too fast."""

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s, self._burst, self._left = per_s, burst, burst
        self._last_ns: int | None = None

    def allows(self, now_ns: int) -> bool:
        """Take one permission, where there is one."""
        if self._last_ns is not None:
            self._left = min(self._burst, self._left + to_s(now_ns - self._last_ns) * self._per_s)
        self._last_ns = now_ns
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
