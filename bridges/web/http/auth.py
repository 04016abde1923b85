"""Who may come in: tokens for three roles, exact Host and Origin, and how fast a client may talk."""

from __future__ import annotations

import hmac
import secrets
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from bridges.web.http.lan import LAN, own_names
from runtime.clock import to_s
from runtime.errors import ParameterError, UserError

Role = str
"""What a token stands for: one of `ROLES` at the console; the other pages have roles of their own."""
ROLES: tuple[Role, ...] = ("operator", "viewer", "participant")
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


@dataclass(frozen=True, slots=True)
class Invite:
    """One person's own way in, which somebody else has named."""

    number: int
    role: Role
    name: str
    by: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """A random token per role and per person invited, for as long as the process lives or until it is taken back."""

    by_role: Mapping[Role, str]
    taken_back: tuple[str, ...] = ()  # the last of them, so that who brings one is told
    invites: Mapping[str, Invite] = field(default_factory=dict)  # by token
    count: int = 0  # of all invites ever

    def with_roles(self, roles: Iterable[Role]) -> Tokens:
        """With a new token for each of these roles that has none."""
        new = {role: secrets.token_hex(TOKEN_BYTES) for role in roles if role not in self.by_role}
        return replace(self, by_role={**self.by_role, **new})

    def inviting(self, role: Role, name: str, by: str) -> tuple[Tokens, str]:
        """With one more person's token, and that token. Raises ValueError in words where that cannot be."""
        if role not in self.by_role:
            raise ValueError(f"there is no role {role!r} here; known: {', '.join(self.by_role)}")
        if not name or name in self.by_role or any(one.name == name for one in self.invites.values()):
            raise ValueError(f"the name {name!r} is taken, or none; give each person a name of their own")
        if len(self.invites) >= MOST_INVITES:
            raise ValueError(f"{MOST_INVITES} people are invited already; revoke one of them first")
        token, number = secrets.token_hex(TOKEN_BYTES), self.count + 1
        invites = {**self.invites, token: Invite(number, role, name, by)}
        return replace(self, invites=invites, count=number), token

    def revoking(self, number: int) -> Tokens:
        """Without that person's token, which opens no page any more."""
        old = tuple(token for token, one in self.invites.items() if one.number == number)
        invites = {token: one for token, one in self.invites.items() if one.number != number}
        return replace(self, invites=invites, taken_back=(*self.taken_back, *old)[-MOST_TAKEN_BACK:])

    def name_for(self, token: str, wanted: str, role: Role) -> str:
        """What whoever brings this token is called: as they were invited, or as they like where that is nobody else."""
        if invite := self.invites.get(token):
            return invite.name
        is_others = any(one.name == wanted for one in self.invites.values())
        return role if not wanted or is_others else wanted

    def renewed(self, role: Role) -> Tokens:
        """With another token for that role; the one that it had is good for nothing any more."""
        old = (self.by_role[role],) if role in self.by_role else ()
        return replace(
            self,
            by_role={**self.by_role, role: secrets.token_hex(TOKEN_BYTES)},
            taken_back=(*self.taken_back, *old)[-MOST_TAKEN_BACK:],
        )

    def was_taken_back(self, token: str) -> bool:
        """Whether it was good once."""
        return sum(hmac.compare_digest(old.encode(), token.encode(errors="replace")) for old in self.taken_back) > 0

    def role_of(self, token: str) -> Role | None:
        """The role that the token stands for; looks at every one of them, so that time tells nothing."""
        found: Role | None = None
        known = [*self.by_role.items(), *((one.role, own) for own, one in self.invites.items())]
        for role, own in known:
            if hmac.compare_digest(own.encode(), token.encode(errors="replace")):
                found = role
        return found


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
