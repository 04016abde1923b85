"""`Capacity`: how many may have a page of a server open, so that onlookers do not keep out who is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from bridges.web.http.auth import Role

MOST_CLIENTS = 16
VIEWER: Role = "viewer"
KEPT = {"operator": 4, "participant": 4, VIEWER: 0}
"""Places that nobody but this role takes; any other role, as one annotator or one who plays in an episode, has one."""
MOST_KEPT = 8


class Capacity:
    """The places that are taken, by the role of the token (the server's thread)."""

    def __init__(self, most: int = MOST_CLIENTS) -> None:
        self._most = most
        self._taken: Counter[Role] = Counter()

    def refusal(self, role: Role, roles: Collection[Role]) -> str:
        """Why one more of that role, of the roles that there are, cannot come in now; "" where it can."""
        kept = {other: KEPT.get(other, 1) for other in roles}
        for_others = sum(max(0, count - self._taken[other]) for other, count in kept.items() if other != role)
        if self._taken[role] < kept.get(role, 0) and self._taken.total() < self._most:
            return ""
        if self._taken.total() + min(MOST_KEPT, for_others) < self._most:
            return ""
        if self._taken[role] and for_others:
            return f"all {self._taken[role]} places for {role}s are taken; it is tried again until one is free"
        return f"all {self._most} places are taken; it is tried again until one is free"

    def take(self, role: Role) -> None:
        """One more is here."""
        self._taken[role] += 1

    def leave(self, role: Role) -> None:
        """One less."""
        self._taken[role] -= 1
