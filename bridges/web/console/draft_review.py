"""`Supervision`: a person on the planner's seat decides about what the model would say, before it is said."""

from __future__ import annotations

from collections import deque
from typing import Any, Literal

from bridges.web.console.drafts import Draft, Drafts
from bridges.web.console.ports import ConsolePorts
from bridges.web.http.messages import DraftDecision
from bridges.web.http.wire import Decide, Supervise
from runtime.msgs import Subtask, Utterance

INBOX = 32


class Supervision:
    """Drafts come in by the node's thread and are decided in the server's."""

    def __init__(self, ports: ConsolePorts, speaker: str) -> None:
        self._ports = ports
        self._speaker = speaker
        self._drafts = Drafts()
        self._inbox: deque[Subtask | Utterance] = deque(maxlen=INBOX)
        self._edits = 0

    def propose(self, message: Subtask | Utterance) -> None:
        """The planner in shadow says something (the node's thread)."""
        self._inbox.append(message)

    def set(self, wish: Supervise, current: Subtask | None) -> None:
        """Begin or end to decide about drafts."""
        self._inbox.clear()
        if wish.on:
            self._drafts.open(wish.wait_s, wish.at_end, current)
        else:
            self._drafts.close()

    def beat(self, now_ns: int, *, is_seated: bool) -> None:
        """Take in what has come, and end what has waited long enough."""
        if not is_seated:
            self._drafts.close()
        while self._inbox:
            message = self._inbox.popleft()
            if isinstance(message, Utterance):
                self._drafts.say(message.text, now_ns)
            elif replaced := self._drafts.plan(message, now_ns):
                self._tell("replace", "planner", replaced, now_ns)
        expired = self._drafts.expired(now_ns)
        if expired is not None:
            is_sent = self._drafts.at_end == "send"
            self._tell("expire", "time", expired, now_ns, sent=expired if is_sent else None)
            if is_sent:
                self._send(expired)

    def decide(self, decision: Decide, by: str, now_ns: int) -> str:
        """Approve, edit or reject the draft; returns why not, or ""."""
        draft = self._drafts.decide(decision.draft)
        if draft is None:
            return "that draft is not there any more"
        sent = self._edited(draft, decision) if decision.do == "edit" else draft if decision.do == "approve" else None
        self._tell(decision.do, by, draft, now_ns, sent=sent)
        if sent is not None:
            self._send(sent)
        return ""

    def document(self, now_ns: int) -> dict[str, Any]:
        """What the page shows of it."""
        draft = self._drafts.waiting
        return {
            "on": self._drafts.is_open,
            "wait_s": self._drafts.wait_s,
            "at_end": self._drafts.at_end,
            "draft": None
            if draft is None
            else {
                "n": draft.number,
                "text": draft.text,
                "has_subtask": draft.subtask is not None,
                "sentence": draft.sentence,
                "left_s": round(self._drafts.left_s(now_ns), 1),
            },
        }

    def _edited(self, draft: Draft, decision: Decide) -> Draft:
        self._edits += 1
        subtask = draft.subtask
        if subtask is not None and decision.text and decision.text != subtask.text:
            subtask = Subtask(
                id=f"{self._ports.name}-edit-{self._edits}",
                text=decision.text,
                verb=subtask.verb,
                what=subtask.what,
                where=subtask.where,
                excluding=subtask.excluding,
            )
        return Draft(draft.number, draft.since_ns, subtask, " ".join(decision.sentence.split()))

    def _send(self, draft: Draft) -> None:
        if draft.subtask is not None:
            self._ports.plan.publish(draft.subtask)
        if draft.sentence:
            self._ports.say_said.publish(Utterance(speaker=self._speaker, text=draft.sentence))

    def _tell(
        self,
        do: Literal["approve", "edit", "reject", "expire", "replace"],
        by: str,
        draft: Draft,
        now_ns: int,
        *,
        sent: Draft | None = None,
    ) -> None:
        self._ports.draft_decision.publish(
            DraftDecision(
                do=do,
                by=by,
                draft_text=draft.text,
                draft_sentence=draft.sentence,
                sent_text=sent.text if sent is not None else "",
                sent_sentence=sent.sentence if sent is not None else "",
                after_s=(now_ns - draft.since_ns) * 1e-9,
            )
        )
