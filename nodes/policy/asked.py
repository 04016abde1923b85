"""`Asked`: who asked for an action, so that a repeated one is told from one that only bears the same number."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.context import current_call
from runtime.msgs import Action


@dataclass(frozen=True, slots=True)
class Asked:
    """An action by its speaker, the speaker's count of messages, and the number that it gave the action."""

    source: str
    seq: int
    ident: str

    @classmethod
    def now(cls, action: Action) -> Asked:
        """As the message says that the handler was called with."""
        call = current_call.get()
        if call is None or call.trigger is None:
            return cls("", 0, action.id)
        return cls(call.trigger.envelope.source, call.trigger.envelope.seq, action.id)

    def repeats(self, before: Asked | None) -> bool:
        """Whether the same speaker asks for the same again.

        Who was started again counts messages and actions from 1 again; another on the seat has numbers of their own.
        """
        if before is None or (self.source, self.ident) != (before.source, before.ident):
            return False
        return self.seq >= before.seq
