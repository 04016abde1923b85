"""`Page`: one page of a server, with whoever has it open. Pages share an address, a token for each role, one look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from bridges.web.http.auth import Role
from bridges.web.http.open_page import CameraStream, Session

ORDER = ("console", "study", "episode", "recordings")
"""The first of these that there is stands at `/`, then all others by name."""


class PageHandler(Protocol):
    """What a page serves: called in the server's thread only."""

    def welcome(self, session: Session) -> dict[str, Any]: ...
    def state(self, session: Session, now_ns: int) -> dict[str, Any]: ...
    def joined(self, session: Session) -> None:
        return

    def left(self, session: Session) -> None: ...
    def handle(self, session: Session, message: Any) -> None: ...
    def frame(self, camera: str, view: CameraStream, now_ns: int) -> tuple[dict[str, Any], bytes] | None: ...
    def beat(self, now_ns: int) -> None:
        return


@dataclass(slots=True, eq=False)
class Page:
    """`path` is its place behind the address, `page` its file in `static`, `decode` reads what that page sends.

    `roles` says who may enter: what a token stands for on this server, and what that person is called in here.
    """

    path: str
    title: str
    page: str
    handler: PageHandler
    decode: Callable[[str], Any]
    roles: Mapping[Role, Role]
    sessions: list[Session] = field(default_factory=list)
    gives_way: frozenset[Role] = frozenset()  # who is let in only as long as no other page is for them

    def admits(self, role: Role, pages: Iterable[Page]) -> bool:
        """Whether that role may enter, among these pages of one address."""
        others = (one for one in pages if one is not self and role in one.roles and role not in one.gives_way)
        return role in self.roles and (role not in self.gives_way or next(others, None) is None)

    @property
    def rank(self) -> tuple[int, str]:
        """Its place among the pages."""
        kind = self.path.partition("-")[0]
        return (ORDER.index(kind) if kind in ORDER else len(ORDER), self.path)
