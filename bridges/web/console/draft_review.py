"""`DraftReview`: a person on the planner's or the VLM's seat decides about what the model would do, before it is done.

While a person sits there, the model goes on in shadow: nobody acts on what it says. A draft joins a subtask or an
action and the sentence that came with it. It waits for a yes, but not forever. A newer one replaces it; what was
decided once does not come again. A stop waits for nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from bridges.web.console.ports import ConsolePorts
from bridges.web.http.graph_messages import DraftDecision
from bridges.web.http.wire import Decide, Supervise
from nodes.msgs import Action, Subtask, Utterance
from runtime.clock import to_s
from runtime.errors import ParameterError

INBOX = 32

AtEnd = Literal["drop", "send"]
ReviewedSeat = Literal["planner", "vlm"]
MODES = ("write", "approve", "undo")
"""How a person begins on a seat: they choose themselves, or say yes to each draft, or have a second to take it back."""
Plan = Subtask | Action
DECIDED_KEPT = 200

Content = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """One thing that the model would like to say."""

    number: int
    since_ns: int
    plan: Plan | None = None
    sentence: str = ""

    @property
    def text(self) -> str:
        """For people."""
        return "" if self.plan is None else self.plan.text or getattr(self.plan, "skill", "")


class Drafts:
    """At most one draft waits. `is_open` says whether anybody decides about them at all."""

    def __init__(self) -> None:
        self.is_open = False
        self.wait_s = 8.0
        self.at_end: AtEnd = "drop"
        self.waiting: Draft | None = None
        self._count = 0
        self._decided: deque[Content] = deque(maxlen=DECIDED_KEPT)

    def open(self, wait_s: float, at_end: AtEnd, current: Plan | None) -> None:
        """Begin to hold drafts back; what is being done already is no news."""
        self.is_open, self.wait_s, self.at_end = True, wait_s, at_end
        if current is not None:
            self._decided.append(_content(current))

    def close(self) -> None:
        """Nobody decides any more: the model speaks for itself, or a person writes."""
        self.is_open, self.waiting = False, None

    def passes(self, plan: Plan) -> bool:
        """Whether it goes out at once: a stop is never held back. What else waits is forgotten then."""
        if not self.is_open or not _is_stop(plan) or _content(plan) in self._decided:
            return False
        self._decided.append(_content(plan))
        self.waiting = None
        return True

    def plan(self, subtask: Plan, now_ns: int) -> Draft | None:
        """The model has a subtask or an action; returns the draft that it replaces, if there is one."""
        before = self.waiting
        if not self.is_open or _content(subtask) in self._decided:
            return None
        if before is not None and before.plan is not None:
            if _content(before.plan) == _content(subtask):
                return None
            self._decided.append(_content(before.plan))
            self.waiting = self._new(now_ns, plan=subtask)
            return before
        self.waiting = replace(before, plan=subtask) if before is not None else self._new(now_ns, plan=subtask)
        return None

    def say(self, sentence: str, now_ns: int) -> None:
        """The model has a sentence; it goes with the subtask that waits, or waits for one."""
        before = self.waiting
        if not self.is_open or (sentence,) in self._decided or (before is not None and before.sentence == sentence):
            return
        if before is None or before.sentence:
            plan = before.plan if before is not None else None
            self.waiting = self._new(now_ns, plan=plan, sentence=sentence)
        else:
            self.waiting = replace(before, sentence=sentence)

    def decide(self, number: int) -> Draft | None:
        """Take the draft of that number away; None where it is not the one that waits."""
        draft = self.waiting
        if draft is None or draft.number != number:
            return None
        self.waiting = None
        if draft.plan is not None:
            self._decided.append(_content(draft.plan))
        if draft.sentence:
            self._decided.append((draft.sentence,))
        return draft

    def left_s(self, now_ns: int) -> float:
        """How long the draft that waits waits still."""
        if self.waiting is None:
            return 0.0
        return max(0.0, self.wait_s - to_s(now_ns - self.waiting.since_ns))

    def expired(self, now_ns: int) -> Draft | None:
        """The draft whose time is up, which is taken away."""
        draft = self.waiting
        if draft is None or to_s(now_ns - draft.since_ns) < self.wait_s:
            return None
        return self.decide(draft.number)

    def _new(self, now_ns: int, *, plan: Plan | None = None, sentence: str = "") -> Draft:
        self._count += 1
        return Draft(self._count, now_ns, plan, sentence)


def _is_stop(plan: Plan) -> bool:
    return plan.skill == "hold" if isinstance(plan, Action) else plan.state == "wait"


def _content(subtask: Plan) -> Content:
    if isinstance(subtask, Action):
        return subtask.id, subtask.skill, subtask.text
    return (
        subtask.id, subtask.text, subtask.state, subtask.skill, subtask.things, subtask.place, subtask.excluding,
    )  # fmt: skip


class DraftReview:
    """Of one seat. Drafts come in by the node's thread and are decided in the server's."""

    def __init__(self, ports: ConsolePorts, speaker: str, seat: ReviewedSeat) -> None:
        self._ports = ports
        self._speaker = speaker
        self._seat = seat
        self._drafts = Drafts()
        self._inbox: deque[Plan | Utterance] = deque(maxlen=INBOX)
        self._edits = 0

    def propose(self, message: Plan | Utterance) -> None:
        """The model in shadow says something (the node's thread)."""
        self._inbox.append(message)

    def set(self, wish: Supervise, current: Plan | None) -> None:
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
            elif self._drafts.passes(message):
                stop = Draft(0, now_ns, message)
                self._tell("approve", "a stop does not wait", stop, now_ns, sent=stop)
                self._send(stop)
            elif replaced := self._drafts.plan(message, now_ns):
                self._tell("replace", self._seat, replaced, now_ns)
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
                "has_plan": draft.plan is not None,
                "sentence": draft.sentence,
                "left_s": round(self._drafts.left_s(now_ns), 1),
            },
        }

    def _edited(self, draft: Draft, decision: Decide) -> Draft:
        self._edits += 1
        subtask = draft.plan
        if isinstance(subtask, Subtask) and decision.text and decision.text != subtask.text:
            subtask = msgspec.structs.replace(subtask, id=f"{self._ports.name}-edit-{self._edits}", text=decision.text)  # type: ignore[type-var]  # a Struct, but not to type checkers
        return Draft(draft.number, draft.since_ns, subtask, " ".join(decision.sentence.split()))

    def _send(self, draft: Draft) -> None:
        if isinstance(draft.plan, Action):
            self._ports.act.publish(draft.plan)
        elif draft.plan is not None:
            self._ports.plan.publish(draft.plan)
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
                after_s=to_s(now_ns - draft.since_ns),
            )
        )


def check_review(review: Mapping[str, str]) -> None:
    """Raise ParameterError where the launch file says something else than how a person begins on a seat."""
    for seat, mode in review.items():
        if seat not in ("planner", "vlm") or mode not in MODES:
            raise ParameterError(
                f"console: review has {seat} = {mode!r}; expected planner or vlm, each with one of {', '.join(MODES)}"
            )
