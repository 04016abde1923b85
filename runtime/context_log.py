"""`ContextLog`: what a recorder wants to know of one handler call, noted while the call runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from runtime.message import Stamped

KEPT_READS = 4096
"""Of one call."""


@dataclass(slots=True)
class ContextLog:
    """What is noted while a call runs."""

    started_ns: int
    reads: list[str] = field(default_factory=list)
    nows_ns: list[int] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    is_cut: bool = False
    begun: int = 0

    def read(self, port: str, stamped: Stamped[Any] | None) -> None:
        """The handler looked at a port."""
        if len(self.reads) < KEPT_READS:
            self.reads.append(f"{port}={stamped.envelope.ident if stamped is not None else ''}")
        else:
            self.is_cut = True

    def looked_at_clock(self, now_ns: int) -> None:
        """The handler asked for the time."""
        if len(self.nows_ns) < KEPT_READS:
            self.nows_ns.append(now_ns - self.started_ns)
        else:
            self.is_cut = True
