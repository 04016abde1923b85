"""`ActionRequest`: who asked for an action, so that a repeated one is told from one that only bears the same number."""

from __future__ import annotations

from typing import Any

import msgspec

from nodes.msgs import Action
from runtime.message import Stamped


class ActionRequest(msgspec.Struct, frozen=True):
    """An action by its speaker, the speaker's count of messages, and the number that it gave the action."""

    source: str
    seq: int
    ident: str

    @classmethod
    def of(cls, action: Action, trigger: Stamped[Any] | None) -> ActionRequest:
        """Read it from the message that the handler was called with."""
        if trigger is None:
            return cls("", 0, action.id)
        return cls(trigger.envelope.source, trigger.envelope.seq, action.id)

    def repeats(self, before: ActionRequest | None) -> bool:
        """Whether the same speaker asks for the same again.

        Who was started again counts messages and actions from 1 again; another on the seat has numbers of their own.
        """
        if before is None or (self.source, self.ident) != (before.source, before.ident):
            return False
        return self.seq >= before.seq
